// SPDX-License-Identifier: MIT
// A worker in C for a master in any language: echoes streams labelled `echo`, and for those labelled `pair:N` asks
// member N whether it does. It adds up the bytes of a broadcast, and says on streams labelled `heard` how many there
// were and what they came to. worker.lua, worker.jl and bindings/rust/muster/examples/mixed_worker.rs do the same.
#include "cluster_worker.h"

enum { pattern_bytes = 1 << 20 };

static const char *ask_member(muster_cluster *cluster, uint32_t member) {
    static unsigned char pattern[pattern_bytes], back[pattern_bytes];
    static muster_error error;
    muster_stream *stream = NULL;
    size_t moved = 0;
    for (uint32_t i = 0; i < pattern_bytes; i++) pattern[i] = (unsigned char)(i * 31 + muster_cluster_self(cluster));
    if (muster_cluster_dial(cluster, member, "echo", 4, 60 * second, &stream, &error) != MUSTER_OK)
        return error.message;
    const char *wrong = NULL;
    if (muster_stream_write(stream, pattern, sizeof pattern, 60 * second, &moved) != MUSTER_OK)
        wrong = "it was not written";
    muster_stream_finish(stream);
    if (!wrong && muster_stream_read_into(stream, back, sizeof back, 0, 60 * second, &moved) != MUSTER_OK)
        wrong = "fewer came back";
    if (!wrong && memcmp(pattern, back, sizeof back) != 0) wrong = "other bytes came back";
    muster_stream_close(stream, second);
    muster_stream_release(stream);
    return wrong;
}

int main(void) {
    muster_error error = {0};
    muster_context *context = NULL;
    muster_cluster *cluster = NULL;
    muster_worker_config config;
    muster_config_init(&config, sizeof config);
    config.flags = MUSTER_WORKER_EXIT_WITH_MASTER;
    if (muster_worker_context(NULL, 0, &context, &error) != MUSTER_OK ||
        muster_worker_start(context, &config, 60 * second, &cluster, &error) != MUSTER_OK) {
        fprintf(stderr, "worker: %s\n", error.message);
        return 1;
    }
    char heard[64] = "nothing\n";
    muster_cluster_event event;
    while (muster_cluster_next_event(cluster, -1, &event) == MUSTER_OK) {
        unsigned member = 0;
        if (event.kind == MUSTER_CLUSTER_LEAVE) {
            muster_cluster_close(cluster, -1);
        } else if (event.kind == MUSTER_CLUSTER_BROADCAST) {
            uint32_t sum = 0;
            for (uint64_t i = 0; i < event.size_bytes; i++) sum += ((const unsigned char *)event.data)[i];
            snprintf(heard, sizeof heard, "%llu %u\n", (unsigned long long)event.size_bytes, sum);
            muster_broadcast_release(event.broadcast);
        } else if (event.kind == MUSTER_CLUSTER_STREAM) {
            if (strcmp(event.label, "heard") == 0) {
                say(event.stream, heard);
            } else if (sscanf(event.label, "pair:%u", &member) == 1) {
                const char *const wrong = ask_member(cluster, member);
                char line[300];
                snprintf(line, sizeof line, wrong ? "bad: %s\n" : "ok\n", wrong);
                say(event.stream, line);
            } else {
                echo(event.stream);
            }
            muster_stream_close(event.stream, 60 * second);
            muster_stream_release(event.stream);
        }
    }
    muster_cluster_release(cluster);
    muster_context_close(context, second);
    muster_context_release(context);
    return 0;
}
