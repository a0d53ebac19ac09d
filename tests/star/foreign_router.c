// SPDX-License-Identifier: MIT
// foreign_router <broker>: a router in a star that returns every message, until one of type 999; it reports each peer
// that connects and that is lost.
#include <muster/socket.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void need(muster_status status, const muster_error *error) {
    if (status == MUSTER_OK) return;
    fprintf(stderr, "foreign_router: %s: %s\n", muster_status_name(status), error->message);
    exit(1);
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    muster_context *context;
    muster_error error;
    need(muster_context_create(NULL, &context, &error), &error);
    const muster_socket_config config = {.struct_size = sizeof config, .kind = MUSTER_SOCKET_ROUTER, .address = 1000};
    muster_socket *router;
    need(muster_socket_create(context, &config, &router, &error), &error);
    char at[200], text[300];
    snprintf(at, sizeof at, "zmq://router@%s/messages", argv[1]);
    need(muster_socket_bind(router, at, strlen(at), text, sizeof text, &error), &error);
    printf("bound %s\n", text);
    fflush(stdout);
    for (;;) {
        muster_message *message;
        need(muster_socket_receive(router, -1, &message), &error);
        muster_message_header header = {.struct_size = sizeof header};
        muster_message_get_header(message, &header);
        muster_socket_event event;
        while (muster_socket_next_event(router, 0, &event) == MUSTER_OK)
            printf("event %u of %llu\n", event.kind, (unsigned long long)event.address);
        fflush(stdout);
        muster_message_swap_addresses(message);
        need(muster_socket_send(router, message, -1, &error), &error);
        if (header.type == 999) break;
    }
    need(muster_socket_close(router, 10000000000), &error);
    muster_socket_release(router);
    need(muster_context_close(context, 10000000000), &error);
    muster_context_release(context);
    return 0;
}
