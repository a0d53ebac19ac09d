// SPDX-License-Identifier: MIT
// What agents read that others wrote: error files of workers, and what the agents of a round tell each other.
#include "agent/error_file.hpp"
#include "agent/places.hpp"

#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <random>

extern "C" {
#include <cmocka.h>
}

using namespace muster;

static void test_both_forms_of_a_report_are_read(void **) {
    const FailureReport nested = parse_failure(
        R"( {"message": {"message": "a \"b\"\n\u00fc\ud83d\ude00", "extraInfo": {"py_callstack": "x", "timestamp": "12"}}} )");
    const FailureReport plain =
        parse_failure(R"({"timestamp": 34, "other": [1, {"message": 2}, null], "message": "m"})");
    assert_string_equal(nested.message.c_str(), "a \"b\"\n\xc3\xbc\xf0\x9f\x98\x80");
    assert_string_equal(nested.callstack.c_str(), "x");
    assert_int_equal(nested.timestamp_s, 12);
    assert_string_equal(plain.message.c_str(), "m");
    assert_true(plain.callstack.empty());
    assert_int_equal(plain.timestamp_s, 34);
}

static void test_what_is_no_report_is_a_message_as_it_stands(void **) {
    static const char *const texts[] = {"plain text",
                                        "{",
                                        "{\"message\": \"m\"",
                                        "{\"message\": \"m\"} more",
                                        "{\"message\": \"\\u12\"}",
                                        "{\"message\": \"\\x\"}",
                                        "{\"message\" \"m\"}",
                                        "{\"other\": 1}",
                                        "[\"message\"]",
                                        "{\"message\": }"};
    for (const char *const text : texts) {
        const FailureReport report = parse_failure(text);
        assert_string_equal(report.message.c_str(), text);
        assert_int_equal(report.timestamp_s, 0);
    }
    assert_true(parse_failure("").message.empty());
}

static void test_deep_and_wide_reports_end_soon(void **) {
    const std::string deep = std::string(1 << 20, '[');
    std::string wide = "{\"" + std::string(1 << 19, 'k') + "\": [0";
    while (wide.size() < (1 << 20)) wide += ",0";
    wide += "], \"message\": \"m\"}";
    const size_t size = parse_failure(deep).message.size();
    const std::string message = parse_failure(wide).message;
    assert_int_equal(size, 1 << 20);
    assert_string_equal(message.c_str(), "m");
}

static void test_standings_are_those_of_all_offers(void **) {
    std::vector<Standing> standings;
    Result<Standing> last = Standing();
    {
        std::vector<Offer> offers;
        for (const char *const text : {"1 2 0 trainer", "1 3 4 parameter server", "1 1 1 trainer"}) {
            auto offer = read_offer(text);
            if (offer) offers.push_back(*offer);
        }
        standings = make_standings(offers, "host", 1234);
        last = read_standing(write_standing(standings[2]));
    }
    assert_int_equal(standings.size(), 3);
    assert_true(static_cast<bool>(last));
    assert_int_equal(last->first_rank, 5);
    assert_int_equal(last->world_size, 6);
    assert_int_equal(last->first_role_rank, 2);
    assert_int_equal(last->role_world_size, 3);
    assert_int_equal(last->restarts, 4); // the highest that one of them knows
    assert_int_equal(last->master_port, 1234);
    assert_string_equal(last->master_address.c_str(), "host");
    assert_int_equal(standings[1].first_role_rank, 0);
    assert_int_equal(standings[1].role_world_size, 3);
}

static void test_what_cannot_be_understood_is_refused(void **) {
    for (const char *const text : {"", "1", "2 1 0 role", "1 0 0 role", "1 1025 0 role", "1 1 0 ", "1 -1 0 role",
                                   "1 99999999999 0 role", "1 1 x role", "1  1 0 role"})
        assert_false(static_cast<bool>(read_offer(text)));
    for (const char *const text :
         {"", "1 0 1 0 1 0 80", "1 0 1 0 1 0 65536 host", "2 0 1 0 1 0 80 host", "1 0 1 0 1 host"})
        assert_false(static_cast<bool>(read_standing(text)));
    std::mt19937 random(7); // the same every time
    for (int i = 0; i < 100000; i++) {
        std::string text;
        for (size_t n = random() % 40; n > 0; n--) text.push_back("1 0-9x\"{}[]:,\\u\n"[random() % 17]);
        (void)read_offer(text);
        (void)read_standing(text);
        (void)parse_failure(text);
    }
}

int main() {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_forms_of_a_report_are_read),
        cmocka_unit_test(test_what_is_no_report_is_a_message_as_it_stands),
        cmocka_unit_test(test_deep_and_wide_reports_end_soon),
        cmocka_unit_test(test_standings_are_those_of_all_offers),
        cmocka_unit_test(test_what_cannot_be_understood_is_refused),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
