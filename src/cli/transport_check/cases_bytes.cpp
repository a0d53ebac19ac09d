// SPDX-License-Identifier: MIT
// Bytes arrive: all of them, in order, both ways, in any amount, over many streams.
#include "transport_check/harness.hpp"

#include <algorithm>

namespace check {

namespace {

// Sent in one direction, verified there byte by byte, answered with the count.
void send_and_verify(World &world, uint64_t size, uint64_t sequence) {
    const Stream stream = world.dial("verify " + std::to_string(size) + " " + std::to_string(sequence));
    stream.write_sequence(size, sequence);
    stream.finish();
    const uint64_t got = stream.number();
    if (got != size)
        fail("%llu bytes sent, %llu arrived", static_cast<unsigned long long>(size),
             static_cast<unsigned long long>(got));
    stream.expect_end();
    stream.close();
}

void fetch_and_verify(World &world, uint64_t size, uint64_t sequence) {
    const Stream stream = world.dial("source " + std::to_string(size) + " " + std::to_string(sequence));
    stream.read_sequence(size, sequence);
    stream.expect_end();
    stream.close();
}

void small_sizes(World &world) {
    for (const uint64_t size :
         {0, 1, 2, 7, 8, 63, 64, 65, 4095, 4096, 4097, 65535, 65536, 65537, 262143, 262144, 262145}) {
        send_and_verify(world, size, size);
        fetch_and_verify(world, size, size + 1);
    }
}

void large_sizes(World &world) {
    for (uint64_t size = (1 << 20) + 1; size <= world.options.max_bytes; size = size * 4 - 3) {
        send_and_verify(world, size, size);
        fetch_and_verify(world, size, size + 1);
    }
    send_and_verify(world, world.options.max_bytes, 5);
    fetch_and_verify(world, world.options.max_bytes, 6);
}

void checksum_is_equal(World &world) {
    const uint64_t size = 3'000'001;
    const Stream stream = world.dial("sink");
    std::vector<unsigned char> bytes(size);
    fill(bytes.data(), size, 0, 9);
    Checksum sum;
    sum.add(bytes.data(), size);
    stream.write(bytes.data(), size); // in one call
    stream.finish();
    CHECK(stream.number() == size);
    CHECK(stream.number() == sum.value());
    stream.expect_end();
}

void both_ways_at_once(World &world) {
    const uint64_t size = std::min<uint64_t>(world.options.max_bytes, 32 << 20);
    const Stream stream = world.dial("echo");
    std::string trouble;
    std::thread writer([&] {
        try {
            stream.write_sequence(size, 11);
            stream.finish();
        } catch (const Failed &failed) {
            trouble = failed.text;
        }
    });
    try {
        stream.read_sequence(size, 11);
        stream.expect_end();
    } catch (const Failed &failed) {
        muster_stream_abort(stream.get(), 0, nullptr, 0);
        writer.join();
        throw Failed{failed.text + (trouble.empty() ? "" : "; " + trouble)};
    }
    writer.join();
    if (!trouble.empty()) throw Failed{trouble};
}

// Requests and answers, so that no layer can rely on further bytes.
void one_byte_at_a_time(World &world) {
    const Stream stream = world.dial("echo");
    for (int i = 0; i < 500; i++) {
        const auto sent = static_cast<unsigned char>(i * 7);
        unsigned char got = 0;
        stream.write(&sent, 1);
        stream.read(&got, 1);
        CHECK(got == sent);
    }
    stream.finish();
    stream.expect_end();
}

void many_streams(World &world) {
    constexpr int count = 64;
    const uint64_t size = std::clamp<uint64_t>(world.options.max_bytes / count, 100'000, 4 << 20);
    std::vector<Stream> streams;
    streams.reserve(count);
    for (int i = 0; i < count; i++) streams.push_back(world.dial("echo"));
    std::vector<std::string> troubles(count);
    std::vector<std::thread> threads;
    threads.reserve(count);
    for (int i = 0; i < count; i++) {
        threads.emplace_back([&, i] {
            try {
                // In turns, so that one thread serves both directions without filling them.
                std::vector<unsigned char> out(50'000), in(50'000);
                for (uint64_t at = 0; at < size;) {
                    const uint64_t k = std::min<uint64_t>(size - at, out.size());
                    fill(out.data(), k, at, 100 + static_cast<uint64_t>(i));
                    streams[i].write(out.data(), k);
                    streams[i].read(in.data(), k);
                    if (first_difference(in.data(), k, at, 100 + static_cast<uint64_t>(i)) != UINT64_MAX)
                        fail("stream %d got other bytes than it sent", i);
                    at += k;
                }
                streams[i].finish();
                streams[i].expect_end();
            } catch (const Failed &failed) {
                troubles[i] = failed.text;
                muster_stream_abort(streams[i].get(), 0, nullptr, 0);
            }
        });
    }
    for (std::thread &thread : threads) thread.join();
    for (const std::string &trouble : troubles)
        if (!trouble.empty()) throw Failed{trouble};
}

void hellos_cross(World &world) {
    const Stream stream = world.dial("echo and nothing else");
    CHECK(stream.hello() == "the listener");
    const std::string longest = "echo 0 0 " + std::string(4000, 'g');
    const Stream other = world.dial(longest);
    other.write("?", 1);
    char answer = 0;
    other.read(&answer, 1);
    CHECK(answer == '?');
}

// A buffer that is handed over is returned exactly once, and all of it has been sent.
void owned_buffers(World &world) {
    muster_queue *queue = nullptr;
    expect(muster_queue_create(world.host.context(), nullptr, &queue, nullptr), MUSTER_OK, "queue");
    const std::unique_ptr<muster_queue, void (*)(muster_queue *)> closer(queue, muster_queue_release);
    const uint64_t size = 5'000'003;
    const Stream stream = world.dial("verify " + std::to_string(size * 3) + " 21");
    std::vector<unsigned char> bytes(size * 3);
    fill(bytes.data(), bytes.size(), 0, 21);
    for (uint64_t i = 0; i < 3; i++)
        expect(muster_stream_write_owned(stream.get(), bytes.data() + i * size, size, queue, i), MUSTER_OK,
               "write_owned");
    for (uint64_t i = 0; i < 3; i++) {
        muster_completion entry;
        expect(muster_queue_next(queue, time_limit, &entry, nullptr), MUSTER_OK, "the buffer's release");
        CHECK(entry.kind == MUSTER_DONE_RELEASED && entry.status == MUSTER_OK && entry.tag == i && entry.bytes == size);
    }
    stream.finish();
    CHECK(stream.number() == size * 3);
    muster_completion entry;
    CHECK(muster_queue_next(queue, 0, &entry, nullptr) == MUSTER_AGAIN);
}

} // namespace

const std::vector<Case> byte_cases = {
    {"bytes: 0 to 256 KiB arrive in order, both ways", small_sizes},
    {"bytes: 1 MiB and more arrive in order, both ways", large_sizes},
    {"bytes: the checksum of one large write is equal on the other side", checksum_is_equal},
    {"bytes: an echo of both directions at once", both_ways_at_once},
    {"bytes: 500 single bytes, each answered", one_byte_at_a_time},
    {"bytes: 64 streams at once keep apart", many_streams},
    {"bytes: handed-over buffers are sent and come back once", owned_buffers},
    {"hellos reach the other side", hellos_cross},
};

} // namespace check
