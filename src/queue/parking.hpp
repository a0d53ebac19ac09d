// SPDX-License-Identifier: MIT
#pragma once
// The threads that sleep on a queue, and which thread wakes which. Only decisions: the queue carries them out, and
// tests/unit/test_parking.cpp searches every order in which threads can make them.
#include <cstdint>
#include <utility>

namespace muster {

// An event source (an eventfd whose every write is an edge) makes the queue's epoll descriptor readable; a thread that
// waits on that descriptor takes the edge. Of the threads that sleep in next(), one is the leader and waits on the
// descriptor; the others follow on a condition variable and are woken one by one, by each thread that leaves. A loop of
// the host may poll the descriptor, too.
//
// `armed`: the next push has to signal; that push clears it, so the pushes in between cost no system call. While the
// queue is empty and a thread leads or polls, it is armed, or an edge is in transit to a thread that will handle it. An
// edge is taken by one of several threads, perhaps not the one for which it was meant; therefore the thread that took
// it makes up for the edges that others miss.
//
// Under the queue's lock. `any`: the queue has entries.
struct Parking {
    bool armed = true;
    bool leader = false; // a thread waits on the descriptor, or is about to
    bool polled = false; // the host has the descriptor, or a wake function
    bool closed = false;
    uint32_t followers = 0;
    uint64_t cancels = 0, leader_cancels = 0; // calls of cancel(), ever and known to the leader

    // An entry was put in. True: signal, after unlocking.
    bool pushed() noexcept { return std::exchange(armed, false); }

    // The leader sleeps and has something to find out.
    bool leader_misses(bool any) const noexcept { return leader && (any || closed || cancels != leader_cancels); }

    // A thread found no entry and will wait: as the leader, if there is none.
    void lead(uint64_t cancels_seen) noexcept {
        leader = true;
        leader_cancels = cancels_seen;
        armed = true;
    }
    void lead_no_more() noexcept { leader = false; }

    // Or as a follower. True: signal, the leader may miss the edge that this thread took.
    bool follow(bool any, bool harvested) noexcept {
        followers++;
        return harvested && leader_misses(any);
    }
    void follow_no_more() noexcept { followers--; }

    struct Leave {
        bool wake_follower;
        bool signal; // after unlocking
    };
    // A thread leaves next(), with an entry or without: another thread must find the remaining entries.
    Leave leave(bool any, bool harvested) noexcept {
        // The edge that it took may have been that of the leader, or of the poller; so may the edge of the last push.
        // (A host should drain what it polls, but another of its threads may take the edge in between.)
        if (!any && (leader || polled)) armed = true;
        return {followers != 0 && (any || !leader), harvested && (leader_misses(any) || (polled && (any || closed)))};
    }

    // The host begins to poll: the descriptor shows present and later entries. True: signal.
    bool show(bool any) noexcept {
        polled = true;
        const bool now = any || closed;
        armed = !now;
        return now;
    }
};

} // namespace muster
