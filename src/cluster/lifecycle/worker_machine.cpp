// SPDX-License-Identifier: MIT
#include "cluster/lifecycle/worker_machine.hpp"

#include <algorithm>
#include <cassert>
#include <new>
#include <utility>

namespace muster {

namespace {

constexpr int64_t exited_timeout_ns = 500'000'000;  // messages that a process had sent before its end may be in transit
constexpr int64_t ending_timeout_ns = 200'000'000;  // a link broke: its process has to be seen ending by itself
constexpr int64_t kill_timeout_ns = 10'000'000'000; // a process inside the kernel may need some time
constexpr int64_t never = INT64_MAX;

int64_t after(int64_t now_ns, int64_t timeout_ns) noexcept {
    return timeout_ns > never - now_ns ? never : now_ns + timeout_ns;
}

double seconds(int64_t timeout_ns) noexcept {
    return static_cast<double>(timeout_ns) / 1e9;
}

} // namespace

WorkerMachine::WorkerMachine(const Settings &settings, int64_t now_ns) noexcept
    : settings_(settings), deadline_ns_(after(now_ns, settings.join_timeout_ns)) {}

// ---- actions --------------------------------------------------------------------------------------------------------

void WorkerMachine::add(WorkerAction::Kind kind, uint32_t event) noexcept {
    assert(action_count_ < max_actions);
    actions_[action_count_++] = {kind, event};
}

WorkerAction WorkerMachine::next_action() noexcept {
    return actions_[first_action_++];
}

void WorkerMachine::close_link() noexcept {
    if (std::exchange(has_link_, false)) add(WorkerAction::close_link);
}

void WorkerMachine::end() {
    close_link();
    enter(State::gone, never);
    add(WorkerAction::end);
}

void WorkerMachine::kill(int64_t now_ns) {
    was_killed_while_well_ = why_.status == MUSTER_OK;
    if (settings_.sees_exits || settings_.can_kill) {
        enter(State::killing, after(now_ns, kill_timeout_ns));
        return add(WorkerAction::kill);
    }
    if (has_link_) add(WorkerAction::send_die);
    end();
}

// ---- events ---------------------------------------------------------------------------------------------------------

void WorkerMachine::launched() {
    if (state_ != State::launching) return; // it has connected before its manager reported it
    enter(State::launched, deadline_ns_);
    add(WorkerAction::report, MUSTER_CLUSTER_LAUNCHED);
    if (settings_.is_dialled_by_master) add(WorkerAction::dial);
}

void WorkerMachine::connected() {
    if (!awaits_link()) return;
    if (state_ == State::launching) add(WorkerAction::report, MUSTER_CLUSTER_LAUNCHED);
    has_link_ = true;
    enter(State::connected, deadline_ns_);
    add(WorkerAction::report, MUSTER_CLUSTER_CONNECTED);
}

void WorkerMachine::connect_failed(const Error &why, int64_t now_ns) {
    if (state_ != State::launched) return;
    why_ = why;
    kill(now_ns);
}

void WorkerMachine::hello() {
    if (state_ != State::connected) return;
    has_joined_ = true;
    enter(State::joined, never);
    add(WorkerAction::join);
}

void WorkerMachine::leave_announced() noexcept {
    if (!has_link_) return;
    is_orderly_ = has_announced_ = true;
    if (state_ == State::connected || state_ == State::joined) enter(State::leaving, deadline_ns_);
}

void WorkerMachine::link_lost(const Error &why, int64_t now_ns) {
    if (!has_link_) return;
    close_link();
    if (why_.status == MUSTER_OK) why_ = why;
    switch (state_) {
    case State::exited:
        return end();
    case State::connected:
    case State::joined:
        return sees_exit() ? enter(State::ending, after(now_ns, ending_timeout_ns)) : kill(now_ns);
    case State::leaving:
        if (!sees_exit()) return end();
        return enter(State::ending, is_removed_ ? deadline_ns_ : after(now_ns, settings_.leave_timeout_ns));
    default:
        return;
    }
}

void WorkerMachine::process_ended(std::string how, int64_t now_ns) {
    if (is_over() || state_ == State::exited) return;
    how_ = std::move(how);
    if (!has_link_) return end();
    enter(State::exited, after(now_ns, exited_timeout_ns));
}

void WorkerMachine::failed(const Error &why) {
    if (is_over()) return;
    why_ = why;
    end();
}

void WorkerMachine::remove(int64_t grace_ns, int64_t now_ns) {
    if (is_over()) return;
    const bool is_first = !std::exchange(is_removed_, true);
    is_orderly_ = true;
    switch (state_) {
    case State::launching:
        add(WorkerAction::forget_launch);
        return end();
    case State::joined:
    case State::leaving:
    case State::ending: {
        // A worker that has joined can leave by itself, as long as it can be asked, or has announced it.
        const bool can_leave = (has_link_ && has_joined_) || has_announced_;
        if (grace_ns == 0 || !can_leave) {
            was_killed_late_ = has_link_ && has_joined_;
            return kill(now_ns);
        }
        if (is_first && has_link_ && has_joined_) add(WorkerAction::send_leave);
        return enter(has_link_ ? State::leaving : State::ending, after(now_ns, grace_ns));
    }
    case State::launched:
    case State::connected:
        return kill(now_ns);
    default:
        return;
    }
}

void WorkerMachine::kill_done() {
    if (state_ != State::killing || settings_.sees_exits) return;
    if (was_killed_while_well_ && how_.empty()) how_ = "ended by force";
    end();
}

void WorkerMachine::kill_failed(const Error &why) {
    if (state_ != State::killing) return;
    kill_failed_ = why;
    end();
}

void WorkerMachine::context_over(const Error &why) {
    if (is_over()) return;
    why_ = why;
    if (state_ == State::launching)
        add(WorkerAction::forget_launch);
    else if (state_ != State::exited && state_ != State::killing)
        kill(0);
    if (!is_over()) end();
}

void WorkerMachine::wake(int64_t now_ns) {
    if (now_ns < deadline_ns_) return;
    deadline_ns_ = never;
    switch (state_) {
    case State::launching:
    case State::launched:
    case State::connected:
        why_ = Error::make(MUSTER_TIMEOUT, "it did not join within %.3g s", seconds(settings_.join_timeout_ns));
        if (state_ != State::launching) return kill(now_ns);
        add(WorkerAction::forget_launch);
        return end();
    case State::leaving:
    case State::ending:
        was_killed_late_ = is_removed_;
        return kill(now_ns);
    case State::exited:
        if (why_.status == MUSTER_OK) why_ = Error::make(MUSTER_E_PEER, "its process is over");
        return end();
    case State::killing:
        kill_failed_ =
            Error::make(MUSTER_TIMEOUT, "within %.3g s nothing was known of its end", seconds(kill_timeout_ns));
        return end();
    default:
        return;
    }
}

// ---- state ----------------------------------------------------------------------------------------------------------

uint32_t WorkerMachine::public_state() const noexcept {
    switch (state_) {
    case State::launching:
        return MUSTER_MEMBER_LAUNCHING;
    case State::launched:
        return MUSTER_MEMBER_LAUNCHED;
    case State::connected:
        return MUSTER_MEMBER_CONNECTED;
    case State::gone:
        return MUSTER_MEMBER_GONE;
    default:
        if (!has_joined_) return has_link_ ? MUSTER_MEMBER_CONNECTED : MUSTER_MEMBER_LAUNCHED;
        return is_removed_ ? MUSTER_MEMBER_LEAVING : MUSTER_MEMBER_JOINED;
    }
}

WorkerMachine::End WorkerMachine::end_of_life() const noexcept {
    // The exit of its process is more informative than a broken link, but less than the failure of the worker itself.
    const bool has_own_why = why_.status != MUSTER_OK && why_.status != MUSTER_E_PEER;
    End end;
    end.event = is_orderly_ ? MUSTER_CLUSTER_REMOVED : has_joined_ ? MUSTER_CLUSTER_DEAD : MUSTER_CLUSTER_FAILED;
    if (!is_orderly_) end.why.status = has_own_why ? why_.status : Status{MUSTER_E_PEER};
    if (is_orderly_ && kill_failed_.status != MUSTER_OK) end.why.status = kill_failed_.status; // it may still run
    try {
        if (!how_.empty() && !has_own_why)
            end.text = how_;
        else if ((!is_orderly_ || !how_.empty()) && why_.status != MUSTER_OK)
            end.text = why_.message;
        if (kill_failed_.status != MUSTER_OK)
            end.text.append(end.text.empty() ? "" : "; ")
                .append("it could not be ended by force: ")
                .append(kill_failed_.message);
    } catch (const std::bad_alloc &) { // then without a text
    }
    return end;
}

} // namespace muster
