// SPDX-License-Identifier: MIT
// How streams end: half-close, close, abort, cancel; and that a new one begins afresh.
#include "transport_check/harness.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace check {

namespace {

void half_close_by_the_dialler(World &world) {
    const Stream stream = world.dial("after-end 300000 31");
    stream.finish();
    stream.read_sequence(300'000, 31); // the other direction continues
    stream.expect_end();
    size_t bytes = 0;
    expect(muster_stream_write(stream.get(), "x", 1, second, &bytes), MUSTER_E_CLOSED, "writing after finish");
    stream.close();
}

void half_close_by_the_listener(World &world) {
    const Stream stream = world.dial("source 1000 32");
    stream.read_sequence(1000, 32);
    stream.expect_end();
    stream.expect_end(); // and again
    stream.close();
}

// An orderly close delivers everything, although no thread waits for it any more.
void close_delivers(World &world) {
    const uint64_t size = 6'000'000;
    const Stream sent = world.dial("sink");
    sent.write_sequence(size, 33);
    sent.finish();
    CHECK(sent.number() == size);
    sent.number();
    sent.close();
    // A close without reading the other direction.
    const Stream left = world.dial("source 100000 34");
    unsigned char some[100];
    left.read(some, sizeof some);
    const muster_status status = muster_stream_close(left.get(), time_limit);
    CHECK(status == MUSTER_OK);
}

// Bytes that the peer sent before it closed can still be read; the end follows.
void peer_closes_early(World &world) {
    const Stream stream = world.dial("close");
    stream.write("x", 1);
    stream.expect_end();
    // Writing to it fails soon, but not at once: the close is in transit.
    const int64_t until = now_ns() + time_limit;
    std::vector<unsigned char> piece(100'000);
    muster_status status = MUSTER_OK;
    while (status == MUSTER_OK && now_ns() < until) {
        size_t bytes = 0;
        status = muster_stream_write(stream.get(), piece.data(), piece.size(), time_limit, &bytes);
    }
    CHECK(status == MUSTER_E_PEER || status == MUSTER_E_ABORTED);
}

void abort_tells_why(World &world) {
    const Stream stream = world.dial("abort 4711");
    stream.write("x", 1);
    unsigned char byte;
    size_t bytes = 0;
    expect(muster_stream_read(stream.get(), &byte, 1, time_limit, &bytes), MUSTER_E_ABORTED,
           "reading an aborted stream");
    uint64_t reason = 0;
    muster_error why{};
    expect(muster_stream_reason(stream.get(), &reason, &why), MUSTER_E_ABORTED, "the reason");
    CHECK(reason == 4711);
    CHECK(strstr(why.message, "as was asked") != nullptr);
    expect(muster_stream_write(stream.get(), "y", 1, second, &bytes), MUSTER_E_ABORTED, "writing to it");
}

// The peer is in the middle of writing; its write must return at once.
void abort_by_the_dialler(World &world) {
    const Stream stream = world.dial("source 1000000000 35");
    std::vector<unsigned char> some(300'000);
    stream.read(some.data(), some.size());
    expect(muster_stream_abort(stream.get(), 12, "enough", 6), MUSTER_OK, "abort");
    size_t bytes = 0;
    expect(muster_stream_read(stream.get(), some.data(), 1, second, &bytes), MUSTER_E_ABORTED, "reading after it");
    CHECK(bytes == 0);
    // The next stream does not notice.
    const Stream next = world.dial("source 1000 36");
    next.read_sequence(1000, 36);
    next.expect_end();
}

void cancel_a_read(World &world) {
    const Stream stream = world.dial("echo");
    stream.write("abc", 3);
    unsigned char bytes[8] = {};
    std::atomic<int> got{-1000};
    std::atomic<size_t> moved{99};
    std::thread reader([&] {
        size_t size = 0;
        got = muster_stream_read_into(stream.get(), bytes, 8, 0, time_limit, &size);
        moved = size;
    });
    // Cancelled repeatedly until the thread has returned: at the first time it may not be inside yet.
    while (got == -1000) {
        expect(muster_stream_cancel(stream.get(), MUSTER_STREAM_READ), MUSTER_OK, "cancel");
        std::this_thread::yield();
    }
    reader.join();
    expect(got, MUSTER_E_CANCELED, "the cancelled read");
    CHECK(moved <= 3);
    // Bytes that it had consumed stay consumed, the rest arrives, and the stream continues.
    stream.read(bytes + moved, 3 - moved);
    CHECK(memcmp(bytes, "abc", 3) == 0);
    stream.write("d", 1);
    stream.read(bytes, 1);
    CHECK(bytes[0] == 'd');
}

// A write in the middle of a large transfer: exactly the bytes that it reports as accepted arrive.
void cancel_a_write(World &world) {
    const uint64_t size = 64'000'000, gate = static_cast<uint64_t>(now_ns());
    const Stream stream = world.dial("gated " + std::to_string(gate));
    std::vector<unsigned char> bytes(size);
    fill(bytes.data(), size, 0, 37);
    std::atomic<int> got{-1000};
    std::atomic<size_t> moved{0};
    std::thread writer([&] {
        size_t written = 0;
        got = muster_stream_write(stream.get(), bytes.data(), bytes.size(), time_limit, &written);
        moved = written;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(50)); // so that the transfer has begun and has not ended
    while (got == -1000) {
        expect(muster_stream_cancel(stream.get(), MUSTER_STREAM_WRITE), MUSTER_OK, "cancel");
        std::this_thread::yield();
    }
    writer.join();
    if (got != MUSTER_E_CANCELED) fail("a cancelled write: %s after %zu bytes", name_of(got).c_str(), moved.load());
    CHECK(moved < size);
    const Stream opener = world.dial("open " + std::to_string(gate));
    opener.expect_end();
    const uint64_t rest = std::min<uint64_t>(size - moved, 1'000'000);
    stream.write(bytes.data() + moved, rest);
    stream.finish();
    Checksum sum;
    sum.add(bytes.data(), std::min<uint64_t>(moved + rest, 64 << 20));
    CHECK(stream.number() == moved + rest);
    if (moved + rest <= 64 << 20) CHECK(stream.number() == sum.value());
}

void reconnect(World &world) {
    for (uint64_t i = 0; i < 30; i++) {
        const Stream stream = world.dial("echo");
        unsigned char bytes[3], sent[3];
        fill(sent, 3, 0, i);
        stream.write(sent, 3);
        stream.read(bytes, 3);
        CHECK(memcmp(bytes, sent, 3) == 0);
        if (i % 3 == 0) {
            stream.finish();
            stream.expect_end();
            stream.close();
        } else if (i % 3 == 1) {
            muster_stream_abort(stream.get(), i, nullptr, 0);
        } // else: released as it is
    }
}

// The context closes while a stream is open: written bytes arrive, the peer sees the end.
void context_closes(World &world) {
    if (!world.peer.separate()) skip("both ends are in one process");
    Host host(world.options, world.secret);
    const uint64_t size = 2'000'000;
    const Stream stream = host.dial(world.peer.address(), "verify " + std::to_string(size) + " 38");
    stream.write_sequence(size, 38);
    stream.finish();
    CHECK(stream.number() == size);
    host.close();
    unsigned char byte;
    size_t bytes = 0;
    const muster_status status = muster_stream_read(stream.get(), &byte, 1, second, &bytes);
    CHECK(status == MUSTER_E_CLOSED || status == MUSTER_E_END);
}

// The stream has not ended, and no bytes are in transit: the close must not wait.
void context_closes_idle_streams(World &world) {
    if (!world.peer.separate()) skip("both ends are in one process");
    Host host(world.options, world.secret);
    const Stream stream = host.dial(world.peer.address(), "echo");
    stream.write_sequence(1000, 39);
    stream.read_sequence(1000, 39);
    host.close();
}

} // namespace

const std::vector<Case> ending_cases = {
    {"half-close: the dialler finishes, the other direction goes on", half_close_by_the_dialler},
    {"half-close: the listener finishes, the end is read again and again", half_close_by_the_listener},
    {"close: everything accepted is delivered", close_delivers},
    {"close: a peer that closes early leaves an end to read and writes that fail", peer_closes_early},
    {"abort: code and text reach the other side", abort_tells_why},
    {"abort: a writer in mid-transfer comes out, other streams do not notice", abort_by_the_dialler},
    {"cancel: a read ends at once and the stream goes on", cancel_a_read},
    {"cancel: a write in mid-transfer tells the truth about its bytes", cancel_a_write},
    {"reconnect: each dial is a new stream", reconnect},
    {"context: closing it ends its streams in order", context_closes},
    {"context: closing it does not wait for streams that rest", context_closes_idle_streams},
};

} // namespace check
