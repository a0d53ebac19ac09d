/* SPDX-License-Identifier: MIT */
/* The smallest whole use: bytes through a stream pair. */
#include <muster/context.h>
#include <muster/stream.h>
#include <stdio.h>
#include <string.h>

int main(void) {
    muster_error error;
    muster_context *context;
    muster_stream *first, *second;
    char got[6] = {0};
    size_t moved = 0;
    if (muster_context_create(NULL, &context, &error) < 0) return puts(error.message), 1;
    if (muster_stream_pair(context, NULL, &first, &second, &error) < 0) return puts(error.message), 1;
    if (muster_stream_write(first, "hello", 5, -1, &moved) != MUSTER_OK || moved != 5) return 2;
    if (muster_stream_read(second, got, 5, -1, &moved) != MUSTER_OK || strcmp(got, "hello") != 0) return 3;
    muster_stream_release(first);
    muster_stream_release(second);
    if (muster_context_close(context, -1) < 0) return 4;
    muster_context_release(context);
    printf("Muster %s moved %d bytes\n", muster_version(NULL, NULL, NULL), (int)moved);
    return 0;
}
