// SPDX-License-Identifier: MIT
// Metrics: the text has the format of Prometheus and the right numbers, a publication is renewed and ends with its
// process, and a store that goes away and returns is no end of it.
// ctest: quick timeout=60
#include "group_run.h"

#include <math.h>
#include <sched.h>
#include <sys/wait.h>
#include <time.h>

static char *text_of(muster_context *context) {
    size_t bytes = 0, capacity = 0;
    char *text = NULL;
    muster_status status;
    while ((status = muster_metrics_write(context, text, capacity, &bytes)) != MUSTER_OK || text == NULL) {
        CHECK(status == MUSTER_OK || status == MUSTER_E_LIMIT);
        capacity = bytes + 100;
        text = realloc(text, capacity + 1);
        CHECK(text != NULL);
    }
    text[bytes] = '\0';
    return text;
}

// The value of the line that begins so, up to the space before its number; -1: there is none.
static double value_of(const char *text, const char *line) {
    const size_t length = strlen(line);
    for (const char *at = text; (at = strstr(at, line)) != NULL; at += length)
        if ((at == text || at[-1] == '\n') && at[length] == ' ') return strtod(at + length, NULL);
    return -1;
}

// Buckets count what took at most as long as their limit: they never fall, and the last one has all.
static void check_histogram(const char *text, const char *name, double at_least) {
    char start[120], total[120];
    snprintf(start, sizeof start, "\n%s_bucket{", name);
    snprintf(total, sizeof total, "%s_count", name);
    double last = -1, last_limit = 0;
    int buckets = 0;
    for (const char *at = text; (at = strstr(at, start)) != NULL; at++, buckets++) {
        const char *const limit = strstr(at, "le=\""), *const end = strchr(at + 1, '\n');
        CHECK(limit != NULL && end != NULL && limit < end);
        const double bound = strtod(limit + 4, NULL), count = strtod(strchr(limit, ' ') + 1, NULL);
        CHECK(bound > last_limit && count >= last);
        last = count, last_limit = bound;
    }
    CHECK(buckets == 15 && isinf(last_limit));
    CHECK(value_of(text, total) == last && last >= at_least);
    snprintf(total, sizeof total, "%s_sum", name);
    CHECK(value_of(text, total) >= 0 && (at_least == 0 || value_of(text, total) > 0));
}

// Each family: HELP, TYPE, and then all of its samples, without another one between them.
static void check_format(const char *text) {
    char families[200][80];
    size_t count = 0;
    bool is_histogram = false;
    for (const char *at = text; *at != '\0';) {
        const char *const end = strchr(at, '\n');
        CHECK(end != NULL);
        char line[2000], name[80], kind[20];
        CHECK((size_t)(end - at) < sizeof line);
        memcpy(line, at, (size_t)(end - at));
        line[end - at] = '\0';
        at = end + 1;
        if (sscanf(line, "# HELP %79s", name) == 1) {
            for (size_t i = 0; i < count; i++) CHECK(strcmp(families[i], name) != 0);
            CHECK(count < 200 && strncmp(name, "muster_", 7) == 0);
            strcpy(families[count++], name);
        } else if (sscanf(line, "# TYPE %79s %19s", name, kind) == 2) {
            CHECK(strcmp(families[count - 1], name) == 0);
            const size_t length = strlen(name);
            const bool is_total = length > 6 && strcmp(name + length - 6, "_total") == 0;
            is_histogram = strcmp(kind, "histogram") == 0;
            CHECK(strcmp(kind, "counter") == 0 || ((strcmp(kind, "gauge") == 0 || is_histogram) && !is_total));
        } else {
            const size_t length = strcspn(line, "{ ");
            const size_t family = strlen(families[count - 1]);
            CHECK(is_histogram ? length > family : length == family);
            CHECK(strncmp(families[count - 1], line, family) == 0);
            const char *number = strrchr(line, ' ');
            char *rest = NULL;
            CHECK(number != NULL && (strtod(number + 1, &rest), *rest == '\0'));
        }
    }
    CHECK(count > 8);
}

static void test_the_text_has_the_format_and_the_numbers(void **state) {
    (void)state;
    muster_context *context = NULL;
    muster_context_config config;
    muster_config_init(&config, sizeof config);
    config.secret = "a secret of the test";
    config.secret_bytes = 20;
    muster_error error = {0};
    CHECK_OK(muster_context_create(&config, &context, &error), error);
    char *text = text_of(context);
    check_format(text);
    CHECK(value_of(text, "muster_streams") == 0 && value_of(text, "muster_read_bytes_total") == 0);
    CHECK(value_of(text, "muster_process_resident_bytes") > 1e6 &&
          value_of(text, "muster_process_open_descriptors") > 2);
    CHECK(strstr(text, "muster_store_server") == NULL);
    free(text);

    muster_store_server *servers[2] = {NULL, NULL};
    char urls[2][256];
    for (int i = 0; i < 2; i++) {
        CHECK_OK(muster_store_server_open(context, "tcp://127.0.0.1:0", 17, NULL, &servers[i], &error), error);
        size_t size = 0;
        CHECK(muster_store_server_address(servers[i], urls[i], sizeof urls[i] - 1, &size) == MUSTER_OK);
        urls[i][size] = '\0';
    }
    muster_store *store = NULL;
    CHECK_OK(muster_store_open(context, urls[1], strlen(urls[1]), NULL, 10 * second, &store, &error), error);
    muster_store_op set = {.kind = MUSTER_STORE_SET, .key = "k", .key_bytes = 1, .value = "v", .value_bytes = 1};
    for (int i = 0; i < 7; i++) CHECK_OK(muster_store_do(store, &set, 1, 10 * second, NULL, &error), error);
    text = text_of(context);
    check_format(text);
    char line[400];
    snprintf(line, sizeof line, "muster_store_server_keys{object=\"2\",address=\"%s\"}", urls[1]);
    CHECK(value_of(text, line) == 1);
    snprintf(line, sizeof line, "muster_store_server_requests_total{object=\"2\",address=\"%s\"}", urls[1]);
    CHECK(value_of(text, line) >= 7);
    snprintf(line, sizeof line, "muster_store_server_keys{object=\"1\",address=\"%s\"}", urls[0]);
    CHECK(value_of(text, line) == 0);
    CHECK(value_of(text, "muster_handshakes_total{result=\"proved\"}") >= 1);
    check_histogram(text, "muster_handshake_seconds", 1);
    check_histogram(text, "muster_store_request_seconds", 7);
    check_histogram(text, "muster_rendezvous_round_seconds", 0);
    free(text);

    // Single streams: the ones with the most bytes, at most 16.
    enum { pairs = 12 };
    muster_stream *ends[pairs][2];
    for (int i = 0; i < pairs; i++) {
        size_t moved;
        CHECK_OK(muster_stream_pair(context, NULL, &ends[i][0], &ends[i][1], &error), error);
        CHECK(muster_stream_write(ends[i][0], line, (size_t)(10 * (i + 1)), second, &moved) == MUSTER_OK);
    }
    text = text_of(context);
    check_format(text);
    int shown = 0;
    double most = 0, unread = 0;
    for (const char *at = text; (at = strstr(at, "\nmuster_stream_")) != NULL; at++) {
        const char *const value = strchr(at + 1, ' ') + 1;
        if (strncmp(at, "\nmuster_stream_written_bytes_total{peer=", 39) == 0) {
            shown++;
            if (strtod(value, NULL) > most) most = strtod(value, NULL);
        }
        if (strncmp(at, "\nmuster_stream_unread_bytes{", 28) == 0) unread += strtod(value, NULL);
    }
    CHECK(shown == 16 && most == 10 * pairs && unread > 0);
    free(text);
    for (int i = 0; i < pairs; i++) muster_stream_release(ends[i][0]), muster_stream_release(ends[i][1]);

    // What it costs, for docs/guide/metrics.md.
    char place[65536];
    size_t length = 0;
    double best = 1e9;
    for (int i = 0; i < 200; i++) {
        struct timespec begun, ended;
        clock_gettime(CLOCK_MONOTONIC, &begun);
        CHECK(muster_metrics_write(context, place, sizeof place, &length) == MUSTER_OK);
        clock_gettime(CLOCK_MONOTONIC, &ended);
        const double us = (double)(ended.tv_sec - begun.tv_sec) * 1e6 + (double)(ended.tv_nsec - begun.tv_nsec) / 1e3;
        best = us < best ? us : best;
    }
    printf("a text of %zu bytes takes %.0f us\n", length, best);

    // Too small a place changes nothing, and an object that has ended is not in the text.
    size_t bytes = 0;
    char small[8] = "unread";
    CHECK(muster_metrics_write(context, small, sizeof small, &bytes) == MUSTER_E_LIMIT && bytes > sizeof small);
    CHECK(strcmp(small, "unread") == 0);
    CHECK(muster_metrics_write(NULL, NULL, 0, &bytes) == MUSTER_E_ARG);
    CHECK(muster_metrics_write(context, NULL, 0, NULL) == MUSTER_E_ARG);
    muster_store_release(store);
    CHECK(muster_store_server_close(servers[0], 10 * second) == MUSTER_OK);
    muster_store_server_release(servers[0]);
    muster_store_server_release(servers[1]);
    CHECK(muster_context_close(context, 10 * second) == MUSTER_OK);
    text = text_of(context);
    CHECK(strstr(text, "muster_store_server") == NULL && value_of(text, "muster_streams") == 0);
    CHECK(strstr(text, "muster_stream_") == NULL);
    free(text);
    muster_context_release(context);
}

// ---- publications

static uint64_t await_version(muster_store *store, const char *key, uint64_t other_than) {
    muster_error error = {0};
    uint64_t after = 0;
    for (;;) {
        muster_store_result *result = NULL;
        muster_store_op read = {.kind = MUSTER_STORE_GET, .key = key, .key_bytes = strlen(key)};
        CHECK_OK(muster_store_do(store, &read, 1, 20 * second, &result, &error), error);
        muster_store_entry entry;
        CHECK(muster_store_result_entry(result, 0, &entry) == MUSTER_OK && entry.value_bytes > 100);
        const uint64_t version = entry.version;
        after = muster_store_result_revision(result);
        muster_store_result_release(result);
        if (version != other_than) return version;
        muster_store_op watch = {.kind = MUSTER_STORE_WATCH, .key = key, .key_bytes = strlen(key), .version = after};
        CHECK_OK(muster_store_do(store, &watch, 1, 20 * second, NULL, &error), error);
    }
}
static void await_deletion(muster_store *store, const char *key) {
    muster_error error = {0};
    for (bool is_present = true; is_present;) {
        muster_store_result *result = NULL;
        muster_store_op read = {.kind = MUSTER_STORE_READ, .key = key, .key_bytes = strlen(key)};
        CHECK_OK(muster_store_do(store, &read, 1, 20 * second, &result, &error), error);
        muster_store_entry entry;
        CHECK(muster_store_result_entry(result, 0, &entry) == MUSTER_OK);
        is_present = (entry.flags & MUSTER_STORE_PRESENT) != 0;
        const uint64_t after = muster_store_result_revision(result);
        muster_store_result_release(result);
        muster_store_op watch = {.kind = MUSTER_STORE_WATCH, .key = key, .key_bytes = strlen(key), .version = after};
        if (is_present) CHECK_OK(muster_store_do(store, &watch, 1, 20 * second, NULL, &error), error);
    }
}

static void publish_until_killed(member *me, const void *argument) {
    (void)argument;
    muster_error error = {0};
    muster_metrics *metrics = NULL;
    const muster_metrics_config config = {
        .struct_size = sizeof config, .name = "a child", .name_bytes = 7, .interval_ns = 100 * ms};
    CHECK_OK(muster_metrics_publish(me->context, me->store, &config, &metrics, &error), error);
    for (;;) pause();
}

static void publish(void) {
    int urls[2];
    CHECK(pipe(urls) == 0);
    const pid_t child = start_member_process(0, 1, urls[0], publish_until_killed, NULL);
    member me = {0};
    muster_error error = {0};
    muster_store_server *server = NULL;
    char url[256];
    const size_t size = serve_store(&me, &server, url);
    CHECK_OK(muster_store_open(me.context, url, size, NULL, 20 * second, &me.store, &error), error);

    muster_metrics *metrics = NULL;
    muster_metrics_config config = {.struct_size = sizeof config, .interval_ns = 100 * ms};
    CHECK_OK(muster_metrics_publish(me.context, me.store, &config, &metrics, &error), error);
    char host[256] = "", key[400];
    CHECK(gethostname(host, sizeof host - 1) == 0);
    snprintf(key, sizeof key, "muster/metrics/%s.%d", host, (int)getpid());
    uint64_t version = 0;
    for (int i = 0; i < 4; i++) version = await_version(me.store, key, version);
    muster_metrics_state state = {0};
    CHECK(muster_metrics_get_state(metrics, &state) == MUSTER_OK);
    CHECK(state.published >= 3 && state.failed == 0 && state.status == MUSTER_OK);
    muster_metrics_release(metrics);
    await_deletion(me.store, key);

    // A process that is killed is seen at once, long before its lease would expire.
    CHECK(write(urls[1], url, size + 1) == (ssize_t)size + 1);
    await_version(me.store, "muster/metrics/a child", 0);
    CHECK(kill(child, SIGKILL) == 0);
    await_deletion(me.store, "muster/metrics/a child");
    CHECK(waitpid(child, NULL, 0) == child);

    // What is refused.
    config.interval_ns = 1000;
    CHECK(muster_metrics_publish(me.context, me.store, &config, &metrics, &error) == MUSTER_E_ARG && metrics == NULL);
    config = (muster_metrics_config){.struct_size = sizeof config, .name = "a/b", .name_bytes = 3};
    CHECK(muster_metrics_publish(me.context, me.store, &config, &metrics, &error) == MUSTER_E_ARG);
    CHECK(strstr(error.message, "without a `/`") != NULL);
    config.name_bytes = 0;
    CHECK(muster_metrics_publish(me.context, me.store, &config, &metrics, &error) == MUSTER_E_ARG);
    CHECK(muster_metrics_publish(NULL, me.store, NULL, &metrics, &error) == MUSTER_E_ARG);
    CHECK(muster_metrics_publish(me.context, NULL, NULL, &metrics, &error) == MUSTER_E_ARG);
    CHECK(muster_metrics_publish(me.context, me.store, NULL, NULL, &error) == MUSTER_E_ARG);
    CHECK(muster_metrics_get_state(NULL, &state) == MUSTER_E_ARG);
    muster_metrics_release(NULL);

    // The store ends and begins again at its address: numbers are counted as failed, and then published again.
    member other = {0};
    make_member_context(&other);
    config = (muster_metrics_config){
        .struct_size = sizeof config, .name = "returns", .name_bytes = 7, .interval_ns = 100 * ms};
    CHECK_OK(muster_store_open(other.context, url, size, NULL, 20 * second, &other.store, &error), error);
    CHECK_OK(muster_metrics_publish(other.context, other.store, &config, &metrics, &error), error);
    await_version(me.store, "muster/metrics/returns", 0);
    muster_store_release(me.store);
    CHECK(muster_store_server_close(server, 10 * second) == MUSTER_OK);
    muster_store_server_release(server);
    while (state.failed == 0) {
        CHECK(muster_metrics_get_state(metrics, &state) == MUSTER_OK);
        sched_yield();
    }
    muster_metrics_release(metrics); // of a store that does not answer: this does not wait
    muster_store_release(other.store);
    CHECK(muster_context_close(other.context, 10 * second) == MUSTER_OK);
    muster_context_release(other.context);
    CHECK(muster_context_close(me.context, 10 * second) == MUSTER_OK);
    muster_context_release(me.context);
    _exit(0);
}

static void test_a_publication_ends_with_its_process(void **state) {
    (void)state;
    fflush(NULL);
    const pid_t runner = fork();
    if (runner == 0) publish();
    int status;
    assert_int_equal(waitpid(runner, &status, 0), runner);
    assert_int_equal(status, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_publication_ends_with_its_process),
                                       cmocka_unit_test(test_the_text_has_the_format_and_the_numbers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
