// SPDX-License-Identifier: MIT
#include "store.hpp"
#include "task.hpp"

#include <cstdio>
#include <random>

namespace etcd {

namespace {
constexpr int lease_exists = 9; // FailedPrecondition: an attempt whose answer was lost
} // namespace

Session::~Session() {
    stop_keeping();
}

void Session::wait(Task &task) {
    waiting_.insert(&task);
    if (!granting_) grant();
}

void Session::grant() {
    static_assert(sizeof(std::random_device::result_type) >= 4);
    std::random_device random;
    lease_ = 0;
    while (lease_ == 0) lease_ = (uint64_t{random()} << 32 | random()) >> 1; // etcd's ids are signed
    granting_ = true;
    granted_ = false;
    const std::string body =
        "{\"TTL\":\"" + std::to_string(ttl_seconds) + "\",\"ID\":\"" + std::to_string(lease_) + "\"}";
    client_.call("/v3/lease/grant", body, [this](Reply &reply) {
        granting_ = false;
        granted_ = reply.ok() || (reply.code == lease_exists && reply.doubt);
        const std::set<Task *> waiting = std::move(waiting_);
        waiting_.clear();
        if (granted_) keep();
        for (Task *const task : waiting) granted_ ? task->session_ready() : task->session_failed(reply.failure);
    });
}

void Session::keep() {
    const auto due = [](void *self) {
        Session &session = *static_cast<Session *>(self);
        session.look([](bool) {});
    };
    stop_keeping();
    client_.host()->start_timer(client_.host(), ttl_seconds * second / 3, ttl_seconds * second / 3, due, this, &timer_);
}

void Session::stop_keeping() noexcept {
    client_.host()->stop_timer(timer_);
    timer_ = nullptr;
}

void Session::look(std::function<void(bool)> then) {
    const uint64_t looked_at = lease_;
    client_.call("/v3/lease/keepalive", "{\"ID\":\"" + std::to_string(looked_at) + "\"}",
                 [this, looked_at, then = std::move(then)](Reply &reply) {
                     const auto result = reply.body.find("result");
                     const bool alive = reply.ok() && result != reply.body.end() && number_in(*result, "TTL") != 0;
                     if (reply.ok() && !alive && lease_ == looked_at) over();
                     then(alive);
                 });
}

void Session::over() noexcept {
    granted_ = false;
    slots_.clear();
    stop_keeping();
}

std::unique_ptr<Slot> Session::take_slot() {
    if (!slots_.empty()) {
        std::unique_ptr<Slot> slot = std::move(slots_.back());
        slots_.pop_back();
        return slot;
    }
    char name[48];
    snprintf(name, sizeof name, "%016llx/%llu", static_cast<unsigned long long>(lease_),
             static_cast<unsigned long long>(next_slot_++));
    return std::make_unique<Slot>(Slot{marks_ + name, 0});
}

void Session::give_back(std::unique_ptr<Slot> slot, uint64_t lease) {
    if (lease == lease_ && granted_) slots_.push_back(std::move(slot));
}

void Session::end(std::function<void()> then) {
    stop_keeping();
    if (!granted_) return then();
    granted_ = false;
    client_.call("/v3/lease/revoke", "{\"ID\":\"" + std::to_string(lease_) + "\"}",
                 [then = std::move(then)](Reply &) { then(); });
}

} // namespace etcd
