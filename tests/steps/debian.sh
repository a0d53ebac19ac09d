# SPDX-License-Identifier: MIT
# about: the Debian packages: built from their source package, checked by lintian, installed, tried and removed in a bare Debian
# tier: long
# parts: build packages
# timeout: 3600
set -eu
[ "$(id -u)" = 0 ] || { echo "a chroot needs root"; exit 77; }
command -v debootstrap >/dev/null || { echo "no debootstrap"; exit 77; }
work=$(mktemp -d)
root=$work/root
cleanup() {
    for place in dev proc; do ! mountpoint -q "$root/$place" || umount -l "$root/$place"; done
    rm -rf --one-file-system "$work"
}
trap cleanup EXIT
"$MUSTER_ROOT/debian/make-source" "$work/source"
folder=$(echo "$work"/source/muster-*/)
(cd "$folder" && dpkg-buildpackage -us -uc -b >"$MUSTER_ROOT/build/logs/debian.log" 2>&1) || {
    tail -n 30 "$MUSTER_ROOT/build/logs/debian.log"
    exit 1
}
echo "-- lintian"
lintian --fail-on error --suppress-tags initial-upload-closes-no-bugs "$work"/source/*.changes "$work"/source/*.dsc
mirror=$(apt-get indextargets --format '$(COMPONENT) $(SITE)' 'Created-By: Packages' | awk '$1 == "main" { print $2; exit }')
debootstrap --variant=minbase bookworm "$root" "$mirror" >"$MUSTER_ROOT/build/logs/debootstrap.log" 2>&1
cp /etc/resolv.conf "$root/etc/"
cp /etc/apt/apt.conf.d/* "$root/etc/apt/apt.conf.d/"
printf '127.0.0.1 localhost\n' >"$root/etc/hosts"
mount --bind /proc "$root/proc"
mount --rbind /dev "$root/dev"
mkdir "$root/debs"
cp "$work"/source/*.deb "$root/debs"
in_root() { env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive chroot "$root" "$@"; }
find_files() { find "$root" -xdev \( -path "$root/proc" -o -path "$root/dev" -o -path "$root/var/lib/apt" -o -path "$root/var/cache" -o \
    -path "$root/var/log" -o -path "$root/tmp" \) -prune -o -print | sort; }
in_root apt-get -q update >/dev/null
# What the packages and their tests depend on stays, so that the rest is theirs.
in_root apt-get -q -y --no-install-recommends install gcc libc6-dev pkg-config luajit python3 libzmq5 libsodium23 \
    libcurl4 libopenmpi3 openmpi-bin >/dev/null
find_files >"$work/before"
in_root sh -c 'apt-get -q -y --no-install-recommends install /debs/*.deb' >/dev/null
cp -r "$folder/debian/tests" "$root/tests"
for name in c-program python plug-ins lua; do
    echo "-- debian/tests/$name"
    in_root sh -c "mkdir -p /tmp/$name && cd /tmp/$name && AUTOPKGTEST_TMP=/tmp/$name /tests/$name"
done
rm -rf "$root/tests"
# shellcheck disable=SC2016 # the inner shell expands it
in_root sh -c 'apt-get -q -y purge $(dpkg-query -W -f "\${Package}\n" "*muster*")' >/dev/null
find_files >"$work/after"
echo "-- files that stay after the packages are purged"
if diff "$work/before" "$work/after" | grep '^>' | grep -v '/var/lib/dpkg/\|__pycache__\|/debs'; then exit 1; fi
echo none
