// SPDX-License-Identifier: MIT
#pragma once
// One direction of a stream: a single-producer single-consumer byte pipe with parking places for both sides.
//
// Inside one process the bytes are in a chain of buffers: a ring that starts small and is replaced by a larger one
// under load, and buffers that the host has handed over (no copy). Between processes they are in one ring of fixed size
// in shared memory, and everything that is read from there is checked as hostile.
//
// Parking: a side that cannot proceed stores how much it needs into `need`, stores FUTEX or FD into `state`, and checks
// again; the side that moves the index checks `state` afterwards. Both pairs are sequentially consistent (Dekker): at
// least one side sees the other. tests/models/relacy runs these files over relacy, and shows for each memory order what
// breaks without it.
#include "base/futex.hpp"
#include "base/result.hpp"
#include "queue/queue.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <memory>
#include <mutex>
#include <sys/uio.h>

namespace muster {

// Where one side of a pipe sleeps. Part of the shared-memory layout.
struct Park {
    enum : uint32_t { AWAKE = 0, FUTEX = 1, FD = 2 };
    std::atomic<uint32_t> state{AWAKE}; // also the futex word
    std::atomic<uint32_t> need{1};      // wake only when so many bytes (or so much room) are available

    // One sleep. `park_as(how)` parks (false: not necessary), `stop()` checks for another reason not to sleep, `wait()`
    // sleeps.
    template <class ParkAs, class Stop, class Wait>
    Status sleep(uint32_t how, ParkAs &&park_as, Stop &&stop, Wait &&wait) noexcept {
        Status status = MUSTER_OK;
        // seq_cst on both sides: parked, then checked; an interrupting thread sets, then unparks.
        if (park_as(how) && !stop()) status = wait();
        state.store(AWAKE, std::memory_order_relaxed); // a waker that still sees it parked finds out by its exchange
        return status;
    }
};

// The shared part of a pipe; lives on the heap, or at a fixed place of a shared mapping. Layout version 1.
struct PipeControl {
    alignas(128) std::atomic<uint64_t> head{0};     // bytes ever published; written by the producer
    alignas(128) std::atomic<uint64_t> tail{0};     // bytes ever consumed; written by the consumer
    alignas(128) Park reader;                       // the consumer sleeps here
    alignas(128) Park writer;                       // the producer sleeps here
    alignas(128) std::atomic<uint32_t> finished{0}; // the producer will publish no more
    std::atomic<uint32_t> reader_gone{0};           // the consumer will consume no more
};
static_assert(sizeof(PipeControl) == 640);

// Called when its side was parked as FD and can proceed. Must not block or call back.
class Waker {
  public:
    virtual void wake_reader() noexcept = 0; // the pipe this side reads from has bytes, or ended
    virtual void wake_writer() noexcept = 0; // the pipe this side writes to has room, or its reader is gone
  protected:
    ~Waker() = default;
};

// Shared by the pieces of a block that was handed over to several pipes at once. Any thread.
class SharedPiece : public Object {
  public:
    // One of the pieces was consumed or taken back completely, or continues without the others.
    virtual void piece_over() noexcept = 0;
};

// A buffer that the host has handed over: completed exactly once, with the number of bytes consumed from it.
struct Owned {
    const unsigned char *data = nullptr;
    size_t size = 0;
    Ref<Queue> queue; // a slot is reserved
    uint64_t tag = 0;
    Ref<SharedPiece> shared = {}; // empty: it is the only one of its block
    void release(size_t taken, Status status) noexcept {
        part();
        if (!queue) return;
        Entry e;
        e.completion.kind = MUSTER_DONE_RELEASED;
        e.completion.status = status;
        e.completion.tag = tag;
        e.completion.bytes = taken;
        queue->complete(std::move(e));
        queue.reset();
    }
    void part() noexcept {
        if (const Ref<SharedPiece> last = std::move(shared)) last->piece_over();
    }
};

// Bytes that stay at their address, unchanged, as long as `memory` is held. The consumer releases it with the last
// byte.
struct Lent {
    const unsigned char *data = nullptr;
    size_t size = 0;
    Ref<Object> memory;
};

// One producer and one consumer at a time (ensured by the direction locks of their sides); the state that both use is
// in PipeControl, in the chain of buffers, or under one of the two mutexes.
class Pipe {
  public:
    Pipe() noexcept = default;
    ~Pipe();
    Pipe(const Pipe &) = delete;
    Pipe &operator=(const Pipe &) = delete;

    // In-process: buffers on the heap, from 4 KiB up to `window` bytes (a power of two).
    void init_private(uint64_t window);
    // Shared memory: `control` and `ring` inside a mapping that outlives the pipe; capacity is a power of two. False:
    // no memory for the private part.
    bool init_shared(PipeControl *control, unsigned char *ring, uint64_t capacity) noexcept;
    bool shared() const noexcept { return shared_; }
    uint64_t window() const noexcept { return window_; }
    PipeControl &control() noexcept { return *control_; }

    // Wake-ups of a side parked as FD: a Waker in this process, or an eventfd.
    void set_reader_waker(Waker *waker) noexcept; // NULL: returns when no call of the old one is running
    void set_writer_waker(Waker *waker) noexcept;
    void set_fds(int reader_fd, int writer_fd) noexcept { reader_fd_ = reader_fd, writer_fd_ = writer_fd; }

    // --- producer ---------------------------------------------------------------------------------------------------
    // Copies in what fits and publishes it. MUSTER_OK (also with 0 moved: full), E_NOMEM (not even a first buffer),
    // E_PROTOCOL (shared memory gone wrong).
    Status push(const void *data, size_t size, size_t &moved) noexcept;
    // push() on the fast path: the bytes fit before the next edge. False: nothing was done.
    bool push_quickly(const void *data, size_t size) noexcept {
        if (size > write_left_ || size == 0) return false;
        memcpy(write_at_, data, size);
        write_at_ += size;
        write_left_ -= size;
        publish_head(size);
        return true;
    }
    // Contiguous room of at least `min` bytes, at most a quarter of the window. MUSTER_AGAIN: none now.
    Status reserve(size_t min, unsigned char *&data, size_t &size) noexcept;
    void commit(size_t size) noexcept; // of the last reserve()
    // Private pipes only: appends a buffer without copying. AGAIN: 64 wait already. After AGAIN or E_NOMEM nothing was
    // accepted.
    Status push_owned(Owned &owned) noexcept;
    // Private pipes only: appends bytes without copying them; they count against the window as copied ones do. AGAIN:
    // there is no room for all of them. After AGAIN or E_NOMEM nothing was accepted.
    Status push_lent(Lent &lent) noexcept;
    bool holds_owned_of(const Queue &queue) noexcept; // any thread
    void finish() noexcept;                           // no more bytes; wakes the reader
    bool reader_gone() const noexcept { return control_->reader_gone.load(std::memory_order_seq_cst) != 0; }
    bool has_room(size_t need) noexcept { // by the window, or the reader is gone: the condition of park_writer()
        return free_of_window(head_, control_->tail.load(std::memory_order_acquire)) >= need || reader_gone();
    }
    // All bytes ever pushed were consumed and published as consumed. Any thread.
    bool drained() const noexcept {
        // seq_cst: a flusher parks, then checks this; pairs with publish_tail(). The tail first, since it never passes
        // the head: equal then means equal now. relaxed: the head seen is at least as new as that tail.
        const uint64_t tail = control_->tail.load(std::memory_order_seq_cst);
        return control_->head.load(std::memory_order_relaxed) == tail;
    }
    // Parks the producer until `need` bytes of the window are free. False: they are (or the reader is gone), not
    // parked.
    bool park_writer(uint32_t state, size_t need) noexcept;
    // Parks the producer until the pipe is drained, or a carrier reports it by sent_all(). The caller checks
    // afterwards.
    void park_flusher(uint32_t state) noexcept;
    // Any thread, after a change (seq_cst) of the state that a flusher checks.
    void sent_all() noexcept { wake_writer_if(UINT64_MAX); }

    // --- consumer ---------------------------------------------------------------------------------------------------
    // Copies out what is there, up to `size`. MUSTER_OK (also with 0 moved: empty), E_PROTOCOL, E_ABORTED (a buffer was
    // taken back in the middle).
    Status pull(void *data, size_t size, size_t &moved, bool past_cache = false) noexcept;
    // pull() of at least `min` bytes that are known to be available before the next edge. 0: nothing was done.
    size_t pull_quickly(void *data, size_t min, size_t size) noexcept {
        if (min > read_left_) return 0;
        if (size > read_left_) size = read_left_;
        memcpy(data, read_at_, size);
        read_at_ += size;
        read_left_ -= size;
        advance(size);
        return size;
    }
    // Several checks in a row found only a few more bytes: the consumer follows the producer closely, and every step of
    // both waits for the cache line of the other. It is better to let some bytes accumulate before the next check.
    bool is_contended() const noexcept { return little_looks_ == max_little_looks && head_seen_ == tail_; }
    void gathered() noexcept { gathered_ = true; }        // the consumer has backed off
    void end_contention() noexcept { little_looks_ = 0; } // the consumer has slept
    // Returns the next bytes in place, at least `min` of them. MUSTER_AGAIN: fewer are available. Of a handed-over
    // buffer it returns a copy.
    Status peek(size_t min, const unsigned char *&data, size_t &size) noexcept;
    // Bytes that the last peek(), which returned AGAIN, found and did not count: of buffers that were taken back.
    size_t hidden() const noexcept { return hidden_; }
    // Up to `max` spans of at most `limit` bytes in all, for writev. After it with count > 0, consume() must follow at
    // once (with 0 if nothing was sent): a handed-over buffer cannot be taken back in between.
    Status gather(iovec *spans, int max, size_t limit, int &count) noexcept;
    bool shows_owned() const noexcept { return gathering_; } // gather() has returned bytes of a handed-over buffer
    void consume(size_t size) noexcept; // consumes the first bytes that peek() or gather() returned
    // The block of many pipes to which the next byte belongs, if any; and: takes the piece of that byte out of it.
    Ref<SharedPiece> shared_piece() noexcept;
    void part_shared_piece() noexcept;
    bool finished() const noexcept { return control_->finished.load(std::memory_order_seq_cst) != 0; }
    size_t readable() noexcept; // bytes available now (an upper bound while buffers are being taken back)
    // Parks the consumer until `need` bytes are available. False: they are (or it is finished), not parked.
    bool park_reader(uint32_t state, size_t need) noexcept;
    void drop_reader() noexcept; // will consume no more; handed-over buffers end with MUSTER_E_PEER
    uint64_t taken() const noexcept { return tail_; } // bytes ever consumed, by the consumer's own count
    void publish_tail() noexcept;                     // consumed bytes become room for the producer

    // --- any thread -------------------------------------------------------------------------------------------------
    // Ends every handed-over buffer (of this queue, with this tag; NULL: of all) that is not wholly taken, with this
    // status. A reader in the middle of one then gets MUSTER_E_ABORTED; one that had not begun it never sees it.
    struct TakenBack {
        bool any = false, begun = false; // begun: a reader is in the middle of one
    };
    TakenBack take_back_owned(Status status, const Queue *queue = nullptr, const uint64_t *tag = nullptr) noexcept;
    // Ends a park of this process's side without a reason from the other (cancel, abort).
    void unpark_reader() noexcept { unpark(control_->reader, reader_fd_, reader_waker_, &Waker::wake_reader); }
    void unpark_writer() noexcept { unpark(control_->writer, writer_fd_, writer_waker_, &Waker::wake_writer); }

    // relaxed counters: wake-ups sent by the producer, by the consumer
    std::atomic<uint64_t> wakeups_of_reader{0}, wakeups_of_writer{0};

  private:
    struct Buffer; // pipe_buffer.hpp
    static void free_ring(unsigned char *data) noexcept;
    using WakeFn = void (Waker::*)() noexcept;
    bool wake(Park &park, int fd, Waker *&waker, WakeFn fn) noexcept;
    void unpark(Park &park, int own_fd, Waker *&waker, WakeFn fn) noexcept;
    void wake_reader_if(uint64_t have) noexcept;
    void wake_writer_if(uint64_t have) noexcept;
    uint64_t free_of_window(uint64_t head, uint64_t tail) const noexcept;
    bool load_head() noexcept; // refreshes head_seen_; false: impossible value
    bool load_tail() noexcept; // refreshes tail_seen_; false: impossible value
    uint64_t ring_room() const noexcept;
    uint64_t room() const noexcept { return std::min(ring_room(), free_of_window(head_, tail_seen_)); }
    bool grow(uint64_t want) noexcept;
    void publish_head(uint64_t bytes) noexcept {
        head_ += bytes;
        // seq_cst (so also release): publishes the bytes to load_head(), and is ordered before the check for a sleeper.
        control_->head.store(head_, std::memory_order_seq_cst);
        if (control_->reader.state.load(std::memory_order_seq_cst) != Park::AWAKE) [[unlikely]]
            wake_reader_if(head_ - control_->tail.load(std::memory_order_relaxed));
    }
    void know_write() noexcept;
    void know_read() noexcept;
    Buffer *front() noexcept;
    Buffer *front_owned() noexcept; // nullptr: the next byte is in a ring, or there is none
    // Moves tail_ over bytes of the front buffer; small steps are published together.
    void advance(uint64_t bytes) noexcept {
        tail_ += bytes;
        if (tail_ - tail_published_ >= publish_step_ || tail_ == head_seen_) publish_tail();
    }
    void owned_progress(Buffer *buffer, uint64_t bytes) noexcept;
    void lent_progress(Buffer *buffer, uint64_t bytes) noexcept;
    void lock_owned() noexcept;

    PipeControl *control_ = nullptr;
    std::unique_ptr<PipeControl> own_control_;
    bool shared_ = false;
    int reader_fd_ = -1, writer_fd_ = -1;
    uint64_t window_ = 0;
    // Held while a waker runs. Recursive: the last reference to a stream may be released there, and its destructor
    // removes the waker.
    std::recursive_mutex waker_lock_;
    Waker *reader_waker_ = nullptr, *writer_waker_ = nullptr;
    std::mutex owned_lock_;                  // held while bytes of a handed-over buffer are used
    std::atomic<uint32_t> taking_back_{0};   // relaxed: a reader that uses piece after piece yields to them
    std::atomic<uint32_t> owned_waiting_{0}; // relaxed: a bound, not a guard
    // Bytes of handed-over buffers between head and tail: they do not count against the window. relaxed: raised before
    // the head that covers them, lowered before the tail that passes them, and seen with those.
    std::atomic<uint64_t> owned_bytes_{0};
    Buffer *owned_first_ = nullptr, *owned_last_ = nullptr; // under owned_lock_

    // the producer's own
    alignas(128) uint64_t head_ = 0;
    uint64_t tail_seen_ = 0;
    Buffer *write_ = nullptr;
    unsigned char *write_at_ = nullptr; // address of head_, and the contiguous room there
    uint64_t write_left_ = 0;
    // the consumer's own
    alignas(128) uint64_t tail_ = 0;
    uint64_t tail_published_ = 0;
    uint64_t head_seen_ = 0;
    uint64_t publish_step_ = 0;
    Buffer *read_ = nullptr;
    const unsigned char *read_at_ = nullptr; // the same for tail_ and the bytes there
    uint64_t read_left_ = 0;
    static constexpr uint32_t max_little_looks = 8;
    uint32_t little_looks_ = 0;
    bool gathered_ = false;
    void note_look(uint64_t found) noexcept;
    bool gathering_ = false;                     // owned_lock_ is held between gather() and consume()
    std::unique_ptr<unsigned char[]> assembled_; // peek() over an edge
    size_t assembled_bytes_ = 0;
    size_t hidden_ = 0;
};

} // namespace muster
