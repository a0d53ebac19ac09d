// SPDX-License-Identifier: MIT
#pragma once
// A session whose peer is the test, frame by frame.
#include "plugin/pairing.hpp"
#include "plugin/session.hpp"
#include "stream_fixture.hpp"
#include "transport/frame.hpp"
#include "transport/hub.hpp"
#include "transport/segment.hpp"

#include <condition_variable>
#include <mutex>

namespace muster::test {

constexpr uint64_t window = 1 << 16;

struct Frame {
    FrameType kind;
    uint32_t id;
    std::string payload;
};

inline std::string number(uint64_t value) {
    unsigned char bytes[8];
    put_u64(bytes, value);
    return {reinterpret_cast<char *>(bytes), sizeof bytes};
}

inline std::string frame(FrameType kind, uint32_t id, const std::string &payload = "") {
    unsigned char head[frame_header_bytes];
    put_u32(head, static_cast<uint8_t>(kind) | id << 8);
    put_u32(head + 4, static_cast<uint32_t>(payload.size()));
    return std::string(reinterpret_cast<char *>(head), sizeof head) + payload;
}

inline std::string open_payload(uint64_t credit = window) {
    return number(credit) + std::string(2, '\0');
}

// Loop thread, but for what is atomic.
class TestChannel final : public Channel {
  public:
    size_t room() noexcept override { return stuck ? 0 : 512 * 1024; }
    Status send(const void *data, size_t size, size_t &taken) noexcept override {
        if (failing) return MUSTER_E_PEER;
        taken = size;
        out.append(static_cast<const char *>(data), size);
        sends++;
        if (sent) sent();
        return MUSTER_OK;
    }
    bool can_pair() const noexcept override { return true; }
    void paired(Ref<SharedSegment> shared, Status status) noexcept override {
        segment = std::move(shared);
        pairings++;
        pairing_status = status;
    }
    void close(bool in_order) noexcept override { orderly = in_order; }

    bool stuck = false, orderly = false, failing = false;
    int sends = 0, pairings = 0;
    Status pairing_status = MUSTER_OK;
    Ref<SharedSegment> segment;
    std::string out;
    std::function<void()> sent;
};

class TestDial final : public Dial {
  public:
    explicit TestDial(Context &context) : context_(context) {}
    void done(Result<Ref<Stream>> result) noexcept override {
        if (result) stream = std::move(*result);
        status = result ? MUSTER_OK : result.error().status;
    }
    bool stop_by(Ref<Attempt> by) noexcept override {
        attempt = std::move(by);
        return true;
    }
    Context &context() noexcept override { return context_; }
    Ref<Attempt> attempt;
    Ref<Stream> stream;
    Status status = MUSTER_AGAIN;

  private:
    Context &context_;
};

struct WorldOptions {
    bool dialer = false, single = false, external_peer = false;
    bool failing = false; // nothing can be sent
    bool silent = false;  // the peer says nothing, and the session stays in its handshake
    int64_t handshake_timeout_ns = 10 * second;
    int64_t dead_ns = 60 * second;
    int64_t peer_heartbeat_ns = 0;
};

// A session that has gone through its handshake, and what stands around it.
class World final : private SessionOwner {
  public:
    explicit World(const WorldOptions &options) {
        ContextSettings settings;
        settings.secret.assign(32, 7);
        settings.heartbeat_ns = 20 * ms;
        settings.silent_ns = 100 * ms;
        settings.dead_ns = options.dead_ns;
        settings.handshake_timeout_ns = options.handshake_timeout_ns;
        context = std::move(*Context::create(settings));
        core = make_ref<ListenerCore>(*context, 16);
        on_loop([&] {
            SessionConfig config;
            config.dialer = options.dialer;
            config.auth = false;
            config.seal = SealPolicy::never;
            config.local = true;
            config.single = options.single;
            config.peer = "test://peer";
            channel = make_ref<TestChannel>();
            channel->failing = options.failing;
            session =
                make_ref<Session>(*context, *pool, Ref<Channel>(channel), static_cast<SessionOwner &>(*this), config);
            session->start();
        });
        if (options.silent) return;
        HandshakeConfig config;
        config.dialer = !options.dialer;
        config.auth = false;
        config.seal = SealPolicy::never;
        config.local = true;
        config.external = options.external_peer;
        config.heartbeat_ns = options.peer_heartbeat_ns;
        config.host = HostIdentity::own();
        Handshake peer(config);
        Status status = MUSTER_AGAIN;
        for (int i = 0; i < 1000 && !ready.load(); i++) {
            on_loop([&] {
                if (const std::string bytes = peer.take_output(); !bytes.empty()) deliver(bytes);
                size_t used = 0;
                if (status == MUSTER_AGAIN)
                    status = peer.feed(reinterpret_cast<const unsigned char *>(channel->out.data()),
                                       channel->out.size(), used);
                channel->out.erase(0, used);
                if (const std::string bytes = peer.take_output(); !bytes.empty()) deliver(bytes);
                ready = status == MUSTER_OK && session->proved();
            });
        }
    }
    ~World() {
        if (stream) stream.detach()->host_release();
        on_loop([&] {
            if (session) session->end_now(Error::make(MUSTER_E_CLOSED, "the test is over"));
            channel.reset();
            core->close();
        });
    }
    World(const World &) = delete;
    World &operator=(const World &) = delete;

    template <class F>
    void on_loop(F &&body) {
        bool done = false;
        context->post([&] {
            body();
            const std::lock_guard hold(lock_);
            done = true;
            changed_.notify_all();
        });
        std::unique_lock hold(lock_);
        changed_.wait(hold, [&] { return done; });
    }
    // Until the session has had its turns for what was said: they were posted before these.
    void settle() {
        for (int i = 0; i < 4; i++) on_loop([] {});
    }
    void deliver(const std::string &bytes) {
        if (session) session->deliver(bytes.data(), bytes.size(), true);
    }
    void say(const std::string &bytes) {
        on_loop([&] { deliver(bytes); });
    }
    // Until it is so, for some seconds.
    template <class F>
    bool soon(F &&holds, int64_t within_ns = 5 * second) {
        const int64_t end = now_ns() + within_ns;
        for (;;) {
            bool good = false;
            on_loop([&] { good = holds(); });
            if (good || now_ns() > end) return good;
            usleep(2000);
        }
    }
    bool heard(FrameType kind, uint32_t id, Frame *which = nullptr) {
        return soon([&] {
            for (const Frame &f : frames())
                if (f.kind == kind && f.id == id) {
                    if (which != nullptr) *which = f;
                    return true;
                }
            return false;
        });
    }
    int count(FrameType kind) {
        int found = 0;
        on_loop([&] {
            for (const Frame &f : frames()) found += f.kind == kind;
        });
        return found;
    }
    std::vector<Frame> frames() {
        std::vector<Frame> all;
        const auto *bytes = reinterpret_cast<const unsigned char *>(channel->out.data());
        for (size_t at = 0; at + frame_header_bytes <= channel->out.size();) {
            const uint32_t word = get_u32(bytes + at), length = get_u32(bytes + at + 4);
            if (at + frame_header_bytes + length > channel->out.size()) break;
            all.push_back(
                {static_cast<FrameType>(word & 255), word >> 8, channel->out.substr(at + frame_header_bytes, length)});
            at += frame_header_bytes + length;
        }
        return all;
    }
    // The peer opens a stream, and the host takes it.
    bool open_stream(Findings &f, uint32_t id = 1, uint64_t credit = window) {
        say(frame(FrameType::open, id, open_payload(credit)));
        Deadline deadline(5 * second);
        Error why;
        return f.expect_status(core->accept(deadline, stream, why), MUSTER_OK, "the stream comes in");
    }
    std::string reason() {
        muster_error error{};
        stream->reason(nullptr, &error);
        return error.message;
    }
    bool is_over() {
        bool yes = false;
        on_loop([&] { yes = over; });
        return yes;
    }

    Ref<Context> context;
    const Ref<SegmentPool> pool = make_ref<SegmentPool>();
    Ref<ListenerCore> core;
    Ref<TestChannel> channel;
    Ref<Session> session;
    Ref<Stream> stream;
    std::atomic<bool> ready{false};
    bool over = false;
    int proved = 0;
    Error why;

  private:
    std::mutex lock_;
    std::condition_variable changed_;
    void session_proved(Session &) override { proved++; }
    SessionListener session_listener(Session &, std::string_view) override {
        SessionListener found;
        found.core = core;
        found.window = window;
        return found;
    }
    void session_over(Session &, const Error &reason) override {
        over = true;
        why = reason;
        session.reset();
    }
};

} // namespace muster::test
