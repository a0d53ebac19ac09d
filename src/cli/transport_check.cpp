// SPDX-License-Identifier: MIT
#include "commands.hpp"
#include "transport_check/harness.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

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
    "  --guarded           the transport itself lets nobody in without the secret (a broker with CURVE), whatever the\n"
    "                      address says\n"
    "  --ranks <folder>    run by every rank of a job, as in mpirun -n 8: one checks, the others are what it checks "
    "against;\n"
    "                      some are killed, so the launcher has to allow that; they meet in the (empty) folder\n"
    "  --patience <n>      every time is n times as long, for slow machines and instrumented builds\n"
    "  --log               print the library's log records of both processes to stderr\n"
    "  --list              the names of the cases\n";

uint64_t size_of(const std::string &text) {
    char *end = nullptr;
    const uint64_t number = strtoull(text.c_str(), &end, 10);
    switch (*end) {
    case 'k':
        return number << 10;
    case 'm':
        return number << 20;
    case 'g':
        return number << 30;
    default:
        return number;
    }
}

int list() {
    for (const auto *cases : {&check::byte_cases, &check::ending_cases, &check::peer_cases, &check::secret_cases})
        for (const check::Case &one : *cases) puts(one.name);
    return 0;
}

int wrong(const char *why, const std::string &what) {
    fprintf(stderr, "muster-transport-check: %s%s\n%s", why, what.c_str(), help);
    return 2;
}

} // namespace

int transport_check_command(const Arguments &arguments, const std::string &program) {
    check::Options options;
    options.program = program;
    int peer_fd = -1, parent = 0;
    bool size_given = false;
    for (size_t i = 0; i < arguments.size(); i++) {
        const std::string &word = arguments[i];
        const bool more = i + 1 < arguments.size();
        if (word == "--help" || word == "-h") return fputs(help, stdout) < 0;
        if (word == "--list") return list();
        if (word == "--long")
            options.long_cases = true;
        else if (word == "--log")
            options.log = true;
        else if (word == "--guarded")
            options.guarded = true;
        else if (word == "--pulled")
            options.pulled = true;
        else if (word == "--serve" && more)
            options.servant = arguments[++i];
        else if (word == "--ranks" && more)
            options.ranks = arguments[++i];
        else if (word == "--only" && more)
            options.only = arguments[++i];
        else if (word == "--max-bytes" && more)
            options.max_bytes = size_of(arguments[++i]), size_given = true;
        else if (word == "--patience" && more)
            options.slowdown = std::max(1ll, std::stoll(arguments[++i]));
        else if (word == "--peer" && more)
            peer_fd = std::stoi(arguments[++i]);
        else if (word == "--parent" && more)
            parent = std::stoi(arguments[++i]);
        else if (word.starts_with("--"))
            return wrong("no such option: ", word);
        else if (word.find("://") != std::string::npos)
            options.address = word;
        else if (options.plugin.empty())
            options.plugin = word;
        else
            return wrong("what is this: ", word);
    }
    if (options.long_cases && !size_given) options.max_bytes = uint64_t{4} << 30;
    if (options.max_bytes < 1 << 20) return wrong("--max-bytes is at least 1m", "");
    if (options.address.empty() && !options.plugin.empty()) {
        const size_t name = options.plugin.rfind("muster-"), end = options.plugin.rfind(".so");
        if (name == std::string::npos || end == std::string::npos || end < name + 7)
            return wrong("no scheme can be seen in the name of the file, give an address: ", options.plugin);
        options.address = options.plugin.substr(name + 7, end - name - 7) + "://@";
    }
    options.heartbeat_ns *= options.slowdown;
    options.silent_ns *= options.slowdown;
    options.dead_ns *= options.slowdown;
    check::patience *= options.slowdown;
    if (options.address.empty()) return wrong("what is to be checked?", "");
    if (peer_fd >= 0) return check::peer_main(options, peer_fd, parent);
    if (!options.ranks.empty()) return check::run_rank(options);
    return check::run_all(options);
}
