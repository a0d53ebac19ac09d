// SPDX-License-Identifier: MIT
// One stream of a session, as its host's threads see it.
#include "plugin/broadcast.hpp"
#include "plugin/session.hpp"

#include <algorithm>

namespace muster {

SessionStream::SessionStream(Session &session, uint32_t id, uint64_t window, uint64_t peer_window)
    : session_(&session), id_(id), window_(window), duplex_(Duplex::make_private(window)),
      from_host_(duplex_->incoming(1)), to_host_(duplex_->outgoing(1)), state_(window, peer_window) {}

void SessionStream::attach() noexcept {
    from_host_.set_reader_waker(this);
}

void SessionStream::detach() noexcept {
    if (broadcast_) broadcast_->leave(*this);
    from_host_.set_reader_waker(nullptr);
}

// The host's thread has written, has finished, or needs room.
void SessionStream::wake_reader() noexcept {
    session_->wake(*this);
}

void SessionStream::taken() noexcept {
    if (state_.grant(to_host_.taken())) session_->wake(*this);
}

// ---- in an external context: the host's thread does the work of the loop --------------------------------------------

bool SessionStream::drives() const noexcept {
    return session_->context().external() && session_->channel().polls();
}

// Polls for bytes as long as that seems worthwhile. OK: done, or time to check; AGAIN: it is better to sleep now, in
// the loop.
template <class Done>
Status SessionStream::drive(Deadline &deadline, const Interrupted &interrupted, const Done &done) noexcept {
    constexpr int max_polls = 256, max_empty_polls = 64;
    Status status = MUSTER_OK;
    const bool driven = session_->context().drive([&](const auto &run_posted) {
        int empty_polls = 0;
        for (int looks = 0; looks < max_polls && !done() && !interrupted.now(); looks++) {
            run_posted(); // first what this thread has written
            const Status found = session_->channel().poll();
            empty_polls = found == MUSTER_OK ? 0 : empty_polls + 1;
            if (found != MUSTER_TIMEOUT && empty_polls < max_empty_polls && !deadline.look_once()) continue;
            if (!done()) status = MUSTER_AGAIN;
            return;
        }
    });
    return driven ? status : MUSTER_AGAIN;
}

// Received bytes pass through the pipe, which may contain the memory of the plug-in.
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

// Checks only the indices: the reading side of the pipe belongs to the loop.
bool SessionStream::from_host_empty() const noexcept {
    PipeControl &control = from_host_.control();
    return control.tail.load(std::memory_order_seq_cst) == control.head.load(std::memory_order_seq_cst);
}

void SessionStream::abort(uint64_t reason, const char *text, size_t text_bytes) noexcept {
    state_.set_abort(reason, {text, text_bytes});
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
    return {0, 0, static_cast<uint64_t>(session_->silence_.last_received_ns())};
}

// The peer's host has closed its stream: no reader is left for bytes that are written here.
void SessionStream::drop_outgoing() noexcept {
    if (std::exchange(closed_received_, true)) return;
    if (broadcast_) broadcast_->leave(*this);
    if (staged_bytes_ != 0) from_host_.consume(std::exchange(staged_bytes_, 0));
    from_host_.drop_reader();
}

// Both directions are over on its side: the bytes and their end are in the pipe already.
void SessionStream::end_by_peer() noexcept {
    duplex_->end(Error::make(MUSTER_E_PEER, "the peer has closed the stream"));
}

} // namespace muster
