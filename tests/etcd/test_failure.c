// SPDX-License-Identifier: MIT
// Stores of etcd while etcd dies, comes back, stands still and forgets, and while answers are lost.
// ctest: full timeout=150
#include "etcd.h"

#include <poll.h>

#include <stdatomic.h>

/* ---- an etcd that is killed ---- */

static void test_waits_and_watches_outlive_a_restart(void **state) {
    (void)state;
    fixture f;
    make(&f);
    start_etcd(&f.server);
    open_at(&f, f.server.port, "/job");
    run(&f, op(MUSTER_STORE_SET, "n", "0"), MUSTER_OK);
    muster_store_op watch = op(MUSTER_STORE_WATCH, "", "");
    watch.version = muster_store_result_revision(last);
    begin(&f, watch, 1);
    begin(&f, op(MUSTER_STORE_GET, "later", ""), 2);
    kill_etcd(&f.server);
    start_etcd(&f.server);
    run(&f, op(MUSTER_STORE_SET, "n", "1"), MUSTER_OK); /* by the same store, which has found its way back */
    assert_int_equal(take(&f, MUSTER_OK), 1);
    expect_holds(0, "1");
    watch.version = muster_store_result_revision(last);
    run(&f, op(MUSTER_STORE_SET, "later", "x"), MUSTER_OK);
    assert_int_equal(take(&f, MUSTER_OK), 2);
    expect_holds(0, "x");
    /* Changes while nobody could watch are told as well. */
    muster_store_release(f.store);
    kill_etcd(&f.server);
    start_etcd(&f.server);
    open_at(&f, f.server.port, "/job");
    begin(&f, watch, 3);
    assert_int_equal(take(&f, MUSTER_OK), 3);
    assert_int_equal(muster_store_result_count(last), 1);
    assert_int_equal(entry(0).key_bytes, 5);
    drop(&f);
}

static void test_a_lease_outlives_a_restart(void **state) {
    (void)state;
    fixture f;
    make(&f);
    start_etcd(&f.server);
    open_at(&f, f.server.port, "/job");
    muster_lease *lease;
    assert_int_equal(muster_store_lease(f.store, 3 * second, 0, 10 * second, &lease, &why), MUSTER_OK);
    muster_store_op mine = op(MUSTER_STORE_SET, "leader", "me");
    mine.lease = muster_lease_id(lease);
    run(&f, mine, MUSTER_OK);
    muster_store_op watch = op(MUSTER_STORE_WATCH, "", "");
    watch.version = muster_store_result_revision(last);
    kill_etcd(&f.server);
    start_etcd(&f.server);
    /* Longer than it lasts by itself. */
    assert_int_equal(request(&f, &watch, 1, 7 * second), MUSTER_TIMEOUT);
    run(&f, op(MUSTER_STORE_GET, "leader", ""), MUSTER_OK);
    muster_lease_release(lease);
    assert_int_equal(request(&f, &watch, 1, 30 * second), MUSTER_OK);
    assert_int_equal(entry(0).flags, 0);
    drop(&f);
}

typedef struct counting {
    fixture *f;
    int done, doubtful, failed;
} counting;
static void *count_up(void *argument) {
    counting *c = argument;
    for (int i = 0; i < 150; i++) {
        const muster_store_op one = add("sum", 1);
        muster_error error;
        const muster_status status = muster_store_do(c->f->store, &one, 1, -1, NULL, &error);
        if (status == MUSTER_OK)
            c->done++;
        else if (status == MUSTER_E_PEER)
            c->doubtful++;
        else
            c->failed++;
    }
    return NULL;
}

static void test_nothing_is_added_twice(void **state) {
    (void)state;
    fixture f;
    make(&f);
    start_etcd(&f.server);
    open_at(&f, f.server.port, "/job");
    counting threads[3];
    pthread_t ids[3];
    for (int i = 0; i < 3; i++) {
        threads[i] = (counting){.f = &f};
        assert_int_equal(pthread_create(&ids[i], NULL, count_up, &threads[i]), 0);
    }
    for (int kills = 0; kills < 3; kills++) { /* each time in the middle of it */
        muster_store_op watch = op(MUSTER_STORE_WATCH, "sum", "");
        const muster_store_op look = op(MUSTER_STORE_READ, "sum", "");
        assert_int_equal(request(&f, &look, 1, 30 * second), MUSTER_OK);
        for (int changes = 0; changes < 20; changes++) {
            watch.version = muster_store_result_revision(last);
            if (request(&f, &watch, 1, 2 * second) != MUSTER_OK) break;
        }
        kill_etcd(&f.server);
        start_etcd(&f.server);
    }
    int done = 0, doubtful = 0;
    for (int i = 0; i < 3; i++) {
        pthread_join(ids[i], NULL);
        assert_int_equal(threads[i].failed, 0);
        done += threads[i].done;
        doubtful += threads[i].doubtful;
    }
    run(&f, add("sum", 0), MUSTER_OK);
    if (entry(0).number < done || entry(0).number > done + doubtful)
        fail_msg("%lld, %d were done and %d perhaps", (long long)entry(0).number, done, doubtful);
    assert_int_equal(doubtful, 0); /* it was back in time */
    drop(&f);
}

static void test_nobody_there(void **state) {
    (void)state;
    fixture f;
    make(&f);
    int64_t begun = now();
    assert_int_equal(try_open(&f, f.server.port, "/x?timeout=1"), MUSTER_E_UNREACHABLE);
    assert_true(now() - begun < 10 * second);
    expect_text("tried for 1.");
    start_etcd(&f.server);
    /* One of two members answers. */
    char url[200];
    snprintf(url, sizeof url, "etcd://127.0.0.1:%d,127.0.0.1:%d/x?timeout=1", any_port(), f.server.port);
    assert_int_equal(open_url(&f, url), MUSTER_OK);
    run(&f, op(MUSTER_STORE_SET, "k", "v"), MUSTER_OK);
    stop_process(f.server.pid); /* it takes what is sent, and says nothing */
    const muster_store_op set = op(MUSTER_STORE_SET, "k", "w"), look = op(MUSTER_STORE_READ, "k", "");
    assert_int_equal(request(&f, &set, 1, 300 * ms), MUSTER_E_PEER);
    expect_text("set \"k\": store etcd://");
    expect_text("has not answered within 0.3");
    expect_text("it may have been applied");
    assert_int_equal(request(&f, &look, 1, 300 * ms), MUSTER_TIMEOUT);
    assert_null(strstr(why.message, "may have been"));
    kill(f.server.pid, SIGCONT);
    run(&f, op(MUSTER_STORE_SET, "k", "x"), MUSTER_OK);
    begin(&f, op(MUSTER_STORE_GET, "never", ""), 1);
    run(&f, op(MUSTER_STORE_READ, "k", ""), MUSTER_OK);
    kill_etcd(&f.server);
    begun = now();
    run(&f, op(MUSTER_STORE_SET, "k", "v"), MUSTER_E_UNREACHABLE);
    expect_text("set \"k\": http://127.0.0.1:");
    take(&f, MUSTER_E_UNREACHABLE);                                                      /* what waits is told, too */
    if (strstr(why.message, "tried for") == NULL) expect_text("no etcd can be watched"); /* it reads, or waits by now */
    expect_text("get \"never\": ");
    assert_true(now() - begun < 15 * second);
    drop(&f);
}

/* ---- an etcd that forgets ---- */

static void test_compacted(void **state) {
    (void)state;
    fixture f;
    make(&f);
    start_etcd(&f.server);
    open_at(&f, f.server.port, "/job");
    run(&f, op(MUSTER_STORE_SET, "a", "1"), MUSTER_OK);
    muster_store_op watch = op(MUSTER_STORE_WATCH, "", "");
    watch.version = muster_store_result_revision(last);
    for (int i = 0; i < 5; i++) run(&f, op(MUSTER_STORE_SET, "a", "2"), MUSTER_OK);
    char body[64];
    snprintf(body, sizeof body, "{\"revision\":\"%llu\"}", (unsigned long long)muster_store_result_revision(last));
    muster_store_op later = watch;
    later.version = muster_store_result_revision(last);
    begin(&f, later, 1);
    begin(&f, op(MUSTER_STORE_GET, "b", ""), 2);
    run(&f, op(MUSTER_STORE_READ, "a", ""), MUSTER_OK);
    post(&f.server, "/v3/kv/compaction", body, "200 OK");
    run(&f, watch, MUSTER_E_STALE);
    expect_text("watch \"\": changes behind revision");
    run(&f, op(MUSTER_STORE_SET, "b", "3"), MUSTER_OK); /* what waits has missed nothing */
    assert_int_equal(take(&f, MUSTER_OK) + take(&f, MUSTER_OK), 3);
    drop(&f);
}

/* ---- answers that are lost ---- */

/* Passes bytes on between the store and etcd. Armed, it takes the next transaction to etcd, and loses the answer. */
typedef struct lossy {
    int port, to, door;
    atomic_int armed, lost, stopping;
    pthread_t thread;
} lossy;
typedef struct way {
    lossy *through;
    int near, far;
} way;

static int dial(int port) {
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(s, (struct sockaddr *)&address, sizeof address) == 0) return s;
    close(s);
    return -1;
}
static void *carry_back(void *argument) {
    way *w = argument;
    char piece[65536];
    ssize_t n;
    while ((n = recv(w->far, piece, sizeof piece, 0)) > 0) {
        if (w->through->armed == 2) { /* this is the answer */
            w->through->armed = 0;
            w->through->lost++;
            break;
        }
        if (send(w->near, piece, (size_t)n, MSG_NOSIGNAL) != n) break;
    }
    shutdown(w->near, SHUT_RDWR);
    shutdown(w->far, SHUT_RDWR);
    return NULL;
}
static void *carry(void *argument) {
    way *w = argument;
    pthread_t back;
    char piece[65536];
    ssize_t n;
    pthread_create(&back, NULL, carry_back, w);
    while ((n = recv(w->near, piece, sizeof piece - 1, 0)) > 0) {
        piece[n] = '\0';
        if (w->through->armed == 1 && strstr(piece, "/v3/kv/txn") != NULL && strstr(piece, "request_put") != NULL)
            w->through->armed = 2;
        if (send(w->far, piece, (size_t)n, MSG_NOSIGNAL) != n) break;
    }
    shutdown(w->near, SHUT_RDWR);
    shutdown(w->far, SHUT_RDWR);
    pthread_join(back, NULL);
    close(w->near);
    close(w->far);
    free(w);
    return NULL;
}
static void *accept_all(void *argument) {
    lossy *l = argument;
    int near;
    while ((near = accept4(l->door, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        way *w = malloc(sizeof *w);
        *w = (way){l, near, dial(l->to)};
        pthread_t thread;
        pthread_create(&thread, NULL, carry, w);
        pthread_detach(thread);
    }
    return NULL;
}
static void start_lossy(lossy *l, int to) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    memset(l, 0, sizeof *l);
    l->to = to;
    l->door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(l->door, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(l->door, 64), 0);
    assert_int_equal(getsockname(l->door, (struct sockaddr *)&address, &size), 0);
    l->port = ntohs(address.sin_port);
    assert_int_equal(pthread_create(&l->thread, NULL, accept_all, l), 0);
}

static void test_the_answer_to_a_write_is_lost(void **state) {
    (void)state;
    fixture f;
    make(&f);
    start_etcd(&f.server);
    lossy between;
    start_lossy(&between, f.server.port);
    open_at(&f, between.port, "/job");
    run(&f, op(MUSTER_STORE_SET, "there", "1"), MUSTER_OK);
    run(&f, add("n", 1), MUSTER_OK);
    int lost = 0;
    /* The first to set it is told so, though it was there when it asked again. */
    muster_store_op first = op(MUSTER_STORE_SET, "leader", "me");
    first.condition = MUSTER_STORE_IF_ABSENT;
    between.armed = 1;
    run(&f, first, MUSTER_OK);
    assert_int_equal(between.lost, ++lost);
    const uint64_t version = entry(0).version;
    assert_int_equal(version, muster_store_result_revision(last));
    run(&f, op(MUSTER_STORE_GET, "leader", ""), MUSTER_OK);
    assert_int_equal(entry(0).version, version);
    /* Added once. */
    between.armed = 1;
    run(&f, add("n", 5), MUSTER_OK);
    assert_int_equal(between.lost, ++lost);
    assert_int_equal(entry(0).number, 6);
    run(&f, op(MUSTER_STORE_GET, "n", ""), MUSTER_OK);
    expect_holds(0, "6");
    /* What was deleted was there, what was read was so at that moment. */
    muster_store_op list = op(MUSTER_STORE_LIST, "", ""), count = op(MUSTER_STORE_COUNT, "", "");
    const muster_store_op ops[] = {op(MUSTER_STORE_DELETE, "there", ""), op(MUSTER_STORE_READ, "leader", ""), list,
                                   op(MUSTER_STORE_DELETE, "never", ""), count};
    between.armed = 1;
    assert_int_equal(request(&f, ops, 5, 30 * second), MUSTER_OK);
    assert_int_equal(between.lost, ++lost);
    assert_int_equal(muster_store_result_count(last), 6);
    assert_int_equal(entry(0).flags, MUSTER_STORE_PRESENT);
    expect_holds(1, "me");
    expect_holds(2, "me");
    expect_holds(3, "6");
    assert_int_equal(entry(4).flags, 0);
    assert_int_equal(entry(5).number, 2);
    /* One that does not hold, and whose answer is lost as well. */
    between.armed = 1;
    run(&f, first, MUSTER_E_CHANGED);
    assert_int_equal(between.lost, ++lost);
    expect_holds(0, "me");
    between.armed = 1; /* with a list, and numbers */
    const muster_store_op more[] = {add("n", 1), add("n", 1), op(MUSTER_STORE_LIST, "n", "")};
    assert_int_equal(request(&f, more, 3, 30 * second), MUSTER_OK);
    assert_int_equal(between.lost, ++lost);
    assert_int_equal(entry(1).number, 8);
    expect_holds(2, "8");
    shutdown(between.door, SHUT_RDWR);
    pthread_join(between.thread, NULL);
    close(between.door);
    drop(&f);
}

/* ---- answers that are none ---- */

typedef struct fake {
    int listener, wake[2], requests;
    const char *answer;
    pthread_t thread;
} fake;

/* Each connection is asked once. */
static void *answer_all(void *raw) {
    fake *f = raw;
    for (;;) {
        struct pollfd who[2] = {{f->listener, POLLIN, 0}, {f->wake[0], POLLIN, 0}};
        poll(who, 2, -1);
        if (who[1].revents) return NULL;
        const int s = accept4(f->listener, NULL, NULL, SOCK_CLOEXEC);
        char bytes[4096];
        if (recv(s, bytes, sizeof bytes, 0) > 0) {
            f->requests++;
            char reply[256];
            const int n = snprintf(reply, sizeof reply,
                                   "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
                                   "Connection: close\r\n\r\n%s",
                                   strlen(f->answer), f->answer);
            send(s, reply, (size_t)n, MSG_NOSIGNAL);
        }
        close(s);
    }
}

static void start_fake(fake *f, int port, const char *answer) {
    memset(f, 0, sizeof *f);
    f->answer = answer;
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)port)};
    const int yes = 1;
    f->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(f->listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    assert_int_equal(bind(f->listener, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(f->listener, 64), 0);
    assert_int_equal(pipe2(f->wake, O_CLOEXEC), 0);
    assert_int_equal(pthread_create(&f->thread, NULL, answer_all, f), 0);
}

static int end_fake(fake *f) {
    assert_int_equal(write(f->wake[1], "", 1), 1);
    pthread_join(f->thread, NULL);
    close(f->wake[0]);
    close(f->wake[1]);
    close(f->listener);
    return f->requests;
}

/* In place of the etcd something else answers each request: it is asked again with pauses, and not as if it were one.
 */
static void test_answers_that_are_none_of_an_etcd(void **state) {
    (void)state;
    static const char *const answers[] = {"{}", "{\"result\":{\"created\":true}}"};
    for (int i = 0; i < 2; i++) {
        fixture f;
        make(&f);
        start_etcd(&f.server);
        assert_int_equal(try_open(&f, f.server.port, "/x?timeout=1"), MUSTER_OK);
        run(&f, op(MUSTER_STORE_SET, "k", "v"), MUSTER_OK);
        begin(&f, op(MUSTER_STORE_GET, "never", ""), 1);
        run(&f, op(MUSTER_STORE_READ, "k", ""), MUSTER_OK);
        kill_etcd(&f.server);
        fake other;
        start_fake(&other, f.server.port, answers[i]);
        const muster_store_op add = op(MUSTER_STORE_SET, "k", "w"), look = op(MUSTER_STORE_READ, "k", "");
        assert_int_equal(request(&f, &add, 1, 5 * second), MUSTER_E_PEER);
        expect_text("may have been applied");
        assert_int_equal(request(&f, &look, 1, 5 * second), MUSTER_E_UNREACHABLE);
        expect_text("no header");
        assert_in_range(end_fake(&other), 1, 200);
        drop(&f);
    }
}

int main(int argc, char **argv) {
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waits_and_watches_outlive_a_restart),
        cmocka_unit_test(test_a_lease_outlives_a_restart),
        cmocka_unit_test(test_nothing_is_added_twice),
        cmocka_unit_test(test_nobody_there),
        cmocka_unit_test(test_compacted),
        cmocka_unit_test(test_answers_that_are_none_of_an_etcd),
        cmocka_unit_test(test_the_answer_to_a_write_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
