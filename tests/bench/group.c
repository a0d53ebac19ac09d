/* SPDX-License-Identifier: MIT */
/* Collective operations of Muster, between processes of one host; see collective.h. Further:
 *   --what death   one of the ranks is killed during an all-reduce: until the last survivor has its rank, as `ms`
 *   --what idle    the members wait in a barrier for two seconds: the share of a processor that one uses, as `percent`
 */
#include "collective.h"

#include <muster/muster.h>

#include <signal.h>
#include <sys/resource.h>

static muster_group *group;

static void check(const char *where, muster_status status, const muster_error *error) {
    if (status != MUSTER_OK) die(where, error->message_bytes ? error->message : muster_status_name(status));
}
static void op_barrier(void) {
    muster_error error = {0};
    check("barrier", muster_group_barrier(group, -1, &error), &error);
}
static void op_broadcast(float *data, size_t count) {
    muster_error error = {0};
    check("broadcast", muster_group_broadcast(group, data, count, MUSTER_TYPE_F32, 0, -1, &error), &error);
}
static void op_all_reduce(const float *input, float *output, size_t count) {
    muster_error error = {0};
    check("all-reduce",
          muster_group_all_reduce(group, input, output, count, MUSTER_TYPE_F32, MUSTER_REDUCE_SUM, -1, &error), &error);
}
static void op_reduce_scatter(const float *input, float *output, size_t count) {
    muster_error error = {0};
    check("reduce-scatter",
          muster_group_reduce_scatter(group, input, output, count, MUSTER_TYPE_F32, MUSTER_REDUCE_SUM, -1, &error),
          &error);
}

struct member {
    const struct collective *collective;
    int rank,
        times; /* where a survivor writes when it knew; the member that is killed, when it has performed operations */
    char store[300];
};

static void wait_for_death(const struct member *me) {
    const size_t count = me->collective->size / sizeof(float);
    float *const data = (float *)buffer(me->collective->size);
    muster_error error = {0};
    const muster_group *const alive = group;
    for (int round = 0;
         muster_group_all_reduce(group, NULL, data, count, MUSTER_TYPE_F32, MUSTER_REDUCE_SUM, -1, &error) == MUSTER_OK;
         round++)
        if (round == 3 && me->rank == me->collective->ranks - 1 &&
            write(me->times, &count, sizeof count) != sizeof count)
            die_errno("write");
    const double at = now_us();
    if (error.status != MUSTER_E_PEER || error.rank != muster_group_size(alive) - 1) die("death", error.message);
    if (write(me->times, &at, sizeof at) != sizeof at) die_errno("write");
}

static void wait_idle(const struct member *me) {
    struct rusage before, after;
    op_barrier();
    getrusage(RUSAGE_SELF, &before);
    if (me->rank == 1) sleep(2); /* no event: what is measured is how the others wait in this time */
    op_barrier();
    getrusage(RUSAGE_SELF, &after);
    const double used =
        (double)(after.ru_utime.tv_sec - before.ru_utime.tv_sec + after.ru_stime.tv_sec - before.ru_stime.tv_sec) +
        1e-6 * (double)(after.ru_utime.tv_usec - before.ru_utime.tv_usec + after.ru_stime.tv_usec -
                        before.ru_stime.tv_usec);
    if (me->rank == 0) printf("percent\t%.6g\n", 100 * used / 2);
}

static void run_member(void *argument) {
    struct member *me = argument;
    static const char secret[] = "all members of the benchmark know this", listen[] = "tcp://127.0.0.1:0";
    muster_context_config config = {.struct_size = sizeof config, .secret = secret, .secret_bytes = sizeof secret - 1};
    muster_context *context = NULL;
    muster_store *store = NULL;
    muster_error error = {0};
    check("context", muster_context_create(&config, &context, &error), &error);
    check("store", muster_store_open(context, me->store, strlen(me->store), NULL, 10000000000, &store, &error), &error);
    const muster_group_config members = {.struct_size = sizeof members,
                                         .flags = getenv("BENCH_STREAMS") ? MUSTER_GROUP_NO_SHARED_MEMORY : 0,
                                         .rank = (uint32_t)me->rank,
                                         .size = (uint32_t)me->collective->ranks,
                                         .store = store,
                                         .listen = listen,
                                         .listen_bytes = sizeof listen - 1,
                                         .slot_bytes =
                                             getenv("BENCH_SLOT") ? (uint64_t)atoll(getenv("BENCH_SLOT")) : 0};
    check("group", muster_group_open(context, &members, 60000000000, &group, &error), &error);
    if (!strcmp(me->collective->what, "death"))
        wait_for_death(me);
    else if (!strcmp(me->collective->what, "idle"))
        wait_idle(me);
    else
        run_collective(me->collective, me->rank);
    if (strcmp(me->collective->what, "death") != 0)
        check("close", muster_group_close(group, 60000000000, &error), &error);
    muster_group_release(group);
    muster_store_release(store);
    muster_context_release(context);
}

int main(int argc, char **argv) {
    const struct collective c = read_collective(argc, argv);
    const int is_death = !strcmp(c.what, "death");
    int times[2], address[2];
    if (pipe(times) != 0 || pipe(address) != 0) die_errno("pipe");
    pid_t children[256];
    struct member me = {.collective = &c, .times = times[1]};
    if (c.ranks < 1 || c.ranks > 256) die("ranks", "1 to 256");
    for (int r = 0; r < c.ranks; r++) { /* before this process has a context: each waits for the address of the store */
        me.rank = r;
        fflush(stdout);
        children[r] = fork();
        if (children[r] < 0) die_errno("fork");
        if (children[r] != 0) continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (read(address[0], me.store, sizeof me.store) != sizeof me.store) die("address", "none came");
        run_member(&me);
        fflush(stdout);
        _exit(0);
    }
    static const char secret[] = "all members of the benchmark know this";
    muster_context_config config = {.struct_size = sizeof config, .secret = secret, .secret_bytes = sizeof secret - 1};
    muster_store_server_config serves = {.struct_size = sizeof serves};
    muster_context *context = NULL;
    muster_store_server *server = NULL;
    muster_error error = {0};
    size_t bytes = 0;
    check("context", muster_context_create(&config, &context, &error), &error);
    check("server", muster_store_server_open(context, "tcp://127.0.0.1:0", 17, &serves, &server, &error), &error);
    check("address", muster_store_server_address(server, me.store, sizeof me.store, &bytes), &error);
    for (int r = 0; r < c.ranks; r++)
        if (write(address[1], me.store, sizeof me.store) != sizeof me.store) die_errno("write");
    double killed = 0, last = 0;
    if (is_death) {
        double begun; /* it happens in the middle of an operation, wherever that is */
        if (read(times[0], &begun, sizeof begun) != sizeof begun) die_errno("read");
        killed = now_us();
        kill(children[c.ranks - 1], SIGKILL);
        for (int r = 0; r + 1 < c.ranks; r++) {
            double at = 0;
            if (read(times[0], &at, sizeof at) != sizeof at) die_errno("read");
            if (at > last) last = at;
        }
        printf("ms\t%.6g\n", (last - killed) * 1e-3);
    }
    for (int r = 0; r < c.ranks; r++) {
        int status = 0;
        waitpid(children[r], &status, 0);
        if (status != 0 && !(is_death && r == c.ranks - 1)) die("a member", "failed");
    }
    muster_store_server_release(server);
    muster_context_release(context);
    return 0;
}
