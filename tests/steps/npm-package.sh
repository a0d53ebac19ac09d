# SPDX-License-Identifier: MIT
# about: the Node package as its users install it: packed, compiled by npm against an installed Muster, used by a program
# tier: long
# parts: build node npm
# presets: release
# timeout: 600
set -eu
for tool in npm node; do command -v $tool >/dev/null || { echo "$tool is missing (packages nodejs and npm)"; exit 77; }; done
[ -e /usr/include/node/node_api.h ] || { echo "node_api.h is missing (package libnode-dev)"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$MUSTER_BUILD" --prefix "$work/muster" >"$work/log"
PKG_CONFIG_PATH=$(dirname "$(find "$work/muster" -name muster.pc)")
export PKG_CONFIG_PATH HOME="$work" npm_config_cache="$work/cache" npm_config_update_notifier=false
unset MUSTER_LIBRARY MUSTER_NODE_ADDON LD_LIBRARY_PATH MUSTER_PLUGIN_PATH
(cd "$work" && npm pack --silent "$MUSTER_ROOT/bindings/node")
tar -tzf "$work"/muster-*.tgz
mkdir "$work/program"
cd "$work/program"
printf '{ "name": "program", "private": true }\n' >package.json
# nodedir: the headers are there, and are not fetched.
npm install --offline --no-audit --no-fund --nodedir=/usr "$work"/muster-*.tgz >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
cat >program.js <<'JS'
const muster = require('muster');
(async () => {
    const context = new muster.Context({ secret: 'a secret of the test' });
    const listener = context.listen('tcp://127.0.0.1:0');
    listener.on('connection', (stream) => stream.pipe(stream));
    const stream = await context.dial(listener.address);
    stream.end('installed');
    for await (const chunk of stream) console.log(String(chunk));
    listener.close();
    await context.close();
})();
JS
[ "$(timeout 60 node program.js)" = installed ]
echo "installed by npm $(npm --version) for node $(node --version)"
