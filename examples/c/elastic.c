/* SPDX-License-Identifier: MIT */
/* An elastic group: at any time its members know the sum of the numbers of all members, while members join and leave.
 *
 *   elastic                        starts three members, kills one, starts another later, and checks their output
 *   elastic --member URL NUMBER    one member; it ends when the key "finish" is set in the store at URL
 *
 * A round of the rendezvous is one world of members. Each writes its number to the store of that round, and reads those
 * of all others; when a member dies, or a process waits to join, all join again. The starting process serves the store;
 * the secret of the job is passed to the members through a pipe, since a command line is public. */
#include <muster/muster.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const int64_t second = 1000000000;
enum { secret_fd = 3, most_members = 3, tag_events = 1, tag_finish = 2, tag_sum = 3 /* and the number of the round */ };

static int failed(const char *what, const muster_error *error) {
    fprintf(stderr, "elastic: %s: %s\n", what, error->message);
    return 1;
}

static muster_store_op op(uint32_t kind, const char *key) {
    return (muster_store_op){.kind = kind, .key = key, .key_bytes = strlen(key)};
}

static muster_store_op set(const char *key, const char *value) {
    muster_store_op made = op(MUSTER_STORE_SET, key);
    made.value = value;
    made.value_bytes = strlen(value);
    return made;
}

/* ---- a member ---- */

typedef struct member {
    muster_queue *queue;
    muster_rendezvous *rendezvous;
    int number;
    bool finish; /* the key "finish" is set */
} member;

/* Begins to read the number of each rank of the round: a GET, since the rank may not have written it yet. */
static muster_status ask_all(member *m, muster_store *store, const muster_round_info *round, muster_error *error) {
    muster_store_op parts[most_members];
    char keys[most_members][32];
    for (uint32_t rank = 0; rank < round->world; rank++) {
        snprintf(keys[rank], sizeof keys[rank], "part/%u", rank);
        parts[rank] = op(MUSTER_STORE_GET, keys[rank]);
    }
    return muster_store_begin(store, parts, round->world, -1, m->queue, tag_sum + round->number, NULL, error);
}

static int sum_of(const muster_store_result *parts) {
    int sum = 0;
    for (uint64_t i = 0; i < muster_store_result_count(parts); i++) {
        muster_store_entry entry;
        char text[16];
        muster_store_result_entry(parts, i, &entry);
        snprintf(text, sizeof text, "%.*s", (int)entry.value_bytes, (const char *)entry.value);
        sum += atoi(text);
    }
    return sum;
}

/* Has an event changed the membership of this round? */
static bool look_at_events(member *m, uint64_t round) {
    muster_rendezvous_event event;
    bool over = false;
    while (muster_rendezvous_next_event(m->rendezvous, 0, &event) == MUSTER_OK) {
        if (event.round != round) continue;
        over = over || event.kind == MUSTER_RENDEZVOUS_DEAD || event.kind == MUSTER_RENDEZVOUS_LEFT ||
               event.kind == MUSTER_RENDEZVOUS_ABORTED || event.kind == MUSTER_RENDEZVOUS_EXPELLED ||
               (event.kind == MUSTER_RENDEZVOUS_WAITING && event.count > 0);
    }
    return over;
}

/* Runs until the round is over, or until the job is over and all members have arrived at its end. */
static muster_status stay(member *m, const muster_round_info *round, bool *out_done, muster_error *error) {
    for (bool summed = false; !(summed && m->finish);) {
        muster_completion entry;
        muster_status status = muster_queue_next(m->queue, -1, &entry, error);
        if (status != MUSTER_OK) return status;
        if (entry.tag == tag_sum + round->number && entry.status == MUSTER_OK) {
            printf("round %llu: number %d is rank %u of %u, the sum is %d\n", (unsigned long long)round->number,
                   m->number, round->rank, round->world, sum_of(entry.object));
            fflush(stdout);
            summed = true;
        }
        if (entry.tag == tag_finish) m->finish = true;
        if (entry.kind == MUSTER_DONE_STORE) muster_store_result_release(entry.object);
        if (entry.tag == tag_events && look_at_events(m, round->number)) return MUSTER_OK;
    }
    const muster_status status = muster_rendezvous_exit(m->rendezvous, 60 * second, error);
    *out_done = status == MUSTER_OK;
    return status;
}

static muster_status take_part(member *m, bool *out_done, muster_error *error) {
    muster_round *round;
    muster_store *store = NULL;
    muster_round_info info;
    char key[32], value[16];
    muster_status status = muster_rendezvous_join(m->rendezvous, 60 * second, &round, error);
    if (status != MUSTER_OK) return status;
    muster_round_get_info(round, &info);
    snprintf(key, sizeof key, "part/%u", info.rank);
    snprintf(value, sizeof value, "%d", m->number);
    const muster_store_op own = set(key, value);
    status = muster_round_store(round, &store, error);
    if (status == MUSTER_OK) status = muster_store_do(store, &own, 1, 60 * second, NULL, error);
    if (status == MUSTER_OK) status = ask_all(m, store, &info, error);
    if (status == MUSTER_OK) status = stay(m, &info, out_done, error);
    muster_store_release(store);
    muster_round_release(round);
    return status == MUSTER_E_STALE ? MUSTER_OK : status; /* the round is over: join the next one */
}

static int be_member(const char *url, int number) {
    const muster_context_config context_config = {.struct_size = sizeof context_config,
                                                  .secret_fd_plus_one = secret_fd + 1};
    muster_context *context;
    muster_store *store;
    muster_error error = {0};
    member m = {.number = number};
    bool done = false;
    if (muster_context_create(&context_config, &context, &error) != MUSTER_OK ||
        muster_queue_create(context, NULL, &m.queue, &error) != MUSTER_OK)
        return failed("context", &error);
    if (muster_store_open(context, url, strlen(url), NULL, 10 * second, &store, &error) != MUSTER_OK)
        return failed("store", &error);
    const muster_store_op finish = op(MUSTER_STORE_GET, "finish");
    if (muster_store_begin(store, &finish, 1, -1, m.queue, tag_finish, NULL, &error) != MUSTER_OK)
        return failed("finish", &error);
    const muster_rendezvous_config config = {.struct_size = sizeof config,
                                             .run_id = "sum",
                                             .run_id_bytes = 3,
                                             .store = store,
                                             .min = 1,
                                             .max = most_members,
                                             .last_call_ns = second / 5,
                                             .queue = m.queue,
                                             .tag = tag_events};
    if (muster_rendezvous_open(context, &config, 10 * second, &m.rendezvous, &error) != MUSTER_OK)
        return failed("rendezvous", &error);
    while (!done)
        if (take_part(&m, &done, &error) != MUSTER_OK) return failed("round", &error);
    muster_rendezvous_leave(m.rendezvous, 10 * second, NULL);
    muster_rendezvous_release(m.rendezvous);
    muster_store_release(store);
    muster_context_close(context, second);
    muster_queue_release(m.queue);
    muster_context_release(context);
    return 0;
}

/* ---- the process that starts them ---- */

typedef struct group {
    muster_context *context;
    char url[128];
    int output[2]; /* the output of all members */
    muster_process *processes[8];
    FILE *lines;
} group;

static bool start(group *g, int number) {
    unsigned char secret[1024];
    size_t secret_bytes;
    int secrets[2];
    char text[16];
    muster_error error = {0};
    if (muster_context_secret(g->context, secret, sizeof secret, &secret_bytes) != MUSTER_OK) return false;
    if (pipe2(secrets, O_CLOEXEC) != 0 || write(secrets[1], secret, secret_bytes) != (ssize_t)secret_bytes)
        return perror("elastic"), false;
    snprintf(text, sizeof text, "%d", number);
    const char *argv[] = {"/proc/self/exe", "--member", g->url, text, NULL};
    const muster_process_fd fds[] = {{g->output[1], 1}, {secrets[0], secret_fd}};
    const muster_process_config config = {.struct_size = sizeof config, .argv = argv, .fds = fds, .fd_count = 2};
    const muster_status status = muster_process_spawn(g->context, &config, &g->processes[number], &error);
    close(secrets[0]);
    close(secrets[1]);
    return status == MUSTER_OK || (failed("spawn", &error), false);
}

/* Waits until so many members have printed this sum in one round. */
static bool await_sum(group *g, uint32_t world, int sum) {
    unsigned long long round, last = 0;
    uint32_t seen = 0, rank, of;
    for (int number, got; seen < world;) {
        char line[256];
        struct pollfd more = {g->output[0], POLLIN, 0};
        if (poll(&more, 1, 60000) != 1 || !fgets(line, sizeof line, g->lines)) return false;
        fputs(line, stdout);
        if (sscanf(line, "round %llu: number %d is rank %u of %u, the sum is %d", &round, &number, &rank, &of, &got) !=
                5 ||
            of != world || got != sum)
            continue;
        seen = round == last ? seen + 1 : 1;
        last = round;
    }
    return true;
}

static bool ended_well(group *g, int number, bool was_killed) {
    muster_process_exit how;
    if (muster_process_wait(g->processes[number], 60 * second, &how) != MUSTER_OK) return false;
    muster_process_release(g->processes[number]);
    if (was_killed) return how.kind == MUSTER_PROCESS_KILLED && how.value == SIGKILL;
    return how.kind == MUSTER_PROCESS_EXITED && how.value == 0;
}

static bool run_group(group *g, muster_store *store) {
    for (int number = 1; number <= 3; number++)
        if (!start(g, number)) return false;
    if (!await_sum(g, 3, 1 + 2 + 3)) return false;
    printf("number 2 is killed\n");
    muster_process_kill(g->processes[2], SIGKILL);
    if (!await_sum(g, 2, 1 + 3)) return false;
    printf("number 4 comes late\n");
    if (!start(g, 4) || !await_sum(g, 3, 1 + 3 + 4)) return false;
    const muster_store_op finish = set("finish", "now");
    if (muster_store_do(store, &finish, 1, 10 * second, NULL, NULL) != MUSTER_OK) return false;
    return ended_well(g, 1, false) && ended_well(g, 2, true) && ended_well(g, 3, false) && ended_well(g, 4, false);
}

int main(int count, char **arguments) {
    if (count == 4 && strcmp(arguments[1], "--member") == 0) return be_member(arguments[2], atoi(arguments[3]));
    static const char anywhere[] = "tcp://127.0.0.1:0";
    muster_store_server *server;
    muster_store *store;
    muster_error error = {0};
    group g = {0};
    size_t size;
    if (muster_context_create(NULL, &g.context, &error) != MUSTER_OK) return failed("context", &error);
    if (muster_store_server_open(g.context, anywhere, sizeof anywhere - 1, NULL, &server, &error) != MUSTER_OK)
        return failed("server", &error);
    muster_store_server_address(server, g.url, sizeof g.url, &size);
    if (muster_store_open(g.context, g.url, size, NULL, 10 * second, &store, &error) != MUSTER_OK)
        return failed("store", &error);
    if (pipe2(g.output, O_CLOEXEC) != 0 || (g.lines = fdopen(g.output[0], "r")) == NULL) return perror("elastic"), 1;
    setvbuf(g.lines, NULL, _IONBF, 0); /* unbuffered, so that poll() sees all output */
    const bool well = run_group(&g, store);
    puts(well ? "all of them knew the right sum, and ended well" : "not as it should be");
    fclose(g.lines);
    close(g.output[1]);
    muster_store_release(store);
    muster_store_server_close(server, second);
    muster_store_server_release(server);
    muster_context_close(g.context, second);
    muster_context_release(g.context);
    return well ? 0 : 1;
}
