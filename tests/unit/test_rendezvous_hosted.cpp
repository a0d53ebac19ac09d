// SPDX-License-Identifier: MIT
// Members one of which serves the store of all, in random schedules: processes that are killed or stopped, the one with
// the store before others; ways between two of them that are cut, both or one; answers that are lost, requests that
// come late; newcomers. After each change: never two worlds for one round, whatever stores there are, never fewer than
// min or more than max, ranks a permutation. When the faults end nobody waits in vain; and where more than half are
// left they form one world.
// ctest: quick timeout=240
#include "hosted_simulation.hpp"

#include <csetjmp>
#include <cstdarg>
#include <cstdio>

extern "C" {
#include <cmocka.h>
}

using namespace muster;
using namespace muster::test;

namespace {

std::string run_members(const std::function<Shape(std::mt19937_64 &)> &shape_of,
                        const std::function<void(Simulation &)> &run, uint64_t count) {
    uint64_t rounds = 0, elected = 0, quorums = 0;
    const std::string fault = run_schedules(count, [&](uint64_t seed) {
        std::mt19937_64 random(seed);
        Simulation simulation(seed, shape_of(random));
        run(simulation);
        rounds += simulation.rounds();
        elected += simulation.elected();
        quorums += simulation.quorums();
    });
    if (!fault.empty()) return fault;
    std::printf("%llu schedules, %llu rounds, %llu of them at stores of others, %llu joins without a quorum\n",
                static_cast<unsigned long long>(count), static_cast<unsigned long long>(rounds),
                static_cast<unsigned long long>(elected), static_cast<unsigned long long>(quorums));
    return {};
}

Shape some_shape(std::mt19937_64 &random) {
    Shape shape;
    shape.nodes = 2 + random() % 5;
    shape.min = 1 + random() % std::min(shape.nodes, 3u);
    shape.max = std::max(shape.min, static_cast<uint32_t>(2 + random() % 6));
    shape.last_call_ns = random() % 3 == 0 ? -1 : static_cast<int64_t>(1 + random() % 1500) * ms;
    return shape;
}

void check(const std::string &fault) {
    if (!fault.empty()) fail_msg("%s", fault.c_str());
}

void test_there_is_one_world_whatever_is_lost(void **) {
    std::string fault = run_members(
        some_shape, [](Simulation &s) { s.run_wild(); }, 400);
    check(fault);
}

void test_so_there_is_where_answers_are_lost(void **) {
    std::string fault = run_members(
        [](std::mt19937_64 &random) {
            Shape shape = some_shape(random);
            shape.faults = 1 + static_cast<int>(random() % 40);
            return shape;
        },
        [](Simulation &s) { s.run_wild(); }, 400);
    check(fault);
}

void test_those_who_are_left_go_on_as_long_as_they_are_enough(void **) {
    uint64_t deaths = 0;
    std::string fault = run_members(
        [](std::mt19937_64 &random) {
            Shape shape;
            shape.nodes = shape.max = 3 + random() % 10;
            shape.last_call_ns = 15000 * ms; // so that all are in, whatever they were doing
            return shape;
        },
        [&](Simulation &s) { deaths += s.run_through_deaths(); }, 60);
    check(fault);
    assert_true(deaths > 100);
}

void test_members_find_each_other_whatever_one_says_that_missed_rounds(void **) {
    std::string fault = run_members(
        [](std::mt19937_64 &random) {
            Shape shape;
            shape.nodes = shape.max = 3 + random() % 3;
            shape.min = 2;
            shape.last_call_ns = 10000 * ms; // so that all are in
            shape.keeps_state = true;
            return shape;
        },
        [](Simulation &s) { s.run_with_one_that_missed_rounds(4); }, 40);
    check(fault);
}

void test_there_is_one_world_where_members_are_restarted(void **) {
    std::string fault = run_members(
        [](std::mt19937_64 &random) {
            Shape shape = some_shape(random);
            shape.keeps_state = true;
            shape.faults = random() % 2 == 0 ? 0 : static_cast<int>(random() % 40);
            return shape;
        },
        [](Simulation &s) { s.run_wild(); }, 600);
    check(fault);
}

void test_a_world_of_fixed_size_is_whole_again_after_restarts(void **) {
    uint64_t restarts = 0;
    std::string fault = run_members(
        [](std::mt19937_64 &random) {
            Shape shape;
            shape.nodes = shape.min = shape.max = 1 + random() % 6;
            shape.last_call_ns = -1;
            shape.keeps_state = true;
            return shape;
        },
        [&](Simulation &s) {
            s.run_through_restarts(8);
            restarts += s.restarts();
        },
        80);
    check(fault);
    assert_true(restarts == 640 * number_from("MUSTER_SCHEDULES", 1));
}

// The run may fail to go on after fewer than one of `part` trials.
template <class Drive>
void check_trials(Shape (*shape)(std::mt19937_64 &), const Drive &drive, uint64_t part) {
    uint64_t trials = 0, stuck = 0;
    check(run_members(
        shape,
        [&](Simulation &s) {
            drive(s);
            trials += s.trials();
            stuck += s.stuck();
        },
        60));
    std::printf("%llu trials, after %llu of which the run could not go on\n", static_cast<unsigned long long>(trials),
                static_cast<unsigned long long>(stuck));
    assert_true(stuck * part < trials);
}

Shape fixed_size(std::mt19937_64 &random, uint32_t sizes) {
    Shape shape;
    shape.nodes = shape.min = shape.max = 2 + random() % sizes;
    shape.keeps_state = true;
    return shape;
}

void test_a_world_whose_host_dies_while_a_round_is_made_is_whole_again(void **) {
    check_trials(
        [](std::mt19937_64 &random) {
            Shape shape = fixed_size(random, 5);
            shape.last_call_ns = random() % 2 == 0 ? -1 : 300 * ms;
            return shape;
        },
        [](Simulation &s) { s.run_through_deaths_of_hosts(6); }, 5); // slow: every tenth message takes up to 300 ms
}

void test_processes_whose_join_has_timed_out_keep_their_say(void **) {
    check_trials([](std::mt19937_64 &random) { return fixed_size(random, 4); },
                 [](Simulation &s) { s.run_with_joins_that_time_out(6); }, 10);
}

void test_members_find_each_other_whatever_the_last_one_has_announced(void **) {
    std::string fault = run_members(
        [](std::mt19937_64 &random) {
            Shape shape;
            shape.nodes = shape.min = shape.max = 5;
            shape.last_call_ns = random() % 2 == 0 ? -1 : 500 * ms;
            shape.keeps_state = true;
            return shape;
        },
        [](Simulation &s) { s.run_with_one_survivor(8); }, 40);
    check(fault);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_a_world_of_fixed_size_is_whole_again_after_restarts),
        cmocka_unit_test(test_a_world_whose_host_dies_while_a_round_is_made_is_whole_again),
        cmocka_unit_test(test_members_find_each_other_whatever_the_last_one_has_announced),
        cmocka_unit_test(test_members_find_each_other_whatever_one_says_that_missed_rounds),
        cmocka_unit_test(test_processes_whose_join_has_timed_out_keep_their_say),
        cmocka_unit_test(test_there_is_one_world_where_members_are_restarted),
        cmocka_unit_test(test_those_who_are_left_go_on_as_long_as_they_are_enough),
        cmocka_unit_test(test_there_is_one_world_whatever_is_lost),
        cmocka_unit_test(test_so_there_is_where_answers_are_lost),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
