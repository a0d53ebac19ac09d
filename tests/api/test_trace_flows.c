// SPDX-License-Identifier: MIT
// Arrows of traces from process to process: the stream of a cluster, requests of active messages, messages of sockets.
// The worker is this program, started again, and writes its trace when it exits. ctest: quick timeout=60
#include "cluster_master.h"

#include <muster/am.h>
#include <muster/socket.h>
#include <muster/trace.h>

enum { calls = 10, messages = 3 };
static const uint64_t flow_of_the_host = 0x1234567890abcdef;
static char folder[] = "/tmp/muster-flows.XXXXXX";

static muster_message *message_of(const char *text, uint64_t span) {
    muster_message *made = NULL;
    muster_message_header header = {.struct_size = sizeof header, .trace_id = {span, 0}, .span_id = span};
    assert_int_equal(muster_message_create(&made), MUSTER_OK);
    assert_int_equal(muster_message_add_frame(made, text, strlen(text)), MUSTER_OK);
    if (span != 0) assert_int_equal(muster_message_set_header(made, &header), MUSTER_OK);
    return made;
}

// ---- the worker: executes requests, and sends messages to the address that the last request has

static muster_status count_request(void *user, uint32_t peer, const void *data, size_t bytes, void *reply,
                                   size_t capacity, size_t *out_bytes) {
    (void)peer, (void)data, (void)bytes, (void)capacity;
    memcpy(reply, &(uint32_t){++*(uint32_t *)user}, sizeof(uint32_t));
    *out_bytes = sizeof(uint32_t);
    return MUSTER_OK;
}
static void send_messages(muster_context *context, const char *address, size_t address_bytes) {
    const muster_socket_config config = {.struct_size = sizeof config, .kind = MUSTER_SOCKET_DEALER};
    muster_socket *socket = NULL;
    assert_int_equal(muster_socket_create(context, &config, &socket, NULL), MUSTER_OK);
    assert_int_equal(muster_socket_connect(socket, address, address_bytes, NULL), MUSTER_OK);
    for (int i = 0; i < messages; i++)
        assert_int_equal(muster_socket_send(socket, message_of("from the worker", i == 2 ? 77 : 0), 20 * second, NULL),
                         MUSTER_OK);
    assert_int_equal(muster_socket_close(socket, 20 * second), MUSTER_OK);
    muster_socket_release(socket);
}
static int be_the_worker(void) {
    muster_context *context = NULL;
    muster_cluster *cluster = NULL;
    muster_queue *queue = NULL;
    muster_am *am = NULL;
    uint32_t counted = 0, peer = 0;
    muster_worker_config config;
    muster_config_init(&config, sizeof config);
    config.flags = MUSTER_WORKER_EXIT_WITH_MASTER;
    assert_int_equal(muster_worker_context(NULL, 0, &context, NULL), MUSTER_OK);
    assert_int_equal(muster_worker_start(context, &config, 20 * second, &cluster, NULL), MUSTER_OK);
    assert_int_equal(muster_queue_create(context, NULL, &queue, NULL), MUSTER_OK);
    assert_int_equal(muster_am_create(context, NULL, &am, NULL), MUSTER_OK);
    assert_int_equal(muster_am_set_handler(am, 1, count_request, &counted), MUSTER_OK);
    assert_int_equal(muster_am_serve(am, 2, queue, 0), MUSTER_OK);
    muster_cluster_event event = {0};
    while (event.kind != MUSTER_CLUSTER_LEAVE && event.kind != MUSTER_CLUSTER_MASTER_GONE) {
        assert_int_equal(muster_cluster_next_event(cluster, 30 * second, &event), MUSTER_OK);
        if (event.kind != MUSTER_CLUSTER_STREAM) continue;
        muster_trace_flow("work begins", 11, flow_of_the_host);
        assert_int_equal(muster_am_add_peer(am, event.stream, &peer, NULL), MUSTER_OK);
        muster_completion entry;
        muster_am_request_info request;
        assert_int_equal(muster_queue_next(queue, 30 * second, &entry, NULL), MUSTER_OK);
        assert_int_equal(muster_am_request_get(entry.object, &request), MUSTER_OK);
        assert_int_equal(muster_am_request_reply(entry.object, MUSTER_OK, NULL, 0), MUSTER_OK);
        send_messages(context, request.data, request.bytes);
        muster_am_request_release(entry.object);
    }
    muster_am_release(am);
    muster_queue_release(queue);
    muster_cluster_close(cluster, second);
    muster_cluster_release(cluster);
    muster_context_release(context);
    return 0; // the trace is written
}

// ---- the master

static char *summary(void) {
    static char text[1 << 16];
    char command[1200];
    const char *const library = getenv("MUSTER_LIBRARY"); // the command is in bin beside it
    assert_non_null(library);
    snprintf(command, sizeof command, "%.*s/bin/muster trace %s/*.pftrace 2>&1", (int)(strrchr(library, '/') - library),
             library, folder);
    FILE *const output = popen(command, "r");
    text[fread(text, 1, sizeof text - 1, output)] = '\0';
    assert_int_equal(pclose(output), 0);
    return text;
}
static void assert_line(const char *text, const char *name, int times) {
    char line[128];
    snprintf(line, sizeof line, "  %-40s %10d times", name, times);
    if (strstr(text, line) == NULL) fail_msg("no '%s' in:\n%s", line, text);
}

static void test_arrows_from_process_to_process(void **state) {
    fixture *f = *state;
    char path[300], address[256];
    const muster_trace_config tracing = {.struct_size = sizeof tracing, .name = "master", .name_bytes = 6};
    assert_int_equal(muster_trace_start(&tracing, NULL), MUSTER_OK);
    muster_trace_flow("before the work", 15, flow_of_the_host);
    muster_trace_flow("no flow", 7, 0);
    open_with(f, 0, NULL, 0);
    char *environment[] = {(char[300]){0}, NULL};
    snprintf(environment[0], 300, "MUSTER_TRACE=%s", folder);
    putenv(environment[0]); // of the worker
    add(f, 1);
    await_joined(f, 1);
    unsetenv("MUSTER_TRACE");

    const muster_socket_config config = {.struct_size = sizeof config, .kind = MUSTER_SOCKET_ROUTER, .address = 5};
    muster_socket *socket = NULL;
    assert_int_equal(muster_socket_create(f->context, &config, &socket, NULL), MUSTER_OK);
    assert_int_equal(muster_socket_bind(socket, "tcp://127.0.0.1:0", 17, address, sizeof address, NULL), MUSTER_OK);
    muster_am *am = NULL;
    uint32_t peer = 0, count = 0;
    assert_int_equal(muster_am_create(f->context, NULL, &am, NULL), MUSTER_OK);
    assert_int_equal(muster_am_add_peer(am, dial(f, 1, "am"), &peer, NULL), MUSTER_OK);
    for (uint32_t i = 1; i <= calls; i++) {
        assert_int_equal(muster_am_call(am, peer, 1, NULL, 0, &count, sizeof count, 20 * second, NULL, NULL),
                         MUSTER_OK);
        assert_int_equal(count, i);
    }
    assert_int_equal(muster_am_begin(am, peer, 1, NULL, 0, NULL, 0, NULL, 0), MUSTER_OK);
    assert_int_equal(muster_am_call(am, peer, 2, address, strlen(address), NULL, 0, 20 * second, NULL, NULL),
                     MUSTER_OK);
    muster_message_header first = {0}, second_one = {0}, own = {0};
    for (int i = 0; i < messages; i++) {
        muster_message *message = NULL;
        muster_message_header *const header = i == 0 ? &first : i == 1 ? &second_one : &own;
        assert_int_equal(muster_socket_receive(socket, 20 * second, &message), MUSTER_OK);
        *header = (muster_message_header){.struct_size = sizeof *header};
        assert_int_equal(muster_message_get_header(message, header), MUSTER_OK);
        muster_message_release(message);
    }
    // The context travels in the messages; that of the host as it was set.
    assert_true(first.trace_id[0] != 0 && memcmp(first.trace_id, second_one.trace_id, 16) == 0);
    assert_true(first.span_id != 0 && second_one.span_id != 0 && first.span_id != second_one.span_id);
    assert_int_equal(first.trace_flags, 1);
    assert_true(own.trace_id[0] == 77 && own.trace_id[1] == 0 && own.span_id == 77 && own.trace_flags == 0);
    assert_int_equal(muster_cluster_close(f->cluster, 20 * second), MUSTER_OK); // the worker is gone
    muster_am_release(am);
    muster_socket_release(socket);
    snprintf(path, sizeof path, "%s/master.pftrace", folder);
    assert_int_equal(muster_trace_save(path, strlen(path), NULL), MUSTER_OK);
    muster_trace_stop();
    const char *const text = summary();
    assert_line(text, "cluster dial -> cluster stream", 1);
    assert_line(text, "am call -> am execute", calls + 1);
    assert_line(text, "am begin -> am execute", 1);
    assert_line(text, "socket send -> socket receive", messages);
    assert_line(text, "host before the work -> host work begins", 1);
    assert_line(text, "cluster joined", 1);
    assert_line(text, "socket connected", 1);
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "worker") == 0) return be_the_worker();
    find_self();
    if (mkdtemp(folder) == NULL) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_arrows_from_process_to_process, set_up, tear_down),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    char command[600];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) != 0 || failed;
}
