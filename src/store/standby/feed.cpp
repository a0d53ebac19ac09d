// SPDX-License-Identifier: MIT
// Changes go from the primary to the standby.
#include "store/standby/pair.hpp"
#include <algorithm>

namespace muster {

namespace {
constexpr size_t unsent_bytes = 1 << 20;   // in the link; the rest waits here
constexpr size_t clogged_bytes = 32 << 20; // not confirmed: no further changes are accepted
constexpr size_t max_feeding = 256 << 20;  // changed while the other is fed: it cannot keep up
constexpr int64_t longest_lease_ns = 3'600'000'000'000;
} // namespace

// ---- primary ----------------------------------------------------------------------------------------------------

void StorePair::begin_feed() {
    unconfirmed_.clear();
    next_to_send_ = nullptr;
    unconfirmed_bytes_ = 0;
    position_ = confirmed_ = sent_ = 0;
    server_.clear_held_positions();
    snapshot_ = server_.make_snapshot(nullptr);
    feeding_ = true;
    put(PairRecord::whole);
    flush();
}

// Sends what it has not confirmed again.
void StorePair::resume(uint64_t from) {
    if (from < confirmed_ || from > position_) return link_lost();
    sent_ = from;
    forget_up_to(from); // this is not a promise not to take over: only a confirmation is
    next_to_send_ = unconfirmed_.first();
    put(PairRecord::beat);
    server_.release_held();
    flush();
}

void StorePair::put(PairRecord what, std::string_view body) {
    put(what, make_ref<StoreNote>(body));
}

void StorePair::put(PairRecord what, Ref<StoreNote> note) noexcept {
    note->at_ns = pair_now_ns();
    note->what = what;
    unconfirmed_bytes_ += sizeof(StoreNote) + note->bytes.size();
    if (next_to_send_ == nullptr) next_to_send_ = note.get();
    unconfirmed_.push(std::move(note));
    position_++;
}

void StorePair::note(Ref<StoreNote> note) noexcept {
    put(PairRecord::note, std::move(note));
}

void StorePair::pump() {
    while (link_ && link_->unsent() < unsent_bytes) {
        if (snapshot_) {
            std::string record;
            if (snapshot_(record))
                link_->put(PairRecord::snapshot, 0, record);
            else
                snapshot_ = nullptr;
            continue;
        }
        if (next_to_send_ == nullptr) return;
        link_->put(next_to_send_->what, sent_ + 1, next_to_send_->record());
        next_to_send_ = Notes::after(*next_to_send_);
        sent_++;
    }
}

void StorePair::flush() noexcept {
    if (!link_ || !gathers()) return;
    if (feeding_ && unconfirmed_bytes_ > max_feeding) {
        say("the standby does not keep up with what changes; it begins anew");
        return link_lost();
    }
    try {
        for (size_t before = SIZE_MAX; link_ && before != 0;) {
            pump();
            if (!link_) return;
            before = link_->unsent() >= unsent_bytes ? 1 : 0; // if it was accepted at once there is room for more
            link_->flush();
            if (!link_ || link_->unsent() != 0) return;
        }
    } catch (const std::bad_alloc &) {
        link_lost();
    }
}

void StorePair::link_has_room(PairLink &link) noexcept {
    if (&link == link_.get()) flush();
}

bool StorePair::settled() const noexcept {
    return !roles_.needs_the_other() || (confirmed_ == position_ && roles_.may_answer(pair_now_ns()));
}

uint64_t StorePair::hold() {
    if (!roles_.needs_the_other()) return 0;
    if (confirmed_ == position_) put(PairRecord::beat);
    return position_;
}

bool StorePair::clogged() const noexcept {
    return roles_.role() == PairRole::halted ||
           (roles_.role() == PairRole::paired && unconfirmed_bytes_ > clogged_bytes);
}

int64_t StorePair::forget_up_to(uint64_t number) noexcept {
    int64_t at_ns = 0;
    for (; confirmed_ < number; confirmed_++) {
        const Ref<StoreNote> note = unconfirmed_.pop();
        unconfirmed_bytes_ -= sizeof(StoreNote) + note->bytes.size();
        at_ns = note->at_ns;
    }
    return at_ns;
}

bool StorePair::confirmed(uint64_t number) noexcept {
    if (number > sent_) return false;
    if (number > confirmed_) roles_.confirmed(forget_up_to(number));
    if (feeding_ && confirmed_ != 0) act(roles_.fed(with_address_, with_keeps_));
    server_.release_held();
    return true;
}

// It shows the other server that this one lives, and the confirmation permits this one to answer.
void StorePair::beat() noexcept {
    if (stopped_ || !link_ || !gathers()) return;
    try {
        put(PairRecord::beat);
        flush();
    } catch (const std::bad_alloc &) { // the next one, then
    }
    if (link_) hub_.start_timer(beat_timer_, now_ns() + roles_.lease_ns() / 4);
}

// ---- standby ----------------------------------------------------------------------------------------------------

void StorePair::begin_following() noexcept {
    got_ = durable_got_ = 0;
    on_way_.clear();
    fresh_ = true;
    installing_ = false;
    roles_.spoil();
}

bool StorePair::take_followed(PairRecord what, uint64_t number, std::string_view body) {
    if (what == PairRecord::snapshot) {
        if (behind_snapshot_ || got_ != 0) return false;
        if (std::exchange(fresh_, false)) server_.clear();
        return server_.replay(body);
    }
    if (number != got_ + 1) return false;
    switch (what) {
    case PairRecord::whole:
        return number == 1 && body.empty() && take_whole(number);
    case PairRecord::note:
        return got_ != 0 && take_note(number, body);
    case PairRecord::beat:
        if (got_ == 0 || !body.empty()) return false;
        got(number);
        return true;
    case PairRecord::in_sync:
        return got_ != 0 && take_tell(number, body);
    default:
        return false;
    }
}

// The new log begins after a snapshot of the received content; until that is complete the folder has its old content.
bool StorePair::take_whole(uint64_t number) {
    if (fresh_ || !server_.has_instance()) return false;
    got_ = number;
    if (!server_.has_journal()) {
        roles_.whole();
        durable_got_ = number;
        return true;
    }
    installing_ = true;
    look_at_snapshot();
    return true;
}

void StorePair::look_at_snapshot() noexcept {
    if (!installing_ || !link_) return;
    switch (server_.install_snapshot(behind_snapshot_)) {
    case PairedServer::Installing::busy:
        return;
    case PairedServer::Installing::begun:
        behind_snapshot_ = true;
        return;
    case PairedServer::Installing::done:
        installing_ = behind_snapshot_ = false;
        roles_.whole();
        try {
            on_way_.emplace_back(server_.appended(), got_);
        } catch (const std::bad_alloc &) {
            return link_lost();
        }
        return confirm(true);
    case PairedServer::Installing::failed:
        installing_ = behind_snapshot_ = false;
        say("what there is could not be written to the data folder");
        return link_lost();
    }
}

bool StorePair::take_note(uint64_t number, std::string_view note) {
    if (!server_.apply_change(note)) return false;
    got(number);
    return true;
}

bool StorePair::take_tell(uint64_t number, std::string_view body) {
    if (roles_.role() != PairRole::catching_up || installing_) return false;
    ByteReader from(body);
    const auto epoch = from.number<uint64_t>();
    const auto lease = from.number<int64_t>();
    const bool keeps = from.number<uint8_t>() != 0;
    if (!from.is_complete() || lease <= 0 || lease > longest_lease_ns) return false;
    act(roles_.take_in_sync(epoch, lease, with_address_, keeps));
    got(number);
    return true;
}

// It is confirmed when it is in the folder.
void StorePair::got(uint64_t number) {
    got_ = number;
    if (!server_.has_journal())
        durable_got_ = number;
    else if (!on_way_.empty() && on_way_.back().first == server_.appended())
        on_way_.back().second = number;
    else
        on_way_.emplace_back(server_.appended(), number);
}

void StorePair::link_was_read(PairLink &link) noexcept {
    if (&link == link_.get() && roles_.follows()) confirm(true);
    if (roles_.serves()) server_.flush(); // the delayed answers are sent
}

// Also without changes, as a heartbeat.
void StorePair::confirm(bool in_any_case) noexcept {
    if (!link_ || !roles_.may_confirm()) return;
    const uint64_t before = durable_got_;
    if (!installing_ && server_.has_journal()) {
        const uint64_t durable = server_.durable();
        while (!on_way_.empty() && on_way_.front().first <= durable) {
            durable_got_ = std::max(durable_got_, on_way_.front().second);
            on_way_.pop_front();
        }
    }
    if (!in_any_case && durable_got_ == before) return;
    try {
        roles_.answered(pair_now_ns());
        link_->put(PairRecord::confirm, durable_got_);
        link_->flush();
    } catch (const std::bad_alloc &) {
        return link_lost();
    }
    look();
}

} // namespace muster
