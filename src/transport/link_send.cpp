// SPDX-License-Identifier: MIT
// What a link sends: frames from the pipe, by any thread, and frames from the memory of a thread of the host that
// writes, both with the same accounting.
#include "transport/link.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

namespace muster {

namespace {
constexpr size_t batch_bytes = 256 * 1024;
// Frames made from the pipe. So small that the rest of one that the socket has accepted in part is cheap to keep.
constexpr size_t pipe_frame_bytes = 64 * 1024;
constexpr int max_frames = 4;                            // of a batch
constexpr int max_spans = 24;                            // of the pipe
constexpr size_t flat_bytes = 1024 + frame_header_bytes; // a batch so small is sent from one copy

constexpr size_t max_gathered_bytes = 4096; // a write worth gathering with others
// A larger write is sealed by the loop, while the thread of the host does something else.
constexpr size_t max_sealed_bytes = 4096;
constexpr int64_t small_gap_ns = 20'000; // between small writes that follow each other
constexpr uint32_t gather_after = 2;     // so many in a row without a read in between
// After so many the loop does not wait for the next one, whose thread would have to wake it: after a pause it sends
// what has gathered meanwhile.
constexpr uint32_t send_pause_after = 32;
constexpr int64_t send_pause_ns = 20'000;
} // namespace

// One system call's worth: the rest of a begun frame, control frames, new data frames.
struct Link::Batch {
    iovec spans[max_spans + 3 * max_frames + 2];
    int count = 0;
    size_t bytes = 0;
    size_t open_part = 0; // at the front: payload of the begun frame
    size_t frame_bytes[max_frames];
    unsigned char headers[max_frames][frame_header_bytes];
    int frames = 0;

    void add(const void *data, size_t size) noexcept {
        spans[count++] = {const_cast<void *>(data), size};
        bytes += size;
    }
};

// Control frames for a system call or the overflow buffer: one of each kind at most.
struct Link::Control {
    static constexpr size_t kinds = 3; // a heartbeat, a credit, an abort; or the two that end a direction
    unsigned char bytes[kinds * (frame_header_bytes + seal_overhead_bytes) + 8 + frame_control_max];
    size_t size = 0;
    static_assert(sizeof bytes < OverflowBuffer::reserved_bytes - 128);
};

void Link::kick() noexcept {
    if (is_over()) return;
    tx_.request_recheck();
    while (tx_.try_lock()) {
        tx_.begin_check();
        pump();
        if (!tx_.unlock()) return;
    }
}

void Link::release_tx() noexcept {
    if (tx_.unlock()) kick();
}

bool Link::is_idle() const noexcept {
    return overflow_.empty() && open_left_ == 0 && !shared_ && !send_broken_ && !discarded_ && !state_.finish_sent &&
           !goodbye_sent_ && wants_.load(std::memory_order_seq_cst) == 0 && !is_over() &&
           !aborting_.load(std::memory_order_relaxed) && !peer_over_.load(std::memory_order_relaxed);
}

// ---- the socket -----------------------------------------------------------------------------------------------------

ssize_t Link::send_spans(const iovec *spans, int count) noexcept {
    msghdr message{};
    message.msg_iov = const_cast<iovec *>(spans);
    message.msg_iovlen = static_cast<size_t>(count);
    for (;;) {
        const ssize_t n =
            count == 1 ? uncancelled::send(fd_.get(), spans->iov_base, spans->iov_len, MSG_DONTWAIT | MSG_NOSIGNAL)
                       : uncancelled::send(fd_.get(), message, MSG_DONTWAIT | MSG_NOSIGNAL);
        const int why = errno;
        count_io();
        if (n >= 0) return n;
        if (why == EINTR) continue;
        return why == EWOULDBLOCK ? -EAGAIN : -why;
    }
}

Link::Step Link::after_send(ssize_t n) noexcept {
    if (n > 0) {
        sent_.store(true, std::memory_order_relaxed);
        return Step::sent;
    }
    if (n != -EAGAIN && n != 0) on_send_error(static_cast<int>(-n));
    return Step::stop;
}

// When the peer has closed the connection, it may have sent the reason before: that is read first, and the end is found
// there. After any other failure the connection is intact, and no later read would ever report it.
void Link::on_send_error(int os_errno) noexcept {
    send_broken_ = true;
    done_sending_.store(true, std::memory_order_release);
    if (os_errno != EPIPE && os_errno != ECONNRESET)
        fail(MUSTER_E_PEER, os_errno, "the connection broke while sending");
    receiver_.watch_input();
    post_turn();
}

Link::Step Link::send_overflow() noexcept {
    unsent_.store(true, std::memory_order_release);
    const iovec span{overflow_.data(), overflow_.size()};
    const ssize_t n = send_spans(&span, 1);
    if (n > 0) overflow_.consume(static_cast<size_t>(n));
    // If something is left, the next call finds out that the socket is full.
    if (overflow_.empty() && held_ != 0) out_.consume(std::exchange(held_, 0));
    return after_send(n);
}

// ---- frames ---------------------------------------------------------------------------------------------------------

// Sends `size` bytes of payload with one system call: first the rest of the begun frame, then the control frames, then
// new frames of at most `frame_bytes`. The caller has ensured that all is within the credit, or belongs to the begun
// frame. Returns how many bytes of the payload were sent. `answer` is the answer of the system call, for after_send():
// the caller consumes those bytes of the pipe first, since an error ends the stream.
size_t Link::send_frames(const iovec *payload, size_t size, size_t frame_bytes, const Control *control,
                         ssize_t &answer) noexcept {
    Batch batch;
    size_t offset = 0;
    const auto put = [&](size_t bytes) { // the next bytes of the payload
        while (bytes != 0) {
            const size_t k = std::min(bytes, payload->iov_len - offset);
            batch.add(static_cast<unsigned char *>(payload->iov_base) + offset, k);
            bytes -= k, offset += k;
            if (offset == payload->iov_len) payload++, offset = 0;
        }
    };
    batch.open_part = std::min(open_left_, size);
    put(batch.open_part);
    if (control != nullptr && control->size != 0) batch.add(control->bytes, control->size);
    size_t left = batch.open_part == open_left_ ? size - batch.open_part : 0;
    for (; left != 0 && batch.frames < max_frames; batch.frames++) {
        const size_t k = std::min(left, frame_bytes);
        put_frame_header(batch.headers[batch.frames], FrameType::data, k);
        batch.add(batch.headers[batch.frames], frame_header_bytes);
        batch.frame_bytes[batch.frames] = k;
        put(k);
        left -= k;
        state_.use_credit(k);
    }
    unsigned char flat[flat_bytes];
    if (batch.count > 1 && batch.bytes <= flat_bytes) { // costs less than a scattered send
        size_t at = 0;
        for (int i = 0; i < batch.count; at += batch.spans[i++].iov_len)
            memcpy(flat + at, batch.spans[i].iov_base, batch.spans[i].iov_len);
        batch.spans[0] = {flat, at};
        batch.count = 1;
    }
    answer = send_spans(batch.spans, batch.count);
    return account(batch, answer > 0 ? static_cast<size_t>(answer) : 0, control);
}

// Records the sent part of a batch. Headers and control frames that were cut go to the overflow buffer, the payload of
// a frame that was cut is left open. Returns how many bytes of payload were sent.
size_t Link::account(const Batch &batch, size_t sent, const Control *control) noexcept {
    size_t moved = std::min(batch.open_part, sent);
    sent -= moved;
    open_left_ -= moved;
    if (control != nullptr) {
        const size_t k = std::min(control->size, sent);
        sent -= k;
        overflow_.add(control->bytes + k, control->size - k);
    }
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
        moved += done;
        overflow_.add(batch.headers[i] + head, frame_header_bytes - head);
        open_left_ = length - done;
    }
    if (not_begun != 0) state_.return_credit(not_begun);
    return moved;
}

// The rest of the begun frame must not stay in its memory: the writing thread returns, or the host may take its buffer
// back. It is copied to the overflow buffer, which is sent before all else. Returns its size.
size_t Link::keep_rest(const iovec *payload, size_t skip) noexcept {
    const size_t rest = std::exchange(open_left_, 0);
    if (rest == 0) return 0;
    unsent_.store(true, std::memory_order_release);
    if (overflow_.room(rest) < rest) {
        fail(MUSTER_E_PEER, 0, "no memory for what goes out");
        return rest;
    }
    unsigned char *to = overflow_.add(rest);
    for (size_t left = rest; left != 0; payload++) {
        const size_t at = std::min(skip, payload->iov_len), k = std::min(left, payload->iov_len - at);
        memcpy(to, static_cast<const unsigned char *>(payload->iov_base) + at, k);
        to += k, skip -= at, left -= k;
    }
    return rest;
}

void Link::add_frame(Control &control, FrameType type, const unsigned char *payload, size_t size) noexcept {
    const iovec span{const_cast<unsigned char *>(payload), size};
    control.size += put_frame(control.bytes + control.size, type, 0, &span, size, sealer_.get());
}

// Adds the control frames that are pending.
void Link::add_control(Control &control) noexcept {
    if (wants_.load(std::memory_order_seq_cst) == 0 || goodbye_sent_) return;
    const uint32_t wants = wants_.exchange(0, std::memory_order_seq_cst);
    if (wants & wants_heartbeat) add_frame(control, FrameType::heartbeat);
    if (const uint64_t owed = wants & wants_credit ? state_.owed() : 0; owed != 0) {
        unsigned char payload[8];
        put_u64(payload, owed);
        add_frame(control, FrameType::credit, payload, sizeof payload);
        state_.note_granted(owed);
    }
    if (wants & wants_abort) {
        unsigned char payload[frame_control_max];
        const size_t size = state_.get_abort(payload);
        add_frame(control, FrameType::abort, payload, size);
        abort_sent_ = true;
    }
}

// Frames that end this direction, when no bytes are left before them. True: there are frames to send.
bool Link::add_ending() noexcept {
    if (goodbye_sent_) {
        if (!done_sending_.load(std::memory_order_relaxed)) {
            done_sending_.store(true, std::memory_order_release);
            shutdown(fd_.get(), SHUT_WR);
            if (peer_over_.load(std::memory_order_acquire)) post_turn();
        }
        return false;
    }
    const bool aborting = aborting_.load(std::memory_order_seq_cst);
    if (aborting && !abort_sent_)
        return false; // abort() is about to request the frame: a goodbye alone is an orderly end
    const bool given_up = aborting || peer_over_.load(std::memory_order_seq_cst);
    const bool closing = closing_.load(std::memory_order_seq_cst);
    // Checked before the bytes: a finished pipe was filled before.
    const bool finished = !shared_ && (closing || out_.finished());
    const bool empty = shared_ || discarded_ || out_.readable() == 0;
    Control control;
    if (finished && empty && !state_.finish_sent && !given_up) {
        state_.finish_sent = true;
        add_frame(control, FrameType::finish);
    }
    if (given_up || (closing && empty)) {
        goodbye_sent_ = true;
        add_frame(control, FrameType::goodbye);
    }
    overflow_.add(control.bytes, control.size);
    return control.size != 0;
}

// ---- from the pipe --------------------------------------------------------------------------------------------------

// tx lock held, and everything was sent. The pipe is not parked during a pause, so a thread that writes wakes nothing.
// False: no pause. Checked by tests/models/link_pause.pml.
bool Link::begin_pause() noexcept {
    if (small_run_.load(std::memory_order_relaxed) <= send_pause_after || !may_block_ || !hub_.context().on_loop())
        return false;
    out_.publish_tail();
    pauses_.store(true, std::memory_order_seq_cst);
    hub_.start_timer(pause_timer_, now_ns() + send_pause_ns);
    return true;
}

// The flag is cleared before the lock is tried: a holder that has found it set, and so has not parked the pipe, checks
// again when it unlocks.
void Link::end_pause() noexcept {
    pauses_.store(false, std::memory_order_seq_cst);
    kick();
}

void Link::pump() noexcept {
    bool sent = false; // bytes of the host
    for (;;) {
        if (is_over() || send_broken_) return;
        const bool given_up = aborting_.load(std::memory_order_seq_cst) || peer_over_.load(std::memory_order_seq_cst);
        if (overflow_.empty() && given_up && !shared_ && !discarded_ && open_left_ == 0) {
            out_.drop_reader();
            discarded_ = true;
        }
        const bool has_bytes = !shared_ && out_.readable() != 0;
        const Step step = !overflow_.empty() ? send_overflow() : sealed_ ? seal_batch() : send_batch();
        if (step == Step::stop && !send_broken_ && !is_over()) return receiver_.watch_output();
        if (step == Step::stop) return;
        if (step == Step::sent) {
            sent = sent || has_bytes;
            continue;
        }
        unsent_.store(false,
                      std::memory_order_seq_cst); // pairs with is_unsent(), called by a flusher once it is parked
        if (!shared_) out_.sent_all();
        if (add_ending()) continue;
        if (wants_.load(std::memory_order_seq_cst) != 0 && !goodbye_sent_) continue;
        if (shared_ || discarded_ || state_.finish_sent) return;
        if (out_.readable() != 0) { // no credit left
            starved_.store(true, std::memory_order_seq_cst);
            if (state_.credit() == 0) return receiver_.watch_input();
            starved_.store(false, std::memory_order_seq_cst);
            continue;
        }
        if (pauses_.load(std::memory_order_seq_cst) || (sent && begin_pause())) return;
        if (out_.park_reader(Park::FD, 1)) return;
    }
}

// The next bytes are of a buffer that was taken back when a part of it had been sent. The end of the host may be gone,
// so the link itself ends the stream; called again, the pipe would only report the same.
Link::Step Link::end_torn(const Control &control) noexcept {
    constexpr std::string_view text = Duplex::cancelled_in_the_middle;
    overflow_.add(control.bytes, control.size); // frames that were removed from wants_ have to be sent
    duplex_->end({Error::make(MUSTER_E_ABORTED, "%s", text.data()), 0, host_side_});
    abort(0, text.data(), text.size());
    return Step::sent;
}

Link::Step Link::send_batch() noexcept {
    iovec pipe[max_spans];
    Control control;
    size_t limit = 0;
    if (!shared_ && !discarded_) {
        const bool given_up = aborting_.load(std::memory_order_relaxed) || peer_over_.load(std::memory_order_relaxed);
        const bool new_frames = !goodbye_sent_ && !given_up;
        limit = open_left_;
        // Control frames go between data frames: they get a gap soon.
        if (new_frames && (open_left_ == 0 || wants_.load(std::memory_order_relaxed) == 0))
            limit += static_cast<size_t>(std::min<uint64_t>(state_.credit(), batch_bytes));
    }
    if (open_left_ == 0) add_control(control);
    int count = 0;
    if (limit != 0 && out_.gather(pipe, max_spans, limit, count) < 0) return end_torn(control);
    size_t bytes = 0;
    for (int i = 0; i < count; i++) bytes += pipe[i].iov_len;
    if (bytes == 0 && control.size == 0) return Step::nothing;
    unsent_.store(true, std::memory_order_release);
    ssize_t answer;
    size_t moved = send_frames(pipe, bytes, pipe_frame_bytes, &control, answer);
    if (count == 0) return after_send(answer);
    if (out_.shows_owned() && open_left_ != 0) { // one byte of the rest stays, so that the pipe is not empty
        moved += keep_rest(pipe, moved) - 1;
        held_ = 1;
    }
    out_.consume(moved);
    return after_send(answer);
}

// Seals the next bytes into the overflow buffer: as many as there is memory for.
Link::Step Link::seal_batch() noexcept {
    Control control;
    add_control(control);
    uint64_t limit = 0;
    if (!shared_ && !discarded_ && !goodbye_sent_ && !aborting_.load(std::memory_order_relaxed) &&
        !peer_over_.load(std::memory_order_relaxed))
        limit = std::min<uint64_t>(state_.credit(), pipe_frame_bytes);
    iovec pipe[max_spans];
    int count = 0;
    if (limit != 0 && out_.gather(pipe, max_spans, static_cast<size_t>(limit), count) < 0) return end_torn(control);
    if (control.size == 0 && count == 0) return Step::nothing;
    overflow_.add(control.bytes, control.size);
    if (count == 0) return Step::sent;
    size_t bytes = 0;
    for (int i = 0; i < count; i++) bytes += pipe[i].iov_len;
    bytes = std::min(bytes, overflow_.room(frame_bytes(bytes, true)) - frame_bytes(0, true));
    put_frame(overflow_.add(frame_bytes(bytes, true)), FrameType::data, 0, pipe, bytes, sealer_.get());
    out_.consume(bytes - 1);
    held_ = 1;
    state_.use_credit(bytes);
    return Step::sent;
}

// ---- from the memory of a thread of the host ------------------------------------------------------------------------

// Small writes that follow each other closely are gathered in the pipe; the loop sends them in large frames.
bool Link::should_gather(size_t size) noexcept {
    if (size > max_gathered_bytes || answered_.exchange(false, std::memory_order_relaxed)) {
        small_run_.store(0, std::memory_order_relaxed);
        return false;
    }
    const int64_t now = now_ns();
    // During a pause the pipe takes most writes past this.
    const bool follows =
        now - std::exchange(last_small_ns_, now) <= small_gap_ns || pauses_.load(std::memory_order_relaxed);
    const uint32_t run = follows ? small_run_.load(std::memory_order_relaxed) + 1 : 1;
    small_run_.store(run, std::memory_order_relaxed);
    return run > gather_after;
}

// Sends as much as possible now, by one system call; the rest of a frame is up to the caller, see open_left_.
size_t Link::send_from_host(const unsigned char *data, size_t size) noexcept {
    if (!overflow_.empty() && send_overflow() == Step::stop) return 0; // the rest of a header
    size = open_left_ + std::min<uint64_t>(size - open_left_, state_.credit());
    // The rest of a frame that is cut may have to wait in memory.
    const size_t frame_bytes = std::min<size_t>(frame_data_max, out_.window());
    const iovec payload{const_cast<unsigned char *>(data), size};
    if (size == 0) return 0;
    ssize_t answer;
    const size_t moved = send_frames(&payload, size, frame_bytes, nullptr, answer);
    after_send(answer);
    return moved;
}

// The same for a sealed link: a frame cannot be taken back once it is sealed, so what the socket does not accept stays
// in the overflow buffer.
size_t Link::seal_from_host(const unsigned char *data, size_t size) noexcept {
    size = static_cast<size_t>(std::min<uint64_t>(size, state_.credit()));
    if (size == 0 || overflow_.room(frame_bytes(size, true)) < frame_bytes(size, true)) return 0;
    unsigned char frame[max_sealed_bytes + frame_header_bytes + seal_overhead_bytes];
    const iovec payload{const_cast<unsigned char *>(data), size};
    const iovec sealed{frame, put_frame(frame, FrameType::data, 0, &payload, size, sealer_.get())};
    state_.use_credit(size);
    const ssize_t answer = send_spans(&sealed, 1);
    const size_t sent = answer > 0 ? static_cast<size_t>(answer) : 0;
    if (sent < sealed.iov_len) unsent_.store(true, std::memory_order_release);
    overflow_.add(frame + sent, sealed.iov_len - sent);
    after_send(answer);
    return size;
}

Carrier::Moved Link::send_now(const void *data, size_t size) noexcept {
    Deadline once(0);
    struct Never final : Interrupted {
        bool now() const noexcept override { return false; }
    } never;
    return send(data, size, once, never);
}

Carrier::Moved Link::send(const void *data, size_t size, Deadline &deadline, const Interrupted &interrupted) noexcept {
    if (shared_ || (sealed_ && size > max_sealed_bytes) || should_gather(size) || !tx_.try_lock())
        return {MUSTER_AGAIN, 0};
    tx_.begin_check();
    const bool waits = may_block_ && !deadline.look_once();
    const auto *const from = static_cast<const unsigned char *>(data);
    size_t moved = 0;
    Status status = waits ? MUSTER_OK : MUSTER_AGAIN;
    while (moved < size) {
        if (open_left_ == 0) {
            if (waits && !is_idle()) pump(); // a credit, a heartbeat; or the end
            if (!is_idle()) {
                status = MUSTER_AGAIN;
                break;
            }
        }
        const size_t k =
            sealed_ ? seal_from_host(from + moved, size - moved) : send_from_host(from + moved, size - moved);
        moved += k;
        if (!waits) break;
        if (k != 0) continue;
        if (send_broken_ || interrupted.now()) break;
        // Without credit the lock is released meanwhile: others may have credit to send.
        const bool starved = open_left_ == 0 && state_.credit() == 0;
        if (starved) release_tx();
        const Room room = await_room(starved, deadline, interrupted);
        if (starved && !tx_.try_lock()) return {MUSTER_AGAIN, moved};
        if (room == Room::elsewhere) status = MUSTER_AGAIN;
        if (room != Room::yes || interrupted.now()) break;
    }
    const iovec rest{const_cast<unsigned char *>(from) + moved, size - moved};
    if (!is_over()) moved += keep_rest(&rest, 0);
    if (moved < size || !overflow_.empty()) tx_.request_recheck(); // the obstacle is checked again
    release_tx();
    return {moved == size ? MUSTER_OK : status, moved};
}

// Waits until the socket accepts more, or the peer has granted credit; reads incoming frames meanwhile.
Link::Room Link::await_room(bool starved, Deadline &deadline, const Interrupted &interrupted) noexcept {
    if (notifier_out_.event < 0) {
        auto notifier = hub_.take_notifier();
        if (!notifier) return Room::elsewhere;
        notifier_out_ = *notifier;
        event_out_.store(notifier->event, std::memory_order_seq_cst);
    }
    const bool reads = claim(false);
    if (!reads && starved) return Room::elsewhere; // the thread that reads will see the credit, and the pipe sends then
    if (reads) receiver_.take_from_loop();
    bool in_time = true;
    if (!starved || state_.credit() == 0) in_time = sleep_until_writable(reads, starved, deadline, interrupted);
    if (reads) {
        unsigned char staging[32 * 1024];
        read(staging, sizeof staging, sizeof staging, true);
        release_rx();
        if (!watched_.load(std::memory_order_seq_cst)) receiver_.expect_host();
    }
    return in_time && !deadline.passed() ? Room::yes : Room::no; // frames without credit do not prolong the wait
}

// Sleeps until the socket accepts more (if not starved), bytes arrive (if this thread reads), an interrupt, or the
// deadline (false).
bool Link::sleep_until_writable(bool reads, bool starved, Deadline &deadline, const Interrupted &interrupted) noexcept {
    const short events = static_cast<short>((starved ? 0 : POLLOUT) | (reads ? POLLIN : 0));
    pollfd both[2] = {{fd_.get(), events, 0}, {notifier_out_.event, POLLIN, 0}};
    waiting_out_.store(true, std::memory_order_seq_cst); // pairs with interrupt()
    bool in_time = true;
    if (!interrupted.now() && !is_over()) {
        timespec left{}, *limit = nullptr;
        if (!deadline.endless()) {
            const int64_t ns = deadline.left();
            left = {ns / 1'000'000'000, ns % 1'000'000'000};
            limit = &left;
        }
        in_time = uncancelled::wait_poll(both, 2, limit) != 0;
        if (both[1].revents != 0) {
            uint64_t count;
            [[maybe_unused]] const ssize_t got = uncancelled::read(notifier_out_.event, &count, sizeof count);
        }
    }
    waiting_out_.store(false, std::memory_order_relaxed);
    return in_time;
}

// ---- credit for the peer --------------------------------------------------------------------------------------------

void Link::taken() noexcept {
    if (shared_ || is_over()) return;
    // relaxed: only the reading host writes it.
    if (!state_.grant(direct_.load(std::memory_order_relaxed) + in_.taken())) return;
    wants_.fetch_or(wants_credit, std::memory_order_seq_cst);
    kick();
}

} // namespace muster
