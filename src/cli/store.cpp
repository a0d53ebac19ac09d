// SPDX-License-Identifier: MIT
// muster store: a store for other processes, as a program of its own.
#include "commands.hpp"
#include "scraping.hpp"
#include "serving.hpp"

#include <muster/store_server.h>

#include <cinttypes>
#include <cstdio>
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
    "                         Clients name both, tcp://a:29400,b:29400. SIGUSR2 declares the other server dead, where\n"
    "                         that cannot be known: this one continues alone\n"
    "  --alone                with --data-dir: the same, from the start\n"
    "  --refused-is-dead      a refused connection shows that the other's process has ended, on another host, too\n"
    "  --pair-lease <seconds> a standby without messages for a quarter more takes over; default 3\n"
    "  --secret-file <file>   the secret of the job, not readable by others; else MUSTER_SECRET_FILE, MUSTER_SECRET\n"
    "  --open                 no secret: lets everybody in (clients say auth=none in their URL)\n"
    "  --most <bytes>         most bytes of keys and values; k, m behind it; default 1024m\n"
    "  --max-clients <n>      default 65536\n"
    "  --session <seconds>    for so long a client that was cut off may come again; default 60\n"
    "  --publish-metrics      publish what this process counts in its own store, for muster top\n"
    "  --metrics-listen <host:port>  answer Prometheus at http://host:port/metrics, on the loopback interface\n"
    "  --metrics-token-file <file>   the token that its requests have; not readable by others\n"
    "  --ready-fd <n>         write the address and a newline to this descriptor, too, and close it\n"
    "  --stats <seconds>      print a line of figures every so often; SIGUSR1 prints one at any time\n"
    "  --log <level>          error, warn (default), info or debug\n"
    "Status 0: stopped by a signal. 1: it could not listen, or the data folder could not be written. 2: wrong\n"
    "arguments.\n";

struct Options : serving::Options {
    std::string listen, data_dir, standby_of;
    muster_store_server_config config{};
    serving::Scraping scraping;
    bool open = false, publishes = false;
};

// The error of the combination of options; empty: none.
std::string check_together(Options &options, const std::vector<std::string> &words) {
    if (!words.empty()) return "unexpected argument " + words[0];
    if (options.listen.empty()) return "where is it to listen? --listen is missing";
    if (!cli::has_secret() && !options.open)
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
    return options.scraping.check();
}

std::optional<int> read_options(const Arguments &arguments, Options &o) {
    const cli::Command command{"muster store", help};
    std::vector<std::string> words;
    const auto status = cli::read_options(
        command, arguments,
        o.scraping.options(o.known(
            {cli::text("listen", o.listen), cli::text("data-dir", o.data_dir),
             cli::flag("no-sync", o.config.flags, uint32_t{MUSTER_STORE_SERVER_NO_SYNC}),
             cli::text("standby-of", o.standby_of),
             cli::flag("alone", o.config.flags, uint32_t{MUSTER_STORE_SERVER_FORCE_STANDALONE}),
             cli::flag("refused-is-dead", o.config.flags, uint32_t{MUSTER_STORE_SERVER_REFUSED_IS_DEAD}),
             cli::seconds("pair-lease", o.config.pair_lease_ns, 0.1, 3600), cli::flag("open", o.open),
             cli::amount("most", o.config.max_bytes, 1),
             cli::number("max-clients", o.config.max_clients, 1, UINT32_MAX), cli::flag("publish-metrics", o.publishes),
             cli::seconds("session", o.config.session_ns, 1, 86400)})),
        words);
    if (status) return status;
    const std::string wrong = check_together(o, words);
    return wrong.empty() ? std::nullopt : std::optional(cli::reject(command, wrong));
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
    Options options;
    if (const auto status = read_options(arguments, options)) return *status;
    serving::raise_limit();
    const int signals = serving::block_signals();

    muster_error error{};
    muster_context *context = nullptr;
    muster_queue *log = nullptr;
    muster_store_server *server = nullptr;
    int32_t log_fd = -1;
    muster_context_config config;
    muster_config_init(&config, sizeof config);
    config.max_unauthenticated = 4096; // a whole job may connect at the same time
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
    if (const std::string wrong = options.scraping.begin("muster store", context); !wrong.empty()) {
        fprintf(stderr, "muster store: %s\n", wrong.c_str());
        return 1;
    }
    serving::tell_ready("muster store", address, options.ready_fd);
    serving::Publishing publishing;
    if (options.publishes)
        publishing.begin("muster store", context, std::string(address) + (options.open ? "?auth=none" : ""));
    serving::until_signal(
        "muster store", log, log_fd, signals, options.stats_ns,
        [&](bool wanted) {
            if (wanted) print_stats(server);
            return stats_of(server).failed == 0; // the log has the reason
        },
        [&] { muster_store_server_force_standalone(server); });
    publishing.end();
    options.scraping.end();
    muster_store_server_close(server, 10'000'000'000);
    const bool fine = stats_of(server).failed == 0;
    if (options.stats_ns > 0) print_stats(server);
    muster_store_server_release(server);
    serving::print_log("muster store", log);
    muster_context_close(context, 0);
    muster_queue_release(log);
    muster_context_release(context);
    close(log_fd);
    return fine ? 0 : 1;
}
