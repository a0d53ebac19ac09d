// SPDX-License-Identifier: MIT
#include "plugin/upgrade.hpp"

#include "context/loop_watch.hpp"
#include "plugin/session.hpp"

namespace muster {

namespace {
constexpr int64_t route_timeout_ns = 3'000'000'000; // for each address: packets to it may vanish
}

Upgrade::Upgrade(Session &session, uint32_t id, const TransportOptions &options, std::string addresses)
    : context_(session.context()), session_(&session), id_(id), options_(options), addresses_(std::move(addresses)) {
    options_.retry_ns = 0;
}

Upgrade::~Upgrade() = default;

void Upgrade::next() noexcept {
    const Ref<Upgrade> alive(this);
    try {
        while (!addresses_.empty()) {
            const size_t end = std::min(addresses_.find('\n'), addresses_.size());
            const std::string text = addresses_.substr(0, end);
            addresses_.erase(0, end + 1);
            auto address = parse_address(text);
            if (!address || (address->scheme != "shm" && address->scheme != "tcp")) continue;
            const Ref<Transport> transport = Registry::of(context_).known(address->scheme);
            if (!timer_)
                timer_ = std::make_unique<LoopTimer>(context_.loop(),
                                                     [this] { done(Error::make(MUSTER_TIMEOUT, "not in time")); });
            timer_->start(route_timeout_ns, 0);
            {
                const std::lock_guard hold(lock_);
                trying_ = true;
            }
            return transport->dial(*address, options_, Ref<Dial>(this));
        }
    } catch (const std::bad_alloc &) {
        return done(Error::make(MUSTER_E_NOMEM, "out of memory"));
    }
    if (const Ref<Session> session = std::move(session_)) {
        timer_.reset();
        session->upgraded(id_, Error::make(MUSTER_E_UNREACHABLE, "nowhere"));
    }
}

void Upgrade::done(Result<Ref<Stream>> result) noexcept {
    Ref<Attempt> over; // destroyed without the lock
    {
        const std::lock_guard hold(lock_);
        if (!std::exchange(trying_, false)) return; // too late: a stream closes with `result`
        over = std::move(attempt_);
        if (result) stream_ = std::move(*result);
    }
    if (over && result.error().status == MUSTER_TIMEOUT) over->stop();
    settle_.post(context_);
}

bool Upgrade::stop_by(Ref<Attempt> attempt) noexcept {
    const std::lock_guard hold(lock_);
    if (!trying_) return false;
    attempt_ = std::move(attempt);
    return true;
}

void Upgrade::settle() noexcept {
    const Ref<Session> session = session_;
    if (!session) return;
    Ref<Stream> stream;
    {
        const std::lock_guard hold(lock_);
        if (trying_) return;
        stream = std::move(stream_);
    }
    if (!stream) return next();
    session_.reset();
    timer_.reset();
    session->upgraded(id_, std::move(stream));
}

void Upgrade::stop() noexcept {
    session_.reset();
    timer_.reset();
    Ref<Attempt> attempt;
    {
        const std::lock_guard hold(lock_);
        trying_ = false;
        attempt = std::move(attempt_);
    }
    if (attempt) attempt->stop();
}

} // namespace muster
