// SPDX-License-Identifier: MIT
// The machine of a worker in random schedules: launches, connections, hellos, deaths, removals, kills, lost sights and
// time-outs in any order, also impossible ones. Always: each end is reported once and is the last action, nothing is
// reported twice or after a later stage, a launch ends once, what is sent has a link, no link is left, and a kill
// precedes the close of the link. A schedule that shows a fault is made shorter until every step of it is needed.
// ctest: quick timeout=120
#include "cluster/lifecycle/worker_machine.hpp"
#include "schedules.hpp"

#include <csetjmp>
#include <cstdarg>
#include <cstdio>
#include <random>
#include <vector>

extern "C" {
#include <cmocka.h>
}

using namespace muster;
using namespace muster::test;

namespace {

using State = WorkerMachine::State;
constexpr int64_t ms = 1'000'000, second = 1'000'000'000;

enum class Step : uint8_t {
    launched,
    failed,
    connected,
    connect_failed,
    hello,
    leave_announced,
    link_lost,
    process_ended,
    exit_is_unseen,
    remove,
    remove_at_once,
    kill_done,
    kill_failed,
    wait,
    context_over
};
constexpr const char *step_names[] = {
    "launched",        "failed",    "connected",     "connect_failed", "hello",
    "leave_announced", "link_lost", "process_ended", "exit_is_unseen", "remove",
    "remove_at_once",  "kill_done", "kill_failed",   "wait",           "context_over"};
constexpr int step_count = sizeof step_names / sizeof *step_names;

struct Event {
    Step step;
    int64_t time_ns; // that passes before it
};
struct Schedule {
    WorkerMachine::Settings settings;
    std::vector<Event> events;
};

// The world of one worker: its manager, its process, its link, and the host.
class World {
  public:
    explicit World(const WorkerMachine::Settings &settings) : settings_(settings), machine_(settings, now_) {}

    void run(const std::vector<Event> &events) {
        for (const Event &event : events) {
            pass(event.time_ns);
            happen(event.step);
        }
        come_to_an_end();
    }
    bool has_joined() const { return has_joined_; }

  private:
    [[noreturn]] void wrong(const std::string &what) const { throw Broken(what); }
    void check(bool holds, const char *what) const {
        if (!holds) wrong(what);
    }

    // Time passes; the machine is woken when it wants to be.
    void pass(int64_t time_ns) {
        const int64_t until = now_ + time_ns;
        while (!is_over_ && machine_.wake_at_ns() <= until) {
            now_ = std::max(now_, machine_.wake_at_ns());
            machine_.wake(now_);
            act();
        }
        now_ = until;
    }

    // What is impossible in this world is not done: the master does not receive on a link that is closed, nor is it
    // answered what it has not asked. All else may come at any time.
    void happen(Step step) {
        const Error why = Error::make(MUSTER_E_PEER, "broken");
        switch (step) {
        case Step::launched:
            if (std::exchange(manager_has_reported_, true) || is_launch_over_) return;
            machine_.launched();
            break;
        case Step::failed:
            if (manager_has_reported_) return;
            manager_has_reported_ = true;
            machine_.failed(Error::make(MUSTER_E_SYSTEM, "no"));
            break;
        case Step::connected:
            if (!machine_.awaits_link()) return; // the master refuses it
            has_link_ = true;
            machine_.connected();
            break;
        case Step::connect_failed:
            if (!is_dialled_) return;
            is_dialled_ = false;
            machine_.connect_failed(why, now_);
            break;
        case Step::hello:
            if (!has_link_) return;
            machine_.hello();
            break;
        case Step::leave_announced:
            if (!has_link_) return;
            machine_.leave_announced();
            break;
        case Step::link_lost:
            if (!has_link_) return;
            machine_.link_lost(why, now_);
            break;
        case Step::process_ended:
            machine_.process_ended("exit code 0", now_);
            break;
        case Step::exit_is_unseen:
            machine_.exit_is_unseen();
            break;
        case Step::remove:
            was_removed_ = true;
            machine_.remove(second, now_);
            break;
        case Step::remove_at_once:
            was_removed_ = true;
            machine_.remove(0, now_);
            break;
        case Step::kill_done:
        case Step::kill_failed:
            if (!std::exchange(is_kill_asked_, false)) return;
            step == Step::kill_done ? machine_.kill_done() : machine_.kill_failed(why);
            break;
        case Step::context_over:
            machine_.context_over(Error::make(MUSTER_E_CLOSED, "closed"));
            check(machine_.state() == State::gone, "it goes on in a context that is over");
            break;
        case Step::wait:
            break;
        }
        act();
    }

    void act() {
        while (machine_.has_action()) {
            check(!is_over_, "an action follows the end");
            const WorkerAction action = machine_.next_action();
            switch (action.kind) {
            case WorkerAction::report:
                check(action.event == MUSTER_CLUSTER_LAUNCHED || action.event == MUSTER_CLUSTER_CONNECTED,
                      "an event that is none of the way in is reported");
                report(action.event);
                is_launch_over_ = true;
                break;
            case WorkerAction::dial:
                check(settings_.is_dialled_by_master && !has_link_, "it is dialled in vain");
                is_dialled_ = true;
                break;
            case WorkerAction::join:
                check(has_link_, "a welcome is sent without a link");
                report(MUSTER_CLUSTER_JOINED);
                has_joined_ = true;
                break;
            case WorkerAction::send_leave:
                check(has_link_ && has_joined_, "a worker is asked to leave that cannot hear it");
                check(was_removed_, "a worker is asked to leave that nobody removes");
                check(!std::exchange(is_leave_sent_, true), "a worker is asked to leave twice");
                break;
            case WorkerAction::send_die:
                check(has_link_, "it is to kill itself, and has no link");
                check(!settings_.can_kill && !settings_.sees_exits, "it is to kill itself, and its manager could");
                break;
            case WorkerAction::close_link:
                check(has_link_, "a link is closed that is not open");
                has_link_ = false;
                break;
            case WorkerAction::forget_launch:
                check(!std::exchange(is_launch_over_, true), "a launch ends twice");
                break;
            case WorkerAction::kill:
                check(settings_.can_kill || settings_.sees_exits, "a manager is to kill that does not");
                check(!was_kill_asked_, "it is killed twice");
                is_kill_asked_ = was_kill_asked_ = true;
                break;
            case WorkerAction::end: {
                check(!has_link_, "a link outlives its worker");
                check(machine_.state() == State::gone && machine_.wake_at_ns() == INT64_MAX, "the end has a sequel");
                is_over_ = is_launch_over_ = true;
                const WorkerMachine::End end = machine_.end_of_life();
                check(end.event == MUSTER_CLUSTER_REMOVED || end.why.status != MUSTER_OK, "it failed, and all is well");
                check((end.event == MUSTER_CLUSTER_DEAD) <= has_joined_, "it is dead, and had not joined");
                check((end.event == MUSTER_CLUSTER_FAILED) <= !has_joined_, "it failed to join, and had joined");
                check(was_removed_ <= (end.event == MUSTER_CLUSTER_REMOVED), "it was removed, and is reported lost");
                break;
            }
            }
        }
        check(machine_.has_link() == has_link_, "it is wrong about its link");
        check(is_over_ == (machine_.state() == State::gone), "it is gone without an end");
    }

    void report(uint32_t event) {
        static_assert(MUSTER_CLUSTER_LAUNCHED < MUSTER_CLUSTER_CONNECTED &&
                      MUSTER_CLUSTER_CONNECTED < MUSTER_CLUSTER_JOINED);
        check(event == last_event_ + 1, "an event is left out, or comes twice");
        last_event_ = event;
    }

    // In every state a removal ends it without further events from outside.
    void come_to_an_end() {
        happen(Step::remove);
        pass(60 * second);
        check(is_over_, "a removed worker does not end");
    }

    const WorkerMachine::Settings settings_;
    int64_t now_ = second;
    WorkerMachine machine_;
    bool has_link_ = false, has_joined_ = false, was_removed_ = false, is_over_ = false;
    bool manager_has_reported_ = false, is_launch_over_ = false, is_dialled_ = false, is_leave_sent_ = false;
    bool is_kill_asked_ = false, was_kill_asked_ = false;
    uint32_t last_event_ = 0;
};

Schedule make_schedule(uint64_t seed) {
    std::mt19937_64 random(seed);
    Schedule schedule;
    schedule.settings.is_dialled_by_master = random() % 4 == 0;
    schedule.settings.sees_exits = random() % 2 == 0;
    schedule.settings.can_kill = schedule.settings.sees_exits || random() % 2 == 0;
    schedule.settings.join_timeout_ns = 5 * second;
    schedule.settings.leave_timeout_ns = 2 * second;
    // Half of them join as they should, which makes the later events more interesting.
    if (random() % 2 == 0) {
        static constexpr Step way_in[] = {Step::launched, Step::connected, Step::hello};
        for (size_t i = 0; i < 1 + random() % 3; i++) schedule.events.push_back({way_in[i], 10 * ms});
    }
    const size_t count = 1 + random() % 12;
    for (size_t i = 0; i < count; i++) {
        const int64_t time_ns = random() % 3 == 0 ? 0 : static_cast<int64_t>(random() % 1500) * ms;
        schedule.events.push_back({static_cast<Step>(random() % step_count), time_ns});
    }
    return schedule;
}

std::string fault_of(const Schedule &schedule) {
    try {
        World(schedule.settings).run(schedule.events);
    } catch (const Broken &broken) {
        return broken.what_is;
    }
    return {};
}

// Leaves out every step without which there still is a fault.
std::string shortest_fault(Schedule schedule) {
    for (size_t i = 0; i < schedule.events.size();) {
        Schedule shorter = schedule;
        shorter.events.erase(shorter.events.begin() + static_cast<ptrdiff_t>(i));
        if (fault_of(shorter).empty()) {
            i++;
        } else {
            schedule = shorter;
            i = 0;
        }
    }
    std::string text = fault_of(schedule) + " (";
    text += schedule.settings.is_dialled_by_master ? "dialled by its master" : "dials its master";
    text += schedule.settings.sees_exits ? ", exits are seen" : ", exits are not seen";
    text += schedule.settings.can_kill ? ", killed by its manager):" : ", killed by itself):";
    for (const Event &event : schedule.events)
        text += " +" + std::to_string(event.time_ns / ms) + "ms " + step_names[static_cast<int>(event.step)];
    return text;
}

void test_a_worker_ends_once_whatever_happens(void **) {
    uint64_t count = 200'000, joined = 0;
    const std::string fault = run_schedules(count, [&](uint64_t seed) {
        const Schedule schedule = make_schedule(seed);
        World world(schedule.settings);
        try {
            world.run(schedule.events);
        } catch (const Broken &) {
            throw Broken(shortest_fault(schedule));
        }
        joined += world.has_joined();
    });
    if (!fault.empty()) fail_msg("%s", fault.c_str());
    std::printf("%llu schedules, %llu workers joined\n", static_cast<unsigned long long>(count),
                static_cast<unsigned long long>(joined));
    assert_true(joined > count / 20);
}

// Each row of the table in the header, and what it leads to.
struct Row {
    const char *name;
    WorkerMachine::Settings settings;
    std::vector<Step> before;
    Step event;
    State next;
    std::vector<WorkerAction::Kind> actions;
};

void step(WorkerMachine &machine, Step what, int64_t &now) {
    const Error why = Error::make(MUSTER_E_PEER, "broken");
    switch (what) {
    case Step::launched:
        return machine.launched();
    case Step::failed:
        return machine.failed(why);
    case Step::connected:
        return machine.connected();
    case Step::connect_failed:
        return machine.connect_failed(why, now);
    case Step::hello:
        return machine.hello();
    case Step::leave_announced:
        return machine.leave_announced();
    case Step::link_lost:
        return machine.link_lost(why, now);
    case Step::process_ended:
        return machine.process_ended("exit code 0", now);
    case Step::exit_is_unseen:
        return machine.exit_is_unseen();
    case Step::remove:
        return machine.remove(second, now);
    case Step::remove_at_once:
        return machine.remove(0, now);
    case Step::kill_done:
        return machine.kill_done();
    case Step::kill_failed:
        return machine.kill_failed(why);
    case Step::context_over:
        return machine.context_over(why);
    case Step::wait:
        now = machine.wake_at_ns();
        return machine.wake(now);
    }
}

void test_the_table_in_the_header_holds(void **) {
    using enum Step;
    using Action = WorkerAction;
    const WorkerMachine::Settings local{false, true, true, 5 * second, 2 * second};
    const WorkerMachine::Settings dialled{true, true, true, 5 * second, 2 * second};
    const WorkerMachine::Settings hosted{false, false, true, 5 * second, 2 * second};
    const WorkerMachine::Settings elastic{false, false, false, 5 * second, 2 * second};
    const std::vector<Step> in = {launched, connected, hello};
    const auto then = [&](std::vector<Step> more) {
        std::vector<Step> all = in;
        all.insert(all.end(), more.begin(), more.end());
        return all;
    };
    const Row rows[] = {
        {"launching: launched", local, {}, launched, State::launched, {Action::report}},
        {"launching: launched, dialled", dialled, {}, launched, State::launched, {Action::report, Action::dial}},
        {"launching: connected", local, {}, connected, State::connected, {Action::report, Action::report}},
        {"launching: remove", local, {}, remove, State::gone, {Action::forget_launch, Action::end}},
        {"launching: deadline", local, {}, wait, State::gone, {Action::forget_launch, Action::end}},
        {"launching: process_ended", local, {}, process_ended, State::gone, {Action::end}},
        {"launching: failed", local, {}, failed, State::gone, {Action::end}},
        {"launching: context_over", local, {}, context_over, State::gone, {Action::forget_launch, Action::end}},
        {"launched: launched again", local, {launched}, launched, State::launched, {}},
        {"launched: connected", local, {launched}, connected, State::connected, {Action::report}},
        {"launched: remove", local, {launched}, remove, State::killing, {Action::kill}},
        {"launched: connect_failed", dialled, {launched}, connect_failed, State::killing, {Action::kill}},
        {"launched: deadline", hosted, {launched}, wait, State::killing, {Action::kill}},
        {"launched: deadline, no kill", elastic, {launched}, wait, State::gone, {Action::end}},
        {"launched: process_ended", local, {launched}, process_ended, State::gone, {Action::end}},
        {"connected: hello", local, {launched, connected}, hello, State::joined, {Action::join}},
        {"connected: leave", local, {launched, connected}, leave_announced, State::leaving, {}},
        {"connected: remove", local, {launched, connected}, remove, State::killing, {Action::kill}},
        {"connected: deadline", local, {launched, connected}, wait, State::killing, {Action::kill}},
        {"connected: link_lost", local, {launched, connected}, link_lost, State::ending, {Action::close_link}},
        {"connected: process_ended", local, {launched, connected}, process_ended, State::exited, {}},
        {"joined: remove", local, in, remove, State::leaving, {Action::send_leave}},
        {"joined: remove at once", local, in, remove_at_once, State::killing, {Action::kill}},
        {"joined: remove at once, no kill",
         elastic,
         in,
         remove_at_once,
         State::gone,
         {Action::send_die, Action::close_link, Action::end}},
        {"joined: leave", local, in, leave_announced, State::leaving, {}},
        {"joined: link_lost", local, in, link_lost, State::ending, {Action::close_link}},
        {"joined: link_lost, unseen", hosted, in, link_lost, State::killing, {Action::close_link, Action::kill}},
        {"joined: link_lost, no kill", elastic, in, link_lost, State::gone, {Action::close_link, Action::end}},
        {"joined: link_lost, lost sight",
         local,
         then({exit_is_unseen}),
         link_lost,
         State::killing,
         {Action::close_link, Action::kill}},
        {"joined: process_ended", local, in, process_ended, State::exited, {}},
        {"joined: failed", local, in, failed, State::gone, {Action::close_link, Action::end}},
        {"joined: context_over", local, in, context_over, State::gone, {Action::kill, Action::close_link, Action::end}},
        {"leaving: remove again", local, then({remove}), remove, State::leaving, {}},
        {"leaving: deadline", local, then({remove}), wait, State::killing, {Action::kill}},
        {"leaving: link_lost", local, then({remove}), link_lost, State::ending, {Action::close_link}},
        {"leaving: link_lost, unseen",
         hosted,
         then({remove}),
         link_lost,
         State::gone,
         {Action::close_link, Action::end}},
        {"leaving: process_ended", local, then({remove}), process_ended, State::exited, {}},
        {"ending: deadline", local, then({link_lost}), wait, State::killing, {Action::kill}},
        {"ending: remove", local, then({link_lost}), remove, State::killing, {Action::kill}},
        {"ending: remove, announced", local, then({leave_announced, link_lost}), remove, State::ending, {}},
        {"ending: process_ended", local, then({link_lost}), process_ended, State::gone, {Action::end}},
        {"exited: link_lost", local, then({process_ended}), link_lost, State::gone, {Action::close_link, Action::end}},
        {"exited: deadline", local, then({process_ended}), wait, State::gone, {Action::close_link, Action::end}},
        {"exited: leave", local, then({process_ended}), leave_announced, State::exited, {}},
        {"killing: link_lost", local, then({remove_at_once}), link_lost, State::killing, {Action::close_link}},
        {"killing: process_ended", local, then({remove_at_once}), process_ended, State::exited, {}},
        {"killing: process_ended, no link", local, {launched, remove}, process_ended, State::gone, {Action::end}},
        {"killing: kill_done", local, then({remove_at_once}), kill_done, State::killing, {}},
        {"killing: kill_done, unseen",
         hosted,
         then({remove_at_once}),
         kill_done,
         State::gone,
         {Action::close_link, Action::end}},
        {"killing: kill_failed",
         local,
         then({remove_at_once}),
         kill_failed,
         State::gone,
         {Action::close_link, Action::end}},
        {"killing: deadline", local, then({remove_at_once}), wait, State::gone, {Action::close_link, Action::end}},
    };
    for (const Row &row : rows) {
        int64_t now = second;
        WorkerMachine machine(row.settings, now);
        for (const Step before : row.before) step(machine, before, now);
        while (machine.has_action()) machine.next_action();
        step(machine, row.event, now);
        if (machine.state() != row.next)
            fail_msg("%s: state %d, not %d", row.name, static_cast<int>(machine.state()), static_cast<int>(row.next));
        for (const WorkerAction::Kind kind : row.actions)
            if (!machine.has_action() || machine.next_action().kind != kind)
                fail_msg("%s: not action %d", row.name, static_cast<int>(kind));
        if (machine.has_action()) fail_msg("%s: an action too many", row.name);
    }
}

void test_the_end_says_what_is_known_best(void **) {
    const WorkerMachine::Settings local{false, true, true, 2 * second, second};
    int64_t now = second;
    const auto end_after = [&](const std::vector<Step> &steps) {
        WorkerMachine machine(local, now);
        for (const Step one : steps) step(machine, one, now);
        return machine.end_of_life();
    };
    struct {
        std::vector<Step> steps;
        uint32_t event;
        Status status;
        const char *text;
    } const all[] = {
        {{Step::launched, Step::process_ended}, MUSTER_CLUSTER_FAILED, MUSTER_E_PEER, "exit code 0"},
        {{Step::launched, Step::wait, Step::process_ended},
         MUSTER_CLUSTER_FAILED,
         MUSTER_TIMEOUT,
         "it did not join within 2 s"},
        {{Step::launched, Step::connected, Step::hello, Step::link_lost, Step::process_ended},
         MUSTER_CLUSTER_DEAD,
         MUSTER_E_PEER,
         "exit code 0"},
        {{Step::launched, Step::connected, Step::hello, Step::remove, Step::link_lost, Step::process_ended},
         MUSTER_CLUSTER_REMOVED,
         MUSTER_OK,
         "exit code 0"},
        {{Step::launched, Step::connected, Step::hello, Step::remove_at_once, Step::kill_failed},
         MUSTER_CLUSTER_REMOVED,
         MUSTER_E_PEER,
         "it could not be ended by force: broken"},
    };
    for (const auto &one : all) {
        const WorkerMachine::End end = end_after(one.steps);
        assert_int_equal(end.event, one.event);
        assert_int_equal(end.why.status, one.status);
        assert_string_equal(end.text.c_str(), one.text);
    }
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_a_worker_ends_once_whatever_happens),
        cmocka_unit_test(test_the_table_in_the_header_holds),
        cmocka_unit_test(test_the_end_says_what_is_known_best),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
