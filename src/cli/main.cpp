// SPDX-License-Identifier: MIT
#include "commands.hpp"

#include <muster/base.h>

#include <climits>
#include <cstdio>
#include <exception>
#include <unistd.h>

namespace {

int usage(FILE *to) {
    fputs("usage: muster <command> [arguments]\n"
          "  bench             what streams do on this machine, or between two; see muster bench --help\n"
          "  broker            the broker of a star; see muster broker --help\n"
          "  check             what works here, what is missing, and which package brings it\n"
          "  run               the workers of this node, as part of a job; see muster run --help\n"
          "  store             serves a store to other processes; see muster store --help\n"
          "  store-check       the conformance suite for stores; see muster store-check --help\n"
          "  top               the processes of a job, live; see muster top --help\n"
          "  trace             joins and sums up traces; see muster trace --help\n"
          "  transport-check   the conformance suite for transports; see muster transport-check --help\n"
          "  version           the version of the library\n",
          to);
    return to == stdout ? 0 : 2;
}

std::string own_path() {
    char path[PATH_MAX];
    const ssize_t size = readlink("/proc/self/exe", path, sizeof path);
    return size > 0 ? std::string(path, static_cast<size_t>(size)) : "muster";
}

} // namespace

int main(int argc, char **argv) {
    try {
        Arguments arguments(argv, argv + argc);
        const std::string name = argc > 0 ? arguments[0].substr(arguments[0].rfind('/') + 1) : "muster";
        if (!arguments.empty()) arguments.erase(arguments.begin());
        if (name == "muster-transport-check") return transport_check_command(arguments, own_path());
        if (arguments.empty()) return usage(stderr);
        const std::string command = arguments[0];
        arguments.erase(arguments.begin());
        if (command == "bench") return bench_command(arguments);
        if (command == "broker") return broker_command(arguments);
        if (command == "check") return check_command(arguments);
        if (command == "run") return run_command(arguments);
        if (command == "store") return store_command(arguments);
        if (command == "store-check") return store_check_command(arguments);
        if (command == "top") return top_command(arguments);
        if (command == "trace") return trace_command(arguments);
        if (command == "transport-check") return transport_check_command(arguments, own_path());
        if (command == "version" || command == "--version") return puts(muster_version(nullptr, nullptr, nullptr)) < 0;
        if (command == "help" || command == "--help" || command == "-h") return usage(stdout);
        fprintf(stderr, "muster: no command %s\n", command.c_str());
        return usage(stderr);
    } catch (const std::exception &failed) {
        fprintf(stderr, "muster: %s\n", failed.what());
        return 2;
    }
}
