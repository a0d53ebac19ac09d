// SPDX-License-Identifier: MIT
// Members, each a real machine, around one real table of a store: time, messages that are late, lost or overtake each
// other, processes that pause and die, and what has to be so after each change.
#pragma once

#include "rendezvous/machine/machine.hpp"
#include "schedules.hpp"
#include "store/table/table.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace muster::test {

inline constexpr int64_t ms = 1'000'000, second = 1'000'000'000;

struct Shape { // of a schedule
    uint32_t min = 1, max = 4, nodes = 4;
    int64_t last_call_ns = 2 * second;
    bool in_order = true; // requests of a member come to the store as they were sent
    int faults = 0;       // of 1000 requests
    int events = 150;
    size_t max_ops = Leader::default_ops; // in a request; 10: worlds of two and more are made in parts
};

class Simulation {
  public:
    Simulation(uint64_t seed, const Shape &shape) : random_(seed), shape_(shape), table_(uint64_t{1} << 30) {
        RunConfig config{shape.min, shape.max, shape.last_call_ns};
        ask_now({AskOp{MUSTER_STORE_SET, keys::config, config.write()}});
        for (uint32_t i = 0; i < shape.nodes; i++) add_node();
    }
    ~Simulation() {
        for (auto &[id, request] : requests_)
            if (request->hangs) table_.withdraw(*request);
    }

    // The whole schedule. Throws what is wrong.
    void run() {
        for (int i = 0; i < shape_.events; i++) {
            disturb();
            go_on(now_ + below(400) * ms);
        }
        calm_ = true;
        for (auto &node : nodes_) heal(*node);
        come_together();
        tell_of_a_death();
        tell_of_a_death_at_the_worst_time();
        tell_of_the_leave_of_a_leader();
        leave_together();
    }
    uint64_t rounds() const { return latest_.attempt.number; }
    uint64_t faults() const { return faults_; }
    uint64_t leaves() const { return leaves_; } // of leaders, that others were told of

  private:
    struct Request final : StoreWaiter {
        explicit Request(StoreRequest what) : StoreWaiter(std::move(what)) {}
        size_t node = 0;
        uint64_t tag = 0;
        bool hangs = false, unheard = false; // unheard: it was given up before
    };
    struct Call {
        uint32_t what;
        int64_t until_ns;
    };
    struct Node {
        std::string id;
        std::unique_ptr<Machine> machine;        // NULL: dead
        bool paused = false, cut = false;        // cut: nothing comes through, it is kept until it does
        std::vector<std::function<void()>> kept; // inputs while it is paused
        std::vector<std::function<void()>> held; // messages while it is cut
        int64_t sent_until_ns = 0, heard_until_ns = 0;
        std::set<uint64_t> leases; // that it keeps
        std::map<uint64_t, uint64_t> requests;
        std::map<uint64_t, Call> calls;
        bool in = false;
        RoundPlace place;
        std::set<uint32_t> told_dead, told_left;
        int64_t timer_ns = INT64_MAX;
    };
    struct Timed {
        int64_t at_ns;
        uint64_t order;
        std::function<void()> run;
        bool operator<(const Timed &other) const {
            return std::tuple(at_ns, order) > std::tuple(other.at_ns, other.order);
        }
    };

    uint64_t below(uint64_t n) { return n == 0 ? 0 : random_() % n; }
    bool one_in(uint64_t n) { return below(n) == 0; }
    void at(int64_t when, std::function<void()> run) { timed_.push({std::max(when, now_), order_++, std::move(run)}); }
    void go_on(int64_t until) {
        while (!timed_.empty() && timed_.top().at_ns <= until) {
            Timed next = timed_.top();
            timed_.pop();
            now_ = next.at_ns;
            next.run();
        }
        now_ = std::max(now_, until);
    }
    [[noreturn]] void wrong(const std::string &what) {
        throw Broken(what + " at " + std::to_string(now_ / ms) + " ms, round " +
                     std::to_string(latest_.attempt.number));
    }

    // ---- nodes
    void add_node() {
        auto node = std::make_unique<Node>();
        const size_t index = nodes_.size();
        char id[33];
        std::snprintf(id, sizeof id, "%032zx", index);
        node->id = id;
        MachineSettings settings;
        settings.run = "rendezvous \"sim\"";
        settings.id = id;
        settings.address = "node" + std::to_string(index);
        settings.order_key = settings.address;
        if (one_in(4)) settings.preferred = static_cast<uint32_t>(below(shape_.max));
        settings.config = {shape_.min, shape_.max, shape_.last_call_ns};
        settings.keep_alive_ns = keep_alive_ns;
        settings.max_ops = shape_.max_ops;
        settings.queues = one_in(2);
        node->machine = std::make_unique<Machine>(settings);
        nodes_.push_back(std::move(node));
    }
    // Something happens to a node: now, or when it runs again.
    void input(size_t index, std::function<void(Machine &)> what) {
        Node &node = *nodes_[index];
        if (!node.machine) return;
        auto run = [this, index, what = std::move(what)] {
            Node &here = *nodes_[index];
            if (!here.machine) return;
            what(*here.machine);
            perform(index);
        };
        if (node.paused)
            node.kept.push_back(std::move(run));
        else
            run();
    }
    void perform(size_t index) {
        Node &node = *nodes_[index];
        for (Action &action : node.machine->take_actions()) {
            switch (action.kind) {
            case Action::ask:
                send(index, action.tag, make(action.ops));
                break;
            case Action::lease:
                grant(index, action.tag, action.ttl_ns, action.manual);
                break;
            case Action::end_lease:
                node.leases.erase(action.number);
                message(index, true, [this, lease = action.number] {
                    List<StoreWaiter> over;
                    table_.end_lease(lease, MUSTER_STORE_LEASE_SILENT, over);
                    finish(over);
                });
                break;
            case Action::withdraw: {
                const auto found = node.requests.find(action.tag);
                if (found == node.requests.end()) break;
                requests_[found->second]->unheard = true;
                node.requests.erase(found);
                break;
            }
            case Action::finish:
                if (closing_ && node.calls[action.tag].what == MUSTER_RENDEZVOUS_JOIN)
                    at(now_, [this, index] { call(index, MUSTER_RENDEZVOUS_LEAVE, -1); });
                node.calls.erase(action.tag);
                break;
            case Action::begin:
                node.calls.erase(action.tag);
                begins(node, action.place);
                break;
            case Action::over:
                node.in = false;
                break;
            case Action::emit:
                if (action.event.kind == MUSTER_RENDEZVOUS_DEAD && !node.told_dead.insert(action.event.rank).second &&
                    action.event.rank != UINT32_MAX)
                    wrong("the death of rank " + std::to_string(action.event.rank) + " is told twice");
                if (action.event.kind == MUSTER_RENDEZVOUS_LEFT) node.told_left.insert(action.event.rank);
                break;
            default: // of stores that are lost: test_rendezvous_hosted.cpp
                wrong("the only store is taken for lost");
            }
        }
        const int64_t wake = node.machine->wake_at_ns();
        if (wake != INT64_MAX && wake != node.timer_ns) {
            node.timer_ns = wake;
            at(wake, [this, index, wake] {
                if (nodes_[index]->timer_ns != wake) return;
                nodes_[index]->timer_ns = INT64_MAX;
                input(index, [this](Machine &machine) { machine.wake(now_); });
            });
        }
    }
    void call(size_t index, uint32_t what, int64_t timeout_ns) {
        Node &node = *nodes_[index];
        if (!node.machine || node.paused) return;
        const uint64_t id = next_call_++;
        node.calls[id] = {what, timeout_ns < 0 ? INT64_MAX : now_ + timeout_ns};
        if (timeout_ns >= 0)
            at(now_ + timeout_ns, [this, index, id] {
                input(index, [this, id](Machine &machine) { machine.stop(id, MUSTER_TIMEOUT, 1.0, now_); });
            });
        input(index, [this, id, what](Machine &machine) { machine.call(id, what, "reason", now_); });
    }
    void kill(size_t index) {
        Node &node = *nodes_[index];
        node.machine.reset();
        node.in = false;
        node.calls.clear();
        node.kept.clear();
        if (one_in(2)) return; // else its connection ends, and is seen to
        for (const uint64_t lease : node.leases)
            at(now_ + below(20) * ms, [this, lease] {
                List<StoreWaiter> over;
                table_.end_lease(lease, MUSTER_STORE_LEASE_SILENT, over);
                finish(over);
            });
    }
    void heal(Node &node) {
        node.cut = false;
        for (auto &one : std::exchange(node.held, {})) one();
        node.paused = false;
        for (auto &one : std::exchange(node.kept, {})) one();
    }

    // ---- between nodes and the store
    void message(size_t index, bool to_store, std::function<void()> deliver) {
        Node &node = *nodes_[index];
        if (node.cut) {
            node.held.push_back(
                [this, index, to_store, deliver = std::move(deliver)] { message(index, to_store, deliver); });
            return;
        }
        int64_t when = now_ + static_cast<int64_t>(below(one_in(10) ? 300 : 5)) * ms;
        int64_t &last = to_store ? node.sent_until_ns : node.heard_until_ns;
        if (shape_.in_order) when = last = std::max(last, when);
        at(when, std::move(deliver));
    }
    std::unique_ptr<Request> make(const AskOps &ops) {
        auto request = make_request(ops, {});
        if (!request) wrong(request.error().message);
        return std::make_unique<Request>(std::move(*request));
    }
    bool faulty() {
        if (calm_ || static_cast<int>(below(1000)) >= shape_.faults) return false;
        faults_++;
        return true;
    }
    void send(size_t index, uint64_t tag, std::unique_ptr<Request> request) {
        const uint64_t number = next_request_++;
        request->node = index;
        request->tag = tag;
        nodes_[index]->requests[tag] = number;
        requests_[number] = std::move(request);
        if (faulty()) {
            answer_failed(number);
            if (one_in(2)) { // it never comes
                requests_.erase(number);
                return;
            }
            at(now_ + below(5000) * ms, [this, number] { submit(number); }); // late
            return;
        }
        message(index, true, [this, number] { submit(number); });
    }
    void answer_failed(uint64_t number) {
        Request &request = *requests_[number];
        request.unheard = true;
        nodes_[request.node]->requests.erase(request.tag);
        message(request.node, false, [this, node = request.node, tag = request.tag] {
            input(node, [this, tag](Machine &machine) {
                machine.answer(tag, {Error::make(MUSTER_E_PEER, "the way broke"), {}}, now_);
            });
        });
    }
    void submit(uint64_t number) {
        Request &request = *requests_[number];
        if (request.unheard && request.request.ops()[0].kind == MUSTER_STORE_WATCH) return;
        List<StoreWaiter> over;
        request.hangs = true;
        table_.submit(request, over);
        finish(over);
    }
    void finish(List<StoreWaiter> &over) {
        while (StoreWaiter *const one = over.pop_front()) {
            Request &request = static_cast<Request &>(*one);
            request.hangs = false;
            if (request.unheard) continue;
            if (faulty()) {
                answer_failed(nodes_[request.node]->requests[request.tag]);
                continue;
            }
            message(request.node, false, [this, node = request.node, tag = request.tag, answer = request.answer] {
                nodes_[node]->requests.erase(tag);
                input(node, [this, tag, answer](Machine &machine) { machine.answer(tag, answer, now_); });
            });
        }
        look_at_store();
    }
    void grant(size_t index, uint64_t tag, int64_t ttl_ns, bool manual) {
        message(index, true, [this, index, tag, ttl_ns, manual] {
            const uint64_t lease = table_.grant(now_ + ttl_ns);
            look_at_leases();
            auto result = make_ref<StoreResult>();
            result->entries.resize(1);
            result->entries[0].number = static_cast<int64_t>(lease);
            const StoreAnswer answer{Error(), result};
            message(index, false, [this, index, tag, answer, lease, manual] {
                input(index, [this, index, tag, answer, lease, manual](Machine &machine) {
                    if (!manual) {
                        nodes_[index]->leases.insert(lease);
                        keep(index, lease);
                    }
                    machine.answer(tag, answer, now_);
                });
            });
        });
    }
    void keep(size_t index, uint64_t lease) {
        Node &node = *nodes_[index];
        if (!node.machine || node.leases.count(lease) == 0) return;
        if (!node.paused)
            message(index, true, [this, lease] {
                table_.keep(lease, now_ + keep_alive_ns);
                look_at_leases();
            });
        at(now_ + keep_alive_ns / 3, [this, index, lease] { keep(index, lease); });
    }
    void look_at_leases() {
        const int64_t next = table_.next_end_ns();
        if (next == INT64_MAX || next >= look_at_ns_) return;
        look_at_ns_ = next;
        at(next, [this, next] {
            if (look_at_ns_ != next) return;
            look_at_ns_ = INT64_MAX;
            List<StoreWaiter> over;
            table_.end_leases(now_, over);
            finish(over);
            look_at_leases();
        });
    }

    // ---- what has to be so
    StoreAnswer ask_now(const AskOps &ops) {
        auto request = make(ops);
        List<StoreWaiter> over;
        table_.submit(*request, over);
        over.remove(*request);
        return request->answer;
    }
    std::map<std::string, std::string> all(std::string_view prefix) {
        AskOp op{MUSTER_STORE_LIST, std::string(prefix)};
        std::map<std::string, std::string> found;
        const StoreAnswer answer = ask_now({op});
        for (const StoreEntry &entry : answer.result->entries)
            found[std::string(entry.key->bytes().substr(prefix.size()))] = entry.value->bytes();
        return found;
    }
    void look_at_store() {
        const StoreAnswer answer = ask_now({{MUSTER_STORE_READ, keys::round}});
        const StoreEntry &entry = answer.result->entries[0];
        if (entry.version == round_version_) return;
        round_version_ = entry.version;
        const RoundRecord round = *RoundRecord::read(entry.value->bytes());
        if (round.attempt == latest_.attempt) {
            if (!round.aborted || latest_.aborted) wrong("a round changed in another way than to be aborted");
            latest_ = round;
            return;
        }
        if (round.attempt.number != latest_.attempt.number + 1) wrong("rounds are not counted one by one");
        if (round.world < shape_.min || round.world > shape_.max) wrong("a world of " + std::to_string(round.world));
        const auto members = all(keys::members);
        if (!latest_.aborted)
            for (const auto &[id, place] : places_) {
                const auto found = members.find(id);
                if (found == members.end()) continue;
                const MemberRecord record = *MemberRecord::read(found->second);
                if (record.ticket == place.ticket && record.state != MemberRecord::left)
                    wrong("a round begins, and rank " + std::to_string(place.rank) + " is still in the last one");
            }
        std::map<std::string, RoundPlace> places;
        std::set<uint32_t> ranks;
        for (const auto &[id, bytes] : all(keys::places)) {
            const RoundPlace place = *RoundPlace::read(bytes);
            if (place.attempt != round.attempt) continue;
            if (place.rank >= round.world || !ranks.insert(place.rank).second) wrong("ranks are no permutation");
            if (place.world != round.world || place.digest != round.digest) wrong("a place of another world");
            if (members.count(id) == 0) wrong("a place for nobody");
            places[id] = place;
            const MemberRecord record = *MemberRecord::read(members.at(id));
            if (record.ticket == place.ticket && record.old_round == latest_.attempt.number && record.old_round != 0 &&
                record.old_rank < round.world && record.old_rank != place.rank)
                wrong("rank " + std::to_string(record.old_rank) + " was not kept");
        }
        if (ranks.size() > round.world || (round.world + 8 <= shape_.max_ops && ranks.size() != round.world))
            wrong("a round of " + std::to_string(round.world) + " has " + std::to_string(ranks.size()) + " places");
        latest_ = round;
        places_ = std::move(places);
        worlds_[round.attempt.number] = round;
    }
    void begins(Node &node, const RoundPlace &place) {
        const auto world = worlds_.find(place.attempt.number);
        if (world == worlds_.end() || world->second.attempt != place.attempt)
            wrong("a member is in a round that is none");
        if (world->second.world != place.world || world->second.digest != place.digest) wrong("two worlds");
        if (!taken_[place.attempt.number].insert(place.rank).second) wrong("a rank was given twice");
        node.in = true;
        node.place = place;
        node.told_dead.clear();
        node.told_left.clear();
    }

    // ---- what happens
    void disturb() {
        const size_t index = below(nodes_.size());
        Node &node = *nodes_[index];
        const uint64_t dice = below(100);
        if (!node.machine) {
            if (nodes_.size() < shape_.nodes + 6 && one_in(8)) add_node();
            return;
        }
        if (node.paused || node.cut) {
            if (one_in(3)) heal(node);
            return;
        }
        if (dice < 4 && shape_.faults != 0) {
            node.paused = true;
        } else if (dice < 8 && shape_.faults != 0) {
            node.cut = true;
        } else if (dice < 10) {
            kill(index);
        } else if (node.in) {
            uint32_t what = 0;
            if (dice < 60)
                what = MUSTER_RENDEZVOUS_JOIN;
            else if (dice < 70)
                what = MUSTER_RENDEZVOUS_LEAVE;
            else if (dice < 75)
                what = MUSTER_RENDEZVOUS_ABORT;
            else if (dice < 85)
                what = MUSTER_RENDEZVOUS_EXIT;
            if (what != 0) call(index, what, what == MUSTER_RENDEZVOUS_EXIT || one_in(4) ? below(3000) * ms + 1 : -1);
        } else if (node.calls.empty()) {
            call(index, MUSTER_RENDEZVOUS_JOIN, one_in(4) ? below(5000) * ms + 1 : -1);
        }
    }

    size_t living() const {
        return std::count_if(nodes_.begin(), nodes_.end(), [](const auto &node) { return node->machine != nullptr; });
    }
    // Faults have ended: who lives asks for a round, whatever it is in.
    void come_together() {
        while (living() < shape_.min) add_node();
        go_on(now_ + 30 * second); // leases and what is late
        for (size_t i = 0; i < nodes_.size(); i++) {
            Node &node = *nodes_[i];
            const bool seeks = std::any_of(node.calls.begin(), node.calls.end(),
                                           [](const auto &c) { return c.second.what == MUSTER_RENDEZVOUS_JOIN; });
            if (node.machine && !seeks) call(i, MUSTER_RENDEZVOUS_JOIN, -1);
        }
        go_on(now_ + 60 * second);
        // Some may have formed a world before the others came: those join once more.
        for (int again = 0; again < 3; again++) {
            for (size_t i = 0; i < nodes_.size(); i++)
                if (nodes_[i]->machine && nodes_[i]->in) call(i, MUSTER_RENDEZVOUS_JOIN, -1);
            go_on(now_ + 60 * second);
        }
        const size_t expected = std::min<size_t>(living(), shape_.max);
        size_t in = 0;
        for (const auto &node : nodes_) {
            if (!node->machine || !node->in) continue;
            in++;
            if (node->place.attempt != latest_.attempt) wrong("somebody is left in an old round");
        }
        if (in != expected || latest_.world != expected)
            wrong(std::to_string(in) + " of " + std::to_string(expected) + " are in a world of " +
                  std::to_string(latest_.world) + " when faults have ended");
    }
    void tell_of_a_death() {
        for (size_t i = 0; i < nodes_.size(); i++) {
            Node &dead = *nodes_[i];
            if (!dead.machine || !dead.in || latest_.world < 2) continue;
            const uint32_t rank = dead.place.rank;
            kill(i);
            go_on(now_ + 2 * keep_alive_ns);
            for (const auto &node : nodes_)
                if (node->machine && node->in && node->told_dead.count(rank) == 0)
                    wrong("rank " + std::to_string(node->place.rank) + " was not told of the death of rank " +
                          std::to_string(rank));
            return;
        }
    }
    // While a round is made: then it is not in, or its death is told.
    void tell_of_a_death_at_the_worst_time() {
        while (living() < shape_.min + 1) add_node();
        for (size_t i = 0; i < nodes_.size(); i++)
            if (nodes_[i]->machine && nodes_[i]->calls.empty()) call(i, MUSTER_RENDEZVOUS_JOIN, -1);
        go_on(now_ + below(2) * shape_.last_call_ns + below(60) * ms);
        for (size_t i = 0; i < nodes_.size(); i++) {
            if (!nodes_[i]->machine) continue;
            const std::string id = nodes_[i]->id;
            kill(i);
            go_on(now_ + 60 * second);
            const auto dead = places_.find(id);
            for (const auto &node : nodes_)
                if (node->machine && node->in && node->place.attempt == latest_.attempt && dead != places_.end() &&
                    dead->second.attempt == latest_.attempt && node->told_dead.count(dead->second.rank) == 0)
                    wrong("rank " + std::to_string(node->place.rank) + " was not told of the early death of rank " +
                          std::to_string(dead->second.rank));
            return;
        }
    }
    void tell_of_the_leave_of_a_leader() {
        go_on(now_ + 60 * second);
        for (size_t i = 0; i < nodes_.size(); i++) {
            Node &gone = *nodes_[i];
            if (!gone.machine || !gone.in || !gone.calls.empty() || !gone.machine->leads()) continue;
            const RoundAttempt attempt = gone.place.attempt;
            const uint32_t rank = gone.place.rank;
            call(i, MUSTER_RENDEZVOUS_LEAVE, -1);
            go_on(now_ + 10 * second);
            for (const auto &node : nodes_)
                if (node->machine && node->in && node->place.attempt == attempt &&
                    (node->told_left.count(rank) == 0 || node->told_dead.count(rank) != 0))
                    wrong("rank " + std::to_string(node->place.rank) + " was not told that rank " +
                          std::to_string(rank) + " has left");
            leaves_++;
            for (size_t k = 0; k < nodes_.size(); k++) // once more together
                if (nodes_[k]->machine && nodes_[k]->calls.empty()) call(k, MUSTER_RENDEZVOUS_JOIN, -1);
            go_on(now_ + 60 * second);
            return;
        }
    }
    void leave_together() {
        for (size_t i = 0; i < nodes_.size(); i++)
            if (nodes_[i]->machine && nodes_[i]->in) call(i, MUSTER_RENDEZVOUS_EXIT, -1);
        go_on(now_ + 10 * second);
        // One who hears that the run is closed when it joins leaves at once, whatever is under way.
        closing_ = true;
        for (size_t i = 0; i < nodes_.size(); i++) {
            Node &node = *nodes_[i];
            if (!node.machine || !node.in) continue;
            if (!node.calls.empty()) wrong("the exit was not reached by all");
            call(i, MUSTER_RENDEZVOUS_CLOSE, -1);
            if (one_in(2)) call(i, MUSTER_RENDEZVOUS_JOIN, -1);
        }
        go_on(now_ + 10 * second);
        for (const auto &node : nodes_)
            if (!node->calls.empty()) wrong("somebody still waits for a closed run");
    }

    static constexpr int64_t keep_alive_ns = 3 * second;
    std::mt19937_64 random_;
    const Shape shape_;
    StoreTable table_;
    int64_t now_ = second;
    uint64_t order_ = 0, next_call_ = 1, next_request_ = 1, faults_ = 0, leaves_ = 0;
    bool calm_ = false, closing_ = false;
    int64_t look_at_ns_ = INT64_MAX;
    std::priority_queue<Timed> timed_;
    std::vector<std::unique_ptr<Node>> nodes_;
    std::map<uint64_t, std::unique_ptr<Request>> requests_;
    uint64_t round_version_ = 0;
    RoundRecord latest_;
    std::map<std::string, RoundPlace> places_; // of the latest round
    std::map<uint64_t, RoundRecord> worlds_;
    std::map<uint64_t, std::set<uint32_t>> taken_;
};

} // namespace muster::test
