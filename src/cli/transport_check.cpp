// SPDX-License-Identifier: MIT
#include "arguments.hpp"
#include "transport_check/harness.hpp"

#include <cstdio>

namespace {

constexpr char help[] =
    "usage: muster-transport-check [options] <plug-in or address> [address]\n"
    "\n"
    "Runs the conformance suite over a transport, in two processes where that is possible, and prints TAP lines. "
    "Status\n"
    "0: every promise was kept, 1: one was not, 2: it could not begin, 3: a case hung.\n"
    "\n"
    "  <plug-in>           a file, muster-<scheme>.so; an address of its scheme follows unless `<scheme>://@` will do\n"
    "  <address>           where to listen; each @ in it becomes a name of this run: tcp://127.0.0.1:0, "
    "unix:///@\n"
    "                      (a file in TMPDIR), shm://@, inproc://@, served:///@ (a transport this program serves "
    "itself)\n"
    "  --max-bytes <n>     largest transfer, with k, m or g behind it; default 64m, with --long 4g\n"
    "  --long              large transfers, longer waits\n"
    "  --only <text>       the cases whose name contains it\n"
    "  --pulled            served://: pull the requests instead of dispatching them\n"
    "  --serve <file>      a shared object that serves the scheme in each context: it exports\n"
    "                      void *muster_serve_begin(muster_context *, muster_error *), NULL: it cannot, and\n"
    "                      void muster_serve_end(void *), which returns when its threads have ended\n"
    "  --guarded           the transport itself admits no member without the secret (a broker with CURVE), for any\n"
    "                      address\n"
    "  --ranks <folder>    run by every rank of a job, as in mpirun -n 8: one checks, the others are what it checks "
    "against;\n"
    "                      some are killed, so the launcher has to allow that; they meet in the (empty) folder\n"
    "  --time-scale <n>      every time is n times as long, for slow machines and instrumented builds\n"
    "  --log               print the library's log records of both processes to stderr\n"
    "  --list              the names of the cases\n";

int list() {
    for (const auto *cases : {&check::byte_cases, &check::ending_cases, &check::peer_cases, &check::secret_cases})
        for (const check::Case &one : *cases) puts(one.name);
    return 0;
}

} // namespace

int transport_check_command(const Arguments &arguments, const std::string &program) {
    const cli::Command command{"muster-transport-check", help};
    check::Options options;
    options.program = program;
    int peer_fd = -1, parent = 0;
    bool lists = false;
    uint64_t max_bytes = 0;
    std::vector<std::string> words;
    const auto status = cli::read_options(
        command, arguments,
        {cli::flag("list", lists), cli::flag("long", options.long_cases), cli::flag("log", options.log),
         cli::flag("guarded", options.guarded), cli::flag("pulled", options.pulled),
         cli::text("serve", options.servant), cli::text("ranks", options.ranks), cli::text("only", options.only),
         cli::amount("max-bytes", max_bytes, 1 << 20), cli::number("time-scale", options.slowdown, 1, 1000),
         cli::number("peer", peer_fd, 0, INT32_MAX), cli::number("parent", parent, 0, INT32_MAX)},
        words);
    if (status) return *status;
    if (lists) return list();
    for (const std::string &word : words) {
        std::string &place = word.find("://") != std::string::npos ? options.address : options.plugin;
        if (!place.empty()) return cli::reject(command, "unexpected argument " + word);
        place = word;
    }
    if (max_bytes != 0 || options.long_cases) options.max_bytes = max_bytes != 0 ? max_bytes : uint64_t{4} << 30;
    if (options.address.empty() && !options.plugin.empty()) {
        const size_t name = options.plugin.rfind("muster-"), end = options.plugin.rfind(".so");
        if (name == std::string::npos || end == std::string::npos || end < name + 7)
            return cli::reject(command,
                               "the name of the file shows no scheme, an address is needed: " + options.plugin);
        options.address = options.plugin.substr(name + 7, end - name - 7) + "://@";
    }
    if (options.address.empty()) return cli::reject(command, "a plug-in or an address is missing");
    options.heartbeat_ns *= options.slowdown;
    options.silent_ns *= options.slowdown;
    options.dead_ns *= options.slowdown;
    check::time_limit *= options.slowdown;
    if (peer_fd >= 0) return check::peer_main(options, peer_fd, parent);
    if (!options.ranks.empty()) return check::run_rank(options);
    return check::run_all(options);
}
