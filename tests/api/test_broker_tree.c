/* SPDX-License-Identifier: MIT */
// ctest: full timeout=120
/* Brokers below a broker: members reach each other along the tree, and hear of every end that matters to them. */
#include "star.h"

#define REST "/?upgrade=no"

static broker start_below(const broker *parent) {
    broker b = start_broker_at("zmq://127.0.0.1:0/", 0, parent->address);
    AWAIT_FIGURE(&b, s.has_parent == 1);
    return b;
}

static void dial_until_it_works(const member *from, const member *to, between *s) {
    muster_error error = {0};
    if (try_dial(from, to->address, 20 * SECOND, &s->near, &error) != MUSTER_OK) fail_msg("%s", error.message);
    s->far = accept_one(to);
}

// What another broker's member listens at, as a member of this broker dials it: the name counts.
static void by_name(member *as_seen, const char *name, const broker *b) {
    snprintf(as_seen->address, sizeof as_seen->address, "zmq://%s@%s/?%s", name, b->place, b->options);
}

static between across(const member *from, const broker *b, const member *to, const char *name) {
    member seen = {.listener = to->listener};
    between s;
    by_name(&seen, name, b);
    dial_until_it_works(from, &seen, &s);
    transfer(s.near, s.far, 3000000);
    transfer(s.far, s.near, 3000000);
    return s;
}

static void test_members_of_different_brokers_meet(void **state) {
    (void)state;
    broker top = start_broker(0), left = start_below(&top), right = start_below(&top);
    AWAIT_FIGURE(&top, s.brokers == 2);
    member t = join_star(&top, "t", REST), l = join_star(&left, "l", REST), r = join_star(&right, "r", REST);
    AWAIT_FIGURE(&top, s.names == 3);
    between lr = across(&l, &left, &r, "r"), rt = across(&r, &right, &t, "t"), tl = across(&t, &top, &l, "l");
    // A name is taken once in the whole tree.
    member twin = {.context = make_context(0, SECRET)};
    char where[300];
    muster_error error = {0};
    snprintf(where, sizeof where, "zmq://l@%s/?%s", right.place, right.options);
    assert_int_equal(try_listen(&twin, where, 0, &error), MUSTER_E_EXISTS);
    leave_star(&twin);
    // The end of a member is reported to its partners only.
    drop_between(&tl);
    assert_int_equal(muster_context_close(r.context, 0), MUSTER_TIMEOUT); // its streams are cut
    assert_true(read_one(lr.near, 20 * SECOND) < 0);
    assert_true(read_one(rt.far, 20 * SECOND) < 0);
    muster_stream_release(lr.far);
    muster_stream_release(rt.near);
    muster_listener_release(r.listener);
    muster_context_release(r.context);
    AWAIT_FIGURE(&top, s.names == 2);
    muster_stream_release(lr.near);
    muster_stream_release(rt.far);
    between again = across(&l, &left, &t, "t");
    drop_between(&again);
    leave_star(&l);
    leave_star(&t);
    stop_broker(&left);
    stop_broker(&right);
    AWAIT_FIGURE(&top, s.brokers == 0);
    stop_broker(&top);
}

static void test_the_end_of_a_broker_below_is_told(void **state) {
    (void)state;
    broker top = start_broker(0), left = start_below(&top), right = start_below(&top);
    member l = join_star(&left, "l", REST), r = join_star(&right, "r", REST), t = join_star(&top, "t", REST);
    between lr = across(&l, &left, &r, "r"), tl = across(&t, &top, &l, "l"), tr = across(&t, &top, &r, "r");
    stop_broker(&left);
    expect_lost(lr.near, "broker");
    expect_lost(lr.far, "broker");
    expect_lost(tl.near, "broker");
    expect_lost(tl.far, "broker");
    transfer(tr.near, tr.far, 100000); // the others go on
    AWAIT_FIGURE(&top, s.brokers == 1 && s.names == 2);
    drop_between(&lr);
    drop_between(&tl);
    drop_between(&tr);
    leave_star(&l);
    leave_star(&r);
    leave_star(&t);
    stop_broker(&right);
    stop_broker(&top);
}

static void test_the_end_of_the_broker_above_is_told_and_mended(void **state) {
    (void)state;
    broker top = start_broker(0), left = start_below(&top), right = start_below(&top);
    member l = join_star(&left, "l", REST), l2 = join_star(&left, "l2", REST), r = join_star(&right, "r", REST);
    between lr = across(&l, &left, &r, "r"), ll = across(&l, &left, &l2, "l2");
    char at[256];
    snprintf(at, sizeof at, "zmq://%s/", top.place);
    stop_broker(&top);
    expect_lost(lr.near, "broker");
    expect_lost(lr.far, "broker");
    transfer(ll.near, ll.far, 100000); // what one broker joins stays joined
    between local = across(&l2, &left, &l, "l");
    top = start_broker_at(at, 0, NULL);
    AWAIT_FIGURE(&top, s.brokers == 2 && s.names == 3);
    between again = across(&r, &right, &l, "l");
    drop_between(&lr);
    drop_between(&ll);
    drop_between(&local);
    drop_between(&again);
    leave_star(&l);
    leave_star(&l2);
    leave_star(&r);
    stop_broker(&left);
    stop_broker(&right);
    stop_broker(&top);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_members_of_different_brokers_meet),
    cmocka_unit_test(test_the_end_of_a_broker_below_is_told),
    cmocka_unit_test(test_the_end_of_the_broker_above_is_told_and_mended),
};

int main(void) {
    broker_secret = BROKER_SECRET; // a tree needs one
    return cmocka_run_group_tests(tests, need_zmq, NULL);
}
