// SPDX-License-Identifier: MIT
#pragma once
// A peer of an endpoint: its stream, the requests to it that have no reply, and the frames that wait to be written.
#include "am/call.hpp"
#include "am/outgoing.hpp"
#include "am/wire.hpp"
#include "base/trace.hpp"
#include "stream/stream.hpp"

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

// What follows the head of a frame: two blocks of memory, one after the other.
struct AmPayload {
    static constexpr size_t max_direct_data = 256; // of `data`, where `body` is written directly
    const void *data = nullptr;
    size_t bytes = 0;
    const void *body = nullptr;
    size_t body_bytes = 0;
    size_t total() const noexcept { return bytes + body_bytes; }
    std::string_view data_view() const noexcept { return {static_cast<const char *>(data), bytes}; }
    std::string_view body_view() const noexcept { return {static_cast<const char *>(body), body_bytes}; }
};

// Any thread, unless a member says otherwise.
class AmPeer final : public Object {
  public:
    struct Limits {
        uint32_t max_bytes, max_requests;
    };
    AmPeer(Stream &stream, uint32_t number, Limits own);
    void take_handle() noexcept { has_handle_ = true; } // of the stream: the peer releases it

    const uint32_t number;
    Stream &stream() const noexcept { return *stream_; }

    // OK: the request was sent, or waits to be; AGAIN: as many have no reply as may, or too many bytes wait.
    Status request(AmCall &call, uint32_t handler, AmPayload payload);
    // The same in two steps for a large request: its thread writes it directly to the stream, and other frames wait
    // meanwhile. What is not written until the deadline is copied. After OK write_directly() follows.
    Status begin_direct(AmCall &call, uint32_t handler, AmPayload payload, AmHead &out_head);
    void write_directly(const AmHead &head, AmPayload payload, Deadline &deadline);
    Status reply(uint64_t id, Status status, const void *data, size_t bytes); // OK, PEER, PROTOCOL (too many wait)
    // A success, for a thread that writes what waits. The bytes stay valid until they were written, or until end() has
    // returned and no thread is between begin_writing() and the end of write_waiting().
    Status reply_lent(uint64_t id, std::string_view lent);
    void hello();
    // What both sides accept. Before the hello of the peer: what every peer does.
    Limits limits() const noexcept {
        const uint64_t now = limits_.load(std::memory_order_acquire); // one word, so both are of the same hello
        return {static_cast<uint32_t>(now >> 32), static_cast<uint32_t>(now)};
    }
    void flush() noexcept; // the stream has room
    // The role of the writer of what waits, for a thread that may block: until nothing waits, the stream has taken
    // nothing for this time, or the peer has ended. False: there is nothing to write, or another thread writes.
    bool begin_writing(size_t least_bytes) noexcept;
    void write_waiting(int64_t patience_ns) noexcept;
    void end_writing() noexcept; // without write_waiting()
    // The call for which a reply has arrived. Empty: there is none.
    Ref<AmCall> replied(uint64_t id) noexcept;
    Ref<AmCall> find(uint64_t id) noexcept; // for which a reply arrives
    void keep_failure(Status status) noexcept;
    Status take_failure() noexcept;
    uint32_t outstanding() noexcept;
    bool has_ended() const noexcept { return ended_.load(std::memory_order_acquire); }
    bool has_ended(Error *why) noexcept; // which may be null
    // Ends it, once: all calls end with this error. The stream is aborted.
    bool end(const Error &why, std::string_view text_for_peer) noexcept;
    void get(muster_am_peer &out, Error &why) noexcept;

    // Requests that the host has not answered. False: more than this endpoint accepts.
    bool serve_begins() noexcept;
    void serve_ends() noexcept;
    void count_executed() noexcept { executed_.add(1); } // the thread that executes
    uint64_t executed() const noexcept { return executed_.get(); }

    // The role of the reader: one thread at a time, the loop thread or one that waits for a reply. The loop thread that
    // does not get it reads later: leave_reading() is true, and the caller has it read.
    bool begin_reading(bool is_loop) noexcept;
    bool leave_reading() noexcept;
    // The reader will check for bytes once more. acquire: it finds those that the loop thread has seen before.
    void forget_refusal() noexcept {
        if (loop_was_refused_.load(std::memory_order_relaxed))
            loop_was_refused_.exchange(false, std::memory_order_acquire);
    }
    // Requests that another thread than the loop's has read. The loop thread executes them before what it reads itself,
    // and does not need the role for that: its holder may wait for a peer that waits for them. False: too many.
    using Frame = std::vector<unsigned char>;
    bool defer(Frame frame);
    bool has_deferred() const noexcept { return deferred_count_.load(std::memory_order_acquire) != 0; }
    void executed_deferred() noexcept { // release: pairs with has_deferred(), the next request comes after it
        deferred_count_.fetch_sub(1, std::memory_order_release);
    }
    // So many of them that the loop thread should read: a peer that sends without end would fill the memory otherwise.
    bool defers_much() noexcept;
    std::vector<Frame> take_deferred() noexcept;

    // ---- of the reader: bytes of a frame that has not arrived whole
    std::vector<unsigned char> partial;
    size_t partial_bytes = 0;
    // Where the rest of a large payload is read to, when `partial` has all that comes before it: memory of the host, or
    // that of the call.
    struct Placed {
        unsigned char *to = nullptr;
        size_t bytes = 0, done = 0;
        Ref<AmCall> call;
    };
    Placed placed;
    bool was_placed = false;      // the last frame: another large one may follow
    bool is_read_in_bulk = false; // by a thread that executes requests whose payload is in its place, and no others
    bool has_hello = false;
    void set_limits(const AmHello &of_peer) noexcept;
    // Of requests to it, and from it, in traces.
    uint64_t flow_to(uint64_t id) const noexcept { return Trace::flow_of(direction_to_, id); }
    uint64_t flow_from(uint64_t id) const noexcept {
        return Trace::flow_of(direction_from_.load(std::memory_order_relaxed), id); // relaxed: the hello came before
    }
    // Any thread: has the hello arrived?
    bool has_limits() const noexcept { return has_limits_.load(std::memory_order_acquire); }

  private:
    ~AmPeer() override {
        if (has_handle_) stream_->host_release();
    }
    Status take_slot(AmCall &call, uint32_t handler, size_t bytes, AmHead &out_head);
    void write(const AmHead &head, AmPayload payload);
    struct Blocks {
        std::string_view all[3];
        int count = 0, next = 0;
    };
    void write_blocks(Blocks &blocks, Deadline &deadline) noexcept;
    void keep_rest(const Blocks &blocks);
    void flush_held() noexcept;

    const Ref<Stream> stream_;
    const Limits own_; // what this endpoint accepts
    const uint64_t direction_to_;
    std::atomic<uint64_t> direction_from_{0};
    bool has_handle_ = false;
    Counter executed_;
    std::mutex lock_; // guards the rest
    std::atomic<uint64_t> limits_{uint64_t{am_least_bytes} << 32 | am_least_requests};
    std::atomic<bool> has_limits_{false}; // release: limits_ was set before
    AmOutgoing out_;
    struct Slot {
        Ref<AmCall> call;
        uint32_t uses = 0;
    };
    std::vector<Slot> slots_;
    std::vector<uint32_t> free_;
    uint32_t outstanding_ = 0, served_ = 0;
    uint64_t sent_ = 0;
    Status failure_ = MUSTER_OK;     // of unattended calls
    std::atomic<bool> ended_{false}; // set under the lock
    bool is_written_ = false;        // a thread writes without the lock; what others write waits in out_
    Error why_;
    bool is_read_ = false;
    std::atomic<bool> loop_was_refused_{false}; // set under the lock
    std::vector<Frame> deferred_;
    size_t deferred_bytes_ = 0;
    std::atomic<uint32_t> deferred_count_{0}; // those included that are being executed
};

} // namespace muster
