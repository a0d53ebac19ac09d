// SPDX-License-Identifier: MIT
// muster store: a store for other processes, as a program of its own.
#include "commands.hpp"
#include "serving.hpp"

#include <muster/store_server.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <getopt.h>
#include <unistd.h>

namespace {

constexpr char help[] =
    "usage: muster store --listen <address> [options]\n"
    "\n"
    "Serves a store until SIGTERM or SIGINT. Others open it by the URL it prints when it listens, in one line,\n"
    "`listening tcp://host:port`. Log records go to stderr.\n"
    "\n"
    "  --listen <address>     tcp://127.0.0.1:29400 (port 0: any; tcp://0.0.0.0:29400: on all interfaces) or\n"
    "                         unix:///path\n"
    "  --data-dir <folder>    keep the store there: it survives the end of this process. Without it all is in memory\n"
    "  --no-sync              with --data-dir: do not wait for the disk; what was acknowledged survives kill -9, but\n"
    "                         perhaps not a crash of the machine\n"
    "  --standby-of <address> stand by for the server there: have what it acknowledges, and take over when it ends.\n"
    "                         Clients name both, tcp://a:29400,b:29400. SIGUSR2 tells a server that the other one is\n"
    "                         dead, where it cannot know: it goes on alone\n"
    "  --alone                with --data-dir: the same, from the start\n"
    "  --refused-is-dead      a refused connection shows that the other's process has ended, on another host, too\n"
    "  --pair-lease <seconds> a standby that hears nothing for a quarter more takes over; default 3\n"
    "  --secret-file <file>   the secret of the job, not readable by others; else MUSTER_SECRET_FILE, MUSTER_SECRET\n"
    "  --open                 no secret: lets everybody in (clients say auth=none in their URL)\n"
    "  --most <bytes>         most bytes of keys and values; k, m behind it; default 1024m\n"
    "  --max-clients <n>      default 65536\n"
    "  --session <seconds>    for so long a client that was cut off may come again; default 60\n"
    "  --ready-fd <n>         write the address and a newline to this descriptor, too, and close it\n"
    "  --stats <seconds>      print a line of figures every so often; SIGUSR1 prints one at any time\n"
    "  --log <level>          error, warn (default), info or debug\n"
    "Status 0: stopped by a signal. 1: it could not listen, or the data folder could not be written. 2: wrong\n"
    "arguments.\n";

struct Options : serving::Options {
    std::string listen, data_dir, standby_of;
    muster_store_server_config config{};
    bool open = false;
};

int wrong(const std::string &why) {
    fprintf(stderr, "muster store: %s\n%s", why.c_str(), help);
    return 2;
}

// One option. What is wrong with it; empty: nothing.
std::string take_option(int which, const std::string &value, Options &options) {
    const std::optional<uint64_t> number = serving::size_of(value);
    const std::string bad = "it cannot be set to " + value;
    switch (which) {
    case 'l':
        options.listen = value;
        return {};
    case 'd':
        options.data_dir = value;
        return value.empty() ? "no folder" : "";
    case 'n':
        options.config.flags |= MUSTER_STORE_SERVER_NO_SYNC;
        return {};
    case 'S':
        options.standby_of = value;
        return value.empty() ? "no address" : "";
    case 'A':
        options.config.flags |= MUSTER_STORE_SERVER_FORCE_STANDALONE;
        return {};
    case 'R':
        options.config.flags |= MUSTER_STORE_SERVER_REFUSED_IS_DEAD;
        return {};
    case 'L': {
        const double seconds = strtod(value.c_str(), nullptr);
        options.config.pair_lease_ns = static_cast<int64_t>(seconds * 1e9);
        return seconds >= 0.1 && seconds <= 3600 ? "" : bad + ", only to 0.1 to 3600 seconds";
    }
    case 'o':
        options.open = true;
        return {};
    case 'b':
        options.config.max_bytes = number.value_or(0);
        return number && *number != 0 ? "" : bad;
    case 'm':
        if (!number || *number == 0 || *number > UINT32_MAX) return bad;
        options.config.max_clients = static_cast<uint32_t>(*number);
        return {};
    case 't':
        if (!number || *number == 0 || *number > 86400) return bad + ", only to 1 to 86400 seconds";
        options.config.session_ns = static_cast<int64_t>(*number) * 1'000'000'000;
        return {};
    default:
        return options.take(which, value);
    }
}

// What is wrong with the arguments; empty: nothing.
std::string read_options(const Arguments &arguments, Options &options) {
    static const option known[] = {{"listen", required_argument, nullptr, 'l'},
                                   {"data-dir", required_argument, nullptr, 'd'},
                                   {"no-sync", no_argument, nullptr, 'n'},
                                   {"standby-of", required_argument, nullptr, 'S'},
                                   {"alone", no_argument, nullptr, 'A'},
                                   {"refused-is-dead", no_argument, nullptr, 'R'},
                                   {"pair-lease", required_argument, nullptr, 'L'},
                                   {"secret-file", required_argument, nullptr, 'f'},
                                   {"open", no_argument, nullptr, 'o'},
                                   {"most", required_argument, nullptr, 'b'},
                                   {"max-clients", required_argument, nullptr, 'm'},
                                   {"session", required_argument, nullptr, 't'},
                                   {"ready-fd", required_argument, nullptr, 'r'},
                                   {"stats", required_argument, nullptr, 's'},
                                   {"log", required_argument, nullptr, 'v'},
                                   {nullptr, 0, nullptr, 0}};
    std::vector<char *> words{const_cast<char *>("muster")};
    for (const std::string &word : arguments) words.push_back(const_cast<char *>(word.c_str()));
    words.push_back(nullptr);
    const int count = static_cast<int>(words.size()) - 1;
    opterr = 0;
    for (int which, index = 0; (which = getopt_long(count, words.data(), ":", known, &index)) != -1;) {
        if (which == '?') return "no such option: " + std::string(words[static_cast<size_t>(optind) - 1]);
        if (which == ':') return "what is it set to: " + std::string(words[static_cast<size_t>(optind) - 1]);
        const std::string why = take_option(which, optarg != nullptr ? optarg : "", options);
        if (!why.empty()) return "--" + std::string(known[index].name) + ": " + why;
    }
    if (optind != count) return "what is this: " + std::string(words[static_cast<size_t>(optind)]);
    if (options.listen.empty()) return "where is it to listen? --listen is missing";
    if (!serving::has_secret() && !options.open)
        return "no secret: --secret-file, MUSTER_SECRET_FILE or MUSTER_SECRET gives one, --open does without";
    if ((options.config.flags & MUSTER_STORE_SERVER_NO_SYNC) != 0 && options.data_dir.empty())
        return "--no-sync goes with --data-dir";
    if ((options.config.flags & MUSTER_STORE_SERVER_FORCE_STANDALONE) != 0 && options.data_dir.empty())
        return "--alone goes with --data-dir: without one there is nothing to go on with";
    if (options.open && !options.standby_of.empty())
        options.standby_of += options.standby_of.find('?') == std::string::npos ? "?auth=none" : "&auth=none";
    if (options.open) options.listen += options.listen.find('?') == std::string::npos ? "?auth=none" : "&auth=none";
    options.config.struct_size = sizeof options.config;
    options.config.data_dir = options.data_dir.empty() ? nullptr : options.data_dir.data();
    options.config.data_dir_bytes = options.data_dir.size();
    options.config.standby_of = options.standby_of.empty() ? nullptr : options.standby_of.data();
    options.config.standby_of_bytes = options.standby_of.size();
    return {};
}

muster_store_server_stats stats_of(muster_store_server *server) {
    muster_store_server_stats stats{};
    muster_store_server_get_stats(server, &stats);
    return stats;
}

void print_stats(muster_store_server *server) {
    static const char *const roles[] = {"serves", "paired", "halted", "standby", "catching-up", "waiting"};
    const muster_store_server_stats s = stats_of(server);
    printf("clients %" PRIu64 " sessions %" PRIu64 " requests %" PRIu64 " waiting %" PRIu64 " refused %" PRIu64
           " keys %" PRIu64 " bytes %" PRIu64 " leases %" PRIu64 " revision %" PRIu64 " role %s epoch %" PRIu64
           " lag %" PRIu64 " rss_mb %.1f\n",
           s.clients, s.sessions, s.requests, s.waiting, s.refused, s.keys, s.bytes, s.leases, s.revision,
           roles[s.role < 6 ? s.role : 0], s.epoch, s.lag, serving::resident_mb());
    fflush(stdout);
}

int failed(const muster_error &error) {
    fprintf(stderr, "muster store: %s\n", error.message);
    return 1;
}

} // namespace

int store_command(const Arguments &arguments) {
    for (const std::string &word : arguments)
        if (word == "--help" || word == "-h") return fputs(help, stdout) < 0;
    Options options;
    if (const std::string why = read_options(arguments, options); !why.empty()) return wrong(why);
    serving::raise_limit();
    const int signals = serving::block_signals();

    muster_error error{};
    muster_context *context = nullptr;
    muster_queue *log = nullptr;
    muster_store_server *server = nullptr;
    int32_t log_fd = -1;
    muster_context_config config;
    muster_config_init(&config, sizeof config);
    config.max_unauthenticated = 4096; // a whole job may come at once
    if (muster_context_create(&config, &context, &error) != MUSTER_OK) return failed(error);
    if (muster_queue_create(context, nullptr, &log, &error) != MUSTER_OK) return failed(error);
    muster_queue_fd(log, &log_fd);
    muster_context_log(context, options.log_level, log, 0);
    if (muster_store_server_open(context, options.listen.data(), options.listen.size(), &options.config, &server,
                                 &error) != MUSTER_OK)
        return failed(error);
    char address[4200];
    size_t address_bytes = 0;
    muster_store_server_address(server, address, sizeof address, &address_bytes);
    serving::tell_ready("muster store", address, options.ready_fd);
    serving::until_signal(
        "muster store", log, log_fd, signals, options.stats_s,
        [&](bool wanted) {
            if (wanted) print_stats(server);
            return stats_of(server).failed == 0; // the log has told
        },
        [&] { muster_store_server_force_standalone(server); });
    muster_store_server_close(server, 10'000'000'000);
    const bool fine = stats_of(server).failed == 0;
    if (options.stats_s > 0) print_stats(server);
    muster_store_server_release(server);
    serving::print_log("muster store", log);
    muster_context_close(context, 0);
    muster_queue_release(log);
    muster_context_release(context);
    close(log_fd);
    return fine ? 0 : 1;
}
