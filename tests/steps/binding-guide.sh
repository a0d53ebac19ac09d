# SPDX-License-Identifier: MIT
# about: the binding in docs/guide/binding.md, made from the description of the interface, works as the page says
# tier: full
# parts: test
# presets: release
# timeout: 60
set -eu
cd "$MUSTER_ROOT"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
awk '/^```$/ { here = 0 } here { print } /^```python$/ { here = 1 }' docs/guide/binding.md >"$work/example.py"
python3 tests/abi/api.py --json >"$work/api.json" || exit $?
timeout -k 5 30 python3 -X dev "$work/example.py" "$work/api.json" >"$work/said"
printf '%s\n' hello 'cancelled 0' True "this handle was released" | diff - "$work/said"
