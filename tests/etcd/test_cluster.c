// SPDX-License-Identifier: MIT
// A store of an etcd of three members whose leader is killed under load.
// ctest: full timeout=200
#include "etcd.h"

#include <stdatomic.h>
#include <stdbool.h>

enum { members = 3, adders = 3, kills = 2 };

typedef struct cluster {
    etcd all[members];
    int peer_ports[members];
    char text[400], names[members][8], peers[members][64];
    const char *options[members][16];
} cluster;

static void describe(cluster *c) {
    size_t size = 0;
    for (int i = 0; i < members; i++) {
        snprintf(c->names[i], sizeof c->names[i], "m%d", i);
        snprintf(c->peers[i], sizeof c->peers[i], "http://127.0.0.1:%d", c->peer_ports[i]);
        size += (size_t)snprintf(c->text + size, sizeof c->text - size, "%s%s=%s", i == 0 ? "" : ",", c->names[i],
                                 c->peers[i]);
    }
    for (int i = 0; i < members; i++) {
        const char *const options[] = {"--name",
                                       c->names[i],
                                       "--listen-peer-urls",
                                       c->peers[i],
                                       "--initial-advertise-peer-urls",
                                       c->peers[i],
                                       "--initial-cluster",
                                       c->text,
                                       "--heartbeat-interval",
                                       "50",
                                       "--election-timeout",
                                       "1000",
                                       NULL};
        memcpy(c->options[i], options, sizeof options);
        c->all[i].options = c->options[i];
    }
}

/* Ports that were free a moment ago; others may have them by now, then with others again. */
static void start_cluster(cluster *c) {
    memset(c, 0, sizeof *c);
    for (bool fine = false; !fine;) {
        for (int i = 0; i < members; i++) {
            make_etcd(&c->all[i]);
            c->peer_ports[i] = any_port();
        }
        describe(c);
        for (int i = 0; i < members; i++) launch_etcd(&c->all[i]);
        fine = true;
        for (int i = 0; i < members && fine; i++) fine = serves_etcd(&c->all[i]) != 0;
        if (fine) return;
        for (int i = 0; i < members; i++) drop_etcd(&c->all[i]);
    }
}

/* The member that leads, as one that lives knows it. */
static int leader_of(const cluster *c, int asked) {
    for (;;) {
        char text[4096], ids[members][64], leader[64];
        ask_etcd(&c->all[asked], "/v3/maintenance/status", "{}", text, sizeof text);
        const char *const found = strstr(text, "\"leader\":\"");
        if (found == NULL || sscanf(found, "\"leader\":\"%63[0-9]", leader) != 1) continue; /* none at the moment */
        for (int i = 0; i < members; i++) {
            ids[i][0] = '\0';
            if (c->all[i].pid == 0) continue;
            ask_etcd(&c->all[i], "/v3/maintenance/status", "{}", text, sizeof text);
            const char *const id = strstr(text, "\"member_id\":\"");
            if (id != NULL && sscanf(id, "\"member_id\":\"%63[0-9]", ids[i]) == 1 && strcmp(ids[i], leader) == 0)
                return i;
        }
    }
}

typedef struct adding {
    muster_store *store;
    atomic_bool *stop;
    int done, doubtful, failed;
    char text[300];
} adding;
static void *add_up(void *argument) {
    adding *a = argument;
    while (!*a->stop) {
        const muster_store_op one = add("sum", 1);
        muster_error error = {0};
        const muster_status status = muster_store_do(a->store, &one, 1, -1, NULL, &error);
        if (status == MUSTER_OK) {
            a->done++;
        } else if (status == MUSTER_E_PEER) {
            a->doubtful++;
        } else {
            a->failed++;
            snprintf(a->text, sizeof a->text, "%s", error.message);
        }
    }
    return NULL;
}

static void test_the_leader_is_killed_under_load(void **state) {
    (void)state;
    cluster c;
    start_cluster(&c);
    fixture f;
    memset(&f, 0, sizeof f);
    assert_int_equal(muster_context_create(NULL, &f.context, NULL), MUSTER_OK);
    assert_int_equal(muster_queue_create(f.context, NULL, &f.queue, NULL), MUSTER_OK);
    char url[300];
    snprintf(url, sizeof url, "etcd://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d/job?timeout=60", c.all[0].port,
             c.all[1].port, c.all[2].port);
    if (open_url(&f, url) != MUSTER_OK) fail_msg("%s", why.message);
    atomic_bool stop = false;
    adding all[adders];
    pthread_t ids[adders];
    for (int i = 0; i < adders; i++) {
        all[i] = (adding){.store = f.store, .stop = &stop};
        assert_int_equal(pthread_create(&ids[i], NULL, add_up, &all[i]), 0);
    }
    begin(&f, op(MUSTER_STORE_GET, "late", ""), 1);
    int64_t reached = 0;
    for (int kill = 0; kill <= kills; kill++) { /* the last time nobody is killed: they go on */
        for (const int64_t enough = reached + 40; reached < enough;) {
            run(&f, add("sum", 0), MUSTER_OK);
            reached = entry(0).number;
        }
        if (kill == kills) break;
        int asked = 0;
        while (c.all[asked].pid == 0) asked++;
        const int leader = leader_of(&c, asked);
        kill_etcd(&c.all[leader]);
        run(&f, add("sum", 0), MUSTER_OK); /* two of three elect another */
        do launch_etcd(&c.all[leader]);
        while (!serves_etcd(&c.all[leader])); /* somebody had its port for a moment */
    }
    run(&f, op(MUSTER_STORE_SET, "late", "x"), MUSTER_OK);
    assert_int_equal(take(&f, MUSTER_OK), 1); /* asked before the first of them died */
    stop = true;
    int64_t done = 0, doubtful = 0;
    for (int i = 0; i < adders; i++) {
        pthread_join(ids[i], NULL);
        if (all[i].failed != 0) fail_msg("%d failed: %s", all[i].failed, all[i].text);
        assert_true(all[i].done > 0);
        done += all[i].done;
        doubtful += all[i].doubtful;
    }
    run(&f, add("sum", 0), MUSTER_OK);
    if (entry(0).number != done || doubtful != 0)
        fail_msg("%lld, %lld were done and %lld perhaps", (long long)entry(0).number, (long long)done,
                 (long long)doubtful);
    muster_store_result_release(last);
    last = NULL;
    muster_store_release(f.store);
    muster_queue_release(f.queue);
    assert_int_equal(muster_context_close(f.context, 10 * second), MUSTER_OK);
    muster_context_release(f.context);
    for (int i = 0; i < members; i++) drop_etcd(&c.all[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_leader_is_killed_under_load)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
