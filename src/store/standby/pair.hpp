// SPDX-License-Identifier: MIT
#pragma once
// One of the two servers of a pair, primary and standby: it drives the roles (roles.hpp), finds the other server, and
// sends changes to it or applies those it receives.
//
// Changes are numbered and kept until the other server has confirmed them, so that a new link continues where the
// broken one ended.
#include "base/back_off.hpp"
#include "store/journal/note.hpp"
#include "store/standby/link.hpp"

#include <deque>
#include <functional>

namespace muster {

// The functions of the server that a pair needs. Loop thread.
class PairedServer {
  public:
    enum class Installing { busy, begun, done, failed };

    virtual Hub &hub() noexcept = 0;
    virtual Object &server_object() noexcept = 0;
    virtual const std::string &address() const noexcept = 0;
    virtual std::string address_for_others() const = 0;
    virtual bool has_instance() const noexcept = 0;
    virtual const StoreId &instance() const noexcept = 0;

    // --- roles
    virtual void begin_serving() noexcept = 0;
    virtual void resume_serving() noexcept = 0;                          // after a halt
    virtual void dismiss_clients(bool to_the_other_server) noexcept = 0; // which serves now
    virtual void publish_role() noexcept = 0;
    virtual void release_held() noexcept = 0;         // answers that the other server has confirmed
    virtual void clear_held_positions() noexcept = 0; // no answer waits for the other server any more
    virtual void flush() noexcept = 0;

    // --- the journal, if there is one
    virtual bool has_journal() const noexcept = 0;
    virtual uint64_t durable() const noexcept = 0;
    virtual uint64_t appended() const noexcept = 0;
    virtual uint64_t write_mark(const PairMark &mark) = 0; // its position

    // --- the contents
    virtual std::function<bool(std::string &)> make_snapshot(const PairMark *mark) const = 0;
    virtual void clear() noexcept = 0;
    virtual bool replay(std::string_view record) = 0;
    virtual bool apply_change(std::string_view note) = 0; // false: it is invalid
    // The one that was received, in place of the content of the folder.
    virtual Installing install_snapshot(bool begun) = 0;

  protected:
    ~PairedServer() = default;
};

struct StorePairSettings {
    std::string standby_of; // its address; empty: this one serves first
    bool alone = false, refused_is_dead = false;
    int64_t lease_ns = 3'000'000'000;
};

// Loop thread. Part of its server, which it keeps alive while it has operations in progress.
class StorePair final : private PairLinkOwner {
  public:
    StorePair(PairedServer &server, StorePairSettings settings, PairMark mark, bool keeps);
    ~StorePair();
    void start() noexcept;
    void stop() noexcept; // the other server is notified
    void take(ProvedSocket socket) noexcept;
    bool go_alone() noexcept; // the host declares that the other server is dead

    // ---- for its server ----
    const PairRoles &roles() const noexcept { return roles_; }
    bool lets_in() const noexcept { return roles_.lets_in(); }
    bool gathers() const noexcept { return feeding_ || roles_.needs_the_other(); }
    void note(Ref<StoreNote> note) noexcept;
    // All changes are confirmed by the other server, and this one may answer.
    bool settled() const noexcept;
    bool settled(uint64_t position) const noexcept { return !roles_.needs_the_other() || position <= confirmed_; }
    uint64_t hold();               // an answer; until settled(position). Throws bad_alloc
    bool clogged() const noexcept; // no further changes may be accepted now
    uint64_t lag() const noexcept { return gathers() ? position_ - confirmed_ : 0; }
    void flush() noexcept; // sends the notes
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

    // --- pair_feed.cpp: changes ---
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

    PairedServer &server_;
    Hub &hub_;
    const StorePairSettings settings_;
    PairRoles roles_;
    Ref<PairLink> link_, dialled_,
        accepted_; // the last two: incoming and outgoing links before the hello
    Ref<Attempt> attempt_;
    std::string other_, with_address_, with_host_; // the address to dial; of the server that was met last
    bool with_on_host_ = false, with_keeps_ = false;
    uint64_t dials_ = 0;
    bool dialling_ = false, stopped_ = false;
    BackOff back_off_{10'000'000, 500'000'000}; // between two attempts
    uint64_t mark_position_ = 0;                // in the journal
    bool marking_ = false;
    std::string said_;

    // primary
    bool feeding_ = false;
    std::function<bool(std::string &)> snapshot_; // the rest of it
    Notes unconfirmed_;                           // the first one is number confirmed_ + 1
    StoreNote *next_to_send_ = nullptr;           // of these, number sent_ + 1; NULL: all are sent
    size_t unconfirmed_bytes_ = 0;
    uint64_t position_ = 0, confirmed_ = 0, sent_ = 0; // the last number; of the confirmed and the sent ones

    // standby
    uint64_t got_ = 0, durable_got_ = 0;
    // Positions of the journal, and the numbers that are durable with them.
    std::deque<std::pair<uint64_t, uint64_t>> on_way_;
    bool fresh_ = false, installing_ = false, behind_snapshot_ = false;

    Timer<StorePair, &StorePair::look_due> look_timer_{*this};
    Timer<StorePair, &StorePair::dial> dial_timer_{*this};
    Timer<StorePair, &StorePair::beat> beat_timer_{*this};
};

// The clock of pairs; it includes the time during which the host is suspended.
int64_t pair_now_ns() noexcept;

} // namespace muster
