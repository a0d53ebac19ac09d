// SPDX-License-Identifier: MIT
#pragma once
// The host's end of a duplex: waiting, deadlines, cancel, watches, asynchronous operations.
#include "base/awake.hpp"
#include "base/list.hpp"
#include "context/task.hpp"
#include "stream/carrier.hpp"
#include "stream/direction_lock.hpp"
#include "stream/duplex.hpp"

#include <muster/stream.h>

#include <deque>
#include <memory>
#include <mutex>
#include <pthread.h>
#include <string>
#include <vector>

namespace muster {

// A counter written by one holder at a time and read by any thread. relaxed: nothing is published by it.
class Counter {
  public:
    void add(uint64_t n) noexcept {
        value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
    }
    uint64_t get() const noexcept { return value_.load(std::memory_order_relaxed); }

  private:
    std::atomic<uint64_t> value_{0};
};

// An operation with a completion that waits in a direction of a shared-memory stream, or waits to be read.
struct StreamOperation {
    unsigned char *data = nullptr; // of a write: read only
    size_t size = 0, done = 0;
    Ref<Queue> queue;
    uint64_t tag = 0;
    int32_t kind = 0;
    void complete(Status status) noexcept;
};

// One direction of a stream: its lock, waiting operations, counters. Fields without a comment belong to the holder of
// the lock.
struct Direction {
    enum : uint32_t {
        NOTIFY = 1,
        PUMP = 2,
        FINISH = 4
    }; // work that a thread which found the lock held requests from the holder after the unlock
    DirectionLock lock;
    std::atomic<uint32_t> later{0};
    // Reasons for the slow path; relaxed: a thread that changes the stream at the same moment comes before or after,
    // and OVER is set before the end can be seen (Duplex::end).
    enum : uint32_t { OVER = 1, LENT = 2, OPERATIONS = 4, SOCKET = 8 };
    std::atomic<uint32_t> unusual{0};
    void set_unusual(uint32_t bit, bool on) noexcept {
        if (on)
            unusual.fetch_or(bit, std::memory_order_relaxed);
        else
            unusual.fetch_and(~bit, std::memory_order_relaxed);
    }
    std::atomic<uint32_t> cancels{0}; // raised by cancel(): waits begun before it end
    std::atomic<uint32_t> waiting_operations{0};
    std::atomic<bool> lent{false};   // a reservation or a peek is outstanding; relaxed: only finish() checks it
    std::atomic<bool> asleep{false}; // the holder waits for the other side; relaxed: a hint not to queue for the lock
    size_t lent_bytes = 0;
    Awake<2048, 32, 512> awake;                // turns of 10 to 30 ns
    uint32_t back_off = 0, sleeps_without = 0; // turns of back-off that were successful so far, and sleeps without any
    std::deque<StreamOperation> *operations = nullptr; // made at the first use; changed under operations_lock_, too
    Counter calls, bytes, waits, spins_won, spins_lost;
    uint64_t unreported = 0; // bytes not yet in the counters of the context
};

// Which thread used a stream last: the host's end of a transport that it serves. relaxed: a thread compares only with
// itself.
class StreamUser final : public Object {
  public:
    void note() noexcept { thread_.store(pthread_self(), std::memory_order_relaxed); }
    bool here() const noexcept { return pthread_equal(thread_.load(std::memory_order_relaxed), pthread_self()); }

  private:
    std::atomic<pthread_t> thread_{};
};

class EventFdWatch; // stream/streams.hpp
class Stream;

// Represents the operations of a stream at one queue. Made for the first operation, kept until the stream ends.
class StreamAtQueue final : public QueueUser {
  public:
    StreamAtQueue(Stream &stream, Queue &queue) noexcept : stream_(stream), queue_(&queue) {}
    Queue &queue() const noexcept { return *queue_; }
    void end_operations() noexcept override;
    bool cancel_operation(uint64_t tag) noexcept override;
    Object &owner() noexcept override;

  private:
    Stream &stream_;
    const Ref<Queue> queue_;
};

// Any thread. The host's reference ends with host_release(); references inside (events, tasks, waiting threads) outlive
// it shortly.
class Stream final : public Object, public Listed<Stream>, private Waker, private Side, private Source {
  public:
    // A stream on `side` of a duplex whose other side is a carrier (none: another stream).
    static Ref<Stream> make(Context &context, Ref<Duplex> duplex, int side, Ref<Carrier> carrier, std::string peer,
                            std::string hello);
    static void pair(Context &context, uint64_t window, std::string name, Ref<Stream> &first, Ref<Stream> &second);

    Context &context() const noexcept { return *context_; }
    const std::string &peer() const noexcept { return peer_; }
    std::string local_address() { return carrier_ ? carrier_->local_address() : std::string(); }
    const std::string &hello() const noexcept { return hello_; }
    bool forked() const noexcept { return context_->forked(); }
    Duplex &duplex() noexcept { return *duplex_; }
    int side() const noexcept { return side_; }

    // The fast paths: for the owner of the lock, a stream in its normal state, and room or bytes at hand. False or 0:
    // use the slow path; nothing was done.
    bool write_quickly(const void *data, size_t size) noexcept {
        if (size > DirectionLock::longest || write_.unusual.load(std::memory_order_relaxed) != 0) return false;
        if (!write_.lock.enter_by_bias()) return false;
        const bool done = !out_.reader_gone() && out_.push_quickly(data, size);
        if (done) {
            wrote_since_wait_.store(true, std::memory_order_relaxed);
            count(write_, size, context_->counters.bytes_out);
        }
        give(write_);
        return done;
    }
    size_t read_quickly(void *data, size_t min, size_t size) noexcept {
        if (size > DirectionLock::longest || read_.unusual.load(std::memory_order_relaxed) != 0) return 0;
        if (!read_.lock.enter_by_bias()) return 0;
        const size_t got = in_.pull_quickly(data, min, size);
        if (got != 0) count(read_, got, context_->counters.bytes_in);
        give(read_);
        return got;
    }
    Status write(const void *data, size_t size, Deadline &deadline, size_t &moved) noexcept;
    // `shared`: shared with the pieces of other streams; it is notified of the end of this piece only if the result was
    // OK.
    Status write_owned(const void *data, size_t size, Queue &queue, uint64_t tag, Ref<SharedPiece> shared = {});
    MulticastGroup *multicast_group() noexcept { return carrier_ ? carrier_->multicast_group() : nullptr; }
    Status reserve(size_t min, Deadline &deadline, void *&data, size_t &size);
    Status commit(size_t size) noexcept;
    Status flush(Deadline &deadline) noexcept;
    // At least `min` bytes, at most `capacity`. Without `arms` a call that returns AGAIN does not arm the watch.
    // `whole`: the bytes of a large copy of which this is a piece.
    Status read(void *data, size_t min, size_t capacity, Deadline &deadline, size_t &moved, bool arms = true,
                size_t whole = 0) noexcept;
    // The next bytes are not reported until a read has returned AGAIN: the thread that calls this reads them.
    void disarm_reading() noexcept;
    // For a thread that reads much, blocking, where a queue watches: it is not woken by what this thread reads.
    void pause_watch(bool is_paused) noexcept {
        if (carrier_ && carrier_watched_.load(std::memory_order_relaxed)) carrier_->pause_watch(is_paused);
    }
    // Any thread. Shared memory: bytes that the peer has written since the start; false: the stream has no such count.
    bool published(uint64_t &out_bytes) noexcept {
        if (duplex_->shared()) out_bytes = in_.control().head.load(std::memory_order_acquire);
        return duplex_->shared();
    }
    Status read_begin(void *data, size_t size, Queue &queue, uint64_t tag);
    Status peek(size_t min, Deadline &deadline, const void *&data, size_t &size);
    Status consume(size_t size) noexcept;
    Status finish() noexcept;
    Status abort(uint64_t reason, std::string_view text) noexcept;
    Status close(Deadline &deadline) noexcept;
    Status cancel(uint32_t directions) noexcept;
    Status watch(uint32_t interest, Queue *queue, uint64_t tag);
    Status reason(uint64_t *out_reason, muster_error *error) noexcept;
    Status exit_with_peer(int64_t grace_ns) noexcept;
    void stats(muster_stream_stats &out) noexcept;
    void host_release() noexcept;                                                // muster_stream_release()
    void set_user(Ref<StreamUser> user) noexcept { user_ = std::move(user); }    // before the host has the stream
    void keep_to_the_end(Ref<Object> what) noexcept { kept_ = std::move(what); } // before the host has the stream
    // The context closes: ends the stream for good. drained() returns true when no bytes are in transit any more.
    void context_closed() noexcept;
    bool drained() noexcept;

  private:
    friend class StreamsOfContext;
    friend class EventFdWatch;
    Stream(Context &context, Ref<Duplex> duplex, int side, Ref<Carrier> carrier, std::string peer, std::string hello);
    ~Stream() override;
    void last_reference_gone() noexcept override;
    void wake_reader() noexcept override;
    void wake_writer() noexcept override;
    void about_to_end() noexcept override;
    void ended() noexcept override;
    void peer_events(uint32_t events) noexcept override;
    uint32_t on_fd(uint32_t epoll_events) noexcept override;
    bool begin_look() noexcept override;
    uint32_t look() noexcept override;
    uint32_t end_look() noexcept override;
    Object &owner() noexcept override { return *this; }

    Status closing_status() noexcept;
    Status close_again() noexcept;
    bool peer_is_gone() noexcept;
    // stream_wait.cpp: locks, parking, arming
    uint32_t event_of(const Direction &d) const noexcept {
        return &d == &read_ ? MUSTER_STREAM_READABLE : MUSTER_STREAM_WRITABLE;
    }
    Status take(Direction &d, Deadline &deadline, uint32_t cancels) noexcept;
    Status take_slowly(Direction &d, Deadline &deadline, uint32_t cancels) noexcept;
    Status take_shortly(Direction &d, uint32_t cancels) noexcept;
    Status take_back(Direction &d) noexcept;
    bool try_take(Direction &d, uint32_t later) noexcept;
    void give(Direction &d) noexcept {
        if (!d.lock.unlock()) [[unlikely]]
            give_contended(d);
    }
    void give_contended(Direction &d) noexcept;
    bool take_from_everyone(Direction &d) noexcept;
    void do_later(Direction &d) noexcept;
    void interrupt(uint32_t directions) noexcept;
    bool interrupted(const Direction &d, uint32_t cancels) const noexcept;
    Status await_bytes(size_t need, Deadline &deadline, uint32_t cancels) noexcept;
    Status await_peek(size_t need, Deadline &deadline, uint32_t cancels) noexcept;
    Status await_room(size_t need, Deadline &deadline, uint32_t cancels) noexcept;
    Status await_flush(bool drained, Deadline &deadline, uint32_t cancels) noexcept;
    template <class ParkFn, class StopFn>
    Status sleep(Direction &d, Park &park, ParkFn &&park_as, StopFn &&stop, Deadline &deadline) noexcept;
    void let_bytes_gather() noexcept;
    template <class Ready>
    bool look_away(Direction &d, Ready &&ready) noexcept;
    void drive_between_pieces() noexcept;
    template <class Until>
    bool drive_carrier(Direction &d, Deadline &deadline, const Until &until) noexcept;
    bool arm(uint32_t event, size_t need = 0) noexcept; // 0: any byte, or room for a small message
    void rearm(uint32_t event) noexcept;
    void notify_events(uint32_t events) noexcept;
    void watch_event_fd() noexcept;
    // stream_io.cpp
    Status over_reading() noexcept;
    Status over_writing() noexcept;
    Status broken() noexcept;
    static void count(Direction &d, size_t bytes, std::atomic<uint64_t> &total) noexcept {
        if (bytes == 0) return;
        d.calls.add(1);
        d.bytes.add(bytes);
        // The context's counters are shared by all streams: they are updated in large steps.
        if ((d.unreported += bytes) >= 65536)
            total.fetch_add(std::exchange(d.unreported, 0), std::memory_order_relaxed);
    }
    size_t piece() const noexcept { return in_.window() / 8 < 65536 ? in_.window() / 8 : 65536; }
    // stream_operation.cpp
    void pump() noexcept;
    // Does not pump here: the caller may hold locks of a pipe or a duplex. May release the last reference.
    void post_pump() noexcept { pump_task_.post(*context_); }
    Status pump_reads() noexcept;
    Status pump_writes() noexcept;
    bool step_read(StreamOperation &operation, Status &status) noexcept;
    bool step_write(StreamOperation &operation, Status &status) noexcept;
    template <class StepFn>
    Status pump_operations(Direction &d, StepFn &&step) noexcept;
    struct Dropped {
        bool any = false, begun = false;
    };
    Dropped drop_operations(Direction &d, Status status, const Queue *queue = nullptr,
                            const uint64_t *tag = nullptr) noexcept;
    void operations_done() noexcept;
    bool enlist(Queue &queue);
    bool has_operations(const Queue &queue) noexcept;
    bool add_operation(Direction &d, StreamOperation &&op) noexcept;
    friend class StreamAtQueue;
    bool end_operations(const Queue &queue, const uint64_t *tag = nullptr) noexcept; // false: there are none
    void leave_owned() noexcept;
    void abort_torn() noexcept;
    // stream.cpp
    void close_now() noexcept;
    void carrier_closed() noexcept;
    void want_finish() noexcept;
    void finish_held() noexcept;
    void finish_pipe() noexcept;

    Ref<Context> context_;
    Ref<Duplex> duplex_;
    const int side_;
    Ref<Carrier> carrier_;
    const bool carrier_drives_; // bytes pass through it, and a waiting thread drives
    Ref<Object> kept_;          // released with the stream
    Ref<StreamUser> user_;
    Pipe &in_, &out_;
    std::string peer_, hello_;
    uint64_t metrics_number_ = 0;                    // under the lock of StreamsOfContext
    std::atomic<uint32_t> closed_{0};                // this side: closed or released
    std::atomic<uint32_t> released_{0};              // by the host
    std::atomic<Status> close_status_{MUSTER_AGAIN}; // of the first close(); AGAIN: check the state of the rest
    std::atomic<uint32_t> finish_wanted_{0};         // this side writes no more
    // A buffer was taken back when a part of it was copied: no bytes may follow it. The abort follows.
    std::atomic<bool> torn_{false};

    std::atomic<uint32_t> carrier_told_closed_{0};
    std::atomic<uint32_t> lingers_{0}; // released by the host, kept alive by buffers that were handed over
    PostedTask<Stream, &Stream::pump> pump_task_{*this};
    Ref<EventFdWatch> event_fd_watch_; // of shared memory
    std::atomic<int64_t> exit_grace_ns_{-1};
    std::atomic<bool> wrote_since_wait_{false}; // relaxed: a request-reply pattern, in which polling may be successful
    uint64_t taken_told_ = 0;
    std::string bounce_; // a reservation that would cross the edge of the ring
    Signal signal_;      // external contexts sleep here

    // Held while bytes of an operation's buffer are moved, or operations are added or removed: by the holder of the
    // direction, or by a thread that returns buffers without it (the closing queue, the closing context).
    std::mutex operations_lock_;
    std::vector<std::unique_ptr<StreamAtQueue>> at_queues_; // under at_queues_lock_
    std::mutex at_queues_lock_;

    std::mutex watch_calls_; // one watch() at a time
    std::mutex watch_lock_;  // guards queue_ against watch() while an event is raised
    Ref<Queue> queue_;
    std::atomic<uint32_t> interest_{0};
    std::atomic<uint32_t> armed_{0};           // seq_cst: an armed event is reported by exactly one thread
    std::atomic<bool> carrier_watched_{false}; // relaxed: written under watch_calls_, before and after events can come
    bool torn_down_ = false;

    Direction read_, write_;
};

// muster_stream_write_many(). The arrays may be NULL. Throws bad_alloc before anything was written.
Status write_many(muster_stream *const *streams, uint32_t count, const unsigned char *data, size_t size,
                  Deadline &deadline, Status *out_statuses, size_t *out_bytes);

// muster_stream_write_owned_many(). Throws bad_alloc before any buffer was accepted.
Status write_owned_many(muster_stream *const *streams, uint32_t count, const void *data, size_t size, Queue &queue,
                        const uint64_t *tags, Status *out_statuses);

inline Stream *unwrap(muster_stream *handle) noexcept {
    return reinterpret_cast<Stream *>(handle);
}
inline muster_stream *wrap(Stream *object) noexcept {
    return reinterpret_cast<muster_stream *>(object);
}

} // namespace muster
