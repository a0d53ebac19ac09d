// SPDX-License-Identifier: MIT
// What a link sends and what it makes of what comes in.
#include "transport/link.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace muster {

namespace {
constexpr size_t batch_bytes = 256 * 1024;
// Frames made from the pipe. Small enough that the rest of one that was cut short is cheap to keep.
constexpr size_t pipe_frame_bytes = 64 * 1024;
constexpr int most_spans = 24, most_frames = batch_bytes / pipe_frame_bytes;
} // namespace

// ---- sending; tx lock held ------------------------------------------------------------------------------------------

// One system call's worth: the rest of a begun frame, control frames, new data frames.
struct Link::Batch {
    iovec spans[2 * most_spans + 2 * most_frames];
    int count = 0;
    size_t open_part = 0;
    size_t frame_bytes[most_frames];
    unsigned char headers[most_frames][frame_header_bytes];
    int frames = 0;
    bool owned = false; // some bytes lie in a buffer of the host, which it may take back
    const iovec *pipe = nullptr;
    int pipe_count = 0;

    void add(const void *data, size_t size) noexcept { spans[count++] = {const_cast<void *>(data), size}; }
    // Copies bytes of the pipe: `left` of them, after the first `skip`.
    void copy_out(size_t skip, size_t left, unsigned char *to) const noexcept {
        for (int s = 0; s < pipe_count && left != 0; s++) {
            const auto *from = static_cast<const unsigned char *>(pipe[s].iov_base);
            const size_t at = std::min(skip, pipe[s].iov_len), take = std::min(left, pipe[s].iov_len - at);
            memcpy(to, from + at, take);
            to += take, skip -= at, left -= take;
        }
    }
};

// Control frames on their way into a system call or the spill: one of each kind at most.
struct Link::Control {
    static constexpr size_t kinds = 3; // a heartbeat, a credit, an abort; or the two that end a direction
    unsigned char bytes[kinds * (frame_header_bytes + seal_overhead_bytes) + 8 + frame_control_max];
    size_t size = 0;
    static_assert(sizeof bytes < Spill::always - 128);
};

void Link::kick() noexcept {
    if (over()) return;
    if (!wire_any_thread() && !hub_.context().on_loop()) return ask_turn();
    tx_.wish();
    while (tx_.try_lock()) {
        tx_.looked();
        pump();
        if (!tx_.unlock()) return;
    }
}

void Link::give_tx() noexcept {
    if (tx_.unlock()) kick();
}

void Link::writable() noexcept {
    kick();
}

bool Link::tx_idle() const noexcept {
    return spill_.empty() && open_left_ == 0 && !sealed_ && !shared_ && !send_broken_ && !dropped_ && !finish_sent_ &&
           !goodbye_sent_ && wants_.load(std::memory_order_seq_cst) == 0 && !over() &&
           !aborting_.load(std::memory_order_relaxed) && !peer_over_.load(std::memory_order_relaxed);
}

// What to make of the answer of wire_send().
Link::Step Link::after_send(ssize_t n) noexcept {
    if (n > 0) {
        sent_.store(true, std::memory_order_relaxed);
        return Step::sent;
    }
    if (n != -EAGAIN && n != 0) sending_broke(static_cast<int>(-n));
    return Step::stop;
}

// When the peer has closed the connection, it may have sent the reason before: that is read first, and the end is found
// there. After any other failure the connection is whole, and nothing to be read would ever report it.
void Link::sending_broke(int os_errno) noexcept {
    send_broken_ = true;
    done_sending_.store(true, std::memory_order_release);
    if (os_errno != EPIPE && os_errno != ECONNRESET)
        fail(MUSTER_E_PEER, os_errno, "the connection broke while sending");
    wire_read_soon();
    ask_turn();
}

Link::Step Link::send_spill() noexcept {
    const iovec span{spill_.data(), spill_.size()};
    const ssize_t n = wire_send(&span, 1);
    if (n > 0) spill_.took(static_cast<size_t>(n));
    if (!spill_.empty()) return after_send(n); // the next call finds out that the wire is full
    if (held_ != 0) out_.consume(std::exchange(held_, 0));
    return after_send(n);
}

void Link::add_frame(Control &control, FrameType type, const void *payload, size_t size) noexcept {
    unsigned char *const frame = control.bytes + control.size;
    put_frame_header(frame, type, sealed_ ? size + seal_overhead_bytes : size);
    memcpy(frame + frame_header_bytes + (sealed_ ? seal_lead_bytes : 0), payload, size);
    if (sealed_) sealer_->seal(frame, size);
    control.size += frame_header_bytes + size + (sealed_ ? seal_overhead_bytes : 0);
}

// The control frames that are wanted now.
void Link::add_control(Control &control) noexcept {
    if (wants_.load(std::memory_order_seq_cst) == 0 || goodbye_sent_) return;
    const uint32_t wants = wants_.exchange(0, std::memory_order_seq_cst);
    if (wants & want_heartbeat) add_frame(control, FrameType::heartbeat);
    // acq_rel: pairs with grant(); what is owed is granted once.
    const uint64_t owed = wants & want_credit ? credit_owed_.exchange(0, std::memory_order_acq_rel) : 0;
    if (owed != 0) {
        unsigned char payload[8];
        put_u64(payload, owed);
        add_frame(control, FrameType::credit, payload, sizeof payload);
    }
    if (wants & want_abort) {
        const std::lock_guard hold(abort_lock_);
        unsigned char payload[frame_control_max];
        put_u64(payload, abort_reason_);
        memcpy(payload + 8, abort_text_, abort_text_bytes_);
        add_frame(control, FrameType::abort, payload, 8 + abort_text_bytes_);
        abort_sent_ = true;
    }
}

// Frames that end this direction, once nothing is left before them. True: there is something to send.
bool Link::at_end() noexcept {
    if (goodbye_sent_) {
        if (!done_sending_.load(std::memory_order_relaxed)) {
            done_sending_.store(true, std::memory_order_release);
            wire_finish();
            if (peer_over_.load(std::memory_order_acquire)) ask_turn();
        }
        return false;
    }
    const bool aborting = aborting_.load(std::memory_order_seq_cst);
    if (aborting && !abort_sent_)
        return false; // abort() is about to ask for the frame: a goodbye alone is an end in order
    const bool given_up = aborting || peer_over_.load(std::memory_order_seq_cst);
    const bool closing = closing_.load(std::memory_order_seq_cst);
    // Looked at before the bytes: what was finished was filled before.
    const bool finished = !shared_ && (closing || out_.finished());
    const bool empty = shared_ || dropped_ || out_.readable() == 0;
    Control control;
    if (finished && empty && !finish_sent_ && !given_up) {
        finish_sent_ = true;
        add_frame(control, FrameType::finish);
    }
    if (given_up || (closing && empty)) {
        goodbye_sent_ = true;
        add_frame(control, FrameType::goodbye);
    }
    spill_.add(control.bytes, control.size);
    return control.size != 0;
}

void Link::pump() noexcept {
    for (;;) {
        if (over() || send_broken_) return;
        if (!spill_.empty()) {
            unsent_.store(true, std::memory_order_release);
            if (send_spill() == Step::stop) return;
            continue;
        }
        const bool given_up = aborting_.load(std::memory_order_seq_cst) || peer_over_.load(std::memory_order_seq_cst);
        if (given_up && !shared_ && !dropped_ && open_left_ == 0) {
            out_.drop_reader();
            dropped_ = true;
        }
        const Step step = sealed_ ? seal_batch() : send_batch();
        if (step == Step::stop) return;
        if (step == Step::sent) continue;
        unsent_.store(false, std::memory_order_seq_cst); // pairs with unsent(), asked by a flusher once he is parked
        if (!shared_) out_.sent_all();
        if (at_end()) continue;
        if (wants_.load(std::memory_order_seq_cst) != 0 && !goodbye_sent_) continue;
        if (shared_ || dropped_ || finish_sent_) return;
        if (out_.readable() != 0) { // no credit left
            starved_.store(true, std::memory_order_seq_cst);
            if (credit_.load(std::memory_order_seq_cst) == 0) return wire_read_soon();
            starved_.store(false, std::memory_order_seq_cst);
            continue;
        }
        if (out_.park_reader(Park::FD, 1)) return;
    }
}

// The next bytes are of a buffer that was given back when part of it had been sent. The host's end may be gone, so the
// link itself ends the stream; asked again the pipe would only say the same.
Link::Step Link::torn(const Control &control) noexcept {
    constexpr std::string_view text = Duplex::cancelled_in_the_middle;
    spill_.add(control.bytes, control.size); // what was taken off the wants is owed
    duplex_->end({Error::make(MUSTER_E_ABORTED, "%s", text.data()), 0, host_side_});
    abort(0, text.data(), text.size());
    return Step::sent;
}

Link::Step Link::send_batch() noexcept {
    Batch batch;
    iovec pipe[most_spans];
    Control control;
    size_t limit = 0;
    if (!shared_ && !dropped_) {
        const bool given_up = aborting_.load(std::memory_order_relaxed) || peer_over_.load(std::memory_order_relaxed);
        const bool new_frames = !goodbye_sent_ && !given_up;
        limit = open_left_;
        // Control frames go between data frames: they get a gap soon. acquire: pairs with on_credit().
        if (new_frames && (open_left_ == 0 || wants_.load(std::memory_order_relaxed) == 0))
            limit += static_cast<size_t>(std::min<uint64_t>(credit_.load(std::memory_order_acquire), batch_bytes));
    }
    if (open_left_ == 0) add_control(control);
    int count = 0;
    if (limit != 0 && out_.gather(pipe, most_spans, limit, count) < 0) return torn(control);
    size_t bytes = 0;
    for (int i = 0; i < count; i++) bytes += pipe[i].iov_len;
    batch.owned = count != 0 && out_.shows_owned();
    batch.open_part = std::min(open_left_, bytes);
    int span = 0;
    size_t offset = 0;
    const auto put = [&](size_t size) { // the next bytes of the pipe
        while (size != 0) {
            const size_t k = std::min(size, pipe[span].iov_len - offset);
            batch.add(static_cast<unsigned char *>(pipe[span].iov_base) + offset, k);
            size -= k, offset += k;
            if (offset == pipe[span].iov_len) span++, offset = 0;
        }
    };
    put(batch.open_part);
    if (control.size != 0) batch.add(control.bytes, control.size);
    size_t left = batch.open_part == open_left_ ? bytes - batch.open_part : 0;
    // relaxed: lowered here alone, and before the peer can answer with a grant.
    credit_.fetch_sub(left, std::memory_order_relaxed);
    while (left != 0) {
        const size_t k = std::min(left, pipe_frame_bytes);
        put_frame_header(batch.headers[batch.frames], FrameType::data, k);
        batch.add(batch.headers[batch.frames], frame_header_bytes);
        batch.frame_bytes[batch.frames++] = k;
        put(k);
        left -= k;
    }
    if (batch.count == 0) return Step::nothing;
    batch.pipe = pipe;
    batch.pipe_count = count;
    unsent_.store(true, std::memory_order_release);
    const ssize_t n = wire_send(batch.spans, batch.count);
    account(batch, n > 0 ? static_cast<size_t>(n) : 0, control);
    return after_send(n);
}

// Takes what was sent out of the pipe, and keeps what a cut in the middle leaves.
void Link::account(const Batch &batch, size_t sent, const Control &control) noexcept {
    size_t consumed = std::min(batch.open_part, sent);
    sent -= consumed;
    open_left_ -= consumed;
    const size_t k = std::min(control.size, sent);
    sent -= k;
    spill_.add(control.bytes + k, control.size - k);
    size_t position = batch.open_part; // in the bytes gathered
    uint64_t not_begun = 0;
    for (int i = 0; i < batch.frames; i++) {
        const size_t length = batch.frame_bytes[i];
        if (sent == 0) {
            not_begun += length;
            continue;
        }
        const size_t head = std::min(sent, frame_header_bytes);
        const size_t done = std::min(sent - head, length);
        sent -= head + done;
        consumed += done;
        spill_.add(batch.headers[i] + head, frame_header_bytes - head);
        const size_t rest = length - done;
        if (rest != 0 && !batch.owned) open_left_ = rest;
        if (rest != 0 && batch.owned) { // the host may take its buffer back: the rest of this frame must be ours
            if (spill_.room(rest) < rest) {
                fail(MUSTER_E_PEER, 0, "no memory for what goes out");
                break;
            }
            batch.copy_out(position + done, rest, spill_.add(rest));
            consumed += rest - 1;
            held_ = 1;
        }
        position += length;
    }
    credit_.fetch_add(not_begun, std::memory_order_relaxed);
    if (batch.pipe_count != 0) out_.consume(consumed);
}

// Seals what is to be sent next into the spill: as much as there is memory for.
Link::Step Link::seal_batch() noexcept {
    Control control;
    add_control(control);
    uint64_t limit = 0;
    if (!shared_ && !dropped_ && !goodbye_sent_ && !aborting_.load(std::memory_order_relaxed) &&
        !peer_over_.load(std::memory_order_relaxed))
        limit = std::min<uint64_t>(credit_.load(std::memory_order_acquire), pipe_frame_bytes);
    iovec pipe[most_spans];
    int count = 0;
    if (limit != 0 && out_.gather(pipe, most_spans, static_cast<size_t>(limit), count) < 0) return torn(control);
    if (control.size == 0 && count == 0) return Step::nothing;
    spill_.add(control.bytes, control.size);
    if (count == 0) return Step::sent;
    size_t bytes = 0;
    for (int i = 0; i < count; i++) bytes += pipe[i].iov_len;
    constexpr size_t around = frame_header_bytes + seal_overhead_bytes;
    bytes = std::min(bytes, spill_.room(around + bytes) - around);
    unsigned char *const frame = spill_.add(around + bytes);
    put_frame_header(frame, FrameType::data, bytes + seal_overhead_bytes);
    unsigned char *to = frame + frame_header_bytes + seal_lead_bytes;
    for (size_t i = 0, left = bytes; left != 0; i++) {
        const size_t k = std::min(left, pipe[i].iov_len);
        memcpy(to, pipe[i].iov_base, k);
        to += k, left -= k;
    }
    out_.consume(bytes - 1);
    held_ = 1;
    sealer_->seal(frame, bytes);
    credit_.fetch_sub(bytes, std::memory_order_relaxed);
    return Step::sent;
}

// ---- receiving; rx lock held ----------------------------------------------------------------------------------------

void Link::deliver(const unsigned char *data, size_t size) noexcept {
    if (over()) return;
    heard();
    if (!rx_.try_lock()) return; // it is being ended
    const Status status = reader_.feed(data, size, *this);
    if (status < 0) fail_reading(status);
    rx_.unlock();
}

Status Link::count_in(size_t size) noexcept {
    // relaxed: written under the rx lock alone.
    const uint64_t all = received_.load(std::memory_order_relaxed) + size;
    received_.store(all, std::memory_order_relaxed);
    // acquire: pairs with grant(). The peer learned of a grant after it was made.
    return shared_ || all > granted_.load(std::memory_order_acquire) ? MUSTER_E_LIMIT : MUSTER_OK;
}

Status Link::on_data(const unsigned char *data, size_t size) noexcept {
    if (count_in(size) < 0) return reader_.complain("more data than was allowed for");
    if (in_.reader_gone()) return MUSTER_OK; // the host has closed: nobody wants it
    size_t moved = 0;
    if (in_.push(data, size, moved) < 0 || moved != size) return MUSTER_E_NOMEM;
    return MUSTER_OK;
}

Status Link::on_credit(uint64_t bytes) noexcept {
    const uint64_t before = credit_.load(std::memory_order_relaxed);
    if (bytes == 0 || bytes > credit_most_ || before > credit_most_ - bytes)
        return reader_.complain("more credit than its window");
    credit_.fetch_add(bytes, std::memory_order_seq_cst); // pairs with pump(): it says starved, then looks at the credit
    if (starved_.exchange(false, std::memory_order_seq_cst)) kick();
    return MUSTER_OK;
}

Status Link::on_finish() noexcept {
    if (!shared_) in_.finish();
    return MUSTER_OK;
}

Status Link::on_abort(uint64_t reason, const char *text, size_t text_bytes) noexcept {
    char printable[frame_control_max];
    if (text_bytes != 0) memcpy(printable, text, text_bytes);
    make_printable(printable, text_bytes);
    const Error why = Error::make(MUSTER_E_ABORTED, "aborted by the peer%s%.*s", text_bytes == 0 ? "" : ": ",
                                  static_cast<int>(text_bytes), printable);
    peer_over_.store(true, std::memory_order_seq_cst);
    duplex_->end({why, reason});
    ask_turn();
    return MUSTER_OK;
}

Status Link::on_goodbye() noexcept {
    // After an abort there is no orderly end.
    if (!peer_over_.exchange(true, std::memory_order_seq_cst) && !shared_) in_.finish();
    duplex_->end(Error::make(MUSTER_E_PEER, "the peer has closed the stream"));
    ask_turn();
    return MUSTER_OK;
}

// ---- credit ---------------------------------------------------------------------------------------------------------

// The host has taken bytes in all: the peer may send as many more. Called by the reading host.
void Link::grant(uint64_t consumed) noexcept {
    const uint64_t granted = granted_.load(std::memory_order_relaxed);
    const uint64_t more = consumed + window_ - granted;
    if (more < window_ / 4) return;
    granted_.store(granted + more, std::memory_order_release); // before the peer can learn of it; pairs with count_in()
    credit_owed_.fetch_add(more, std::memory_order_acq_rel);
    wants_.fetch_or(want_credit, std::memory_order_seq_cst);
    kick();
}

void Link::taken() noexcept {
    if (shared_ || over()) return;
    // relaxed: the reading host is the only one who writes it.
    grant(direct_.load(std::memory_order_relaxed) + in_.taken());
}

} // namespace muster
