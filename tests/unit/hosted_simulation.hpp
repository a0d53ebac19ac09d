// SPDX-License-Identifier: MIT
// Schedules of a simulated world: what happens to the members of a run, one of which has the store of all, and what has
// to be so when the faults end.
#pragma once

#include "hosted_processes.hpp"

namespace muster::test {

class Simulation final : private HostedProcesses {
  public:
    Simulation(uint64_t seed, const Shape &shape) : HostedProcesses(seed, shape) {}

    // A whole schedule with all faults. Throws what is wrong.
    void run_wild() {
        for (int i = 0; i < shape_.events; i++) {
            disturb();
            go_on(now_ + below(600) * ms);
        }
        calm();
        go_on(now_ + 40 * lease_ns);
        nobody_waits_in_vain();
    }
    // The host dies again and again, and nothing else happens. How often.
    uint32_t run_through_deaths() {
        calm_ = true;
        uint32_t deaths = 0;
        for (;;) {
            // A join after a while also where nobody has noticed, and while the next host is chosen.
            for (size_t i = 0; i < nodes_.size(); i++)
                if (nodes_[i]->machine && nodes_[i]->calls.empty()) call(i, MUSTER_RENDEZVOUS_JOIN, -1);
            go_on(now_ + 30 * lease_ns);
            const uint32_t left = living();
            if (worlds_.empty()) wrong("no world at all");
            const RoundRecord &latest = worlds_.rbegin()->second.round;
            if (latest.world != left)
                wrong("a world of " + std::to_string(latest.world) + ", and " + std::to_string(left) + " are there");
            for (const auto &node : nodes_)
                if (node->machine && (!node->in || node->place.attempt != latest.attempt)) wrong("one is not in");
            if (left < 3 || left / 2 + 1 > left - 1 || left - 1 < shape_.min) return deaths;
            kill(stores_[worlds_.rbegin()->second.store]->owner);
            deaths++;
            go_on(now_ + below(2 * lease_ns / ms) * ms);
        }
    }
    // Members are killed, some or all at once, and restarted by the same command; nothing else happens. The world has
    // to be whole again each time.
    void run_through_restarts(int times) {
        calm_ = true;
        for (int i = 0; i < times; i++) {
            all_join(i);
            if (one_in(2)) { // a round that ends in order
                for (const auto &node : nodes_) node->in = false;
                all_join(i);
            }
            const uint64_t how = below(4);
            for (size_t k = 0; k < nodes_.size(); k++) {
                const bool chosen = how == 0 ? k == host() : how == 1 ? true : one_in(2);
                if (!chosen) continue;
                at(now_ + below(one_in(2) ? 20 : 2000) * ms, [this, k] { kill(k); });
                at(now_ + 2000 * ms + below(one_in(2) ? 100 : 20000) * ms, [this, k] { restart(k); });
            }
            go_on(now_ + below(25000) * ms);
            join_again();
            go_on(now_ + 25000 * ms);
            restarts_++;
        }
    }
    // Processes whose join times out end and are restarted, as by a supervisor, and some processes are killed. Counts
    // how often the world is not whole again: when the process that serves the store ended while a round was being
    // made.
    void run_with_joins_that_time_out(int times) {
        calm_ = true;
        all_join(0);
        join_timeout_ns_ = 10000 * ms;
        for (int i = 0; i < times; i++) {
            for (size_t k = 0; k < nodes_.size(); k++) {
                if (one_in(2)) continue;
                at(now_ + below(2000) * ms, [this, k] { kill(k); });
                at(now_ + 2000 * ms + below(20000) * ms, [this, k] { restart(k); });
            }
            trials_++;
            go_on(now_ + below(25000) * ms);
            for (int k = 0; k < 10; k++) {
                join_again();
                go_on(now_ + 10 * lease_ns);
            }
            if (is_whole()) continue;
            stuck_++;
            return;
        }
    }
    // One member, not on the host of the URL, outlives all others, which are killed, the host last, and restarted: some
    // at once, before that member has seen the host go, and some late. The world has to be whole again each time.
    void run_with_one_survivor(int times) {
        calm_ = true;
        all_join(0);
        kill(0);
        go_on(now_ + 2 * lease_ns);
        restart(0);
        for (int i = 0; i < times; i++) {
            all_join(i);
            size_t survivor = 1;
            if (survivor == host()) survivor = 3;
            const int64_t host_dies = now_ + 2000 * ms + below(lease_ns / 4 / ms) * ms;
            for (size_t k = 0; k < nodes_.size(); k++) {
                if (k == survivor) continue;
                at(k == host() ? host_dies : now_ + below(20) * ms, [this, k] { kill(k); });
                at(host_dies + below(k % 2 == 0 && one_in(2) ? 300 : 15000) * ms, [this, k] { restart(k); });
            }
            go_on(now_ + 5000 * ms);
            join_again();
            go_on(now_ + 25000 * ms);
            restarts_++;
        }
        all_join(times);
    }
    // The host is killed while the next round is made, and restarted by the same command; nothing else happens. The
    // world has to be whole again, unless the host's state file leaves open whether another round followed its promise,
    // or some have not heard of the round that did (docs/adr/0011): how often that was so.
    void run_through_deaths_of_hosts(int times) {
        calm_ = true;
        for (int i = 0; i < times; i++) {
            all_join(i);
            for (size_t k = 0; k < nodes_.size(); k++)
                at(now_ + below(200) * ms, [this, k] { call(k, MUSTER_RENDEZVOUS_JOIN, -1); });
            const size_t dies = host();
            bool open = false;
            at(now_ + 100 * ms + below(1200) * ms, [this, dies, &open] {
                kill(dies);
                const auto &file = nodes_[dies]->file;
                const auto &[latest, world] = *worlds_.rbegin();
                open = file->say != Membership::undecided || file->place.attempt.number < latest ||
                       now_ - world.made_ns < 2000 * ms;
            });
            go_on(now_ + 1500 * ms);
            at(now_ + 1000 * ms + below(one_in(2) ? 2000 : 20000) * ms, [this, dies] { restart(dies); });
            trials_++;
            go_on(now_ + 25000 * ms);
            if (!open) continue;
            join_again();
            go_on(now_ + 60 * lease_ns);
            if (is_whole()) continue;
            stuck_++;
            return;
        }
    }
    // The first member, on the host of the URL, is killed and misses some rounds; then all others are, and it is
    // restarted before them. The world has to be whole again: what it says about the place of the run is old.
    void run_with_one_that_missed_rounds(int times) {
        calm_ = true;
        all_join(0);
        for (int i = 0; i < times; i++) {
            kill(0);
            for (uint64_t rounds = 1 + below(3); rounds-- != 0;) {
                go_on(now_ + 10 * lease_ns);
                for (size_t k = 1; k < nodes_.size(); k++)
                    if (nodes_[k]->calls.empty()) call(k, MUSTER_RENDEZVOUS_JOIN, -1);
            }
            go_on(now_ + 20 * lease_ns);
            for (size_t k = 1; k < nodes_.size(); k++) {
                at(now_ + below(50) * ms, [this, k] { kill(k); });
                at(now_ + 20000 * ms + below(20000) * ms, [this, k] { restart(k); });
            }
            at(now_ + 1000 * ms + below(22000) * ms, [this] { restart(0); });
            go_on(now_ + 120000 * ms);
            for (const auto &node : nodes_)
                node->in = false; // a member that waits does not end the round of the others
            all_join(i);
        }
    }
    void join_again() { // they notice at different times
        for (size_t k = 0; k < nodes_.size(); k++)
            at(now_ + below(8000) * ms, [this, k] {
                Node &node = *nodes_[k];
                if (node.machine && !node.in && node.calls.empty()) call(k, MUSTER_RENDEZVOUS_JOIN, join_timeout_ns_);
            });
    }
    void all_join(int i) {
        rejoins_ = true;
        for (size_t k = 0; k < nodes_.size(); k++)
            if (!nodes_[k]->in && nodes_[k]->calls.empty()) call(k, MUSTER_RENDEZVOUS_JOIN, join_timeout_ns_);
        go_on(now_ + 60 * lease_ns);
        if (worlds_.empty()) wrong("no world at all");
        if (!is_whole()) wrong("one is not in after " + std::to_string(i) + " times");
    }
    bool is_whole() const {
        const RoundRecord &latest = worlds_.rbegin()->second.round;
        return latest.world == nodes_.size() && std::all_of(nodes_.begin(), nodes_.end(), [&](const auto &node) {
                   return node->in && node->place.attempt == latest.attempt;
               });
    }
    uint64_t restarts() const { return restarts_; }
    uint64_t trials() const { return trials_; }
    uint64_t stuck() const { return stuck_; }
    uint64_t rounds() const { return worlds_.size(); }
    uint64_t elected() const {
        return std::count_if(worlds_.begin(), worlds_.end(), [](const auto &w) { return w.second.store != 0; });
    }
    uint64_t quorums() const { return ended_with_quorum_; }

  private:
    // ---- what happens
    void disturb() {
        const size_t index = one_in(5) ? host() : below(nodes_.size());
        Node &node = *nodes_[index];
        const uint64_t dice = below(100);
        if (!node.machine) {
            if (shape_.keeps_state && one_in(2)) return restart(index);
            if (nodes_.size() < shape_.nodes + 5 && one_in(4) && serves_origin()) add_node();
            return;
        }
        if (node.paused) {
            if (one_in(6)) wake(index);
            return;
        }
        if (one_in(4) && !cuts_.empty()) {
            const auto one = std::next(cuts_.begin(), static_cast<long>(below(cuts_.size())));
            return heal(one->first, one->second);
        }
        const size_t other = below(nodes_.size());
        if (dice < 5) {
            pause(index);
        } else if (dice < 12) {
            cuts_.insert({index, other});
            if (!one_in(4)) cuts_.insert({other, index});
        } else if (dice < 15) { // away from all
            for (size_t i = 0; i < nodes_.size(); i++) cuts_.insert({index, i}), cuts_.insert({i, index});
        } else if (dice < 18) {
            kill(index);
        } else if (node.in) {
            if (dice < 50)
                call(index, MUSTER_RENDEZVOUS_JOIN, -1);
            else if (dice < 55)
                call(index, MUSTER_RENDEZVOUS_LEAVE, -1);
            else if (dice < 65)
                call(index, MUSTER_RENDEZVOUS_ABORT, -1);
        } else if (node.calls.empty()) {
            call(index, MUSTER_RENDEZVOUS_JOIN, one_in(6) ? static_cast<int64_t>(below(20000)) * ms + 1 : -1);
        }
    }
    size_t host() const { return worlds_.empty() ? 0 : stores_[worlds_.rbegin()->second.store]->owner; }
    void calm() {
        calm_ = true;
        while (!cuts_.empty()) heal(cuts_.begin()->first, cuts_.begin()->second);
        if (shape_.keeps_state)
            for (size_t i = 0; i < nodes_.size(); i++) restart(i);
        for (size_t i = 0; i < nodes_.size(); i++)
            if (nodes_[i]->machine && nodes_[i]->paused) wake(i);
        for (size_t i = 0; i < nodes_.size(); i++)
            if (nodes_[i]->machine && !nodes_[i]->in && nodes_[i]->calls.empty()) call(i, MUSTER_RENDEZVOUS_JOIN, -1);
    }

    uint64_t trials_ = 0, stuck_ = 0;
};

} // namespace muster::test
