// SPDX-License-Identifier: MIT
// Operations with a completion: reads begun by the host, and (over shared memory) buffers handed over. Whoever holds
// the direction moves them on: the submitter at once, a thread that waits in the same direction, or the engine.
#include "stream/stream.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace muster {

namespace {
constexpr size_t most_operations = 64;
constexpr size_t cancel_piece = 256 * 1024; // what muster_stream_cancel() may have to wait for
} // namespace

void StreamOperation::complete(Status status) noexcept {
    Entry e;
    e.completion.kind = kind;
    e.completion.status = status;
    e.completion.tag = tag;
    e.completion.bytes = done;
    queue->complete(std::move(e));
    queue.reset();
}

// Fills the reads begun, in order. OK: none is left. AGAIN: the first one waits for bytes, and is parked. Holder of the
// lock.
Status Stream::pump_reads() noexcept {
    read_.lock.settle();
    while (!read_.operations->empty()) {
        StreamOperation &op = read_.operations->front();
        const bool finished = in_.finished();
        const Status over = over_reading();
        size_t got = 0;
        Status status = over == MUSTER_E_CLOSED
                            ? over
                            : in_.pull(op.data + op.done, std::min(op.size - op.done, cancel_piece), got);
        if (status == MUSTER_E_PROTOCOL) status = broken();
        op.done += got;
        count(read_, got, context_->counters.bytes_in);
        if (status == MUSTER_OK && op.done != op.size) {
            if (got != 0) {
                if (!read_.lock.awaited()) continue;
                read_.later.fetch_or(Direction::PUMP, std::memory_order_seq_cst); // somebody wants in: after him
                return MUSTER_AGAIN;
            }
            if (finished)
                status = MUSTER_E_END;
            else if (over < 0)
                status = over;
            else {
                if (carrier_ && !duplex_->shared()) carrier_->taken(), carrier_->engage();
                if (duplex_->shared()) watch_event_fd();
                if (!in_.park_reader(Park::FD, std::clamp<size_t>(op.size - op.done, 1, piece()))) continue;
                if (duplex_->is_ended() || closed_.load(std::memory_order_seq_cst)) continue;
                return MUSTER_AGAIN;
            }
        }
        StreamOperation ended = std::move(op);
        read_.operations->pop_front();
        read_.waiting_operations.fetch_sub(1, std::memory_order_seq_cst);
        ended.complete(status);
    }
    read_.set_unusual(Direction::OPERATIONS, false);
    return MUSTER_OK;
}

// Copies buffers handed over into the ring of a shared-memory stream. OK: none is left. AGAIN: the ring is full,
// parked.
Status Stream::pump_writes() noexcept {
    write_.lock.settle();
    while (!write_.operations->empty()) {
        StreamOperation &op = write_.operations->front();
        Status status = duplex_->is_ended() ? duplex_->ending().status : MUSTER_OK;
        if (status == MUSTER_OK && out_.reader_gone()) status = MUSTER_E_PEER;
        size_t got = 0;
        if (status == MUSTER_OK) status = out_.push(op.data + op.done, std::min(op.size - op.done, cancel_piece), got);
        if (status == MUSTER_E_PROTOCOL) status = broken();
        op.done += got;
        count(write_, got, context_->counters.bytes_out);
        if (status == MUSTER_OK && op.done != op.size) {
            if (got != 0) {
                if (!write_.lock.awaited()) continue;
                write_.later.fetch_or(Direction::PUMP, std::memory_order_seq_cst);
                return MUSTER_AGAIN;
            }
            watch_event_fd();
            if (!out_.park_writer(Park::FD, std::min<size_t>(op.size - op.done, out_.window() / 4))) continue;
            if (duplex_->is_ended()) continue;
            return MUSTER_AGAIN;
        }
        StreamOperation ended = std::move(op);
        write_.operations->pop_front();
        write_.waiting_operations.fetch_sub(1, std::memory_order_seq_cst);
        ended.complete(status);
    }
    write_.set_unusual(Direction::OPERATIONS, false);
    if (finish_wanted_.load(std::memory_order_seq_cst)) out_.finish();
    if (closed_.load(std::memory_order_seq_cst)) {
        carrier_closed();
        if (lingers_.exchange(0, std::memory_order_seq_cst) != 0) release(); // pump() holds another reference
    }
    return MUSTER_OK;
}

// The engine's turn (or anybody's): moves what waits on, unless somebody holds the direction; he is left a wish.
void Stream::pump() noexcept {
    const Ref<Stream> alive(this);
    if (read_.waiting_operations.load(std::memory_order_seq_cst) != 0 && try_take(read_, Direction::PUMP)) {
        pump_reads();
        give(read_);
    }
    if (write_.waiting_operations.load(std::memory_order_seq_cst) != 0 && try_take(write_, Direction::PUMP)) {
        pump_writes();
        give(write_);
    }
}

void Stream::post_pump() noexcept {
    if (pump_posted_.exchange(1, std::memory_order_seq_cst) != 0) return; // the task that comes will see our change
    struct Pump final : Task {
        Ref<Stream> stream;
        explicit Pump(Stream *s) : stream(s) {}
        void run() noexcept override {
            stream->pump_posted_.store(0, std::memory_order_seq_cst);
            stream->pump();
        }
    };
    auto task = std::unique_ptr<Task>(new (std::nothrow) Pump(this));
    if (task && context_->post(std::move(task))) return;
    // No engine any more (or no memory): move what can be moved right here.
    pump_posted_.store(0, std::memory_order_seq_cst);
    pump();
}

Status Stream::read_begin(void *data, size_t size, Queue &queue, uint64_t tag) {
    if (closed_.load(std::memory_order_seq_cst)) return MUSTER_E_CLOSED;
    Deadline endless(-1);
    const uint32_t cancels = read_.cancels.load(std::memory_order_seq_cst);
    // A thread that waits for bytes holds the direction as long as it waits; it is asked to take the new read along.
    if (read_.waiting_operations.load(std::memory_order_seq_cst) >= most_operations) return MUSTER_AGAIN;
    if (!queue.reserve()) return MUSTER_AGAIN;
    if (const Status status = take(read_, endless, cancels); status != MUSTER_OK) {
        queue.unreserve();
        return status;
    }
    if (read_.operations == nullptr) read_.operations = new std::deque<StreamOperation>;
    StreamOperation op;
    op.data = static_cast<unsigned char *>(data);
    op.size = size;
    op.queue = Ref<Queue>(&queue);
    op.tag = tag;
    op.kind = MUSTER_DONE_READ;
    read_.operations->push_back(std::move(op));
    read_.set_unusual(Direction::OPERATIONS, true);
    read_.waiting_operations.fetch_add(1, std::memory_order_seq_cst);
    pump_reads();
    give(read_);
    return MUSTER_OK;
}

Status Stream::write_owned(const void *data, size_t size, Queue &queue, uint64_t tag) {
    Deadline endless(-1);
    const uint32_t cancels = write_.cancels.load(std::memory_order_seq_cst);
    if (write_.waiting_operations.load(std::memory_order_seq_cst) >= most_operations) return MUSTER_AGAIN;
    if (!queue.reserve()) return MUSTER_AGAIN;
    StreamOperation op;
    op.data = static_cast<unsigned char *>(const_cast<void *>(data));
    op.size = size;
    op.queue = Ref<Queue>(&queue);
    op.tag = tag;
    op.kind = MUSTER_DONE_RELEASED;
    Status status = take(write_, endless, cancels);
    if (status != MUSTER_OK) { // closed or cancelled while waiting for the direction: taken, and given back
        op.complete(status);
        return status;
    }
    status = write_.lent ? MUSTER_E_BUSY : over_writing();
    wrote_since_wait_ = true;
    if (status == MUSTER_E_BUSY) {
        op.queue.reset();
        queue.unreserve();
    } else if (status != MUSTER_OK || size == 0) {
        op.complete(status);
    } else if (duplex_->shared()) {
        if (write_.operations == nullptr) write_.operations = new std::deque<StreamOperation>;
        write_.operations->push_back(std::move(op));
        write_.set_unusual(Direction::OPERATIONS, true);
        write_.waiting_operations.fetch_add(1, std::memory_order_seq_cst);
        pump_writes();
    } else {
        Owned owned{static_cast<const unsigned char *>(data), size, std::move(op.queue), tag};
        count(write_, size, context_->counters.bytes_out);
        if (!out_.push_owned(owned)) {
            owned.queue.reset();
            queue.unreserve();
            status = MUSTER_AGAIN;
        }
    }
    give(write_);
    return status;
}

// Ends what waits in a direction. Holder of the lock.
void Stream::drop_operations(Direction &d, Status status) noexcept {
    if (d.operations == nullptr) return;
    while (!d.operations->empty()) {
        StreamOperation ended = std::move(d.operations->front());
        d.operations->pop_front();
        d.waiting_operations.fetch_sub(1, std::memory_order_seq_cst);
        ended.complete(status);
    }
    d.set_unusual(Direction::OPERATIONS, false);
}

Status Stream::cancel(uint32_t directions) noexcept {
    const Ref<Stream> alive(this);
    bool in_the_middle = false;
    if (directions & MUSTER_STREAM_READ) {
        take_from_everyone(read_);
        if (!read_.lock.orphaned()) {
            drop_operations(read_, MUSTER_E_CANCELED);
            give(read_);
        }
    }
    if (directions & MUSTER_STREAM_WRITE) {
        take_from_everyone(write_);
        if (!write_.lock.orphaned()) {
            in_the_middle =
                write_.operations != nullptr && !write_.operations->empty() && write_.operations->front().done != 0;
            drop_operations(write_, MUSTER_E_CANCELED);
            if (!duplex_->shared()) in_the_middle |= out_.take_back_owned(MUSTER_E_CANCELED);
            give(write_);
        }
    }
    if (in_the_middle) return abort(0, "a buffer handed over was cancelled in the middle");
    return MUSTER_OK;
}

} // namespace muster
