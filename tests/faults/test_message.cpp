// SPDX-License-Identifier: MIT
// message.h, message_queue.h, socket.h and forwarder.h.
#include "scenario.hpp"

#include <cstdlib>
#include <cstring>

using namespace faults;

namespace {

HANDLE(Message, muster_message, muster_message_release)
HANDLE(Socket, muster_socket, muster_socket_release)
HANDLE(MessageQueue, muster_message_queue, muster_message_queue_release)
HANDLE(Forwarder, muster_forwarder, muster_forwarder_release)

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

// Faults make the message one that is copied, or end the connection.
SCENARIO(socket, loans) {
    Context context;
    create(context);
    muster_socket_config config{};
    config.struct_size = sizeof config;
    config.kind = MUSTER_SOCKET_ROUTER;
    config.flags = MUSTER_SOCKET_LOANS;
    config.address = 1;
    Socket router, dealer;
    OK(muster_socket_create, context, &config, router.out(), &error);
    config.kind = MUSTER_SOCKET_DEALER;
    config.address = 2;
    OK(muster_socket_create, context, &config, dealer.out(), &error);
    char where[256];
    OK(muster_socket_bind, router, "inproc://loans", 14, where, sizeof where, &error);
    OK(muster_socket_connect, dealer, where, strlen(where), &error);
    for (int i = 0; i < 3; i++) {
        muster_message *message = nullptr;
        OK(muster_message_create, &message);
        void *data = nullptr;
        muster_status loaned = CALL(muster_socket_loan_frame, dealer, message, sizeof large, &data, &error);
        if (loaned != MUSTER_OK) {
            expect_fault("muster_socket_loan_frame", loaned);
            loaned = CALL(muster_socket_loan_frame, dealer, message, sizeof large, &data, &error);
        }
        EXPECT(loaned == MUSTER_OK);
        memset(data, 'l', sizeof large);
        send_it(dealer, message);
        message = receive_it(router);
        muster_buffer frame{};
        OK(muster_message_frame, message, 0, &frame);
        EXPECT(frame.bytes == sizeof large && static_cast<const char *>(frame.data)[sizeof large - 1] == 'l');
        DO(muster_message_release, message);
    }
}

SCENARIO(socket, tcp) {
    exchange_messages("tcp://127.0.0.1:0?upgrade=no");
}

static muster_message *message_for(uint64_t destination, uint32_t type) {
    muster_message *message = nullptr;
    OK(muster_message_create, &message);
    muster_message_header header{};
    header.struct_size = sizeof header;
    header.type = type;
    header.destination = destination;
    OK(muster_message_set_header, message, &header);
    return message;
}

SCENARIO(message_queue, all) {
    Context context;
    create(context);
    MessageQueue queue;
    OK(muster_message_queue_create, context, nullptr, queue.out(), &error);
    muster_message *message = message_for(1, 2);
    OK(muster_message_queue_push, queue, message, 0);
    message = nullptr;
    OK(muster_message_queue_pop, queue, 0, &message);
    DO(muster_message_release, message);
    muster_message_queue_stats stats{};
    OK(muster_message_queue_get_stats, queue, &stats);
    EXPECT(stats.pushed == 1 && stats.popped == 1 && stats.messages == 0);
    OK(muster_message_queue_cancel, queue);
    OK(muster_message_queue_close, queue);
}

// A dealer's message is handed to the host, whose message is forwarded to a router. A fault may end a connection, with
// the message that was on it.
SCENARIO(forwarder, inproc) {
    Context context;
    create(context);
    MessageQueue inbox;
    OK(muster_message_queue_create, context, nullptr, inbox.out(), &error);
    muster_forwarder_config config{};
    config.struct_size = sizeof config;
    config.address = 10;
    config.inbox = inbox;
    Forwarder forwarder;
    OK(muster_forwarder_create, context, &config, forwarder.out(), &error);
    muster_socket *const socket = DO(muster_forwarder_socket, forwarder);
    char where[256];
    OK(muster_socket_bind, socket, "inproc://forwarder", 18, where, sizeof where, &error);
    OK(muster_forwarder_add_route, forwarder, 99, 1);
    OK(muster_forwarder_add_route, forwarder, 98, 1);
    OK(muster_forwarder_remove_route, forwarder, 98);
    OK(muster_forwarder_set_hook, forwarder, 3, inbox);
    muster_socket_config ends{};
    ends.struct_size = sizeof ends;
    ends.kind = MUSTER_SOCKET_ROUTER;
    ends.address = 1;
    Socket router, dealer;
    OK(muster_socket_create, context, &ends, router.out(), &error);
    ends.kind = MUSTER_SOCKET_DEALER;
    ends.address = 2;
    OK(muster_socket_create, context, &ends, dealer.out(), &error);
    OK(muster_socket_connect, router, where, strlen(where), &error);
    OK(muster_socket_connect, dealer, where, strlen(where), &error);
    send_it(dealer, message_for(10, 2));
    muster_message *message = nullptr;
    const muster_status popped = CALL(muster_message_queue_pop, inbox, 2 * second, &message);
    if (popped != MUSTER_OK) {
        EXPECT(has_fired());
        ended();
    }
    DO(muster_message_release, message);
    message = message_for(99, 2);
    muster_status sent = CALL(muster_forwarder_send, forwarder, message, patience, &error);
    if (sent != MUSTER_OK) {
        expect_fault("muster_forwarder_send", sent);
        sent = CALL(muster_forwarder_send, forwarder, message, patience, &error);
    }
    if (sent == MUSTER_OK)
        DO(muster_message_release, receive_it(router));
    else
        DO(muster_message_release, message);
    muster_forwarder_stats stats{};
    OK(muster_forwarder_get_stats, forwarder, &stats);
    CALL(muster_forwarder_close, forwarder, patience);
}
