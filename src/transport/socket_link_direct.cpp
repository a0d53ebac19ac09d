// SPDX-License-Identifier: MIT
// System calls of the host's own threads: a read that waits sleeps on the socket, a write goes out from the caller's
// memory, and no other thread has to be woken for either.
#include "base/uncancelled.hpp"
#include "transport/socket_link.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

namespace muster {

namespace {
constexpr size_t small_bytes = 4096;         // a write worth gathering with others
constexpr int64_t streaming_gap_ns = 20'000; // between small writes that follow each other
constexpr uint32_t streaming_after = 2;      // so many in a row without a read in between
constexpr size_t stage_bytes = 32 * 1024;    // of the stack, behind a small target
constexpr size_t staged_below = 32 * 1024;   // targets so small have a stage behind them
constexpr int most_slots = 8;                // frames received by one call
constexpr size_t send_frame_bytes = frame_data_max;
constexpr int most_send_frames = 4;
constexpr size_t copied_bytes = 1024;      // a payload so small is sent from a copy behind its header
constexpr uint32_t spin_trial_turns = 128; // looks at the socket; 20 to 40 us
constexpr uint32_t spin_most_turns = 192;
} // namespace

// ---- receiving ------------------------------------------------------------------------------------------------------

// Where payload goes: into the caller's memory, then into the pipe.
class SocketLink::Target final : public FrameSink {
  public:
    Target(SocketLink &link, void *data, size_t capacity) noexcept
        : link_(link), begin_(static_cast<unsigned char *>(data)), at_(begin_), end_(begin_ + capacity) {}
    unsigned char *at() const noexcept { return at_; }
    size_t room() const noexcept { return static_cast<size_t>(end_ - at_); }
    size_t bytes() const noexcept { return static_cast<size_t>(at_ - begin_); }

    Status on_data(const unsigned char *data, size_t size) noexcept override {
        const size_t here = std::min(size, room());
        if (here < size) {
            if (const Status status = link_.on_data(data + here, size - here); status < 0) return status;
        }
        if (here == 0) return MUSTER_OK;
        if (link_.count_in(here) < 0) return link_.reader_.complain("more data than was allowed for");
        if (data != at_) memmove(at_, data, here); // it lies where it belongs unless a prediction failed
        at_ += here;
        link_.direct_.fetch_add(here, std::memory_order_relaxed); // its reader's own: the caller holds the read lock
        return MUSTER_OK;
    }
    Status on_credit(uint64_t bytes) noexcept override { return link_.on_credit(bytes); }
    Status on_finish() noexcept override { return link_.on_finish(); }
    Status on_abort(uint64_t reason, const char *text, size_t size) noexcept override {
        return link_.on_abort(reason, text, size);
    }
    Status on_goodbye() noexcept override { return link_.on_goodbye(); }

  private:
    SocketLink &link_;
    unsigned char *const begin_, *at_, *const end_;
};

// A scattered receive that puts payload where it belongs and headers aside, if frames are as long as predicted. If they
// are not, feeding the regions in order moves the payload down; only where that would overwrite bytes not yet read they
// are copied away first.
struct SocketLink::Plan {
    iovec spans[2 * most_slots + 2];
    int count = 0;
    unsigned char slots[most_slots][frame_header_bytes];
    unsigned char stage[stage_bytes];

    Plan(const FrameReader &reader, const Target &target) noexcept {
        size_t room = target.room();
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
        // Long frames come in a row, all of one length; short ones of any.
        const size_t last = reader.last_data_length();
        const size_t payload = last >= small_bytes ? last : frame_data_max;
        for (int slot = 0; header != 0 && room != 0 && slot < most_slots; slot++) {
            spans[count++] = {slots[slot], header};
            add(payload);
            header = frame_header_bytes;
        }
        if (count == 0 || target.room() < staged_below) spans[count++] = {stage, sizeof stage};
    }

    ssize_t room() const noexcept {
        size_t all = 0;
        for (int i = 0; i < count; i++) all += spans[i].iov_len;
        return static_cast<ssize_t>(all);
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

int SocketLink::receive_once(Target &target) noexcept {
    for (;;) {
        Plan plan(reader_, target);
        ssize_t n;
        if (plan.count == 1) {
            n = uncancelled::receive(fd_.get(), plan.spans[0].iov_base, plan.spans[0].iov_len, MSG_DONTWAIT);
        } else {
            msghdr message{};
            message.msg_iov = plan.spans;
            message.msg_iovlen = static_cast<size_t>(plan.count);
            n = uncancelled::receive(fd_.get(), message, MSG_DONTWAIT);
        }
        const int why = errno;
        caller_io_.fetch_add(1, std::memory_order_relaxed);
        if (n < 0 && why == EINTR) continue;
        drained_ = n < plan.room();
        if (!took(n, why)) return over() ? -1 : 0;
        const Status status = plan.feed(static_cast<size_t>(n), reader_, target);
        if (status >= 0) return 1;
        fail_reading(status);
        return -1;
    }
}

// `wishes`: whoever has the lock is to see that what comes in is read when he leaves.
bool SocketLink::claim(bool wishes) noexcept {
    if (!rx_.try_lock()) {
        if (!wishes) return false;
        rx_.wish();
        if (!rx_.try_lock()) return false;
    }
    rx_.looked();
    visits_.store(visits_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); // a figure
    return true;
}

// Leaves the rx lock. If somebody else waits for what comes in, the loop receives from now on.
void SocketLink::leave_rx() noexcept {
    if (rx_.unlock() || starved_.load(std::memory_order_seq_cst)) wire_read_soon();
}

// The loop takes over again when no thread of the host has been inside for a while.
void SocketLink::stay_near() noexcept {
    if (near_.load(std::memory_order_seq_cst) || watched_.load(std::memory_order_seq_cst)) return;
    if (!near_.exchange(true, std::memory_order_seq_cst)) hub_.watch_over(*this);
}

Carrier::Moved SocketLink::receive(void *data, size_t capacity, Deadline &deadline, const Interrupted &interrupted,
                                   bool expected) noexcept {
    answered_.store(true, std::memory_order_relaxed);
    if (shared_ || over() || !claim(true)) return {MUSTER_AGAIN, 0};
    if (in_.readable() != 0 || in_.finished()) { // came in meanwhile: it is first
        leave_rx();
        return {MUSTER_OK, 0};
    }
    // Sealed frames are opened on their way into the pipe.
    Target target(*this, data, sealed_ ? 0 : capacity);
    const bool waits = may_block_ && !deadline.look_once();
    Status status = MUSTER_OK;
    // Where the last looks were in vain, the sleep comes first: it ends at once if there is something.
    bool look = !waits || !drained_ || !vain_ || hung_up_ || bell_in_.event < 0;
    bool owned = false;
    for (;;) {
        const int got = look ? receive_once(target) : 0;
        if (got < 0 || target.bytes() != 0 || in_.readable() != 0 || in_.finished() || duplex_->is_ended()) break;
        if (!waits) {
            status = MUSTER_TIMEOUT;
            break;
        }
        if (got > 0) { // frames with nothing for the host: however many come, they do not prolong the wait
            if (interrupted.now()) break;
            if (!deadline.passed()) continue;
            status = MUSTER_TIMEOUT;
            break;
        }
        if (!std::exchange(owned, true)) {
            vain_ = true;
            const std::lock_guard hold(interest_lock_);
            set_interest(false, interest_out_);
        }
        if (expected && spin(target)) break;
        expected = false;
        if (interrupted.now()) break;
        if (!sleep_in(deadline, interrupted)) {
            status = MUSTER_TIMEOUT;
            break;
        }
        if (interrupted.now()) break;
        look = true;
    }
    if (!owned || ++sleeps_ % 16 == 0) vain_ = false; // try again now and then
    const size_t bytes = target.bytes();
    leave_rx();
    if (waits) stay_near();
    return {bytes != 0 ? MUSTER_OK : status, bytes};
}

// Looks again and again for a moment. True: bytes came.
bool SocketLink::spin(Target &target) noexcept {
    if (spin_turns_ == 0) {
        if (spin_pause_ != 0) {
            spin_pause_--;
            return false;
        }
        spin_turns_ = spin_trial_turns; // try whether it pays
    }
    for (uint32_t i = 0; i < spin_turns_; i++) {
        const int got = receive_once(target);
        if (got < 0 || target.bytes() != 0 || in_.readable() != 0 || in_.finished()) {
            spin_turns_ = std::min(2 * i + 16, spin_most_turns);
            spins_lost_ = 0;
            return true;
        }
    }
    spin_turns_ = 0;
    spins_lost_ = std::min<uint32_t>(spins_lost_ + 1, 6);
    spin_pause_ = 128u << spins_lost_;
    return false;
}

// Sleeps until something comes in, an interrupt, or the deadline (false). Rx lock held.
bool SocketLink::sleep_in(Deadline &deadline, const Interrupted &interrupted) noexcept {
    if (bell_in_.event < 0) {
        auto bell = hub_.take_bell();
        epoll_event wanted{};
        wanted.events = EPOLLIN | EPOLLRDHUP | EPOLLET;
        if (bell && epoll_ctl(bell->epoll, EPOLL_CTL_ADD, fd_.get(), &wanted) != 0) {
            hub_.give_bell(*bell);
            bell = Error();
        }
        if (!bell) { // no descriptor: short sleeps instead of an interrupt
            pollfd one{fd_.get(), POLLIN, 0};
            timespec moment{0, 10'000'000};
            uncancelled::wait_poll(&one, 1, &moment);
            return !deadline.passed();
        }
        bell_in_ = *bell;
        event_in_.store(bell->event, std::memory_order_seq_cst);
    }
    waiting_in_.store(true, std::memory_order_seq_cst); // pairs with interrupt(): one of us sees the other
    bool in_time = true;
    if (!interrupted.now() && !over()) {
        const int64_t left = deadline.left();
        const int ms = left < 0 ? -1 : static_cast<int>(std::min<int64_t>((left + 999'999) / 1'000'000, INT_MAX));
        epoll_event event{};
        in_time = uncancelled::wait_epoll(bell_in_.epoll, &event, 1, ms) != 0;
        if (event.events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) hung_up_ = true; // told once: look each time from now on
    }
    waiting_in_.store(false, std::memory_order_relaxed); // a late interrupt rings for nobody: the next sleep is short
    return in_time;
}

// The loop receives again: what a sleeper needs goes back. Rx lock held.
void SocketLink::give_bell_in() noexcept {
    if (bell_in_.event < 0) return;
    epoll_ctl(bell_in_.epoll, EPOLL_CTL_DEL, fd_.get(), nullptr);
    event_in_.store(-1, std::memory_order_seq_cst);
    hub_.give_bell(std::exchange(bell_in_, {}));
}

// Sleeps until the socket takes more (if not starved), something comes in (if this thread reads), an interrupt, or the
// deadline (false).
bool SocketLink::sleep_out(bool reads, bool starved, Deadline &deadline, const Interrupted &interrupted) noexcept {
    const short events = static_cast<short>((starved ? 0 : POLLOUT) | (reads ? POLLIN : 0));
    pollfd both[2] = {{fd_.get(), events, 0}, {bell_out_.event, POLLIN, 0}};
    waiting_out_.store(true, std::memory_order_seq_cst); // pairs with interrupt()
    bool in_time = true;
    if (!interrupted.now() && !over()) {
        timespec left{}, *limit = nullptr;
        if (!deadline.endless()) {
            const int64_t ns = deadline.left();
            left = {ns / 1'000'000'000, ns % 1'000'000'000};
            limit = &left;
        }
        in_time = uncancelled::wait_poll(both, 2, limit) != 0;
        if (both[1].revents != 0) {
            uint64_t count;
            [[maybe_unused]] const ssize_t got = uncancelled::read(bell_out_.event, &count, sizeof count);
        }
    }
    waiting_out_.store(false, std::memory_order_relaxed);
    return in_time;
}

void SocketLink::interrupt() noexcept {
    const uint64_t one = 1;
    [[maybe_unused]] ssize_t written;
    if (waiting_in_.load(std::memory_order_seq_cst))
        written = uncancelled::write(event_in_.load(std::memory_order_seq_cst), &one, sizeof one);
    if (waiting_out_.load(std::memory_order_seq_cst))
        written = uncancelled::write(event_out_.load(std::memory_order_seq_cst), &one, sizeof one);
}

// ---- sending --------------------------------------------------------------------------------------------------------

// Small writes that follow each other closely are gathered in the pipe; the loop sends them in large frames.
bool SocketLink::streaming(size_t size) noexcept {
    if (size > small_bytes || answered_.exchange(false, std::memory_order_relaxed)) {
        small_run_ = 0;
        return false;
    }
    const int64_t now = now_ns();
    if (now - last_small_ns_ > streaming_gap_ns) small_run_ = 0;
    last_small_ns_ = now;
    return ++small_run_ > streaming_after;
}

// Sends bytes in frames, within the credit, by one system call. `rest`: of a frame begun, still to be sent. Tx lock
// held.
size_t SocketLink::send_frames(const unsigned char *data, size_t size, size_t &rest) noexcept {
    unsigned char headers[most_send_frames][frame_header_bytes];
    iovec spans[2 * most_send_frames];
    // Frames the pipe could take the rest of, if they are cut.
    const size_t most = std::min<size_t>(send_frame_bytes, out_.window());
    rest = 0;
    // acquire: pairs with on_credit().
    size = static_cast<size_t>(std::min<uint64_t>(size, usable_credit()));
    int frames = 0;
    size_t planned = 0;
    while (planned < size && frames < most_send_frames) {
        const size_t k = std::min(size - planned, most);
        put_frame_header(headers[frames], FrameType::data, k);
        spans[2 * frames] = {headers[frames], frame_header_bytes};
        spans[2 * frames + 1] = {const_cast<unsigned char *>(data) + planned, k};
        frames++;
        planned += k;
    }
    if (planned == 0) return 0;
    use_credit(planned);
    ssize_t n;
    if (planned <= copied_bytes) {
        unsigned char whole[frame_header_bytes + copied_bytes];
        memcpy(whole, headers[0], frame_header_bytes);
        memcpy(whole + frame_header_bytes, data, planned);
        n = send_bytes(whole, frame_header_bytes + planned);
    } else {
        n = send_spans(spans, 2 * frames);
    }
    if (n <= 0) {
        return_credit(planned);
        if (n != -EAGAIN && n != 0) {
            sending_broke(static_cast<int>(-n));
        }
        return 0;
    }
    sent_.store(true, std::memory_order_relaxed);
    size_t sent = static_cast<size_t>(n), moved = 0;
    for (int i = 0; i < frames && sent != 0; i++) {
        const size_t head = std::min(sent, frame_header_bytes), k = spans[2 * i + 1].iov_len;
        const size_t done = std::min(sent - head, k);
        sent -= head + done;
        spill_.add(headers[i] + head, frame_header_bytes - head);
        moved += done;
        planned -= k;
        rest = k - done;
    }
    return_credit(planned);
    return moved;
}

// The rest of a frame that was cut goes into the pipe, ahead of everything: the loop sends it. Tx lock held; the caller
// is the producer of the pipe, which is empty.
void SocketLink::keep_rest(const unsigned char *data, size_t size) noexcept {
    size_t moved = 0;
    unsent_.store(true, std::memory_order_release);
    out_.push(data, size, moved);
    if (moved != size) return fail(MUSTER_E_PEER, 0, "no memory for what goes out");
    open_left_ = size;
}

Carrier::Moved SocketLink::send_now(const void *data, size_t size) noexcept {
    if (shared_ || sealed_ || streaming(size) || !tx_.try_lock()) return {MUSTER_AGAIN, 0};
    tx_.looked();
    size_t moved = 0;
    if (tx_idle()) {
        const auto *from = static_cast<const unsigned char *>(data);
        size_t rest = 0;
        moved = send_frames(from, size, rest);
        if (rest != 0) keep_rest(from + moved, rest), moved += rest;
    }
    const bool whole = moved == size;
    if (!whole || open_left_ != 0) tx_.wish(); // what stands in the way is looked at
    give_tx();
    return {whole ? MUSTER_OK : MUSTER_AGAIN, moved};
}

Carrier::Moved SocketLink::send(const void *data, size_t size, Deadline &deadline,
                                const Interrupted &interrupted) noexcept {
    if (!may_block_) return send_now(data, size);
    if (shared_ || sealed_ || streaming(size) || !tx_.try_lock()) return {MUSTER_AGAIN, 0};
    tx_.looked();
    const auto *from = static_cast<const unsigned char *>(data);
    size_t moved = 0, rest = 0;
    Status status = MUSTER_OK;
    while (moved < size) {
        if (rest == 0) {
            if (!tx_idle()) pump(); // a credit, a heartbeat; or the end
            if (!tx_idle()) {
                status = MUSTER_AGAIN;
                break;
            }
            const size_t k = send_frames(from + moved, size - moved, rest);
            moved += k;
            if (k != 0) continue;
        } else {
            iovec spans[2] = {{spill_.data(), spill_.size()}, {const_cast<unsigned char *>(from) + moved, rest}};
            const bool spilled = !spill_.empty();
            const ssize_t n = send_spans(spilled ? spans : spans + 1, spilled ? 2 : 1);
            if (n > 0) {
                const size_t head = spilled ? std::min(static_cast<size_t>(n), spans[0].iov_len) : 0;
                if (spilled) spill_.took(head);
                moved += static_cast<size_t>(n) - head;
                rest -= static_cast<size_t>(n) - head;
                sent_.store(true, std::memory_order_relaxed);
                continue;
            }
            if (n != -EAGAIN && n != 0) {
                sending_broke(static_cast<int>(-n));
                break;
            }
        }
        if (send_broken_ || interrupted.now()) break;
        // Without credit the lock is given back meanwhile: others may have credit to send.
        const bool starved = rest == 0 && usable_credit() == 0;
        if (starved) give_tx();
        const Room room = await_room(starved, deadline, interrupted);
        if (starved && !tx_.try_lock()) return {MUSTER_AGAIN, moved};
        if (room == Room::elsewhere) status = MUSTER_AGAIN;
        if (room != Room::yes || interrupted.now()) break;
    }
    if (rest != 0 && !over()) keep_rest(from + moved, rest), moved += rest;
    if (moved < size || open_left_ != 0) tx_.wish();
    give_tx();
    return {moved == size ? MUSTER_OK : status, moved};
}

// Waits until the socket takes more, or the peer has given credit; reads what comes in meanwhile.
SocketLink::Room SocketLink::await_room(bool starved, Deadline &deadline, const Interrupted &interrupted) noexcept {
    if (bell_out_.event < 0) { // the writing host's own, as long as the link lives
        auto bell = hub_.take_bell();
        if (!bell) return Room::elsewhere;
        bell_out_ = *bell;
        event_out_.store(bell->event, std::memory_order_seq_cst);
    }
    const bool reads = claim(false);
    if (!reads && starved) return Room::elsewhere; // whoever reads will see the credit, and the pipe sends then
    if (reads) {
        const std::lock_guard hold(interest_lock_);
        set_interest(false, false);
    }
    bool in_time = true;
    if (!starved || usable_credit() == 0) in_time = sleep_out(reads, starved, deadline, interrupted);
    if (reads) {
        unsigned char staging[stage_bytes];
        pull(staging, sizeof staging, sizeof staging, true);
        leave_rx();
        stay_near();
    }
    return in_time && !deadline.passed() ? Room::yes : Room::no; // frames that bring no room do not prolong the wait
}

} // namespace muster
