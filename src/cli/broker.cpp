// SPDX-License-Identifier: MIT
// muster broker: the middle of a star, as a program of its own.
#include "commands.hpp"
#include "serving.hpp"

#include <muster/broker.h>
#include <muster/queue.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <getopt.h>
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
    "  --ready-fd <n>         write the address and a newline to this descriptor, too, and close it\n"
    "  --stats <seconds>      print a line of figures every so often; SIGUSR1 prints one at any time\n"
    "  --log <level>          error, warn, info (default) or debug\n"
    "Status 0: stopped by a signal. 1: it could not listen. 2: wrong arguments.\n";

struct Options : serving::Options {
    std::string listen, parent, curve_file;
    muster_broker_config config{};
};

int wrong(const std::string &why) {
    fprintf(stderr, "muster broker: %s\n%s", why.c_str(), help);
    return 2;
}

std::string zmq_address(const std::string &text) {
    return text.starts_with("tcp://") ? "zmq" + text.substr(3) : text;
}

// One option. What is wrong with it; empty: nothing.
std::string take_option(int which, const std::string &value, Options &options) {
    const std::optional<uint64_t> number = serving::size_of(value);
    std::string bad = "it cannot be set to " + value;
    switch (which) {
    case 'l':
        options.listen = zmq_address(value);
        return {};
    case 'b':
        return serving::take_secret_file(value, "MUSTER_BROKER_SECRET_FILE");
    case 'p':
        options.parent = zmq_address(value);
        return {};
    case 'c':
        options.curve_file = value;
        return {};
    case 'o':
        options.config.flags |= MUSTER_BROKER_OPEN;
        return {};
    case 'n':
        options.config.flags |= MUSTER_BROKER_NO_CURVE;
        return {};
    case 'w':
        options.config.window_bytes = number.value_or(0);
        return number ? "" : bad;
    case 'm':
        if (!number || *number > UINT32_MAX) return bad;
        options.config.max_members = static_cast<uint32_t>(*number);
        return {};
    default:
        return options.take(which, value);
    }
}

// What is wrong with the arguments; empty: nothing.
std::string read_options(const Arguments &arguments, Options &options) {
    static const option known[] = {{"listen", required_argument, nullptr, 'l'},
                                   {"parent", required_argument, nullptr, 'p'},
                                   {"secret-file", required_argument, nullptr, 'f'},
                                   {"broker-secret-file", required_argument, nullptr, 'b'},
                                   {"curve-file", required_argument, nullptr, 'c'},
                                   {"open", no_argument, nullptr, 'o'},
                                   {"no-curve", no_argument, nullptr, 'n'},
                                   {"window", required_argument, nullptr, 'w'},
                                   {"max-members", required_argument, nullptr, 'm'},
                                   {"ready-fd", required_argument, nullptr, 'r'},
                                   {"stats", required_argument, nullptr, 's'},
                                   {"log", required_argument, nullptr, 'v'},
                                   {nullptr, 0, nullptr, 0}};
    std::vector<char *> words{const_cast<char *>("muster")};
    for (const std::string &word : arguments) words.push_back(const_cast<char *>(word.c_str()));
    words.push_back(nullptr);
    const int count = static_cast<int>(words.size()) - 1;
    options.config.struct_size = sizeof options.config;
    opterr = 0;
    for (int which, index = 0; (which = getopt_long(count, words.data(), ":", known, &index)) != -1;) {
        if (which == '?') return "no such option: " + std::string(words[static_cast<size_t>(optind) - 1]);
        if (which == ':') return "what is it set to: " + std::string(words[static_cast<size_t>(optind) - 1]);
        const std::string why = take_option(which, optarg != nullptr ? optarg : "", options);
        if (!why.empty()) return "--" + std::string(known[index].name) + ": " + why;
    }
    if (optind != count) return "what is this: " + std::string(words[static_cast<size_t>(optind)]);
    if (options.listen.empty()) return "where is it to listen? --listen is missing";
    if (!serving::has_secret() && (options.config.flags & MUSTER_BROKER_OPEN) == 0)
        return "no secret: --secret-file, MUSTER_SECRET_FILE or MUSTER_SECRET gives one, --open does without";
    if (!options.parent.empty()) {
        options.config.parent = options.parent.data();
        options.config.parent_bytes = options.parent.size();
    }
    if (!options.curve_file.empty()) {
        options.config.curve_file = options.curve_file.data();
        options.config.curve_file_bytes = options.curve_file.size();
    }
    return {};
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

// Messages come and go: the pages of one are those of the next. What the heap gives back to the system between two
// bursts it has to ask for again, page by page, which takes a third of a bulk transfer's speed.
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
    for (const std::string &word : arguments)
        if (word == "--help" || word == "-h") return fputs(help, stdout) < 0;
    Options options;
    options.log_level = MUSTER_LOG_INFO;
    if (const std::string why = read_options(arguments, options); !why.empty()) return wrong(why);
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
    serving::tell_ready("muster broker", address, options.ready_fd);
    serving::until_signal("muster broker", log, log_fd, signals, options.stats_s, [&](bool wanted) {
        if (wanted) print_stats(broker);
        return true;
    });
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
