// SPDX-License-Identifier: MIT
// The other side sleeps, stops, dies, or does not read.
#include "transport_check/harness.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>

namespace check {

namespace {

// A watch of one stream, for silence and death.
class Watch {
  public:
    Watch(const Host &host, const Stream &stream, uint32_t interest) : stream_(stream) {
        expect(muster_queue_create(host.context(), nullptr, &queue_, nullptr), MUSTER_OK, "queue");
        expect(muster_stream_watch(stream.get(), interest, queue_, 7), MUSTER_OK, "watch");
    }
    ~Watch() {
        muster_stream_watch(stream_.get(), 0, nullptr, 0);
        muster_queue_release(queue_);
    }
    Watch(const Watch &) = delete;
    Watch &operator=(const Watch &) = delete;
    // Events within the time, until one of the expected ones.
    uint32_t await(uint32_t wanted, int64_t timeout) {
        uint32_t seen = 0;
        const int64_t until = now_ns() + timeout;
        while ((seen & wanted) == 0) {
            const int64_t left = until - now_ns();
            muster_completion entry;
            if (left <= 0 || muster_queue_next(queue_, left, &entry, nullptr) != MUSTER_OK) break;
            if (entry.kind == MUSTER_EVENT_READY && entry.tag == 7) seen |= entry.events;
        }
        return seen;
    }

  private:
    const Stream &stream_;
    muster_queue *queue_ = nullptr;
};

constexpr uint32_t life = MUSTER_STREAM_PEER_SILENT | MUSTER_STREAM_PEER_BACK | MUSTER_STREAM_ENDED;

// Three heartbeats, and longer than the time after which silence would be reported: the library answers for its host.
void reader_asleep(World &world) {
    const int64_t nap = std::max(3 * world.options.heartbeat_ns, world.options.silent_ns + world.options.heartbeat_ns);
    const Stream stream = world.dial("sleep " + std::to_string(nap / ms));
    Watch watch(world.host, stream, life);
    const uint64_t size = 8'000'000;
    std::string trouble;
    std::thread writer([&] {
        try {
            stream.write_sequence(size, 41);
            stream.finish();
        } catch (const Failed &failed) {
            trouble = failed.text;
        }
    });
    const uint32_t events = watch.await(life, nap);
    writer.join();
    if (!trouble.empty()) throw Failed{trouble};
    CHECK(events == 0);
    CHECK(stream.number() == size);
}

// The bytes that are accepted for a reader that does not read are bounded, and the writer times out.
void back_pressure(World &world) {
    const Stream stream = world.dial("hold");
    char mark = 0;
    stream.read(&mark, 1);
    std::vector<unsigned char> bytes(64 << 20);
    size_t written = 0;
    expect(muster_stream_write(stream.get(), bytes.data(), bytes.size(), 500 * ms, &written), MUSTER_TIMEOUT,
           "writing to a reader that does not read");
    CHECK(written > 0);
    // Windows of 1 MiB on both sides, and the buffers of the system.
    if (written > 24 << 20) fail("%zu bytes were taken for a reader that does not read", written);
    size_t more = 0;
    expect(muster_stream_write(stream.get(), bytes.data(), bytes.size(), 0, &more), MUSTER_AGAIN, "asking again");
    muster_stream_abort(stream.get(), 0, nullptr, 0);
}

void killed_while_writing(World &world) {
    const std::unique_ptr<Peer> victim = world.another(world.secret);
    const Stream stream = world.host.dial(victim->address(), "hold");
    char mark = 0;
    stream.read(&mark, 1);
    muster_status got = MUSTER_OK;
    std::thread writer([&] {
        std::vector<unsigned char> bytes(64 << 20);
        size_t written = 0;
        got = muster_stream_write(stream.get(), bytes.data(), bytes.size(), time_limit, &written);
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    const int64_t killed = now_ns();
    victim->signal(SIGKILL);
    writer.join();
    expect(got, MUSTER_E_PEER, "writing to a peer that was killed");
    if (now_ns() - killed > 5 * second)
        fail("its death was noticed only after %lld ms", static_cast<long long>((now_ns() - killed) / ms));
    muster_error why{};
    expect(muster_stream_reason(stream.get(), nullptr, &why), MUSTER_E_PEER, "the reason");
    CHECK(why.message[0] != '\0');
}

// Bytes that it had sent before can still be read; the status follows.
void killed_while_reading(World &world) {
    const std::unique_ptr<Peer> victim = world.another(world.secret);
    const Stream stream = world.host.dial(victim->address(), "hold");
    Watch watch(world.host, stream, life);
    const int64_t until = now_ns() + time_limit;
    muster_stream_stats stats{};
    while (stats.buffered_in == 0 && now_ns() < until) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        expect(muster_stream_get_stats(stream.get(), &stats), MUSTER_OK, "stats");
        if (stats.buffered_in == 0 && now_ns() > until - time_limit + 500 * ms) break; // silence is not reported: valid
    }
    victim->signal(SIGKILL);
    CHECK((watch.await(MUSTER_STREAM_ENDED, 5 * second) & MUSTER_STREAM_ENDED) != 0);
    char mark = 0;
    size_t bytes = 0;
    expect(muster_stream_read(stream.get(), &mark, 1, second, &bytes), MUSTER_OK, "reading what came before");
    CHECK(mark == '!');
    expect(muster_stream_read(stream.get(), &mark, 1, second, &bytes), MUSTER_E_PEER, "reading after it");
}

void killed_under_many(World &world) {
    const std::unique_ptr<Peer> victim = world.another(world.secret);
    constexpr int count = 8;
    std::vector<Stream> streams;
    streams.reserve(count);
    for (int i = 0; i < count; i++) streams.push_back(world.host.dial(victim->address(), "echo"));
    std::vector<std::thread> readers;
    readers.reserve(count);
    std::atomic<int> reports{0};
    for (const Stream &stream : streams)
        readers.emplace_back([&] {
            char byte;
            size_t bytes = 0;
            if (muster_stream_read(stream.get(), &byte, 1, time_limit, &bytes) == MUSTER_E_PEER) reports++;
        });
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    victim->signal(SIGKILL);
    for (std::thread &reader : readers) reader.join();
    CHECK(reports == 8);
    muster_error error{};
    const muster_status status = world.host.try_dial(victim->address(), error, 5 * second);
    if (status == MUSTER_OK || status == MUSTER_TIMEOUT) fail("dialling a dead process: %s", name_of(status).c_str());
}

// A debugger or Ctrl-Z: the silence is reported, and then its end; nothing is lost.
void stopped_and_continued(World &world) {
    const std::unique_ptr<Peer> other = world.another(world.secret);
    const uint64_t size = 3'000'000;
    const Stream stream = world.host.dial(other->address(), "verify " + std::to_string(size) + " 42");
    Watch watch(world.host, stream, life);
    stream.write_sequence(1000, 42);
    other->signal(SIGSTOP);
    uint32_t events = watch.await(life, world.options.silent_ns * 3 + second);
    if ((events & MUSTER_STREAM_PEER_SILENT) == 0) fail("three times silent_ns of silence were not told");
    CHECK((events & MUSTER_STREAM_ENDED) == 0);
    other->signal(SIGCONT);
    events = watch.await(MUSTER_STREAM_PEER_BACK | MUSTER_STREAM_ENDED, time_limit);
    CHECK((events & MUSTER_STREAM_ENDED) == 0);
    CHECK((events & MUSTER_STREAM_PEER_BACK) != 0);
    std::vector<unsigned char> rest(size - 1000);
    fill(rest.data(), rest.size(), 1000, 42);
    stream.write(rest.data(), rest.size());
    stream.finish();
    CHECK(stream.number() == size);
}

// Silence that does not end is death.
void stopped_for_good(World &world) {
    const std::unique_ptr<Peer> other = world.another(world.secret);
    const Stream stream = world.host.dial(other->address(), "echo");
    stream.write("a", 1);
    char byte = 0;
    stream.read(&byte, 1);
    other->signal(SIGSTOP);
    const int64_t stopped = now_ns();
    size_t bytes = 0;
    const muster_status status = muster_stream_read(stream.get(), &byte, 1, world.options.dead_ns * 3 + second, &bytes);
    const int64_t after = now_ns() - stopped;
    other->signal(SIGKILL);
    expect(status, MUSTER_E_PEER, "reading from a peer that is silent for good");
    CHECK(after > world.options.dead_ns / 2);
}

// The opposite case: this process sees a long silence because it was stopped itself, and must not attribute it to its
// peer.
void cancelled_dial(World &world) {
    const std::unique_ptr<Peer> other = world.another(world.secret);
    other->signal(SIGSTOP);
    muster_error error{};
    const int64_t begin = now_ns();
    const muster_status status = world.host.try_dial(other->address(), error, 300 * ms);
    if (status != MUSTER_TIMEOUT && status != MUSTER_E_UNREACHABLE && status != MUSTER_E_PEER)
        fail("dialling a stopped process: %s", name_of(status).c_str());
    CHECK(now_ns() - begin < 2 * second);
    other->signal(SIGCONT);
    const Stream stream = world.host.dial(other->address(), "source 100 43");
    stream.read_sequence(100, 43);
    stream.expect_end();
}

} // namespace

const std::vector<Case> peer_cases = {
    {"peer: a reader asleep for three heartbeats is no silence", reader_asleep},
    {"peer: one that does not read holds the writer back", back_pressure},
    {"peer: kill -9 while it is written to", killed_while_writing},
    {"peer: kill -9, what it had sent stays readable", killed_while_reading},
    {"peer: kill -9 under eight streams ends them all", killed_under_many},
    {"peer: SIGSTOP is told as silence, SIGCONT as return, nothing is lost", stopped_and_continued},
    {"peer: SIGSTOP for good is death after dead_ns", stopped_for_good},
    {"peer: a dial to a stopped process ends in its time, and works later", cancelled_dial},
};

} // namespace check
