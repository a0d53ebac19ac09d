// SPDX-License-Identifier: MIT
// An etcd that is killed, stopped and cut off in the middle of a write: what the status says is so. MUSTER_FAULT_SEED
// and MUSTER_FAULT_SEEDS say which seeds, MUSTER_FAULT_STEPS how many steps each has. ctest: full timeout=300
#include "etcd.h"

#include "../store/fault_driver.h"
#include "../store/fault_relay.h"

static fault_world w;
static fixture f;
static fault_relay relay;
static bool killed, stopped;

static void kill_server(void *self) { // the relay's thread
    (void)self;
    kill(f.server.pid, SIGKILL);
    killed = true;
}
static void arm(void *self, int fault, int point) {
    (void)self, (void)point;
    if (fault == relay_stop_server) {
        stop_process(f.server.pid);
        stopped = true;
    } else {
        relay_arm(&relay, fault);
    }
}
static void heal(void *self) {
    (void)self;
    pthread_mutex_lock(&relay.lock);
    const bool was_killed = killed;
    killed = false;
    relay.fault = relay_none;
    pthread_mutex_unlock(&relay.lock);
    if (was_killed) {
        kill_etcd(&f.server);
        start_etcd(&f.server);
        relay.to = htons((uint16_t)f.server.port);
    }
    if (stopped) kill(f.server.pid, SIGCONT);
    stopped = false;
    relay_heal(&relay);
}

static long from_environment(const char *name, long usual) {
    const char *const text = getenv(name);
    return text != NULL ? atol(text) : usual;
}

static void test_an_etcd_that_fails(void **state) {
    (void)state;
    const long seed = from_environment("MUSTER_FAULT_SEED", 1), seeds = from_environment("MUSTER_FAULT_SEEDS", 2);
    const int steps = (int)from_environment("MUSTER_FAULT_STEPS", 40);
    int verdicts[3] = {0};
    for (long i = seed; i < seed + seeds; i++) {
        make(&f);
        start_etcd(&f.server);
        relay_start(&relay, f.server.port);
        relay.kill = kill_server;
        memset(&w, 0, sizeof w);
        w.name = "etcd";
        w.context = f.context;
        w.queue = f.queue;
        open_at(&f, relay.port, "/faults?timeout=2");
        w.faulty = f.store;
        open_at(&f, f.server.port, "/faults?timeout=60");
        w.direct = f.store;
        w.arm = arm;
        w.heal = heal;
        w.faults = relay_fault_count;
        w.fault_names = relay_fault_names;
        fault_drive(&w, (uint64_t)i, steps);
        for (int k = 0; k < 3; k++) verdicts[k] += w.verdicts[k];
        muster_store_release(w.faulty);
        drop(&f);
        relay_end(&relay);
    }
    printf("etcd: %d not applied, %d applied, %d in doubt\n", verdicts[0], verdicts[1], verdicts[2]);
    for (int k = 0; k < 3; k++) assert_true(verdicts[k] > 0);
}

int main(int argc, char **argv) {
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_an_etcd_that_fails)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
