// SPDX-License-Identifier: MIT
#pragma once
// Two pipes back to back, and how it ended. Each of the two sides is held by a Stream (the host's) or by a Carrier
// (a socket, a plug-in); a pair is two Streams on one Duplex, a tcp stream is a Stream on side 0 and a Link on side 1.
#include "base/object.hpp"
#include "stream/pipe.hpp"

#include <memory>
#include <mutex>
#include <vector>

namespace muster {

// Why a stream is over. A value; allocates nothing.
struct Ending {
    Error why;           // status: MUSTER_OK (it is not), E_PEER, E_ABORTED, E_PROTOCOL, E_CLOSED
    uint64_t reason = 0; // of an abort
    int aborted_by = -1; // the side whose host aborted

    Ending() noexcept = default;
    Ending(const Error &why, uint64_t reason = 0, int aborted_by = -1) noexcept
        : why(why), reason(reason), aborted_by(aborted_by) {}
};

// Notified of events other than bytes. One per side; called with no lock held that the callee could take.
class Side {
  public:
    virtual void about_to_end() noexcept {}                 // no more short cuts past ended_status()
    virtual void ended() noexcept = 0;                      // the duplex has ended; see ending()
    virtual void peer_events(uint32_t events) noexcept = 0; // PEER_SILENT, PEER_BACK
  protected:
    ~Side() = default;
};

class Duplex;

// Buffers that were handed over and outlive the stream to which they were written: they wait in the duplex, and close()
// of their queue takes them back from there.
class DuplexAtQueue final : public QueueUser {
  public:
    DuplexAtQueue(Duplex &duplex, int side, Queue &queue) noexcept : duplex_(duplex), side_(side), queue_(&queue) {}
    Queue &queue() const noexcept { return *queue_; }
    int side() const noexcept { return side_; }
    void end_operations() noexcept override;
    Object &owner() noexcept override;

  private:
    Duplex &duplex_;
    const int side_;
    const Ref<Queue> queue_;
};

// Any thread. Side s reads from incoming(s) and writes to outgoing(s).
class Duplex final : public Object {
  public:
    static constexpr const char *cancelled_in_the_middle = "a buffer handed over was cancelled in the middle";
    static Ref<Duplex> make_private(uint64_t window);
    // Both pipes in one shared mapping of `shared_bytes(window)`; side `own` is this process. Takes over the mapping
    // and both eventfds (own: the peer writes it to wake this side; peer: this side writes it), also when it fails.
    static size_t shared_bytes(uint64_t window) noexcept;
    // `fresh`: this process has made the mapping and initialises it; otherwise E_PROTOCOL if the layout is another one.
    static Result<Ref<Duplex>> make_shared(void *mapping, uint64_t window, int own, int own_event, int peer_event,
                                           bool fresh) noexcept;

    Pipe &incoming(int side) noexcept { return pipes_[side]; }
    Pipe &outgoing(int side) noexcept { return pipes_[1 - side]; }
    bool shared() const noexcept { return mapping_ != nullptr; }
    int own_event() const noexcept { return own_event_; } // shared duplexes; else -1

    void set_side(int side, Side *listener) noexcept; // NULL: returns when no call to the old one is running
    // Ends the duplex for both sides, once: the first reason is kept. Wakes every sleeping thread of this process. Any
    // thread.
    bool end(const Ending &ending) noexcept;
    // seq_cst: a sleeper parks, then checks this; end() sets it, then checks for sleepers.
    Status ended_status() const noexcept { return ended_.load(std::memory_order_seq_cst); } // MUSTER_OK: it has not
    bool is_ended() const noexcept { return ended_status() != MUSTER_OK; }
    bool aborted_by(int side) noexcept;
    Ending ending() noexcept;
    void tell_peer_events(int side, uint32_t events) noexcept;

    // The stream of this side is destroyed, its buffers of this queue stay (private duplexes): from now on close() of
    // the queue finds them here. They are taken back at once if the queue is closed already, or if there is no memory.
    void keep_owned(int side, Queue &queue) noexcept;
    void end_owned(int side, const Queue &queue) noexcept; // the queue is closing

  private:
    Duplex() = default;
    ~Duplex() override;
    Pipe pipes_[2];
    std::atomic<Status> ended_{MUSTER_OK}; // set after ending_ was written; pairs with ended_status()
    std::mutex lock_;                      // guards ending_
    Ending ending_;
    // Guards sides_; held while one is called (they only raise or post). Recursive: the last reference to a stream may
    // be released in such a call, and its destructor removes the side.
    std::recursive_mutex sides_lock_;
    Side *sides_[2] = {nullptr, nullptr};
    void *mapping_ = nullptr;
    size_t mapping_bytes_ = 0;
    int own_ = -1; // shared: the side of this process
    int own_event_ = -1, peer_event_ = -1;
    std::mutex at_queues_lock_; // guards at_queues_
    std::vector<std::unique_ptr<DuplexAtQueue>> at_queues_;
};

} // namespace muster
