// SPDX-License-Identifier: MIT
#include "run/options.hpp"

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <getopt.h>
#include <map>
#include <sched.h>
#include <unistd.h>

namespace run {

const char help[] =
    "usage: muster run [options] [--] <program> [arguments]\n"
    "\n"
    "Runs the workers of this node: copies of a program that learn their ranks from RANK, WORLD_SIZE, LOCAL_RANK,\n"
    "MASTER_ADDR, MASTER_PORT and others, as under torchrun. With --rdzv the workers of several nodes make one world.\n"
    "If a worker fails all are stopped, and started again up to --max-restarts times. SIGTERM, SIGINT and SIGHUP stop\n"
    "the workers by that signal, a second one at once; SIGUSR1 and SIGUSR2 are passed on.\n"
    "\n"
    "  --nnodes <n | min:max>     nodes of the job; default 1\n"
    "  --nproc-per-node <n|auto>  workers of this node; auto: one for each processor; default 1\n"
    "  --rdzv <url>               where the nodes meet: tcp://host:29400 (one that runs on that host serves it),\n"
    "                             another store, or static: for nodes that are given by --node-rank\n"
    "  --run-id <name>            name of the job there (also --rdzv-id)\n"
    "  --standalone               this node alone, which is so anyway without --rdzv\n"
    "  --max-restarts <n>         restarts after failures; default 0\n"
    "  --join-timeout <s>         longest wait for enough nodes; default 600\n"
    "  --last-call <s>            how long more nodes are waited for when min are there; default 30\n"
    "  --keep-alive <s>           a node that is not heard of for some times as long is dead; default 5\n"
    "  --keep-alive-attempts <n>  so many times; default 3\n"
    "  --rdzv-conf <key=value,..> as of torchrun: join_timeout, last_call_timeout, keep_alive_interval and\n"
    "                             keep_alive_max_attempt, which stand for the four above\n"
    "  --exit-timeout <s>         longest wait for nodes that are not done yet; default: no end\n"
    "  --reopen                   run again under a --run-id that is over\n"
    "  --state-dir <folder>       where this node keeps what it knows of the job while a node serves the store, so "
    "that a\n"
    "                             restarted node finds the others; default MUSTER_STATE_DIR, or muster in\n"
    "                             XDG_STATE_HOME or ~/.local/state; '' keeps nothing\n"
    "  --new-run                  forget what is kept there: no node of an earlier job of this name is left\n"
    "  --node-rank <n>            rank of this node: wanted; with static: given\n"
    "  --master-addr <host>, --master-port <n>   with static: and no store: what workers are told\n"
    "  --local-addr <host>        address of this host for the others\n"
    "  --role <name>              what these workers are; default `default`\n"
    "  --grace <s>                time between the signal that stops workers and SIGKILL; default 30\n"
    "  --log-dir <folder>         where files of the workers go\n"
    "  --redirects <which>        outputs that go to files there: out, err, all or none (1, 2, 3, 0); default none;\n"
    "                             of some workers, by their local ranks: 0:out,1:err\n"
    "  --tee <which>              outputs that go to files and are shown, too; likewise\n"
    "  --no-prefix                no [role local_rank]: before the lines of several workers\n"
    "  --no-guard                 workers outlive this command when it is killed\n"
    "  --secret-file <file>       secret of the job, not readable by others; else MUSTER_SECRET_FILE, MUSTER_SECRET\n"
    "  --log <level>              error, warn (default), info or debug\n"
    "Exit status: that of the worker that failed first, 128 + n if it or this command was ended by signal n; 0: all\n"
    "succeeded; 1: another failure; 2: wrong arguments.\n";

namespace {

constexpr uint32_t most_workers = 1024; // of a node

std::optional<uint64_t> number_of(const std::string &text, uint64_t most) {
    char *end = nullptr;
    errno = 0;
    const uint64_t number = strtoull(text.c_str(), &end, 10);
    if (text.empty() || text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || number > most) return {};
    return number;
}

std::string take_number(const std::string &text, uint64_t least, uint64_t most, uint32_t &to) {
    const std::optional<uint64_t> number = number_of(text, most);
    if (!number || *number < least)
        return text + " is no number from " + std::to_string(least) + " to " + std::to_string(most);
    to = static_cast<uint32_t>(*number);
    return {};
}

std::string take_seconds(const std::string &text, int64_t &to_ns) {
    char *end = nullptr;
    const double seconds = strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0' || !std::isfinite(seconds) || seconds < 0.001 || seconds > 1e9)
        return text + " is no number of seconds from 0.001 to 1000000000";
    to_ns = static_cast<int64_t>(seconds * 1e9);
    return {};
}

std::string take_nodes(const std::string &text, Options &options) {
    constexpr uint64_t most = 1 << 20;
    const size_t colon = text.find(':');
    const std::optional<uint64_t> least = number_of(text.substr(0, colon), most);
    const std::optional<uint64_t> limit = colon == text.npos ? least : number_of(text.substr(colon + 1), most);
    if (!least || !limit || *least == 0) return text + " is neither a number of nodes nor min:max, as in 2:4";
    if (*least > *limit) return text + ": min is above max";
    options.least_nodes = static_cast<uint32_t>(*least);
    options.most_nodes = static_cast<uint32_t>(*limit);
    return {};
}

std::string take_workers(const std::string &text, uint32_t &workers) {
    if (text != "auto" && text != "cpu") return take_number(text, 1, most_workers, workers);
    cpu_set_t own;
    CPU_ZERO(&own);
    workers = sched_getaffinity(0, sizeof own, &own) == 0 ? static_cast<uint32_t>(CPU_COUNT(&own)) : 1;
    return {};
}

std::string take_bits(const std::string &text, uint32_t &bits) {
    static const std::map<std::string, uint32_t> names = {{"none", 0}, {"0", 0}, {"out", 1}, {"1", 1},
                                                          {"err", 2},  {"2", 2}, {"all", 3}, {"3", 3}};
    const auto found = names.find(text);
    if (found == names.end()) return text + " is none of out, err, all, none";
    bits = found->second;
    return {};
}

// For all workers, as in 3; or for some, as in 0:1,1:2: then nothing of the others.
std::string take_outputs(const std::string &text, OutputChoice &outputs) {
    outputs = {};
    if (text.find(':') == text.npos) return take_bits(text, outputs.all);
    for (size_t from = 0, comma = 0; comma != text.npos; from = comma + 1) {
        comma = text.find(',', from);
        const std::string part = text.substr(from, comma - from);
        const size_t colon = part.find(':');
        const std::optional<uint64_t> rank = number_of(part.substr(0, colon), most_workers - 1);
        uint32_t bits = 0;
        if (colon == part.npos || !rank) return part + " is no rank:which, as in 0:out,1:err";
        if (std::string wrong = take_bits(part.substr(colon + 1), bits); !wrong.empty()) return wrong;
        if (!outputs.named.emplace(static_cast<uint32_t>(*rank), bits).second)
            return "worker " + std::to_string(*rank) + " twice";
    }
    return {};
}

// The first rank that is named, and there is no such worker.
std::optional<uint32_t> rank_too_high(const Options &options) {
    for (const OutputChoice *const choice : {&options.redirects, &options.tee})
        for (const auto &[rank, bits] : choice->named)
            if (rank >= options.workers) return rank;
    return {};
}

std::string take_level(const std::string &text, int32_t &to) {
    static const char *const levels[] = {"off", "error", "warn", "info", "debug"};
    for (int32_t level = 0; level < 5; level++)
        if (text == levels[level]) {
            to = level;
            return {};
        }
    return text + " is none of error, warn, info, debug";
}

std::string take_text(const std::string &text, std::string &to) {
    to = text;
    return text.empty() ? "it is empty" : "";
}

// torchrun's settings of a rendezvous.
std::string take_conf(const std::string &text, Options &options) {
    int64_t unused_ns = 0;
    for (size_t from = 0, comma = 0; comma != text.npos; from = comma + 1) {
        comma = text.find(',', from);
        const std::string part = text.substr(from, comma - from);
        const size_t equals = part.find('=');
        if (equals == part.npos) return part + " is no key=value, as in join_timeout=60";
        const std::string key = part.substr(0, equals), value = part.substr(equals + 1);
        std::string wrong;
        if (key == "join_timeout" || key == "timeout")
            wrong = take_seconds(value, options.join_timeout_ns);
        else if (key == "last_call_timeout")
            wrong = take_seconds(value, options.last_call_ns);
        else if (key == "keep_alive_interval")
            wrong = take_seconds(value, options.keep_alive_ns);
        else if (key == "keep_alive_max_attempt")
            wrong = take_number(value, 1, 1000, options.keep_alive_attempts);
        else if (key == "close_timeout" || key == "heartbeat_timeout" || key == "read_timeout")
            wrong = take_seconds(value, unused_ns); // each bounds one request to the store: the keep-alive does so here
        else if (key == "is_host" || key == "store_type")
            wrong = "it is not there: the URL of --rdzv says who serves which store";
        else if (key == "rank")
            wrong = "it is not there: it is --node-rank";
        else
            wrong = "there is no such key; known are join_timeout, last_call_timeout, keep_alive_interval, "
                    "keep_alive_max_attempt, and, bounded by the keep-alive, close_timeout, heartbeat_timeout and "
                    "read_timeout";
        if (!wrong.empty()) return key + ": " + wrong;
    }
    return {};
}

enum Option { // behind those that getopt knows
    nnodes = 256,
    nproc,
    rdzv,
    run_id,
    standalone,
    max_restarts,
    join_timeout,
    last_call,
    keep_alive,
    keep_alive_attempts,
    rdzv_conf,
    exit_timeout,
    reopen,
    state_dir,
    new_run,
    node_rank,
    master_addr,
    master_port,
    local_addr,
    role,
    grace,
    log_dir,
    redirects,
    tee,
    no_prefix,
    no_guard,
    secret_file,
    log_level
};

const option known[] = {{"nnodes", required_argument, nullptr, nnodes},
                        {"nproc-per-node", required_argument, nullptr, nproc},
                        {"rdzv", required_argument, nullptr, rdzv},
                        {"run-id", required_argument, nullptr, run_id},
                        {"rdzv-id", required_argument, nullptr, run_id},
                        {"standalone", no_argument, nullptr, standalone},
                        {"max-restarts", required_argument, nullptr, max_restarts},
                        {"join-timeout", required_argument, nullptr, join_timeout},
                        {"last-call", required_argument, nullptr, last_call},
                        {"keep-alive", required_argument, nullptr, keep_alive},
                        {"keep-alive-attempts", required_argument, nullptr, keep_alive_attempts},
                        {"rdzv-conf", required_argument, nullptr, rdzv_conf},
                        {"exit-timeout", required_argument, nullptr, exit_timeout},
                        {"reopen", no_argument, nullptr, reopen},
                        {"state-dir", required_argument, nullptr, state_dir},
                        {"new-run", no_argument, nullptr, new_run},
                        {"node-rank", required_argument, nullptr, node_rank},
                        {"master-addr", required_argument, nullptr, master_addr},
                        {"master-port", required_argument, nullptr, master_port},
                        {"local-addr", required_argument, nullptr, local_addr},
                        {"role", required_argument, nullptr, role},
                        {"grace", required_argument, nullptr, grace},
                        {"log-dir", required_argument, nullptr, log_dir},
                        {"redirects", required_argument, nullptr, redirects},
                        {"tee", required_argument, nullptr, tee},
                        {"no-prefix", no_argument, nullptr, no_prefix},
                        {"no-guard", no_argument, nullptr, no_guard},
                        {"secret-file", required_argument, nullptr, secret_file},
                        {"log", required_argument, nullptr, log_level},
                        {nullptr, 0, nullptr, 0}};

// One option. What is wrong with it; empty: nothing.
std::string take_option(int which, const std::string &value, Options &options) {
    uint32_t number = 0;
    std::string wrong;
    switch (which) {
    case nnodes:
        return take_nodes(value, options);
    case nproc:
        return take_workers(value, options.workers);
    case rdzv:
        return take_text(value, options.rdzv);
    case run_id:
        return take_text(value, options.run_id);
    case standalone:
        options.standalone = true;
        return {};
    case max_restarts:
        return take_number(value, 0, UINT32_MAX, options.max_restarts);
    case join_timeout:
        return take_seconds(value, options.join_timeout_ns);
    case last_call:
        return take_seconds(value, options.last_call_ns);
    case keep_alive:
        return take_seconds(value, options.keep_alive_ns);
    case keep_alive_attempts:
        return take_number(value, 1, 1000, options.keep_alive_attempts);
    case rdzv_conf:
        return take_conf(value, options);
    case exit_timeout:
        return take_seconds(value, options.exit_timeout_ns);
    case reopen:
        options.reopen = true;
        return {};
    case new_run:
        options.new_run = true;
        return {};
    case state_dir:
        setenv("MUSTER_STATE_DIR", value.c_str(), 1); // empty: nothing is kept
        return {};
    case node_rank:
        wrong = take_number(value, 0, (1 << 20) - 1, number);
        options.node_rank = number;
        return wrong;
    case master_addr:
        return take_text(value, options.master_address);
    case master_port:
        wrong = take_number(value, 1, 65535, number);
        options.master_port = static_cast<uint16_t>(number);
        return wrong;
    case local_addr:
        return take_text(value, options.local_address);
    case role:
        return take_text(value, options.role);
    case grace:
        return take_seconds(value, options.grace_ns);
    case log_dir:
        return take_text(value, options.log_dir);
    case redirects:
        return take_outputs(value, options.redirects);
    case tee:
        return take_outputs(value, options.tee);
    case no_prefix:
        options.no_prefix = true;
        return {};
    case no_guard:
        options.no_guard = true;
        return {};
    case secret_file:
        if (access(value.c_str(), R_OK) != 0) return value + ": " + strerror(errno);
        setenv("MUSTER_SECRET_FILE", value.c_str(), 1);
        return {};
    default:
        return take_level(value, options.log_level);
    }
}

// Where a node keeps its state unless another place is given; empty: nothing is kept.
std::string default_state_dir() {
    if (getenv("MUSTER_STATE_DIR") != nullptr) return {};
    const char *const state = getenv("XDG_STATE_HOME"), *const home = getenv("HOME");
    const bool own = state != nullptr && state[0] == '/';
    if (!own && (home == nullptr || home[0] != '/')) return {};
    const std::string base = own ? std::string(state) : std::string(home) + "/.local/state";
    std::error_code wrong;
    std::filesystem::create_directories(base, wrong);
    if (!wrong && access(base.c_str(), W_OK) == 0) return base + "/muster";
    fprintf(stderr, "muster run: %s cannot be written: a node that is killed and restarted will not find the others\n",
            base.c_str());
    return {};
}

// What is wrong with the options together.
std::string check_together(Options &options) {
    if (options.standalone && options.meets()) return "--standalone and --rdzv: which of them?";
    if (!options.meets() && options.most_nodes > 1)
        return "--nnodes " + std::to_string(options.most_nodes) + ": where do the nodes meet? --rdzv is missing";
    if ((options.redirects.any() || options.tee.any()) && options.log_dir.empty())
        return "--redirects or --tee: where do the files go? --log-dir is missing";
    if (const auto rank = rank_too_high(options))
        return "--redirects or --tee: there is no worker " + std::to_string(*rank) + ", --nproc-per-node is " +
               std::to_string(options.workers);
    if (!options.meets()) return {};
    if (options.run_id.empty()) return "--rdzv: how is the job named there? --run-id is missing";
    if (options.rdzv.starts_with("static:") && !options.node_rank) return "--rdzv static: --node-rank is missing";
    if (!options.rdzv.starts_with("tcp://")) return {};
    const bool secret = getenv("MUSTER_SECRET_FILE") != nullptr || getenv("MUSTER_SECRET") != nullptr;
    if (!secret && options.rdzv.find("auth=none") == options.rdzv.npos)
        return "--rdzv " + options.rdzv +
               ": no secret; --secret-file, MUSTER_SECRET_FILE or MUSTER_SECRET gives one, ?auth=none does without";
    options.state_dir = default_state_dir();
    if (options.rdzv.find("host=") == options.rdzv.npos)
        options.rdzv += options.rdzv.find('?') == options.rdzv.npos ? "?host=auto" : "&host=auto";
    return {};
}

// Options that torchrun has, and what is there instead.
std::string unknown(const std::string &word) {
    const size_t equals = word.find('=');
    const std::string name = word.substr(0, equals),
                      value = equals == word.npos ? "host:29400" : word.substr(equals + 1);
    if (name == "--monitor-interval")
        return name + " is not there: nothing is polled, failures are told as they happen";
    if (name == "--rdzv-endpoint") return name + " is not there: it is --rdzv tcp://" + value;
    if (name == "--rdzv-backend") return name + " is not there: the URL of --rdzv names the kind of store";
    return "no such option, or not one alone: " + word;
}

} // namespace

std::string read_options(const Arguments &arguments, Options &options) {
    std::vector<std::string> words{"muster"};
    for (const std::string &word : arguments) {
        words.push_back(word);
        // torchrun writes names of options either way. Behind the program's name everything is the program's.
        std::string &last = words.back();
        if (last.starts_with("--"))
            for (size_t i = 2; i < last.size() && last[i] != '='; i++)
                if (last[i] == '_') last[i] = '-';
    }
    std::vector<char *> pointers;
    for (std::string &word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    opterr = 0;
    optind = 1;
    const int count = static_cast<int>(words.size());
    for (int which, index = 0; (which = getopt_long(count, pointers.data(), "+:", known, &index)) != -1;) {
        const std::string before = words[static_cast<size_t>(optind) - 1];
        if (which == '?') return unknown(before);
        if (which == ':') return "what is it set to: " + before;
        const std::string why = take_option(which, optarg != nullptr ? optarg : "", options);
        if (!why.empty()) return "--" + std::string(known[index].name) + ": " + why;
    }
    options.program.assign(arguments.begin() + optind - 1, arguments.end());
    if (options.program.empty()) return "which program is it to run?";
    return check_together(options);
}

} // namespace run
