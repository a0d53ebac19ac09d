// SPDX-License-Identifier: MIT
// What a link receives: by the loop, or by a thread of the host that reads, straight into its memory.
#include "transport/link.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace muster {

namespace {
constexpr size_t turn_bytes = 1024 * 1024;      // received for one link before others have their turn
constexpr size_t small_bytes = 4096;            // a target so small is filled from the stage
constexpr size_t stage_bytes = 32 * 1024;       // on the stack, after a small target
constexpr size_t max_staged_target = 32 * 1024; // larger targets have no stage after them
constexpr int max_slots = 8;                    // frames received by one call
// Payload received by one call: a quarter of the usual window, after which the peer is granted more. A call that takes
// more lets the peer run out of credit, and then one side always waits for the other.
constexpr size_t call_bytes = frame_data_max;
constexpr uint32_t spin_trial_turns = 128; // polls of the socket; 20 to 40 us
constexpr uint32_t max_spin_turns = 192;
} // namespace

// ---- by the loop ----------------------------------------------------------------------------------------------------

void Link::read_by_loop(bool to_the_end) noexcept {
    TryLock &rx = receiver_.lock;
    rx.request_recheck();
    while (rx.try_lock()) {
        rx.begin_check();
        const Read result = read(hub_.staging(), Hub::staging_bytes, turn_bytes, to_the_end);
        discard_incoming();
        const bool again = rx.unlock();
        if (result == Read::enough) return receiver_.watch_input();
        if (!again) return;
    }
}

bool Link::has_received(ssize_t n) noexcept {
    if (n > 0) heard_.store(true, std::memory_order_relaxed);
    if (n < 0) {
        const int why = receiver_.end_errno();
        // Reset: the peer ended before it had read all that was sent to it.
        const bool has_ended = why == 0 || why == ECONNRESET;
        on_lost(why, has_ended ? "the connection ended without a goodbye" : "the connection broke");
    }
    return n > 0;
}

// Receives the available bytes into the pipe, about `max_bytes` of them. A short answer of a stream socket means that
// it is empty, and later bytes raise another edge; only if the end has arrived already (`to_the_end`) it has to be read
// until the end.
Link::Read Link::read(unsigned char *staging, size_t size, size_t max_bytes, bool to_the_end) noexcept {
    Read result = Read::nothing;
    for (size_t all = 0; !is_over();) {
        if (all >= max_bytes) return Read::enough;
        const ssize_t n = receiver_.receive(staging, size);
        count_io();
        if (!has_received(n)) return result;
        if (const Status status = reader_.feed(staging, static_cast<size_t>(n), *this); status < 0) {
            fail_reading(status);
            return result;
        }
        result = Read::some;
        all += static_cast<size_t>(n);
        if (receiver_.was_short() && !to_the_end) return result;
    }
    return result;
}

// ---- by a thread of the host ----------------------------------------------------------------------------------------

// The destination of payload: the memory of the reading thread, then the pipe.
class Link::Target final : public FrameSink {
  public:
    Target(Link &link, void *data, size_t capacity) noexcept
        : link_(link), begin_(static_cast<unsigned char *>(data)), at_(begin_), end_(begin_ + capacity) {}
    unsigned char *at() const noexcept { return at_; }
    size_t room() const noexcept { return static_cast<size_t>(end_ - at_); }
    size_t bytes() const noexcept { return static_cast<size_t>(at_ - begin_); }

    Status on_data(uint32_t stream, const unsigned char *data, size_t size) noexcept override {
        const size_t here = std::min(size, room());
        if (here < size) {
            if (const Status status = link_.on_data(stream, data + here, size - here); status < 0) return status;
        }
        if (here == 0) return MUSTER_OK;
        if (const Status status = link_.count_received(here); status < 0) return status;
        if (data != at_) memmove(at_, data, here); // it is at its destination unless a prediction failed
        at_ += here;
        link_.direct_.fetch_add(here, std::memory_order_relaxed); // its reader's own: the caller holds the read lock
        return MUSTER_OK;
    }
    Status on_frame(FrameType type, uint32_t stream, const unsigned char *payload, size_t size) noexcept override {
        return link_.on_frame(type, stream, payload, size);
    }

  private:
    Link &link_;
    unsigned char *const begin_, *at_, *const end_;
};

// A scattered receive that puts payload where it belongs and headers aside, if frames are as long as predicted. If they
// are not, feeding the regions in order moves the payload down; only where that would overwrite bytes not yet read they
// are copied away first.
struct Link::Plan {
    iovec spans[2 * max_slots + 2];
    int count = 0;
    unsigned char slots[max_slots][frame_header_bytes];
    unsigned char stage[stage_bytes];

    Plan(const FrameReader &reader, const Target &target) noexcept {
        size_t room = std::min(target.room(), call_bytes);
        unsigned char *to = target.at();
        const auto add = [&](size_t size) {
            const size_t k = std::min(room, size);
            spans[count++] = {to, k};
            to += k, room -= k;
        };
        size_t header = reader.header_left();
        if (target.room() <= small_bytes && reader.data_left() == 0) { // one copy more, one entry less
            spans[count++] = {stage, sizeof stage};
            return;
        }
        if (reader.data_left() != 0) add(reader.data_left()), header = frame_header_bytes;
        // Long frames come in a row, all of one length; short ones have any length.
        const size_t last = reader.last_data_length();
        const size_t payload = last >= small_bytes ? last : frame_data_max;
        for (int slot = 0; header != 0 && room != 0 && slot < max_slots; slot++) {
            spans[count++] = {slots[slot], header};
            add(payload);
            header = frame_header_bytes;
        }
        if (count == 0 || target.room() < max_staged_target) spans[count++] = {stage, sizeof stage};
    }

    size_t room() const noexcept {
        size_t all = 0;
        for (int i = 0; i < count; i++) all += spans[i].iov_len;
        return all;
    }

    Status feed(size_t size, FrameReader &reader, Target &target) noexcept {
        for (int i = 0; i < count && size != 0; i++) {
            const auto *from = static_cast<unsigned char *>(spans[i].iov_base);
            const size_t k = std::min(size, spans[i].iov_len);
            const bool in_target = i + 1 < count && (i % 2 == (spans[0].iov_base == slots[0] ? 1 : 0));
            const unsigned char *next = in_target ? from : i + 1 < count ? bytes_at(i + 1) : nullptr;
            const bool aside = reader.header_left() >= k && !in_target; // it is a header, or part of one
            const size_t out = aside || in_target ? 0 : k;
            if (next != nullptr && next != stage && target.room() != 0 && target.at() + out > next)
                return feed_copied(i, size, reader, target);
            if (const Status status = reader.feed(from, k, target); status < 0) return status;
            size -= k;
        }
        return MUSTER_OK;
    }

  private:
    const unsigned char *bytes_at(int i) const noexcept { return static_cast<unsigned char *>(spans[i].iov_base); }
    Status feed_copied(int first, size_t size, FrameReader &reader, Target &target) noexcept {
        try {
            std::vector<unsigned char> copy;
            copy.reserve(size);
            for (int i = first; i < count && size != 0; i++) {
                const size_t k = std::min(size, spans[i].iov_len);
                copy.insert(copy.end(), bytes_at(i), bytes_at(i) + k);
                size -= k;
            }
            return reader.feed(copy.data(), copy.size(), target);
        } catch (const std::bad_alloc &) {
            return MUSTER_E_NOMEM;
        }
    }
};

int Link::receive_once(Target &target) noexcept {
    Plan plan(reader_, target);
    ssize_t n;
    if (plan.count == 1) {
        n = receiver_.receive(plan.spans[0].iov_base, plan.spans[0].iov_len);
    } else {
        msghdr message{};
        message.msg_iov = plan.spans;
        message.msg_iovlen = static_cast<size_t>(plan.count);
        n = receiver_.receive(message, plan.room());
    }
    caller_io_.fetch_add(1, std::memory_order_relaxed);
    if (!has_received(n)) return is_over() ? -1 : 0;
    const Status status = plan.feed(static_cast<size_t>(n), reader_, target);
    if (status >= 0) return 1;
    fail_reading(status);
    return -1;
}

// `request`: the holder of the lock has to ensure that incoming bytes are read when it leaves.
bool Link::claim(bool request) noexcept {
    TryLock &rx = receiver_.lock;
    if (request ? !rx.acquire_or_request() : !rx.try_lock()) return false;
    rx.begin_check();
    receiver_.count_visit();
    return true;
}

// If another thread waits for bytes, the loop receives from now on.
void Link::release_rx() noexcept {
    if (receiver_.lock.unlock() || starved_.load(std::memory_order_seq_cst)) receiver_.watch_input();
}

Carrier::Moved Link::receive(void *data, size_t capacity, Deadline &deadline, const Interrupted &interrupted,
                             bool expected) noexcept {
    answered_.store(true, std::memory_order_relaxed);
    if (pauses_.load(std::memory_order_relaxed) && !deadline.look_once()) kick(); // perhaps the peer answers that
    if (shared_ || is_over() || !claim(true)) return {MUSTER_AGAIN, 0};
    if (has_input()) { // bytes that arrived meanwhile come first
        release_rx();
        return {MUSTER_OK, 0};
    }
    // Sealed frames are opened on the way into the pipe.
    Target target(*this, data, sealed_ ? 0 : capacity);
    const bool waits = may_block_ && !deadline.look_once();
    Status status = MUSTER_OK;
    // If the last polls found no bytes, the sleep comes first: it ends at once if there are some.
    bool look = !waits || !receiver_.is_drained() || !polls_empty_ || !receiver_.can_sleep();
    bool owned = false;
    for (;;) {
        const int got = look ? receive_once(target) : 0;
        if (got < 0 || target.bytes() != 0 || has_input() || duplex_->is_ended()) break;
        if (!waits) {
            status = MUSTER_TIMEOUT;
            break;
        }
        if (got > 0) { // frames without payload for the host: however many arrive, they do not prolong the wait
            if (interrupted.now()) break;
            if (!deadline.passed()) continue;
            status = MUSTER_TIMEOUT;
            break;
        }
        if (!std::exchange(owned, true)) {
            polls_empty_ = true;
            receiver_.take_from_loop();
        }
        if (expected && spin(target)) break;
        expected = false;
        if (interrupted.now()) break;
        Receiver::Sleep slept = receiver_.sleep(deadline, [&] { return interrupted.now() || is_over(); });
        if (slept == Receiver::Sleep::no_descriptor) { // short sleeps instead of an interrupt
            pollfd one{fd_.get(), POLLIN, 0};
            timespec moment{0, 10'000'000};
            uncancelled::wait_poll(&one, 1, &moment);
            slept = deadline.passed() ? Receiver::Sleep::timeout : Receiver::Sleep::woken;
        }
        if (slept == Receiver::Sleep::timeout) {
            status = MUSTER_TIMEOUT;
            break;
        }
        if (interrupted.now()) break;
        look = true;
    }
    if (!owned || ++sleeps_ % 16 == 0) polls_empty_ = false; // try again from time to time
    const size_t bytes = target.bytes();
    release_rx();
    if (waits && !watched_.load(std::memory_order_seq_cst)) receiver_.expect_host();
    return {bytes != 0 ? MUSTER_OK : status, bytes};
}

// Polls for a moment. True: bytes arrived.
bool Link::spin(Target &target) noexcept {
    if (spin_turns_ == 0) {
        if (spin_pause_ != 0) {
            spin_pause_--;
            return false;
        }
        spin_turns_ = spin_trial_turns; // try whether it pays
    }
    for (uint32_t i = 0; i < spin_turns_; i++) {
        const int got = receive_once(target);
        if (got < 0 || target.bytes() != 0 || has_input()) {
            spin_turns_ = std::min(2 * i + 16, max_spin_turns);
            spins_lost_ = 0;
            return true;
        }
    }
    spin_turns_ = 0;
    spins_lost_ = std::min<uint32_t>(spins_lost_ + 1, 6);
    spin_pause_ = 128u << spins_lost_;
    return false;
}

// ---- frames; rx lock held -------------------------------------------------------------------------------------------

Status Link::count_received(size_t size) noexcept {
    if (state_.finish_received) return reader_.complain("data after the end of the data");
    if (!state_.count_received(size) || shared_) return reader_.complain("more data than was granted");
    return MUSTER_OK;
}

// rx lock held. Once the host has closed its stream, what arrives is discarded, and its credit is granted again: the
// peer may have closed, too, and have bytes left. Two links that both waited for credit to send their rest would wait
// for each other.
void Link::discard_incoming() noexcept {
    if (shared_ || !closing_.load(std::memory_order_seq_cst) || is_over() || !in_.reader_gone()) return;
    if (!state_.grant(state_.received())) return;
    wants_.fetch_or(wants_credit, std::memory_order_seq_cst);
    kick();
}

Status Link::on_data(uint32_t, const unsigned char *data, size_t size) noexcept {
    if (const Status status = count_received(size); status < 0) return status;
    if (in_.reader_gone()) { // the host has closed its stream
        discard_incoming();
        return MUSTER_OK;
    }
    size_t moved = 0;
    if (in_.push(data, size, moved) < 0 || moved != size) return MUSTER_E_NOMEM;
    return MUSTER_OK;
}

Status Link::on_frame(FrameType type, uint32_t, const unsigned char *payload, size_t size) noexcept {
    if (goodbye_received_) return reader_.complain("bytes after the goodbye");
    switch (type) {
    case FrameType::credit:
        if (!state_.add_credit(get_u64(payload))) return reader_.complain("more credit than its window");
        // pairs with pump(): it sets starved_, then checks the credit.
        if (starved_.exchange(false, std::memory_order_seq_cst)) kick();
        break;
    case FrameType::finish:
        if (std::exchange(state_.finish_received, true)) return reader_.complain("data after the end of the data");
        if (!shared_) in_.finish();
        break;
    case FrameType::abort:
        peer_over_.store(true, std::memory_order_seq_cst);
        duplex_->end(aborted_by_peer(payload, size));
        post_turn();
        break;
    case FrameType::goodbye:
        goodbye_received_ = state_.finish_received = true;
        // After an abort there is no orderly end.
        if (!peer_over_.exchange(true, std::memory_order_seq_cst) && !shared_) in_.finish();
        duplex_->end(Error::make(MUSTER_E_PEER, "the peer has closed the stream"));
        post_turn();
        break;
    default: // a heartbeat
        break;
    }
    return MUSTER_OK;
}

} // namespace muster
