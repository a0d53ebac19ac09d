// SPDX-License-Identifier: MIT
// What rendezvous_serve.h promises to a host that pulls requests, and to its members when it answers late, twice,
// wrongly or not at all.
// ctest: quick timeout=60
#include "rendezvous_members.h"

#include <pthread.h>

static uint64_t pull(fixture *f, int32_t kind, uint32_t of) {
    muster_completion entry;
    muster_rendezvous_request what;
    assert_int_equal(muster_queue_next(f->requests, 20 * second, &entry, NULL), MUSTER_OK);
    assert_int_equal(entry.kind, kind);
    if (of == 0) return entry.request;
    muster_config_init(&what, sizeof what);
    assert_int_equal(muster_rendezvous_request_read(f->requests, entry.request, &what), MUSTER_OK);
    assert_int_equal(what.kind, of);
    return entry.request;
}
static void expect_nothing(fixture *f) {
    muster_completion entry;
    assert_int_equal(muster_queue_next(f->requests, 0, &entry, NULL), MUSTER_AGAIN);
}
/* Opened by another thread, where this one serves. */
typedef struct opener {
    fixture *f;
    muster_rendezvous_config config;
    int64_t timeout;
    muster_status status;
    muster_rendezvous *member;
    muster_error error;
    pthread_t thread;
} opener;
static void *open_it(void *argument) {
    opener *o = argument;
    o->status = muster_rendezvous_open(o->f->context, &o->config, o->timeout, &o->member, &o->error);
    return NULL;
}
static muster_rendezvous *pulled_member(fixture *f, uint32_t min, uint32_t max, uint64_t *out_id) {
    opener o = {.f = f, .config = run_of("a", min, max), .timeout = 20 * second};
    assert_int_equal(pthread_create(&o.thread, NULL, open_it, &o), 0);
    *out_id = pull(f, MUSTER_REQUEST_RENDEZVOUS, MUSTER_RENDEZVOUS_REQUEST_OPEN);
    assert_int_equal(muster_rendezvous_request_done(f->requests, *out_id, NULL, 0, NULL), MUSTER_OK);
    pthread_join(o.thread, NULL);
    assert_int_equal(o.status, MUSTER_OK);
    return o.member;
}
static fixture set_up_pulled(void) {
    const fixture f = set_up();
    assert_int_equal(muster_rendezvous_serve(f.context, "yours", 5, f.requests, 0, NULL), MUSTER_OK);
    return f;
}
static muster_rendezvous_assignment place_at(uint64_t number, uint32_t rank, uint32_t world) {
    muster_rendezvous_assignment place;
    muster_config_init(&place, sizeof place);
    place.number = number;
    place.rank = rank;
    place.world = world;
    return place;
}

static void test_places_that_cannot_be_end_the_join(void **state) {
    (void)state;
    fixture f = set_up_pulled(), other = set_up();
    muster_store *elsewhere;
    assert_int_equal(muster_store_open(other.context, "memory:", 7, NULL, second, &elsewhere, NULL), MUSTER_OK);
    uint64_t id;
    muster_rendezvous *who = pulled_member(&f, 2, 3, &id);
    static char long_one[2000];
    const muster_round_member_info one = {"a", 1, 0}, tables[3][2] = {{one, {long_one, sizeof long_one, 0}},
                                                                      {one, {NULL, 4, 0}},
                                                                      {one, one}};
    muster_rendezvous_assignment places[12];
    const char *texts[12];
    size_t count = 0;
#define WRONG(text, ...) (texts[count] = (text), places[count++] = (__VA_ARGS__))
    WRONG("rank 0 of a world of 0", place_at(5, 0, 0));
    WRONG("rank 2 of a world of 2", place_at(5, 2, 2));
    WRONG("rank 4294967295 of a world of 2", place_at(5, UINT32_MAX, 2));
    WRONG("a world of 4294967295", place_at(5, 0, UINT32_MAX));
    WRONG("a world of 1, the member asked for 2 to 3", place_at(5, 0, 1));
    WRONG("a world of 4, the member asked for 2 to 3", place_at(5, 0, 4));
    WRONG("round 0 after round 0", place_at(0, 0, 2));
    for (int i = 0; i < 3; i++) {
        WRONG(i == 2 ? "a table of 1 members" : "member 1: an address", place_at(5, 0, 2));
        places[count - 1].members = tables[i];
        places[count - 1].member_count = i == 2 ? 1 : 2;
    }
    WRONG("another context", place_at(5, 0, 2));
    places[count - 1].store = elsewhere;
    WRONG("reserved is zero", place_at(5, 0, 2));
    places[count - 1].reserved = 1;
    for (size_t i = 0; i < count; i++) {
        muster_error error = {0};
        begin(&f, who, MUSTER_RENDEZVOUS_JOIN, 20 * second, i);
        const uint64_t join = pull(&f, MUSTER_REQUEST_RENDEZVOUS, MUSTER_RENDEZVOUS_REQUEST_JOIN);
        assert_int_equal(muster_rendezvous_request_round(f.requests, join, &places[i], &error), MUSTER_E_ARG);
        expect_text(error.message, texts[i]);
        ended(&f, i, MUSTER_E_PLUGIN);
        expect_text(last.message, "rendezvous yours answers wrongly: ");
        expect_text(last.message, texts[i]);
        assert_int_equal(state_of(who).phase, MUSTER_RENDEZVOUS_PHASE_IDLE);
    }
    /* Numbers count up. */
    for (int again = 0; again < 2; again++) {
        const muster_rendezvous_assignment place = place_at(5, 0, 2);
        begin(&f, who, MUSTER_RENDEZVOUS_JOIN, 20 * second, 1);
        const uint64_t join = pull(&f, MUSTER_REQUEST_RENDEZVOUS, MUSTER_RENDEZVOUS_REQUEST_JOIN);
        assert_int_equal(muster_rendezvous_request_round(f.requests, join, &place, NULL),
                         again ? MUSTER_E_ARG : MUSTER_OK);
        muster_round *round = ended(&f, 1, again ? MUSTER_E_PLUGIN : MUSTER_OK);
        muster_store *none;
        muster_round_member_info member_of_it;
        if (again) break;
        assert_int_equal(muster_round_store(round, &none, NULL), MUSTER_E_UNSUPPORTED);
        assert_int_equal(muster_round_member(round, 0, second, &member_of_it, NULL), MUSTER_E_UNSUPPORTED);
        muster_round_release(round);
    }
    muster_rendezvous_release(who);
    assert_int_equal(pull(&f, MUSTER_REQUEST_CLOSE, 0), id);
    muster_store_release(elsewhere);
    tear_down(&other);
    tear_down(&f);
}

static void test_each_request_is_answered_once_and_as_it_asks(void **state) {
    (void)state;
    fixture f = set_up_pulled();
    uint64_t id;
    muster_rendezvous *who = pulled_member(&f, 1, 1, &id);
    const muster_rendezvous_assignment place = place_at(1, 0, 1);
    char long_text[201] = {0};
    muster_rendezvous_request what;
    muster_config_init(&what, sizeof what);
    assert_int_equal(muster_rendezvous_request_done(f.requests, id, NULL, 0, NULL), MUSTER_E_STALE);
    assert_int_equal(muster_rendezvous_request_fail(f.requests, id, MUSTER_E_PEER, NULL, 0), MUSTER_E_STALE);
    begin(&f, who, MUSTER_RENDEZVOUS_JOIN, 20 * second, 1);
    const uint64_t join = pull(&f, MUSTER_REQUEST_RENDEZVOUS, MUSTER_RENDEZVOUS_REQUEST_JOIN);
    assert_int_equal(muster_rendezvous_request_done(f.requests, join, NULL, 0, NULL), MUSTER_E_ARG);
    assert_int_equal(muster_rendezvous_request_fail(f.requests, join, MUSTER_OK, NULL, 0), MUSTER_E_ARG);
    assert_int_equal(muster_rendezvous_request_fail(f.requests, join, MUSTER_TIMEOUT, NULL, 0), MUSTER_E_ARG);
    assert_int_equal(muster_rendezvous_request_fail(f.requests, join, MUSTER_E_PEER, long_text, 201), MUSTER_E_ARG);
    assert_int_equal(muster_rendezvous_request_fail(f.requests, join, MUSTER_E_PEER, NULL, 1), MUSTER_E_ARG);
    assert_int_equal(muster_rendezvous_request_round(f.requests, join, NULL, NULL), MUSTER_E_ARG);
    assert_int_equal(muster_rendezvous_request_round(f.own, join, &place, NULL), MUSTER_E_STALE);
    assert_int_equal(muster_rendezvous_request_round(NULL, join, &place, NULL), MUSTER_E_ARG);
    assert_int_equal(muster_rendezvous_request_round(f.requests, join + 1, &place, NULL), MUSTER_E_STALE);
    assert_int_equal(muster_rendezvous_request_read(f.requests, join, NULL), MUSTER_E_ARG);
    what.struct_size = 8;
    assert_int_equal(muster_rendezvous_request_read(f.requests, join, &what), MUSTER_E_ABI);
    assert_int_equal(muster_rendezvous_request_round(f.requests, join, &place, NULL), MUSTER_OK);
    assert_int_equal(muster_rendezvous_request_round(f.requests, join, &place, NULL), MUSTER_E_STALE);
    muster_round_release(ended(&f, 1, MUSTER_OK));

    begin(&f, who, MUSTER_RENDEZVOUS_EXIT, 20 * second, 2);
    const uint64_t exits = pull(&f, MUSTER_REQUEST_RENDEZVOUS, MUSTER_RENDEZVOUS_REQUEST_EXIT);
    begin(&f, who, MUSTER_RENDEZVOUS_LEAVE, 20 * second, 3); /* one at a time */
    ended(&f, 3, MUSTER_E_BUSY);
    assert_int_equal(muster_rendezvous_request_round(f.requests, exits, &place, NULL), MUSTER_E_ARG);
    assert_int_equal(muster_rendezvous_request_done(f.requests, exits, "x", 1, NULL), MUSTER_E_ARG);
    assert_int_equal(muster_rendezvous_request_done(f.requests, exits, NULL, 1, NULL), MUSTER_E_ARG);
    assert_int_equal(muster_rendezvous_request_fail(f.requests, exits, MUSTER_E_LIMIT, "no room", 7), MUSTER_OK);
    assert_int_equal(muster_rendezvous_request_done(f.requests, exits, NULL, 0, NULL), MUSTER_E_STALE);
    ended(&f, 2, MUSTER_E_LIMIT);
    assert_string_equal(last.message, "rendezvous \"job\": exit: no room");
    assert_int_equal(state_of(who).phase, MUSTER_RENDEZVOUS_PHASE_JOINED);

    begin(&f, who, MUSTER_RENDEZVOUS_LEAVE, 20 * second, 4);
    assert_int_equal(
        muster_rendezvous_request_done(f.requests, pull(&f, MUSTER_REQUEST_RENDEZVOUS, MUSTER_RENDEZVOUS_REQUEST_LEAVE),
                                       NULL, 0, NULL),
        MUSTER_OK);
    ended(&f, 4, MUSTER_OK);
    begin(&f, who, MUSTER_RENDEZVOUS_LEAVE, 20 * second, 5); /* it is out: nobody has to be asked */
    ended(&f, 5, MUSTER_OK);
    begin(&f, who, MUSTER_RENDEZVOUS_EXIT, 20 * second, 6);
    ended(&f, 6, MUSTER_E_STALE);
    expect_nothing(&f);
    muster_rendezvous_release(who);
    pull(&f, MUSTER_REQUEST_CLOSE, 0);
    tear_down(&f);
}

static void test_a_host_that_does_not_answer_holds_up_nobody(void **state) {
    (void)state;
    fixture f = set_up_pulled();
    opener late = {.f = &f, .config = run_of("a", 1, 1), .timeout = 50 * ms};
    assert_int_equal(pthread_create(&late.thread, NULL, open_it, &late), 0);
    const uint64_t unopened = pull(&f, MUSTER_REQUEST_RENDEZVOUS, MUSTER_RENDEZVOUS_REQUEST_OPEN);
    pthread_join(late.thread, NULL);
    assert_int_equal(late.status, MUSTER_TIMEOUT);
    expect_text(late.error.message, "no answer in time");
    assert_int_equal(pull(&f, MUSTER_REQUEST_CANCEL, 0), unopened);
    assert_int_equal(muster_rendezvous_request_done(f.requests, unopened, NULL, 0, NULL), MUSTER_E_STALE);

    opener refused = {.f = &f, .config = run_of("a", 1, 1), .timeout = 20 * second};
    assert_int_equal(pthread_create(&refused.thread, NULL, open_it, &refused), 0);
    assert_int_equal(muster_rendezvous_request_fail(f.requests,
                                                    pull(&f, MUSTER_REQUEST_RENDEZVOUS, MUSTER_RENDEZVOUS_REQUEST_OPEN),
                                                    MUSTER_E_AUTH, "who is that", 11),
                     MUSTER_OK);
    pthread_join(refused.thread, NULL);
    assert_int_equal(refused.status, MUSTER_E_AUTH);
    assert_string_equal(refused.error.message, "rendezvous \"job\": who is that");

    uint64_t id;
    muster_rendezvous *who = pulled_member(&f, 1, 1, &id);
    const muster_rendezvous_assignment place = place_at(1, 0, 1);
    begin(&f, who, MUSTER_RENDEZVOUS_JOIN, 30 * ms, 1);
    const uint64_t join = pull(&f, MUSTER_REQUEST_RENDEZVOUS, MUSTER_RENDEZVOUS_REQUEST_JOIN);
    ended(&f, 1, MUSTER_TIMEOUT);
    expect_text(last.message, "join: no answer after 0.");
    assert_int_equal(pull(&f, MUSTER_REQUEST_CANCEL, 0), join);
    assert_int_equal(muster_rendezvous_request_round(f.requests, join, &place, NULL), MUSTER_E_STALE);
    assert_int_equal(state_of(who).phase, MUSTER_RENDEZVOUS_PHASE_IDLE);

    begin(&f, who, MUSTER_RENDEZVOUS_JOIN, 1, 2); /* shorter than it takes to ask */
    ended(&f, 2, MUSTER_TIMEOUT);
    pull(&f, MUSTER_REQUEST_RENDEZVOUS, 0);
    pull(&f, MUSTER_REQUEST_CANCEL, 0);

    begin(&f, who, MUSTER_RENDEZVOUS_JOIN, -1, 3);
    pull(&f, MUSTER_REQUEST_RENDEZVOUS, MUSTER_RENDEZVOUS_REQUEST_JOIN);
    assert_int_equal(muster_rendezvous_cancel(who), MUSTER_OK);
    ended(&f, 3, MUSTER_E_CANCELED);
    expect_text(last.message, "cancelled");
    pull(&f, MUSTER_REQUEST_CANCEL, 0);

    begin(&f, who, MUSTER_RENDEZVOUS_JOIN, -1, 4);
    pull(&f, MUSTER_REQUEST_RENDEZVOUS, MUSTER_RENDEZVOUS_REQUEST_JOIN);
    muster_rendezvous_release(who);
    ended(&f, 4, MUSTER_E_CLOSED);
    expect_text(last.message, "the member was released");
    pull(&f, MUSTER_REQUEST_CANCEL, 0);
    assert_int_equal(pull(&f, MUSTER_REQUEST_CLOSE, 0), id);

    /* The end of the context ends what waits, too. */
    who = pulled_member(&f, 1, 1, &id);
    begin(&f, who, MUSTER_RENDEZVOUS_JOIN, -1, 5);
    pull(&f, MUSTER_REQUEST_RENDEZVOUS, MUSTER_RENDEZVOUS_REQUEST_JOIN);
    assert_int_equal(muster_context_close(f.context, 10 * second), MUSTER_OK);
    ended(&f, 5, MUSTER_E_CLOSED);
    muster_rendezvous_event event;
    muster_status status;
    while ((status = muster_rendezvous_next_event(who, 10 * second, &event)) == MUSTER_OK) {
    }
    assert_int_equal(status, MUSTER_E_CLOSED);
    muster_rendezvous_release(who);
    tear_down(&f);
}

static void test_events_are_told_to_those_they_concern(void **state) {
    (void)state;
    fixture f = set_up_pulled();
    uint64_t id;
    muster_rendezvous *who = pulled_member(&f, 2, 2, &id);
    muster_rendezvous_event event;
    const struct {
        uint32_t kind, rank, text_bytes;
        muster_status out, in; /* where the member is */
    } cases[] = {
        {0, 0, 0, MUSTER_E_ARG, MUSTER_E_ARG},
        {11, 0, 0, MUSTER_E_ARG, MUSTER_E_ARG},
        {MUSTER_RENDEZVOUS_COMPLETE, 0, 0, MUSTER_E_ARG, MUSTER_E_ARG},
        {MUSTER_RENDEZVOUS_WAITING, 0, 232, MUSTER_E_ARG, MUSTER_E_ARG},
        {MUSTER_RENDEZVOUS_DEAD, 0, 0, MUSTER_E_STALE, MUSTER_OK},
        {MUSTER_RENDEZVOUS_DEAD, 2, 0, MUSTER_E_STALE, MUSTER_E_ARG},
        {MUSTER_RENDEZVOUS_LEFT, UINT32_MAX, 0, MUSTER_E_STALE, MUSTER_OK},
        {MUSTER_RENDEZVOUS_WAITING, 0, 231, MUSTER_OK, MUSTER_OK},
        {MUSTER_RENDEZVOUS_CLOSED, 0, 0, MUSTER_OK, MUSTER_OK},
        {MUSTER_RENDEZVOUS_EXPELLED, 0, 0, MUSTER_E_STALE, MUSTER_OK},
        {MUSTER_RENDEZVOUS_EXPELLED, 0, 0, MUSTER_E_STALE, MUSTER_E_STALE},
    };
    for (int in = 0; in < 2; in++) {
        if (in) {
            const muster_rendezvous_assignment place = place_at(1, 0, 2);
            begin(&f, who, MUSTER_RENDEZVOUS_JOIN, 20 * second, 1);
            assert_int_equal(
                muster_rendezvous_request_round(
                    f.requests, pull(&f, MUSTER_REQUEST_RENDEZVOUS, MUSTER_RENDEZVOUS_REQUEST_JOIN), &place, NULL),
                MUSTER_OK);
            muster_round_release(ended(&f, 1, MUSTER_OK));
        }
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            memset(&event, 0, sizeof event);
            memset(event.text, '\033', cases[i].text_bytes < 231 ? cases[i].text_bytes : 231);
            event.kind = cases[i].kind;
            event.rank = cases[i].rank;
            event.text_bytes = cases[i].text_bytes;
            event.count = 1;
            const muster_status status = muster_rendezvous_notify(f.requests, id, &event, NULL);
            if (status != (in ? cases[i].in : cases[i].out)) fail_msg("in %d, case %zu: %d", in, i, status);
        }
    }
    assert_int_equal(muster_rendezvous_notify(f.requests, id + 1, &event, NULL), MUSTER_E_STALE);
    assert_int_equal(muster_rendezvous_notify(f.own, id, &event, NULL), MUSTER_E_STALE);
    assert_int_equal(muster_rendezvous_notify(NULL, id, &event, NULL), MUSTER_E_ARG);
    assert_int_equal(muster_rendezvous_notify(f.requests, id, NULL, NULL), MUSTER_E_ARG);
    event = event_of(who, MUSTER_RENDEZVOUS_WAITING);
    assert_int_equal(event.text[0], '.'); /* a terminal is safe from it */
    event_of(who, MUSTER_RENDEZVOUS_EXPELLED);
    assert_int_equal(state_of(who).flags, MUSTER_RENDEZVOUS_IS_CLOSED);

    /* All is lost: whatever waits ends. */
    begin(&f, who, MUSTER_RENDEZVOUS_JOIN, -1, 7);
    pull(&f, MUSTER_REQUEST_RENDEZVOUS, MUSTER_RENDEZVOUS_REQUEST_JOIN);
    memset(&event, 0, sizeof event);
    event.kind = MUSTER_RENDEZVOUS_LOST;
    memcpy(event.text, "gone", 5);
    event.text_bytes = 4;
    assert_int_equal(muster_rendezvous_notify(f.requests, id, &event, NULL), MUSTER_OK);
    ended(&f, 7, MUSTER_E_PEER);
    assert_string_equal(last.message, "rendezvous \"job\": join: gone");
    pull(&f, MUSTER_REQUEST_CANCEL, 0);
    assert_string_equal(event_of(who, MUSTER_RENDEZVOUS_LOST).text, "gone");
    assert_int_equal(muster_rendezvous_notify(f.requests, id, &event, NULL), MUSTER_E_STALE);
    muster_rendezvous_release(who);
    assert_int_equal(pull(&f, MUSTER_REQUEST_CLOSE, 0), id);
    assert_int_equal(muster_rendezvous_notify(f.requests, id, &event, NULL), MUSTER_E_STALE);
    tear_down(&f);
}

static void never_asked(void *self, uint64_t request, const muster_rendezvous_request *what) {
    (void)self;
    fail_msg("request %llu of kind %u", (unsigned long long)request, what->kind);
}

static void test_schemes_are_taken_once_and_given_back(void **state) {
    (void)state;
    fixture f = set_up(), other = set_up();
    muster_rendezvous_ops ops;
    muster_config_init(&ops, sizeof ops);
    assert_int_equal(muster_rendezvous_serve_ops(f.context, "yours", 5, &ops, &f, f.requests, NULL), MUSTER_E_ARG);
    ops.request = never_asked;
    ops.flags = 1;
    assert_int_equal(muster_rendezvous_serve_ops(f.context, "yours", 5, &ops, &f, f.requests, NULL), MUSTER_E_ARG);
    ops.flags = 0;
    ops.struct_size = 4;
    assert_int_equal(muster_rendezvous_serve_ops(f.context, "yours", 5, &ops, &f, f.requests, NULL), MUSTER_E_ABI);
    assert_int_equal(muster_rendezvous_serve_ops(f.context, "yours", 5, NULL, &f, f.requests, NULL), MUSTER_E_ARG);
    static const char *const wrong[] = {"", "Yours", "1st", "a_b", "a-scheme-of-more-than-thirty-one-bytes"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(muster_rendezvous_serve(f.context, wrong[i], strlen(wrong[i]), f.requests, 0, NULL),
                         MUSTER_E_ARG);
    static const char *const taken[] = {"tcp", "memory", "file", "unix", "static"};
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++)
        assert_int_equal(muster_rendezvous_serve(f.context, taken[i], strlen(taken[i]), f.requests, 0, NULL),
                         MUSTER_E_EXISTS);
    assert_int_equal(muster_rendezvous_serve(NULL, "yours", 5, f.requests, 0, NULL), MUSTER_E_ARG);
    assert_int_equal(muster_rendezvous_serve(f.context, NULL, 5, f.requests, 0, NULL), MUSTER_E_ARG);
    assert_int_equal(muster_rendezvous_serve(f.context, "yours", 5, NULL, 0, NULL), MUSTER_E_ARG);
    assert_int_equal(muster_rendezvous_serve(f.context, "yours", 5, other.requests, 0, NULL), MUSTER_E_ARG);
    assert_int_equal(muster_rendezvous_withdraw(f.context, "yours", 5), MUSTER_E_NOT_FOUND);
    assert_int_equal(muster_rendezvous_withdraw(NULL, "yours", 5), MUSTER_E_ARG);

    /* This thread would wait for itself. */
    assert_int_equal(muster_rendezvous_serve(f.context, "yours", 5, f.requests, 0, NULL), MUSTER_OK);
    assert_int_equal(muster_rendezvous_serve(f.context, "yours", 5, f.requests, 0, NULL), MUSTER_E_EXISTS);
    muster_rendezvous_config config = run_of("a", 1, 1);
    muster_rendezvous *who;
    muster_round *round;
    assert_int_equal(muster_rendezvous_open(f.context, &config, 20 * second, &who, NULL), MUSTER_E_WOULD_DEADLOCK);
    muster_completion left; // it had been asked for
    while (muster_queue_next(f.requests, 0, &left, NULL) == MUSTER_OK) {
    }
    assert_int_equal(muster_rendezvous_open(f.context, &config, second, &who, NULL), MUSTER_E_WOULD_DEADLOCK);
    uint64_t id;
    who = pulled_member(&f, 1, 1, &id);
    muster_rendezvous_event event;
    char text[8];
    size_t size;
    assert_int_equal(muster_rendezvous_join(who, second, &round, NULL), MUSTER_E_WOULD_DEADLOCK);
    assert_int_equal(muster_rendezvous_list(who, text, sizeof text, second, &size, NULL), MUSTER_E_WOULD_DEADLOCK);
    assert_int_equal(muster_rendezvous_next_event(who, second, &event), MUSTER_E_WOULD_DEADLOCK);
    assert_int_equal(muster_rendezvous_next_event(who, 0, &event), MUSTER_AGAIN);

    /* Back again, and another time; what was asked meanwhile ends. */
    begin(&f, who, MUSTER_RENDEZVOUS_JOIN, -1, 1);
    const uint64_t join = pull(&f, MUSTER_REQUEST_RENDEZVOUS, MUSTER_RENDEZVOUS_REQUEST_JOIN);
    assert_int_equal(muster_rendezvous_withdraw(f.context, "yours", 5), MUSTER_OK);
    ended(&f, 1, MUSTER_E_CLOSED);
    const muster_rendezvous_assignment place = place_at(1, 0, 1);
    assert_int_equal(muster_rendezvous_request_round(f.requests, join, &place, NULL), MUSTER_E_STALE);
    assert_int_equal(muster_rendezvous_next_event(who, 0, &event), MUSTER_OK);
    assert_int_equal(event.kind, MUSTER_RENDEZVOUS_LOST);
    muster_rendezvous_release(who);
    assert_int_equal(muster_rendezvous_open(f.context, &config, second, &who, NULL), MUSTER_E_NOT_FOUND);
    assert_int_equal(muster_rendezvous_serve(f.context, "yours", 5, f.requests, 0, NULL), MUSTER_OK);
    muster_queue_release(f.requests); /* takes the scheme back, too */
    assert_int_equal(muster_rendezvous_withdraw(f.context, "yours", 5), MUSTER_E_NOT_FOUND);
    f.requests = NULL;
    tear_down(&other);
    tear_down(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places_that_cannot_be_end_the_join),
        cmocka_unit_test(test_each_request_is_answered_once_and_as_it_asks),
        cmocka_unit_test(test_a_host_that_does_not_answer_holds_up_nobody),
        cmocka_unit_test(test_events_are_told_to_those_they_concern),
        cmocka_unit_test(test_schemes_are_taken_once_and_given_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
