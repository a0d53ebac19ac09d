/* SPDX-License-Identifier: MIT */
/* Data-parallel training that survives a death: three processes train one small network on the points of two half
 * moons.
 *
 * In each step a member computes the gradient of its share of the points, and an all-reduce adds them up; so all
 * members have the same parameters. After 200 steps one member kills itself. The others learn of it from the
 * all-reduce, join the next round of the rendezvous, open the next group, and go on with the parameters of the member
 * that is furthest. In the end the starting process compares their loss with that of the same training in one process.
 */
#include "moons.h"

#include <muster/muster.h>

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const int64_t second = 1000000000;
enum { members = 3 };

typedef struct result {
    double loss, accuracy;
} result;

/* ---- a member ---- */

static int failed(const char *what, const muster_error *error) {
    fprintf(stderr, "training: %s: %s\n", what, error->message);
    return 1;
}

/* Trains until the end, or until a member has died: MUSTER_E_PEER. */
static muster_status train(muster_group *group, model *m, bool is_to_die, result *out, muster_error *error) {
    const int rank = (int)muster_group_rank(group), size = (int)muster_group_size(group);
    double own[sums_of_points], sums[sums_of_points], *const all_steps = calloc((size_t)size, sizeof *all_steps);
    /* A member that died may have left the others one step apart: all go on from the last one. */
    muster_status status =
        all_steps ? muster_group_all_gather(group, &m->step, all_steps, 1, MUSTER_TYPE_F64, -1, error) : MUSTER_E_NOMEM;
    uint32_t furthest = 0;
    for (int r = 1; status == MUSTER_OK && r < size; r++)
        if (all_steps[r] > all_steps[furthest]) furthest = (uint32_t)r;
    free(all_steps);
    if (status == MUSTER_OK)
        status = muster_group_broadcast(group, m, sizeof *m / sizeof m->step, MUSTER_TYPE_F64, furthest, -1, error);
    while (status == MUSTER_OK && m->step < steps) {
        evaluate(m, rank, size, own);
        if (is_to_die && m->step == dies_at) raise(SIGKILL);
        status =
            muster_group_all_reduce(group, own, sums, sums_of_points, MUSTER_TYPE_F64, MUSTER_REDUCE_SUM, -1, error);
        if (status == MUSTER_OK) take_step(m, sums);
    }
    if (status != MUSTER_OK) return status;
    *out = (result){sums[sum_of_loss] / points, sums[sum_of_right] / points};
    return muster_group_close(group, 30 * second, error);
}

static muster_status train_in_round(muster_context *context, muster_rendezvous *rendezvous, model *m, bool is_to_die,
                                    result *out, muster_error *error) {
    muster_round *round;
    muster_group *group = NULL;
    muster_status status = muster_rendezvous_join(rendezvous, 60 * second, &round, error);
    if (status != MUSTER_OK) return status;
    static const char listen[] = "tcp://127.0.0.1:0";
    const muster_group_config config = {
        .struct_size = sizeof config, .round = round, .listen = listen, .listen_bytes = sizeof listen - 1};
    status = muster_group_open(context, &config, 30 * second, &group, error);
    if (status == MUSTER_OK) {
        printf("rank %u of %u goes on at step %.0f\n", muster_group_rank(group), muster_group_size(group), m->step);
        status = train(group, m, is_to_die, out, error);
    }
    if (status != MUSTER_OK) printf("rank %u: %s\n", muster_group_rank(group), error->message);
    fflush(stdout);
    muster_group_release(group);
    muster_round_release(round);
    return status;
}

static int be_member(const char *url, bool is_to_die, result *out) {
    static const char secret[] = "the secret of this example";
    const muster_context_config context_config = {
        .struct_size = sizeof context_config, .secret = secret, .secret_bytes = sizeof secret - 1};
    muster_context *context;
    muster_store *store;
    muster_rendezvous *rendezvous;
    muster_error error = {0};
    if (muster_context_create(&context_config, &context, &error) != MUSTER_OK) return failed("context", &error);
    if (muster_store_open(context, url, strlen(url), NULL, 10 * second, &store, &error) != MUSTER_OK)
        return failed("store", &error);
    const muster_rendezvous_config config = {.struct_size = sizeof config,
                                             .run_id = "training",
                                             .run_id_bytes = 8,
                                             .store = store,
                                             .min = members - 1,
                                             .max = members,
                                             .last_call_ns = second};
    if (muster_rendezvous_open(context, &config, 10 * second, &rendezvous, &error) != MUSTER_OK)
        return failed("rendezvous", &error);
    model m;
    start_model(&m);
    muster_status status;
    do { /* a death, also while a group is opened, and what follows from it end the round of this member */
        status = train_in_round(context, rendezvous, &m, is_to_die, out, &error);
    } while (status == MUSTER_E_PEER || status == MUSTER_E_ABORTED || status == MUSTER_E_STALE ||
             status == MUSTER_TIMEOUT);
    if (status != MUSTER_OK) return failed("training", &error);
    muster_rendezvous_leave(rendezvous, 10 * second, NULL);
    muster_rendezvous_release(rendezvous);
    muster_store_release(store);
    muster_context_close(context, second);
    muster_context_release(context);
    return 0;
}

/* ---- the process that starts them ---- */

int main(void) {
    int addresses[2], results[2], ended_well = 0, killed = 0;
    if (pipe(addresses) != 0 || pipe(results) != 0) return perror("training"), 1;
    for (int number = 0; number < members; number++) { /* before this process has threads */
        const pid_t child = fork();
        if (child < 0) return perror("training"), 1;
        if (child != 0) continue;
        char url[256];
        result own = {0};
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (read(addresses[0], url, sizeof url) != sizeof url) return 1;
        const int status = be_member(url, number == 1, &own);
        if (status == 0 && write(results[1], &own, sizeof own) != sizeof own) return 1;
        return status;
    }
    static const char anywhere[] = "tcp://127.0.0.1:0", secret[] = "the secret of this example";
    const muster_context_config config = {
        .struct_size = sizeof config, .secret = secret, .secret_bytes = sizeof secret - 1};
    muster_context *context;
    muster_store_server *server;
    muster_error error = {0};
    char url[256] = "";
    size_t size;
    if (muster_context_create(&config, &context, &error) != MUSTER_OK) return failed("context", &error);
    if (muster_store_server_open(context, anywhere, sizeof anywhere - 1, NULL, &server, &error) != MUSTER_OK)
        return failed("server", &error);
    muster_store_server_address(server, url, sizeof url, &size);
    for (int number = 0; number < members; number++)
        if (write(addresses[1], url, sizeof url) != sizeof url) return perror("training"), 1;
    for (int number = 0, how; number < members; number++) {
        if (wait(&how) < 0) return perror("training"), 1;
        ended_well += WIFEXITED(how) && WEXITSTATUS(how) == 0;
        killed += WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL;
    }
    const double loss = train_alone();
    bool well = ended_well == members - 1 && killed == 1;
    for (int i = 0; i < ended_well; i++) {
        result got = {0};
        if (read(results[0], &got, sizeof got) != sizeof got) return perror("training"), 1;
        printf("a member has loss %.9f and accuracy %.4f; one process alone has loss %.9f\n", got.loss, got.accuracy,
               loss);
        well = well && fabs(got.loss - loss) < 1e-6 && got.accuracy > 0.98;
    }
    puts(well ? "two of three members trained to the end, with the result of one process" : "not as it should be");
    muster_store_server_close(server, second);
    muster_store_server_release(server);
    muster_context_close(context, second);
    muster_context_release(context);
    return well ? 0 : 1;
}
