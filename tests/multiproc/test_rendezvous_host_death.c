// SPDX-License-Identifier: MIT
// Members in processes of their own, one of which serves the store of all: it is killed or stopped, and more than half
// of the others go on without it.
// ctest: quick timeout=240
#include "rendezvous_members.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

static int set_up(void **state) {
    (void)state;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    const int probe = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(probe, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(getsockname(probe, (struct sockaddr *)&address, &size), 0);
    close(probe);
    snprintf(url, sizeof url, "tcp://127.0.0.1:%u?host=auto", ntohs(address.sin_port));
    setenv("MUSTER_SECRET", "a secret of this test", 1);
    setenv("LAST_CALL_MS", "3000", 1);
    return 0;
}

static char line[256];

// The first serves the store: the others come when it is there.
static void form(child *who, int count, const char *min, const char *keep_ms) {
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    char max[8];
    snprintf(max, sizeof max, "%d", count);
    for (int i = 0; i < count; i++) {
        begin(&who[i], names[i], min, max, keep_ms, "0");
        hear(&who[i], "open", line, sizeof line);
    }
    say(&who[0], "join\n"); // it leads, too
    hear(&who[0], "joined", line, sizeof line);
    for (int i = 1; i < count; i++) say(&who[i], "join\n");
    for (int i = 0; i < count; i++) {
        is_in(&who[i]);
        assert_int_equal(who[i].round, 1);
        assert_int_equal(who[i].world, count);
        assert_int_equal(who[i].rank, i);
    }
}
static void kill_one(child *who) {
    kill(who->pid, SIGKILL);
    end(who, true);
}
static void are_in(child *who, const int *which, int count, uint64_t round) {
    bool taken[8] = {false};
    for (int i = 0; i < count; i++) {
        child *const one = &who[which[i]];
        const uint32_t rank_before = one->rank;
        is_in(one);
        assert_int_equal(one->round, round);
        assert_int_equal(one->world, count);
        assert_true(one->rank < (uint32_t)count);
        assert_false(taken[one->rank]);
        taken[one->rank] = true;
        if (rank_before < (uint32_t)count) assert_int_equal(one->rank, rank_before);
    }
}
static void all_hear(child *who, const int *which, int count, const char *what) {
    for (int i = 0; i < count; i++) hear(&who[which[i]], what, line, sizeof line);
}
static void all_say(child *who, const int *which, int count, const char *what) {
    for (int i = 0; i < count; i++) say(&who[which[i]], what);
}

static void test_two_of_three_go_on_without_the_host(void **state) {
    (void)state;
    child who[3];
    const int left[] = {1, 2};
    form(who, 3, "1", "5000");
    const int64_t killed = now();
    kill_one(&who[0]);
    all_hear(who, left, 2, "lost");
    all_say(who, left, 2, "join\n");
    are_in(who, left, 2, 2);
    printf("two of three were in the next round after %.0f ms\n", (double)(now() - killed) / 1e6);
    all_say(who, left, 2, "write\n");
    all_hear(who, left, 2, "write MUSTER_OK");
    all_say(who, left, 2, "exit\n");
    all_hear(who, left, 2, "exit MUSTER_OK");
    for (int i = 1; i < 3; i++) end(&who[i], false);
}

static void test_one_of_two_ends_with_quorum(void **state) {
    (void)state;
    child who[2];
    form(who, 2, "1", "1000");
    kill_one(&who[0]);
    hear(&who[1], "lost", line, sizeof line);
    for (int i = 0; i < 2; i++) {
        say(&who[1], "join\n");
        hear(&who[1], "join MUSTER_E_QUORUM", line, sizeof line);
    }
    end(&who[1], false);
}

static void test_three_of_five_go_on_when_the_next_host_dies_too(void **state) {
    (void)state;
    child who[5];
    const int first[] = {1, 2, 3, 4}, second[] = {2, 3, 4};
    form(who, 5, "1", "5000");
    kill_one(&who[0]);
    all_hear(who, first, 4, "lost");
    all_say(who, first, 4, "join\n");
    are_in(who, first, 4, 2);
    kill_one(&who[1]); // the lowest rank that was left serves the store
    all_hear(who, second, 3, "lost");
    all_say(who, second, 3, "join\n");
    are_in(who, second, 3, 3);
    for (int i = 2; i < 5; i++) end(&who[i], false);
}

static void test_rounds_follow_each_other_at_the_next_host(void **state) {
    (void)state;
    child who[3];
    const int left[] = {1, 2};
    form(who, 3, "1", "5000");
    kill_one(&who[0]);
    all_hear(who, left, 2, "lost");
    all_say(who, left, 2, "join\n");
    are_in(who, left, 2, 2);
    for (uint64_t round = 3; round < 7; round++) { // each leaves something that the leader deletes in a later one
        all_say(who, left, 2, "join\n");
        are_in(who, left, 2, round);
        all_say(who, left, 2, "write\n");
        all_hear(who, left, 2, "write MUSTER_OK");
    }
    for (int i = 1; i < 3; i++) end(&who[i], false);
}

static void test_a_join_that_waits_ends_in_the_next_world(void **state) {
    (void)state;
    child who[3];
    const int left[] = {1, 2};
    form(who, 3, "2", "5000");
    all_say(who, left, 2, "join\n"); // and wait for the first
    all_hear(who, left, 2, "joined 0 2");
    kill_one(&who[0]);
    are_in(who, left, 2, 2);
    for (int i = 1; i < 3; i++) end(&who[i], false);
}

static void test_a_host_that_slept_finds_the_world_of_the_others(void **state) {
    (void)state;
    child who[3];
    const int left[] = {1, 2}, all[] = {1, 2, 0};
    form(who, 3, "1", "1000");
    kill(who[0].pid, SIGSTOP);
    all_hear(who, left, 2, "lost");
    all_say(who, left, 2, "join\n");
    are_in(who, left, 2, 2);
    kill(who[0].pid, SIGCONT);
    say(&who[0], "join\n");
    all_hear(who, left, 2, "waiting 0 1"); // it has found the others
    all_say(who, left, 2, "write\n");
    all_hear(who, left, 2, "write MUSTER_OK");
    all_say(who, left, 2, "join\n");
    who[0].rank = UINT32_MAX; // of the first round: others may have it now
    are_in(who, all, 3, 3);
    for (int i = 0; i < 3; i++) end(&who[i], false);
}

static void test_the_host_goes_on_when_most_others_are_dead(void **state) {
    (void)state;
    child who[4];
    const int left[] = {0};
    form(who, 4, "1", "1000");
    // It has to have been there for a while, to know when the others went.
    struct timespec while_it_lives = {4, 0};
    nanosleep(&while_it_lives, NULL);
    for (int i = 1; i < 4; i++) kill_one(&who[i]);
    for (int i = 1; i < 4; i++) hear(&who[0], "dead", line, sizeof line);
    say(&who[0], "join\n");
    are_in(who, left, 1, 2);
    end(&who[0], false);
}

// The second member waits at the exit and is stopped, so it cannot see that the exit is complete once the host exits.
static void meet_at_the_exit(child *who) {
    form(who, 2, "2", "5000");
    say(&who[1], "exit\n");
    do {
        say(&who[0], "exiting?\n");
        hear(&who[0], "exiting ", line, sizeof line);
    } while (strcmp(line, "exiting 1") != 0);
    int status;
    assert_int_equal(kill(who[1].pid, SIGSTOP), 0);
    assert_int_equal(waitpid(who[1].pid, &status, WUNTRACED), who[1].pid); // all its threads have stopped
    say(&who[0], "exit\n");
    const int64_t until = now() + 300 * MILLISECOND;
    do {
        struct pollfd ready = {who[0].out, POLLIN, 0};
        const int64_t left = until - now();
        if (who[0].size == 0 && (left <= 0 || poll(&ready, 1, (int)(left / MILLISECOND) + 1) == 0)) return;
        hear(&who[0], "", line, sizeof line); // events, too
    } while (strncmp(line, "exit ", 5) != 0);
    kill(who[1].pid, SIGKILL);
    fail_msg("it did not wait: \"%s\"", line);
}

static void test_the_host_goes_from_the_exit_when_the_others_know_that_all_have_met(void **state) {
    (void)state;
    child who[2];
    meet_at_the_exit(who);
    assert_int_equal(kill(who[1].pid, SIGCONT), 0);
    hear(&who[0], "exit MUSTER_OK", line, sizeof line);
    end(&who[0], false); // and the store with it
    hear(&who[1], "exit MUSTER_OK", line, sizeof line);
    end(&who[1], false);
}

static void test_the_host_goes_from_the_exit_when_the_others_are_dead(void **state) {
    (void)state;
    child who[2];
    meet_at_the_exit(who);
    kill_one(&who[1]);
    hear(&who[0], "exit MUSTER_OK", line, sizeof line);
    end(&who[0], false);
}

int main(int count, char **arguments) {
    if (count == 8 && strcmp(arguments[1], "play") == 0) return play(arguments + 2);
    self = arguments[0];
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_two_of_three_go_on_without_the_host, set_up),
        cmocka_unit_test_setup(test_one_of_two_ends_with_quorum, set_up),
        cmocka_unit_test_setup(test_three_of_five_go_on_when_the_next_host_dies_too, set_up),
        cmocka_unit_test_setup(test_rounds_follow_each_other_at_the_next_host, set_up),
        cmocka_unit_test_setup(test_a_join_that_waits_ends_in_the_next_world, set_up),
        cmocka_unit_test_setup(test_a_host_that_slept_finds_the_world_of_the_others, set_up),
        cmocka_unit_test_setup(test_the_host_goes_on_when_most_others_are_dead, set_up),
        cmocka_unit_test_setup(test_the_host_goes_from_the_exit_when_the_others_know_that_all_have_met, set_up),
        cmocka_unit_test_setup(test_the_host_goes_from_the_exit_when_the_others_are_dead, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
