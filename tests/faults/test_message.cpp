// SPDX-License-Identifier: MIT
// message.h and socket.h.
#include "scenario.hpp"

#include <cstdlib>
#include <cstring>

using namespace faults;

namespace {

HANDLE(Message, muster_message, muster_message_release)
HANDLE(Socket, muster_socket, muster_socket_release)

void give_memory_back(void *data) {
    free(data);
}

char large[300'000];

} // namespace

SCENARIO(message, frames) {
    Context context;
    create(context);
    Queue queue;
    OK(muster_queue_create, context, nullptr, queue.out(), &error);
    uint64_t address = 0;
    OK(muster_message_address, 1, 2, 3, &address);
    int64_t group = 0, id = 0, kind = 0;
    OK(muster_message_address_parts, address, &group, &id, &kind);
    EXPECT(DO(muster_message_address_matches, address, address) == 1);
    OK(muster_message_address_singa, 1, 2, 3, &address);
    EXPECT(DO(muster_message_target, 1, 2) == (uint64_t{1} << 32 | 2));
    Message message, copy, back;
    OK(muster_message_create, message.out());
    muster_message_header header{};
    header.struct_size = sizeof header;
    header.destination = address;
    OK(muster_message_set_header, message, &header);
    OK(muster_message_get_header, message, &header);
    OK(muster_message_swap_addresses, message);
    OK(muster_message_add_frame, message, "small", 5);
    OK(muster_message_add_frame, message, large, sizeof large);
    OK(muster_message_lend_frame, message, large, sizeof large, queue, 4);
    void *const given = malloc(16);
    memset(given, 7, 16);
    OK(muster_message_take_frame, message, given, 16, give_memory_back);
    muster_value values[2] = {};
    values[0].integer = 42;
    values[1].data = "text";
    values[1].bytes = 4;
    OK(muster_message_add_values, message, "is", values, 2, &error);
    muster_value got[2] = {};
    uint32_t count = 0;
    OK(muster_message_get_values, message, 4, "is", nullptr, got, 2, &count, &error);
    EXPECT(count == 2 && got[0].integer == 42 && got[1].bytes == 4);
    EXPECT(DO(muster_message_frame_count, message) == 5);
    muster_buffer frame{};
    OK(muster_message_frame, message, 3, &frame);
    EXPECT(frame.bytes == 16);
    OK(muster_message_first, message, &frame);
    OK(muster_message_next, message, &frame);
    OK(muster_message_last, message, &frame);
    uint64_t payload = 0, total = 0;
    OK(muster_message_bytes, message, &payload, &total);
    OK(muster_message_copy, message, copy.out());
    muster_buffer buffers[6];
    OK(muster_message_to_buffers, message, buffers, 6, &count);
    EXPECT(count == 6);
    OK(muster_message_from_buffers, buffers, 6, back.out(), &error);
    message.reset();
    copy.reset();
    take_ok(queue, MUSTER_DONE_RELEASED, 4, "muster_message_lend_frame");
}

// The message belongs to the socket afterwards.
static void send_it(muster_socket *socket, muster_message *message) {
    muster_status status = CALL(muster_socket_send, socket, message, patience, &error);
    if (status == MUSTER_OK) return;
    expect_fault("muster_socket_send", status);
    status = CALL(muster_socket_send, socket, message, patience, &error);
    if (status == MUSTER_OK) return;
    DO(muster_message_release, message);
    ended();
}
static muster_message *receive_it(muster_socket *socket) {
    muster_message *received = nullptr;
    muster_status status = CALL(muster_socket_receive, socket, 2 * second, &received);
    if (status == MUSTER_E_NOMEM) status = CALL(muster_socket_receive, socket, 2 * second, &received);
    if (status == MUSTER_OK) return received;
    EXPECT(has_fired());
    ended();
}

// A dealer and a router. A fault may end the connection, which is then made again; a message that was on it is lost.
static void exchange_messages(const char *at) {
    Context context;
    create(context);
    Queue queue;
    OK(muster_queue_create, context, nullptr, queue.out(), &error);
    muster_socket_config config{};
    config.struct_size = sizeof config;
    config.kind = MUSTER_SOCKET_ROUTER;
    config.address = 1;
    config.queue = queue;
    Socket router, dealer;
    OK(muster_socket_create, context, &config, router.out(), &error);
    config.kind = MUSTER_SOCKET_DEALER;
    config.address = 2;
    OK(muster_socket_create, context, &config, dealer.out(), &error);
    EXPECT(DO(muster_socket_address, dealer) == 2);
    char where[256];
    OK(muster_socket_bind, router, at, strlen(at), where, sizeof where, &error);
    OK(muster_socket_connect, dealer, where, strlen(where), &error);
    for (const size_t size : {size_t{5}, sizeof large}) {
        Message filled;
        OK(muster_message_create, filled.out());
        OK(muster_message_add_frame, filled, large, size);
        muster_message *message = nullptr;
        OK(muster_message_copy, filled, &message);
        send_it(dealer, message);
        message = receive_it(router);
        OK(muster_message_swap_addresses, message);
        send_it(router, message);
        message = receive_it(dealer);
        muster_buffer frame{};
        OK(muster_message_frame, message, 0, &frame);
        EXPECT(frame.bytes == size);
        DO(muster_message_release, message);
    }
    uint32_t peers = 0;
    const muster_status there = CALL(muster_socket_wait_peers, router, 1, patience, &peers);
    EXPECT(there == MUSTER_OK || has_fired());
    muster_socket_event event{};
    const muster_status noticed = CALL(muster_socket_next_event, router, patience, &event);
    EXPECT(noticed == MUSTER_OK || has_fired());
    muster_socket_stats stats{};
    OK(muster_socket_get_stats, router, &stats);
    OK(muster_socket_cancel, router);
    CALL(muster_socket_close, dealer, patience);
}

SCENARIO(socket, inproc) {
    exchange_messages("inproc://messages");
}

SCENARIO(socket, tcp) {
    exchange_messages("tcp://127.0.0.1:0?upgrade=no");
}
