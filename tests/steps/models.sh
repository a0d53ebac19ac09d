# SPDX-License-Identifier: MIT
# about: models of protocols, searched wholly by spin; the sources and memory orders of the pipe, of epochs and of spare memory over relacy; with mutants in the long tier
# tier: full
# parts: model
# timeout: 600
set -eu
command -v spin >/dev/null || { echo "spin is not installed"; exit 77; }
echo '#include <relacy/relacy.hpp>' | c++ -w -fsyntax-only -x c++ - 2>/dev/null || { echo "relacy is not installed"; exit 77; }
[ "$MUSTER_TIER" = long ] || export MODEL_MUTANTS=no # that the models notice a mistake takes ten times as long
exec "$MUSTER_ROOT/tests/models/run"
