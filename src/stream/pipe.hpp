// SPDX-License-Identifier: MIT
#pragma once
// One direction of a stream: a single-producer single-consumer byte pipe with parking places for both sides.
//
// Inside one process the bytes lie in a chain of buffers: a ring that starts small and is replaced by a larger one under
// load, and buffers the host handed over (no copy). Between processes they lie in one ring of fixed size in shared
// memory, and everything read from there is checked as hostile.
//
// Parking (the protocol a relacy model checks, tests/unit/test_pipe_model.cpp): whoever finds nothing to do writes its
// wish into `need`, stores FUTEX or FD into `state`, and looks again; whoever moves the index looks at `state`
// afterwards. Both pairs are sequentially consistent (Dekker): at least one side sees the other.
#include "base/futex.hpp"
#include "base/result.hpp"
#include "queue/queue.hpp"

#include <atomic>
#include <cstddef>
#include <memory>
#include <sys/uio.h>

namespace muster {

// Where one side of a pipe sleeps. Part of the shared-memory layout.
struct Park {
    enum : uint32_t { AWAKE = 0, FUTEX = 1, FD = 2 };
    std::atomic<uint32_t> state{AWAKE}; // also the futex word
    std::atomic<uint32_t> need{1};      // wake only when so many bytes (or so much room) are there
};

// The shared part of a pipe; lives on the heap, or at a fixed place of a shared mapping. Layout version 1.
struct PipeControl {
    alignas(128) std::atomic<uint64_t> head{0}; // bytes ever published; written by the producer
    alignas(128) std::atomic<uint64_t> tail{0}; // bytes ever taken; written by the consumer
    alignas(128) Park reader;                   // the consumer sleeps here
    alignas(128) Park writer;                   // the producer sleeps here
    alignas(128) std::atomic<uint32_t> finished{0};    // the producer will publish no more
    std::atomic<uint32_t> reader_gone{0};              // the consumer will take no more
};
static_assert(sizeof(PipeControl) == 640);

// Told when the side it belongs to was parked as FD and there is something to do. Must not block or call back.
class Waker {
  public:
    virtual void wake_reader() noexcept = 0; // the pipe this side reads from has bytes, or ended
    virtual void wake_writer() noexcept = 0; // the pipe this side writes to has room, or its reader is gone
  protected:
    ~Waker() = default;
};

// A buffer handed over by the host: completed exactly once, with the bytes taken from it.
struct Owned {
    const unsigned char *data = nullptr;
    size_t size = 0;
    Ref<Queue> queue; // a slot is reserved
    uint64_t tag = 0;
    void release(size_t taken, Status status) noexcept {
        if (!queue) return;
        Entry e;
        e.completion.kind = MUSTER_DONE_RELEASED;
        e.completion.status = status;
        e.completion.tag = tag;
        e.completion.bytes = taken;
        queue->complete(std::move(e));
        queue.reset();
    }
};

// One producer and one consumer at a time (their direction locks see to it); what both use is in PipeControl.
class Pipe {
  public:
    Pipe() noexcept = default;
    ~Pipe();
    Pipe(const Pipe &) = delete;
    Pipe &operator=(const Pipe &) = delete;

    // In-process: buffers on the heap, from 4 KiB up to `window` bytes (a power of two).
    void init_private(uint64_t window) noexcept;
    // Shared memory: `control` and `ring` inside a mapping that outlives the pipe; capacity is a power of two.
    void init_shared(PipeControl *control, unsigned char *ring, uint64_t capacity) noexcept;
    bool shared() const noexcept { return shared_; }
    uint64_t window() const noexcept { return window_; }
    PipeControl &control() noexcept { return *control_; }

    // Wake-ups of a side parked as FD: a Waker in this process, or an eventfd of the peer's.
    void set_reader_waker(Waker *waker) noexcept; // returns when no call of the old one is running
    void set_writer_waker(Waker *waker) noexcept;
    void set_reader_fd(int fd) noexcept { reader_fd_ = fd; }
    void set_writer_fd(int fd) noexcept { writer_fd_ = fd; }

    // --- producer ---------------------------------------------------------------------------------------------------
    // Copies in what fits and publishes it; 0 when full. MUSTER_E_PROTOCOL from shared memory gone wrong.
    Result<size_t> write_some(const void *data, size_t size); // cold alias of push() for carriers
    Status push(const void *data, size_t size, size_t &moved) noexcept;
    // Contiguous room of at least `min` bytes (up to a quarter of the window); NULL when there is none now.
    Status reserve(size_t min, unsigned char *&data, size_t &size) noexcept;
    void commit(size_t size) noexcept;
    // Private pipes only: appends a buffer without copying. False: 64 wait already.
    bool push_owned(Owned &&owned);
    void finish() noexcept;              // no more bytes; wakes the reader
    bool reader_gone() const noexcept { return control_->reader_gone.load(std::memory_order_acquire) != 0; }
    // Parks the producer until `need` bytes fit. False: they fit already (or the reader is gone), not parked.
    bool park_writer(uint32_t state, size_t need) noexcept;
    size_t room() noexcept;              // bytes push() would take now

    // --- consumer ---------------------------------------------------------------------------------------------------
    // Copies out what is there, up to `size`; 0 when empty.
    Status pull(void *data, size_t size, size_t &moved) noexcept;
    // The next contiguous bytes, at least min(min, readable) of them when they can be made contiguous; size 0: empty.
    Status peek(size_t min, const unsigned char *&data, size_t &size) noexcept;
    // Up to `max` spans for writev; `count` 0: empty.
    Status gather(iovec *spans, int max, int &count, size_t limit) noexcept;
    Status consume(size_t size) noexcept; // takes the first bytes of what peek() or gather() showed
    bool finished() const noexcept { return control_->finished.load(std::memory_order_acquire) != 0; }
    size_t readable() noexcept;          // bytes there now (all of them)
    // Parks the consumer until `need` bytes are there. False: they are (or it is finished), not parked.
    bool park_reader(uint32_t state, size_t need) noexcept;
    void drop_reader() noexcept;         // takes no more: frees what is there, owned buffers with MUSTER_E_PEER
    uint64_t taken() const noexcept { return tail_; } // consumer's own count

    // --- both -------------------------------------------------------------------------------------------------------
    // Ends a park of this side without a reason from the other one (cancel, deadline, abort). Any thread.
    void unpark_reader() noexcept { unpark(control_->reader, &Waker::wake_reader, reader_fd_, reader_waker_); }
    void unpark_writer() noexcept { unpark(control_->writer, &Waker::wake_writer, writer_fd_, writer_waker_); }
    uint64_t wakeups = 0; // relaxed figures, by whoever sends them

  private:
    struct Buffer;
    using WakeFn = void (Waker::*)() noexcept;
    void wake_if(Park &park, uint64_t have, WakeFn fn, int fd, Waker *&waker) noexcept;
    void unpark(Park &park, WakeFn fn, int fd, Waker *&waker) noexcept;
    bool grow(size_t want);
    Status load_head() noexcept; // refreshes head_seen_, checks it
    Status load_tail() noexcept; // refreshes tail_seen_, checks it
    Buffer *front() noexcept;    // consumer: the buffer holding tail_, retiring finished ones
    void publish_tail() noexcept;

    PipeControl *control_ = nullptr;
    std::unique_ptr<PipeControl> own_control_;
    bool shared_ = false;
    uint64_t window_ = 0;
    int reader_fd_ = -1, writer_fd_ = -1;
    Waker *reader_waker_ = nullptr, *writer_waker_ = nullptr; // under waker_lock_
    std::atomic<uint32_t> waker_lock_{0};
    // producer's own
    alignas(128) uint64_t head_ = 0;
    uint64_t tail_seen_ = 0;
    Buffer *write_ = nullptr;
    // consumer's own
    alignas(128) uint64_t tail_ = 0;
    uint64_t tail_published_ = 0;
    uint64_t head_seen_ = 0;
    Buffer *read_ = nullptr;
    alignas(128) std::atomic<uint32_t> owned_waiting_{0};
};

} // namespace muster
