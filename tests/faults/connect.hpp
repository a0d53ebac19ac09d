// SPDX-License-Identifier: MIT
#pragma once
// Two connected streams, and bytes between them.
#include "scenario.hpp"

namespace faults {

struct Link {
    Listener listener;
    Stream dialled, accepted;
};

// Connects over the address; a listener at port 0 is dialled at its real one. A failure is followed by another try,
// which must succeed.
void connect(muster_context *context, muster_queue *queue, const std::string &address, Link &out);
// The same; the address is dialled from another context and in another form, which may take a while to lead there.
struct Dialler {
    muster_context *context;
    muster_queue *queue;
    std::string address; // empty: as the listener has it
};
void connect(muster_context *context, const std::string &address, Link &out, const Dialler &dialler);
// Bytes in both directions, in small and in large pieces. Ends the scenario if the fault has ended the streams.
void exchange(muster_stream *one, muster_stream *other);
// An address of the transport, unique in this process.
std::string address_of(const char *scheme);

} // namespace faults
