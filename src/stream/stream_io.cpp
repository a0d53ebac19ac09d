// SPDX-License-Identifier: MIT
// Moving bytes: read, write, reserve and commit, peek and consume, flush.
#include "stream/copy.hpp"
#include "stream/stream.hpp"

#include <algorithm>
#include <cstring>

namespace muster {

namespace {
constexpr size_t cancel_piece = 256 * 1024; // the maximum that muster_stream_cancel() may have to wait for

} // namespace

// The peer, through shared memory or a socket, has violated the protocol.
Status Stream::broken() noexcept {
    duplex_->end(Error::make(MUSTER_E_PEER, "impossible positions in shared memory"));
    return MUSTER_E_PEER;
}

// Why nothing more can be read, once the pipe is empty; OK if it can.
Status Stream::over_reading() noexcept {
    if (closed_.load(std::memory_order_seq_cst)) return MUSTER_E_CLOSED;
    return duplex_->ended_status();
}

Status Stream::over_writing() noexcept {
    if (closed_.load(std::memory_order_seq_cst) || finish_wanted_.load(std::memory_order_seq_cst))
        return MUSTER_E_CLOSED;
    if (const Status status = duplex_->ended_status(); status != MUSTER_OK) return status;
    if (torn_.load(std::memory_order_seq_cst)) return MUSTER_E_ABORTED;
    if (out_.reader_gone()) return MUSTER_E_PEER;
    return MUSTER_OK;
}

Status Stream::read(void *data, size_t min, size_t capacity, Deadline &deadline, size_t &moved, bool arms,
                    size_t whole) noexcept {
    moved = 0;
    const uint32_t cancels = read_.cancels.load(std::memory_order_seq_cst);
    if (const Status status = take(read_, deadline, cancels); status != MUSTER_OK) return status;
    if (capacity > DirectionLock::longest) read_.lock.settle();
    auto *to = static_cast<unsigned char *>(data);
    const bool past_cache = goes_past_cache(data, min, whole);
    const size_t most = carrier_drives_ && capacity > cancel_piece / 16
                            ? std::min(cancel_piece, carrier_->copies_at_once())
                            : cancel_piece;
    const Asks interrupt([&] { return interrupted(read_, cancels); });
    Status status = MUSTER_OK;
    if (read_.lent.load(std::memory_order_relaxed)) status = MUSTER_E_BUSY;
    while (status == MUSTER_OK) {
        if (read_.waiting_operations.load(std::memory_order_seq_cst) != 0) status = pump_reads(); // they come first
        const bool finished = in_.finished();
        const Status over = over_reading();
        if (over == MUSTER_E_CLOSED || (over < 0 && duplex_->aborted_by(side_))) {
            status = over;
            break;
        }
        if (status == MUSTER_OK) {
            if (in_.is_contended() && !deadline.look_once() && !wrote_since_wait_.load(std::memory_order_relaxed))
                let_bytes_gather();
            size_t got = 0;
            status = in_.pull(to + moved, std::min(capacity - moved, most), got, past_cache);
            moved += got;
            if (status == MUSTER_E_PROTOCOL) status = broken();
            if (status == MUSTER_E_ABORTED && duplex_->is_ended()) status = duplex_->ended_status();
            if (status < 0 || moved >= min) break;
            if (got != 0) {
                if (read_.cancels.load(std::memory_order_seq_cst) != cancels) status = MUSTER_E_CANCELED;
                if (most < cancel_piece) drive_between_pieces();
                continue;
            }
        } else {
            status = MUSTER_OK; // operations begun earlier are still hungry
        }
        if (finished) {
            status = MUSTER_E_END;
            break;
        }
        if (over < 0) {
            status = over;
            break;
        }
        if (read_.cancels.load(std::memory_order_seq_cst) != cancels) {
            status = MUSTER_E_CANCELED;
            break;
        }
        if (carrier_ && !duplex_->shared() && read_.waiting_operations.load(std::memory_order_relaxed) == 0) {
            in_.publish_tail();
            carrier_->taken();
            read_.lock.settle();
            // An external context is driven by the waiting thread: only check, and wait inside the engine; or the
            // carrier itself drives it for a while.
            Deadline look(0);
            const bool inside = !deadline.look_once() && (!context_->external() || carrier_drives_);
            const bool spin = wrote_since_wait_.load(std::memory_order_relaxed);
            wrote_since_wait_.store(false, std::memory_order_relaxed);
            read_.asleep.store(inside, std::memory_order_relaxed);
            const Carrier::Moved got =
                carrier_->receive(to + moved, capacity - moved, inside ? deadline : look, interrupt, spin);
            read_.asleep.store(false, std::memory_order_relaxed);
            moved += got.bytes;
            if (moved >= min) break;
            if (got.status == MUSTER_OK) {
                if (inside && got.bytes == 0 && deadline.passed()) {
                    status = MUSTER_TIMEOUT;
                    break;
                }
                if (inside || got.bytes != 0) continue;
            }
            if (got.status == MUSTER_TIMEOUT && inside) {
                status = MUSTER_TIMEOUT;
                break;
            }
            if (in_.readable() != 0 || in_.finished() || duplex_->is_ended()) continue;
            if (context_->external() && !deadline.look_once()) carrier_->engage();
        }
        if (deadline.look_once()) {
            if (!arms || arm(MUSTER_STREAM_READABLE)) status = MUSTER_AGAIN;
            continue;
        }
        if (deadline.passed()) {
            status = MUSTER_TIMEOUT;
            break;
        }
        // Another thread receives at this moment, or the loop does. A queue that watches the socket receives a few
        // bytes only and leaves the rest to this thread.
        const bool any = carrier_ && !duplex_->shared() && interest_.load(std::memory_order_relaxed) != 0;
        status = await_bytes(any ? 1 : std::clamp<size_t>(min - moved, 1, piece()), deadline, cancels);
        if (status == MUSTER_TIMEOUT) status = MUSTER_OK; // check a last time
    }
    if (moved != 0) {
        count(read_, moved, context_->counters.bytes_in);
        if (carrier_ && !duplex_->shared() && in_.taken() - taken_told_ >= in_.window() / 4) {
            taken_told_ = in_.taken();
            in_.publish_tail();
            carrier_->taken();
        }
    }
    give(read_);
    return moved >= min && status >= 0 ? MUSTER_OK : status;
}

Status Stream::write(const void *data, size_t size, Deadline &deadline, size_t &moved) noexcept {
    moved = 0;
    const uint32_t cancels = write_.cancels.load(std::memory_order_seq_cst);
    if (const Status status = take(write_, deadline, cancels); status != MUSTER_OK) return status;
    if (size > DirectionLock::longest) write_.lock.settle();
    const auto *from = static_cast<const unsigned char *>(data);
    const Asks interrupt(
        [&] { return interrupted(write_, cancels) || finish_wanted_.load(std::memory_order_seq_cst) != 0; });
    Status status = write_.lent.load(std::memory_order_relaxed) ? MUSTER_E_BUSY : MUSTER_OK;
    wrote_since_wait_.store(true, std::memory_order_relaxed);
    while (status == MUSTER_OK) {
        if ((status = over_writing()) != MUSTER_OK) break;
        if (moved == size) break;
        if (write_.waiting_operations.load(std::memory_order_seq_cst) != 0) status = pump_writes(); // they come first
        if (status == MUSTER_OK) {
            if (carrier_ && !duplex_->shared() && out_.drained()) {
                const bool inside = !deadline.look_once() && (!context_->external() || carrier_drives_);
                write_.lock.settle();
                write_.asleep.store(inside, std::memory_order_relaxed);
                const Carrier::Moved sent = inside ? carrier_->send(from + moved, size - moved, deadline, interrupt)
                                                   : carrier_->send_now(from + moved, size - moved);
                write_.asleep.store(false, std::memory_order_relaxed);
                moved += sent.bytes;
                if (moved == size) break;
                if (inside && sent.status == MUSTER_OK) {
                    if (deadline.passed())
                        status = MUSTER_TIMEOUT;
                    else if (write_.cancels.load(std::memory_order_seq_cst) != cancels)
                        status = MUSTER_E_CANCELED;
                    continue;
                }
            }
            size_t got = 0;
            status = out_.push(from + moved, std::min(size - moved, cancel_piece), got);
            moved += got;
            if (status == MUSTER_E_PROTOCOL) status = broken();
            if (moved == size || status < 0) break;
            if (got == cancel_piece && write_.cancels.load(std::memory_order_seq_cst) == cancels) continue;
        } else if (status > 0) {
            status = MUSTER_OK;
        }
        if (write_.cancels.load(std::memory_order_seq_cst) != cancels) {
            status = MUSTER_E_CANCELED;
            break;
        }
        if (deadline.look_once()) {
            if (arm(MUSTER_STREAM_WRITABLE)) status = MUSTER_AGAIN;
            continue;
        }
        if (deadline.passed()) {
            status = MUSTER_TIMEOUT;
            break;
        }
        status = await_room(std::min<size_t>(size - moved, out_.window() / 4), deadline, cancels);
        if (status == MUSTER_TIMEOUT) status = MUSTER_OK;
    }
    count(write_, moved, context_->counters.bytes_out);
    give(write_);
    return status;
}

Status Stream::reserve(size_t min, Deadline &deadline, void *&data, size_t &size) {
    if (min == 0 || min > out_.window() / 4) return MUSTER_E_ARG;
    const uint32_t cancels = write_.cancels.load(std::memory_order_seq_cst);
    if (const Status status = take(write_, deadline, cancels); status != MUSTER_OK) return status;
    Status status = write_.lent.load(std::memory_order_relaxed) ? MUSTER_E_BUSY : MUSTER_OK;
    while (status == MUSTER_OK) {
        if ((status = over_writing()) != MUSTER_OK) break;
        if (write_.waiting_operations.load(std::memory_order_seq_cst) != 0) status = pump_writes();
        if (status == MUSTER_OK) {
            unsigned char *room = nullptr;
            status = out_.reserve(min, room, size);
            if (status == MUSTER_E_PROTOCOL) status = broken();
            if (status == MUSTER_OK) {
                if (size < min) { // the room crosses the edge of the ring: fill a copy, commit() writes it
                    try {
                        bounce_.resize(min);
                    } catch (const std::bad_alloc &) {
                        status = MUSTER_E_NOMEM;
                        break;
                    }
                    room = reinterpret_cast<unsigned char *>(bounce_.data());
                    size = min;
                }
                data = room;
                write_.lent.store(true, std::memory_order_relaxed);
                write_.set_unusual(Direction::LENT, true);
                write_.lent_bytes = size;
                break;
            }
        }
        if (status < 0) break;
        status = MUSTER_OK;
        if (write_.cancels.load(std::memory_order_seq_cst) != cancels)
            status = MUSTER_E_CANCELED;
        else if (deadline.look_once())
            status = arm(MUSTER_STREAM_WRITABLE, min) ? MUSTER_AGAIN : MUSTER_OK;
        else if (deadline.passed())
            status = MUSTER_TIMEOUT;
        else if ((status = await_room(min, deadline, cancels)) == MUSTER_TIMEOUT)
            status = MUSTER_OK;
    }
    give(write_);
    return status;
}

Status Stream::commit(size_t size) noexcept {
    if (const Status status = take_back(write_); status != MUSTER_OK) return status;
    Status status = MUSTER_OK;
    if (!write_.lent.load(std::memory_order_relaxed) || size > write_.lent_bytes) {
        status = MUSTER_E_ARG;
    } else {
        write_.lent.store(false, std::memory_order_relaxed);
        write_.set_unusual(Direction::LENT, false);
        wrote_since_wait_.store(true, std::memory_order_relaxed);
        status = over_writing();
        if (status != MUSTER_OK) {
            // no more bytes are sent
        } else if (!bounce_.empty()) {
            size_t moved = 0;
            // reserve() made sure of the room, and nothing was written since.
            status = out_.push(bounce_.data(), size, moved);
            if (status == MUSTER_E_PROTOCOL) status = broken();
        } else {
            out_.commit(size);
        }
        bounce_.clear();
        if (status == MUSTER_OK) count(write_, size, context_->counters.bytes_out);
    }
    give(write_);
    return status;
}

Status Stream::flush(Deadline &deadline) noexcept {
    const uint32_t cancels = write_.cancels.load(std::memory_order_seq_cst);
    if (const Status status = take(write_, deadline, cancels); status != MUSTER_OK) return status;
    Status status = MUSTER_OK;
    while (status == MUSTER_OK) {
        if ((status = duplex_->ended_status()) != MUSTER_OK) break;
        if (write_.waiting_operations.load(std::memory_order_seq_cst) != 0) status = pump_writes();
        // The peer can read what is in the pipe; only a carrier has to send it.
        if (status == MUSTER_OK && (!carrier_ || duplex_->shared() || carrier_->flush())) break;
        if (status < 0) break;
        if (write_.cancels.load(std::memory_order_seq_cst) != cancels)
            status = MUSTER_E_CANCELED;
        else if (deadline.look_once())
            status = MUSTER_AGAIN;
        else if (deadline.passed())
            status = MUSTER_TIMEOUT;
        else if ((status = await_flush(false, deadline, cancels)) == MUSTER_TIMEOUT)
            status = MUSTER_OK;
    }
    give(write_);
    return status;
}

Status Stream::peek(size_t min, Deadline &deadline, const void *&data, size_t &size) {
    size = 0;
    if (min == 0 || min > in_.window() / 4) return MUSTER_E_ARG;
    const uint32_t cancels = read_.cancels.load(std::memory_order_seq_cst);
    if (const Status status = take(read_, deadline, cancels); status != MUSTER_OK) return status;
    Status status = read_.lent.load(std::memory_order_relaxed) ? MUSTER_E_BUSY : MUSTER_OK;
    while (status == MUSTER_OK) {
        size_t more = min; // bytes in the pipe that would do
        if (read_.waiting_operations.load(std::memory_order_seq_cst) != 0) status = pump_reads();
        const bool finished = in_.finished();
        const Status over = over_reading();
        if (over == MUSTER_E_CLOSED || (over < 0 && duplex_->aborted_by(side_))) {
            status = over;
            break;
        }
        if (status == MUSTER_OK) {
            const unsigned char *bytes = nullptr;
            status = in_.peek(min, bytes, size);
            more = min + in_.hidden();
            if (status == MUSTER_E_PROTOCOL) status = broken();
            if (status == MUSTER_OK) {
                data = bytes;
                read_.lent.store(true, std::memory_order_relaxed);
                read_.set_unusual(Direction::LENT, true);
                read_.lent_bytes = size;
                break;
            }
        }
        if (status < 0) break;
        status = MUSTER_OK;
        if (finished)
            status = MUSTER_E_END;
        else if (over < 0)
            status = over;
        else if (read_.cancels.load(std::memory_order_seq_cst) != cancels)
            status = MUSTER_E_CANCELED;
        if (status != MUSTER_OK) break;
        if (carrier_ && !duplex_->shared()) {
            in_.publish_tail(); // first the room, then the leave to fill it
            carrier_->taken();
            carrier_->engage();
        }
        if (deadline.look_once())
            status = arm(MUSTER_STREAM_READABLE, more) ? MUSTER_AGAIN : MUSTER_OK;
        else if (deadline.passed())
            status = MUSTER_TIMEOUT;
        else if ((status = await_peek(more, deadline, cancels)) == MUSTER_TIMEOUT)
            status = MUSTER_OK;
    }
    give(read_);
    return status;
}

Status Stream::consume(size_t size) noexcept {
    if (const Status status = take_back(read_); status != MUSTER_OK) return status;
    Status status = MUSTER_OK;
    if (!read_.lent.load(std::memory_order_relaxed) || size > read_.lent_bytes) {
        status = MUSTER_E_ARG;
    } else {
        read_.lent.store(false, std::memory_order_relaxed);
        read_.set_unusual(Direction::LENT, false);
        in_.consume(size);
        in_.publish_tail();
        count(read_, size, context_->counters.bytes_in);
        if (carrier_ && !duplex_->shared()) carrier_->taken();
    }
    give(read_);
    return status;
}

} // namespace muster
