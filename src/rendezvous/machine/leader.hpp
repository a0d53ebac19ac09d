// SPDX-License-Identifier: MIT
#pragma once
// The leader is the member that makes the rounds; it alone watches all members. Each of its changes is conditional on
// the version of the leader key, so a leader that was replaced without its knowledge changes nothing. All state is in
// the store, where the next leader finds it.
//
// Events that arrive during a request are handled when it is answered. So a round is made of all members that are
// present then, and no delay is needed to collect them.
#include "rendezvous/machine/ask.hpp"
#include "rendezvous/machine/promises.hpp"

#include <map>

namespace muster {

// The functions of the member that its leader needs.
class LeaderHost {
  public:
    virtual void ask_for_leader(uint64_t detail, AskOps ops) = 0;
    virtual void lease_for_leader(uint64_t detail, int64_t ttl_ns) = 0;
    virtual void end_lease_of_leader(uint64_t lease) = 0;
    virtual void dial_for_leader(uint32_t rank, const std::string &peer) = 0; // dialled() later
    virtual void leader_sees(std::string_view key, bool present, uint64_t version, uint64_t revision,
                             std::string_view value) = 0; // of all/...
    virtual void leader_ends() = 0;                       // it was replaced
    virtual void leader_fails(const Error &error) = 0;

  protected:
    ~LeaderHost() = default;
};

// Of a store that may be lost with the member that hosts it.
struct Hosting {
    bool hosted = false;
    int64_t lease_ns = 0; // how long a member lasts unheard of
};

class Leader final {
  public:
    Leader(LeaderHost &host, std::string id, const RunConfig &config, const Hosting &hosting, size_t max_ops,
           bool queues, uint64_t term, int64_t now_ns)
        : host_(host), id_(std::move(id)), config_(config), hosting_(hosting), max_ops_(max_ops), queues_(queues),
          term_(term), now_ns_(now_ns), awake_since_ns_(now_ns) {}
    uint64_t term() const noexcept { return term_; }
    bool ready() const noexcept { return loaded_; }
    // Whether this store may make the next round once those that are here have promised it (promises.hpp).
    bool may_go_on() const;
    int64_t wake_at_ns() const noexcept { return leaving_ ? INT64_MAX : std::min(note_at_ns_, look_at_ns_); }

    // The member reports its observations of the store at `revision` by these three; the leader requests the rest.
    void begin(uint64_t revision, const std::optional<RoundRecord> &round, uint64_t round_version,
               const std::optional<Note> &note, uint64_t note_version, bool closed, Note::How leader_before);
    void see_round(const std::optional<RoundRecord> &round, uint64_t version);
    void see_closed(bool closed) { closed_ = closed; }
    void answer(uint64_t detail, const AskOps &ops, const StoreAnswer &answer);
    void dialled(uint32_t rank, bool refused);
    void at(int64_t now_ns) noexcept; // before the observations of this step
    void go_on(int64_t now_ns);       // decides, after all observations of this step

    // The member of this leader leaves. Its last note is written together with that, since no other member would know
    // of it: may_leave() is true when it knows enough for a note.
    bool may_leave() const noexcept { return loaded_ && !committing_; }
    Note last_note(); // from here on it makes no request that could arrive before that, and be undone by it
    void stay() noexcept { leaving_ = false; } // that has failed

    static constexpr size_t default_ops = 100; // in a request: etcd accepts 128
    static constexpr int64_t pace_ns = 50'000; // between two notes, for each receiver

  private:
    enum Detail : uint64_t {
        list_members,
        list_places,
        watch,
        look,
        part,
        commit,
        note,
        grant_call,
        call,
        drop_call,
        sweep,
        sweep_delete,
        other
    };
    enum class Class { idle, seeking, present, exiting };
    struct Known {
        MemberRecord record;
        uint64_t version = 0;
        std::optional<RoundPlace> place;
        Class as = Class::idle;
    };
    using Members = std::map<std::string, Known, std::less<>>;

    // ---- observed state
    void load(uint64_t revision);
    void list(std::string_view prefix, std::string_view behind, Detail detail);
    void listed(Detail detail, const StoreAnswer &answer);
    void loaded();
    void find_missing();
    void watch_on(uint64_t revision);
    void watched(const StoreAnswer &answer);
    void begin_reload();
    void looked(const StoreAnswer &answer);
    void see(std::string_view key, bool present, uint64_t version, std::string_view value, uint32_t flags = 0);
    void member_seen(std::string_view id, bool present, uint64_t version, std::string_view value, Note::How gone);
    Class classify(const Known &member) const;
    void reclassify(Known &member);
    void reclassify_all();
    void note_gone(uint32_t rank, Note::How how);
    uint32_t count(Class as) const noexcept { return counts_[static_cast<size_t>(as)]; }
    bool is_exit_confirmed() const noexcept;
    bool running() const noexcept { return count(Class::present) + count(Class::exiting) != 0; }
    uint64_t next_number() const noexcept { return round_ ? round_->attempt.number + 1 : 1; }

    // ---- promises (leader_promises.cpp)
    bool promised(bool wanted);
    std::optional<uint32_t> rank_in_last(const Known &member) const;
    void seek_promises(bool wanted);
    bool host_is_next() const;
    Promises possible_promises() const;
    void see_gone(const Known &member);
    void forget_promises();

    // ---- requests
    void decide();
    std::vector<const Members::value_type *> choose() const;
    void begin_commit();
    void send_final(AskOps places);
    void part_answered(const StoreAnswer &answer);
    void commit_answered(const StoreAnswer &answer);
    void committed(uint64_t version);
    void give_up_commit();
    void update_call();
    void begin_call();
    void call_granted(const StoreAnswer &answer);
    void call_answered(const AskOps &ops, const StoreAnswer &answer);
    void drop_call_keys();
    Note make_note() const;
    void send_note();
    void begin_sweep();
    void swept(const StoreAnswer &answer);
    void sweep_answered(const AskOps &ops, const StoreAnswer &answer);
    AskOp if_leader() const { return AskOp{MUSTER_STORE_NONE, keys::leader}.if_version(term_); }

    LeaderHost &host_;
    const std::string id_; // of the member it is part of
    const RunConfig config_;
    const Hosting hosting_;
    const size_t max_ops_;
    bool queues_; // the store has queues, and can clear them
    const uint64_t term_;
    int64_t now_ns_, awake_since_ns_;
    bool loaded_ = false, members_listed_ = false, places_listed_ = false, reload_ = false, closed_ = false;
    uint64_t revision_ = 0, changes_ = 0; // changes of members that were seen, ever
    Members members_;
    std::map<std::string, RoundPlace, std::less<>> places_; // while it loads
    uint32_t counts_[4] = {};                               // of members, by class
    std::optional<RoundRecord> round_;
    uint64_t round_version_ = 0;

    // the attempt in progress
    bool committing_ = false, commit_broken_ = false, somebody_died_ = false;
    bool hold_ = false; // until the end of a member is observed
    RoundRecord attempt_;
    std::vector<std::pair<std::string, RoundPlace>> chosen_; // by rank
    size_t parts_left_ = 0;
    uint64_t sequence_ = 0, changes_at_commit_ = 0;

    // promises
    struct Dialled {
        uint64_t round;
        int64_t gone_ns; // when it was seen to be
    };
    Promises promises_;
    std::map<uint32_t, Dialled> dialled_; // by rank
    uint64_t promises_asked_ = 0;         // for this round
    bool host_asked_ = false;             // for its promise, too
    int64_t stuck_since_ns_ = -1, look_at_ns_ = INT64_MAX;

    // the last call
    enum class Call { none, asked, runs, over };
    Call call_ = Call::none;
    uint64_t call_lease_ = 0, called_for_ = 0, called_version_ = 0, last_call_version_ = 0;
    bool last_call_key_ = false, drop_asked_ = false;
    int64_t call_end_ns_ = 0;

    // notes
    Note sent_note_;
    uint64_t note_version_ = 0;
    bool leaving_ = false, is_sending_ = false, sweeping_ = false;
    int64_t sent_ns_ = INT64_MIN / 2, sent_before_ns_ = INT64_MIN / 2, note_at_ns_ = INT64_MAX;
    std::vector<Note::Gone> gone_;
    Note::How leader_before_ = Note::How::dead; // how the last leader went
    uint32_t left_ = 0, dead_ = 0;
    uint64_t exited_ = 0, confirmed_ = 0;
};

} // namespace muster
