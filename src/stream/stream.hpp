// SPDX-License-Identifier: MIT
#pragma once
// The host's end of a duplex: waiting, deadlines, cancel, watches, asynchronous operations.
#include "context/context.hpp"
#include "stream/carrier.hpp"
#include "stream/duplex.hpp"

#include <muster/stream.h>

#include <deque>
#include <string>
#include <vector>

namespace muster {

// One side of a stream's two directions: who may touch it, what waits in it.
struct Direction {
    // 0 free, 1 held, 2 held and somebody waits. acquire on taking, release on giving back: the holder's view of the
    // pipe passes on.
    alignas(64) std::atomic<uint32_t> lock{0};
    std::atomic<uint32_t> cancels{0};   // raised by cancel(), close(), release(): waits begun before it end
    bool lent = false;                  // a reservation or a peek is out
    size_t lent_bytes = 0;
    uint32_t spin = 0;                  // learned: how long waiting awake pays
    uint64_t calls = 0, bytes = 0, waits = 0, spins_won = 0, spins_lost = 0;
};

struct ReadOperation { // muster_stream_read_begin
    unsigned char *data;
    size_t size, done;
    Ref<Queue> queue;
    uint64_t tag;
};

// Any thread.
class Stream final : public Object, private Waker, private Side, private Source {
  public:
    // A stream on side 0 of a duplex with a carrier on side 1 (may be empty for shared memory without a control link).
    static Ref<Stream> make(Context &context, Ref<Duplex> duplex, int side, Ref<Carrier> carrier, std::string peer,
                            std::string greeting);
    static Result<void> pair(Context &context, uint64_t window, Ref<Stream> &first, Ref<Stream> &second);

    Context &context() const noexcept { return *context_; }
    const std::string &peer() const noexcept { return peer_; }
    const std::string &greeting() const noexcept { return greeting_; }
    bool forked() const noexcept { return context_->forked(); }

    Status write(const void *data, size_t size, Deadline &deadline, size_t &moved) noexcept;
    Status write_owned(const void *data, size_t size, Queue &queue, uint64_t tag);
    Status reserve(size_t min, Deadline &deadline, void *&data, size_t &size) noexcept;
    Status commit(size_t size) noexcept;
    Status flush(Deadline &deadline) noexcept;
    Status read(void *data, size_t min, size_t capacity, Deadline &deadline, size_t &moved) noexcept;
    Status read_begin(void *data, size_t size, Queue &queue, uint64_t tag);
    Status peek(size_t min, Deadline &deadline, const void *&data, size_t &size) noexcept;
    Status consume(size_t size) noexcept;
    Status finish() noexcept;
    Status abort(uint64_t reason, std::string text) noexcept;
    Status close(Deadline &deadline) noexcept;
    Status cancel(uint32_t directions) noexcept;
    Status watch(uint32_t interest, Queue *queue, uint64_t tag);
    Status reason(uint64_t *out_reason, muster_error *error) noexcept;
    Status exit_with_peer(int64_t grace_ns);
    void stats(muster_stream_stats &out) noexcept;

  private:
    friend struct StreamImpl;
    Stream(Context &context, Ref<Duplex> duplex, int side, Ref<Carrier> carrier, std::string peer,
           std::string greeting);
    ~Stream() override;
    void last_reference_gone() noexcept override;
    // Waker
    void wake_reader() noexcept override;
    void wake_writer() noexcept override;
    // Side
    void ended() noexcept override;
    void peer_events(uint32_t events) noexcept override;
    // Source
    uint32_t on_fd(uint32_t epoll_events) noexcept override;
    Object &owner() noexcept override { return *this; }

    Ref<Context> context_;
    Ref<Duplex> duplex_;
    const int side_;
    Ref<Carrier> carrier_;
    Pipe &in_, &out_;
    std::string peer_, greeting_;
    std::atomic<uint32_t> closed_{0};
    Direction read_, write_;
};

inline Stream *unwrap(muster_stream *handle) noexcept { return reinterpret_cast<Stream *>(handle); }
inline muster_stream *wrap(Stream *object) noexcept { return reinterpret_cast<muster_stream *>(object); }

} // namespace muster
