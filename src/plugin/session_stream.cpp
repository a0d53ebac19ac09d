// SPDX-License-Identifier: MIT
// One stream of a session, as its host's threads see it.
#include "plugin/broadcast.hpp"
#include "plugin/session.hpp"
#include "transport/frame.hpp"

#include <algorithm>

namespace muster {

SessionStream::SessionStream(Session &session, uint32_t id, uint64_t window)
    : session_(&session), id_(id), window_(window), duplex_(Duplex::make_private(window)),
      from_host_(duplex_->incoming(1)), to_host_(duplex_->outgoing(1)) {}

void SessionStream::attach() noexcept {
    from_host_.set_reader_waker(this);
}

void SessionStream::detach() noexcept {
    if (broadcast_) broadcast_->leave(*this);
    from_host_.set_reader_waker(nullptr);
}

// The host's thread wrote, finished, or wants room.
void SessionStream::wake_reader() noexcept {
    session_->wake(*this);
}

void SessionStream::taken() noexcept {
    const uint64_t taken = to_host_.taken();
    const uint64_t told = told_.load(std::memory_order_relaxed);
    taken_.store(taken, std::memory_order_release);
    if (taken - told < window_ / 4) return; // not worth a frame yet
    told_.store(taken, std::memory_order_relaxed);
    session_->wake(*this);
}

// ---- in an external context: the host's thread does what the loop would do
// ----------------------------------------------------------

bool SessionStream::drives() const noexcept {
    return session_->context().external() && session_->channel().polls();
}

// Looks for what comes in as long as that seems worth while. OK: done, or time to look around; AGAIN: now it is better
// to sleep, in the loop.
template <class Done>
Status SessionStream::drive(Deadline &deadline, const Interrupted &interrupted, const Done &done) noexcept {
    constexpr int most_looks = 256, most_vain_looks = 64;
    Status status = MUSTER_OK;
    const bool driven = session_->context().drive([&](const auto &run_posted) {
        int vain = 0;
        for (int looks = 0; looks < most_looks && !done() && !interrupted.now(); looks++) {
            const Status found = session_->channel().poll();
            run_posted();
            vain = found == MUSTER_OK ? 0 : vain + 1;
            if (found != MUSTER_TIMEOUT && vain < most_vain_looks && !deadline.look_once()) continue;
            if (!done()) status = MUSTER_AGAIN;
            return;
        }
    });
    return driven ? status : MUSTER_AGAIN;
}

// What comes in goes through the pipe, whose bytes may lie where the plug-in has received them.
Carrier::Moved SessionStream::receive(void *, size_t, Deadline &deadline, const Interrupted &interrupted,
                                      bool) noexcept {
    if (!drives()) return {MUSTER_AGAIN, 0};
    return {drive(deadline, interrupted, [&] { return to_host_.readable() != 0 || to_host_.finished(); }), 0};
}

// A writer that waits for the last byte to leave must not spin while the channel is full.
bool SessionStream::flush() noexcept {
    const uint32_t seen = session_->sent_signal_.seen();
    if (from_host_empty() && !held_back_.load(std::memory_order_seq_cst)) return true;
    session_->wake(*this);
    if (!from_host_empty()) return false; // the pipe itself wakes the waiting thread
    Deadline shortly(1'000'000);
    session_->context().sleep(session_->sent_signal_, seen, shortly);
    return from_host_empty() && !held_back_.load(std::memory_order_seq_cst);
}

// Looks at the indices only: the reading side of the pipe belongs to the loop.
bool SessionStream::from_host_empty() const noexcept {
    PipeControl &control = from_host_.control();
    return control.tail.load(std::memory_order_seq_cst) == control.head.load(std::memory_order_seq_cst);
}

void SessionStream::abort(uint64_t reason, const char *text, size_t text_bytes) noexcept {
    try {
        unsigned char word[8];
        put_u64(word, reason);
        std::string payload(reinterpret_cast<char *>(word), 8);
        payload.append(text == nullptr ? "" : text, text == nullptr ? 0 : std::min<size_t>(text_bytes, 200));
        const std::lock_guard hold(abort_lock_);
        aborted_ = true;
        abort_payload_ = std::move(payload);
    } catch (...) { // the peer hears an abort without its reason
        const std::lock_guard hold(abort_lock_);
        aborted_ = true;
        abort_payload_.assign(8, '\0');
    }
    session_->wake(*this);
}

void SessionStream::closed() noexcept {
    closed_.store(true, std::memory_order_release);
    session_->wake(*this);
}

bool SessionStream::would_deadlock() const noexcept {
    return session_->channel().would_deadlock();
}

MulticastGroup *SessionStream::multicast_group() noexcept {
    return session_->channel().multicast_group();
}

Carrier::Io SessionStream::io() const noexcept {
    return {0, 0, static_cast<uint64_t>(session_->heard_told_.load(std::memory_order_relaxed))};
}

// The peer's host has closed its stream: what is written here would be read by nobody.
void SessionStream::drop_outgoing() noexcept {
    if (peer_gone_) return;
    peer_gone_ = true;
    if (broadcast_) broadcast_->leave(*this);
    if (staged_bytes_ != 0) from_host_.consume(std::exchange(staged_bytes_, 0));
    from_host_.drop_reader();
}

// Both directions are over on its side: the bytes and their end are in the pipe already.
void SessionStream::peer_closed() noexcept {
    duplex_->end(Error::make(MUSTER_E_PEER, "the peer has closed the stream"));
}

} // namespace muster
