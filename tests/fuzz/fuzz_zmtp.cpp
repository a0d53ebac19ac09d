// SPDX-License-Identifier: MIT
// What a peer may send to a broker's server, or a broker to who connects to it: a greeting, the handshake of NULL or
// CURVE, frames, heartbeats, and what is none of these. The first byte of the input says how: 1: CURVE; 2: a is_valid
// greeting comes before; 4: a is_valid handshake of NULL, too; 8: the connection is admitted; 16: what comes is sent
// back; 32: this is the side that has connected. The rest is written in pieces: length u8, bytes.
#include "input.hpp"

#include "connection.hpp"

#include <cerrno>
#include <sys/socket.h>
#include <unistd.h>

using namespace star;

namespace {

struct Owner final : ConnectionOwner {
    void received(Route route, Message &message) override {
        FUZZ_CHECK(route == 7);
        FUZZ_CHECK(message.size() <= (admitted ? Connection::max_frame_bytes : Connection::max_early_frame_bytes));
        if (echo) connection->send(message);
    }
    Connection *connection = nullptr;
    bool admitted = false, echo = false;
};

// The peer reads everything.
void drain(int fd) {
    static unsigned char bytes[65536];
    while (recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0) {
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static Scratch scratch;
    static const CurveServerKeys keys{{1, 2, 3}, {4, 5, 6}, {}};
    static const CurveClientKeys client_keys{{1, 2, 3}, {4, 5, 6}, {9}};
    static const unsigned char of_client[] = "\x04\x1c\x05READY\x0bSocket-Type\0\0\0\x06"
                                             "DEALER";
    static const unsigned char of_server[] = "\x04\x1c\x05READY\x0bSocket-Type\0\0\0\x06"
                                             "ROUTER";
    Input input(data, size);
    const uint8_t how = input.byte();
    int fds[2];
    FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
    {
        const ZmtpSide side = (how & 32) != 0 ? ZmtpSide::client : ZmtpSide::server;
        const unsigned char *const ready = side == ZmtpSide::client ? of_server : of_client;
        std::unique_ptr<Curve> curve;
        if ((how & 1) != 0 && side == ZmtpSide::client) curve = std::make_unique<CurveClient>(client_keys);
        if ((how & 1) != 0 && side == ZmtpSide::server) curve = std::make_unique<CurveServer>(keys);
        Connection connection(fds[0], 7, side, std::move(curve), 1);
        Owner owner;
        owner.connection = &connection;
        owner.echo = (how & 16) != 0;
        const auto step = [&](const void *bytes, size_t count) {
            if (count != 0 && send(fds[1], bytes, count, MSG_NOSIGNAL) != static_cast<ssize_t>(count)) return false;
            if (!connection.read(scratch, owner)) return false;
            if ((how & 8) != 0 && connection.handshaken() && !connection.admitted()) {
                connection.admit();
                owner.admitted = true;
            }
            if (connection.waiting() && !connection.write(scratch)) return false;
            drain(fds[1]);
            FUZZ_CHECK(connection.queued_control() <= connection.queued_bytes());
            return true;
        };
        bool alive = true;
        if ((how & 2) != 0) {
            unsigned char greeting[64] = {0xFF, 0, 0, 0, 0, 0, 0, 0, 1, 0x7F, 3, 0};
            memcpy(greeting + 12, (how & 1) != 0 ? "CURVE" : "NULL", (how & 1) != 0 ? 5 : 4);
            alive = step(greeting, sizeof greeting);
            FUZZ_CHECK(alive);
            if ((how & 5) == 4) {
                alive = step(ready, sizeof of_client - 1);
                FUZZ_CHECK(alive && connection.handshaken());
            }
        }
        while (alive && input.left() != 0) {
            size_t got = 0;
            const uint8_t length = input.byte();
            const uint8_t *const bytes = input.take(length, got);
            alive = step(bytes, got);
        }
        if (!alive) FUZZ_CHECK(connection.end() != Connection::End::none);
    }
    close(fds[1]);
    return 0;
}
