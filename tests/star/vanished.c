// SPDX-License-Identifier: MIT
// The two sides of vanished.sh:  vanished worker|master <broker's host:port>
// The worker answers; the master dials it. Each says when they are in touch, and how it heard that the other was gone;
// the master tries again when it is told to by a line.
#include "star.h"

#include <stdbool.h>

static int wrong(const char *what, const muster_error *error) {
    printf("wrong: %s: %s\n", what, error->message);
    return 1;
}

static void say(const char *who, const char *what) {
    printf("%s: %s\n", who, what);
    fflush(stdout);
}

static muster_context *make_impatient_context(void) {
    muster_context_config config = {.struct_size = sizeof config, .secret = SECRET, .secret_bytes = strlen(SECRET)};
    config.heartbeat_ns = 200 * MILLISECOND;
    config.silent_ns = SECOND;
    config.dead_ns = 3 * SECOND;
    muster_context *context = NULL;
    assert_int_equal(muster_context_create(&config, &context, NULL), MUSTER_OK);
    return context;
}

static bool greet(muster_stream *stream, bool first) {
    char word[6];
    size_t moved = 0;
    if (first && muster_stream_write(stream, "hello", 6, 20 * SECOND, &moved) != MUSTER_OK) return false;
    if (muster_stream_read_into(stream, word, 6, 0, 20 * SECOND, &moved) != MUSTER_OK) return false;
    return first || muster_stream_write(stream, word, 6, 20 * SECOND, &moved) == MUSTER_OK;
}

// Nothing was said for the last time: it ends only because the other side is gone.
static bool hears_the_end(const char *who, muster_stream *stream) {
    muster_error error = {0};
    if (read_one(stream, 60 * SECOND) != MUSTER_E_PEER) return false;
    muster_stream_reason(stream, NULL, &error);
    say(who, error.message);
    say(who, "told");
    return true;
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    const char *const who = argv[1];
    const bool master = strcmp(who, "master") == 0;
    muster_context *context = make_impatient_context();
    muster_listener *listener = NULL;
    muster_error error = {0};
    char where[256];
    const muster_transport_config patient = {.struct_size = sizeof patient, .retry_ns = 120 * SECOND};
    snprintf(where, sizeof where, "zmq://worker@%s/?upgrade=no", argv[2]);
    if (!master && muster_transport_listen(context, where, strlen(where), &patient, &listener, &error) != MUSTER_OK)
        return wrong(where, &error);
    for (int round = 0; round < 2; round++) {
        muster_stream *stream = NULL;
        if (master && round == 1 && getchar() == EOF) return 1;
        const muster_status met =
            master ? muster_transport_dial(context, where, strlen(where), &patient, 120 * SECOND, &stream, &error)
                   : muster_listener_accept(listener, 240 * SECOND, &stream, &error);
        if (met != MUSTER_OK) return wrong("the other side", &error);
        if (!greet(stream, master)) return wrong("hello", &error);
        say(who, round == 0 ? "in touch" : "in touch again");
        if (round == 0 && !hears_the_end(who, stream)) return wrong("the end", &error);
        if (round == 1) muster_stream_close(stream, 5 * SECOND);
        muster_stream_release(stream);
    }
    muster_listener_release(listener);
    muster_context_close(context, 5 * SECOND);
    muster_context_release(context);
    return 0;
}
