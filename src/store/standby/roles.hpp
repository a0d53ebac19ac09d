// SPDX-License-Identifier: MIT
#pragma once
// The roles of the two servers of one store as a state machine: (state, event, now) -> (state, actions). It has no
// threads, no clock and no connections; its driver provides these. docs/adr/0004 gives the reasons for the rules.
//
// A standby that is in sync has the right to take over. The right belongs to the process: it is given by the message
// that reports the sync, and ends with the process, with its use, or when the standby leaves. While another process has
// the right, the primary answers nothing that the standby has not confirmed.
#include "store/wire/wire.hpp"

#include <string>

namespace muster {

enum class PairRole : uint8_t { // as muster_store_role
    alone,                      // serves; no other server may
    paired,                     // serves; the other is in sync
    halted,                     // served until the other, in sync, was lost: answers nothing
    standby,                    // in sync
    catching_up,                // receives the content
    waiting                     // searches for the other server
};

// The state that a data folder keeps beyond the process.
struct PairMark {
    enum Kind : uint8_t { none, behind, copy, paired, alone }; // the later one is the newer of one epoch
    uint64_t epoch = 0;                                        // of the primary: the higher one is the newer
    Kind kind = none;
    bool other_keeps = false; // the other has a data folder
    std::string other;        // its address
};

// The first message in each direction.
struct PairHello {
    StoreId process{};  // another with each start
    StoreId instance{}; // the store; zero: none yet
    StoreId with{};     // paired, halted, standby: the process of the other
    PairRole role = PairRole::waiting;
    PairMark::Kind kind = PairMark::none;
    uint64_t epoch = 0;
    bool keeps = false;
    uint64_t position = 0; // standby: the last it has
    std::string address;
};

class PairRoles {
  public:
    struct Settings {
        StoreId process{};
        bool standby = false; // it must not serve before it has met the other server
        bool alone = false;   // the operator declares that the other server is dead
        bool keeps = false;
        int64_t lease_ns = 3'000'000'000;
    };
    enum class Link : uint8_t {
        keep,
        drop,
        feed,   // send the content, and then the changes
        follow, // be fed
        resume  // continue after the position of the standby
    };
    struct Actions { // in this order
        Link link = Link::keep;
        bool mark = false;      // record wanted(); marked() is called when it is durable
        bool serve = false;     // admit clients to the current content
        bool go_on = false;     // a halted one: the delayed requests are answered
        bool send_away = false; // redirect clients to the other server
        bool step_down = false; // the same, and the delayed requests are dropped
        bool in_sync = false;   // notify the standby that it is in sync
        bool confirm = false;   // that it is
        const char *why = "";   // for people
    };

    PairRoles(Settings settings, PairMark mark) noexcept : settings_(settings), mark_(std::move(mark)) {}

    // ---- events ----
    Actions start(int64_t now);
    // The hello of another server. `same_place`: at the address of the pair's other server, on the same host.
    Actions met(const PairHello &hello, bool same_place, int64_t now);
    Actions lost(int64_t now);                               // the link
    Actions other_is_dead(int64_t now);                      // its process has ended, for certain
    Actions fed(const std::string &other, bool other_keeps); // it has the whole content
    Actions take_in_sync(uint64_t epoch, int64_t lease_ns, const std::string &by, bool by_keeps); // that it is in sync
    Actions marked(int64_t now);
    Actions resigned();        // the primary has stopped, and all changes were received
    Actions left(int64_t now); // the standby has stopped
    Actions tick(int64_t now); // at look_at_ns()
    // The operator declares that the other server is dead; false: not possible here or now.
    bool go_alone(Actions &actions);
    void heard(int64_t now) noexcept { heard_ns_ = now; }       // over the link
    void confirmed(int64_t sent_ns) noexcept;                   // by the other server: everything sent at that time
    void answered(int64_t now) noexcept { answered_ns_ = now; } // the standby has confirmed something
    void spoil() noexcept { spoiled_ = true; }  // the content in memory is neither the old nor the new one
    void whole() noexcept { spoiled_ = false; } // it is again

    // ---- state ----
    PairRole role() const noexcept { return role_; }
    uint64_t epoch() const noexcept { return mark_.epoch; }
    const PairMark &mark() const noexcept { return mark_; }
    const PairMark &wanted() const noexcept { return wanted_; }
    const StoreId &with() const noexcept { return with_; }
    int64_t lease_ns() const noexcept { return settings_.lease_ns; }
    bool lets_in() const noexcept { return role_ == PairRole::alone || role_ == PairRole::paired; }
    bool serves() const noexcept { return lets_in() || role_ == PairRole::halted; }
    // Earlier requests may be answered without a confirmation of the other server.
    bool may_answer(int64_t now) const noexcept {
        return role_ == PairRole::alone || (role_ == PairRole::paired && now < lease_until_ns_);
    }
    // Confirmed by the standby, or there is none that has to.
    bool needs_the_other() const noexcept { return role_ == PairRole::paired || role_ == PairRole::halted; }
    bool may_confirm() const noexcept { return follows() && pending_ != Pending::lead; }
    bool follows() const noexcept { return role_ == PairRole::standby || role_ == PairRole::catching_up; }
    bool looks_for_other() const noexcept; // by dialling
    int64_t look_at_ns() const noexcept;   // INT64_MAX: never
    PairHello hello() const;               // except the fields that it does not know

  private:
    enum class Pending : uint8_t { none, lead, pair, copy };
    Actions lead(const char *why);
    Actions step_down(const char *why);
    Actions drop(const char *why) const noexcept;
    Actions meet_serving(const PairHello &hello, bool same_place, int64_t now);
    Actions meet_standing_by(const PairHello &hello, bool same_place);
    Actions meet_waiting(const PairHello &hello);
    Actions follow(const PairHello &hello);
    bool has_all() const noexcept { return !spoiled_ && mark_.kind > PairMark::behind; }
    bool leads_over(const PairHello &hello) const noexcept;
    bool is_newer(const PairHello &hello) const noexcept;
    int64_t take_over_after_ns() const noexcept { return their_lease_ns_ + their_lease_ns_ / 4; }

    const Settings settings_;
    PairMark mark_, wanted_;
    PairRole role_ = PairRole::waiting;
    Pending pending_ = Pending::none;
    StoreId with_{};
    bool linked_ = false, spoiled_ = false, sent_away_ = false;
    int64_t heard_ns_ = 0, answered_ns_ = 0, halted_ns_ = 0;
    int64_t lease_until_ns_ = INT64_MIN;
    int64_t takes_over_from_ns_ = INT64_MIN; // the other server cannot have taken over before this
    int64_t their_lease_ns_ = 0;
};

} // namespace muster
