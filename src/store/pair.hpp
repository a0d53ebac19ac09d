// SPDX-License-Identifier: MIT
#pragma once
// One of the two servers of a pair: drives its roles (roles.hpp), finds the other, feeds it or is fed.
//
// What changes is numbered and kept until the other has confirmed it, so that a link that breaks goes on where it was.
#include "base/back_off.hpp"
#include "store/note.hpp"
#include "store/pair_link.hpp"

#include <deque>
#include <functional>

namespace muster {

class StoreServer;

struct StorePairSettings {
    std::string standby_of; // its address; empty: this one serves first
    bool alone = false, refused_is_dead = false;
    int64_t lease_ns = 3'000'000'000;
};

// Loop thread. Part of its server, and keeps it while it has something under way.
class StorePair final : private PairLinkOwner {
  public:
    StorePair(StoreServer &server, StorePairSettings settings, PairMark mark, bool keeps);
    ~StorePair();
    void start() noexcept;
    void stop() noexcept; // the other is told
    void take(ProvedSocket socket) noexcept;
    bool go_alone() noexcept; // the host says that the other is dead

    // ---- for its server ----
    const PairRoles &roles() const noexcept { return roles_; }
    bool lets_in() const noexcept { return roles_.lets_in(); }
    bool gathers() const noexcept { return feeding_ || roles_.needs_the_other(); }
    void note(Ref<StoreNote> note) noexcept;
    // Nothing that was done lacks the word of the other, and this one may answer.
    bool settled() const noexcept;
    bool settled(uint64_t position) const noexcept { return !roles_.needs_the_other() || position <= confirmed_; }
    uint64_t hold();               // an answer; until settled(position). Throws bad_alloc
    bool clogged() const noexcept; // no more is to be asked for now
    uint64_t lag() const noexcept { return gathers() ? position_ - confirmed_ : 0; }
    void flush() noexcept; // what was noted goes out
    void journal_moved() noexcept;

  private:
    using Notes = NoteQueue<struct NotesOfFeed>;
    class Dialling;

    // PairLinkOwner
    bool link_says(PairLink &link, PairRecord what, uint64_t number, std::string_view body) override;
    void link_was_read(PairLink &link) noexcept override;
    void link_has_room(PairLink &link) noexcept override;
    void link_ended(PairLink &link, const char *why) noexcept override;
    Object &link_owner() noexcept override;

    // --- pair.cpp: roles and links ---
    void act(const PairRoles::Actions &actions) noexcept;
    void say(const char *why) noexcept;
    void say_hello(PairLink &link);
    bool meet(PairLink &link, PairHello hello);
    void leave_links() noexcept; // that have not become the link
    void drop_link() noexcept;
    void link_lost() noexcept;
    void look() noexcept;
    void look_due() noexcept;
    void dial() noexcept;
    void dialled(uint64_t number, ProvedSocket socket) noexcept;
    void dial_failed(uint64_t number, const Error &why) noexcept;
    void write_mark() noexcept;
    bool is_dead_if_refused() const noexcept { return with_on_host_ || settings_.refused_is_dead; }

    // --- pair_feed.cpp: what changes ---
    void begin_feed();
    void resume(uint64_t from);
    void put(PairRecord what, std::string_view body = {});
    void put(PairRecord what, Ref<StoreNote> note) noexcept;
    void pump();
    void begin_following() noexcept;
    bool take_followed(PairRecord what, uint64_t number, std::string_view body);
    bool take_note(uint64_t number, std::string_view note);
    bool take_whole(uint64_t number);
    bool take_tell(uint64_t number, std::string_view body);
    void got(uint64_t number);
    void look_at_snapshot() noexcept;
    void confirm(bool in_any_case) noexcept;
    int64_t forget_up_to(uint64_t number) noexcept; // when the last of them was put
    bool confirmed(uint64_t number) noexcept;
    void beat() noexcept;

    StoreServer &server_;
    Hub &hub_;
    const StorePairSettings settings_;
    PairRoles roles_;
    Ref<PairLink> link_, greeting_,
        calling_; // the last two: it was dialled, or has dialled, and has not said who it is
    Ref<Attempt> attempt_;
    std::string other_, with_address_, with_host_; // whom to dial; who was met last
    bool with_on_host_ = false, with_keeps_ = false;
    uint64_t dials_ = 0;
    bool dialling_ = false, stopped_ = false;
    BackOff back_off_{10'000'000, 500'000'000}; // between two attempts
    uint64_t mark_position_ = 0;                // in the journal
    bool marking_ = false;
    std::string said_;

    // who serves
    bool feeding_ = false;
    std::function<bool(std::string &)> snapshot_; // the rest of it
    Notes unconfirmed_;                           // the first one is number confirmed_ + 1
    StoreNote *next_to_send_ = nullptr;           // of these, number sent_ + 1; NULL: all are sent
    size_t unconfirmed_bytes_ = 0;
    uint64_t position_ = 0, confirmed_ = 0, sent_ = 0; // the last number, of what is confirmed, and sent

    // who stands by
    uint64_t got_ = 0, durable_got_ = 0;
    std::deque<std::pair<uint64_t, uint64_t>> on_way_; // positions of the journal, and what is durable with them
    bool fresh_ = false, installing_ = false, behind_snapshot_ = false;

    Timer<StorePair, &StorePair::look_due> look_timer_{*this};
    Timer<StorePair, &StorePair::dial> dial_timer_{*this};
    Timer<StorePair, &StorePair::beat> beat_timer_{*this};
};

// The clock of pairs: a host that sleeps sleeps for the other, too.
int64_t pair_now_ns() noexcept;

} // namespace muster
