// SPDX-License-Identifier: MIT
// A session whose peer is this test, frame by frame: peers that break the protocol, ask for too much, do not read, do
// not let go; and what it makes of memory that is passed to it.
// ctest: quick timeout=120
#include "base/text.hpp"
#include "plugin/pairing.hpp"
#include "plugin/session.hpp"
#include "stream_fixture.hpp"
#include "transport/frame.hpp"
#include "transport/hub.hpp"
#include "transport/segment.hpp"

#include <condition_variable>
#include <dirent.h>
#include <mutex>
#include <sys/socket.h>
#include <sys/un.h>

using namespace muster;
using namespace muster::test;

namespace {

constexpr uint64_t window = 1 << 16;

struct Frame {
    SessionFrame kind;
    uint32_t id;
    std::string payload;
};

std::string number(uint64_t value) {
    unsigned char bytes[8];
    put_u64(bytes, value);
    return {reinterpret_cast<char *>(bytes), sizeof bytes};
}

std::string frame(SessionFrame kind, uint32_t id, const std::string &payload = "") {
    unsigned char head[session_header_bytes];
    put_u32(head, static_cast<uint8_t>(kind) | id << 8);
    put_u32(head + 4, static_cast<uint32_t>(payload.size()));
    return std::string(reinterpret_cast<char *>(head), sizeof head) + payload;
}

std::string open_payload(uint64_t credit = window) {
    return number(credit) + std::string(2, '\0');
}

// Loop thread, but for what is atomic.
class TestChannel final : public Channel {
  public:
    size_t room() noexcept override { return stuck ? 0 : 512 * 1024; }
    Status send(const void *data, size_t size, size_t &taken) noexcept override {
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

    bool stuck = false, orderly = false;
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

struct Wishes {
    bool dialer = false, single = false, external_peer = false;
    int64_t handshake_timeout_ns = 10 * second;
    int64_t dead_ns = 60 * second;
};

// A session that has gone through its handshake, and what stands around it.
class World final : private SessionOwner {
  public:
    explicit World(const Wishes &wishes) {
        ContextSettings settings;
        settings.secret.assign(32, 7);
        settings.heartbeat_ns = 20 * ms;
        settings.silent_ns = 100 * ms;
        settings.dead_ns = wishes.dead_ns;
        settings.handshake_timeout_ns = wishes.handshake_timeout_ns;
        context = std::move(*Context::create(settings));
        core = make_ref<ListenerCore>(*context, 16);
        on_loop([&] {
            SessionConfig config;
            config.dialer = wishes.dialer;
            config.auth = false;
            config.seal = SealWish::never;
            config.local = true;
            config.single = wishes.single;
            config.peer = "test://peer";
            channel = make_ref<TestChannel>();
            session =
                make_ref<Session>(*context, *pool, Ref<Channel>(channel), static_cast<SessionOwner &>(*this), config);
            session->start();
        });
        HandshakeConfig config;
        config.dialer = !wishes.dialer;
        config.auth = false;
        config.seal = SealWish::never;
        config.local = true;
        config.external = wishes.external_peer;
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
    bool heard(SessionFrame kind, uint32_t id, Frame *which = nullptr) {
        return soon([&] {
            for (const Frame &f : frames())
                if (f.kind == kind && f.id == id) {
                    if (which != nullptr) *which = f;
                    return true;
                }
            return false;
        });
    }
    std::vector<Frame> frames() {
        std::vector<Frame> all;
        const auto *bytes = reinterpret_cast<const unsigned char *>(channel->out.data());
        for (size_t at = 0; at + session_header_bytes <= channel->out.size();) {
            const uint32_t word = get_u32(bytes + at), length = get_u32(bytes + at + 4);
            if (at + session_header_bytes + length > channel->out.size()) break;
            all.push_back({static_cast<SessionFrame>(word & 255), word >> 8,
                           channel->out.substr(at + session_header_bytes, length)});
            at += session_header_bytes + length;
        }
        return all;
    }
    // The peer opens a stream, and the host takes it.
    bool open_stream(Findings &f, uint32_t id = 1, uint64_t credit = window) {
        say(frame(SessionFrame::open, id, open_payload(credit)));
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

// ---- ends -----------------------------------------------------------------------------------------------------------

void test_a_peer_that_closes_in_order_ends_the_stream(void **) {
    run([](Findings &f) {
        for (const bool finished_before : {false, true}) {
            World w({});
            if (!f.expect(w.ready.load(), "proved") || !w.open_stream(f)) return;
            if (finished_before) {
                w.stream->finish();
                f.expect(w.heard(SessionFrame::finish, 1), "our finish is told");
            }
            w.say(frame(SessionFrame::data, 1, "rest") + frame(SessionFrame::finish, 1));
            w.settle();
            f.expect(!w.stream->duplex().is_ended(), "a finish alone is no end");
            w.say(frame(SessionFrame::gone, 1));
            f.expect(w.soon([&] { return w.stream->duplex().is_ended(); }), "ended");
            char text[8];
            size_t moved = 0;
            Deadline deadline(5 * second);
            f.expect_status(w.stream->read(text, 1, sizeof text, deadline, moved), MUSTER_OK, "what was sent before");
            f.expect(moved == 4 && memcmp(text, "rest", 4) == 0, "the bytes");
            f.expect_status(w.stream->read(text, 1, sizeof text, deadline, moved), MUSTER_E_END, "then the end");
            f.expect(w.reason().find("the peer has closed the stream") != std::string::npos, "the reason");
            f.expect_status(w.stream->close(deadline), MUSTER_OK, "closing in order");
            f.expect(w.soon([&] { return w.session->stream_count() == 0; }), "no stream is left");
        }
    });
}

void test_a_close_is_told_behind_the_finish_of_the_peer(void **) {
    run([](Findings &f) {
        World w({});
        if (!f.expect(w.ready.load(), "proved") || !w.open_stream(f)) return;
        w.say(frame(SessionFrame::finish, 1));
        Deadline deadline(5 * second);
        f.expect_status(w.stream->close(deadline), MUSTER_OK, "close");
        f.expect(w.heard(SessionFrame::gone, 1) && w.heard(SessionFrame::finish, 1), "both are told");
        f.expect(w.soon([&] { return w.session->stream_count() == 0; }), "no stream is left");
    });
}

void test_a_goodbye_ends_streams_that_were_done(void **) {
    run([](Findings &f) {
        World w({});
        if (!f.expect(w.ready.load(), "proved") || !w.open_stream(f)) return;
        w.stream->finish();
        f.expect(w.heard(SessionFrame::finish, 1), "our finish is told");
        w.say(frame(SessionFrame::finish, 1) + frame(SessionFrame::goodbye, 0));
        f.expect(w.soon([&] { return w.over; }), "over");
        f.expect(w.channel->orderly, "in order");
        f.expect_status(w.stream->duplex().ended_status(), MUSTER_E_PEER, "the stream");
    });
}

void test_a_broken_protocol_is_a_lost_peer_to_streams(void **) {
    run([](Findings &f) {
        World w({});
        if (!f.expect(w.ready.load(), "proved") || !w.open_stream(f)) return;
        w.say(frame(static_cast<SessionFrame>(77), 1));
        f.expect(w.soon([&] { return w.over; }), "over");
        f.expect_status(w.why.status, MUSTER_E_PROTOCOL, "the session");
        f.expect_status(w.stream->duplex().ended_status(), MUSTER_E_PEER, "the stream");
        f.expect(w.reason().find("broke the protocol: a frame of unknown kind") != std::string::npos, "the reason");
    });
}

void test_text_of_a_peer_can_be_shown(void **) {
    run([](Findings &f) {
        const struct {
            std::string text, shown;
        } cases[] = {
            {"plain", "plain"},
            {std::string("\x1b[2J\0\x7f\n", 7), ".[2J..."},
            {"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80", "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80"},
            {"\xc3", "."},                // cut
            {"\xe2\x82x", "..x"},         // cut
            {"\xc0\xaf", ".."},           // longer than need be
            {"\xe0\x80\xaf", "..."},      // the same
            {"\xed\xa0\x80", "..."},      // half of a pair
            {"\xf4\x90\x80\x80", "...."}, // beyond the last
            {"\xc2\x9b", ".."},           // a control character
            {"\xff\xfe", ".."},
        };
        for (const auto &c : cases) {
            std::string text = c.text;
            make_printable(text.data(), text.size());
            f.expect(text == c.shown, c.shown.c_str());
        }
        World w({});
        if (!f.expect(w.ready.load(), "proved") || !w.open_stream(f)) return;
        w.say(frame(SessionFrame::abort, 1, number(7) + "bad\x1b\xff"));
        f.expect(w.soon([&] { return w.stream->duplex().is_ended(); }), "ended");
        f.expect(w.reason().find("aborted the stream: bad..") != std::string::npos, w.reason().c_str());
    });
}

// An abort that comes in between two turns, while more of a buffer handed over is to be sent.
void test_an_abort_between_turns_gives_buffers_back(void **) {
    run([](Findings &f) {
        World w({});
        if (!f.expect(w.ready.load(), "proved") || !w.open_stream(f, 1, 1 << 30)) return;
        std::vector<unsigned char> data(8 << 20);
        const Ref<Queue> queue = make_queue(*w.context);
        w.on_loop([&] {
            w.channel->sends = 0;
            w.channel->sent = [&] {
                if (w.channel->sends == 7) // the last of a turn; the turn itself stages one more
                    w.context->post([&] { w.deliver(frame(SessionFrame::abort, 1, number(3))); });
            };
        });
        f.expect_status(w.stream->write_owned(data.data(), data.size(), *queue, 5), MUSTER_OK, "handed over");
        const Taken back = take(*queue, 10 * second);
        f.expect_status(back.status, MUSTER_OK, "given back");
        f.expect_status(back.completion.status, MUSTER_E_ABORTED, "with the abort");
        w.on_loop([&] { w.channel->sent = nullptr; });
    });
}

// ---- limits ---------------------------------------------------------------------------------------------------------

void test_a_peer_must_read_what_it_makes_us_say(void **) {
    run([](Findings &f) {
        World w({});
        if (!f.expect(w.ready.load(), "proved")) return;
        std::string offer = number(4096) + std::string(92, '\0'); // of another host: declined
        w.on_loop([&] {
            w.channel->stuck = true;
            for (size_t i = 0; i < 2 * session_waiting_max && !w.over; i++)
                w.deliver(frame(SessionFrame::pair_offer, 0, offer));
        });
        f.expect(w.soon([&] { return w.over; }), "over");
        f.expect_status(w.why.status, MUSTER_E_LIMIT, "why");
    });
}

void test_a_stream_must_be_opened_in_time(void **) {
    run([](Findings &f) {
        Wishes wishes;
        wishes.single = true;
        wishes.handshake_timeout_ns = 300 * ms;
        for (const bool opens : {false, true}) {
            World w(wishes);
            if (!f.expect(w.ready.load(), "proved")) return;
            f.expect(w.proved == 0, "it counts as one that has not proved itself");
            if (opens && !w.open_stream(f)) return;
            for (int i = 0; i < 60; i++) {
                w.say(frame(SessionFrame::heartbeat, 0));
                usleep(10'000);
            }
            f.expect(w.is_over() == !opens, opens ? "a session in use stays" : "one without a stream ends");
            f.expect(w.proved == (opens ? 1 : 0), "it counts when the stream is there");
        }
    });
}

void test_dials_nobody_answers_are_limited(void **) {
    run([](Findings &f) {
        Wishes wishes;
        wishes.dialer = true;
        World w(wishes);
        if (!f.expect(w.ready.load(), "proved")) return;
        TransportOptions options;
        options.window_bytes = window;
        std::vector<Ref<TestDial>> dials;
        const auto dial_some = [&](size_t count) {
            w.on_loop([&] {
                for (size_t i = 0; i < count; i++) {
                    dials.push_back(make_ref<TestDial>(*w.context));
                    w.session->open("service", options, Ref<Dial>(dials.back()));
                }
            });
            f.expect(w.heard(SessionFrame::open, static_cast<uint32_t>(dials.size())), "asked");
            for (const Ref<TestDial> &dial : dials)
                if (const Ref<Attempt> attempt = std::move(dial->attempt); attempt) attempt->stop();
        };
        dial_some(2);
        w.say(frame(SessionFrame::accept, 1, number(window)) + frame(SessionFrame::refuse, 2, std::string(4, '\xff')));
        f.expect(w.heard(SessionFrame::abort, 1), "a late answer is declined");
        f.expect(w.soon([&] { return w.session->stream_count() == 0; }), "answered");
        dial_some(session_streams_max);
        w.settle();
        f.expect(!w.is_over(), "so many may be unanswered");
        dial_some(1);
        f.expect(w.soon([&] { return w.over; }), "one more may not");
    });
}

void test_a_peer_that_does_not_let_go_is_left(void **) {
    run([](Findings &f) {
        World w({});
        if (!f.expect(w.ready.load(), "proved")) return;
        w.on_loop([&] {
            w.channel->stuck = true;
            w.session->end_when_idle();
        });
        const int64_t begin = now_ns();
        while (!w.is_over() && now_ns() - begin < 20 * second) {
            w.say(frame(SessionFrame::heartbeat, 0));
            usleep(20'000);
        }
        f.expect(w.is_over(), "over");
        f.expect(!w.channel->orderly, "the channel does not wait either");
    });
}

void test_silence_of_a_peer(void **) {
    run([](Findings &f) {
        Wishes wishes;
        wishes.dead_ns = 200 * ms;
        for (const bool external : {false, true}) {
            wishes.external_peer = external;
            World w(wishes);
            if (!f.expect(w.ready.load(), "proved")) return;
            usleep(600'000);
            f.expect(w.is_over() == !external, external ? "it has no thread of its own" : "it is dead");
        }
        ContextSettings own;
        Agreement terms;
        terms.peer_heartbeat_ns = INT64_MAX;
        f.expect(Patience(own, terms).dead_ns == 4 * Patience::slowest_ns, "no beat is too slow for death");
        terms.peer_heartbeat_ns = INT64_MIN;
        f.expect(Patience(own, terms).dead_ns == own.dead_ns && Patience(own, terms).silent_ns == own.silent_ns,
                 "no beat is too fast");
        own.dead_ns = -1;
        f.expect(Patience(own, terms).dead_ns < 0, "never");
    });
}

// ---- memory that is passed ------------------------------------------------------------------------------------------

constexpr size_t shared_bytes = 8192;
constexpr int all_seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

Fd make_memory(int seals, bool filled = true) {
    Fd memory(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (ftruncate(memory.get(), shared_bytes) != 0) abort();
    if (filled && posix_fallocate(memory.get(), 0, shared_bytes) != 0) abort();
    if (seals != 0 && fcntl(memory.get(), F_ADD_SEALS, seals) != 0) abort();
    return memory;
}

Fd make_bell(int flags = EFD_NONBLOCK, unsigned count = 0) {
    return Fd(eventfd(count, EFD_CLOEXEC | flags));
}

Fd make_file() {
    FILE *file = tmpfile();
    Fd fd(dup(fileno(file)));
    fclose(file);
    if (ftruncate(fd.get(), shared_bytes) != 0 || posix_fallocate(fd.get(), 0, shared_bytes) != 0) abort();
    return fd;
}

void test_memory_that_is_passed_is_looked_at(void **) {
    run([](Findings &f) {
        f.expect(static_cast<bool>(check_shared_memory(make_memory(all_seals).get(), shared_bytes)), "good memory");
        f.expect(!check_shared_memory(make_memory(F_SEAL_SHRINK).get(), shared_bytes), "sealed in part");
        f.expect(!check_shared_memory(make_memory(all_seals).get(), 2 * shared_bytes), "too little");
        f.expect(!check_shared_memory(make_memory(all_seals, false).get(), shared_bytes), "no pages");
        f.expect(!check_shared_memory(make_file().get(), shared_bytes), "a file");
        f.expect(!check_shared_memory(-1, shared_bytes), "nothing");
        const Fd good = make_bell();
        const auto refused = [&](const Fd &bell) {
            return !check_doorbells(good.get(), bell.get()) && !check_doorbells(bell.get(), good.get());
        };
        {
            const Fd one = make_bell(0), other = make_bell();
            uint64_t count = 0;
            f.expect(static_cast<bool>(check_doorbells(one.get(), other.get())), "good doorbells");
            f.expect(read(one.get(), &count, sizeof count) < 0 && errno == EAGAIN, "not rung, and they cannot block");
        }
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) != 0) abort();
        const Fd left(pair[0]), right(pair[1]);
        f.expect(refused(left), "a socket");
        if (pipe2(pair, O_NONBLOCK | O_CLOEXEC) != 0) abort();
        const Fd from(pair[0]), to(pair[1]);
        f.expect(refused(from) && refused(to), "a pipe");
        const auto fresh_refused = [](Fd bell) { return !check_doorbells(make_bell().get(), bell.get()); };
        f.expect(fresh_refused(make_bell(EFD_NONBLOCK | EFD_SEMAPHORE)), "a semaphore");
        f.expect(fresh_refused(make_bell(EFD_NONBLOCK, 1)), "one that was rung");
        f.expect(fresh_refused(make_file()), "a file as a doorbell");
        f.expect(fresh_refused(Fd(epoll_create1(EPOLL_CLOEXEC))), "another thing without a name");
        const Fd twice = make_bell();
        f.expect(!check_doorbells(twice.get(), twice.get()), "one for both");
    });
}

// Offers memory to the session, and passes these descriptors: what it answers.
Status offer(World &w, const std::vector<int> &fds) {
    const std::string name = "muster-test-" + number(static_cast<uint64_t>(now_ns())) + std::string(12, 'x');
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    memcpy(address.sun_path + 1, name.data(), name.size());
    const Fd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    if (bind(listener.get(), reinterpret_cast<sockaddr *>(&address), length) != 0 || listen(listener.get(), 1) != 0)
        return MUSTER_E_SYSTEM;
    const HostIdentity &host = Hub::of(*w.context).host;
    unsigned char payload[68];
    put_u64(payload, shared_bytes);
    memcpy(payload + 8, host.boot.data(), 16);
    put_u64(payload + 24, host.net_namespace);
    put_u32(payload + 32, host.user);
    memset(payload + 36, 5, 32); // the token
    w.on_loop([&] {
        w.channel->out.clear();
        w.deliver(frame(SessionFrame::pair_offer, 0, std::string(reinterpret_cast<char *>(payload), 68) + name));
    });
    const Fd connection = [&] {
        timeval limit{0, 200'000};
        setsockopt(listener.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        return Fd(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    }();
    if (connection) {
        char mark = 'M';
        iovec span{&mark, 1};
        alignas(cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))] = {};
        msghdr message{};
        message.msg_iov = &span;
        message.msg_iovlen = 1;
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
        cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
        memcpy(CMSG_DATA(head), fds.data(), fds.size() * sizeof(int));
        if (sendmsg(connection.get(), &message, MSG_NOSIGNAL) != 1) return MUSTER_E_SYSTEM;
    }
    Frame answer{};
    if (!w.heard(SessionFrame::pair_answer, 0, &answer) || answer.payload.size() != 4) return MUSTER_TIMEOUT;
    return static_cast<int32_t>(get_u32(reinterpret_cast<const unsigned char *>(answer.payload.data())));
}

int open_descriptors() {
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;
    while (readdir(folder) != nullptr) count++;
    closedir(folder);
    return count;
}

void test_offers_of_memory(void **) {
    run([](Findings &f) {
        World w({});
        if (!f.expect(w.ready.load(), "proved")) return;
        const Fd memory = make_memory(all_seals), file = make_file();
        // Set up once, so that what is made at the first use is there when descriptors are counted.
        f.expect_status(offer(w, {file.get(), make_bell().get(), make_bell().get()}), MUSTER_E_PROTOCOL, "a file");
        const Fd one = make_bell(), other = make_bell();
        const int before = open_descriptors();
        f.expect_status(offer(w, {memory.get(), one.get(), other.get(), file.get()}), MUSTER_E_PROTOCOL, "four");
        f.expect_status(offer(w, {memory.get(), one.get(), other.get(), file.get(), file.get(), file.get()}),
                        MUSTER_E_PROTOCOL, "six");
        f.expect_status(offer(w, {memory.get(), one.get()}), MUSTER_E_PROTOCOL, "two");
        f.expect(w.soon([&] { return open_descriptors() == before; }), "none is kept");
        f.expect_status(offer(w, {memory.get(), one.get(), other.get()}), MUSTER_OK, "three");
        f.expect(w.soon([&] { return w.channel->pairings == 1 && w.channel->segment; }), "paired");
        f.expect_status(offer(w, {memory.get(), one.get(), other.get()}), MUSTER_E_BUSY, "a second time");
        w.settle();
        f.expect(w.soon([&] { return w.channel->pairings == 1 && w.channel->segment && !w.over; }), "the first stays");
    });
}

// ---- memory that is lent
// -----------------------------------------------------------------------------------------------

struct Memory {
    std::string bytes;
    std::atomic<int> releases{0};
};

void release_memory(void *memory, void *hint) {
    static_cast<Memory *>(memory)->bytes.assign(static_cast<size_t>(reinterpret_cast<uintptr_t>(hint)), '#');
    static_cast<Memory *>(memory)->releases++;
}

// As a fabric does it.
void lend(World &w, Memory &memory, uint64_t size_bytes) {
    const muster_loan terms{size_bytes, release_memory, &memory, reinterpret_cast<void *>(memory.bytes.size())};
    w.on_loop([&] {
        const auto loan = make_ref<Loan>(terms, *w.pool);
        w.session->deliver(memory.bytes.data(), memory.bytes.size(), true, loan.get());
    });
}

std::string pattern(size_t size, int seed) {
    std::string bytes(size, '\0');
    for (size_t i = 0; i < size; i++) bytes[i] = static_cast<char>(i * 7 + i / 251 + static_cast<size_t>(seed));
    return bytes;
}

std::string read_all(World &w, size_t size) {
    std::string got(size, '\0');
    Deadline deadline(5 * second);
    size_t moved = 0;
    w.stream->read(got.data(), size, size, deadline, moved);
    got.resize(moved);
    return got;
}

void test_lent_memory_comes_back_once_when_it_was_read(void **) {
    run([](Findings &f) {
        World w({});
        if (!f.expect(w.ready.load(), "proved") || !w.open_stream(f)) return;
        const std::string one = pattern(20'000, 1), two = pattern(1000, 2), three = pattern(20'000, 3);
        Memory kept, small, mostly_idle;
        kept.bytes = frame(SessionFrame::data, 1, one);
        small.bytes = frame(SessionFrame::data, 1, two);
        mostly_idle.bytes = frame(SessionFrame::data, 1, three);
        lend(w, kept, 30'000);
        lend(w, small, 1100);
        f.expect(kept.releases == 0 && small.releases == 1, "little is copied");
        lend(w, mostly_idle, 41'000);
        f.expect(mostly_idle.releases == 1, "much memory is not kept for little");
        f.expect(read_all(w, 19'999) == one.substr(0, 19'999) && kept.releases == 0, "a byte is left");
        f.expect(read_all(w, 21'001) == one.substr(19'999) + two + three, "in order");
        f.expect(kept.releases == 1 && small.releases == 1 && mostly_idle.releases == 1, "each once");
    });
}

void test_a_segment_that_was_lent_goes_back_to_the_pool(void **) {
    run([](Findings &f) {
        World w({});
        if (!f.expect(w.ready.load(), "proved") || !w.open_stream(f, 1)) return;
        const std::string bytes = pattern(60'000, 4), said = frame(SessionFrame::data, 1, bytes);
        void *const segment = w.pool->take();
        memcpy(segment, said.data(), said.size());
        const muster_loan terms{said.size(), nullptr, segment, nullptr};
        w.on_loop([&] {
            const auto loan = make_ref<Loan>(terms, *w.pool);
            w.session->deliver(segment, said.size(), true, loan.get());
        });
        f.expect(read_all(w, bytes.size()) == bytes, "read");
        void *const next = w.pool->take();
        f.expect(next == segment, "it is the next one");
        w.pool->give(next);
    });
}

void test_what_was_lent_before_an_abort_comes_back(void **) {
    run([](Findings &f) {
        Memory read_first, unread;
        {
            World w({});
            if (!f.expect(w.ready.load(), "proved") || !w.open_stream(f)) return;
            const std::string bytes = pattern(20'000, 5);
            read_first.bytes = unread.bytes = frame(SessionFrame::data, 1, bytes);
            lend(w, read_first, 20'000);
            lend(w, unread, 20'000);
            f.expect(read_all(w, 5000) == bytes.substr(0, 5000), "begun");
            w.say(frame(SessionFrame::abort, 1, number(3) + "enough"));
            w.settle();
            f.expect(read_all(w, 35'000) == bytes.substr(5000) + bytes, "what had come is still there");
            f.expect(read_first.releases == 1 && unread.releases == 1, "back");
            f.expect_status(w.stream->duplex().ended_status(), MUSTER_E_ABORTED, "the stream");
        }
        Memory left;
        {
            World w({});
            if (!f.expect(w.ready.load(), "proved") || !w.open_stream(f)) return;
            left.bytes = frame(SessionFrame::data, 1, pattern(30'000, 6));
            lend(w, left, 30'000);
        }
        f.expect(left.releases == 1, "also where nobody reads");
    });
}

} // namespace

int main(int argc, char **argv) {
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_a_peer_that_closes_in_order_ends_the_stream),
        cmocka_unit_test(test_a_close_is_told_behind_the_finish_of_the_peer),
        cmocka_unit_test(test_a_goodbye_ends_streams_that_were_done),
        cmocka_unit_test(test_a_broken_protocol_is_a_lost_peer_to_streams),
        cmocka_unit_test(test_text_of_a_peer_can_be_shown),
        cmocka_unit_test(test_an_abort_between_turns_gives_buffers_back),
        cmocka_unit_test(test_a_peer_must_read_what_it_makes_us_say),
        cmocka_unit_test(test_a_stream_must_be_opened_in_time),
        cmocka_unit_test(test_dials_nobody_answers_are_limited),
        cmocka_unit_test(test_a_peer_that_does_not_let_go_is_left),
        cmocka_unit_test(test_silence_of_a_peer),
        cmocka_unit_test(test_memory_that_is_passed_is_looked_at),
        cmocka_unit_test(test_offers_of_memory),
        cmocka_unit_test(test_lent_memory_comes_back_once_when_it_was_read),
        cmocka_unit_test(test_a_segment_that_was_lent_goes_back_to_the_pool),
        cmocka_unit_test(test_what_was_lent_before_an_abort_comes_back),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
