# SPDX-License-Identifier: MIT
# about: Julia workers launched by ssh, with an OpenSSH server of the test's own
# tier: full
# parts: julia ssh
# presets: release
# timeout: 400
set -eu
[ -x /usr/sbin/sshd ] || { echo "no sshd (package openssh-server)"; exit 77; }
. "$MUSTER_ROOT/tests/julia/env.sh"
exec timeout -k 10 390 "$julia" --startup-file=no "$MUSTER_ROOT/tests/julia/test_ssh.jl"
