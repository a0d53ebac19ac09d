// SPDX-License-Identifier: MIT
#include "store/standby/roles.hpp"

#include <algorithm>
#include <tuple>

namespace muster {

namespace {
bool is_serving(PairRole role) noexcept {
    return role == PairRole::alone || role == PairRole::paired || role == PairRole::halted;
}
} // namespace

PairHello PairRoles::hello() const {
    PairHello hello;
    hello.process = settings_.process;
    hello.with = with_;
    hello.role = role_;
    const PairMark &mark = pending_ == Pending::lead ? wanted_ : mark_; // a pending decision counts
    if (!spoiled_) hello.kind = mark.kind, hello.epoch = mark.epoch;
    hello.keeps = settings_.keeps;
    return hello;
}

PairRoles::Actions PairRoles::start(int64_t now) {
    heard_ns_ = answered_ns_ = now;
    if (settings_.alone && has_all()) return lead("by request");
    // A server that was never part of a pair records nothing.
    if (settings_.standby || (mark_.kind != PairMark::none && mark_.kind != PairMark::alone)) return {};
    mark_.epoch = std::max<uint64_t>(mark_.epoch, 1);
    role_ = PairRole::alone;
    Actions actions;
    actions.serve = true;
    return actions;
}

bool PairRoles::looks_for_other() const noexcept {
    return !linked_ && pending_ != Pending::lead && role_ != PairRole::alone;
}

// ---- becoming the primary -------------------------------------------------------------------------------------------

// From here on nothing is confirmed to the other any more; clients are let in when it is durable.
PairRoles::Actions PairRoles::lead(const char *why) {
    Actions actions;
    if (follows()) role_ = PairRole::waiting;
    pending_ = Pending::lead;
    wanted_ = mark_;
    wanted_.kind = PairMark::alone;
    wanted_.epoch++;
    linked_ = false;
    actions.link = Link::drop;
    actions.mark = true;
    actions.why = why;
    return actions;
}

PairRoles::Actions PairRoles::step_down(const char *why) {
    Actions actions;
    role_ = PairRole::waiting;
    pending_ = Pending::none;
    with_ = {};
    linked_ = false;
    actions.link = Link::drop;
    actions.step_down = true;
    actions.why = why;
    return actions;
}

PairRoles::Actions PairRoles::marked(int64_t now) {
    Actions actions;
    const Pending what = std::exchange(pending_, Pending::none);
    if (what == Pending::none) return actions;
    mark_ = wanted_;
    if (what == Pending::lead) {
        (role_ == PairRole::halted ? actions.go_on : actions.serve) = role_ != PairRole::alone;
        role_ = PairRole::alone;
        with_ = {};
    } else if (what == Pending::pair) {
        if (!linked_) return lead("the other server ended before it was notified"); // it does not have the right
        role_ = PairRole::paired;
        lease_until_ns_ = INT64_MIN;
        heard_ns_ = now;
        takes_over_from_ns_ = now + settings_.lease_ns;
        actions.in_sync = true;
    } else {
        role_ = PairRole::standby;
        answered_ns_ = now;
        actions.confirm = linked_;
    }
    return actions;
}

// The standby may have taken over before it ended, if it had the time.
PairRoles::Actions PairRoles::other_is_dead(int64_t now) {
    if (pending_ == Pending::lead || linked_) return {};
    if (role_ == PairRole::halted && now < takes_over_from_ns_) return lead("the process of the standby has ended");
    if (role_ == PairRole::standby) return lead("the process that served has ended");
    return {};
}

PairRoles::Actions PairRoles::resigned() {
    return role_ == PairRole::standby && pending_ != Pending::lead ? lead("the one that served has stopped")
                                                                   : drop("the one that served has stopped");
}

PairRoles::Actions PairRoles::left(int64_t now) {
    if (role_ == PairRole::paired) role_ = PairRole::halted, halted_ns_ = now;
    return role_ == PairRole::halted && pending_ != Pending::lead ? lead("the standby has stopped")
                                                                  : drop("the standby has stopped");
}

bool PairRoles::go_alone(Actions &actions) {
    actions = {};
    if (role_ == PairRole::alone || pending_ == Pending::lead) return true;
    if (role_ == PairRole::paired || role_ == PairRole::catching_up || !has_all()) return false;
    actions = lead("by request");
    return true;
}

// ---- meeting the other ----------------------------------------------------------------------------------------------

PairRoles::Actions PairRoles::drop(const char *why) const noexcept {
    Actions actions;
    actions.link = Link::drop;
    actions.why = why;
    return actions;
}

PairRoles::Actions PairRoles::met(const PairHello &hello, bool same_place, int64_t now) {
    if (hello.process == settings_.process) return drop("it is this process itself");
    if (pending_ == Pending::lead) return drop("");
    linked_ = true;
    heard_ns_ = now;
    Actions actions = serves()                     ? meet_serving(hello, same_place, now)
                      : role_ == PairRole::standby ? meet_standing_by(hello, same_place)
                                                   : meet_waiting(hello);
    if (actions.link == Link::drop) linked_ = false;
    return actions;
}

// The other server is newer than this one.
bool PairRoles::is_newer(const PairHello &hello) const noexcept {
    return std::tuple(hello.epoch, hello.kind) > std::tuple(mark_.epoch, mark_.kind);
}

PairRoles::Actions PairRoles::meet_serving(const PairHello &hello, bool same_place, int64_t now) {
    if (is_serving(hello.role)) {
        if (hello.epoch > mark_.epoch) return step_down("the other has taken over");
        return drop(hello.epoch == mark_.epoch ? "both serve, each believes that the other is dead: stop one of them"
                                               : "");
    }
    if (role_ == PairRole::alone) {
        if (hello.role == PairRole::standby) return drop("it stands by for another");
        if (hello.epoch > mark_.epoch || (hello.epoch == mark_.epoch && hello.kind == PairMark::alone))
            return drop("it has what is not known here: it was served elsewhere in the meantime");
        Actions actions;
        actions.link = Link::feed;
        with_ = hello.process;
        return actions;
    }
    if (hello.role == PairRole::standby) {
        if (hello.process != with_ || hello.with != settings_.process || hello.epoch != mark_.epoch)
            return drop("it stands by for another");
        Actions actions;
        actions.link = Link::resume;
        role_ = PairRole::paired;
        return actions;
    }
    if (role_ != PairRole::halted) return drop("");
    if (is_newer(hello)) return step_down("the standby had taken over before it ended");
    // The same process has the right, or is about to get it, if it knows this epoch.
    if (hello.process == with_ ? hello.epoch < mark_.epoch
                               : (same_place && now < takes_over_from_ns_) || leads_over(hello))
        return lead("the standby has started anew");
    return drop("it is unknown whether the standby had taken over before it ended");
}

PairRoles::Actions PairRoles::meet_standing_by(const PairHello &hello, bool same_place) {
    if (is_serving(hello.role) && hello.epoch > mark_.epoch) return follow(hello);
    if (hello.process != with_) return same_place ? lead("the one that served has started anew") : drop("");
    if ((hello.role != PairRole::paired && hello.role != PairRole::halted) || hello.epoch != mark_.epoch)
        return drop("");
    Actions actions;
    actions.link = Link::resume;
    return actions;
}

// A folder that it has begun to follow with shows later that it has not served since.
PairRoles::Actions PairRoles::follow(const PairHello &hello) {
    Actions actions;
    actions.link = Link::follow;
    role_ = PairRole::catching_up;
    pending_ = Pending::none;
    with_ = hello.process;
    if (mark_.kind == PairMark::none) mark_.kind = PairMark::behind;
    return actions;
}

PairRoles::Actions PairRoles::meet_waiting(const PairHello &hello) {
    if (hello.role == PairRole::alone) {
        if (hello.epoch < mark_.epoch || (hello.epoch == mark_.epoch && mark_.kind == PairMark::alone))
            return drop("the one that serves is older than what is here");
        return follow(hello);
    }
    if (hello.role == PairRole::waiting && leads_over(hello)) return lead("it is the newer one");
    return drop("");
}

// The contents of the other server show that no client was served elsewhere since. An empty one shows nothing.
bool PairRoles::leads_over(const PairHello &hello) const noexcept {
    if (!has_all() || is_newer(hello)) return false;
    if (hello.epoch == mark_.epoch && hello.kind == mark_.kind) return false;
    return mark_.kind == PairMark::alone || (mark_.other_keeps && hello.keeps && hello.kind != PairMark::none);
}

// ---- being a pair ---------------------------------------------------------------------------------------------------

PairRoles::Actions PairRoles::fed(const std::string &other, bool other_keeps) {
    Actions actions;
    if (role_ != PairRole::alone || !linked_ || pending_ != Pending::none) return actions;
    pending_ = Pending::pair;
    wanted_ = {mark_.epoch, PairMark::paired, other_keeps, other};
    actions.mark = true;
    return actions;
}

PairRoles::Actions PairRoles::take_in_sync(uint64_t epoch, int64_t lease_ns, const std::string &by, bool by_keeps) {
    if (role_ != PairRole::catching_up || pending_ != Pending::none) return drop("it says what makes no sense");
    Actions actions;
    pending_ = Pending::copy;
    their_lease_ns_ = lease_ns;
    wanted_ = {epoch, PairMark::copy, by_keeps, by};
    actions.mark = true;
    return actions;
}

void PairRoles::confirmed(int64_t sent_ns) noexcept {
    if (role_ != PairRole::paired) return;
    lease_until_ns_ = std::max(lease_until_ns_, sent_ns + settings_.lease_ns);
    takes_over_from_ns_ = std::max(takes_over_from_ns_, lease_until_ns_);
}

PairRoles::Actions PairRoles::lost(int64_t now) {
    Actions actions;
    if (!std::exchange(linked_, false)) return actions;
    if (role_ == PairRole::paired) {
        role_ = PairRole::halted;
        halted_ns_ = now;
        sent_away_ = false;
        actions.why = "the standby is lost: nothing is answered until it is there again, or known to be dead";
    } else if (role_ == PairRole::catching_up && pending_ != Pending::copy) {
        role_ = PairRole::waiting;
    }
    return actions;
}

// ---- time -----------------------------------------------------------------------------------------------------------

int64_t PairRoles::look_at_ns() const noexcept {
    if (pending_ == Pending::lead) return INT64_MAX;
    if (role_ == PairRole::standby) return answered_ns_ + take_over_after_ns();
    if (role_ == PairRole::halted && !sent_away_) return halted_ns_ + 2 * settings_.lease_ns;
    if (linked_) return heard_ns_ + 2 * settings_.lease_ns;
    return INT64_MAX;
}

// If this check is late this process was stopped itself: messages of the other server may be unread.
PairRoles::Actions PairRoles::tick(int64_t now) {
    const int64_t due = look_at_ns();
    Actions actions;
    if (now < due) return actions;
    const bool late = now - due > settings_.lease_ns / 4;
    if (late) {
        heard_ns_ = answered_ns_ = halted_ns_ = now;
    } else if (role_ == PairRole::standby) {
        return lead("the messages of the primary have stopped");
    } else if (role_ == PairRole::halted && !sent_away_) {
        sent_away_ = actions.send_away = true;
    } else {
        actions = lost(now);
        actions.link = Link::drop;
        if (*actions.why == '\0') actions.why = "the messages of the other server have stopped";
    }
    return actions;
}

} // namespace muster
