// SPDX-License-Identifier: MIT
#include "run/options.hpp"

#include "arguments.hpp"
#include "run/torchrun.hpp"

#include <cstdlib>
#include <filesystem>
#include <map>
#include <sched.h>
#include <unistd.h>

namespace run {

namespace {

constexpr char help[] =
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
    "  --keep-alive <s>           a node without heartbeats for some times as long is dead; default 5\n"
    "  --keep-alive-attempts <n>  so many times; default 3\n"
    "  --rdzv-conf <key=value,..> as of torchrun: join_timeout, last_call_timeout, keep_alive_interval and\n"
    "                             keep_alive_max_attempt, which stand for the four above\n"
    "  --exit-timeout <s>         longest wait for nodes that are not done yet; default: no end\n"
    "  --reopen                   run again under a --run-id that is over\n"
    "  --publish-metrics <store>  publish what this command counts in that store, for muster top\n"
    "  --metrics-listen <host:port>  answer Prometheus at http://host:port/metrics, on the loopback interface\n"
    "  --metrics-token-file <file>   the token that its requests have; not readable by others\n"
    "  --state-dir <folder>       where this node keeps what it knows of the job while a node serves the store, so "
    "that a\n"
    "                             restarted node finds the others; default MUSTER_STATE_DIR, or muster in\n"
    "                             XDG_STATE_HOME or ~/.local/state; '' keeps nothing\n"
    "  --new-run                  forget what is kept there: no node of an earlier job of this name is left\n"
    "  --node-rank <n>            rank of this node: wanted; with static: given\n"
    "  --master-addr <host>, --master-port <n>   with static: and no store: the values for workers\n"
    "  --local-addr <host>        address of this host for the others\n"
    "  --role <name>              what these workers are; default `default`\n"
    "  --grace <s>                time between the signal that stops workers and SIGKILL; default 30\n"
    "  --log-dir <folder>         where files of the workers go\n"
    "  --redirects, -r <which>    outputs that go to files there: out, err, all or none (1, 2, 3, 0); default none;\n"
    "                             of some workers, by their local ranks: 0:out,1:err\n"
    "  --tee, -t <which>          outputs that go to files and are shown, too; likewise\n"
    "  --local-ranks-filter <n,..>  only the outputs of these workers are shown; files have those of all\n"
    "  --virtual-local-rank       LOCAL_RANK is 0 in each worker, and CUDA_VISIBLE_DEVICES names its own device\n"
    "  --no-prefix                no [role local_rank]: before the lines of several workers\n"
    "  --no-guard                 workers outlive this command when it is killed\n"
    "  --rdzv-backend <c10d|static|etcd|muster>, --rdzv-endpoint <host:port>   of torchrun, in place of --rdzv\n"
    "  --module, -m               the program is a module of Python; a file *.py that is no program is run by Python\n"
    "                             (PYTHON_EXEC, or python3), unless --no-python is given\n"
    "  --secret-file <file>       secret of the job, not readable by others; else MUSTER_SECRET_FILE, MUSTER_SECRET\n"
    "  --log <level>              error, warn (default), info or debug\n"
    "Exit status: that of the worker that failed first, 128 + n if it or this command was ended by signal n; 0: all\n"
    "succeeded; 1: another failure; 2: wrong arguments.\n";

constexpr uint32_t max_workers = 1024; // of a node
constexpr uint32_t max_nodes = 1 << 20;

std::string take_nodes(const std::string &text, Options &options) {
    const size_t colon = text.find(':');
    const auto min = cli::number_of(text.substr(0, colon), 1, max_nodes);
    const auto max = colon == text.npos ? min : cli::number_of(text.substr(colon + 1), 0, max_nodes);
    if (!min || !max) return text + " is neither a number of nodes nor min:max, as in 2:4";
    if (*min > *max) return text + ": min is above max";
    options.min_nodes = static_cast<uint32_t>(*min);
    options.max_nodes = static_cast<uint32_t>(*max);
    return {};
}

std::string take_workers(const std::string &text, uint32_t &workers) {
    if (text != "auto" && text != "cpu") return cli::number("", workers, 1, max_workers).set(text);
    cpu_set_t own;
    CPU_ZERO(&own);
    workers = sched_getaffinity(0, sizeof own, &own) == 0 ? static_cast<uint32_t>(CPU_COUNT(&own)) : 1;
    return {};
}

std::vector<std::string> parts_of(const std::string &text) { // separated by commas
    std::vector<std::string> parts;
    for (size_t from = 0, comma = 0; comma != text.npos; from = comma + 1) {
        comma = text.find(',', from);
        parts.push_back(text.substr(from, comma - from));
    }
    return parts;
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
    for (const std::string &part : parts_of(text)) {
        const size_t colon = part.find(':');
        const std::optional<uint64_t> rank = cli::number_of(part.substr(0, colon), 0, max_workers - 1);
        uint32_t bits = 0;
        if (colon == part.npos || !rank) return part + " is no rank:which, as in 0:out,1:err";
        if (std::string wrong = take_bits(part.substr(colon + 1), bits); !wrong.empty()) return wrong;
        if (!outputs.named.emplace(static_cast<uint32_t>(*rank), bits).second)
            return "worker " + std::to_string(*rank) + " twice";
    }
    return {};
}

std::string take_ranks(const std::string &text, std::vector<uint32_t> &ranks) {
    ranks.clear();
    for (const std::string &part : parts_of(text)) {
        const std::optional<uint64_t> rank = cli::number_of(part, 0, max_workers - 1);
        if (!rank) return part + " is no local rank; several are given as in 0,1,2";
        ranks.push_back(static_cast<uint32_t>(*rank));
    }
    return {};
}

// The first named rank for which there is no worker.
std::optional<uint32_t> rank_too_high(const Options &options) {
    for (const OutputChoice *const choice : {&options.redirects, &options.tee})
        for (const auto &[rank, bits] : choice->named)
            if (rank >= options.workers) return rank;
    return {};
}

// torchrun's settings of a rendezvous.
std::string take_conf(const std::string &text, Options &options) {
    int64_t unused_ns = 0;
    for (const std::string &part : parts_of(text)) {
        const size_t equals = part.find('=');
        if (equals == part.npos) return part + " is no key=value, as in join_timeout=60";
        const std::string key = part.substr(0, equals), value = part.substr(equals + 1);
        std::string wrong;
        if (key == "join_timeout" || key == "timeout")
            wrong = cli::seconds("", options.join_timeout_ns).set(value);
        else if (key == "last_call_timeout")
            wrong = cli::seconds("", options.last_call_ns).set(value);
        else if (key == "keep_alive_interval")
            wrong = cli::seconds("", options.keep_alive_ns).set(value);
        else if (key == "keep_alive_max_attempt")
            wrong = cli::number("", options.keep_alive_attempts, 1, 1000).set(value);
        else if (key == "close_timeout" || key == "heartbeat_timeout" || key == "read_timeout")
            wrong = cli::seconds("", unused_ns)
                        .set(value); // each bounds one request to the store: the keep-alive does so here
        else if (key == "is_host" || key == "store_type")
            wrong = "there is no such option: the URL of --rdzv determines the store";
        else if (key == "rank")
            wrong = "there is no such option: use --node-rank";
        else
            wrong = "there is no such key; known are join_timeout, last_call_timeout, keep_alive_interval, "
                    "keep_alive_max_attempt, and, bounded by the keep-alive, close_timeout, heartbeat_timeout and "
                    "read_timeout";
        if (!wrong.empty()) return key + ": " + wrong;
    }
    return {};
}

std::vector<cli::Option> known_options(Options &o) {
    return {
        {"nnodes", [&o](const std::string &text) { return take_nodes(text, o); }},
        {"nproc-per-node", [&o](const std::string &text) { return take_workers(text, o.workers); }},
        cli::text("rdzv", o.rdzv),
        cli::text("run-id", o.run_id),
        cli::text("rdzv-id", o.run_id),
        cli::flag("standalone", o.standalone),
        cli::number("max-restarts", o.max_restarts, 0, UINT32_MAX),
        cli::seconds("join-timeout", o.join_timeout_ns),
        cli::seconds("last-call", o.last_call_ns),
        cli::seconds("keep-alive", o.keep_alive_ns),
        cli::number("keep-alive-attempts", o.keep_alive_attempts, 1, 1000),
        {"rdzv-conf", [&o](const std::string &text) { return take_conf(text, o); }},
        cli::seconds("exit-timeout", o.exit_timeout_ns),
        cli::flag("reopen", o.reopen),
        {"state-dir", [](const std::string &text) { return setenv("MUSTER_STATE_DIR", text.c_str(), 1), ""; }},
        cli::flag("new-run", o.new_run),
        cli::number("node-rank", o.node_rank, 0, max_nodes - 1),
        cli::text("master-addr", o.master_address),
        cli::number("master-port", o.master_port, 1, 65535),
        cli::text("local-addr", o.local_address),
        cli::text("role", o.role),
        cli::seconds("grace", o.grace_ns),
        cli::text("log-dir", o.log_dir),
        cli::text("publish-metrics", o.metrics_store),
        {"redirects", [&o](const std::string &text) { return take_outputs(text, o.redirects); }, true, 'r'},
        {"tee", [&o](const std::string &text) { return take_outputs(text, o.tee); }, true, 't'},
        {"local-ranks-filter", [&o](const std::string &text) { return take_ranks(text, o.shown_ranks); }},
        cli::flag("virtual-local-rank", o.virtual_local_rank),
        cli::flag("no-prefix", o.no_prefix),
        cli::flag("no-guard", o.no_guard),
        cli::secret_file(),
        cli::log_level(o.log_level),
    };
}

// The default directory for the state of a node; empty: nothing is kept.
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

// The error of the combination of options.
std::string check_together(Options &options) {
    if (options.standalone && options.meets()) return "--standalone and --rdzv: which of them?";
    if (!options.meets() && options.max_nodes > 1)
        return "--nnodes " + std::to_string(options.max_nodes) + ": where do the nodes meet? --rdzv is missing";
    if ((options.redirects.any() || options.tee.any()) && options.log_dir.empty())
        return "--redirects or --tee: where do the files go? --log-dir is missing";
    if (const auto rank = rank_too_high(options))
        return "--redirects or --tee: there is no worker " + std::to_string(*rank) + ", --nproc-per-node is " +
               std::to_string(options.workers);
    for (const uint32_t rank : options.shown_ranks)
        if (rank >= options.workers)
            return "--local-ranks-filter: there is no worker " + std::to_string(rank) + ", --nproc-per-node is " +
                   std::to_string(options.workers);
    if (!options.meets()) return {};
    if (options.run_id.empty()) return "--rdzv: how is the job named there? --run-id is missing";
    if (options.rdzv.starts_with("static:") && !options.node_rank) return "--rdzv static: --node-rank is missing";
    if (!options.rdzv.starts_with("tcp://")) return {};
    if (!cli::has_secret() && options.rdzv.find("auth=none") == options.rdzv.npos)
        return "--rdzv " + options.rdzv +
               ": no secret; --secret-file, MUSTER_SECRET_FILE or MUSTER_SECRET gives one, ?auth=none does without";
    options.state_dir = default_state_dir();
    if (options.rdzv.find("host=") == options.rdzv.npos)
        options.rdzv += options.rdzv.find('?') == options.rdzv.npos ? "?host=auto" : "&host=auto";
    return {};
}

} // namespace

std::optional<int> read_options(const Arguments &arguments, Options &options) {
    const cli::Command command{"muster run", help, true};
    Torchrun torchrun;
    std::vector<cli::Option> known = options.scraping.options(known_options(options)), more = torchrun.options();
    known.insert(known.end(), more.begin(), more.end());
    std::string wrong = Torchrun::read_environment(known);
    if (!wrong.empty()) return cli::reject(command, wrong);
    if (const auto status = cli::read_options(command, arguments, known, options.program)) return status;
    wrong = options.program.empty() ? "which program is it to run?" : torchrun.apply(options);
    if (wrong.empty()) wrong = check_together(options);
    if (wrong.empty()) wrong = options.scraping.check();
    return wrong.empty() ? std::nullopt : std::optional(cli::reject(command, wrong));
}

} // namespace run
