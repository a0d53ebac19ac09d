/* SPDX-License-Identifier: MIT */
/* A transport that the program serves: `wire://` carries one connection over a descriptor that the program has. */
#ifndef WIRE_H
#define WIRE_H

#include <muster/muster.h>

typedef struct wire wire;

/* Adds `wire://` to the context and starts the thread that serves it; NULL with the reason in `error`. The descriptor
 * (a socket, a pipe pair, a serial line) then belongs to the transport. One side listens at wire://here, the other
 * dials it. */
wire *wire_serve(muster_context *context, int fd, muster_error *error);

/* Ends the thread; call it when the streams are closed. */
void wire_end(wire *w);

#endif
