# SPDX-License-Identifier: MIT
# about: every benchmark program runs, shortly (tests/bench/run measures)
# tier: full
# parts: bench
# presets: release
# timeout: 600
# alone: yes
set -eu
exec "$MUSTER_ROOT/tests/bench/run" --smoke --yes --build "$MUSTER_BUILD" limits stream shm tcp unix message collective epoch atomic memory pgas star mpi store rendezvous cluster
