// SPDX-License-Identifier: MIT
// ctest: full timeout=120
// A cluster over a star whose broker has a broker secret: the addresses of the master and the workers have the broker's
// key, so the tickets carry it to the workers, which get the secret by the ticket and know nothing else.
#include "cluster_master.h"

#include <muster/broker.h>

#define BROKER_SECRET "a secret that brokers alone have"

static muster_broker *open_broker(fixture *f, const char *at, const char *secret) {
    muster_broker_config config = {.struct_size = sizeof config, .broker_secret = secret};
    config.broker_secret_bytes = secret != NULL ? strlen(secret) : 0;
    muster_error error = {0};
    muster_broker *broker = NULL;
    if (muster_broker_open(f->context, at, strlen(at), &config, &broker, &error) != MUSTER_OK)
        fail_msg("%s", error.message);
    return broker;
}

static void close_broker(muster_broker *broker) {
    muster_broker_close(broker, 0);
    muster_broker_release(broker);
}

static void test_the_ticket_brings_the_key(void **state) {
    fixture *f = *state;
    muster_broker *const broker = open_broker(f, "zmq://127.0.0.1:0/", BROKER_SECRET);
    char address[256], master[400], workers[400];
    size_t bytes = 0;
    assert_int_equal(muster_broker_address(broker, address, sizeof address, &bytes), MUSTER_OK);
    assert_says(address, "?broker=");
    snprintf(master, sizeof master, "zmq://master@%s&upgrade=no", address + strlen("zmq://"));
    snprintf(workers, sizeof workers, "zmq://worker{}@%s&upgrade=no", address + strlen("zmq://"));
    open_with(f, MUSTER_CLUSTER_ALL_TO_ALL, master, 0);
    muster_launch launch;
    muster_config_init(&launch, sizeof launch);
    launch.listen = workers;
    add_like(f, &launch, "worker", 2);
    await_joined(f, 2);
    assert_talks(f, 1, 2);
    assert_talks(f, 2, 1);
    muster_broker_stats stats;
    assert_int_equal(muster_broker_get_stats(broker, &stats), MUSTER_OK);
    assert_int_equal(stats.refused, 0);
    muster_cluster_close(f->cluster, 10 * second);
    close_broker(broker);
}

// The port of the broker has been taken by a process that has the secret alone.
static void test_a_cluster_does_not_meet_at_a_fake_broker(void **state) {
    fixture *f = *state;
    muster_broker *const genuine = open_broker(f, "zmq://127.0.0.1:0/", BROKER_SECRET);
    char address[256], at[256], master[400];
    size_t bytes = 0;
    assert_int_equal(muster_broker_address(genuine, address, sizeof address, &bytes), MUSTER_OK);
    close_broker(genuine);
    snprintf(at, sizeof at, "%.*s", (int)strcspn(address, "?"), address);
    muster_broker *const fake = open_broker(f, at, NULL);
    snprintf(master, sizeof master, "zmq://master@%s", address + strlen("zmq://"));
    muster_cluster_config config;
    muster_config_init(&config, sizeof config);
    config.listen = master;
    config.listen_bytes = strlen(master);
    muster_error error = {0};
    assert_int_equal(muster_cluster_open(f->context, &config, &f->cluster, &error), MUSTER_E_AUTH);
    assert_says(error.message, "broker key");
    close_broker(fake);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_the_ticket_brings_the_key, set_up, tear_down),
    cmocka_unit_test_setup_teardown(test_a_cluster_does_not_meet_at_a_fake_broker, set_up, tear_down),
};

int main(int count, char **words) {
    find_self();
    const int worked = work_if_asked(count, words);
    if (worked >= 0) return worked;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
