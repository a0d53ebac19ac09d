// SPDX-License-Identifier: MIT
#include "context/loop_watch.hpp"

#include "base/time.hpp"

#include <algorithm>
#include <sys/epoll.h>

namespace muster {

class LoopTimer::State final : public Object {
  public:
    State(Loop &loop, std::function<void()> due) : loop_(loop), due_(std::move(due)) {}
    void start(int64_t after_ns, int64_t repeat_ns) noexcept {
        repeat_ns_ = repeat_ns;
        loop_.start_timer(timer_, muster::now_ns() + std::max<int64_t>(after_ns, 0));
    }
    void stop() noexcept { loop_.stop_timer(timer_); }

  private:
    void due() noexcept {
        if (repeat_ns_ > 0) start(repeat_ns_, repeat_ns_);
        due_();
    }

    Loop &loop_;
    const std::function<void()> due_;
    int64_t repeat_ns_ = 0;
    Timer<State, &State::due> timer_{*this};
};

LoopTimer::LoopTimer(Loop &loop, std::function<void()> due) : state_(make_ref<State>(loop, std::move(due))) {}

LoopTimer::~LoopTimer() {
    state_->stop();
}

void LoopTimer::start(int64_t after_ns, int64_t repeat_ns) noexcept {
    state_->start(after_ns, repeat_ns);
}

class LoopWatch::State final : public Object, public Watch {
  public:
    State(Loop &loop, int fd, std::function<void(uint32_t)> ready) : loop_(loop), fd_(fd), ready_(std::move(ready)) {}
    // Paused is edge-triggered: epoll reports failures also if no event is requested.
    Result<void> begin() noexcept { return loop_.watch(*this, fd_, EPOLLET); }
    void set_events(uint32_t events) noexcept {
        events_ = events;
        loop_.modify(*this, fd_, events != 0 ? events : uint32_t{EPOLLET});
    }
    void end() noexcept {
        events_ = 0;
        loop_.unwatch(*this, fd_);
    }

  private:
    static constexpr uint32_t all = EPOLLIN | EPOLLOUT | EPOLLRDHUP;
    void on_events(uint32_t events) noexcept override {
        if (events_ == 0) return; // paused, or ended by an earlier event of this turn
        if (events & EPOLLHUP) events |= events_;
        ready_(events & EPOLLERR ? all : events & all);
    }
    Object &watch_owner() noexcept override { return *this; }

    Loop &loop_;
    const int fd_;
    const std::function<void(uint32_t)> ready_;
    uint32_t events_ = 0;
};

Result<std::unique_ptr<LoopWatch>> LoopWatch::make(Loop &loop, int fd, std::function<void(uint32_t)> ready) {
    auto watch = std::unique_ptr<LoopWatch>(new LoopWatch);
    auto state = make_ref<State>(loop, fd, std::move(ready));
    if (auto begun = state->begin(); !begun) return begun.error();
    watch->state_ = std::move(state);
    return watch;
}

LoopWatch::~LoopWatch() {
    if (state_) state_->end();
}

void LoopWatch::set_events(uint32_t events) noexcept {
    state_->set_events(events);
}

} // namespace muster
