// SPDX-License-Identifier: MIT
#include "plugin/broadcast.hpp"

#include "plugin/fabric.hpp"
#include "plugin/fabric_message.hpp"
#include "plugin/timed.hpp"

#include <algorithm>

namespace muster {

namespace {
constexpr size_t turn_bytes = 4 * 1024 * 1024;
constexpr int64_t max_delay_ns = 2'000'000'000; // with the slowest
} // namespace

Broadcast::Broadcast(Fabric &fabric, uint32_t count, const void *data, size_t size)
    : fabric_(&fabric), context_(fabric.context_), data_(static_cast<const unsigned char *>(data)), size_(size),
      outstanding_(count) {}

void Broadcast::piece_over() noexcept {
    outstanding_.fetch_sub(1, std::memory_order_release);
    look_.post(context_); // the others may have waited for this one
}

SegmentPool &Broadcast::pool() const noexcept {
    return *fabric_->plugin_.plugins().pool;
}

FabricSession &Broadcast::channel_of(const SessionStream &stream) noexcept {
    return static_cast<FabricSession &>(stream.session_->channel());
}

bool Broadcast::join(SessionStream &stream) {
    Session &session = *stream.session_;
    const uint64_t peer = channel_of(stream).peer_;
    const bool twice = std::any_of(members_.begin(), members_.end(),
                                   [&](const auto *member) { return channel_of(*member).peer_ == peer; });
    if (done_ != 0 || twice || session.sealer_) {
        stream.from_host_.part_shared_piece();
        return false;
    }
    peers_.reserve(members_.size() + 1);
    session.broadcasting_.reserve(session.broadcasting_.size() + 1);
    members_.push_back(&stream);
    session.broadcasting_.push_back(&stream);
    stream.broadcast_ = Ref<Broadcast>(this);
    progress_ns_ = context_.loop_now_ns();
    look_.post(context_);
    return true;
}

void Broadcast::leave(SessionStream &stream) noexcept {
    const Ref<Broadcast> alive = std::move(stream.broadcast_);
    std::erase(members_, &stream);
    std::erase(stream.session_->broadcasting_, &stream);
    stream.held_back_.store(false, std::memory_order_seq_cst);
    look_.post(context_);
}

// The rest of the block is sent to this stream separately.
void Broadcast::let_go(SessionStream &stream) noexcept {
    if (done_ != size_) stream.from_host_.part_shared_piece();
    leave(stream);
    stream.session_->ready(stream);
    stream.session_->schedule();
}

void Broadcast::let_all_go() noexcept {
    while (!members_.empty()) let_go(*members_.back());
}

void Broadcast::look() noexcept {
    if (looking_) return; // a plug-in delivers while it sends
    const Ref<Broadcast> alive(this);
    looking_ = true;
    for (size_t left = turn_bytes; !members_.empty();) {
        if (segment_ != nullptr && !(to_each_ ? send_to_each() : send())) break;
        if (members_.empty()) break; // each continues separately
        if (done_ == size_) {
            let_all_go();
            break;
        }
        drop_revoked();
        const size_t size = ready();
        if (size == 0) break;
        if (size > left) {
            look_.post(context_);
            break;
        }
        left -= size;
        if (!stage(size)) {
            let_all_go();
            break;
        }
    }
    if (members_.empty() && segment_ != nullptr) pool().give(std::exchange(segment_, nullptr));
    looking_ = false;
}

// Their pieces were taken back; no operation waits for them any more.
void Broadcast::drop_revoked() noexcept {
    for (size_t i = members_.size(); i-- != 0;)
        if (!members_[i]->from_host_.shared_piece()) let_go(*members_[i]);
}

// A peer that makes no progress must not delay the others. The staged bytes are for all: they are sent first.
void Broadcast::tick(int64_t now_ns) noexcept {
    if (now_ns - progress_ns_ <= max_delay_ns) return;
    if (segment_ == nullptr) return let_all_go();
    to_each_ = true;
    look();
}

// Number of bytes that can be sent to all now.
size_t Broadcast::ready() const noexcept {
    if (members_.size() < outstanding_.load(std::memory_order_acquire)) return 0;
    const size_t around = fabric_head_bytes + members_.size() * (share_bytes + 8);
    const size_t in_segment = SegmentPool::segment_bytes - fabric_->ops_.headroom_bytes - around;
    // Also of a size that can be sent to each as a frame.
    size_t size = std::min<uint64_t>({size_ - done_, session_data_max, in_segment, fabric_->message_bytes_ - around});
    for (const SessionStream *stream : members_) {
        const Session &session = *stream->session_;
        const Fabric::Peer &peer = fabric_->peer(channel_of(*stream).peer_);
        if (session.state_ != Session::State::open || session.out_ != nullptr || peer.blocked) return 0;
        size = std::min<uint64_t>(size, stream->state_.credit());
        if (fabric_->ops_.credit_bytes != 0)
            size = std::min<uint64_t>(size, peer.credits > around ? peer.credits - around : 0);
    }
    return size;
}

// Consumes bytes of all pipes. False: no memory.
bool Broadcast::stage(size_t size) noexcept {
    segment_ = static_cast<unsigned char *>(pool().take());
    if (segment_ == nullptr) return false;
    staged_at_ = fabric_->ops_.headroom_bytes + fabric_head_bytes + members_.size() * (share_bytes + 8);
    staged_ = 0;
    for (size_t i = 0; i < members_.size();) {
        SessionStream &stream = *members_[i];
        iovec span{};
        int count = 0;
        stream.held_back_.store(true, std::memory_order_seq_cst); // before the pipe becomes empty
        stream.from_host_.gather(&span, 1, size, count);
        if (count == 0 || span.iov_base != data_ + done_ || span.iov_len != size) { // taken back meanwhile
            if (count != 0) stream.from_host_.consume(0);
            let_go(stream);
            continue;
        }
        if (staged_ == 0) memcpy(segment_ + staged_at_, span.iov_base, size);
        staged_ = size;
        stream.from_host_.consume(size);
        stream.state_.use_credit(size);
        i++;
    }
    done_ += staged_;
    progress_ns_ = context_.loop_now_ns();
    return true;
}

// False: not now.
bool Broadcast::send() noexcept {
    const size_t count = members_.size(), at = staged_at_ - count * share_bytes - fabric_head_bytes;
    put_head(segment_ + at, to_many, 0);
    peers_.clear();
    for (size_t i = 0; i < count; i++) {
        const FabricSession &channel = channel_of(*members_[i]);
        peers_.push_back(channel.peer_);
        put_share(segment_ + at + fabric_head_bytes + i * share_bytes,
                  {channel.key_.first, channel.key_.second, members_[i]->id_});
    }
    const size_t size = staged_at_ - at + staged_;
    const Status status = timed(fabric_->plugin_, "send_multicast", [&] {
        return fabric_->ops_.send_multicast(fabric_->self_, peers_.data(), static_cast<uint32_t>(count), segment_, at,
                                            size);
    });
    if (status == MUSTER_AGAIN) return false;
    if (status != MUSTER_OK) return to_each_ = true, send_to_each();
    segment_ = nullptr;
    for (SessionStream *const stream : members_) { // all but those that have ended meanwhile
        fabric_->charge(fabric_->peer(channel_of(*stream).peer_), size);
        stream->held_back_.store(false, std::memory_order_seq_cst);
        context_.notify(stream->session_->sent_signal_);
        stream->session_->sent_ns_ = context_.loop_now_ns();
    }
    return true;
}

// The fabric does not support it for these: the staged bytes are sent as frames, and each stream continues separately.
// False: one of the sessions is sending another message.
bool Broadcast::send_to_each() noexcept {
    const iovec span{segment_ + staged_at_, staged_};
    for (size_t i = members_.size(); i-- != 0;) {
        SessionStream &stream = *members_[i];
        Session &session = *stream.session_;
        if (session.out_ != nullptr) continue;
        let_go(stream);
        try {
            session.staged_.reserve(session.staged_.size() + 1);
            if (!session.put(FrameType::data, stream.id_, &span, staged_)) continue; // no memory: it has failed
            stream.held_back_.store(true, std::memory_order_seq_cst);
            session.staged_.emplace_back(&stream);
        } catch (const std::bad_alloc &) {
            session.fail(MUSTER_E_NOMEM, "out of memory");
        }
    }
    return members_.empty();
}

} // namespace muster
