// SPDX-License-Identifier: MIT
// ctest: quick timeout=60
// Posting, sleeping and ending, all at once.
#include "stress.hpp"

using namespace muster;

namespace {

struct Counts {
    std::atomic<long> made{0}, destroyed{0}, done{0}, accepted{0};
};

// A task that checks that those of its poster arrive in order.
struct Numbered final : Task {
    Numbered(Counts &counts, int &last, int number) : counts(counts), last(last), number(number) { counts.made++; }
    ~Numbered() override { counts.destroyed++; }
    void run() noexcept override {
        STRESS_CHECK(last + 1 == number);
        last = number;
        counts.done++;
    }
    Counts &counts;
    int &last; // loop thread only
    int number;
};

// None is lost, none comes twice; those refused at the end are destroyed all the same.
void posts_race_with_the_end(uint32_t flags) {
    stress::Watchdog dog("posts_race_with_the_end");
    for (const stress::Clock clock(0.25); clock.running(); dog.beat()) {
        constexpr int posters = 3;
        Counts counts;
        int last[posters] = {};
        {
            Ref<Context> context = stress::make_context(flags);
            std::vector<std::thread> threads;
            for (int p = 0; p < posters; p++)
                threads.emplace_back([&, p] {
                    for (int n = 1; context->post(std::make_unique<Numbered>(counts, last[p], n)); n++) {
                        counts.accepted++;
                        while (counts.accepted - counts.done > 10000 && !context->closed()) std::this_thread::yield();
                    }
                });
            std::thread closer([&] {
                while (counts.done < 100) {
                    Deadline once(0);
                    if (context->external()) context->progress(once);
                    std::this_thread::yield();
                }
                Deadline endless(-1);
                STRESS_CHECK(context->close(endless) == MUSTER_OK);
            });
            closer.join();
            for (auto &thread : threads) thread.join();
        }
        STRESS_CHECK(counts.done == counts.accepted);
        STRESS_CHECK(counts.made == counts.destroyed);
        STRESS_CHECK(counts.made == counts.accepted + posters); // each found the end with one more
    }
}

// The last reference goes anywhere: on a poster's thread, or in a task on the loop.
void references_go_anywhere(uint32_t flags) {
    stress::Watchdog dog("references_go_anywhere");
    for (const stress::Clock clock(0.25); clock.running(); dog.beat()) {
        Ref<Context> context = stress::make_context(flags);
        std::vector<std::thread> threads;
        for (int t = 0; t < 3; t++)
            threads.emplace_back([held = context, t]() mutable {
                Context &raw = *held;
                if (t == 0 && !raw.external())
                    raw.post([mine = std::move(held)]() mutable { mine.reset(); });
                else
                    raw.post([] {});
                held.reset();
            });
        context.reset();
        for (auto &thread : threads) thread.join();
    }
}

// Sleepers and notifiers of several signals; in an external context they also share the driving.
void sleepers_and_notifiers(uint32_t flags) {
    stress::Watchdog dog("sleepers_and_notifiers");
    Ref<Context> context = stress::make_context(flags);
    constexpr int signals = 2, sleepers = 2;
    Signal signal[signals];
    std::atomic<uint64_t> value[signals] = {};
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (int s = 0; s < signals; s++)
        for (int t = 0; t < sleepers; t++)
            threads.emplace_back([&, s, t] {
                uint64_t reached = 0;
                while (!stop) {
                    const uint32_t seen = signal[s].seen();
                    const uint64_t now = value[s];
                    if (now != reached) {
                        reached = now;
                        dog.beat();
                        continue;
                    }
                    Deadline endless(-1), soon(100'000);
                    const Status status = context->sleep(signal[s], seen, t == 0 ? endless : soon);
                    STRESS_CHECK(status == MUSTER_OK || status == MUSTER_TIMEOUT);
                }
            });
    for (const stress::Clock clock(0.5); clock.running();)
        for (int s = 0; s < signals; s++) {
            value[s]++;
            if (value[s] % 2)
                context->notify(signal[s]);
            else
                context->post([&, s] { context->notify(signal[s]); }); // only the engine can end this one
        }
    stop = true;
    for (Signal &one : signal) context->notify(one);
    for (auto &thread : threads) thread.join();
    Deadline endless(-1);
    context->close(endless);
}

} // namespace

int main() {
    for (const uint32_t flags : {0u, uint32_t{MUSTER_CONTEXT_EXTERNAL}}) {
        posts_race_with_the_end(flags);
        references_go_anywhere(flags);
        sleepers_and_notifiers(flags);
    }
}
