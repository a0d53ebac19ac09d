// SPDX-License-Identifier: MIT
// A socket link whose peer is this test, byte by byte: frames cut in any way, peers that break the protocol or fall
// silent, and what the link itself sends.
// ctest: quick timeout=120
#include "stream/stream.hpp"
#include "transport/link.hpp"

#include <atomic>
#include <csetjmp>
#include <cstdarg>
#include <cstring>
#include <random>
#include <thread>

#include <poll.h>
#include <sys/socket.h>

extern "C" {
#include <cmocka.h>
}

using namespace muster;

namespace {

constexpr int64_t ms = 1'000'000;

// A stream over a link, and the other end of its socket in our hands.
struct Wire {
    Ref<Context> context;
    Ref<Stream> stream;
    Fd peer;

    explicit Wire(uint64_t window = 1 << 20, int64_t heartbeat_ns = 1'000 * ms, int buffer = 0) {
        ContextSettings settings;
        settings.secret.assign(32, 7);
        settings.heartbeat_ns = heartbeat_ns;
        settings.silent_ns = 4 * heartbeat_ns;
        settings.dead_ns = 10 * heartbeat_ns;
        context = std::move(*Context::create(settings));
        int fds[2];
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) fail_msg("socketpair: %s", strerror(errno));
        for (const int fd : fds)
            if (buffer != 0) setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
        peer = Fd(fds[0]);
        Hub &hub = Hub::of(*context);
        std::atomic<bool> made{false};
        context->post([&] {
            Agreement terms;
            terms.peer_window = window;
            auto link = make_ref<Link>(hub, Duplex::make_private(window), 0, terms, window, "test://peer", Fd(fds[1]));
            stream = link->make_stream("");
            link->begin();
            made.store(true);
        });
        while (!made.load()) std::this_thread::yield();
    }
    ~Wire() {
        if (stream) stream.detach()->host_release();
        peer.reset();
    }
    void send(const std::string &bytes) const {
        for (size_t at = 0; at < bytes.size();) {
            const ssize_t n = ::send(peer.get(), bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
            if (n <= 0) return; // the link has hung up
            at += static_cast<size_t>(n);
        }
    }
};

std::string frame(FrameType type, const std::string &payload = "") {
    unsigned char header[frame_header_bytes];
    put_frame_header(header, type, payload.size());
    return std::string(reinterpret_cast<char *>(header), sizeof header) + payload;
}

std::string number(uint64_t value) {
    unsigned char bytes[8];
    put_u64(bytes, value);
    return {reinterpret_cast<char *>(bytes), sizeof bytes};
}

unsigned char pattern(uint64_t position) {
    return static_cast<unsigned char>(position * 2654435761u >> 13);
}

std::string bytes_from(uint64_t position, size_t size) {
    std::string out(size, '\0');
    for (size_t i = 0; i < size; i++) out[i] = static_cast<char>(pattern(position + i));
    return out;
}

Status read_some(Stream &stream, void *data, size_t capacity, int64_t timeout_ns, size_t &moved) {
    Deadline deadline(timeout_ns);
    return stream.read(data, 1, capacity, deadline, moved);
}

Status read_end(Wire &wire) { // reads until it fails
    char buffer[65536];
    size_t moved = 0;
    Status status = MUSTER_OK;
    while (status == MUSTER_OK) status = read_some(*wire.stream, buffer, sizeof buffer, 5'000 * ms, moved);
    return status;
}

std::string reason(Wire &wire) {
    muster_error error{};
    wire.stream->reason(nullptr, &error);
    return error.message;
}

// ---- receiving
// -------------------------------------------------------------------------------------------------------

// Frames of every length, control frames in between, written in pieces of every length; reads of every size. The peer
// keeps to the credit it is given.
bool arrives_whole(uint32_t seed, size_t frame_most, size_t piece_most, size_t read_most, bool reader_first) {
    Wire wire;
    std::mt19937 random(seed);
    // Enough of each to meet every combination, few enough system calls.
    const size_t total =
        std::min<size_t>(4 << 20, 600 * std::min({frame_most, piece_most, read_most}) + 3 * frame_most);
    std::thread sender([&] {
        std::mt19937 dice(seed + 1);
        std::string text;
        uint64_t at = 0, allowed = 1 << 20;
        FrameReader back;
        struct Credits final : FrameSink {
            uint64_t all = 0;
            Status on_data(uint32_t, const unsigned char *, size_t) noexcept override { return MUSTER_OK; }
            Status on_frame(FrameType type, uint32_t, const unsigned char *payload, size_t) noexcept override {
                if (type == FrameType::credit) all += get_u64(payload);
                return MUSTER_OK;
            }
        } credits;
        while (at < total || !text.empty()) {
            while (at < total && text.size() < piece_most) {
                const size_t k = std::min<uint64_t>({1 + dice() % frame_most, total - at, allowed + credits.all - at});
                if (k == 0) break;
                text += frame(FrameType::data, bytes_from(at, k));
                at += k;
                if (dice() % 5 == 0) text += frame(FrameType::heartbeat);
            }
            unsigned char in[4096];
            const ssize_t got = recv(wire.peer.get(), in, sizeof in, text.empty() ? 0 : MSG_DONTWAIT);
            if (got == 0) return;
            if (got > 0) back.feed(in, static_cast<size_t>(got), credits);
            if (text.empty()) continue;
            const size_t k = std::min<size_t>(1 + dice() % piece_most, text.size());
            wire.send(text.substr(0, k));
            text.erase(0, k);
            if (dice() % 50 == 0) usleep(200);
        }
        wire.send(frame(FrameType::finish));
        if (reader_first) usleep(1000);
    });
    std::vector<unsigned char> buffer(read_most);
    uint64_t at = 0;
    bool same = true;
    Status status = MUSTER_OK;
    if (!reader_first) usleep(2000);
    while (status == MUSTER_OK) {
        size_t moved = 0;
        status = read_some(*wire.stream, buffer.data(), 1 + random() % read_most, 10'000 * ms, moved);
        for (size_t i = 0; i < moved; i++) same = same && buffer[i] == pattern(at + i);
        at += moved;
        if (random() % 64 == 0) usleep(100);
    }
    sender.join();
    if (!same || status != MUSTER_E_END || at != total)
        print_error("seed %u: %s at %llu of %zu, %s\n", seed, same ? "same" : "differs",
                    static_cast<unsigned long long>(at), total, muster_status_name(status));
    return same && status == MUSTER_E_END && at == total;
}

void test_frames_of_any_shape_become_the_same_bytes(void **) {
    const size_t sizes[] = {1, 7, 100, 5000, 40000, 262144};
    uint32_t seed = 1;
    bool all = true;
    for (const size_t frames : sizes)
        for (const size_t pieces : {size_t{3}, size_t{5000}, size_t{300000}})
            for (const size_t reads : {size_t{1}, size_t{90}, size_t{20000}, size_t{1} << 20}) {
                if (frames * 20 <= pieces || reads * 2000 <= frames || pieces * 2000 <= frames) continue;
                seed++;
                all = arrives_whole(seed, frames, pieces, reads, seed % 2 == 0) && all;
            }
    assert_true(all);
}

void test_a_peer_that_breaks_the_protocol_is_cut_off(void **) {
    const struct {
        std::string bytes;
        const char *says;
    } broken[] = {
        {frame(static_cast<FrameType>(77)), "unknown type"},
        {std::string("\1\1\0\0\1\0\0\0x", 9), "unknown flags"},
        {std::string("\1\0\0\0\0\0\0\1", 8), "impossible length"},
        {frame(FrameType::data), "impossible length"},
        {frame(FrameType::credit, "1234"), "impossible length"},
        {frame(FrameType::credit, number(1)), "more credit"},
        {frame(FrameType::credit, number(UINT64_MAX)), "more credit"},
        {frame(FrameType::finish) + frame(FrameType::data, "x"), "after the end"},
        {frame(FrameType::abort, "short"), "impossible length"},
    };
    for (const auto &one : broken) {
        std::string why;
        Status status;
        {
            Wire wire;
            wire.send(one.bytes);
            status = read_end(wire);
            for (int i = 0; i < 1000 && reason(wire).empty(); i++) usleep(1000);
            why = reason(wire);
        }
        if (status != MUSTER_E_PEER && status != MUSTER_E_END) fail_msg("%s: %s", one.says, muster_status_name(status));
        if (why.find(one.says) == std::string::npos) fail_msg("'%s' does not say '%s'", why.c_str(), one.says);
    }
}

void test_more_data_than_allowed_is_refused_and_what_was_allowed_stays(void **) {
    size_t got = 0;
    Status status;
    std::string why;
    {
        Wire wire(4096);
        wire.send(frame(FrameType::data, std::string(4096, 'a')) + frame(FrameType::data, "b"));
        for (int i = 0; i < 2000 && reason(wire).empty(); i++) usleep(1000);
        char buffer[8192];
        do {
            size_t moved = 0;
            status = read_some(*wire.stream, buffer, sizeof buffer, 1'000 * ms, moved);
            got += moved;
        } while (status == MUSTER_OK);
        why = reason(wire);
    }
    assert_int_equal(got, 4096);
    assert_int_equal(status, MUSTER_E_PEER);
    assert_non_null(strstr(why.c_str(), "more data than was granted"));
}

void test_hang_ups_are_told_after_what_came_before(void **) {
    const struct {
        std::string bytes;
        Status status;
        size_t readable;
    } cases[] = {
        {"", MUSTER_E_PEER, 0},
        {frame(FrameType::data, "hello"), MUSTER_E_PEER, 5},
        {frame(FrameType::data, "hello").substr(0, 10), MUSTER_E_PEER, 2},
        {frame(FrameType::data, "hello") + frame(FrameType::finish), MUSTER_E_END, 5},
        {frame(FrameType::data, "hello") + frame(FrameType::finish) + frame(FrameType::goodbye), MUSTER_E_END, 5},
        {frame(FrameType::data, "hello") + frame(FrameType::abort, number(7) + "why") + frame(FrameType::goodbye),
         MUSTER_E_ABORTED, 5}};
    for (const auto &one : cases)
        for (const bool waits : {false, true}) {
            size_t got = 0;
            Status status = MUSTER_OK;
            {
                Wire wire;
                std::thread other([&] {
                    if (waits) usleep(20'000);
                    wire.send(one.bytes);
                    shutdown(wire.peer.get(), SHUT_WR);
                });
                if (!waits) {
                    other.join();
                    usleep(20'000);
                }
                char buffer[64];
                while (status == MUSTER_OK) {
                    size_t moved = 0;
                    status = read_some(*wire.stream, buffer, sizeof buffer, 5'000 * ms, moved);
                    got += moved;
                }
                if (waits) other.join();
            }
            assert_int_equal(status, one.status);
            assert_int_equal(got, one.readable);
        }
}

// Endless frames without payload for the host: they do not prolong a wait, and a cancel gets through. The host has
// waited just before, so that it is the receiving side.
struct Flood {
    Wire wire{4096};
    std::atomic<bool> begun{false}, over{false};
    std::thread peer{[this] {
        std::string text;
        for (int i = 0; i < 4096; i++) text += frame(FrameType::heartbeat);
        while (!begun.load()) std::this_thread::yield();
        while (!over.load()) wire.send(text);
    }};
    char buffer[64];
    size_t moved = 0;
    Status read(int64_t timeout_ns) { return read_some(*wire.stream, buffer, sizeof buffer, timeout_ns, moved); }
    void begin() {
        assert_int_equal(read(ms), MUSTER_TIMEOUT);
        begun.store(true);
    }
    void end() {
        over.store(true);
        shutdown(wire.peer.get(), SHUT_RDWR);
        peer.join();
    }
};

void test_a_flood_of_heartbeats_prolongs_no_read(void **) {
    Flood flood;
    flood.begin();
    const int64_t from = now_ns();
    assert_int_equal(flood.read(50 * ms), MUSTER_TIMEOUT);
    assert_true(now_ns() - from < 2'000 * ms); // not at the first gap between two of them
    flood.end();
}

void test_a_flood_of_heartbeats_prolongs_no_write(void **) {
    Flood flood;
    const std::string much(8192, 'x'); // twice the credit
    flood.begin();
    const int64_t from = now_ns();
    Deadline soon(50 * ms);
    assert_int_equal(flood.wire.stream->write(much.data(), much.size(), soon, flood.moved), MUSTER_TIMEOUT);
    assert_true(now_ns() - from < 2'000 * ms);
    flood.end();
}

void test_a_flood_of_heartbeats_lets_a_cancel_through(void **) {
    Flood flood;
    flood.begin();
    std::atomic<Status> status{MUSTER_OK};
    std::thread reader([&] { status.store(flood.read(60'000 * ms)); });
    while (status.load() == MUSTER_OK) flood.wire.stream->cancel(MUSTER_STREAM_READ);
    reader.join();
    assert_int_equal(status.load(), MUSTER_E_CANCELED);
    flood.end();
}

void test_a_flood_of_heartbeats_lets_a_queue_go_on(void **) {
    Flood flood;
    Ref<Queue> queue = std::move(*Queue::create(*flood.wire.context, 16));
    assert_int_equal(flood.wire.stream->watch(MUSTER_STREAM_READABLE, queue.get(), 1), MUSTER_OK);
    flood.begun.store(true);
    for (int i = 0; i < 20; i++) {
        muster_completion entry;
        Deadline wait(i % 2 == 0 ? 0 : 5 * ms);
        if (queue->next(wait, &entry, nullptr) == MUSTER_OK) assert_int_equal(flood.read(0), MUSTER_AGAIN);
    }
    flood.end();
    flood.wire.stream->watch(0, nullptr, 0);
    queue->close();
}

// ---- what goes out --------------------------------------------------------------------------------------------------

struct Outcome {
    std::string data;
    int heartbeats = 0, finished = 0, goodbyes = 0, aborts = 0;
    std::string abort_text;
    bool ok = true;
};

// Reads frames in pieces of random size, grants credit in random steps, until the goodbye or the end.
Outcome follow(int fd, uint64_t window, uint32_t seed) {
    struct Follower final : FrameSink {
        Outcome out;
        uint64_t allowed = 0;
        Status on_data(uint32_t, const unsigned char *data, size_t size) noexcept override {
            out.data.append(reinterpret_cast<const char *>(data), size);
            if (out.data.size() > allowed || out.finished) out.ok = false;
            return MUSTER_OK;
        }
        Status on_frame(FrameType type, uint32_t, const unsigned char *payload, size_t size) noexcept override {
            if (type == FrameType::heartbeat) out.heartbeats++;
            if (type == FrameType::finish) out.finished++;
            if (type == FrameType::goodbye) out.goodbyes++;
            if (type != FrameType::abort) return MUSTER_OK;
            out.aborts++;
            out.abort_text.assign(reinterpret_cast<const char *>(payload) + 8, size - 8);
            return MUSTER_OK;
        }
    } follower;
    follower.allowed = window;
    std::mt19937 dice(seed);
    FrameReader reader;
    uint64_t granted = 0;
    while (!follower.out.goodbyes) {
        unsigned char in[30000];
        const ssize_t n = recv(fd, in, 1 + dice() % sizeof in, 0);
        if (n <= 0) break;
        if (reader.feed(in, static_cast<size_t>(n), follower) < 0) {
            print_error("the link sent %s\n", reader.why());
            follower.out.ok = false;
            break;
        }
        const uint64_t more = follower.out.data.size() - granted;
        if (more != 0 && dice() % 3 == 0) {
            granted += more;
            follower.allowed += more;
            const std::string credit = frame(FrameType::credit, number(more));
            send(fd, credit.data(), credit.size(), MSG_NOSIGNAL);
        }
        // A peer that lags: what is left to be granted comes when nothing else does.
        pollfd ready{fd, POLLIN, 0};
        if (more != 0 && granted < follower.out.data.size() && poll(&ready, 1, 5) == 0) {
            const uint64_t rest = follower.out.data.size() - granted;
            granted += rest;
            follower.allowed += rest;
            const std::string credit = frame(FrameType::credit, number(rest));
            send(fd, credit.data(), credit.size(), MSG_NOSIGNAL);
        }
    }
    return follower.out;
}

void test_writes_of_any_shape_become_frames_within_the_credit(void **) {
    bool all = true;
    for (uint32_t seed = 1; seed <= 12; seed++) {
        Outcome outcome;
        uint64_t written = 0;
        Status status = MUSTER_OK;
        {
            const uint64_t window = seed % 3 == 0 ? 4096 : seed % 3 == 1 ? 65536 : 1 << 20;
            Wire wire(window, 1'000 * ms, seed % 2 == 0 ? 4608 : 0);
            std::thread peer([&] { outcome = follow(wire.peer.get(), window, seed); });
            auto queue = std::move(*Queue::create(*wire.context, 1024));
            std::mt19937 random(seed);
            std::vector<std::unique_ptr<std::string>> lent;
            const uint64_t total = seed % 3 == 0 ? 300'000 : 3'000'000;
            while (written < total && status >= 0) {
                const size_t size = 1 + random() % (random() % 4 == 0 ? 300'000 : random() % 2 ? 5'000 : 100);
                auto bytes = std::make_unique<std::string>(bytes_from(written, size));
                if (random() % 6 == 0) {
                    status = wire.stream->write_owned(bytes->data(), size, *queue, 0);
                    if (status == MUSTER_OK) written += size, lent.push_back(std::move(bytes));
                    if (status == MUSTER_AGAIN) status = MUSTER_OK, usleep(500);
                    continue;
                }
                // Deadlines of all kinds cut writes in the middle; what was accepted counts.
                Deadline deadline(random() % 3 == 0 ? 0 : random() % 3 == 0 ? 100'000 : 10'000 * ms);
                size_t moved = 0;
                status = wire.stream->write(bytes->data(), size, deadline, moved);
                written += moved;
                if (status == MUSTER_TIMEOUT || status == MUSTER_AGAIN) status = MUSTER_OK;
                if (random() % 40 == 0) usleep(1000);
                if (random() % 40 == 0) {
                    Deadline soon(10'000 * ms);
                    status = wire.stream->flush(soon);
                }
            }
            Deadline soon(10'000 * ms);
            if (status >= 0) status = wire.stream->close(soon);
            peer.join();
            Deadline look(0);
            muster_completion done;
            size_t back = 0;
            while (queue->next(look, &done, nullptr) == MUSTER_OK) back += done.status == MUSTER_OK;
            if (back != lent.size()) {
                print_error("seed %u: %zu of %zu buffers came back\n", seed, back, lent.size());
                all = false;
            }
        }
        const bool same = outcome.data == bytes_from(0, written);
        if (status != MUSTER_OK || !same || !outcome.ok || outcome.finished != 1 || outcome.goodbyes != 1) {
            print_error("seed %u: %s, %zu of %llu bytes, %s, finished %d\n", seed, muster_status_name(status),
                        outcome.data.size(), static_cast<unsigned long long>(written), same ? "same" : "different",
                        outcome.finished);
            all = false;
        }
    }
    assert_true(all);
}

void test_an_abort_in_the_middle_keeps_the_frames_whole(void **) {
    bool all = true;
    for (uint32_t seed = 1; seed <= 8; seed++) {
        Outcome outcome;
        {
            Wire wire(65536, 1'000 * ms, 4608);
            const std::string bytes = bytes_from(0, 500'000);
            size_t moved = 0;
            Deadline shortly(3 * ms);
            wire.stream->write(bytes.data(), bytes.size(), shortly, moved);
            wire.stream->abort(9, "enough");
            outcome = follow(wire.peer.get(), 65536, seed);
        }
        const bool same = outcome.data == bytes_from(0, outcome.data.size());
        all =
            all && same && outcome.ok && outcome.aborts == 1 && outcome.abort_text == "enough" && outcome.goodbyes == 1;
    }
    assert_true(all);
}

// ---- silence --------------------------------------------------------------------------------------------------------

void test_silence_is_told_and_then_taken_for_death(void **) {
    int silent = 0, back = 0;
    Status status;
    std::string why;
    {
        Wire wire(1 << 20, 20 * ms);
        auto queue = std::move(*Queue::create(*wire.context, 16));
        wire.stream->watch(MUSTER_STREAM_PEER_SILENT | MUSTER_STREAM_PEER_BACK, queue.get(), 1);
        const auto wait_for = [&](uint32_t event) {
            for (int i = 0; i < 500; i++) {
                Deadline soon(10 * ms);
                muster_completion entry{};
                if (queue->next(soon, &entry, nullptr) == MUSTER_OK && (entry.events & event)) return 1;
            }
            return 0;
        };
        silent += wait_for(MUSTER_STREAM_PEER_SILENT);
        wire.send(frame(FrameType::heartbeat));
        back += wait_for(MUSTER_STREAM_PEER_BACK);
        silent += wait_for(MUSTER_STREAM_PEER_SILENT);
        status = read_end(wire);
        why = reason(wire);
    }
    assert_int_equal(silent, 2);
    assert_int_equal(back, 1);
    assert_int_equal(status, MUSTER_E_PEER);
    assert_non_null(strstr(why.c_str(), "nothing was received"));
}

// Reads what arrives until `end`. The longest silence of the link, without the time in which this thread itself was
// late.
int64_t longest_silence(int fd, const std::atomic<bool> &end) {
    constexpr int step_ms = 5;
    int64_t longest = 0, silence = 0;
    while (!end.load()) {
        pollfd ready{fd, POLLIN, 0};
        const int64_t begun = now_ns();
        const bool arrived = poll(&ready, 1, step_ms) == 1;
        silence += std::min(now_ns() - begun, step_ms * ms);
        longest = std::max(longest, silence);
        char bytes[4096];
        if (arrived && recv(fd, bytes, sizeof bytes, 0) > 0) silence = 0;
    }
    return longest;
}

// Writes at random moments, and silence of the host for up to three intervals in between.
void test_a_link_is_never_silent_for_longer_than_its_heartbeat(void **) {
    constexpr int64_t heartbeat = 60 * ms;
    int64_t longest = 0;
    for (uint32_t seed = 1; seed <= 4; seed++) {
        Wire wire(1 << 20, heartbeat);
        std::atomic<bool> end{false};
        int64_t silence = 0;
        std::thread peer([&] { silence = longest_silence(wire.peer.get(), end); });
        std::mt19937 random(seed);
        for (int64_t left = 20 * heartbeat; left > 0;) {
            wire.send(frame(FrameType::heartbeat)); // this peer is alive
            Deadline soon(1'000 * ms);
            size_t moved = 0;
            if (wire.stream->write("x", 1, soon, moved) != MUSTER_OK) fail_msg("seed %u: the link ended", seed);
            const int64_t pause = static_cast<int64_t>(random() % (random() % 2 ? 3 * heartbeat : heartbeat / 4));
            usleep(static_cast<useconds_t>(pause / 1000));
            left -= pause;
        }
        end.store(true);
        peer.join();
        longest = std::max(longest, silence);
    }
    if (longest > heartbeat * 3 / 2) fail_msg("silent for %lld ms", static_cast<long long>(longest / ms));
}

void test_an_idle_link_wakes_its_context_once_for_each_heartbeat(void **) {
    constexpr int heartbeats = 10;
    int received = 0;
    uint64_t wakeups = 0;
    {
        Wire wire(1 << 20, 20 * ms);
        for (int i = 0; i < 2 + heartbeats; i++) {
            char got[frame_header_bytes];
            if (i == 2) wakeups = wire.context->loop().turns();
            if (recv(wire.peer.get(), got, sizeof got, MSG_WAITALL) == sizeof got && got[0] == 2) received++;
            if (i % 3 == 0) wire.send(frame(FrameType::heartbeat)); // four wake the loop as well
        }
        wakeups = wire.context->loop().turns() - wakeups;
    }
    assert_int_equal(received, 2 + heartbeats);
    assert_true(wakeups <= heartbeats + 4 + 1);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_frames_of_any_shape_become_the_same_bytes),
        cmocka_unit_test(test_a_peer_that_breaks_the_protocol_is_cut_off),
        cmocka_unit_test(test_more_data_than_allowed_is_refused_and_what_was_allowed_stays),
        cmocka_unit_test(test_hang_ups_are_told_after_what_came_before),
        cmocka_unit_test(test_a_flood_of_heartbeats_prolongs_no_read),
        cmocka_unit_test(test_a_flood_of_heartbeats_prolongs_no_write),
        cmocka_unit_test(test_a_flood_of_heartbeats_lets_a_cancel_through),
        cmocka_unit_test(test_a_flood_of_heartbeats_lets_a_queue_go_on),
        cmocka_unit_test(test_writes_of_any_shape_become_frames_within_the_credit),
        cmocka_unit_test(test_an_abort_in_the_middle_keeps_the_frames_whole),
        cmocka_unit_test(test_silence_is_told_and_then_taken_for_death),
        cmocka_unit_test(test_a_link_is_never_silent_for_longer_than_its_heartbeat),
        cmocka_unit_test(test_an_idle_link_wakes_its_context_once_for_each_heartbeat),
    };
    if (const char *only = getenv("ONLY")) cmocka_set_test_filter(only);
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
