// SPDX-License-Identifier: MIT
// What rendezvous_serve.h promises to members whose rendezvous a host serves by callbacks: worlds, joined again and
// again.
// ctest: quick timeout=60
#include "rendezvous_members.h"

#include <pthread.h>
#include <stdio.h>

/* ---- a host that forms worlds of as many as want to, by callbacks on a thread of its own ---- */

enum { most = 8 };
typedef struct house {
    fixture *f;
    muster_store *store;
    uint64_t number;
    struct {
        uint64_t id, join, exit; /* requests that wait */
        uint32_t rank, min;
        bool in;
        char address[32];
    } members[most];
    int count, destroyed, cancels;
    pthread_t thread;
    pthread_barrier_t open;
    muster_status registered;
} house;

static int place_of(house *h, uint64_t member) {
    for (int i = 0; i < h->count; i++)
        if (h->members[i].id == member) return i;
    fail_msg("there is no member %llu", (unsigned long long)member);
    return -1;
}
static void tell_all(house *h, int but, uint32_t kind, uint32_t rank, uint32_t count, const char *text) {
    muster_rendezvous_event event;
    memset(&event, 0, sizeof event);
    event.kind = kind;
    event.rank = rank;
    event.count = count;
    event.text_bytes = (uint32_t)strlen(text);
    memcpy(event.text, text, event.text_bytes);
    for (int i = 0; i < h->count; i++) {
        if (i == but || !(kind == MUSTER_RENDEZVOUS_JOINED ? h->members[i].join != 0 : h->members[i].in)) continue;
        const muster_status status = muster_rendezvous_notify(h->f->requests, h->members[i].id, &event, NULL);
        /* It may be on its way out of the round itself. */
        if (status != MUSTER_E_STALE) assert_int_equal(status, MUSTER_OK);
    }
}
static void goes(house *h, int who, uint32_t kind, const char *text) {
    if (!h->members[who].in) return;
    h->members[who].in = false;
    tell_all(h, who, kind, h->members[who].rank, 1, text);
}
static void make_round(house *h, uint32_t world) {
    muster_round_member_info table[most];
    memset(table, 0, sizeof table);
    uint32_t rank = 0;
    char prefix[32];
    muster_rendezvous_assignment place;
    muster_config_init(&place, sizeof place);
    place.world = world;
    place.number = ++h->number;
    place.members = table;
    place.member_count = world;
    memset(place.digest, (int)h->number, sizeof place.digest);
    snprintf(prefix, sizeof prefix, "round %d/", (int)h->number);
    assert_int_equal(muster_store_view(h->store, prefix, strlen(prefix), &place.store, NULL), MUSTER_OK);
    for (int i = 0; i < h->count; i++)
        if (h->members[i].join != 0)
            table[rank++] = (muster_round_member_info){h->members[i].address, strlen(h->members[i].address), 0};
    rank = 0;
    for (int i = 0; i < h->count; i++) {
        if (h->members[i].join == 0) continue;
        place.rank = h->members[i].rank = rank++;
        h->members[i].in = true;
        assert_int_equal(muster_rendezvous_request_round(h->f->requests, h->members[i].join, &place, NULL), MUSTER_OK);
        h->members[i].join = 0;
    }
    muster_store_release(place.store);
}
static void house_request(void *self, uint64_t request, const muster_rendezvous_request *what) {
    house *h = self;
    if (what->kind == MUSTER_RENDEZVOUS_REQUEST_OPEN) {
        const muster_rendezvous_config *config = what->config;
        assert_int_equal(what->member, request);
        assert_int_equal(config->url_bytes, 13);
        assert_memory_equal(config->url, "yours://there", 13);
        assert_int_equal(config->run_id_bytes, 3);
        assert_int_equal(config->keep_alive_ns, 6 * second);
        assert_int_equal(config->keep_alive_attempts, 1);
        assert_int_equal(config->last_call_ns, 30 * second);
        h->members[h->count].id = request;
        h->members[h->count].min = config->min;
        snprintf(h->members[h->count++].address, sizeof h->members[0].address, "%.*s", (int)config->address_bytes,
                 (const char *)config->address);
        assert_int_equal(muster_rendezvous_request_done(h->f->requests, request, NULL, 0, NULL), MUSTER_OK);
        return;
    }
    const int who = place_of(h, what->member);
    uint32_t joined = 0, exiting = 0, in = 0;
    char text[most * 33];
    size_t size = 0;
    switch (what->kind) {
    case MUSTER_RENDEZVOUS_REQUEST_JOIN:
        goes(h, who, MUSTER_RENDEZVOUS_LEFT, "");
        h->members[who].join = request;
        for (int i = 0; i < h->count; i++) joined += h->members[i].join != 0, in += h->members[i].in;
        if (in == 0 && joined >= h->members[who].min)
            make_round(h, joined);
        else
            tell_all(h, -1, MUSTER_RENDEZVOUS_JOINED, UINT32_MAX, joined, "");
        return;
    case MUSTER_RENDEZVOUS_REQUEST_EXIT:
        h->members[who].exit = request;
        for (int i = 0; i < h->count; i++) exiting += h->members[i].exit != 0, in += h->members[i].in;
        for (int i = 0; exiting == in && i < h->count; i++) {
            if (h->members[i].exit == 0) continue;
            assert_int_equal(muster_rendezvous_request_done(h->f->requests, h->members[i].exit, NULL, 0, NULL), 0);
            h->members[i].exit = 0;
        }
        return;
    case MUSTER_RENDEZVOUS_REQUEST_LIST:
        for (int i = 0; i < h->count; i++)
            if (h->members[i].join != 0)
                size += (size_t)snprintf(text + size, sizeof text - size, "%s\033\n", h->members[i].address);
        assert_int_equal(muster_rendezvous_request_done(h->f->requests, request, text, size, NULL), MUSTER_OK);
        return;
    case MUSTER_RENDEZVOUS_REQUEST_ABORT:
        assert_int_equal(what->reason_bytes, 3);
        assert_memory_equal(what->reason, "why", 3);
        h->members[who].in = false;
        tell_all(h, who, MUSTER_RENDEZVOUS_ABORTED, UINT32_MAX, 0, "aborted: why");
        for (int i = 0; i < h->count; i++) h->members[i].in = false, h->members[i].exit = 0;
        break;
    case MUSTER_RENDEZVOUS_REQUEST_LEAVE:
        goes(h, who, MUSTER_RENDEZVOUS_LEFT, "");
        h->members[who].join = 0;
        break;
    default:
        tell_all(h, -1, MUSTER_RENDEZVOUS_CLOSED, UINT32_MAX, 0, "closed");
        break;
    }
    assert_int_equal(muster_rendezvous_request_done(h->f->requests, request, NULL, 0, NULL), MUSTER_OK);
}
static void house_cancel(void *self, uint64_t request) {
    house *h = self;
    h->cancels++;
    for (int i = 0; i < h->count; i++) {
        if (h->members[i].join == request) h->members[i].join = 0;
        if (h->members[i].exit == request) h->members[i].exit = 0;
    }
}
static void house_close(void *self, uint64_t member) {
    house *h = self;
    const int who = place_of(h, member);
    goes(h, who, MUSTER_RENDEZVOUS_DEAD, "it was released and had not left");
    h->members[who] = h->members[--h->count];
}
static void house_destroy(void *self) {
    ((house *)self)->destroyed++;
}
/* Who registers a scheme is taken for the one that serves it until somebody does. */
static void *serve(void *self) {
    house *h = self;
    muster_rendezvous_ops ops;
    muster_config_init(&ops, sizeof ops);
    ops.request = house_request;
    ops.cancel = house_cancel;
    ops.close = house_close;
    ops.destroy = house_destroy;
    h->registered = muster_rendezvous_serve_ops(h->f->context, "yours", 5, &ops, h, h->f->requests, NULL);
    pthread_barrier_wait(&h->open);
    while (h->registered == MUSTER_OK && h->destroyed == 0)
        if (muster_queue_dispatch(h->f->requests, 20 * second, NULL, NULL, NULL) != MUSTER_OK) break;
    return NULL;
}
static void begin_house(house *h, fixture *f) {
    memset(h, 0, sizeof *h);
    h->f = f;
    assert_int_equal(muster_store_open(f->context, "memory:", 7, NULL, second, &h->store, NULL), MUSTER_OK);
    assert_int_equal(pthread_barrier_init(&h->open, NULL, 2), 0);
    assert_int_equal(pthread_create(&h->thread, NULL, serve, h), 0);
    pthread_barrier_wait(&h->open);
    assert_int_equal(h->registered, MUSTER_OK);
}
static void end_house(house *h) {
    assert_int_equal(muster_rendezvous_withdraw(h->f->context, "yours", 5), MUSTER_OK);
    pthread_join(h->thread, NULL);
    pthread_barrier_destroy(&h->open);
    assert_int_equal(h->destroyed, 1);
    muster_store_release(h->store);
}
static muster_rendezvous *member(fixture *f, const char *address, uint32_t min, uint32_t max) {
    const muster_rendezvous_config config = run_of(address, min, max);
    muster_rendezvous *made;
    muster_error error;
    if (muster_rendezvous_open(f->context, &config, 10 * second, &made, &error) != MUSTER_OK)
        fail_msg("%s", error.message);
    return made;
}

static void test_a_host_forms_worlds(void **state) {
    (void)state;
    fixture f = set_up();
    house h;
    begin_house(&h, &f);
    muster_rendezvous *who[3];
    muster_round *rounds[3], *before;
    muster_store *views[3];
    static const char *const names[] = {"a", "b", "c"};
    for (int i = 0; i < 3; i++) who[i] = member(&f, names[i], 3, 4);
    for (uint32_t i = 0; i < 3; i++) begin(&f, who[i], MUSTER_RENDEZVOUS_JOIN, 20 * second, 0);
    for (int i = 0; i < 3; i++) muster_round_release(ended(&f, 0, MUSTER_OK));
    char text[64];
    size_t size;
    assert_int_equal(muster_rendezvous_list(who[0], text, sizeof text, second, &size, NULL), MUSTER_OK);
    assert_int_equal(size, 0);

    /* Joins again: the others are told, and the view of the round that is left is over for it alone. */
    for (uint32_t i = 0; i < 3; i++) {
        begin(&f, who[i], MUSTER_RENDEZVOUS_JOIN, 20 * second, i);
        if (i == 0) {
            assert_int_equal(event_of(who[1], MUSTER_RENDEZVOUS_LEFT).rank, 0);
            assert_int_equal(muster_rendezvous_list(who[1], text, sizeof text, second, &size, NULL), MUSTER_OK);
            assert_int_equal(size, 3);
            assert_memory_equal(text, "a.\n", 3);
        }
        if (i == 1) assert_int_equal(event_of(who[1], MUSTER_RENDEZVOUS_JOINED).count, 2);
    }
    for (int i = 0; i < 3; i++) {
        muster_completion done;
        assert_int_equal(muster_queue_next(f.own, 20 * second, &done, NULL), MUSTER_OK);
        assert_int_equal(done.status, MUSTER_OK);
        rounds[done.tag] = done.object;
    }
    for (uint32_t i = 0; i < 3; i++) {
        muster_round_info info;
        muster_round_member_info other;
        assert_int_equal(muster_round_get_info(rounds[i], &info), MUSTER_OK);
        assert_int_equal(info.number, 2);
        assert_int_equal(info.rank, i);
        assert_int_equal(info.world, 3);
        assert_int_equal(info.flags, 0);
        assert_int_equal(info.digest[31], 2);
        const muster_rendezvous_event complete = event_of(who[i], MUSTER_RENDEZVOUS_COMPLETE);
        if (complete.round == 1) assert_int_equal(event_of(who[i], MUSTER_RENDEZVOUS_COMPLETE).round, 2);
        assert_int_equal(state_of(who[i]).phase, MUSTER_RENDEZVOUS_PHASE_JOINED);
        assert_int_equal(state_of(who[i]).present, 3);
        assert_int_equal(muster_round_member(rounds[i], 2, second, &other, NULL), MUSTER_OK);
        assert_int_equal(other.address_bytes, 1);
        assert_memory_equal(other.address, "c", 1);
        assert_int_equal(muster_round_member(rounds[i], 3, second, &other, NULL), MUSTER_E_ARG);
        assert_int_equal(muster_round_store(rounds[i], &views[i], NULL), MUSTER_OK);
    }
    assert_int_equal(ask(views[0], MUSTER_STORE_SET, "v"), MUSTER_OK);
    assert_int_equal(ask(views[2], MUSTER_STORE_GET, ""), MUSTER_OK);

    /* The exit is reached together; who leaves is not waited for. */
    begin(&f, who[0], MUSTER_RENDEZVOUS_EXIT, 20 * second, 10);
    assert_int_equal(muster_rendezvous_leave(who[1], 10 * second, NULL), MUSTER_OK);
    assert_int_equal(event_of(who[2], MUSTER_RENDEZVOUS_LEFT).rank, 1);
    assert_int_equal(state_of(who[2]).present, 2);
    assert_int_equal(ask(views[1], MUSTER_STORE_GET, ""), MUSTER_E_STALE);
    assert_int_equal(muster_rendezvous_exit(who[2], 10 * second, NULL), MUSTER_OK);
    assert_null(ended(&f, 10, MUSTER_OK));

    /* An abort ends the round for all, and whoever waits for its exit. */
    begin(&f, who[0], MUSTER_RENDEZVOUS_EXIT, 20 * second, 11);
    assert_int_equal(muster_rendezvous_abort(who[2], "why", 3, 10 * second, NULL), MUSTER_OK);
    ended(&f, 11, MUSTER_E_STALE);
    expect_text(last.message, "rendezvous \"job\": exit: aborted: why");
    expect_text(event_of(who[0], MUSTER_RENDEZVOUS_ABORTED).text, "aborted: why");
    expect_text(event_of(who[2], MUSTER_RENDEZVOUS_ABORTED).text, "aborted here: why");
    for (int i = 0; i < 3; i++) {
        muster_round_info info;
        assert_int_equal(ask(views[i], MUSTER_STORE_GET, ""), MUSTER_E_STALE);
        assert_int_equal(muster_round_get_info(rounds[i], &info), MUSTER_OK);
        assert_int_equal(info.flags, MUSTER_ROUND_IS_OVER);
        muster_store_release(views[i]);
        muster_round_release(rounds[i]);
    }
    assert_int_equal(muster_rendezvous_abort(who[2], NULL, 0, second, NULL), MUSTER_E_STALE);
    assert_int_equal(muster_rendezvous_close(who[2], "why", 3, second, NULL), MUSTER_OK);

    /* A death: one is released. */
    for (uint32_t i = 0; i < 3; i++) begin(&f, who[i], MUSTER_RENDEZVOUS_JOIN, 20 * second, 1);
    for (int i = 0; i < 3; i++) {
        before = ended(&f, 1, MUSTER_OK);
        muster_round_release(before);
    }
    muster_rendezvous_release(who[0]);
    const muster_rendezvous_event dead = event_of(who[1], MUSTER_RENDEZVOUS_DEAD);
    assert_int_equal(dead.rank, 0);
    assert_int_equal(dead.round, 3);
    expect_text(dead.text, "it was released");
    assert_int_equal(event_of(who[2], MUSTER_RENDEZVOUS_DEAD).count, 1);

    /* The host goes. */
    begin(&f, who[1], MUSTER_RENDEZVOUS_EXIT, -1, 12);
    end_house(&h);
    ended(&f, 12, MUSTER_E_CLOSED);
    expect_text(event_of(who[1], MUSTER_RENDEZVOUS_LOST).text, "it is no longer served");
    assert_int_equal(muster_rendezvous_join(who[1], second, &before, &last), MUSTER_E_CLOSED);
    assert_null(before);
    for (int i = 1; i < 3; i++) muster_rendezvous_release(who[i]);
    tear_down(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_host_forms_worlds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
