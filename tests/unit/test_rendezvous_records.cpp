// SPDX-License-Identifier: MIT
// What members of a run write into its store, and the ranks that follow from it.
#include "rendezvous/machine/machine.hpp"
#include "rendezvous/machine/membership.hpp"
#include "rendezvous/machine/ranks.hpp"

#include <random>

#include <csetjmp>
#include <cstdarg>

extern "C" {
#include <cmocka.h>
}

using namespace muster;

namespace {

void test_ranks_go_by_old_ones_then_requests_then_natural_order(void **) {
    const std::vector<RankRequest> requests = {
        {0, RankRequest::none, RankRequest::none, "node66", "a", 1},
        {0, RankRequest::none, RankRequest::none, "node7", "b", 2},
        {3, 0, RankRequest::none, "node9", "c", 3},
        {2, 0, 1, "node1", "d", 4},
        {0, RankRequest::none, 0, "node5", "e", 5},
    };
    const std::vector<uint32_t> ranks = give_ranks(requests);
    const uint32_t expected[] = {4, 3, 0, 1, 2};
    for (size_t i = 0; i < requests.size(); i++) assert_int_equal(ranks[i], expected[i]);
    assert_true(natural_order("node7", "node66") < 0);
    assert_true(natural_order("node7", "node07") != 0);
    assert_true(natural_order("a10b2", "a10b10") < 0);
    assert_true(natural_order("a", "a1") < 0);
    assert_int_equal(natural_order("x1", "x1"), 0);
}

void test_records_of_others_are_read_with_care(void **) {
    std::mt19937_64 random(1);
    const std::string good[] = {
        RunConfig{1, 2, -1, {7, 8}}.write(),
        MemberRecord{MemberRecord::seeking, 1, 2, 3, 4, 5, "address", "key", "host:1", 3, true, true}.write(),
        RoundRecord{{1, 2, 3}, 4, {}, true, "author", "reason", false, 2}.write(),
        RoundPlace{1, {2, 3, 4}, 1, 2, {}, true, 0, 1}.write(),
        Note{1, 2, 3, 4, 5, 6, 7, 8, 9, {{1, Note::How::broken}, {2, Note::How::left}}, true, 10}.write(),
        ClosedRecord{"author", "reason"}.write(),
        MovedRecord{{7, 8}, 3, "host:1"}.write(),
        Membership{{1, 2, -1, {7, 8}},
                   {1, {2, 3, 4}, 1, 2, {}, true, 0, 1},
                   Membership::promised,
                   "host:1",
                   "host:2",
                   "host",
                   {"host:1", "", "host:2"}}
            .write(),
    };
    constexpr size_t kinds = sizeof good / sizeof *good;
    bool all = RunConfig::read(good[0]) && MemberRecord::read(good[1]) && RoundRecord::read(good[2]) &&
               RoundPlace::read(good[3]) && Note::read(good[4]) && ClosedRecord::read(good[5]) &&
               MovedRecord::read(good[6]) && Membership::read(good[7]) && Membership::read(good[7])->peers.size() == 3;
    assert_true(all);
    size_t read = 0;
    for (int i = 0; i < 100000; i++) {
        std::string bytes = good[random() % kinds];
        for (uint64_t k = random() % 3; k-- != 0 && !bytes.empty();)
            bytes[random() % bytes.size()] = static_cast<char>(random());
        if (random() % 3 == 0) bytes.resize(random() % (bytes.size() + 4));
        read += RunConfig::read(bytes).has_value() + MemberRecord::read(bytes).has_value() +
                RoundRecord::read(bytes).has_value() + RoundPlace::read(bytes).has_value() +
                Note::read(bytes).has_value() + ClosedRecord::read(bytes).has_value() +
                MovedRecord::read(bytes).has_value() + Membership::read(bytes).has_value();
        std::string_view address;
        read_page(bytes, static_cast<uint32_t>(random() % 70), address);
    }
    assert_true(read > 1000); // some changes leave a record, most do not
    assert_true(read < 90000);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_go_by_old_ones_then_requests_then_natural_order),
        cmocka_unit_test(test_records_of_others_are_read_with_care),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
