// SPDX-License-Identifier: MIT
#pragma once
// A link transports the bytes of one stream between two processes over a socket, after both have proved the secret. It
// sends and receives frames, respects the peer's credit, sends heartbeats, detects silence and death of the peer, and
// ends in order. While the bytes of the stream are in shared memory, the link only watches the life of the peer.
//
// The threads of the host make the system calls while they can: a write on an idle link is sent by the writing thread,
// and a read that waits sleeps on the socket (receiver.hpp). The loop takes over when no thread of the host is inside.
// A link that the host watches stays with the host, whose queue holds the socket; the loop checks it at each heartbeat.
//
// Two try-locks, never waited for: rx to receive, tx to send. A thread that fails to acquire one requests a recheck,
// and the holder rechecks after unlocking.
#include "stream/carrier.hpp"
#include "stream/duplex.hpp"
#include "transport/overflow_buffer.hpp"
#include "transport/receiver.hpp"
#include "transport/stream_state.hpp"

#include <atomic>
#include <mutex>
#include <string>

namespace muster {

class Stream;

// link.cpp: its life, the loop and the watching host; link_send.cpp, link_receive.cpp: sending and receiving. Any
// thread unless a member says otherwise.
class Link final : public Carrier,
                   public Listed<Link, AllLinks>,
                   private ReceiverOwner,
                   private Waker,
                   private FrameSink {
  public:
    // `host_side`: the side of the duplex that the host's stream is on.
    Link(Hub &hub, Ref<Duplex> duplex, int host_side, const Agreement &terms, uint64_t own_window, std::string peer,
         Fd fd);
    ~Link() override;
    void begin() noexcept;                      // loop thread, once: from now on bytes are moved
    Ref<Stream> make_stream(std::string hello); // the host's end; once, before begin()

    // --- for the hub: loop thread ---
    bool tick(const Tick &tick) noexcept; // from time to time: heartbeats, silence. True: the link is in use
    bool wind_down() noexcept;            // the context closes: true when everything is sent and ended
    void stop() noexcept;                 // the engine ends: now

    // --- Carrier ---
    Moved send_now(const void *data, size_t size) noexcept override;
    Moved send(const void *data, size_t size, Deadline &deadline, const Interrupted &interrupted) noexcept override;
    Moved receive(void *data, size_t capacity, Deadline &deadline, const Interrupted &interrupted,
                  bool spin) noexcept override;
    void interrupt() noexcept override;
    void engage() noexcept override;
    bool watch(Queue &queue, Source &source) noexcept override;
    void unwatch(Queue &queue, Source &source) noexcept override;
    void pause_watch(bool is_paused) noexcept override;
    uint32_t fd_ready(uint32_t epoll_events) noexcept override;
    void taken() noexcept override;
    bool flush() noexcept override;
    void abort(uint64_t reason, const char *text, size_t text_bytes) noexcept override;
    void closed() noexcept override;
    Io io() const noexcept override;
    int64_t round_trip_ns() noexcept override;
    std::string local_address() override;

  private:
    enum : uint32_t { wants_heartbeat = 1, wants_credit = 2, wants_abort = 4 };
    enum class Step { sent, nothing, stop };
    struct Batch;
    struct Control;
    class Target;
    struct Plan;

    // --- link.cpp ---
    void on_events(uint32_t epoll_events) noexcept override; // Watch
    Object &watch_owner() noexcept override { return *this; }
    void host_stopped_receiving() noexcept override;
    void run_turn() noexcept; // loop thread
    void post_turn() noexcept { turn_.post(hub_.context()); }
    bool is_over() const noexcept { return dead_.load(std::memory_order_seq_cst); }
    void fail(Status status, int os_errno, const char *why) noexcept;
    void check_silence(const Tick &tick) noexcept;
    void fail_reading(Status status) noexcept;            // after feed() failed; rx lock held
    void on_lost(int os_errno, const char *why) noexcept; // no further bytes will arrive; everything was delivered
    void shut_down() noexcept;                            // it is over: waiting threads return
    void finalize() noexcept;                             // loop thread
    bool is_unsent() const noexcept;
    void count_io() noexcept;

    // --- link_send.cpp ---
    void wake_reader() noexcept override { post_turn(); } // Waker: the host has put bytes into out_
    void wake_writer() noexcept override {}
    void kick() noexcept; // sends as much as possible
    bool should_gather(size_t size) noexcept;
    bool begin_pause() noexcept;
    void end_pause() noexcept; // loop thread
    // tx lock held
    void release_tx() noexcept; // unlocks, and rechecks if that was requested
    void pump() noexcept;
    bool is_idle() const noexcept; // nothing is to be sent before the next byte of the host
    Step send_overflow() noexcept;
    Step send_batch() noexcept;
    Step seal_batch() noexcept;
    size_t send_frames(const iovec *payload, size_t size, size_t frame_bytes, const Control *control,
                       ssize_t &answer) noexcept;
    size_t account(const Batch &batch, size_t sent, const Control *control) noexcept;
    size_t send_from_host(const unsigned char *data, size_t size) noexcept;
    size_t seal_from_host(const unsigned char *data, size_t size) noexcept;
    size_t keep_rest(const iovec *payload, size_t skip) noexcept;
    Step end_torn(const Control &control) noexcept;
    void add_control(Control &control) noexcept;
    void add_frame(Control &control, FrameType type, const unsigned char *payload = nullptr, size_t size = 0) noexcept;
    bool add_ending() noexcept;
    Step after_send(ssize_t n) noexcept;
    void on_send_error(int os_errno) noexcept;
    ssize_t send_spans(const iovec *spans, int count) noexcept; // bytes, or -errno
    enum class Room { yes, no, elsewhere };
    Room await_room(bool starved, Deadline &deadline, const Interrupted &interrupted) noexcept;
    bool sleep_until_writable(bool reads, bool starved, Deadline &deadline, const Interrupted &interrupted) noexcept;

    // --- link_receive.cpp ---
    void read_by_loop(bool to_the_end) noexcept; // loop thread
    bool claim(bool request) noexcept;           // acquires the rx lock for a thread of the host
    void release_rx() noexcept;
    // rx lock held
    enum class Read { nothing, some, enough };
    Read read(unsigned char *staging, size_t size, size_t max_bytes, bool to_the_end) noexcept;
    bool has_received(ssize_t n) noexcept;     // evaluates the result of receive(): true: there are bytes to be read
    int receive_once(Target &target) noexcept; // 1: bytes came, 0: none, -1: over
    bool spin(Target &target) noexcept;
    void discard_incoming() noexcept;
    Status count_received(size_t size) noexcept; // bytes of the host
    bool has_input() const noexcept { return in_.readable() != 0 || in_.finished(); }
    // FrameSink
    Status on_data(uint32_t stream, const unsigned char *data, size_t size) noexcept override;
    Status on_frame(FrameType type, uint32_t stream, const unsigned char *payload, size_t size) noexcept override;

    Hub &hub_;
    Ref<Context> context_; // until finalize(): bytes in transit keep the engine
    const Ref<Duplex> duplex_;
    Pipe &in_, &out_; // the host reads from in_ and writes to out_; unused when shared
    const bool shared_, sealed_;
    const int host_side_;
    const std::string peer_;
    StreamState state_;
    Fd fd_;                // open until finalize()
    const bool may_block_; // the context has a thread of its own: a host's thread may sleep on the socket

    Receiver receiver_; // and the rx lock
    // rx lock
    FrameReader reader_;
    bool goodbye_received_ = false;
    bool polls_empty_ = false; // the last poll before a sleep found no bytes
    uint32_t spin_turns_ = 0, spin_pause_ = 0, spins_lost_ = 0, sleeps_ = 0;
    std::atomic<uint64_t> direct_{0};  // bytes that went past the pipe into the host's memory; its reader writes
    std::atomic<bool> starved_{false}; // the host's bytes wait for credit

    TryLock tx_;
    // tx lock
    std::unique_ptr<Sealer> sealer_;
    OverflowBuffer overflow_;
    size_t held_ = 0; // of out_: to be consumed when the overflow is sent, so that the pipe is not empty before
    // Payload of a begun frame that was not sent: it is in the ring of out_, or still in the memory of the writing
    // thread.
    size_t open_left_ = 0;
    bool goodbye_sent_ = false, abort_sent_ = false, discarded_ = false, send_broken_ = false;
    Notifier notifier_out_;           // the writing host's own, as long as the link lives
    std::atomic<uint32_t> wants_{0};  // seq_cst: set before kick()
    std::atomic<bool> unsent_{false}; // overflow or open frame: for flush()

    std::atomic<bool> closing_{false}, aborting_{false}, peer_over_{false}, dead_{false}, done_sending_{false};
    std::atomic<bool> heard_{true}, sent_{false};     // relaxed: since the last tick, other than heartbeats sent
    std::atomic<uint64_t> caller_io_{0}, loop_io_{0}; // relaxed: counters
    std::atomic<bool> waiting_out_{false};            // seq_cst: set before a sleeping writer checks a last time
    std::atomic<int> event_out_{-1};                  // of the notifier, for interrupt()

    std::atomic<bool> watched_{false}; // the host's queue holds the socket
    std::mutex watch_lock_;            // guards the two
    Queue *queue_ = nullptr;
    Source *source_ = nullptr;

    // the writing host
    int64_t last_small_ns_ = 0;
    std::atomic<uint32_t> small_run_{0}; // relaxed: one thread writes it at a time, the loop looks
    std::atomic<bool> answered_{false};  // relaxed: the host has read since its last write
    std::atomic<bool> pauses_{false};    // seq_cst: the loop sends what has gathered when pause_timer_ is due

    // loop thread
    int64_t sent_ns_ = 0;          // something was sent then or later
    uint64_t received_before_ = 0; // bytes of the stream, at the last tick
    PostedTask<Link, &Link::run_turn> turn_{*this};
    Timer<Link, &Link::end_pause> pause_timer_{*this};
    Timer<Link, &Link::finalize> finalize_again_{*this};
    int64_t end_at_ = 0;
    PeerSilence silence_;
    bool finalized_ = false, begun_ = false;
};

} // namespace muster
