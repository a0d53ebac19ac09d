// SPDX-License-Identifier: MIT
// What goes out: streams with something to say take turns at filling a segment with frames, which the channel takes.
#include "plugin/broadcast.hpp"
#include "plugin/session.hpp"

#include <algorithm>
#include <cstring>

namespace muster {

namespace {
constexpr size_t shared_piece_bytes = 64 * 1024; // of each stream per round, when several have something to send
constexpr size_t polled_frame = 128 * 1024;      // sent directly between two polls, if the channel needs them
} // namespace

// ---- requests of the threads of hosts -------------------------------------------------------------------------------

void Session::wake(SessionStream &stream) noexcept {
    // acq_rel: everything that the host's thread did before is seen by the turn that clears the mark.
    if (!stream.woken_.exchange(true, std::memory_order_acq_rel)) {
        stream.retain(); // for the list
        SessionStream *first = woken_list_.load(std::memory_order_relaxed);
        do stream.next_woken_ = first;
        while (
            !woken_list_.compare_exchange_weak(first, &stream, std::memory_order_release, std::memory_order_relaxed));
    }
    schedule();
}

void Session::take_woken() noexcept {
    // acquire: pairs with wake(); next_woken_ of each is visible.
    SessionStream *stream = woken_list_.exchange(nullptr, std::memory_order_acquire);
    while (stream != nullptr) {
        SessionStream *next = stream->next_woken_;
        stream->woken_.exchange(false, std::memory_order_acq_rel); // before the check of its requests
        if (state_ != State::over && find(stream->id_) == stream) ready(*stream);
        stream->release();
        stream = next;
    }
}

void Session::drop_woken() noexcept {
    SessionStream *stream = woken_list_.exchange(nullptr, std::memory_order_acquire);
    while (stream != nullptr) {
        SessionStream *next = stream->next_woken_;
        stream->woken_.store(false, std::memory_order_release);
        stream->release();
        stream = next;
    }
}

void Session::ready(SessionStream &stream) noexcept {
    if (ready_.holds(stream)) return;
    ready_.push_back(stream);
    ready_count_++;
}

// ---- the segment ----------------------------------------------------------------------------------------------------

size_t Session::space() const noexcept {
    return SegmentPool::segment_bytes - out_end_;
}

// A segment to write into.
bool Session::have_out() noexcept {
    if (out_ != nullptr) return true;
    out_ = static_cast<unsigned char *>(pool_.take());
    out_begin_ = out_end_ = headroom_;
    if (out_ == nullptr) fail(MUSTER_E_NOMEM, "out of memory");
    return out_ != nullptr;
}

// Writes one frame after the staged bytes. False: it does not fit now.
bool Session::put(FrameType type, uint32_t stream, const iovec *spans, size_t size) noexcept {
    if (!have_out()) return false;
    if (space() < frame_bytes(size, sealer_ != nullptr)) return false;
    out_end_ += put_frame(out_ + out_end_, type, stream, spans, size, sealer_.get());
    return true;
}

bool Session::put(FrameType type, uint32_t stream, std::string_view payload) noexcept {
    const iovec span{const_cast<char *>(payload.data()), payload.size()};
    return put(type, stream, &span, payload.size());
}

void Session::put_control(FrameType type, uint32_t stream, std::string_view head, std::string_view rest) noexcept {
    if (control_.size() >= session_waiting_max)
        return fail(MUSTER_E_LIMIT, "the peer does not read what it makes us say");
    try {
        std::string payload;
        payload.reserve(head.size() + rest.size());
        payload.append(head).append(rest);
        control_.push_back({type, stream, std::move(payload)});
    } catch (const std::bad_alloc &) {
        fail(MUSTER_E_NOMEM, "out of memory");
    }
}

// Passes the staged bytes to the channel. True: none are left.
bool Session::drain() noexcept {
    while (out_ != nullptr && out_begin_ != out_end_ && send_failed_.status >= 0) {
        const size_t room = channel_->room(), size = std::min(room, out_end_ - out_begin_);
        size_t taken = 0;
        Status status = size == 0 ? MUSTER_AGAIN : MUSTER_E_UNSUPPORTED;
        if (size != 0 && size == out_end_ - out_begin_) {
            status = channel_->send_buffer(out_, out_begin_, size);
            if (status == MUSTER_OK) out_ = nullptr, taken = size;
        }
        if (status == MUSTER_E_UNSUPPORTED) status = channel_->send(out_ + out_begin_, size, taken);
        if (status < 0) {
            send_failed(status);
            break;
        }
        if (taken > size) {
            fail(MUSTER_E_PLUGIN, "the transport says that it sent more than it was given");
            return false;
        }
        if (taken != 0) sent_ns_ = context_.loop_now_ns();
        out_begin_ += taken;
        if (taken < size || size == 0) {
            settle(false);
            return false;
        }
    }
    if (out_ != nullptr) pool_.give(std::exchange(out_, nullptr));
    settle(send_failed_.status >= 0);
    return true;
}

// Nothing can be sent any more; but messages that the peer sent before it ended may still arrive, and the end of the
// channel shows when that is over. tick() does not wait for it for a long time.
void Session::send_failed(Status status) noexcept {
    send_failed_ = Error::make(status, "%s: sending failed: %s", config_.peer.c_str(), muster_status_text(status));
    send_failed_ns_ = now_ns();
    // A listener that refuses a dial closes the connection, and its refusal may still be in transit.
    const bool may_be_refused = state_ == State::handshake && config_.dialer && status == MUSTER_E_PEER;
    if (may_be_refused) return wait_for_refusal();
    if (state_ != State::open) return lost(send_failed_);
    for (const Ref<SessionStream> &stream : staged_) {
        if (stream->from_host_.shows_owned()) stream->from_host_.consume(0); // unlocks it; nothing of it was sent
        stream->staged_bytes_ = 0;
    }
}

// Bytes of a ring stay in the pipe until they are sent, so that a flush of the host waits for them. Handed-over buffers
// are locked while they are read, so these are released at once; held_back_ represents them.
void Session::settle(bool sent) noexcept {
    for (const Ref<SessionStream> &stream : staged_) {
        if (stream->staged_bytes_ != 0 && (sent || stream->from_host_.shows_owned()))
            stream->from_host_.consume(std::exchange(stream->staged_bytes_, 0));
        if (sent) stream->held_back_.store(false, std::memory_order_seq_cst);
    }
    if (!sent || staged_.empty()) return;
    staged_.clear();
    context_.notify(sent_signal_);
}

// ---- frames ---------------------------------------------------------------------------------------------------------

// Fills the segment. False: there are no bytes to send.
bool Session::stage() {
    while (!raw_.empty()) { // bytes of the handshake, the prefix of the seal
        if (!have_out()) return false;
        out_begin_ = headroom_;
        out_end_ = headroom_ + raw_.size();
        memcpy(out_ + out_begin_, raw_.data(), raw_.size());
        raw_.clear();
        return true;
    }
    if (state_ != State::open && state_ != State::leaving) return false;
    for (; !control_.empty(); control_.pop_front()) {
        const auto &[type, stream, payload] = control_.front();
        if (!put(type, stream, payload)) return out_ != nullptr;
    }
    if (heartbeat_due_ && put(FrameType::heartbeat, 0)) heartbeat_due_ = false;
    if (goodbye_due_ && put(FrameType::goodbye, 0)) goodbye_due_ = false;
    if (state_ == State::leaving) return out_ != nullptr;
    for (auto &[id, opening] : opening_) {
        if (!opening || (opening->step != Opening::Step::begin && opening->step != Opening::Step::direct)) continue;
        if (!put_open(id, *opening)) return out_ != nullptr;
    }
    for (size_t left = ready_count_; left != 0 && (out_ == nullptr || space() > 16 * 1024); left--) {
        const Ref<SessionStream> stream(ready_.first());
        ready_.remove(*stream);
        ready_count_--;
        if (stage_stream(*stream)) ready(*stream);
    }
    return out_ != nullptr;
}

bool Session::put_open(uint32_t id, Opening &opening) {
    if (opening.step == Opening::Step::begin && opening.may_upgrade && (same_host_ || peer_direct_)) {
        if (!put(FrameType::query_routes, id, opening.service)) return false;
        opening.step = Opening::Step::querying;
        return true;
    }
    unsigned char head[10];
    put_u64(head, opening.options.window_bytes);
    put_u16(head + 8, static_cast<uint16_t>(opening.service.size()));
    std::string payload(reinterpret_cast<char *>(head), sizeof head);
    payload += opening.service;
    payload += opening.options.hello;
    if (!put(FrameType::open, id, payload)) return false;
    opening.step = Opening::Step::open;
    return true;
}

// Sends the frames of a stream. True: call again.
bool Session::stage_stream(SessionStream &stream) {
    unsigned char word[8];
    if (stream.accept_due_) {
        put_u64(word, stream.window_);
        if (!put(FrameType::accept, stream.id_, std::string(reinterpret_cast<char *>(word), 8) + stream.hello_))
            return true;
        stream.accept_due_ = false;
    }
    unsigned char abort[frame_control_max];
    if (const size_t size = stream.state_.get_abort(abort); size != 0) {
        if (!put(FrameType::abort, stream.id_, {reinterpret_cast<char *>(abort), size})) return true;
        remove(stream);
        return false;
    }
    const bool closed = stream.closed_.load(std::memory_order_acquire);
    if (closed && stream.closed_at_ == 0) stream.closed_at_ = now_ns();
    if (closed && !stream.closed_sent_) {
        // Also after a finish of the peer, whose host waits for the end; but not if that has closed, too.
        if (!(stream.state_.finish_received && stream.closed_received_) && !put(FrameType::closed, stream.id_))
            return true;
        stream.closed_sent_ = true;
    }
    const uint64_t owed = stream.state_.owed();
    if (!closed && !stream.state_.finish_received && owed != 0) {
        put_u64(word, owed);
        if (!put(FrameType::credit, stream.id_, {reinterpret_cast<char *>(word), 8})) return true;
        stream.state_.note_granted(owed);
    }
    const bool more = stage_data(stream, closed);
    if (stream.is_over()) {
        remove(stream);
        return false;
    }
    return more;
}

bool Session::stage_data(SessionStream &stream, bool closed) {
    if (stream.state_.finish_sent || stream.closed_received_ || send_failed_.status < 0) return false;
    Pipe &pipe = stream.from_host_;
    const bool finished = pipe.finished() || closed; // before the check for bytes: no more follow it
    if (pipe.readable() == 0) {
        if (!finished) return !pipe.park_reader(Park::FD, 1);
        if (!put(FrameType::finish, stream.id_)) return true;
        stream.state_.finish_sent = true;
        return false;
    }
    if (stream.broadcast_) return false; // added again with its end
    if (const Ref<SharedPiece> shared = pipe.shared_piece())
        if (static_cast<Broadcast &>(*shared).join(stream)) return false;
    if (stream.state_.credit() == 0) return false; // added again with the next credit
    if (out_ != nullptr && space() < 16 * 1024) return true;
    const size_t room = out_ == nullptr ? session_data_max - headroom_ : std::min(session_data_max, space() - 64);
    const size_t limit = std::min<uint64_t>({stream.state_.credit(), room, ready_.empty() ? room : shared_piece_bytes});
    iovec spans[16];
    int count = 0;
    staged_.reserve(staged_.size() + 1);
    stream.held_back_.store(true, std::memory_order_seq_cst); // before the pipe becomes empty
    const Status status = pipe.gather(spans, 16, limit, count);
    if (status < 0) {
        stream.held_back_.store(false, std::memory_order_seq_cst);
        constexpr const char *text = "a write was cancelled in the middle";
        if (!put(FrameType::abort, stream.id_, std::string(8, '\0') + text)) return true;
        stream.duplex_->end({Error::make(MUSTER_E_ABORTED, "%s", text), 0, 0}); // by the host, side 0
        remove(stream);
        return false;
    }
    size_t size = 0;
    for (int i = 0; i < count; i++) size += spans[i].iov_len;
    if (size == 0 || !put(FrameType::data, stream.id_, spans, size)) {
        if (size != 0) pipe.consume(0);
        stream.held_back_.store(false, std::memory_order_seq_cst);
        return true;
    }
    stream.state_.use_credit(size);
    stream.staged_bytes_ = size;
    staged_.emplace_back(&stream);
    return true;
}

// Bytes in the memory of a thread that drives; the pipe of the stream is empty. Returns how many bytes were taken;
// they may wait in the segment, and held_back_ represents them then. 0: not now, or never again.
size_t Session::send_directly(SessionStream &stream, const void *data, size_t size) noexcept {
    if (state_ != State::open || lost_.status < 0 || refused_.status < 0 || !raw_.empty() ||
        find(stream.id_) != &stream || stream.accept_due_ || stream.state_.finish_sent || stream.closed_received_ ||
        !drain() || send_failed_.status < 0)
        return 0;
    const size_t bytes = std::min<uint64_t>(
        {stream.state_.credit(), stream.needs_polls_ ? polled_frame : session_data_max - headroom_, size});
    if (bytes == 0) return 0;
    try {
        staged_.emplace_back(&stream);
    } catch (const std::bad_alloc &) {
        return 0; // by way of the pipe, if at all
    }
    stream.held_back_.store(true, std::memory_order_seq_cst);
    const iovec span{const_cast<void *>(data), bytes};
    if (!put(FrameType::data, stream.id_, &span, bytes)) {
        stream.held_back_.store(false, std::memory_order_seq_cst);
        staged_.pop_back();
        return 0;
    }
    stream.state_.use_credit(bytes);
    drain();
    return bytes;
}

// No bytes of this session are in transit: waiters for that may continue.
void Session::look_at_broadcasts() noexcept {
    for (size_t i = 0; i < broadcasting_.size();) {
        SessionStream *const stream = broadcasting_[i];
        Ref<Broadcast>(stream->broadcast_)->look();
        if (i < broadcasting_.size() && broadcasting_[i] == stream) i++; // else it has left
    }
}

} // namespace muster
