// SPDX-License-Identifier: MIT
// Writes through the view of a round that ends meanwhile, over a connection that breaks: what the status says is so.
// MUSTER_FAULT_SEED: the first seed; MUSTER_FAULT_STEPS: how many rounds (30).
// ctest: full timeout=150
#include "fault_driver.h"
#include "fault_relay.h"
#include "store_process.h"

enum { max_rounds = 200 };
static fault_world w; // for its random numbers alone

typedef struct member {
    muster_context *context;
    muster_queue *queue;
    muster_store *store, *view;
    muster_rendezvous *rendezvous;
    muster_round *round;
} member;

static void open_member(member *m, const char *url) {
    assert_int_equal(muster_context_create(NULL, &m->context, &why), MUSTER_OK);
    assert_int_equal(muster_queue_create(m->context, NULL, &m->queue, &why), MUSTER_OK);
    if (muster_store_open(m->context, url, strlen(url), NULL, 20 * SECOND, &m->store, &why) != MUSTER_OK)
        fail_msg("%s", why.message);
}
static void begin_join(member *m, const char *run) {
    const muster_rendezvous_config config = {.struct_size = sizeof config,
                                             .run_id = run,
                                             .run_id_bytes = strlen(run),
                                             .store = m->store,
                                             .min = 2,
                                             .last_call_ns = -1};
    if (muster_rendezvous_open(m->context, &config, 20 * SECOND, &m->rendezvous, &why) != MUSTER_OK)
        fail_msg("%s", why.message);
    assert_int_equal(
        muster_rendezvous_begin(m->rendezvous, MUSTER_RENDEZVOUS_JOIN, NULL, 0, 60 * SECOND, m->queue, 1, &why),
        MUSTER_OK);
}
static void end_join(member *m) {
    muster_completion done;
    assert_int_equal(muster_queue_next(m->queue, 60 * SECOND, &done, &why), MUSTER_OK);
    if (done.status != MUSTER_OK) fail_msg("%d: %s", done.status, why.message);
    m->round = done.object;
    assert_int_equal(muster_round_store(m->round, &m->view, &why), MUSTER_OK);
}
static void leave(member *m) {
    muster_store_release(m->view);
    muster_round_release(m->round);
    muster_rendezvous_release(m->rendezvous);
}
static void close_member(member *m) {
    muster_store_release(m->store);
    muster_queue_release(m->queue);
    assert_int_equal(muster_context_close(m->context, 10 * SECOND), MUSTER_OK);
    muster_context_release(m->context);
}

// Whatever the view calls it: the key of that run that ends so. -1: there is none.
static int64_t number_in_run(const member *m, const char *run) {
    char prefix[64];
    snprintf(prefix, sizeof prefix, "muster/rdzv/%s/", run);
    const muster_store_op list = fault_op(MUSTER_STORE_LIST, prefix, NULL);
    muster_store_result *result;
    if (muster_store_do(m->store, &list, 1, 60 * SECOND, &result, &why) != MUSTER_OK) fail_msg("%s", why.message);
    int64_t found = -1;
    for (uint64_t i = 0; i < muster_store_result_count(result); i++) {
        muster_store_entry entry;
        muster_store_result_entry(result, i, &entry);
        if (entry.key_bytes < 4 || memcmp((const char *)entry.key + entry.key_bytes - 4, "/sum", 4) != 0) continue;
        char text[32];
        snprintf(text, sizeof text, "%.*s", (int)entry.value_bytes, (const char *)entry.value);
        found = strtoll(text, NULL, 10);
    }
    muster_store_result_release(result);
    return found;
}

static void check(const char *run, muster_status status, int64_t sum, const char *text) {
    const enum fault_verdict verdict = fault_verdict_of(status);
    if (verdict == fault_undocumented || sum > 1 || (verdict == fault_applied && sum != 1) ||
        (verdict == fault_not_applied && sum != -1))
        fail_msg("seed %llu, run %s: status %d, and the sum is %lld: %s", (unsigned long long)w.seed, run, status,
                 (long long)sum, text);
}

static void test_views_of_rounds_that_end(void **state) {
    (void)state;
    const char *const given = getenv("MUSTER_FAULT_SEED"), *const steps = getenv("MUSTER_FAULT_STEPS");
    const int rounds = steps != NULL ? atoi(steps) : 30;
    assert_in_range(rounds, 1, max_rounds);
    w.seed = given != NULL ? (uint64_t)atoll(given) : 1;
    w.random = w.seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    program server = start_server("--listen", "tcp://127.0.0.1:0", NULL);
    await_ready(&server);
    static fault_relay relay;
    relay_start(&relay, atoi(strrchr(server.url, ':') + 1));
    char through[64];
    snprintf(through, sizeof through, "tcp://127.0.0.1:%d", relay.port);
    member one = {0}, two = {0};
    open_member(&one, through);
    open_member(&two, server.url);
    muster_status statuses[max_rounds];
    int verdicts[4] = {0};
    for (int i = 0; i < rounds; i++) {
        char run[16];
        snprintf(run, sizeof run, "run%d", i);
        begin_join(&one, run);
        begin_join(&two, run);
        end_join(&one);
        end_join(&two);
        static const int faults[] = {relay_none, relay_cut_before_request, relay_cut_before_answer, relay_hold_request,
                                     relay_hold_answer};
        const int fault = faults[fault_random(&w, sizeof faults / sizeof *faults)];
        const int64_t timeout = (int64_t)(20 + fault_random(&w, 100)) * MILLISECOND,
                      end_at = (int64_t)fault_random(&w, 60) * MILLISECOND,
                      heal_at = (int64_t)fault_random(&w, 150) * MILLISECOND;
        muster_store_op add = fault_op(MUSTER_STORE_ADD, "sum", NULL);
        add.number = 1;
        relay_arm(&relay, fault);
        const int64_t from = now();
        muster_status status = muster_store_begin(one.view, &add, 1, timeout, one.queue, 2, NULL, &why);
        bool ended = status != MUSTER_OK, over = false, healed = false;
        while (!ended || !over || !healed) {
            const int64_t at = now() - from;
            if (!over && at >= end_at) {
                muster_rendezvous_abort(two.rendezvous, "over", 4, 20 * SECOND, NULL);
                over = true;
            }
            if (!healed && at >= heal_at) {
                relay_heal(&relay);
                healed = true;
            }
            if (at > 60 * SECOND) fail_msg("it does not end");
            muster_completion done;
            if (muster_queue_next(one.queue, MILLISECOND, &done, &why) != MUSTER_OK) continue;
            muster_store_result_release(done.object);
            status = done.status;
            ended = true;
        }
        check(run, status, number_in_run(&two, run), why.message);
        statuses[i] = status;
        verdicts[fault_verdict_of(status)]++;
        leave(&one);
        leave(&two);
    }
    for (int i = 0; i < rounds; i++) {
        char run[16];
        snprintf(run, sizeof run, "run%d", i);
        check(run, statuses[i], number_in_run(&two, run), "at the end");
    }
    printf("views of rounds: %d not applied, %d applied, %d in doubt\n", verdicts[0], verdicts[1], verdicts[2]);
    close_member(&one);
    close_member(&two);
    relay_end(&relay);
    end_program(&server, SIGTERM);
}

int main(void) {
    if (!make_folder()) return 2;
    if (muster_context_create(NULL, &starter, NULL) != MUSTER_OK) return 2;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_views_of_rounds_that_end)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return tear_down() ? failed : 2;
}
