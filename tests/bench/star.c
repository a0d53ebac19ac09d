/* SPDX-License-Identifier: MIT */
/* Two members of a star, each a process, and the broker, another one:  --over introduced|through|through-no-curve
 *   introduced        as by default: the two are of one host and move to shared memory
 *   through           all bytes through the broker, with CURVE
 *   through-no-curve  all bytes through the broker
 * The members are pinned as the two ends of every row are, the broker is where the scheduler likes. */
#include "star.h"

struct ends {
    struct options options;
    struct star star;
};

static void second_process(void *argument) {
    struct ends *e = argument;
    close(e->star.ask);
    take_core(e->options.cores, 1);
    muster_context *c = context();
    struct channel channel = {star_dial(&e->star, c, "first")};
    second_end(&e->options, &channel, &channel);
    star_leave(c, channel.stream);
}

int main(int argc, char **argv) {
    struct ends e = {.options = read_options(argc, argv)};
    star_begin(&e.star, e.options.over);
    const pid_t child = start_process(second_process, &e);
    take_core(e.options.cores, 0);
    muster_context *c = context();
    muster_listener *listener = star_listen(&e.star, c, "first");
    struct channel channel = {star_accept(listener)};
    first_end(&e.options, &channel, &channel);
    muster_listener_release(listener);
    star_leave(c, channel.stream);
    join_process(child);
    star_end(&e.star);
    return 0;
}
