// SPDX-License-Identifier: MIT
#pragma once
// A member as a state machine: (state, event, now) -> (state, actions). It has no threads, no clock and no connections;
// its driver provides these, sends its requests to the store, and returns the answers.
//
// The machine compares the intended record of the member with the one in the store and writes it, one write at a time.
// Everything else follows from what the member observes in the store.
#include "rendezvous/machine/ask.hpp"
#include "rendezvous/machine/event.hpp"
#include "rendezvous/machine/leader.hpp"
#include "rendezvous/machine/membership.hpp"
#include "rendezvous/machine/records.hpp"

#include <map>
#include <memory>

namespace muster {

struct MachineSettings {
    std::string run; // for texts: rendezvous "job"
    std::string id;  // of the member, no two are the same; all as long
    std::string address, order_key;
    uint32_t preferred = UINT32_MAX;
    RunConfig config;
    int64_t keep_alive_ns = 0;
    bool hosted = false; // a member serves the store: it may be lost with the process of that member
    // If so, host:port of the member's own store; empty: it has none, and cannot continue after a loss.
    std::string peer;
    std::string home;                     // host:port of the store it begins at
    std::string origin;                   // host:port of the URL, where newcomers search
    bool serves = false;                  // this process serves the store at the origin
    bool keeps_state = false;             // there is a state file
    std::optional<Membership> former;     // the content of that file, written by a process that has ended
    int64_t majority_ns = 0;              // longest search for more than half; 0: some leases; -1: as long as the join
    size_t max_ops = Leader::default_ops; // in a request
    bool queues = false;                  // the store has them
};

// The actions that the driver has to perform, in this order.
struct Action {
    enum Kind {
        ask,       // `tag`, `ops`: a request without a deadline; answer() later
        lease,     // `tag`, `ttl_ns`, `manual`: make a lease; answer() later, the entry has the number
        end_lease, // `number`
        withdraw,  // `tag`: the answer is not needed any more
        finish,    // `tag`: a call, with `error`
        begin,     // `tag`: a join, with `place`: the round begins for this member
        over,      // the round is over for this member, `error` says why
        emit,      // `event`
        visit,     // `address`: from here on requests are sent to the store there; all earlier ones are withdrawn
        dial,      // `tag`, `address`: send any request to the store of another member; answer() later
        own,       // `ops`: to be done at the member's own store
        save,      // `tag`, `membership`: into the state file; answer() later
        discard,   // the state file: the run is over
        point,     // `ops`: to be applied to a store at the origin, if this process can serve one there
        announce   // `tag`, `address`, `ops`: to be applied to the store there, if there is one; answer() later
    } kind;
    uint64_t tag = 0, number = 0;
    AskOps ops = {};
    int64_t ttl_ns = 0;
    bool manual = false;
    Error error = {};
    RoundPlace place = {};
    muster_rendezvous_event event = {};
    std::string address = {};
    Membership membership = {};
};

// Of a request whose connection to the store broke: it may be repeated.
inline bool may_pass(Status status) noexcept {
    return status == MUSTER_TIMEOUT || status == MUSTER_AGAIN || status == MUSTER_E_PEER ||
           status == MUSTER_E_UNREACHABLE;
}

class Machine final : private LeaderHost {
  public:
    explicit Machine(MachineSettings settings);

    // Events; each may add actions.
    void call(uint64_t id, uint32_t what, const std::string &reason, int64_t now_ns);
    void stop(uint64_t id, Status why, double seconds, int64_t now_ns);
    void answer(uint64_t tag, const StoreAnswer &answer, int64_t now_ns);
    void wake(int64_t now_ns);
    void release(int64_t now_ns); // the host has released the member: everything ends

    std::vector<Action> take_actions() { return std::exchange(actions_, {}); }
    int64_t wake_at_ns() const noexcept; // INT64_MAX: never
    bool idle() const noexcept { return asked_.empty(); }
    muster_rendezvous_state state(int64_t now_ns) const;
    bool leads() const noexcept { return leader_ != nullptr && leader_->ready(); }
    const std::string &id() const noexcept { return settings_.id; }

  private:
    enum class Phase { out, seeking, in };
    enum class Want { nothing, seeking, exiting, confirmed, left };
    enum class What {
        grant,
        enter,
        write,
        watch_everybody,
        watch_place,
        look,
        lead,
        abort,
        close,
        of_leader,
        grant_of_leader,
        dial_of_leader,
        peers,
        promise,
        find,
        save,
        announce
    };
    struct Asked {
        What what;
        uint64_t detail; // a call, a ticket, or a value of the leader
        AskOps ops;
        int64_t ttl_ns = 0;
        bool manual = false;
        Membership membership = {}; // to be saved
        int64_t again_at_ns = INT64_MAX, failing_since_ns = 0;
        bool under_way = true;
    };

    static constexpr uint32_t first_to_lead = 4;             // ranks
    static constexpr int64_t next_to_lead_ns = 20 * 1000000; // for twice as many, and so on

    // ---- asking
    uint64_t ask(What what, AskOps ops, uint64_t detail = 0);
    uint64_t ask_lease(What what, int64_t ttl_ns, bool manual, uint64_t detail = 0);
    void submit(uint64_t tag, Asked &asked);
    bool under_way(What what) const noexcept;
    void withdraw(What what);
    bool try_again(Asked &asked, const StoreAnswer &answer);

    // ---- answers
    void take(const Asked &asked, const StoreAnswer &answer);
    void entered(const Asked &asked, const StoreAnswer &answer);
    void written(const Asked &asked, const StoreAnswer &answer);
    void watched(const Asked &asked, const StoreAnswer &answer);
    void led(const Asked &asked, const StoreAnswer &answer);
    void was_aborted(const Asked &asked, const StoreAnswer &answer);
    void was_closed(const Asked &asked, const StoreAnswer &answer);

    // ---- observations
    void see(std::string_view key, bool present, uint64_t version, uint64_t revision, std::string_view value,
             uint32_t flags = 0);
    void see_entries(const AskOps &ops, const StoreAnswer &answer);
    void look_around(); // after all that one answer shows was seen
    void see_round();
    void see_loss_of_leader();
    void see_note();
    void see_closed();
    void see_place();
    void watch(What what, uint64_t revision);
    void look();

    // ---- intentions
    void sync();
    AskOp set_record(MemberRecord::State state) const;
    bool record_written(const StoreAnswer &answer, size_t index, const AskOps &ops);
    void seek_anew();
    void go_out(Membership::Say say = Membership::promised);
    void stop_seeking();
    void pause_search();
    void settled();
    void end_exit(const std::string &why);
    void stop_watching();
    void lose_lease();
    void lose_store(const Error &why);
    void end_calls(const Error &why);
    bool takes_part() const noexcept;
    int64_t turn_ns() const noexcept;
    bool may_lead() const noexcept;
    void consider_leading();
    void stop_leading();
    void settle_leader();
    void finish(uint64_t &call, const Error &error); // if it is one; then it is none any more
    void finish(uint64_t &&call, const Error &error);
    void round_over(Status status, const std::string &why);
    void emit(uint32_t kind, uint32_t rank, uint32_t count, std::string_view text);
    std::string where() const { return settings_.run; }

    // ---- when the store is lost with the member that served it (succession.cpp)
    bool hosted() const noexcept { return settings_.hosted; }
    bool knows_peers_of(uint64_t round);
    void peers_read(const Asked &asked, const StoreAnswer &answer);
    void end_base();
    bool may_promise() const noexcept { return base_.may_promise(home_); }
    bool promise_is_wanted() const noexcept;
    void adopt_round();
    void consider_promising();
    bool can_go_on(const Error &why) const noexcept;
    void go_on_elsewhere(const Error &why);
    void stand_for_host();
    void search();
    void search_on();
    void leave_store();
    std::string next_store(bool &has_to_stand);
    int64_t search_until_ns() const noexcept;
    bool too_few() const noexcept;
    void follow(const std::string &address);
    void found(const Asked &asked, const StoreAnswer &answer);
    void give_up();
    void see_verdict();
    void choose_where_to_go_on();
    bool same_run(std::string_view config);

    // ---- the member's state file, and what it publishes (published.cpp)
    bool saved(const RoundAttempt &attempt, Membership::Say say) const noexcept;
    void save(Membership::Say say, const RoundPlace &place);
    void state_saved(const Asked &asked, const StoreAnswer &answer);
    void discard_state();
    bool is_host() const noexcept;
    bool serves_store() const noexcept;
    void publish_home();
    void point_to(const std::string &address);
    void announce();
    void announced(const StoreAnswer &answer);
    void write_at_origin(AskOp moved);
    void correct(const MovedRecord &old);
    void consider_moving();
    std::string moved_record(const std::string &address) const;

    // ---- LeaderHost
    void ask_for_leader(uint64_t detail, AskOps ops) override { ask(What::of_leader, std::move(ops), detail); }
    void lease_for_leader(uint64_t detail, int64_t ttl_ns) override {
        ask_lease(What::grant_of_leader, ttl_ns, true, detail);
    }
    void end_lease_of_leader(uint64_t lease) override;
    void dial_for_leader(uint32_t rank, const std::string &peer) override;
    void leader_sees(std::string_view key, bool present, uint64_t version, uint64_t revision,
                     std::string_view value) override;
    void leader_ends() override { leader_over_ = true; }
    void leader_fails(const Error &error) override { failed_ = error; }

    const MachineSettings settings_;
    std::vector<Action> actions_;
    std::map<uint64_t, Asked> asked_;
    uint64_t next_tag_ = 1;

    Phase phase_ = Phase::out;
    Want want_ = Want::nothing, have_ = Want::nothing; // have_: the state that the store is known to have
    uint64_t ticket_ = 0, have_ticket_ = 0, lease_ = 0;
    uint64_t record_version_ = 0;
    bool place_written_ = false, place_gone_ = false; // on this lease
    bool released_ = false, looked_ = false;          // looked_: the last observations were made at one moment
    uint64_t position_call_ = 0;
    uint32_t position_what_ = 0; // of the call: join, leave or exit
    RoundPlace place_;           // of the round the member is in, or was
    uint64_t old_round_ = 0;
    uint32_t old_rank_ = 0;

    std::map<std::string, uint64_t, std::less<>> seen_; // keys, and the revision of the last observation of each
    uint64_t leader_version_ = 0;
    Note::How leader_gone_ = Note::How::dead; // how the last one went
    uint64_t lost_term_ = 0;                  // of the last one whose lease has ended
    int64_t lead_from_ns_ = INT64_MIN;
    bool leader_told_ = false; // that the leader which made this round is lost
    std::string leader_id_, round_bytes_;
    uint64_t round_version_ = 0, note_version_ = 0;
    std::optional<RoundRecord> round_, aborted_; // aborted: the latest that was, also when another has followed
    std::optional<Note> note_;
    std::optional<ClosedRecord> closed_;
    std::optional<RoundPlace> mine_;
    std::string mine_bytes_;
    uint64_t closed_version_ = 0, closed_told_ = 0;
    int64_t last_call_end_ns_ = -1, now_ns_ = 0;
    size_t gone_told_ = 0;
    uint32_t left_told_ = 0, dead_told_ = 0, waiting_emitted_ = 0, seeking_emitted_ = 0;
    bool called_emitted_ = false;

    struct Base {           // the latest round of this member, while it has a vote in the next one
        uint64_t round = 0; // 0: none
        uint32_t rank = 0, host = no_rank;
        std::string made_at;   // host:port of the store
        bool promised = false; // the next round is left to a store
        std::string promised_to;
        bool heir = false; // the vote is that of a process that has ended
        // May the next round be left to that store, and how?
        bool may_promise(const std::string &store) const noexcept {
            return round != 0 && (!promised || promised_to == store || with_host(store));
        }
        // Once more, as that counts only together with the host.
        bool with_host(const std::string &store) const noexcept {
            return promised && promised_to == made_at && store != made_at && host != no_rank && host != rank;
        }
        std::string_view promise(const std::string &store) const noexcept {
            return heir || with_host(store) ? Promises::with_host : Promises::given;
        }
    } base_, leaving_;          // leaving: as it was until it left
    struct Search {             // for the store at which the run continues
        bool under_way = false; // there is no store now
        size_t next = 0;        // of the peers; after them: where it was, the origin
        size_t walked = 0;      // up to where the list was tried
        uint64_t verdicts = 0;
        std::string back;                       // to where it was; empty: that is gone
        std::string hint;                       // address of the run according to another store
        std::set<std::string> hints;            // that were followed since the first of the peers
        bool other_run = false;                 // a store of another run was found
        bool tried_back = false, stood = false; // by an heir, which offers its own store after that
        Error why;                              // of the search: the loss, or the verdict of a leader
        std::set<std::string> refused;          // stores of which nothing is left
        int64_t until_ns = 0;                   // 0: none is sought for the join that waits
        int64_t visit_until_ns = INT64_MAX, again_at_ns = INT64_MAX;
    } search_;
    std::vector<std::string> peers_; // of the latest round that is known
    uint64_t peers_of_ = 0;          // its number
    uint32_t known_world_ = 0;       // of the latest round that is known
    uint64_t known_round_ = 0, promise_wanted_ = 0, verdict_version_ = 0, entered_at_ = 0;
    int64_t promise_from_ns_ = INT64_MIN;
    std::string home_ = settings_.home, verdict_;
    bool promise_sent_ = false;  // to this store
    bool host_is_asked_ = false; // for its promise, too

    // A newcomer may be redirected to another run of the name, and takes its identity.
    RunConfig config_ = settings_.config;
    Membership state_; // the content of the state file
    bool has_state_ = false;
    Membership::Say leave_say_ = Membership::promised; // to be saved before the member leaves the store
    std::optional<MovedRecord> moved_;                 // the record of this store
    int64_t move_from_ns_ = INT64_MIN;                 // no such record is followed before
    std::string made_at_;                              // home of the latest round that this member was in
    std::string published_;                            // the home that was published last
    std::optional<MovedRecord> origin_says_; // its record when this member, as the leader, was about to replace it
    uint64_t stood_for_ = 0;                 // the round that was written into its own store
    int64_t announce_at_ns_ = INT64_MAX;

    std::unique_ptr<Leader> leader_;
    bool leader_over_ = false;
    Error failed_;
};

} // namespace muster
