/* SPDX-License-Identifier: MIT */
/* A transport of the program's own: `wire://` carries one connection over a descriptor it already has. */
#ifndef WIRE_H
#define WIRE_H

#include <muster/muster.h>

typedef struct wire wire;

/* Adds `wire://` to the context and starts the thread that serves it; NULL with the reason in `error`. The descriptor
 * (a socket, a pipe pair, a serial line) becomes the wire's. One side listens at wire://here, the other dials it. */
wire *wire_serve(muster_context *context, int fd, muster_error *error);

/* Ends the thread; call it when the streams are closed. */
void wire_end(wire *w);

#endif
