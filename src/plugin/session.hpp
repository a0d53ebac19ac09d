// SPDX-License-Identifier: MIT
#pragma once
// The protocol inside a plug-in's or a host's transport: proof of the secret, then frames that carry any number of
// streams over one channel, each with its own credits, half-close and abort, and a heartbeat for all.
//
// Only the dialling side opens streams.
#include "plugin/channel.hpp"
#include "plugin/loan.hpp"
#include "plugin/pool.hpp"
#include "plugin/upgrade.hpp"
#include "stream/stream.hpp"
#include "transport/handshake.hpp"
#include "transport/listener.hpp"
#include "transport/stream_state.hpp"
#include "transport/transport.hpp"

#include <deque>
#include <map>
#include <string_view>
#include <vector>

namespace muster {

class Broadcast;
class LoopTimer;
class Pairing;
class Session;

constexpr int64_t longest_between_looks_ns = 2'000'000'000; // of many sessions' owner at their clocks
static_assert(session_data_max <= SegmentPool::segment_bytes - 4096);
constexpr std::string_view session_no_reason{"\0\0\0\0\0\0\0\0", 8}; // of an abort
constexpr uint32_t session_streams_max = 4096;
constexpr size_t session_waiting_max = size_t{2} * session_streams_max; // frames for a peer that does not read
constexpr uint32_t session_ids_max = (1 << 24) - 1;

// One stream of a session: the carrier at side 1 of its duplex. Members used only by the loop thread have no comment.
class SessionStream final : public Carrier, public Listed<SessionStream>, private Waker {
  public:
    SessionStream(Session &session, uint32_t id, uint64_t window, uint64_t peer_window);

    bool drives() const noexcept override;
    Status drive(Deadline &deadline, const Interrupted &until) noexcept override;
    size_t copies_at_once() const noexcept override;
    void interrupt() noexcept override;
    Moved send_now(const void *data, size_t size) noexcept override;
    Moved send(const void *data, size_t size, Deadline &deadline, const Interrupted &interrupted) noexcept override;
    Moved receive(void *data, size_t capacity, Deadline &deadline, const Interrupted &interrupted,
                  bool spin) noexcept override;
    bool flush() noexcept override;
    void taken() noexcept override;
    void abort(uint64_t reason, const char *text, size_t text_bytes) noexcept override;
    void closed() noexcept override;
    bool would_deadlock() const noexcept override;
    Io io() const noexcept override;
    MulticastGroup *multicast_group() noexcept override;

  private:
    friend class Broadcast;
    friend class Session;
    void wake_reader() noexcept override;
    void wake_writer() noexcept override {}
    void attach() noexcept;
    void detach() noexcept;
    template <class Done, class Work>
    Status drive_until(Deadline &deadline, const Done &done, const Work &work) noexcept;
    bool from_host_empty() const noexcept;
    void drop_outgoing() noexcept;
    void end_by_peer() noexcept;
    bool is_done() const noexcept {
        return (state_.finish_sent || closed_received_) && (state_.finish_received || closed_sent_);
    }
    // Nothing is left to be sent, not even that a host has closed its stream.
    bool is_over() const noexcept { return is_done() && (closed_sent_ || closed_received_); }

    const Ref<Session> session_;
    const uint32_t id_;
    const uint64_t window_;
    const Ref<Duplex> duplex_;
    Pipe &from_host_, &to_host_;

    StreamState state_;
    const bool needs_polls_;
    size_t staged_bytes_ = 0; // copied into the session's segment, still in the pipe
    int64_t closed_at_ = 0;
    bool accept_due_ = false, closed_sent_ = false, closed_received_ = false;
    std::string hello_;        // sent with ACCEPT
    Ref<Broadcast> broadcast_; // in which it waits for others

    std::atomic<bool> held_back_{false};  // seq_cst: set by the loop before the pipe is emptied, read by flush()
    std::atomic<bool> woken_{false};      // acq_rel: the thread that sets it puts the stream on Session::woken_
    std::atomic<bool> closed_{false};     // release by the host's thread, acquire by the loop
    SessionStream *next_woken_ = nullptr; // Session::woken_
};

struct SessionConfig {
    bool dialer = false;
    bool auth = true;
    SealPolicy seal = SealPolicy::off_host;
    bool local = false;       // the bytes stay on the host
    bool covered = false;     // they are encrypted by other means
    bool upgrade = false;     // streams may be had by other ways: shared memory
    bool direct = false;      // or by the addresses of listeners
    bool single = false;      // one stream; the channel ends with it
    int64_t heartbeat_ns = 0; // longer than the context's: it is one of very many; 0: as long
    std::string peer;         // for people and for muster_stream_peer()
};

// The listener of an incoming stream.
struct SessionListener {
    Ref<ListenerCore> core; // empty: none
    uint64_t window = 0;
    std::string hello;
    Status status = MUSTER_E_UNREACHABLE; // the reason why there is none
    const char *text = "no listener there";
};

// The owner of a session. Called on the loop thread, from the session's turn or from deliver().
class SessionOwner {
  public:
    // The other side has proved the secret; on an incoming session of one stream, it has opened the stream, too.
    virtual void session_proved(Session &session) = 0;
    // The listener of that name.
    virtual SessionListener session_listener(Session &session, std::string_view service) = 0;
    // Where else a stream to that service can be had: addresses, a newline between them.
    virtual std::string session_routes(Session &session, std::string_view service) {
        (void)session, (void)service;
        return {};
    }
    // The last call. The channel is closed already.
    virtual void session_over(Session &session, const Error &why) = 0;

  protected:
    ~SessionOwner() = default;
};

// Loop thread only, except schedule() and the calls of its streams' hosts. If there is no memory for a message or for
// accepting one the session fails; its end needs none.
class Session final : public Object, private FrameSink {
  public:
    // `owner` must stay until session_over().
    Session(Context &context, SegmentPool &pool, Ref<Channel> channel, SessionOwner &owner, SessionConfig config);

    void start() noexcept; // the channel is connected: begin the handshake

    // From the channel. `whole`: all bytes are accepted. `loan`: the memory that contains the bytes, if the streams may
    // keep it.
    size_t deliver(const void *data, size_t size, bool whole, Loan *loan = nullptr) noexcept;
    void deliver_to(uint32_t stream, const void *data, size_t size,
                    Loan *loan) noexcept; // bytes of a stream, without a frame
    void writable() noexcept { schedule(); }
    void lost(const Error &why) noexcept;

    // Begins a stream; answers the dial. If it throws, nothing was changed.
    void open(std::string service, const TransportOptions &options, Ref<Dial> dial, bool may_upgrade = false);
    void look_at_clock(int64_t now) noexcept;
    void end_when_idle() noexcept; // sends goodbye as soon as no stream is left
    void wind_down() noexcept;     // the context closes: ends the streams without bytes in transit
    void end_now(const Error &why) noexcept {
        end(why);
    } // not from inside a function the channel's owner was called by
    // For a newer connection: sends a refusal if that needs no waiting, and ends. As end_now().
    void displace() noexcept;
    // How an upgrade ended; from it.
    void upgraded(uint32_t id, Result<Ref<Stream>> result) noexcept;
    Status pair(size_t bytes) noexcept;
    // Shares memory, or is about to.
    bool pairing() const noexcept { return pairing_ != nullptr || pairing_due_ || have_segment_; }

    void schedule() noexcept { // any thread: a turn will follow
        if (!turn_.post(context_)) drop_woken();
    }
    bool proved() const noexcept { return state_ == State::open; }
    int64_t started_ns() const noexcept { return started_ns_; }
    bool has_hello() const noexcept { return state_ > State::handshake || (handshake_ && handshake_->has_hello()); }
    bool refused() const noexcept { return refused_.status < 0; } // and the message about that may still wait
    bool is_same_host() const noexcept { return same_host_; }     // both sides would share memory, and can
    bool takes_streams() const noexcept {
        return state_ != State::leaving && state_ != State::over && lost_.status >= 0 && refused_.status >= 0 &&
               !leave_when_idle_ && !goodbye_received_ && next_id_ < session_ids_max;
    }
    size_t stream_count() const noexcept { return streams_.size() + opening_.size(); }
    int64_t idle_since() const noexcept { return idle_since_; }
    const std::string &peer() const noexcept { return config_.peer; }
    Context &context() const noexcept { return context_; }
    Channel &channel() const noexcept { return *channel_; }
    bool dialer() const noexcept { return config_.dialer; }

  private:
    friend class Broadcast;
    friend class SessionStream;
    friend class Pairing;
    // Accepted per turn of the loop, so that other descriptors are served, too.
    static constexpr size_t turn_bytes = 4 * 1024 * 1024;
    enum class State { connecting, handshake, open, leaving, over };
    class Opening;

    ~Session() override;

    // session.cpp: turns, life and death
    void turn() noexcept;
    void begin_beating() noexcept;
    void answer_heartbeat() noexcept;
    void tick() noexcept;
    void cancel(Opening &opening) noexcept;
    void fail(Status status, const char *what) noexcept;
    void end(const Error &why) noexcept;
    void remove(SessionStream &stream) noexcept;
    void look_idle() noexcept;
    void enter_open();
    HandshakeConfig handshake_config() const;
    void end_pairing(Ref<SharedSegment> segment, Status status, bool asked_here) noexcept;
    void tell_pairing() noexcept;
    // session_send.cpp
    void wake(SessionStream &stream) noexcept; // any thread
    void take_woken() noexcept;
    void drop_woken() noexcept; // any thread, after the loop has stopped
    void ready(SessionStream &stream) noexcept;
    bool stage();
    bool stage_stream(SessionStream &stream);
    bool stage_data(SessionStream &stream, bool closed);
    size_t send_directly(SessionStream &stream, const void *data, size_t size) noexcept;
    void look_at_broadcasts() noexcept;
    bool put_open(uint32_t id, Opening &opening);
    bool put(FrameType type, uint32_t stream, const iovec *spans, size_t size) noexcept;
    bool put(FrameType type, uint32_t stream, std::string_view payload = {}) noexcept;
    void put_control(FrameType type, uint32_t stream, std::string_view head, std::string_view rest = {}) noexcept;
    void wait_for_refusal() noexcept;
    void send_failed(Status status) noexcept;
    bool drain() noexcept; // true: all staged bytes are sent
    void settle(bool sent) noexcept;
    bool have_out() noexcept;
    size_t space() const noexcept;
    // session_receive.cpp
    void note_received() noexcept;
    bool takes_frames() const noexcept {
        return state_ == State::open && lost_.status >= 0 && refused_.status >= 0 && !goodbye_received_;
    }
    void take(const unsigned char *data, size_t size);
    void take_handshake(const unsigned char *&data, size_t &size);
    Status on_data(uint32_t id, const unsigned char *data, size_t size) noexcept override;
    Status on_frame(FrameType type, uint32_t id, const unsigned char *payload, size_t size) noexcept override;
    void take_frame(FrameType type, uint32_t id, const unsigned char *payload, size_t size);
    void take_data(uint32_t id, const unsigned char *data, size_t size, Loan *loan) noexcept;
    void on_open(uint32_t id, const unsigned char *payload, size_t size);
    void on_accept(uint32_t id, const unsigned char *payload, size_t size);
    void on_refuse(uint32_t id, const unsigned char *payload, size_t size);
    void on_query_routes(uint32_t id, const unsigned char *payload, size_t size);
    void on_routes(uint32_t id, const unsigned char *payload, size_t size);
    void refuse(uint32_t id, Status status, std::string_view text) noexcept;
    void broken(const char *what) noexcept;
    void accepted_first() noexcept;
    SessionStream *find(uint32_t id) noexcept;
    Ref<SessionStream> add_stream(uint32_t id, uint64_t window, uint64_t peer_window);

    Context &context_;
    SegmentPool &pool_;
    const Ref<Channel> channel_;
    SessionOwner &owner_;
    const SessionConfig config_;
    State state_ = State::connecting;
    Error refused_;     // the handshake failed; its last message is sent first
    bool busy_ = false; // the listener has refused it for now
    Error send_failed_; // sending is impossible; receiving continues for a moment
    int64_t send_failed_ns_ = 0;
    Error lost_; // why the channel is no more; status OK: it is
    bool leave_when_idle_ = false, goodbye_received_ = false, channel_finished_ = false;

    std::unique_ptr<Handshake> handshake_;
    std::unique_ptr<Sealer> sealer_;

    std::map<uint32_t, Ref<SessionStream>> streams_;
    std::map<uint32_t, Ref<Opening>> opening_; // empty: cancelled, and not answered yet
    size_t unanswered_ = 0;                    // the empty ones
    uint32_t next_id_ = 1;                     // dialling side: the next stream; other side: one above the highest seen

    List<SessionStream> ready_; // have frames to send; kept alive by streams_
    size_t ready_count_ = 0;
    struct Control {
        FrameType type;
        uint32_t stream;
        std::string payload;
    };
    std::deque<Control> control_;
    bool heartbeat_due_ = false, goodbye_due_ = false;

    std::string raw_;              // sent before any frame: the handshake, the prefix of the seal
    const size_t headroom_;        // of the channel
    unsigned char *out_ = nullptr; // a segment with staged bytes, or none
    size_t out_begin_ = 0, out_end_ = 0;
    std::vector<Ref<SessionStream>> staged_;    // streams with bytes in out_
    std::vector<SessionStream *> broadcasting_; // streams that wait in a broadcast

    FrameReader reader_{session_frames};
    Loan *loan_ = nullptr; // of the bytes that are being delivered

    Signal sent_signal_; // raised when out_ was sent: a flush may be waiting

    std::unique_ptr<LoopTimer> timer_;
    int64_t beat_ns_; // heartbeat interval; the longer time of both sides
    int64_t started_ns_ = 0, sent_ns_ = 0, looked_ns_ = 0, idle_since_ = 0;
    int64_t leaving_ns_ = 0;   // since when it is leaving
    bool first_due_ = false;   // an incoming session of one stream: the stream has to be opened
    int64_t first_due_ns_ = 0; // since then
    bool gave_up_ = false;     // the peer did not receive the goodbye in time
    PeerSilence silence_;
    bool resume_due_ = false, proved_due_ = false;
    int64_t turn_ns_ = 0; // of the loop turn turn_left_ belongs to
    size_t turn_left_ = 0;

    std::unique_ptr<Pairing> pairing_;
    bool pairing_due_ = false, have_segment_ = false;
    Ref<SharedSegment> pairing_segment_; // for the channel
    Status pairing_status_ = MUSTER_OK;

    PostedTask<Session, &Session::turn> turn_{*this};
    bool same_host_ = false, peer_direct_ = false;     // it is worthwhile to query other addresses for a stream
    std::atomic<SessionStream *> woken_list_{nullptr}; // release on push, acquire on taking: publishes next_woken_
};

// A dial: its request has to be sent, or was sent and waits for its answer.
class Session::Opening final : public Attempt {
  public:
    Opening(Session &session, std::string service, const TransportOptions &options, Ref<Dial> dial)
        : service(std::move(service)), options(options), dial(std::move(dial)), session_(&session) {}
    void stop() noexcept override { cancel_.post(session_->context_); } // refused: the session has ended

    const std::string service;
    const TransportOptions options;
    // loop thread
    Ref<Dial> dial;
    // querying: for other routes; upgrading: tries one; direct: OPEN is to be sent; open: it was sent.
    enum class Step : uint8_t { begin, querying, upgrading, direct, open } step = Step::begin;
    Ref<Upgrade> upgrade;
    bool may_upgrade = false; // the dial allows other routes

  private:
    void cancel() noexcept { session_->cancel(*this); }
    const Ref<Session> session_;
    PostedTask<Opening, &Opening::cancel> cancel_{*this};
};

} // namespace muster
