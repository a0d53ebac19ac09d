// SPDX-License-Identifier: MIT
#pragma once
// The life of one worker, as its master sees it: a state machine free of I/O. Events go in, actions come out; the
// master executes the actions in their order, and calls wake() at wake_at_ns().
//
// Transitions. "end (FAILED)" is the last action of a worker: it reports the end once, with that event, or with REMOVED
// where the worker was asked to leave or has announced it. An event that is not listed for a state changes nothing.
//
//   state      event                    actions                                next state
//   ---------  -----------------------  -------------------------------------  ----------
//   launching  launched                 report LAUNCHED, dial (1)              launched
//              connected                report LAUNCHED, report CONNECTED      connected
//              remove, deadline         forget_launch, end (FAILED)            gone
//              process_ended            end (FAILED)                           gone
//   launched   connected                report CONNECTED                       connected
//              remove, connect_failed,  KILL (2)                               killing (2)
//              deadline
//              process_ended            end (FAILED)                           gone
//   connected  hello                    join                                   joined
//              leave_announced                                                 leaving
//              remove, deadline         KILL                                   killing
//              link_lost                close_link (3)                         ending (3)
//              process_ended                                                   exited
//   joined     remove with a grace      send_leave                             leaving
//              remove without           KILL                                   killing
//              leave_announced                                                 leaving
//              link_lost                close_link (3)                         ending (3)
//              process_ended                                                   exited
//   leaving    remove with a grace      send_leave, the first time             leaving
//              remove without, deadline KILL                                   killing
//              link_lost                close_link (4)                         ending (4)
//              process_ended                                                   exited
//   ending     remove, deadline         KILL                                   killing
//              process_ended            end (DEAD)                             gone
//   exited     leave_announced                                                 exited
//              link_lost, deadline      close_link, end (DEAD)                 gone
//   killing    leave_announced                                                 killing
//              link_lost                close_link                             killing
//              process_ended            end (DEAD), if the link is lost        exited, or gone
//              kill_done                end (DEAD), unless exits are seen      killing, or gone
//              kill_failed, deadline    end (DEAD)                             gone
//   any        failed                   end (DEAD)                             gone
//              context_over             KILL, forget_launch (5), end (DEAD)    gone
//
//   DEAD is FAILED where the worker has never joined. Before `end`, an open link is closed.
//   (1) Where the master dials its workers.
//   (2) KILL is the action `kill`, which kill_done or kill_failed answers. Where the manager neither sees exits nor
//       kills, it is `send_die`, if there is a link, and the worker is gone at once.
//   (3) Where the manager does not see this worker's exit: KILL, and the next state is killing.
//   (4) Where the manager does not see this worker's exit: end (REMOVED), since it leaves by itself.
//   (5) KILL of a process that is not known to have ended; forget_launch in the state launching.
//
// Deadlines: until joined, the join timeout; leaving, the grace of the removal, else none; ending, a short time in
// which the process is seen to end, or what is left of the grace; exited, a short time for what the process had sent;
// killing, ten seconds.
#include "base/result.hpp"

#include <muster/cluster.h>

#include <string>

namespace muster {

struct WorkerAction {
    enum Kind : uint8_t {
        report,        // `event`: to the host
        dial,          // the worker, for its link to the master
        join,          // send the welcome, report JOINED, notify the manager
        send_leave,    // request the worker to leave
        send_die,      // request the library of the worker to kill its own process
        close_link,    // the link is of no use any more
        forget_launch, // the manager is not to launch it any more
        kill,          // request the manager to kill it
        end            // the last one: report end_of_life(), and forget the worker
    };
    Kind kind = report;
    uint32_t event = 0;
};

// One thread.
class WorkerMachine {
  public:
    enum class State : uint8_t { launching, launched, connected, joined, leaving, ending, exited, killing, gone };
    struct Settings {
        bool is_dialled_by_master = false;
        bool sees_exits = false; // the manager reports when a process has ended
        bool can_kill = false;   // the manager kills
        int64_t join_timeout_ns = 0, leave_timeout_ns = 0;
    };
    WorkerMachine(const Settings &settings, int64_t now_ns) noexcept;

    // ---- events ----
    void launched();                                       // by its manager
    void connected();                                      // its link to the master is open, by whichever side
    void connect_failed(const Error &why, int64_t now_ns); // the master's dial
    void hello();                                          // its first message, see awaits_hello()
    void leave_announced() noexcept;
    void link_lost(const Error &why, int64_t now_ns);
    void process_ended(std::string how, int64_t now_ns);
    void failed(const Error &why);                             // its manager gives up
    void exit_is_unseen() noexcept { is_exit_unseen_ = true; } // its manager will not see the exit of this one
    void remove(int64_t grace_ns, int64_t now_ns);             // the host requests that it leaves
    void kill_done();
    void kill_failed(const Error &why);
    void context_over(const Error &why);
    void wake(int64_t now_ns); // at wake_at_ns(), or later

    // ---- actions, in order ----
    bool has_action() const noexcept { return first_action_ != action_count_; }
    WorkerAction next_action() noexcept;

    // ---- state ----
    State state() const noexcept { return state_; }
    int64_t wake_at_ns() const noexcept { return deadline_ns_; } // INT64_MAX: never
    uint32_t public_state() const noexcept;                      // a ::muster_member_state value
    bool has_link() const noexcept { return has_link_; }
    bool has_started() const noexcept { return state_ != State::launching; } // its process may exist
    bool has_joined() const noexcept { return has_joined_; }
    bool awaits_hello() const noexcept { return state_ == State::connected; }
    bool awaits_link() const noexcept { return state_ == State::launching || state_ == State::launched; }
    bool is_removed() const noexcept { return is_removed_; }           // the host has requested it
    bool was_killed_late() const noexcept { return was_killed_late_; } // it had its chance to leave
    struct End {
        uint32_t event = 0; // REMOVED, DEAD or FAILED
        Error why;          // OK: orderly
        std::string text;
    };
    End end_of_life() const noexcept; // once it is gone

  private:
    void add(WorkerAction::Kind kind, uint32_t event = 0) noexcept;
    void enter(State state, int64_t deadline_ns) noexcept { state_ = state, deadline_ns_ = deadline_ns; }
    void close_link() noexcept;
    void kill(int64_t now_ns);
    void end();
    bool sees_exit() const noexcept { return settings_.sees_exits && !is_exit_unseen_; }
    bool is_over() const noexcept { return state_ == State::gone; }

    const Settings settings_;
    State state_ = State::launching;
    int64_t deadline_ns_;
    // Facts that determine the report at the end, and whether there is anything left to wait for.
    bool has_link_ = false, has_joined_ = false, is_exit_unseen_ = false;
    bool is_removed_ = false, has_announced_ = false, is_orderly_ = false; // orderly: one of the two before
    bool was_killed_while_well_ = false, was_killed_late_ = false;
    Error why_;         // why it is cut off, where that is known before its end
    std::string how_;   // its process has ended
    Error kill_failed_; // it may not have ended

    static constexpr size_t max_actions = 10; // of a whole life: each kind occurs once, `report` twice
    WorkerAction actions_[max_actions];
    size_t first_action_ = 0, action_count_ = 0;
};

} // namespace muster
