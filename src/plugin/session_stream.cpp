// SPDX-License-Identifier: MIT
// One stream of a session, as its host's threads see it.
#include "plugin/broadcast.hpp"
#include "plugin/session.hpp"

#include <algorithm>
#include <sched.h>

namespace muster {

namespace {
// Writes from this size on are sent from the memory of the caller; smaller ones gather in the pipe. The latter of each
// pair is for fabrics that move messages while both sides poll.
constexpr size_t direct_from = 128 * 1024, direct_from_if_polled = 32 * 1024;
constexpr size_t polled_piece = 32 * 1024; // copied between two polls
} // namespace

SessionStream::SessionStream(Session &session, uint32_t id, uint64_t window, uint64_t peer_window)
    : session_(&session), id_(id), window_(window), duplex_(Duplex::make_private(window)),
      from_host_(duplex_->incoming(1)), to_host_(duplex_->outgoing(1)), state_(window, peer_window),
      needs_polls_(session.channel().needs_polls()) {}

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

// ---- a waiting thread of the host does the work of the loop
// ----------------------------------------------------------

bool SessionStream::drives() const noexcept {
    return session_->channel().polls();
}

// Works and polls, and waits in the loop once there is nothing to poll for: another thread that served the loop would
// have to wake this one. OK: done, or time to check; AGAIN: another thread drives.
template <class Done, class Work>
Status SessionStream::drive_until(Deadline &deadline, const Done &done, const Work &work) noexcept {
    constexpr int max_polls = 256, max_empty_polls = 64;
    Status status = MUSTER_OK;
    const bool driven = session_->context().drive(!deadline.look_once(), done, [&](Context::Driver &driver) {
        int empty_polls = 0;
        for (int looks = 0; looks < max_polls; looks++) {
            driver.run_posted(); // first what this thread has written
            work();
            if (done()) return;
            const Status found = session_->channel().poll();
            if (done()) return;
            if (deadline.look_once()) {
                status = MUSTER_AGAIN;
                return;
            }
            empty_polls = found == MUSTER_OK ? 0 : empty_polls + 1;
            if (found == MUSTER_TIMEOUT) {
                if ((status = driver.wait(deadline, done)) != MUSTER_OK) break;
            } else if (empty_polls >= max_empty_polls) {
                sched_yield(); // the other side may need this core
            }
        }
    });
    if (!driven || status < 0) status = MUSTER_AGAIN;
    if (status == MUSTER_TIMEOUT || done()) return MUSTER_OK;
    return status;
}

// Received bytes pass through the pipe, which may contain the memory of the plug-in.
Carrier::Moved SessionStream::receive(void *, size_t, Deadline &deadline, const Interrupted &interrupted,
                                      bool) noexcept {
    if (!drives()) return {MUSTER_AGAIN, 0};
    const auto done = [&] { return to_host_.readable() != 0 || to_host_.finished() || interrupted.now(); };
    return {drive_until(deadline, done, [] {}), 0};
}

// Large writes are copied from the memory of the caller into the segment that is sent, not through the pipe.
Carrier::Moved SessionStream::send(const void *data, size_t size, Deadline &deadline,
                                   const Interrupted &interrupted) noexcept {
    if (size < (needs_polls_ ? direct_from_if_polled : direct_from) || !drives()) return {MUSTER_AGAIN, 0};
    size_t moved = 0;
    const auto *const from = static_cast<const unsigned char *>(data);
    const auto done = [&] { return moved == size || from_host_.reader_gone() || interrupted.now(); };
    const auto send = [&] { moved += session_->send_directly(*this, from + moved, size - moved); };
    const Status status = drive_until(deadline, done, send);
    return {moved == size ? Status{MUSTER_OK} : status, moved};
}

Carrier::Moved SessionStream::send_now(const void *data, size_t size) noexcept {
    Deadline look(0);
    return send(data, size, look, Asks([] { return false; }));
}

size_t SessionStream::copies_at_once() const noexcept {
    return needs_polls_ ? polled_piece : SIZE_MAX;
}

void SessionStream::interrupt() noexcept {
    session_->context().interrupt_driver();
}

Status SessionStream::drive(Deadline &deadline, const Interrupted &until) noexcept {
    return drives() ? drive_until(
                          deadline, [&] { return until.now(); }, [] {})
                    : Status{MUSTER_AGAIN};
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
