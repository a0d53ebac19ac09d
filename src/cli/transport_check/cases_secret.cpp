// SPDX-License-Identifier: MIT
// Who gets in, and what is said to those who do not; addresses.
#include "transport_check/harness.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace check {

namespace {

const std::string other_secret = "a secret that nobody else has, 32+";

void still_serves(World &world) {
    const Stream stream = world.dial("source 100 51");
    stream.read_sequence(100, 51);
    stream.expect_end();
}

void wrong_secret_here(World &world) {
    if (!world.peer.separate()) skip("both ends are in one process, and share its secret");
    const Host other(world.options, other_secret);
    muster_error error{};
    const muster_status status = other.try_dial(world.peer.address(), error);
    expect(status, MUSTER_E_AUTH, "dialling with another secret", &error);
    CHECK(error.message[0] != '\0');
    still_serves(world);
}

void wrong_secret_there(World &world) {
    std::unique_ptr<Peer> other;
    try {
        other = world.another(other_secret);
    } catch (const Failed &failed) { // refused before it could listen, where the transport itself is guarded
        if (!world.options.guarded || failed.text.find("MUSTER_E_AUTH") == std::string::npos) throw;
        return still_serves(world);
    }
    CHECK(!world.options.guarded);
    muster_error error{};
    expect(world.host.try_dial(other->address(), error), MUSTER_E_AUTH, "dialling a listener with another secret",
           &error);
    still_serves(world);
}

std::string with_option(const std::string &address, const std::string &option) {
    return address + (address.find('?') == std::string::npos ? "?" : "&") + option;
}

void no_proof_on_one_side(World &world) {
    if (!world.peer.separate()) skip("both ends are in one process");
    muster_error error{};
    const muster_status status = world.host.try_dial(with_option(world.peer.address(), "auth=none"), error);
    expect(status, MUSTER_E_AUTH, "dialling without proof", &error);
    still_serves(world);
}

void no_proof_on_both_sides(World &world) {
    if (!world.peer.separate()) skip("both ends are in one process");
    const std::unique_ptr<Listener> open = world.host.listen(with_option(unique_address(world.options), "auth=none"));
    const Host other(world.options, other_secret);
    const std::string address = open->address(); // it has auth=none, which both sides have to write out
    if (world.options.guarded) {
        muster_error error{};
        expect(other.try_dial(address, error), MUSTER_E_AUTH, "dialling a guarded transport with another secret",
               &error);
        return still_serves(world);
    }
    std::string trouble;
    std::thread dialler([&] {
        try {
            const Stream stream = other.dial(address, "anybody");
            stream.write_sequence(1000, 52);
            stream.finish();
            stream.expect_end();
        } catch (const Failed &failed) {
            trouble = failed.text;
        }
    });
    try {
        const Stream stream = open->accept();
        CHECK(stream.hello() == "anybody");
        stream.read_sequence(1000, 52);
        stream.expect_end();
        stream.finish();
        stream.close();
    } catch (const Failed &failed) {
        dialler.join();
        throw Failed{failed.text + "; " + trouble};
    }
    dialler.join();
    if (!trouble.empty()) throw Failed{trouble};
}

// ---- raw bytes, for addresses to which they can be sent directly
// -----------------------------------------------------

int raw_connect(const std::string &address) {
    int fd = -1;
    if (address.starts_with("tcp://127.0.0.1:")) {
        sockaddr_in where{};
        where.sin_family = AF_INET;
        where.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(16))));
        where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(fd, reinterpret_cast<sockaddr *>(&where), sizeof where) != 0) fail("no raw connection");
    } else if (address.starts_with("unix:///") || address.starts_with("served:///")) {
        const std::string path = address.substr(address.find("///") + 2);
        sockaddr_un where{};
        where.sun_family = AF_UNIX;
        memcpy(where.sun_path, path.c_str(), std::min(path.find('?'), path.size()));
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(fd, reinterpret_cast<sockaddr *>(&where), sizeof where) != 0) fail("no raw connection");
    } else {
        skip("no way to bring raw bytes to such an address from outside");
    }
    return fd;
}

uint64_t handshakes_failed(World &world) {
    const Stream stream = world.dial("stats");
    stream.number();
    const uint64_t failed = stream.number();
    stream.expect_end();
    return failed;
}

// Expects that the listener hangs up on each of them.
void expect_hang_up(const std::vector<int> &fds) {
    const int64_t until = now_ns() + time_limit;
    bool held = false;
    for (const int fd : fds) {
        for (bool over = false; !over && !held;) {
            pollfd waiting{fd, POLLIN, 0};
            char answer[256];
            held = now_ns() > until || poll(&waiting, 1, static_cast<int>((until - now_ns()) / ms) + 1) <= 0;
            over = !held && recv(fd, answer, sizeof answer, 0) <= 0;
        }
        ::close(fd);
    }
    if (held) fail("the listener holds on to a connection that does not speak its language");
}

int send_raw(World &world, const std::string &bytes) {
    const int fd = raw_connect(world.peer.address());
    // The listener may close the connection before it has received all of it.
    if (!bytes.empty() && send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0 && errno != EPIPE &&
        errno != ECONNRESET)
        fail("no raw bytes sent");
    return fd;
}

void malformed_handshakes(World &world) {
    if (!world.peer.separate()) skip("both ends are in one process");
    const uint64_t before = handshakes_failed(world);
    std::string noise(70'000, '\0');
    fill(reinterpret_cast<unsigned char *>(noise.data()), noise.size(), 0, 53);
    for (const std::string &bytes : {std::string("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
                                     std::string(100'000, '\0'), std::string(100'000, '\xff'), noise})
        expect_hang_up({send_raw(world, bytes)});
    still_serves(world);
    CHECK(handshakes_failed(world) >= before + 4);
}

void truncated_handshakes(World &world) {
    if (!world.peer.separate()) skip("both ends are in one process");
    const uint64_t before = handshakes_failed(world);
    const int silent = raw_connect(world.peer.address());
    shutdown(silent, SHUT_WR);
    // A first message as an outsider may know it: kind 1, a length, then silence. The time limit ends it.
    std::vector<int> fds = {silent};
    for (size_t length = 0; length <= 4; length++) fds.push_back(send_raw(world, std::string("\1\0P\0", length)));
    expect_hang_up(fds);
    still_serves(world);
    CHECK(handshakes_failed(world) >= before + 5);
}

// Silent unauthenticated peers use places, but only for a limited time and only so many.
void silent_peers(World &world) {
    if (!world.peer.separate()) skip("both ends are in one process");
    std::vector<int> fds;
    fds.reserve(150);
    for (int i = 0; i < 150; i++) fds.push_back(raw_connect(world.peer.address()));
    // After their timeout there is room again.
    const int64_t until = now_ns() + time_limit;
    muster_status status = MUSTER_OK;
    do {
        muster_error error{};
        status = world.host.try_dial(world.peer.address(), error, 3 * second);
    } while (status != MUSTER_OK && now_ns() < until);
    for (const int fd : fds) ::close(fd);
    expect(status, MUSTER_OK, "dialling among silent peers");
    still_serves(world);
}

// ---- addresses
// -------------------------------------------------------------------------------------------------------

void nobody_listens(World &world) {
    const std::string address = world.fresh_address();
    muster_error error{};
    const int64_t begin = now_ns();
    expect(world.host.try_dial(address, error), MUSTER_E_UNREACHABLE, "dialling where nobody listens", &error);
    CHECK(now_ns() - begin < 5 * second);
    CHECK(error.message[0] != '\0');
}

void unknown_option(World &world) {
    muster_error error{};
    const std::string address = with_option(world.peer.address(), "no-such-option=1");
    const muster_status status = world.host.try_dial(address, error);
    CHECK(status == MUSTER_E_ADDRESS || status == MUSTER_E_UNREACHABLE || status == MUSTER_E_NOT_FOUND);
    CHECK(error.message[0] != '\0');
}

// A name in use is reported, by listen or (if the host serves) by accept; the address of a closed listener is free.
void address_in_use(World &world) {
    std::unique_ptr<Listener> first = world.host.listen(unique_address(world.options));
    const std::string address = first->address();
    muster_listener *second_one = nullptr;
    muster_error error{};
    muster_status status =
        muster_transport_listen(world.host.context(), address.data(), address.size(), nullptr, &second_one, &error);
    if (status == MUSTER_OK) {
        muster_stream *stream = nullptr;
        status = muster_listener_accept(second_one, time_limit, &stream, &error);
        muster_listener_release(second_one);
    }
    expect(status, MUSTER_E_EXISTS, "listening where somebody listens", &error);
    expect(muster_listener_close(first->get()), MUSTER_OK, "closing a listener");
    const std::unique_ptr<Listener> again = world.host.listen(address);
    CHECK(again->address() == address);
}

// The waits of accept: in time, and by cancel and close from another thread.
void accept_ends(World &world) {
    const std::unique_ptr<Listener> listener = world.host.listen(unique_address(world.options));
    muster_stream *stream = nullptr;
    CHECK(muster_listener_accept(listener->get(), 0, &stream, nullptr) == MUSTER_AGAIN);
    CHECK(muster_listener_accept(listener->get(), 20 * ms, &stream, nullptr) == MUSTER_TIMEOUT);
    std::atomic<int> got{-1000};
    std::thread waiter([&] { got = muster_listener_accept(listener->get(), time_limit, &stream, nullptr); });
    while (got == -1000) {
        muster_listener_cancel(listener->get());
        std::this_thread::yield();
    }
    waiter.join();
    CHECK(got == MUSTER_E_CANCELED);
    CHECK(muster_listener_close(listener->get()) == MUSTER_OK);
    CHECK(muster_listener_accept(listener->get(), time_limit, &stream, nullptr) == MUSTER_E_CLOSED);
}

} // namespace

const std::vector<Case> secret_cases = {
    {"secret: a dialler with another one is refused", wrong_secret_here},
    {"secret: a listener with another one is refused", wrong_secret_there},
    {"secret: auth=none on one side is refused", no_proof_on_one_side},
    {"secret: auth=none on both sides lets anybody in", no_proof_on_both_sides},
    {"handshake: malformed ones are hung up on", malformed_handshakes},
    {"handshake: truncated ones are hung up on", truncated_handshakes},
    {"handshake: silent peers do not keep others out for long", silent_peers},
    {"address: nobody listens", nobody_listens},
    {"address: an unknown option is told", unknown_option},
    {"address: in use, and free again after close", address_in_use},
    {"accept: ends in time, by cancel and by close", accept_ends},
};

} // namespace check
