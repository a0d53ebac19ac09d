/* SPDX-License-Identifier: MIT */
/* A member of examples/world: a rank of MPI. */
#include <muster/muster.h>

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const int64_t second = 1000000000;
static const double own = 16; /* each member adds another power of two, so the sum shows which members take part */

static void must(const char *what, muster_status status, const muster_error *error) {
    if (status == MUSTER_OK) return;
    printf("%s: %s\n", what, error->message_bytes ? error->message : muster_status_text(status));
    exit(1);
}

/* The status of the sum. */
static muster_status add(muster_group *group, double expected, muster_error *error) {
    double numbers[1000];
    for (int i = 0; i < 1000; i++) numbers[i] = own;
    const muster_status status =
        muster_group_all_reduce(group, NULL, numbers, 1000, MUSTER_TYPE_F64, MUSTER_REDUCE_SUM, 60 * second, error);
    for (int i = 0; status == MUSTER_OK && i < 1000; i++)
        if (numbers[i] != expected) must("wrong", MUSTER_E_INTERNAL, error);
    return status;
}

static uint32_t take_part(muster_context *context, muster_rendezvous *run) {
    muster_error error = {0};
    muster_round *round;
    muster_round_info info;
    muster_group *group;
    static const char listen[] = "tcp://127.0.0.1:0", name[] = "group";
    must("join", muster_rendezvous_join(run, 60 * second, &round, &error), &error);
    must("round", muster_round_get_info(round, &info), &error);
    const muster_group_config config = {.struct_size = sizeof config,
                                        .round = round,
                                        .name = name,
                                        .name_bytes = sizeof name - 1,
                                        .listen = listen,
                                        .listen_bytes = sizeof listen - 1};
    must("group", muster_group_open(context, &config, 60 * second, &group, &error), &error);
    double members = own;
    muster_status status =
        muster_group_all_reduce(group, NULL, &members, 1, MUSTER_TYPE_F64, MUSTER_REDUCE_SUM, 60 * second, &error);
    if (status == MUSTER_OK) status = add(group, members, &error);
    if (status == MUSTER_OK)
        printf("%u members in round %llu, the sum is right\n", info.world, (unsigned long long)info.number);
    for (int count = 1; status == MUSTER_OK && (info.world == 5 || count < 20); count++)
        status = add(group, members, &error); /* with five, until one of them dies */
    if (status == MUSTER_OK)
        must("close", muster_group_close(group, 60 * second, &error), &error);
    else
        printf("%s\n", error.message);
    fflush(stdout);
    muster_group_release(group);
    muster_round_release(round);
    return info.world;
}

int main(int argc, char **argv) {
    muster_error error = {0};
    muster_context *context;
    muster_store *store;
    muster_metrics *metrics;
    muster_rendezvous *run;
    static const char key[] = "start", run_id[] = "world", name[] = "mpi";
    int thread_level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &thread_level);
    if (argc != 2) return 2;
    must("context", muster_context_create(NULL, &context, &error), &error);
    must("store", muster_store_open(context, argv[1], strlen(argv[1]), NULL, 30 * second, &store, &error), &error);
    const muster_metrics_config published = {
        .struct_size = sizeof published, .name = name, .name_bytes = sizeof name - 1, .interval_ns = second / 2};
    must("metrics", muster_metrics_publish(context, store, &published, &metrics, &error), &error);
    const muster_rendezvous_config config = {.struct_size = sizeof config,
                                             .run_id = run_id,
                                             .run_id_bytes = sizeof run_id - 1,
                                             .store = store,
                                             .min = 4,
                                             .max = 5,
                                             .last_call_ns = 2 * second};
    must("rendezvous", muster_rendezvous_open(context, &config, 30 * second, &run, &error), &error);
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    const muster_store_op start = {.kind = MUSTER_STORE_GET, .key = key, .key_bytes = sizeof key - 1};
    muster_store_result *value;
    must("start", muster_store_do(store, &start, 1, -1, &value, &error), &error);
    muster_store_result_release(value);
    while (take_part(context, run) == 5) {
    }
    must("exit", muster_rendezvous_exit(run, 60 * second, &error), &error);
    muster_rendezvous_release(run);
    muster_metrics_release(metrics);
    muster_store_release(store);
    muster_context_close(context, 10 * second);
    muster_context_release(context);
    MPI_Finalize();
    return 0;
}
