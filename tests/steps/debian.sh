# SPDX-License-Identifier: MIT
# about: the Debian packages: built from their source package, checked by lintian, autopkgtest and piuparts in a bare Debian
# tier: long
# parts: build packages
# timeout: 3600
set -eu
[ "$(id -u)" = 0 ] || { echo "a chroot needs root"; exit 77; }
for tool in debootstrap lintian autopkgtest piuparts; do
    command -v $tool >/dev/null || { echo "no $tool"; exit 77; }
done
work=$(mktemp -d)
root=$work/root
logs=$MUSTER_LOGS
cleanup() {
    for place in dev proc sys; do ! mountpoint -q "$root/$place" || umount -l "$root/$place"; done
    rm -rf --one-file-system "$work"
}
trap cleanup EXIT
show() { # <log>: its end, before a failure
    tail -n 40 "$logs/$1"
    exit 1
}
"$MUSTER_ROOT/debian/make-source" "$work/source"
folder=$(echo "$work"/source/muster-*/)
(cd "$folder" && dpkg-buildpackage -us -uc -b >"$logs/debian.log" 2>&1) || show debian.log
echo "-- lintian"
lintian --fail-on error --suppress-tags initial-upload-closes-no-bugs "$work"/source/*.changes "$work"/source/*.dsc

mirror=$(apt-get indextargets --format '$(COMPONENT) $(SITE)' 'Created-By: Packages' | awk '$1 == "main" { print $2; exit }')
debootstrap --variant=minbase bookworm "$root" "$mirror" >"$logs/debootstrap.log" 2>&1
cp /etc/apt/apt.conf.d/* "$root/etc/apt/apt.conf.d/" # how this machine reaches the mirror
printf '127.0.0.1 localhost\n' >"$root/etc/hosts"
tar -C "$root" -czf "$work/base.tar.gz" .

echo "-- piuparts: installed and purged, nothing stays; with each package's dependencies alone"
piuparts --basetgz="$work/base.tar.gz" --distribution=bookworm --mirror="$mirror main" --skip-logrotatefiles-test \
    --no-eatmydata "$work"/source/*.deb >"$logs/piuparts.log" 2>&1 || show piuparts.log
grep -E 'PASS|All tests' "$logs/piuparts.log" | tail -n 5

echo "-- autopkgtest: debian/tests, in a chroot"
cp /etc/resolv.conf "$root/etc/"
mount --bind /proc "$root/proc"
mount --rbind /dev "$root/dev"
# Without the variables of this step, which would lead the tests to the library of the build.
env -i HOME="${HOME:-/root}" PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 autopkgtest --apt-upgrade "$work"/source/*.deb "$work"/source/*.dsc --no-built-binaries -- chroot "$root" >"$logs/autopkgtest.log" 2>&1 ||
    show autopkgtest.log
sed -n '/@@@@ summary/,$p' "$logs/autopkgtest.log"
