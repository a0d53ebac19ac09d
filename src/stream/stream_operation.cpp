// SPDX-License-Identifier: MIT
// Operations with a completion: reads begun by the host, and (over shared memory) buffers handed over. Whoever holds
// the direction moves them on: the submitter at once, a thread that waits in the same direction, or the engine.
#include "stream/stream.hpp"

#include <algorithm>
#include <utility>

namespace muster {

namespace {
constexpr size_t max_operations = 64;
constexpr size_t operation_piece = 256 * 1024; // the maximum that muster_stream_cancel() may have to wait for
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

// ---- moving them on ------------------------------------------------------------------------------------------------

// In order. OK: none is left. AGAIN: the first one waits, and is parked, or another thread needs the direction for a
// moment. `step` moves a piece; true: the operation is over, with this status. Holder of the lock.
template <class StepFn>
Status Stream::pump_operations(Direction &d, StepFn &&step) noexcept {
    d.lock.settle();
    for (;;) {
        StreamOperation over;
        Status status = MUSTER_OK;
        {
            const std::lock_guard guard(operations_lock_);
            if (d.operations->empty()) {
                d.set_unusual(Direction::OPERATIONS, false);
                return MUSTER_OK;
            }
            StreamOperation &first = d.operations->front();
            if (!step(first, status)) {
                if (status != MUSTER_OK) return status;
                if (!d.lock.awaited()) continue;
                d.later.fetch_or(Direction::PUMP, std::memory_order_seq_cst); // after that thread
                return MUSTER_AGAIN;
            }
            over = std::move(first);
            d.operations->pop_front();
            d.waiting_operations.fetch_sub(1, std::memory_order_seq_cst);
        }
        over.complete(status);
    }
}

bool Stream::step_read(StreamOperation &op, Status &status) noexcept {
    const bool finished = in_.finished();
    const Status over = over_reading();
    size_t got = 0;
    status =
        over == MUSTER_E_CLOSED ? over : in_.pull(op.data + op.done, std::min(op.size - op.done, operation_piece), got);
    if (status == MUSTER_E_PROTOCOL) status = broken();
    if (status == MUSTER_E_ABORTED && duplex_->is_ended()) status = duplex_->ended_status();
    op.done += got;
    count(read_, got, context_->counters.bytes_in);
    if (status != MUSTER_OK || op.done == op.size) return true;
    if (got != 0) return false;
    if (finished || over < 0) {
        status = finished ? MUSTER_E_END : over;
        return true;
    }
    if (carrier_ && !duplex_->shared()) in_.publish_tail(), carrier_->taken(), carrier_->engage();
    if (duplex_->shared()) watch_event_fd();
    if (!in_.park_reader(Park::FD, std::clamp<size_t>(op.size - op.done, 1, piece()))) return false;
    if (!duplex_->is_ended() && closed_.load(std::memory_order_seq_cst) == 0) status = MUSTER_AGAIN;
    return false;
}

// Copies a handed-over buffer into the ring of a shared-memory stream.
bool Stream::step_write(StreamOperation &op, Status &status) noexcept {
    status = duplex_->ended_status();
    if (status == MUSTER_OK && torn_.load(std::memory_order_seq_cst)) status = MUSTER_E_ABORTED;
    if (status == MUSTER_OK && out_.reader_gone()) status = MUSTER_E_PEER;
    size_t got = 0;
    if (status == MUSTER_OK) status = out_.push(op.data + op.done, std::min(op.size - op.done, operation_piece), got);
    if (status == MUSTER_E_PROTOCOL) status = broken();
    op.done += got;
    count(write_, got, context_->counters.bytes_out);
    if (status != MUSTER_OK || op.done == op.size) return true;
    if (got != 0) return false;
    watch_event_fd();
    if (!out_.park_writer(Park::FD, std::min<size_t>(op.size - op.done, out_.window() / 4))) return false;
    if (!duplex_->is_ended()) status = MUSTER_AGAIN;
    return false;
}

// The last operation leaves the parking place, which a watch that is armed needs, too.
Status Stream::pump_reads() noexcept {
    const Status status =
        pump_operations(read_, [this](StreamOperation &op, Status &status) { return step_read(op, status); });
    if (status == MUSTER_OK) rearm(MUSTER_STREAM_READABLE);
    return status;
}

Status Stream::pump_writes() noexcept {
    const Status status =
        pump_operations(write_, [this](StreamOperation &op, Status &status) { return step_write(op, status); });
    if (status != MUSTER_OK) return status;
    rearm(MUSTER_STREAM_WRITABLE);
    if (finish_wanted_.load(std::memory_order_seq_cst)) finish_pipe();
    operations_done();
    return MUSTER_OK;
}

// The last handed-over buffer was sent or taken back: a stream that was kept only for them is released.
void Stream::operations_done() noexcept {
    if (write_.waiting_operations.load(std::memory_order_seq_cst) != 0) return;
    if (closed_.load(std::memory_order_seq_cst) == 0) return;
    carrier_closed();
    if (lingers_.exchange(0, std::memory_order_seq_cst) != 0) release(); // callers hold another reference
}

// A turn of the engine (or of any thread): moves waiting operations, unless another thread holds the direction, which
// then gets a recheck request.
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

// ---- submitting them -----------------------------------------------------------------------------------------------

// The queue's close() is to end operations of this stream. False: it is closed. Queues without an operation are
// forgotten.
bool Stream::enlist(Queue &queue) {
    const std::lock_guard guard(at_queues_lock_);
    for (const auto &at : at_queues_)
        if (&at->queue() == &queue) return !queue.closed();
    for (auto it = at_queues_.begin(); it != at_queues_.end();) {
        Queue &other = (*it)->queue();
        if (has_operations(other)) {
            ++it;
        } else {
            other.delist(**it);
            it = at_queues_.erase(it);
        }
    }
    at_queues_.push_back(std::make_unique<StreamAtQueue>(*this, queue));
    if (queue.enlist(*at_queues_.back())) return true;
    at_queues_.pop_back();
    return false;
}

bool Stream::has_operations(const Queue &queue) noexcept {
    const std::lock_guard guard(operations_lock_);
    for (const Direction *d : {&read_, &write_})
        if (d->operations != nullptr)
            for (const StreamOperation &op : *d->operations)
                if (op.queue.get() == &queue) return true;
    return !duplex_->shared() && out_.holds_owned_of(queue);
}

// Holder of the lock.
bool Stream::add_operation(Direction &d, StreamOperation &&op) noexcept {
    try {
        const std::lock_guard guard(operations_lock_);
        if (d.operations == nullptr) d.operations = new std::deque<StreamOperation>;
        d.operations->push_back(std::move(op));
        d.set_unusual(Direction::OPERATIONS, true);
        d.waiting_operations.fetch_add(1, std::memory_order_seq_cst);
        return true;
    } catch (const std::bad_alloc &) {
        return false;
    }
}

Status Stream::read_begin(void *data, size_t size, Queue &queue, uint64_t tag) {
    const Ref<Stream> alive(this);
    if (closed_.load(std::memory_order_seq_cst)) return MUSTER_E_CLOSED;
    const uint32_t cancels = read_.cancels.load(std::memory_order_seq_cst);
    if (read_.waiting_operations.load(std::memory_order_seq_cst) >= max_operations) return MUSTER_AGAIN;
    if (!enlist(queue)) return MUSTER_E_CLOSED;
    if (!queue.reserve()) return queue.closed() ? MUSTER_E_CLOSED : MUSTER_AGAIN;
    Status status = take_shortly(read_, cancels);
    if (status == MUSTER_OK) {
        StreamOperation op;
        op.data = static_cast<unsigned char *>(data);
        op.size = size;
        op.queue = Ref<Queue>(&queue);
        op.tag = tag;
        op.kind = MUSTER_DONE_READ;
        if (read_.lent.load(std::memory_order_relaxed))
            status = MUSTER_E_BUSY;
        else if (!add_operation(read_, std::move(op)))
            status = MUSTER_E_NOMEM;
        else
            pump_reads();
        give(read_);
    }
    if (status != MUSTER_OK) queue.unreserve();
    // The queue may have been closed before it could see this one.
    else if (queue.closed())
        end_operations(queue);
    return status;
}

Status Stream::write_owned(const void *data, size_t size, Queue &queue, uint64_t tag, Ref<SharedPiece> shared) {
    const Ref<Stream> alive(this);
    const uint32_t cancels = write_.cancels.load(std::memory_order_seq_cst);
    if (write_.waiting_operations.load(std::memory_order_seq_cst) >= max_operations) return MUSTER_AGAIN;
    if (!enlist(queue)) return MUSTER_E_CLOSED;
    if (!queue.reserve()) return queue.closed() ? MUSTER_E_CLOSED : MUSTER_AGAIN;
    StreamOperation op;
    op.data = static_cast<unsigned char *>(const_cast<void *>(data));
    op.size = size;
    op.queue = Ref<Queue>(&queue);
    op.tag = tag;
    op.kind = MUSTER_DONE_RELEASED;
    Status status = take_shortly(write_, cancels);
    bool taken = status < 0 && status != MUSTER_E_WOULD_DEADLOCK; // closed or cancelled meanwhile: taken back at once
    if (status == MUSTER_OK) {
        wrote_since_wait_.store(true, std::memory_order_relaxed);
        status = write_.lent.load(std::memory_order_relaxed) ? MUSTER_E_BUSY : over_writing();
        if (status != MUSTER_OK || size == 0) {
            taken = status != MUSTER_E_BUSY;
        } else if (duplex_->shared()) {
            // `taken` is false, so `op` is not used any more.
            status =
                add_operation(write_, std::move(op)) ? MUSTER_OK : MUSTER_E_NOMEM; // NOLINT(bugprone-use-after-move)
            if (status == MUSTER_OK) pump_writes();
        } else {
            Owned owned{static_cast<const unsigned char *>(data), size, op.queue, tag, std::move(shared)};
            status = out_.push_owned(owned);
            if (status == MUSTER_OK) {
                op.queue.reset();
                count(write_, size, context_->counters.bytes_out);
                // It may have ended before it could see this buffer.
                if (duplex_->is_ended()) out_.take_back_owned(duplex_->ended_status());
            }
        }
        give(write_);
    }
    if (taken)
        op.complete(status); // NOLINT(bugprone-use-after-move): not taken where it was moved
    else if (status != MUSTER_OK)
        queue.unreserve();
    else if (queue.closed())
        end_operations(queue);
    // seq_cst: pairs with host_release(), which sets it and then leaves the buffers that it finds; one of the two sees
    // this one.
    else if (!duplex_->shared() && released_.load(std::memory_order_seq_cst) != 0)
        duplex_->keep_owned(side_, queue);
    return status;
}

// ---- ending them ---------------------------------------------------------------------------------------------------

// Takes back the waiting operations of a direction (for one queue, with one tag; NULL: for all). Any thread. `begun`:
// one had moved a part.
Stream::Dropped Stream::drop_operations(Direction &d, Status status, const Queue *queue, const uint64_t *tag) noexcept {
    Dropped dropped;
    for (;;) {
        StreamOperation over;
        {
            const std::lock_guard guard(operations_lock_);
            if (d.operations == nullptr) return dropped;
            const auto is_meant = [&](const StreamOperation &op) {
                return (queue == nullptr || op.queue.get() == queue) && (tag == nullptr || op.tag == *tag);
            };
            const auto it = std::find_if(d.operations->begin(), d.operations->end(), is_meant);
            if (it == d.operations->end()) {
                if (d.operations->empty()) d.set_unusual(Direction::OPERATIONS, false);
                return dropped;
            }
            over = std::move(*it);
            d.operations->erase(it);
            if (&d == &write_ && over.done != 0) { // before the next operation can proceed
                d.set_unusual(Direction::OVER, true);
                torn_.store(true, std::memory_order_seq_cst);
            }
            d.waiting_operations.fetch_sub(1, std::memory_order_seq_cst);
        }
        dropped.any = true;
        dropped.begun |= over.done != 0;
        over.complete(status);
    }
}

// The queue is closing, or those with this tag are cancelled: their buffers are the host's again when this returns.
bool Stream::end_operations(const Queue &queue, const uint64_t *tag) noexcept {
    const Dropped read = drop_operations(read_, MUSTER_E_CANCELED, &queue, tag);
    Dropped written = drop_operations(write_, MUSTER_E_CANCELED, &queue, tag);
    if (!duplex_->shared()) {
        const Pipe::TakenBack owned = out_.take_back_owned(MUSTER_E_CANCELED, &queue, tag);
        written.any |= owned.any;
        written.begun |= owned.begun;
    }
    if (written.begun) abort_torn();
    if (write_.waiting_operations.load(std::memory_order_seq_cst) == 0) {
        if (finish_wanted_.load(std::memory_order_seq_cst)) want_finish();
        operations_done();
    }
    return read.any || written.any;
}

bool StreamAtQueue::cancel_operation(uint64_t tag) noexcept {
    return stream_.end_operations(*queue_, &tag);
}

// The host releases the stream while handed-over buffers are in transit: those of a private duplex stay there.
void Stream::leave_owned() noexcept {
    if (duplex_->shared()) return; // they keep the stream
    const std::lock_guard guard(at_queues_lock_);
    for (const auto &at : at_queues_)
        if (out_.holds_owned_of(at->queue())) duplex_->keep_owned(side_, at->queue());
}

// A buffer was taken back when a part of it was in transit: both sides see the stream aborted, also one that this side
// has closed before.
void Stream::abort_torn() noexcept {
    const std::string_view text = Duplex::cancelled_in_the_middle;
    duplex_->end({Error::make(MUSTER_E_ABORTED, "%s", Duplex::cancelled_in_the_middle), 0, side_});
    if (carrier_) carrier_->abort(0, text.data(), text.size());
}

void StreamAtQueue::end_operations() noexcept {
    stream_.end_operations(*queue_);
}

Object &StreamAtQueue::owner() noexcept {
    return stream_;
}

Status Stream::cancel(uint32_t directions) noexcept {
    const Ref<Stream> alive(this);
    bool in_the_middle = false;
    if (directions & MUSTER_STREAM_READ) {
        const bool held = take_from_everyone(read_);
        drop_operations(read_, MUSTER_E_CANCELED);
        if (held) give(read_);
    }
    if (directions & MUSTER_STREAM_WRITE) {
        const bool held = take_from_everyone(write_);
        in_the_middle = drop_operations(write_, MUSTER_E_CANCELED).begun;
        if (!duplex_->shared()) in_the_middle |= out_.take_back_owned(MUSTER_E_CANCELED).begun;
        if (held) give(write_);
    }
    if (in_the_middle) abort_torn();
    return MUSTER_OK;
}

} // namespace muster
