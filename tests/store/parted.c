// SPDX-License-Identifier: MIT
// parted URL: the client of parted.sh. A line on stdin says that the network is cut.
#include <muster/muster.h>
#include <muster/store.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND INT64_C(1000000000)

static muster_store *store;
static muster_queue *queue;
static muster_error why;

static void fail(const char *what) {
    printf("%s: %s\n", what, why.message);
    exit(1);
}
static void say(const char *line) {
    puts(line);
    fflush(stdout);
}

// Adds to a number, and gives what it is then.
static muster_status add(int64_t n, int64_t timeout_ns, int64_t *sum) {
    const muster_store_op op = {.kind = MUSTER_STORE_ADD, .key = "n", .key_bytes = 1, .number = n};
    muster_store_result *result;
    muster_store_entry entry;
    const muster_status status = muster_store_do(store, &op, 1, timeout_ns, &result, &why);
    if (status == MUSTER_OK && muster_store_result_entry(result, 0, &entry) == MUSTER_OK) *sum = entry.number;
    muster_store_result_release(result);
    return status;
}
static void begin(void) {
    const muster_store_op op = {.kind = MUSTER_STORE_ADD, .key = "n", .key_bytes = 1, .number = 1};
    if (muster_store_begin(store, &op, 1, -1, queue, 0, NULL, &why) != MUSTER_OK) fail("begin");
}
static muster_status end_of_one(void) {
    muster_completion done;
    if (muster_queue_next(queue, 100 * SECOND, &done, &why) != MUSTER_OK) fail("nothing ends");
    muster_store_result_release(done.object);
    return done.status;
}
static void await_word(void) {
    char line[100];
    if (fgets(line, sizeof line, stdin) == NULL) exit(2);
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    muster_context *context;
    muster_context_config about = {
        .struct_size = sizeof about, .heartbeat_ns = SECOND / 5, .dead_ns = SECOND, .handshake_timeout_ns = SECOND};
    muster_store_config config = {.struct_size = sizeof config, .lost_after_ns = 8 * SECOND};
    int64_t sum = 0;
    if (muster_context_create(&about, &context, &why) != MUSTER_OK) fail("context");
    if (muster_queue_create(context, NULL, &queue, &why) != MUSTER_OK) fail("queue");
    if (muster_store_open(context, argv[1], strlen(argv[1]), &config, 30 * SECOND, &store, &why) != MUSTER_OK)
        fail("open");
    if (add(1, 30 * SECOND, &sum) != MUSTER_OK || sum != 1) fail("add");
    say("in touch");

    await_word(); // shorter than it waits
    for (int i = 0; i < 3; i++) begin();
    const muster_status status = add(0, 3 * SECOND, &sum); // by then the silence was noticed
    if (status == MUSTER_OK || strstr(why.message, "add to \"n\"") == NULL || strstr(why.message, argv[1]) == NULL)
        fail("what cannot be reached answers, or who has not is not said");
    say("it is apart");
    for (int i = 0; i < 3; i++)
        if (end_of_one() != MUSTER_OK) fail("what was asked meanwhile");
    if (add(0, 30 * SECOND, &sum) != MUSTER_OK || sum != 4) fail("lost or done twice");
    say("in touch again");

    await_word(); // longer
    begin();
    if (end_of_one() != MUSTER_E_STORE_LOST) fail("what was asked of a store that is lost");
    if (strstr(why.message, argv[1]) == NULL || strstr(why.message, "not reached for 8.0 s") == NULL) fail("the text");
    if (add(1, SECOND, &sum) != MUSTER_E_STORE_LOST) fail("it answers again");
    say("it is lost");
    muster_store_release(store);
    muster_queue_release(queue);
    if (muster_context_close(context, 10 * SECOND) != MUSTER_OK) return 1;
    muster_context_release(context);
    return 0;
}
