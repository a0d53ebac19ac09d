// SPDX-License-Identifier: MIT
// Members against a real table of a store, in random schedules: joins, deaths, pauses that outlast a lease, partitions,
// delays, requests and answers that are lost, requests that come to the store after they were given up, in order and
// out of order. After each change: never two worlds for one round, never fewer than min or more than max, ranks a
// permutation, nobody left behind in a round that goes on without it, kept ranks. When the faults end, all who live
// form one world, everybody who waits is answered, and a death is told.
// ctest: quick timeout=240
#include "machine_simulation.hpp"

#include <csetjmp>
#include <cstdarg>
#include <cstdio>

extern "C" {
#include <cmocka.h>
}

using namespace muster;
using namespace muster::test;

namespace {

std::string run_members(const std::function<Shape(std::mt19937_64 &)> &shape_of, uint64_t count) {
    uint64_t rounds = 0, faults = 0, leaves = 0;
    const std::string fault = run_schedules(count, [&](uint64_t seed) {
        std::mt19937_64 random(seed);
        Simulation simulation(seed, shape_of(random));
        simulation.run();
        rounds += simulation.rounds();
        faults += simulation.faults();
        leaves += simulation.leaves();
    });
    if (!fault.empty()) return fault;
    std::printf("%llu schedules, %llu rounds, %llu faults, %llu leaves of leaders\n",
                static_cast<unsigned long long>(count), static_cast<unsigned long long>(rounds),
                static_cast<unsigned long long>(faults), static_cast<unsigned long long>(leaves));
    return leaves == 0 ? "no leader has left" : "";
}

Shape some_shape(std::mt19937_64 &random) {
    Shape shape;
    shape.min = 1 + random() % 4;
    shape.max = shape.min + random() % 4;
    shape.nodes = shape.min + random() % 5;
    if (random() % 2 == 0) shape.max_ops = 4 + random() % 6;
    shape.last_call_ns = random() % 4 == 0 ? -1 : static_cast<int64_t>(1 + random() % 3000) * ms;
    return shape;
}

void check(const std::string &fault) {
    if (!fault.empty()) fail_msg("%s", fault.c_str());
}

void test_members_that_come_and_go_form_one_world(void **) {
    std::string fault = run_members(some_shape, 100);
    check(fault);
}

void test_so_do_they_over_a_bad_way_to_the_store(void **) {
    std::string fault = run_members(
        [](std::mt19937_64 &random) {
            Shape shape = some_shape(random);
            shape.faults = 1 + static_cast<int>(random() % 50);
            return shape;
        },
        200);
    check(fault);
}

void test_so_do_they_where_requests_overtake_each_other(void **) {
    std::string fault = run_members(
        [](std::mt19937_64 &random) {
            Shape shape = some_shape(random);
            shape.faults = 1 + static_cast<int>(random() % 50);
            shape.in_order = false;
            return shape;
        },
        200);
    check(fault);
}

void test_so_do_many_whose_round_is_no_single_request(void **) {
    std::string fault = run_members(
        [](std::mt19937_64 &random) {
            Shape shape;
            shape.min = 100 + random() % 50;
            shape.max = shape.min + random() % 20;
            shape.nodes = shape.min + random() % 30;
            shape.faults = static_cast<int>(random() % 10);
            shape.in_order = random() % 2 == 0;
            shape.events = 600;
            return shape;
        },
        2);
    check(fault);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_members_that_come_and_go_form_one_world),
        cmocka_unit_test(test_so_do_they_over_a_bad_way_to_the_store),
        cmocka_unit_test(test_so_do_they_where_requests_overtake_each_other),
        cmocka_unit_test(test_so_do_many_whose_round_is_no_single_request),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
