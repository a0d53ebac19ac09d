// SPDX-License-Identifier: MIT
#pragma once
// A link: what carries the bytes of one stream between two processes, after both have proved the secret. It speaks
// frames over a wire (a socket, a plug-in's connection, a pump), keeps to the reader's credit, answers heartbeats,
// notices silence and death, and ends in order. Over shared memory the same link only watches over the peer's life.
//
// Two locks, never both at once, never waited for: who cannot have one leaves a wish, and its holder looks again.
#include "stream/carrier.hpp"
#include "stream/duplex.hpp"
#include "transport/frame.hpp"
#include "transport/hub.hpp"
#include "transport/spill.hpp"

#include <atomic>
#include <mutex>
#include <string>

namespace muster {

class Stream;

// A lock that is only ever tried, with a wish for those who met it held. Any thread.
class TryLock {
  public:
    // seq_cst throughout: a wish is set before the lock is tried, and looked at after it was given back; one of the two
    // sees the other. acquire/release is part of it: the holder's view passes on.
    bool try_lock() noexcept { return !held_.exchange(true, std::memory_order_seq_cst); }
    void wish() noexcept { wish_.store(true, std::memory_order_seq_cst); }
    bool unlock() noexcept { // true: somebody left a wish, take the lock again and look
        held_.store(false, std::memory_order_seq_cst);
        return wish_.load(std::memory_order_seq_cst);
    }
    void looked() noexcept { // by the holder, before it looks
        if (wish_.load(std::memory_order_relaxed)) wish_.store(false, std::memory_order_seq_cst);
    }
    bool held() const noexcept { return held_.load(std::memory_order_relaxed); }

  private:
    std::atomic<bool> held_{false}, wish_{false};
};

// Any thread unless a member says otherwise.
class Link : public Carrier,
             public Listed<Link, AllLinks>,
             public Listed<Link, NearLinks>,
             private Waker,
             protected FrameSink {
  public:
    // `host_side`: of the duplex, where the host's stream stands.
    Link(Hub &hub, Ref<Duplex> duplex, int host_side, const Agreement &terms, uint64_t own_window, std::string peer);
    ~Link() override;
    void begin() noexcept; // loop thread, once: from now on bytes flow
    const std::string &peer() const noexcept { return peer_; }
    Ref<Stream> make_stream(std::string greeting); // the host's end; once, before begin()

    // --- the wire tells: loop thread ---
    void deliver(const unsigned char *data, size_t size) noexcept; // bytes came in
    void writable() noexcept;                                      // after wire_send() had answered -EAGAIN
    void lost(int os_errno, const char *why) noexcept;             // nothing more will come; everything was delivered

    // --- the hub: loop thread ---
    virtual void tick(int64_t now, bool late) noexcept; // now and then: heartbeats, silence
    virtual bool idle_tick() noexcept { return false; } // after watch_over(); false: enough
    bool wind_down() noexcept;                          // the context closes: true when all is sent and over
    void stop() noexcept;                               // the engine ends: now

    // --- Carrier ---
    void taken() noexcept override;
    bool flush() noexcept override;
    void abort(uint64_t reason, const char *text, size_t text_bytes) noexcept override;
    void closed() noexcept override;
    Io io() const noexcept override;

  protected:
    // --- the wire: what a subclass is ---
    // Sends from the front without waiting: how many bytes, or -errno; after -EAGAIN writable() follows. Tx lock held.
    virtual ssize_t wire_send(const iovec *spans, int count) noexcept = 0;
    virtual bool wire_any_thread() const noexcept { return false; } // wire_send() off the loop thread
    virtual void wire_start() noexcept {}                           // loop thread: deliver() may come from now on
    virtual void wire_finish() noexcept {}                          // nothing more will be sent. Tx lock held
    virtual void wire_read_soon() noexcept {} // what lies in the wire should be delivered by the loop. Any thread
    virtual void wire_shut() noexcept {}      // it is over: whoever is inside comes out. Any thread
    virtual void wire_close() noexcept = 0;   // loop thread, both locks held, last

    // --- for subclasses ---
    void kick() noexcept; // sends what can be sent
    void fail(Status status, int os_errno, const char *why) noexcept;
    void fail_reading(Status status) noexcept; // after feed() failed. Rx lock held
    bool over() const noexcept { return dead_.load(std::memory_order_seq_cst); }
    void heard() noexcept { heard_.store(true, std::memory_order_relaxed); }
    Status count_in(size_t size) noexcept; // bytes of the host came in: within what was granted?
    void give_tx() noexcept;               // unlocks; looks again if somebody left a wish
    void pump() noexcept;                  // tx lock held
    bool tx_idle() const noexcept;         // tx lock held: nothing waits before the next byte of the host
    void use_credit(uint64_t bytes) noexcept { credit_.fetch_sub(bytes, std::memory_order_relaxed); }
    void return_credit(uint64_t bytes) noexcept { credit_.fetch_add(bytes, std::memory_order_relaxed); }
    uint64_t usable_credit() const noexcept { return credit_.load(std::memory_order_acquire); }
    void finalize() noexcept;                  // loop thread
    void sending_broke(int os_errno) noexcept; // tx lock held
    // FrameSink; rx lock held
    Status on_data(const unsigned char *data, size_t size) noexcept override;
    Status on_credit(uint64_t bytes) noexcept override;
    Status on_finish() noexcept override;
    Status on_abort(uint64_t reason, const char *text, size_t text_bytes) noexcept override;
    Status on_goodbye() noexcept override;

    Hub &hub_;
    Ref<Context> context_; // until finalize(): bytes still on their way keep the engine
    const Ref<Duplex> duplex_;
    Pipe &in_, &out_; // the host reads from in_ and writes to out_; unused when shared
    const bool shared_;
    const int host_side_;
    const std::string peer_;
    const uint64_t window_;

    TryLock rx_;
    FrameReader reader_;                // rx
    std::atomic<uint64_t> received_{0}; // bytes of the host that came in; written under rx
    std::atomic<uint64_t> granted_;     // bytes the peer may send in all; raised by the reading host
    std::atomic<uint64_t> direct_{0};   // bytes that went past the pipe into the host's memory; its reader writes
    std::atomic<bool> starved_{false};  // the host's bytes wait for credit

    TryLock tx_;
    std::atomic<uint64_t> caller_io_{0}, loop_io_{0}; // relaxed: figures

    // tx lock
    std::unique_ptr<Sealer> sealer_;
    Spill spill_;
    size_t held_ = 0;      // of out_: to be consumed when the spill is sent, so that the pipe is not empty before
    size_t open_left_ = 0; // payload of a begun frame that lies in the ring of out_
    bool finish_sent_ = false, goodbye_sent_ = false, abort_sent_ = false, dropped_ = false, send_broken_ = false;
    const bool sealed_;

    std::atomic<uint64_t> credit_;         // bytes the peer takes; raised under rx, lowered under tx
    std::atomic<uint64_t> credit_owed_{0}; // to be granted to the peer with the next frame
    std::atomic<uint32_t> wants_{0};       // seq_cst: a want is set before kick()
    std::atomic<bool> unsent_{false};      // spill or open frame: for flush()
    std::atomic<bool> closing_{false}, aborting_{false}, peer_over_{false}, dead_{false}, done_sending_{false};
    std::atomic<bool> heard_{true}, sent_{false};

  private:
    enum : uint32_t { want_heartbeat = 1, want_credit = 2, want_abort = 4 };
    enum class Step { sent, nothing, stop };
    struct Batch;
    struct Control;
    void wake_reader() noexcept override; // Waker: the host has put bytes into out_
    void wake_writer() noexcept override {}
    Step send_spill() noexcept;
    Step send_batch() noexcept;
    Step seal_batch() noexcept;
    Step torn(const Control &control) noexcept;
    void add_control(Control &control) noexcept;
    void add_frame(Control &control, FrameType type, const void *payload = "", size_t size = 0) noexcept;
    void account(const Batch &batch, size_t sent, const Control &control) noexcept;
    Step after_send(ssize_t n) noexcept;
    bool at_end() noexcept;
    void grant(uint64_t consumed) noexcept;
    bool unsent() const noexcept;
    void turn() noexcept; // loop thread
    void ask_turn() noexcept { turn_.post(hub_.context()); }

    PostedTask<Link, &Link::turn> turn_{*this};
    Timer<Link, &Link::finalize> finalize_again_{*this}; // loop thread
    std::atomic<int64_t> last_heard_{0};
    std::mutex abort_lock_; // guards the reason
    uint64_t abort_reason_ = 0;
    size_t abort_text_bytes_ = 0;
    char abort_text_[frame_control_max - 8];
    const uint64_t credit_most_; // the peer's window
    const int64_t silent_ns_, dead_ns_;

    // loop thread
    int64_t last_sent_ = 0, end_at_ = 0;
    bool silent_ = false, finalized_ = false, begun_ = false;
};

} // namespace muster
