// SPDX-License-Identifier: MIT
// When the endpoint polls, and when it sleeps.
//
// An endpoint that is awake polls MPI. After a time without messages it reports to the peers that have woken it that it
// sleeps (Control::sleeping with a count, see Link), and then costs nothing until its sockets wake it. That time is
// short and adapts: if a message arrives soon after it, the next one is longer.
//
// A send that MPI has not finished, or a message that was announced and has not arrived, needs both sides to poll,
// which a stopped peer does not do. So after a longer time without progress the endpoint sends Control::ping, and
// sleeps until the pong; the peer polls for a while before and after its pong. Two running endpoints progress together,
// an endpoint whose peer is stopped sleeps, and the control socket of a dead peer is closed.
#include "endpoint.hpp"
#include "error.hpp"

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <unistd.h>
#include <utility>

namespace mpi {

namespace {
constexpr int64_t us = 1'000, ms = 1'000'000;
constexpr int64_t min_spin = 5 * us, max_spin = 50 * us, short_sleep = 200 * us;
constexpr int64_t busy_ns = 1 * ms;      // a spell with unfinished business
constexpr int64_t boot_spin_ns = 2 * ms; // for the other ranks to load the plug-in; then at growing intervals
constexpr int64_t max_boot_wait_ns = 10 * ms;
constexpr int64_t drain_ns = 2 * ms;             // time without a further message from a dead peer
constexpr int64_t drain_announced_ns = 100 * ms; // but more was announced
constexpr int64_t drain_orderly_ns = 2'000 * ms;
constexpr int polls_per_turn = 16; // of the loop
constexpr int polls_when_waiting = 4;
// Turns without a message for each look at the clock, which takes a fifth of a poll.
constexpr uint32_t turns_per_look = 4;
} // namespace

int64_t spin_for(const Node &node) {
    if (const char *text = getenv("MUSTER_MPI_SPIN_US")) return std::clamp(atoll(text), 0ll, 1'000'000ll) * us;
    return node.crowded() ? 0 : max_spin;
}

// ---- getting a turn -------------------------------------------------------------------------------------------------

void Endpoint::wake() {
    last_ = now_ns();
    if (awake_ || !started_) return;
    if (slept_at_ != 0) // would longer polling have received it? (for so short a sleep most of the time is the wake-up)
        spin_ns_ =
            last_ - slept_at_ < short_sleep ? max_spin_ns_ : std::max(spin_ns_ / 2, std::min(min_spin, max_spin_ns_));
    begin_polling();
}

void Endpoint::begin_polling() {
    awake_ = true;
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(spin_fd_, &one, sizeof one);
}

void Endpoint::spun(void *self, uint32_t) {
    auto &endpoint = *static_cast<Endpoint *>(self);
    if (endpoint.awake_) endpoint.turn(polls_per_turn);
}

// A waiting thread drives this endpoint, and polls again and again while it is awake.
muster_status Endpoint::poll_once() {
    if (!started_ || !awake_ || !node_.usable_here()) return MUSTER_TIMEOUT;
    if (turn(polls_when_waiting)) return MUSTER_OK;
    return awake_ ? MUSTER_AGAIN : MUSTER_TIMEOUT;
}

// Any thread.
void Endpoint::post_wake() {
    host_->post(host_, wake_posted, this);
}

void Endpoint::wake_posted(void *self) {
    static_cast<Endpoint *>(self)->wake();
}

// ---- a turn ---------------------------------------------------------------------------------------------------------

bool Endpoint::turn(int polls) {
    dropped_.clear();
    bool moved = false;
    try {
        for (int i = 0; !moved && i < polls; i++) moved = poll();
    } catch (const std::exception &) {
        give_up("out of memory");
    }
    after_poll(moved);
    return moved;
}

void Endpoint::give_up(const std::string &why) {
    failed_ = true;
    log(host_, MUSTER_LOG_ERROR, "%s", why.c_str());
    lose_all(why);
}

bool Endpoint::poll() {
    bool moved = false, became = false;
    {
        const Node::Hold mpi(node_);
        if (failed_) return false;
        if (mpi && !was_ready_) became = node_.advance();
        if (mpi && (was_ready_ || became)) {
            if (sends_ != 0) moved |= finish_sends();
            moved |= take_messages();
            if (!receiving_from_.empty()) moved |= finish_receives();
            if (became) node_.test_orphans(); // of contexts before this one
        }
        may_use_mpi_ = static_cast<bool>(mpi);
    }
    if (!may_use_mpi_) {
        const std::string why = node_.failure();
        give_up(!why.empty() ? why
                             : "MPI was initialised with MPI_THREAD_FUNNELED, and the context is driven by another "
                               "thread than the one that did so");
        return false;
    }
    if (became) became_ready();
    if (moved) last_ = now_ns();
    if (!receiving_from_.empty()) deliver();
    return moved || became;
}

void Endpoint::after_poll(bool moved) {
    if (moved || ++turns_since_look_ % turns_per_look == 0) seen_ = moved ? last_ : now_ns();
    const int64_t now = std::max(seen_, last_);
    bool waits = false; // a peer has to be waited for
    if (moved || now - last_ >= spin_ns_) {
        for (auto &[id, link] : links_) {
            if (link->full && link->sending.size() < 128) full_due_ = true;
            if (link->state == Link::State::draining)
                waits = true;
            else if (now - last_ < busy_ns)
                waits |= busy(*link);
        }
    }
    if (full_due_) report_room();
    if (pong_due_) answer_pings();
    if (waits && !failed_) finish_draining(now);
    if (failed_) return sleep(now);
    if (!was_ready_) {
        if (now - last_ >= boot_spin_ns) return boot_later(now);
    } else if (!waits && now - last_ >= spin_ns_) {
        return sleep(now);
    }
}

void Endpoint::report_room() {
    full_due_ = false;
    std::vector<uint64_t> ready;
    for (auto &[id, link] : links_)
        if (link->full && link->sending.size() < 128) ready.push_back(id), link->full = false;
    for (const uint64_t id : ready) host_->ready(endpoint_, id);
}

void Endpoint::answer_pings() {
    pong_due_ = false;
    for (auto &[id, link] : links_)
        if (std::exchange(link->pong_due, false)) link->control.send(Control::pong, 0);
}

bool Endpoint::busy(const Link &link) const {
    if (link.state != Link::State::open) return false;
    return !link.sending.empty() || link.received < link.announced ||
           std::find(receiving_from_.begin(), receiving_from_.end(), link.rank) != receiving_from_.end();
}

void Endpoint::sleep(int64_t now) {
    for (auto &[id, link] : links_) {
        if (link->state != Link::State::open) continue;
        if (!std::exchange(link->sleep_reported, true)) link->control.send(Control::sleeping, link->received);
        if (!link->pinged && busy(*link)) {
            link->pinged = true;
            link->control.send(Control::ping, 0);
        }
    }
    awake_ = false;
    slept_at_ = now;
    uint64_t count;
    [[maybe_unused]] const ssize_t got = ::read(spin_fd_, &count, sizeof count);
}

// Peers that are gone: MPI has the messages that they had sent, and delivers them without the peers, if at all.
void Endpoint::finish_draining(int64_t now) {
    std::vector<Link *> over;
    for (auto &[id, link] : links_) {
        if (link->state != Link::State::draining) continue;
        const int64_t quiet = now - link->received_at;
        if (link->said_goodbye ? link->received >= link->goodbye_at || quiet > drain_orderly_ns
                               : quiet > (link->received < link->announced ? drain_announced_ns : drain_ns))
            over.push_back(link.get());
    }
    for (Link *link : over)
        lose(*link, "rank " + std::to_string(link->rank) + (link->said_goodbye ? " has left" : " is gone"));
}

// ---- until all ranks have loaded the plug-in ------------------------------------------------------------------------

// There is no descriptor to sleep on yet.
void Endpoint::boot_later(int64_t now) {
    sleep(now);
    if (boot_timer_ != nullptr) return;
    boot_wait_ns_ = std::clamp(2 * boot_wait_ns_, ms, max_boot_wait_ns);
    if (host_->start_timer(host_, boot_wait_ns_, 0, boot_due, this, &boot_timer_) != MUSTER_OK)
        give_up("out of memory");
}

void Endpoint::boot_due(void *self) {
    auto &endpoint = *static_cast<Endpoint *>(self);
    endpoint.host_->stop_timer(std::exchange(endpoint.boot_timer_, nullptr));
    if (endpoint.started_ && !endpoint.awake_)
        endpoint.begin_polling(); // `last_` is long ago: one poll, unless it is time
}

// ---- control messages -----------------------------------------------------------------------------------------------

void Link::on_control(Control word, uint64_t value) {
    switch (word) {
    case Control::wake:
        sleep_reported = false;
        announced = std::max(announced, value);
        return endpoint.wake();
    case Control::sleeping:
        if (value < sent)
            control.send(Control::wake, sent);
        else
            peer_asleep = true;
        return;
    case Control::ping:
        pong_due = endpoint.pong_due_ = true;
        return endpoint.wake();
    case Control::pong:
        pinged = false;
        return endpoint.wake();
    case Control::goodbye:
        said_goodbye = true;
        goodbye_at = value;
        return;
    case Control::not_listening:
        listener = -1; // existing streams continue
        return;
    case Control::count:
        break;
    }
}

} // namespace mpi
