# SPDX-License-Identifier: MIT
# about: torch's elastic rendezvous on Muster's store, gloo jobs there and under muster run, and muster.torch of the Python binding
# tier: full
# parts: torch
# presets: dev
# timeout: 600
set -eu
python=/usr/bin/python3 # Debian's, which has Debian's torch
$python -c 'import torch' 2>/dev/null || { echo "no torch for $python (Debian: python3-torch)"; exit 77; }
export OMP_NUM_THREADS=1 GLOO_SOCKET_IFNAME=lo MUSTER_SECRET="a secret for this test"
"$MUSTER_ROOT/tests/conformance/with-store" "$MUSTER_BUILD/bin/muster" tcp://127.0.0.1:0 -- \
    timeout -k 10 280 $python "$MUSTER_ROOT/tests/torch/test_torch.py" %
timeout -k 10 280 $python "$MUSTER_ROOT/tests/torch/test_run.py" "$MUSTER_BUILD/bin/muster"
MUSTER_PLUGIN_PATH="$MUSTER_BUILD/plugins" timeout -k 10 200 $python "$MUSTER_ROOT/tests/python/test_torch.py"
