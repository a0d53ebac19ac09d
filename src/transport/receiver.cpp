// SPDX-License-Identifier: MIT
#include "transport/receiver.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>

namespace muster {

namespace {
constexpr int64_t min_check_ns = 10'000'000;
} // namespace

Receiver::~Receiver() {
    hub_.give_notifier(notifier_); // the socket is closed, and so no longer in its epoll
}

// ---- the loop -------------------------------------------------------------------------------------------------------

Result<void> Receiver::start(int fd, bool output) noexcept {
    const std::lock_guard hold(interest_lock_);
    hung_up_ = drained_ = false;
    if (auto added = hub_.add(fd, EPOLLIN | EPOLLRDHUP | (output ? uint32_t{EPOLLOUT} : 0), owner_); !added)
        return added.error();
    fd_ = fd;
    input_ = true;
    output_ = output;
    return {};
}

void Receiver::stop() noexcept {
    const std::lock_guard hold(interest_lock_);
    if (fd_ < 0) return;
    return_to_loop();
    hub_.remove(fd_, owner_);
    fd_ = -1;
    input_ = output_ = false;
}

// Interest lock held.
void Receiver::set_interest(bool input, bool output) noexcept {
    if (fd_ < 0) return;
    input_ = input;
    output_ = output;
    const uint32_t events = EPOLLRDHUP | (input ? uint32_t{EPOLLIN} : 0) | (output ? uint32_t{EPOLLOUT} : 0);
    hub_.modify(fd_, events, owner_);
}

void Receiver::watch_input() noexcept {
    const std::lock_guard hold(interest_lock_);
    set_interest(true, output_);
}

void Receiver::watch_output() noexcept {
    const std::lock_guard hold(interest_lock_);
    set_interest(input_, true);
}

void Receiver::rearm() noexcept {
    const std::lock_guard hold(interest_lock_);
    set_interest(input_, output_);
}

void Receiver::ignore_output() noexcept {
    const std::lock_guard hold(interest_lock_);
    if (output_) set_interest(input_, false);
}

bool Receiver::take_from_loop() noexcept {
    const std::lock_guard hold(interest_lock_);
    if (!input_) return false;
    set_interest(false, output_);
    return true;
}

// ---- threads of the host --------------------------------------------------------------------------------------------

ssize_t Receiver::result(ssize_t n, size_t size) noexcept {
    const int why = errno;
    // EINTR: of a call that waits; the caller checks again.
    drained_ = n < static_cast<ssize_t>(size) && !(n < 0 && why == EINTR);
    if (n > 0) return n;
    if (n < 0 && why == EINTR) return 0;
    if (n < 0 && (why == EAGAIN || why == EWOULDBLOCK)) return 0;
    end_errno_ = n == 0 ? 0 : why;
    return -1;
}

bool Receiver::take_notifier() noexcept {
    auto notifier = hub_.take_notifier();
    if (!notifier) return false;
    epoll_event wanted{};
    wanted.events = EPOLLIN | EPOLLRDHUP | EPOLLET; // also reports bytes that are in the socket already
    if (epoll_ctl(notifier->epoll, EPOLL_CTL_ADD, fd_, &wanted) != 0) {
        hub_.give_notifier(*notifier);
        return false;
    }
    notifier_ = *notifier;
    return true;
}

bool Receiver::wait(Deadline &deadline) noexcept {
    const int64_t left = deadline.left();
    const int ms = left < 0 ? -1 : static_cast<int>(std::min<int64_t>((left + 999'999) / 1'000'000, INT_MAX));
    epoll_event event{};
    const bool in_time = uncancelled::wait_epoll(notifier_.epoll, &event, 1, ms) != 0;
    if (event.events & hang_up) hung_up_ = true;
    return in_time;
}

void Receiver::wake() noexcept {
    const int event = sleeper_.load(std::memory_order_seq_cst);
    if (event < 0) return;
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = uncancelled::write(event, &one, sizeof one);
}

void Receiver::return_to_loop() noexcept {
    if (notifier_.event < 0) return;
    epoll_ctl(notifier_.epoll, EPOLL_CTL_DEL, fd_, nullptr);
    hub_.give_notifier(std::exchange(notifier_, {}));
}

// ---- has the host stopped? ------------------------------------------------------------------------------------------

void Receiver::start_check() noexcept {
    check_ns_ = min_check_ns;
    hub_.start_timer(check_timer_, now_ns() + check_ns_);
}

void Receiver::check() noexcept {
    const uint32_t visits = visits_.load(std::memory_order_relaxed);
    if (std::exchange(visits_seen_, visits) != visits) {
        check_ns_ = std::min(2 * check_ns_, max_check_ns_);
        hub_.start_timer(check_timer_, now_ns() + check_ns_);
        return;
    }
    host_expected_.store(false, std::memory_order_seq_cst); // before the lock is tried: pairs with expect_host()
    if (!lock.try_lock()) return; // a thread sleeps inside, and calls expect_host() when it leaves
    lock.begin_check();
    owner_.host_stopped_receiving();
}

} // namespace muster
