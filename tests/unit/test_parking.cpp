// SPDX-License-Identifier: MIT
// ctest: quick timeout=120
// Every order in which threads can push, wait, look, poll, cancel and close, searched with the queue's own decisions
// (queue/parking.hpp) over a model of the rest: a lock, an edge on an epoll descriptor, a condition variable. No order
// may end with a thread asleep that has something to find out.
#include "queue/parking.hpp"

#include <array>
#include <csetjmp>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <unordered_set>
#include <vector>

extern "C" {
#include <cmocka.h>
}

using muster::Parking;

namespace {

// What a thread does, again and again. A step is what happens under one hold of the lock, or one system call.
enum Kind : uint8_t {
    pusher,    // pushes an entry, and signals if requested; so many times
    waiter,    // next(-1), so many times
    hasty,     // next() with a deadline that may pass at any moment, so many times
    impatient, // next(0), so many times
    poller,    // a host's loop: sleeps until the descriptor is readable, then next(0) until it says AGAIN
    canceller, // cancel(), once
    closer,    // close(), once
};

struct Thread {
    Kind kind = pusher;
    uint8_t left = 0; // rounds still to do
    uint8_t step = 0;
    bool harvested = false, timed_out = false;
    bool must_ring = false; // between unlocking and ringing
    bool signalled = false; // the condition variable woke it
    uint8_t cancels_seen = 0;
};

constexpr size_t most_threads = 5;

struct World {
    Parking parking;
    bool edge = false;
    uint8_t entries = 0;
    std::array<Thread, most_threads> threads;
    uint8_t count = 0;

    std::string key() const {
        std::string text;
        const auto add = [&](auto value) { text.push_back(static_cast<char>(value)); };
        add(parking.armed | parking.leader << 1 | parking.polled << 2 | parking.closed << 3 | edge << 4);
        add(parking.followers), add(parking.cancels), add(parking.leader_cancels), add(entries);
        for (size_t i = 0; i < count; i++) {
            const Thread &t = threads[i];
            add(t.left), add(t.step), add(t.harvested | t.must_ring << 1 | t.signalled << 2 | t.timed_out << 3),
                add(t.cancels_seen);
        }
        return text;
    }
};

enum Step : uint8_t {
    begin,   // enters next(): notes the cancels, looks for an entry
    again,   // has an edge, looks for an entry again
    looks,   // next(0): looks at the descriptor
    leads,   // waits on the descriptor
    led,     // did so
    follows, // waits on the condition variable
    polls,   // the host's poll()
    over,
};

struct Search {
    std::vector<World> queue;
    std::unordered_set<std::string> known;
    size_t lost = 0;
    std::string trace;

    void add(const World &world) {
        if (known.insert(world.key()).second) queue.push_back(world);
    }

    // One way on per thread that can move (more where the condition variable has a choice).
    void expand(const World &world) {
        bool moved = false;
        for (size_t i = 0; i < world.count; i++) moved |= advance(world, i);
        if (moved) return;
        for (size_t i = 0; i < world.count; i++) {
            const Thread &t = world.threads[i];
            if (t.step == over) continue;
            // Asleep for good. That is right only if there is nothing to find out.
            const bool cancelled = sleeps(t) && t.cancels_seen != world.parking.cancels;
            if (world.entries != 0 || world.parking.closed || cancelled) {
                if (lost++ == 0) trace = describe(world);
                return;
            }
        }
    }

    static std::string describe(const World &w) {
        char line[160];
        std::snprintf(line, sizeof line, "entries %d edge %d armed %d leader %d followers %u closed %d cancels %llu;",
                      w.entries, w.edge, w.parking.armed, w.parking.leader, w.parking.followers, w.parking.closed,
                      static_cast<unsigned long long>(w.parking.cancels));
        std::string text = line;
        for (size_t i = 0; i < w.count; i++) {
            std::snprintf(line, sizeof line, " kind %d step %d left %d;", w.threads[i].kind, w.threads[i].step,
                          w.threads[i].left);
            text += line;
        }
        return text;
    }

    static bool sleeps(const Thread &t) { return t.kind == waiter || t.kind == hasty; }

    static void finish_round(Thread &t) {
        t.harvested = t.timed_out = false;
        if (t.left > 0) t.left--;
        t.step = t.left == 0 ? over : begin;
    }

    // A thread leaves next(); the lock is held. The poller comes back at once if it took something.
    void leave(World w, size_t i, bool took, bool ends) {
        Thread &t = w.threads[i];
        const Parking::Leave wanted = w.parking.leave(w.entries != 0, t.harvested);
        if (ends) t.left = 1;
        if (t.kind == poller && took) t.left++; // rounds are counted by the poll()
        finish_round(t);
        if (t.kind == poller && !took && t.step == begin) t.step = polls;
        t.must_ring = wanted.signal;
        bool woke = false;
        for (size_t f = 0; f < w.count && wanted.wake_follower; f++) { // the condition variable wakes any of them
            if (w.threads[f].step != follows || w.threads[f].signalled) continue;
            World woken = w;
            woken.threads[f].signalled = true;
            add(woken);
            woke = true;
        }
        if (!woke) add(w);
    }

    // The loop of next(), from its top, lock held.
    void top(World w, size_t i) {
        Thread &t = w.threads[i];
        if (w.entries != 0) {
            w.entries--;
            return leave(w, i, true, false);
        }
        if (w.parking.closed) return leave(w, i, false, true);
        if (sleeps(t) && t.cancels_seen != w.parking.cancels) return leave(w, i, false, true);
        if (t.timed_out) return leave(w, i, false, false);
        if (!sleeps(t)) {
            t.step = looks;
        } else if (!w.parking.leader) {
            w.parking.lead(t.cancels_seen);
            t.step = leads;
        } else {
            // It signals with the lock held, but taking the edge needs no lock: as good as one step.
            if (w.parking.follow(w.entries != 0, t.harvested)) w.edge = true;
            t.harvested = t.signalled = false;
            t.step = follows;
        }
        add(w);
    }

    void signal_all(World &w) {
        for (size_t f = 0; f < w.count; f++)
            if (w.threads[f].step == follows) w.threads[f].signalled = true;
    }

    bool advance(const World &before, size_t i) {
        World w = before;
        Thread &t = w.threads[i];
        if (t.must_ring) {
            t.must_ring = false;
            w.edge = true;
            add(w);
            return true;
        }
        switch (t.step) {
        case over:
            return false;
        case polls:
            if (!w.edge) return false;
            t.step = begin;
            add(w);
            return true;
        case looks:
            t.step = w.edge ? again : led;
            t.harvested |= w.edge;
            w.edge = false;
            add(w);
            return true;
        case leads:
            if (!w.edge && t.kind != hasty) return false;
            if (w.edge && t.kind == hasty) { // the deadline may be first
                World late = w;
                late.threads[i].timed_out = true;
                late.threads[i].step = led;
                add(late);
            }
            t.timed_out = !w.edge;
            t.harvested |= w.edge;
            w.edge = false;
            t.step = led;
            add(w);
            return true;
        case led:
            if (sleeps(t)) {
                w.parking.lead_no_more();
                top(w, i);
            } else if (w.entries != 0) {
                top(w, i);
            } else { // AGAIN
                leave(w, i, false, false);
            }
            return true;
        case again:
            top(w, i);
            return true;
        case follows:
            if (!t.signalled && t.kind != hasty) return false;
            t.timed_out = t.kind == hasty; // a signal may come too late; then it is lost on this thread
            t.signalled = false;
            w.parking.follow_no_more();
            top(w, i);
            return true;
        default:
            break;
        }
        switch (t.kind) {
        case pusher:
            if (w.parking.closed) {
                t.step = over;
            } else {
                w.entries++;
                t.must_ring = w.parking.pushed();
                finish_round(t);
            }
            break;
        case canceller:
            w.parking.cancels++;
            t.must_ring = w.parking.leader;
            signal_all(w);
            finish_round(t);
            break;
        case closer:
            w.parking.closed = true;
            t.must_ring = true;
            signal_all(w);
            finish_round(t);
            break;
        default:
            t.cancels_seen = static_cast<uint8_t>(w.parking.cancels);
            if (w.edge) { // now and then a thread asks the descriptors before it looks for an entry
                World first = w;
                first.threads[i].step = again;
                first.threads[i].harvested = true;
                first.edge = false;
                add(first);
            }
            top(w, i);
            return true;
        }
        add(w);
        return true;
    }

    void run() {
        while (!queue.empty()) {
            const World world = queue.back();
            queue.pop_back();
            expand(world);
        }
    }
};

struct Role {
    Kind kind;
    uint8_t rounds;
};

// Searches all orders of these threads. Returns the number of states, 0 when an order loses a wake-up.
size_t search(const std::vector<Role> &roles) {
    World world;
    for (const Role &role : roles) {
        Thread &t = world.threads[world.count++];
        t.kind = role.kind;
        t.left = role.rounds;
        if (role.kind == poller) {
            world.parking.polled = true;
            t.step = polls;
        }
    }
    Search all;
    all.add(world);
    all.run();
    if (all.lost != 0) {
        std::fprintf(stderr, "%zu of %zu states lose a wake-up, for instance: %s\n", all.lost, all.known.size(),
                     all.trace.c_str());
        return 0;
    }
    if (std::getenv("SEARCH_VERBOSE")) std::printf("%zu states\n", all.known.size());
    return all.known.size();
}

} // namespace

static void test_waiters_find_all_that_is_pushed(void **) {
    const size_t states = search({{pusher, 3}, {waiter, 2}, {waiter, 2}, {pusher, 2}});
    assert_true(states > 100);
    const size_t three = search({{pusher, 3}, {waiter, 2}, {waiter, 2}, {waiter, 2}, {pusher, 2}});
    assert_true(three > 1000);
}

static void test_threads_that_only_look_take_nothing_from_waiters(void **) {
    const size_t states = search({{pusher, 3}, {waiter, 3}, {impatient, 3}, {waiter, 3}});
    assert_true(states > 100);
    const size_t more = search({{pusher, 3}, {waiter, 3}, {impatient, 3}, {impatient, 2}, {pusher, 2}});
    assert_true(more > 1000);
}

static void test_a_polling_host_finds_all_that_is_pushed(void **) {
    const size_t alone = search({{pusher, 3}, {pusher, 3}, {poller, 9}});
    assert_true(alone > 100);
    const size_t mixed = search({{pusher, 3}, {poller, 9}, {waiter, 2}, {pusher, 2}});
    assert_true(mixed > 100);
    const size_t looked = search({{pusher, 3}, {poller, 9}, {impatient, 2}, {impatient, 1}});
    assert_true(looked > 1000);
    const size_t all = search({{pusher, 2}, {poller, 9}, {waiter, 2}, {waiter, 2}, {impatient, 2}});
    assert_true(all > 1000);
}

static void test_deadlines_lose_nothing(void **) {
    const size_t states = search({{pusher, 3}, {waiter, 2}, {hasty, 3}, {hasty, 2}});
    assert_true(states > 1000);
    const size_t more = search({{pusher, 2}, {waiter, 3}, {waiter, 3}, {hasty, 2}, {impatient, 2}});
    assert_true(more > 1000);
    const size_t polled = search({{pusher, 3}, {poller, 9}, {hasty, 2}, {hasty, 2}});
    assert_true(polled > 1000);
}

static void test_cancel_reaches_every_waiter(void **) {
    const size_t states = search({{pusher, 2}, {waiter, 9}, {waiter, 9}, {canceller, 1}});
    assert_true(states > 100);
    const size_t with_others = search({{canceller, 1}, {waiter, 9}, {waiter, 9}, {impatient, 2}, {pusher, 2}});
    assert_true(with_others > 1000);
    const size_t twice = search({{canceller, 2}, {waiter, 9}, {waiter, 9}, {waiter, 9}, {pusher, 1}});
    assert_true(twice > 100);
}

static void test_close_reaches_everyone(void **) {
    const size_t states = search({{pusher, 2}, {waiter, 9}, {waiter, 9}, {impatient, 2}, {closer, 1}});
    assert_true(states > 1000);
    const size_t polled = search({{pusher, 2}, {waiter, 9}, {poller, 9}, {impatient, 2}, {closer, 1}});
    assert_true(polled > 1000);
}

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_waiters_find_all_that_is_pushed),
        cmocka_unit_test(test_threads_that_only_look_take_nothing_from_waiters),
        cmocka_unit_test(test_a_polling_host_finds_all_that_is_pushed),
        cmocka_unit_test(test_deadlines_lose_nothing),
        cmocka_unit_test(test_cancel_reaches_every_waiter),
        cmocka_unit_test(test_close_reaches_everyone),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
