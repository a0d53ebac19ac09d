// SPDX-License-Identifier: MIT
// transport.h and what every stream of a transport does.
#include "connect.hpp"

#include <cstring>
#include <thread>

using namespace faults;

static void talk_over(const char *scheme, const char *options, uint32_t flags) {
    Context context;
    create(context, flags);
    Queue queue;
    {
        const Paused guard;
        OK(muster_queue_create, context, nullptr, queue.out(), &error);
    }
    Link link;
    connect(context, queue, address_of(scheme) + options, link);
    exchange(link.dialled, link.accepted);
    OR_END(muster_stream_finish, link.dialled);
    char byte;
    size_t bytes = 0;
    const muster_status end = CALL(muster_stream_read, link.accepted, &byte, 1, patience, &bytes);
    if (end != MUSTER_E_END) expect_fault("muster_stream_read", end);
    OR_END(muster_stream_close, link.accepted, patience);
    OR_END(muster_stream_close, link.dialled, patience);
    OK(muster_listener_close, link.listener);
}

SCENARIO(transport, inproc) {
    talk_over("inproc", "", 0);
}
SCENARIO(transport, tcp) {
    talk_over("tcp", "?upgrade=no", 0);
}
SCENARIO(transport, tcp_sealed) {
    talk_over("tcp", "?upgrade=no&seal=yes", 0);
}
SCENARIO(transport, tcp_to_shared_memory) {
    talk_over("tcp", "", 0);
}
SCENARIO(transport, unix_socket) {
    talk_over("unix", "?upgrade=no", 0);
}
SCENARIO(transport, shm) {
    talk_over("shm", "", 0);
}
SCENARIO(transport, tcp_external) {
    talk_over("tcp", "?upgrade=no", MUSTER_CONTEXT_EXTERNAL);
}

SCENARIO(transport, calls_that_wait) {
    Context context;
    create(context);
    muster_transport_config config{};
    config.struct_size = sizeof config;
    config.hello = "hello";
    config.hello_bytes = 5;
    Listener listener;
    const std::string address = "tcp://localhost:0?upgrade=no";
    OK(muster_transport_listen, context, address.data(), address.size(), &config, listener.out(), &error);
    char real[512];
    size_t bytes = 0;
    OK(muster_listener_address, listener, real, sizeof real, &bytes);
    Stream dialled, accepted;
    muster_status status =
        CALL(muster_transport_dial, context, real, bytes, &config, patience / 2, dialled.out(), &error);
    if (status != MUSTER_OK) {
        expect_fault("muster_transport_dial", status);
        OK(muster_transport_dial, context, real, bytes, &config, patience / 2, dialled.out(), &error);
    }
    status = CALL(muster_listener_accept, listener, has_fired() ? second / 2 : patience, accepted.out(), &error);
    if (status != MUSTER_OK) {
        if (!has_fired()) expect_fault("muster_listener_accept", status);
        ended();
    }
    char text[64];
    OK(muster_transport_hello, accepted, text, sizeof text, &bytes);
    EXPECT(bytes == 5 && memcmp(text, "hello", 5) == 0);
    OK(muster_stream_peer, accepted, text, sizeof text, &bytes);
    const muster_status own = CALL(muster_stream_local_address, accepted, text, sizeof text, &bytes);
    EXPECT(own == MUSTER_OK || own == MUSTER_E_UNSUPPORTED || has_fired());
    OK(muster_listener_cancel, listener);
    Stream none;
    status = CALL(muster_listener_accept, listener, 0, none.out(), &error);
    // A dial that has failed at its own end may have succeeded at that of the listener.
    EXPECT(status == MUSTER_AGAIN || (status == MUSTER_OK && has_fired()));
}

SCENARIO(transport, watched_listener) {
    Context context;
    create(context);
    Queue queue;
    OK(muster_queue_create, context, nullptr, queue.out(), &error);
    Listener listener;
    const std::string address = address_of("tcp") + "?upgrade=no";
    OK(muster_transport_listen, context, address.data(), address.size(), nullptr, listener.out(), &error);
    OK(muster_listener_watch, listener, queue, 3);
    char real[512];
    size_t bytes = 0;
    OK(muster_listener_address, listener, real, sizeof real, &bytes);
    OK(muster_transport_dial_begin, context, real, bytes, nullptr, patience / 2, queue, 4, &error);
    Stream dialled(take_ok(queue, MUSTER_DONE_DIAL, 4, "muster_transport_dial").object);
    OK(muster_listener_close_begin, listener, queue, 5, &error);
    take_ok(queue, MUSTER_DONE_CALL, 5, "muster_listener_close");
}
