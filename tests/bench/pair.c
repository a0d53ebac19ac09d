/* SPDX-License-Identifier: MIT */
/* Two ends of muster_stream_pair() in two threads of one process. */
#include "muster.h"

struct ends {
    struct options options;
    struct channel out[2], in[2]; /* of the first end, of the second */
};

static void *second_thread(void *argument) {
    struct ends *e = argument;
    take_core(e->options.cores, 1);
    second_end(&e->options, &e->out[1], &e->in[1]);
    return NULL;
}

int main(int argc, char **argv) {
    struct ends ends = {.options = read_options(argc, argv)}, *e = &ends;
    muster_context *c = context();
    muster_error error;
    muster_stream *first[2], *second[2];
    for (int i = 0; i < 2; i++) check("pair", muster_stream_pair(c, NULL, &first[i], &second[i], &error), &error);
    /* What one stream carries forth, it or another one carries back. */
    const int back = e->options.what == WHAT_HANDOVER;
    e->out[0].stream = first[0], e->in[1].stream = second[0];
    e->in[0].stream = first[back], e->out[1].stream = second[back];
    pthread_t thread;
    if (pthread_create(&thread, NULL, second_thread, e) != 0) die("pthread_create", "failed");
    take_core(e->options.cores, 0);
    first_end(&e->options, &e->out[0], &e->in[0]);
    pthread_join(thread, NULL);
    for (int i = 0; i < 2; i++) muster_stream_release(first[i]), muster_stream_release(second[i]);
    muster_context_release(c);
    return 0;
}
