// SPDX-License-Identifier: MIT
// Members in processes of their own, over a store that another serves: killed, stopped and woken, with wall clocks days
// apart.
// ctest: quick timeout=120
#include "rendezvous_members.h"

#include <muster/store_server.h>

static muster_context *context;
static muster_store_server *server;

static int set_up(void **state) {
    (void)state;
    size_t size;
    setenv("MUSTER_SECRET", "a secret of this test", 1);
    assert_int_equal(muster_context_create(NULL, &context, NULL), MUSTER_OK);
    assert_int_equal(muster_store_server_open(context, "tcp://127.0.0.1:0", 17, NULL, &server, NULL), MUSTER_OK);
    assert_int_equal(muster_store_server_address(server, url, sizeof url, &size), MUSTER_OK);
    return 0;
}
static int tear_down(void **state) {
    (void)state;
    muster_store_server_release(server);
    assert_int_equal(muster_context_close(context, 10 * SECOND), MUSTER_OK);
    muster_context_release(context);
    return 0;
}

static void test_members_whose_wall_clocks_are_days_apart_form_one_world(void **state) {
    (void)state;
    child who[3];
    static const char *const names[] = {"node9", "node10", "node11"}, *const days[] = {"-2", "0", "365"};
    char line[64];
    for (int i = 0; i < 3; i++) begin(&who[i], names[i], "3", "3", "5000", days[i]);
    for (int round = 1; round <= 2; round++) {
        for (int i = 0; i < 3; i++) say(&who[i], "join\n");
        for (uint32_t i = 0; i < 3; i++) {
            is_in(&who[i]);
            assert_int_equal(who[i].round, round);
            assert_int_equal(who[i].rank, i);
            assert_int_equal(who[i].world, 3);
        }
    }
    for (int i = 0; i < 3; i++) say(&who[i], "exit\n");
    for (int i = 0; i < 3; i++) {
        hear(&who[i], "exit", line, sizeof line);
        assert_string_equal(line, "exit MUSTER_OK");
        say(&who[i], "leave\n");
    }
    for (int i = 0; i < 3; i++) {
        hear(&who[i], "leave", line, sizeof line);
        assert_string_equal(line, "leave MUSTER_OK");
        end(&who[i], false);
    }
}

static void test_a_killed_member_is_told_long_before_its_lease_is_over(void **state) {
    (void)state;
    child who[4];
    static const char *const names[] = {"a", "b", "c", "d"};
    char line[256], expected[64];
    for (int i = 0; i < 4; i++) begin(&who[i], names[i], "4", "4", "60000", "0");
    for (int i = 0; i < 4; i++) say(&who[i], "join\n");
    for (int i = 0; i < 4; i++) is_in(&who[i]);
    bool dead[4] = {false};
    for (int left = 3; left >= 1; left--) {
        int victim = -1; // first the one that leads
        for (int i = 0; i < 4; i++)
            if (!dead[i] && (victim < 0 || who[i].leads)) victim = i;
        int64_t slowest = 0;
        kill(who[victim].pid, SIGKILL);
        dead[victim] = true;
        snprintf(expected, sizeof expected, "dead %u 1", who[victim].rank);
        for (int i = 0; i < 4; i++) {
            if (dead[i]) continue;
            const int64_t took = hear(&who[i], expected, line, sizeof line);
            if (took > slowest) slowest = took;
            // The member that leads after two have died finds that their keys are gone, and cannot know the cause.
            const bool found_gone = left < 3 && strstr(line, "its lease has ended") != NULL;
            if (!found_gone && strstr(line, "its connection to the store broke") == NULL) fail_msg("\"%s\"", line);
        }
        printf("the death of rank %u was told after %.2f ms\n", who[victim].rank, (double)slowest / 1e6);
        assert_true(slowest < 20 * SECOND);
        end(&who[victim], true);
    }
    for (int i = 0; i < 4; i++)
        if (!dead[i]) end(&who[i], false);
}

static void test_a_member_that_slept_through_its_death_can_write_nowhere(void **state) {
    (void)state;
    child who[3];
    static const char *const names[] = {"a", "b", "c"};
    char line[64], expected[64];
    for (int i = 0; i < 3; i++) begin(&who[i], names[i], "2", "3", "200", "0");
    for (int i = 0; i < 2; i++) say(&who[i], "join\n");
    for (int i = 0; i < 2; i++) is_in(&who[i]);
    for (int i = 0; i < 2; i++) {
        say(&who[i], "write\n");
        hear(&who[i], "write", line, sizeof line);
        assert_string_equal(line, "write MUSTER_OK");
    }
    kill(who[0].pid, SIGSTOP);
    snprintf(expected, sizeof expected, "dead %u 1", who[0].rank);
    hear(&who[1], expected, line, sizeof line);
    for (int i = 1; i < 3; i++) say(&who[i], "join\n");
    for (int i = 1; i < 3; i++) {
        is_in(&who[i]);
        assert_int_equal(who[i].round, 2);
    }
    say(&who[0], "write\n"); // it lies there when it wakes up
    kill(who[0].pid, SIGCONT);
    hear(&who[0], "write", line, sizeof line);
    assert_string_equal(line, "write MUSTER_E_STALE");
    say(&who[0], "join\n"); // as any other member
    hear(&who[1], "waiting 0 1 2", line, sizeof line);
    for (int i = 1; i < 3; i++) say(&who[i], "join\n");
    for (int i = 0; i < 3; i++) {
        is_in(&who[i]);
        assert_true(who[i].round >= 3);
        end(&who[i], false);
    }
}

int main(int count, char **arguments) {
    if (count == 8 && strcmp(arguments[1], "play") == 0) return play(arguments + 2);
    self = arguments[0];
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_members_whose_wall_clocks_are_days_apart_form_one_world, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_a_killed_member_is_told_long_before_its_lease_is_over, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_member_that_slept_through_its_death_can_write_nowhere, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
