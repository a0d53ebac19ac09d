// SPDX-License-Identifier: MIT
// ctest: quick timeout=120
// Many producers and consumers; wake functions coming and going; closing and releasing in the middle of it all.
#include "queue/queue.hpp"
#include "stress.hpp"

#include <muster/queue.h>
#include <poll.h>
#include <random>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

using namespace muster;

namespace {

constexpr int64_t us = 1000;

Ref<Queue> make_queue(Context &context, uint32_t capacity) {
    auto made = Queue::create(context, capacity);
    STRESS_CHECK(made);
    return std::move(*made);
}

struct Watched final : Object, Source {
    Watched() : fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) { STRESS_CHECK(fd >= 0); }
    ~Watched() override { close(fd); }
    uint32_t on_fd(uint32_t) noexcept override { return 1; }
    Object &owner() noexcept override { return *this; }
    int fd;
};

// What consumers count. Each takes in another way.
struct Tally {
    std::atomic<uint64_t> taken{0}, sum{0}, ready{0};
    std::atomic<bool> stop{false};

    bool note(Status status, const muster_completion &out) {
        STRESS_CHECK(status == MUSTER_OK || status == MUSTER_AGAIN || status == MUSTER_TIMEOUT ||
                     status == MUSTER_E_CANCELED || status == MUSTER_E_CLOSED);
        if (status != MUSTER_OK) return false;
        if (out.kind == MUSTER_EVENT_READY) {
            ready++;
        } else {
            sum += out.bytes;
            taken++; // last: the end is seen by it
        }
        return true;
    }
};

void take_by_waiting(Queue &queue, Tally &tally, int64_t timeout_ns) {
    while (!tally.stop) {
        muster_completion out;
        Deadline deadline(timeout_ns);
        tally.note(queue.next(deadline, &out, nullptr), out);
    }
}

// As a host's loop does: only the descriptor is waited on, and the queue is drained each time.
void take_by_polling(Queue &queue, Tally &tally) {
    const int fd = *queue.host_fd();
    while (!tally.stop) {
        pollfd one{fd, POLLIN, 0};
        poll(&one, 1, 200);
        muster_completion out;
        for (Status status = MUSTER_OK; status == MUSTER_OK;) {
            Deadline once(0);
            status = queue.next(once, &out, nullptr);
            tally.note(status, out);
        }
    }
    close(fd);
}

enum Takers : unsigned { waiting = 1, impatient = 2, polling = 4 };

// Every posted entry is taken once, by any thread; no wake-up is lost, or the watchdog reports it.
void producers_and_consumers(uint32_t flags, unsigned takers) {
    stress::Watchdog dog("producers_and_consumers");
    Ref<Context> context = stress::make_context(flags);
    Ref<Queue> queue = make_queue(*context, 64);
    Tally tally;
    std::vector<std::thread> consumers, producers;
    for (int i = 0; i < 2; i++) {
        if (takers & waiting) consumers.emplace_back([&] { take_by_waiting(*queue, tally, -1); });
        if (takers & impatient) consumers.emplace_back([&, i] { take_by_waiting(*queue, tally, i * 50 * us); });
        if (takers & polling) consumers.emplace_back([&] { take_by_polling(*queue, tally); });
    }
    const stress::Clock clock(0.15);
    std::atomic<uint64_t> posted{0}, sum{0};
    for (int p = 0; p < 3; p++)
        producers.emplace_back([&, p] {
            std::minstd_rand random(static_cast<unsigned>(p + 1));
            while (clock.running()) {
                const uint64_t value = random() % 1000;
                Entry entry;
                entry.completion.kind = MUSTER_DONE_USER;
                entry.completion.bytes = value;
                bool put;
                if (p == 0) { // as an operation does
                    put = queue->reserve();
                    if (put) queue->complete(std::move(entry));
                } else if (p == 1) { // from the loop
                    put = context->post([&queue, &posted, &sum, value] {
                        Entry late;
                        late.completion.kind = MUSTER_DONE_USER;
                        late.completion.bytes = value;
                        if (!queue->try_post(std::move(late))) return;
                        sum += value;
                        posted++;
                    });
                    std::this_thread::sleep_for(std::chrono::microseconds(random() % 100));
                    continue;
                } else {
                    put = queue->try_post(std::move(entry));
                }
                if (put) {
                    sum += value;
                    posted++;
                    if (value < 20)
                        std::this_thread::sleep_for(std::chrono::microseconds(value * 10)); // let them sleep
                } else {
                    std::this_thread::yield();
                }
            }
        });
    for (auto &producer : producers) producer.join();
    std::atomic<bool> drained{false};
    context->post([&] { drained = true; });
    while (!drained || tally.taken != posted) {
        if (drained && tally.taken > posted) STRESS_CHECK(!"an entry was taken twice");
        std::this_thread::yield();
        if (tally.taken == posted) dog.beat();
        if (context->external()) {
            Deadline once(0);
            context->progress(once);
        }
    }
    STRESS_CHECK(tally.sum == sum);
    tally.stop = true;
    queue->close();
    for (auto &consumer : consumers) consumer.join();
}

// Sources and their descriptors come and go while edges are taken.
void sources_come_and_go(uint32_t flags) {
    stress::Watchdog dog("sources_come_and_go");
    Ref<Context> context = stress::make_context(flags);
    Ref<Queue> queue = make_queue(*context, 64);
    Tally tally;
    std::vector<std::thread> threads;
    threads.emplace_back([&] { take_by_waiting(*queue, tally, -1); });
    threads.emplace_back([&] { take_by_waiting(*queue, tally, 0); });
    const stress::Clock clock(0.15);
    for (int t = 0; t < 2; t++)
        threads.emplace_back([&] {
            while (clock.running()) {
                auto watched = make_ref<Watched>();
                queue->attach(*watched, 1);
                STRESS_CHECK(queue->add_fd(*watched, watched->fd, EPOLLIN));
                const uint64_t before = tally.ready, one = 1;
                STRESS_CHECK(write(watched->fd, &one, sizeof one) == sizeof one);
                if (before % 3 == 0) // sometimes the event is waited for
                    while (tally.ready == before) std::this_thread::yield();
                queue->raise(*watched, 2);
                queue->modify_fd(*watched, watched->fd, EPOLLIN);
                if (before % 2) queue->remove_fd(*watched, watched->fd);
                queue->detach(*watched);
                dog.beat();
            }
        });
    threads[2].join();
    threads[3].join();
    tally.stop = true;
    queue->close();
    threads[0].join();
    threads[1].join();
}

// A host's wake function whose user data is freed as soon as it is detached.
struct Sleeper {
    std::atomic<int> inside{0};
    std::atomic<bool> alive{true};
    std::vector<int> data = std::vector<int>(16, 1); // freed with it: a late call is seen by the sanitizers
};

int wake(void *user) {
    auto &sleeper = *static_cast<Sleeper *>(user);
    sleeper.inside++;
    STRESS_CHECK(sleeper.alive);
    int sum = 0;
    for (int &value : sleeper.data) sum += value;
    STRESS_CHECK(sum == 16);
    sleeper.inside--;
    return 0;
}

void wake_functions_come_and_go() {
    stress::Watchdog dog("wake_functions_come_and_go");
    Ref<Context> context = stress::make_context(0);
    Ref<Queue> queue = make_queue(*context, 1024);
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; t++)
        threads.emplace_back([&] {
            while (!stop) {
                if (!queue->try_post({})) std::this_thread::yield();
            }
        });
    threads.emplace_back([&] {
        muster_completion out;
        while (!stop) {
            Deadline once(0);
            queue->next(once, &out, nullptr);
        }
    });
    int rounds = 0;
    for (const stress::Clock clock(0.3); clock.running(); rounds++) {
        auto sleeper = std::make_unique<Sleeper>();
        STRESS_CHECK(queue->set_wake(wake, sleeper.get()) == MUSTER_OK);
        if (rounds % 4 == 0) std::this_thread::yield();
        auto second = std::make_unique<Sleeper>();
        if (rounds % 3 == 0) {
            STRESS_CHECK(queue->set_wake(wake, second.get()) == MUSTER_OK);
            sleeper->alive = false; // replaced: no call of it any more
            STRESS_CHECK(sleeper->inside == 0);
            sleeper.reset();
        }
        STRESS_CHECK(queue->set_wake(nullptr, nullptr) == MUSTER_OK);
        for (auto *one : {sleeper.get(), second.get()})
            if (one) {
                one->alive = false;
                STRESS_CHECK(one->inside == 0);
            }
        dog.beat();
    }
    stop = true;
    for (auto &thread : threads) thread.join();
}

// Closing and releasing while others wait, post and cancel; also the context may go first.
void ends_race_with_everything(uint32_t flags) {
    stress::Watchdog dog("ends_race_with_everything");
    int round = 0;
    for (const stress::Clock clock(0.2); clock.running(); round++, dog.beat()) {
        Ref<Context> context = stress::make_context(flags);
        Ref<Queue> queue = make_queue(*context, 16);
        Tally tally;
        std::vector<std::thread> threads;
        for (int t = 0; t < 2; t++)
            threads.emplace_back([&, mine = queue] {
                Status status;
                do {
                    muster_completion out;
                    Deadline endless(-1);
                    status = mine->next(endless, &out, nullptr);
                    tally.note(status, out);
                } while (status != MUSTER_E_CLOSED);
            });
        threads.emplace_back([mine = queue] {
            while (!mine->closed()) {
                mine->try_post({});
                mine->cancel();
            }
        });
        threads.emplace_back([mine = queue, context] {
            while (!mine->closed()) {
                if (mine->set_wake([](void *) { return 0; }, nullptr) == MUSTER_OK) context->post([] {});
                std::this_thread::yield();
            }
        });
        if (round % 2) {
            Deadline now(0);
            context->close(now);
        }
        context.reset();
        queue->close();
        queue.reset();
        for (auto &thread : threads) thread.join();
    }
}

} // namespace

int main() {
    for (const uint32_t flags : {0u, uint32_t{MUSTER_CONTEXT_EXTERNAL}}) {
        for (const unsigned takers : {waiting + 0u, polling + 0u, waiting | polling, waiting | impatient | polling})
            producers_and_consumers(flags, takers);
        sources_come_and_go(flags);
        ends_race_with_everything(flags);
    }
    wake_functions_come_and_go();
}
