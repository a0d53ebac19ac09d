// SPDX-License-Identifier: MIT
// muster store-check: the conformance suite for stores.
#include "arguments.hpp"
#include "store_check/harness.hpp"

#include <muster/store_server.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <unistd.h>

namespace {

constexpr char help[] =
    "usage: muster store-check [options] <url>\n"
    "\n"
    "Runs the conformance suite over a store, and prints TAP lines. What the store says it cannot do is skipped, and\n"
    "has to be refused. Status 0: every promise was kept, 1: one was not, 2: it could not begin.\n"
    "\n"
    "  <url>            the store; each @ in it becomes a name of this run: memory:@, etcd://127.0.0.1:2379/@,\n"
    "                   file:///@ (a file in TMPDIR),\n"
    "                   relay:<url> (a store that this program serves itself, on top of another)\n"
    "  --serve          starts a server at the URL first, in a context of its own: tcp://127.0.0.1:0, unix:///@\n"
    "  --plugin <file>  loads a plug-in first; found by name otherwise, in MUSTER_PLUGIN_PATH\n"
    "  --only <text>    the cases whose name contains it\n"
    "  --pulled         relay: pull the requests instead of dispatching them\n"
    "  --time-scale <n>   every time is n times as long, for slow machines and instrumented builds\n"
    "  --list           the names of the cases\n";

struct Tier {
    const char *name;
    const std::vector<store_check::Case> &cases;
};
const Tier tiers[] = {
    {"keys", store_check::key_cases},    {"transactions", store_check::transaction_cases},
    {"waits", store_check::wait_cases},  {"queues", store_check::queue_cases},
    {"watch", store_check::watch_cases}, {"lease", store_check::lease_cases},
    {"meet", store_check::meet_cases},
};

struct Counts {
    int all = 0, failed = 0, skipped = 0;
};

void run(const Tier &tier, const store_check::Case &one, muster_context *context, muster_store *store,
         const std::string &prefix, Counts &counts) {
    const std::string name = std::string(tier.name) + ": " + one.name;
    const int64_t begin = check::now_ns();
    counts.all++;
    try {
        const store_check::Place place(context, store, prefix + std::to_string(counts.all) + "/");
        one.run(place);
        printf("ok %d - %s # %lld ms\n", counts.all, name.c_str(),
               static_cast<long long>((check::now_ns() - begin) / check::ms));
    } catch (const check::Skipped &why) {
        counts.skipped++;
        printf("ok %d - %s # SKIP %s\n", counts.all, name.c_str(), why.text.c_str());
    } catch (const check::Failed &why) {
        counts.failed++;
        printf("not ok %d - %s\n  ---\n  message: %s\n  ...\n", counts.all, name.c_str(), why.text.c_str());
    }
}

// A server that other processes could use as well, and where it is.
class Server {
  public:
    Server(const std::string &url, std::string &where) {
        muster_context_config config{};
        config.struct_size = sizeof config;
        config.secret = secret;
        config.secret_bytes = sizeof secret - 1;
        muster_error error{};
        check::expect(muster_context_create(&config, &context_, &error), MUSTER_OK, "context", &error);
        check::expect(muster_store_server_open(context_, url.data(), url.size(), nullptr, &server_, &error), MUSTER_OK,
                      "the server", &error);
        char text[4200];
        size_t size = 0;
        check::expect(muster_store_server_address(server_, text, sizeof text, &size), MUSTER_OK, "its address");
        where.assign(text, size);
    }
    ~Server() {
        muster_store_server_close(server_, check::second);
        muster_store_server_release(server_);
        muster_context_close(context_, check::second);
        muster_context_release(context_);
    }
    Server(const Server &) = delete;
    Server &operator=(const Server &) = delete;
    static constexpr char secret[] = "the secret of the store check";

  private:
    muster_context *context_ = nullptr;
    muster_store_server *server_ = nullptr;
};

struct Wanted {
    std::string url, plugin, only;
    bool pulled = false, serve = false;
};

// The stores at the path of this run are deleted with the run, however it ends.
struct Leftovers {
    std::string path;
    ~Leftovers() {
        std::error_code ignored;
        std::filesystem::remove_all(path, ignored);
        std::filesystem::remove(path + ".new", ignored);
    }
};

int run_all(const Wanted &wanted) {
    setvbuf(stdout, nullptr, _IOLBF, 0);
    const std::string run_name = "check-" + std::to_string(getpid()) + "-" + std::to_string(time(nullptr));
    // A path is one in TMPDIR.
    const char *const tmp = getenv("TMPDIR");
    const std::string path = (tmp != nullptr ? tmp : "/tmp") + ("/" + run_name);
    std::string own = wanted.url;
    if (const size_t at = own.find(":///@"); at != std::string::npos) own.replace(at + 3, 2, path);
    for (size_t at = own.find('@'); at != std::string::npos; at = own.find('@', at)) own.replace(at, 1, run_name);
    const Leftovers leftovers{path};
    printf("TAP version 13\n# store-check %s\n", own.c_str());
    muster_context *context = nullptr;
    muster_store *store = nullptr;
    muster_error error{};
    Counts counts;
    try {
        muster_context_config config{};
        config.struct_size = sizeof config;
        std::unique_ptr<Server> server;
        if (wanted.serve) {
            server = std::make_unique<Server>(own, own);
            config.secret = Server::secret;
            config.secret_bytes = sizeof Server::secret - 1;
        }
        check::expect(muster_context_create(&config, &context, &error), MUSTER_OK, "context", &error);
        if (!wanted.plugin.empty())
            check::expect(muster_plugin_load(context, wanted.plugin.data(), wanted.plugin.size(), &error), MUSTER_OK,
                          "loading the plug-in", &error);
        std::unique_ptr<store_check::Relay> relay;
        if (own.starts_with("relay:")) relay = std::make_unique<store_check::Relay>(context, wanted.pulled);
        muster_store_config opening{};
        opening.struct_size = sizeof opening;
        opening.grace_ns = check::time_limit; // for the same statuses on a busy machine
        check::expect(muster_store_open(context, own.data(), own.size(), &opening, check::time_limit, &store, &error),
                      MUSTER_OK, "opening the store", &error);
        for (const Tier &tier : tiers)
            for (const store_check::Case &one : tier.cases)
                if (std::string(one.name).find(wanted.only) != std::string::npos)
                    run(tier, one, context, store, run_name + "/", counts);
        muster_store_release(store);
        check::expect(muster_context_close(context, check::time_limit), MUSTER_OK, "closing the context");
        relay.reset();
        muster_context_release(context);
    } catch (const check::Failed &why) {
        printf("Bail out! %s\n", why.text.c_str());
        return 2;
    }
    printf("1..%d\n# %d passed, %d failed, %d skipped\n", counts.all, counts.all - counts.failed - counts.skipped,
           counts.failed, counts.skipped);
    return counts.failed != 0;
}

int list() {
    for (const Tier &tier : tiers)
        for (const store_check::Case &one : tier.cases) printf("%s: %s\n", tier.name, one.name);
    return 0;
}

} // namespace

int store_check_command(const Arguments &arguments) {
    const cli::Command command{"muster store-check", help};
    Wanted wanted;
    bool lists = false;
    int64_t slowdown = 1;
    std::vector<std::string> words;
    const auto status =
        cli::read_options(command, arguments,
                          {cli::flag("list", lists), cli::flag("pulled", wanted.pulled),
                           cli::flag("serve", wanted.serve), cli::text("plugin", wanted.plugin),
                           cli::text("only", wanted.only), cli::number("time-scale", slowdown, 1, 1000)},
                          words);
    if (status) return *status;
    if (lists) return list();
    if (words.size() != 1)
        return cli::reject(command,
                           words.empty() ? "the URL of a store is missing" : "unexpected argument " + words[1]);
    check::time_limit *= slowdown;
    wanted.url = words[0];
    return run_all(wanted);
}
