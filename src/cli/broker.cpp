// SPDX-License-Identifier: MIT
// muster broker: the middle of a star, as a program of its own.
#include "commands.hpp"
#include "scraping.hpp"
#include "serving.hpp"

#include <muster/broker.h>
#include <muster/queue.h>

#include <cinttypes>
#include <cstdio>
#include <malloc.h>
#include <unistd.h>

namespace {

constexpr char help[] =
    "usage: muster broker --listen <address> [options]\n"
    "\n"
    "Runs the broker of a star until SIGTERM or SIGINT. Members listen at zmq://name@host:port/ and dial that. When "
    "the\n"
    "broker listens it prints one line, `listening zmq://host:port/`. Log records go to stderr.\n"
    "\n"
    "  --listen <address>     zmq://127.0.0.1:8100/ (or tcp://127.0.0.1:8100); port 0: any; 0.0.0.0: on all "
    "interfaces\n"
    "  --secret-file <file>   the secret of the job, not readable by others; else MUSTER_SECRET_FILE, MUSTER_SECRET\n"
    "  --broker-secret-file <file>  a second secret, which only brokers get: the address printed then has its public "
    "key,\n"
    "                         `zmq://host:port/?broker=KEY`, and members with that address accept no other process as\n"
    "                         their broker; else MUSTER_BROKER_SECRET_FILE, MUSTER_BROKER_SECRET\n"
    "  --open                 no secret: lets everybody in, without encryption (members say curve=no)\n"
    "  --curve-file <file>    CURVE keys in place of those derived from the secret: lines `broker-secret <key>` and\n"
    "                         `member-public <key>` for each member; not readable by others; else MUSTER_CURVE_FILE\n"
    "  --no-curve             the secret is proved, but nothing is encrypted (members say curve=no)\n"
    "  --parent <address>     the broker above: what is not known here is looked for there; both need the broker\n"
    "                         secret, or the same key in a file of CURVE keys\n"
    "  --window <bytes>       most bytes on their way from one member to one other; k, m behind it; default 1m\n"
    "  --max-members <n>      default 65536\n"
    "  --publish-metrics <store>  publish what this process counts in that store, for muster top\n"
    "  --metrics-listen <host:port>  answer Prometheus at http://host:port/metrics, on the loopback interface\n"
    "  --metrics-token-file <file>   the token that its requests have; not readable by others\n"
    "  --ready-fd <n>         write the address and a newline to this descriptor, too, and close it\n"
    "  --stats <seconds>      print a line of figures every so often; SIGUSR1 prints one at any time\n"
    "  --log <level>          error, warn, info (default) or debug\n"
    "Status 0: stopped by a signal. 1: it could not listen. 2: wrong arguments.\n";

struct Options : serving::Options {
    std::string listen, parent, curve_file, metrics_store;
    muster_broker_config config{};
    serving::Scraping scraping;
};

std::string zmq_address(const std::string &text) {
    return text.starts_with("tcp://") ? "zmq" + text.substr(3) : text;
}

// The error of the combination of options; empty: none.
std::string check_together(Options &options, const std::vector<std::string> &words) {
    if (!words.empty()) return "unexpected argument " + words[0];
    if (options.listen.empty()) return "where is it to listen? --listen is missing";
    if (!cli::has_secret() && (options.config.flags & MUSTER_BROKER_OPEN) == 0)
        return "no secret: --secret-file, MUSTER_SECRET_FILE or MUSTER_SECRET gives one, --open does without";
    options.config.struct_size = sizeof options.config;
    if (!options.parent.empty()) {
        options.config.parent = options.parent.data();
        options.config.parent_bytes = options.parent.size();
    }
    if (!options.curve_file.empty()) {
        options.config.curve_file = options.curve_file.data();
        options.config.curve_file_bytes = options.curve_file.size();
    }
    return options.scraping.check();
}

std::optional<int> read_options(const Arguments &arguments, Options &o) {
    const cli::Command command{"muster broker", help};
    std::vector<std::string> words;
    const auto status =
        cli::read_options(command, arguments,
                          o.scraping.options(o.known(
                              {{"listen", [&o](const std::string &text) { return o.listen = zmq_address(text), ""; }},
                               {"parent", [&o](const std::string &text) { return o.parent = zmq_address(text), ""; }},
                               cli::secret_file("broker-secret-file", "MUSTER_BROKER_SECRET_FILE"),
                               cli::text("curve-file", o.curve_file),
                               cli::text("publish-metrics", o.metrics_store),
                               cli::flag("open", o.config.flags, uint32_t{MUSTER_BROKER_OPEN}),
                               cli::flag("no-curve", o.config.flags, uint32_t{MUSTER_BROKER_NO_CURVE}),
                               cli::amount("window", o.config.window_bytes),
                               cli::number("max-members", o.config.max_members, 0, UINT32_MAX)})),
                          words);
    if (status) return status;
    const std::string wrong = check_together(o, words);
    return wrong.empty() ? std::nullopt : std::optional(cli::reject(command, wrong));
}

void print_stats(muster_broker *broker) {
    muster_broker_stats s;
    if (muster_broker_get_stats(broker, &s) != MUSTER_OK) return;
    printf("members %" PRIu64 " brokers %" PRIu64 " parent %s connections %" PRIu64 " names %" PRIu64 " pairs %" PRIu64
           " messages %" PRIu64 " multicasts %" PRIu64 " bytes %" PRIu64 " queued %" PRIu64 " refused %" PRIu64
           " lost %" PRIu64 " rss_mb %.1f\n",
           s.members, s.brokers, s.has_parent != 0 ? "yes" : "no", s.connections, s.names, s.pairs, s.messages,
           s.multicasts, s.bytes, s.queued_bytes, s.refused, s.lost, serving::resident_mb());
    fflush(stdout);
}

// Messages are short-lived: the pages of one are reused by the next. Pages that the heap returns to the system between
// two bursts have to be allocated again, one by one, which takes a third of the speed of a bulk transfer.
void keep_memory() {
    mallopt(M_MMAP_THRESHOLD, 32 * 1024 * 1024);
    mallopt(M_TRIM_THRESHOLD, 256 * 1024 * 1024);
    mallopt(M_TOP_PAD, 4 * 1024 * 1024);
}

int failed(const muster_error &error) {
    fprintf(stderr, "muster broker: %s\n", error.message);
    return 1;
}

} // namespace

int broker_command(const Arguments &arguments) {
    Options options;
    options.log_level = MUSTER_LOG_INFO;
    if (const auto status = read_options(arguments, options)) return *status;
    serving::raise_limit();
    keep_memory();
    const int signals = serving::block_signals();

    muster_error error{};
    muster_context *context = nullptr;
    muster_queue *log = nullptr;
    muster_broker *broker = nullptr;
    int32_t log_fd = -1;
    if (muster_context_create(nullptr, &context, &error) != MUSTER_OK) return failed(error);
    if (muster_queue_create(context, nullptr, &log, &error) != MUSTER_OK) return failed(error);
    muster_queue_fd(log, &log_fd);
    muster_context_log(context, options.log_level, log, 0);
    if (muster_broker_open(context, options.listen.data(), options.listen.size(), &options.config, &broker, &error) !=
        MUSTER_OK)
        return failed(error);
    char address[2048];
    size_t address_bytes = 0;
    muster_broker_address(broker, address, sizeof address, &address_bytes);
    if (const std::string wrong = options.scraping.begin("muster broker", context); !wrong.empty()) {
        fprintf(stderr, "muster broker: %s\n", wrong.c_str());
        return 1;
    }
    serving::tell_ready("muster broker", address, options.ready_fd);
    serving::Publishing publishing;
    if (!options.metrics_store.empty()) publishing.begin("muster broker", context, options.metrics_store);
    serving::until_signal("muster broker", log, log_fd, signals, options.stats_ns, [&](bool wanted) {
        if (wanted) print_stats(broker);
        return true;
    });
    publishing.end();
    options.scraping.end();
    muster_broker_close(broker, 2'000'000'000);
    print_stats(broker);
    serving::print_log("muster broker", log);
    muster_broker_release(broker);
    muster_context_close(context, 0);
    muster_queue_release(log);
    muster_context_release(context);
    close(log_fd);
    return 0;
}
