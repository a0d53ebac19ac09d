// SPDX-License-Identifier: MIT
// A member in a process of its own, which is linked to the library alone:  member <address>
// Dials once; the status of that, without its sign, is the program's.
#include <muster/transport.h>

#include <stdio.h>
#include <string.h>

int main(int count, char **words) {
    muster_context *context = NULL;
    muster_stream *stream = NULL;
    muster_error error = {0};
    if (count != 2 || muster_context_create(NULL, &context, &error) != MUSTER_OK) return 100;
    const muster_status status =
        muster_transport_dial(context, words[1], strlen(words[1]), NULL, INT64_C(10000000000), &stream, &error);
    printf("%s: %s\n", muster_status_name(status), error.message);
    muster_stream_release(stream);
    muster_context_close(context, INT64_C(1000000000));
    muster_context_release(context);
    return status < 0 ? -status : status;
}
