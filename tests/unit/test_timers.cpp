// SPDX-License-Identifier: MIT
// What hubs are built of: timers come in order, whatever was started, moved and stopped in between; lists can be walked
// while they change.
// ctest: quick timeout=60
#include "base/list.hpp"
#include "base/object.hpp"
#include "context/timers.hpp"

#include <csetjmp>
#include <cstdarg>
#include <random>
#include <set>
#include <vector>

extern "C" {
#include <cmocka.h>
}

using namespace muster;

namespace {

struct Clock {
    Timers timers;
    std::vector<int64_t> rung;
    int alive = 0;
};

class Alarm final : public Object {
  public:
    explicit Alarm(Clock &clock) noexcept : clock_(clock) { clock_.alive++; }
    void start(int64_t at) noexcept {
        at_ = at;
        clock_.timers.start(timer_, at);
    }
    void stop() noexcept { clock_.timers.stop(timer_); }
    bool running() const noexcept { return timer_.running(); }
    int64_t at() const noexcept { return at_; }
    int64_t again = 0; // rings once more, so much later

  private:
    ~Alarm() override { clock_.alive--; }
    void ring() noexcept {
        clock_.rung.push_back(at_);
        if (again != 0) start(at_ + std::exchange(again, 0));
    }
    Clock &clock_;
    int64_t at_ = 0;
    Timer<Alarm, &Alarm::ring> timer_{*this};
};

// Starts, moves and stops at random; what rings must be what a sorted list says.
bool keeps_order(uint32_t seed) {
    Clock clock;
    std::mt19937 random(seed);
    std::vector<Ref<Alarm>> alarms;
    for (int i = 0; i < 64; i++) alarms.push_back(make_ref<Alarm>(clock));
    std::multiset<int64_t> expected;
    int64_t now = 0;
    bool right = true;
    for (int step = 0; step < 4000; step++) {
        Alarm &alarm = *alarms[random() % alarms.size()];
        if (alarm.running()) expected.erase(expected.find(alarm.at()));
        if (random() % 4 == 0) {
            alarm.stop();
        } else {
            alarm.start(now + 1 + static_cast<int64_t>(random() % 200));
            expected.insert(alarm.at());
        }
        right = right && clock.timers.empty() == expected.empty();
        right = right && (expected.empty() || clock.timers.next_ns() == *expected.begin());
        if (random() % 8 != 0) continue;
        now += static_cast<int64_t>(random() % 60);
        clock.rung.clear();
        clock.timers.serve(now);
        std::vector<int64_t> due(expected.begin(), expected.upper_bound(now));
        expected.erase(expected.begin(), expected.upper_bound(now));
        right = right && clock.rung == due;
    }
    clock.timers.stop_all();
    alarms.clear();
    return right && clock.timers.empty() && clock.alive == 0;
}

} // namespace

static void test_timers_ring_in_order(void **) {
    bool right = true;
    for (uint32_t seed = 1; seed <= 20; seed++) right = keeps_order(seed) && right;
    assert_true(right);
}

static void test_a_running_timer_keeps_its_object(void **) {
    int while_running, after_ringing, after_stopping;
    std::vector<int64_t> rung;
    {
        Clock clock;
        auto alarm = make_ref<Alarm>(clock);
        alarm->again = 5;
        alarm->start(10);
        alarm.reset();
        while_running = clock.alive;
        clock.timers.serve(20); // both times
        after_ringing = clock.alive;
        make_ref<Alarm>(clock)->start(30);
        clock.timers.stop_all();
        after_stopping = clock.alive;
        rung = clock.rung;
    }
    assert_int_equal(while_running, 1);
    assert_int_equal(after_ringing, 0);
    assert_int_equal(after_stopping, 0);
    assert_true((rung == std::vector<int64_t>{10, 15}));
}

static void test_a_walk_goes_on_whoever_leaves_meanwhile(void **) {
    struct Item : Listed<Item> {};
    bool right = true;
    for (size_t leaver = 0; leaver < 5; leaver++)
        for (size_t when = 0; when < 5; when++) {
            Item items[5];
            List<Item> list;
            for (Item &item : items) list.push_back(item);
            std::set<Item *> seen;
            size_t step = 0;
            for (Item *item = list.begin_walk(); item != nullptr; item = list.next()) {
                seen.insert(item);
                if (step++ == when) list.remove(items[leaver]);
            }
            for (Item &item : items)
                right = right && (seen.count(&item) == 1 || (&item == &items[leaver] && leaver > when));
            right = right && !list.holds(items[leaver]) && seen.size() == (leaver > when ? 4u : 5u);
        }
    assert_true(right);
}

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_timers_ring_in_order),
        cmocka_unit_test(test_a_running_timer_keeps_its_object),
        cmocka_unit_test(test_a_walk_goes_on_whoever_leaves_meanwhile),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
