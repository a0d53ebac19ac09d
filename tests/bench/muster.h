/* SPDX-License-Identifier: MIT */
/* Muster's side of every row: public headers, one call per message, default settings. */
#ifndef MUSTER_TESTS_BENCH_CHANNEL_H
#define MUSTER_TESTS_BENCH_CHANNEL_H

#include "bench.h"

#include <muster/plugin.h>

struct channel {
    muster_stream *stream;
};

static inline void check(const char *where, muster_status status, const muster_error *error) {
    if (status != MUSTER_OK) die(where, error != NULL ? error->message : muster_status_name(status));
}
BENCH_NORETURN static inline void stream_failed(muster_stream *stream, const char *where, muster_status status) {
    muster_error why;
    die(where, muster_stream_reason(stream, NULL, &why) != MUSTER_OK ? why.message : muster_status_name(status));
}
static inline void channel_write(struct channel *c, const void *data, size_t size) {
    size_t moved;
    const muster_status status = muster_stream_write(c->stream, data, size, -1, &moved);
    if (status != MUSTER_OK) stream_failed(c->stream, "write", status);
}
static inline void channel_read(struct channel *c, void *data, size_t size) {
    size_t moved;
    const muster_status status = muster_stream_read_into(c->stream, data, size, 0, -1, &moved);
    if (status != MUSTER_OK) stream_failed(c->stream, "read", status);
}
static inline size_t channel_read_some(struct channel *c, void *data, size_t most) {
    size_t moved;
    const muster_status status = muster_stream_read(c->stream, data, most, -1, &moved);
    if (status != MUSTER_OK) stream_failed(c->stream, "read", status);
    return moved;
}

#include "patterns.h"

static inline muster_context *context(void) {
    static const char secret[] = "both ends of the benchmark know this";
    muster_context_config config = {.struct_size = sizeof config, .secret = secret, .secret_bytes = sizeof secret - 1};
    muster_context *made = NULL;
    muster_error error;
    check("context", muster_context_create(&config, &made, &error), &error);
    return made;
}

#endif
