// SPDX-License-Identifier: MIT
// Runs the cases and prints them as TAP.
#include "transport_check/harness.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <unistd.h>

namespace check {

namespace {

// Names a case that hangs, and ends the program: nothing else could.
class Watchdog {
  public:
    explicit Watchdog(int64_t limit) : limit_(limit), thread_([this] { run(); }) {}
    ~Watchdog() {
        {
            const std::lock_guard hold(lock_);
            over_ = true;
        }
        changed_.notify_all();
        thread_.join();
    }
    void watch(const char *name) {
        const std::lock_guard hold(lock_);
        name_ = name;
        began_ = now_ns();
    }

  private:
    void run() {
        std::unique_lock hold(lock_);
        while (!over_) {
            changed_.wait_for(hold, std::chrono::milliseconds(200));
            if (name_ == nullptr || now_ns() - began_ < limit_) continue;
            printf("Bail out! \"%s\" still runs after %lld s\n", name_, static_cast<long long>(limit_ / second));
            fflush(stdout);
            _exit(3);
        }
    }
    const int64_t limit_;
    std::mutex lock_;
    std::condition_variable changed_;
    const char *name_ = nullptr;
    int64_t began_ = 0;
    bool over_ = false;
    std::thread thread_;
};

} // namespace

int run_all(const Options &options) {
    setvbuf(stdout, nullptr, _IOLBF, 0);
    const std::string secret = "the secret of the transport check";
    int count = 0, failed = 0, skipped = 0;
    printf("TAP version 13\n# transport-check %s, at most %llu bytes\n", options.address.c_str(),
           static_cast<unsigned long long>(options.max_bytes));
    try {
        Host host(options, secret);
        const std::string address = unique_address(options);
        const std::unique_ptr<Peer> peer = options.address.starts_with("inproc://")
                                               ? start_thread(host, address)
                                               : start_process(host, options, secret, address);
        printf("# the peer listens at %s\n", peer->address().c_str());
        World world{options, host, *peer, secret};
        Watchdog watchdog((options.long_cases ? 600 : 90) * second * options.slowdown);
        for (const std::vector<Case> *cases : {&byte_cases, &ending_cases, &peer_cases, &secret_cases}) {
            for (const Case &one : *cases) {
                if (!options.only.empty() && strstr(one.name, options.only.c_str()) == nullptr) continue;
                if (one.long_only && !options.long_cases) continue;
                watchdog.watch(one.name);
                const int64_t begin = now_ns();
                count++;
                try {
                    one.run(world);
                    printf("ok %d - %s # %lld ms\n", count, one.name, static_cast<long long>((now_ns() - begin) / ms));
                } catch (const Skipped &why) {
                    skipped++;
                    printf("ok %d - %s # SKIP %s\n", count, one.name, why.text.c_str());
                } catch (const Failed &why) {
                    failed++;
                    printf("not ok %d - %s\n  ---\n  message: %s\n  address: %s\n  ...\n", count, one.name,
                           why.text.c_str(), peer->address().c_str());
                }
            }
        }
        watchdog.watch("the end");
    } catch (const Failed &why) {
        printf("Bail out! %s\n", why.text.c_str());
        return 2;
    }
    printf("1..%d\n# %d passed, %d failed, %d skipped\n", count, count - failed - skipped, failed, skipped);
    return failed != 0;
}

} // namespace check
