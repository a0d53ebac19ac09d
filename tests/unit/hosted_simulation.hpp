// SPDX-License-Identifier: MIT
// Members, each a real machine, one of which has the store of all: processes with stores that are killed and stopped,
// ways between two of them that are cut, and what has to be so after each change.
#pragma once

#include "rendezvous/machine.hpp"
#include "schedules.hpp"
#include "store/table.hpp"

#include <algorithm>
#include <cerrno>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace muster::test {

inline constexpr int64_t ms = 1'000'000, lease_ns = 3000 * ms;

struct Shape { // of a schedule
    uint32_t min = 1, max = 5, nodes = 5;
    int64_t last_call_ns = 500 * ms;
    int faults = 0; // of 1000 requests
    int events = 120;
};

class Simulation {
  public:
    Simulation(uint64_t seed, const Shape &shape) : random_(seed), shape_(shape) {
        for (uint32_t i = 0; i < shape.nodes; i++) add_node();
    }
    ~Simulation() {
        for (auto &[number, request] : requests_)
            if (request->hangs) stores_[request->store]->table.withdraw(*request);
    }

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
    uint64_t rounds() const { return worlds_.size(); }
    uint64_t elected() const {
        return std::count_if(worlds_.begin(), worlds_.end(), [](const auto &w) { return w.second.store != 0; });
    }
    uint64_t quorums() const { return ended_with_quorum_; }

  private:
    struct Store {
        explicit Store(size_t of) : owner(of) {}
        size_t owner;
        StoreTable table{uint64_t{1} << 30};
        std::string address;
        uint64_t round_version = 0;
        int64_t look_at_ns = INT64_MAX;
    };
    struct Request final : StoreWaiter {
        explicit Request(StoreRequest what) : StoreWaiter(std::move(what)) {}
        size_t node = 0, store = 0;
        uint64_t tag = 0, session = 0;
        bool hangs = false, unheard = false;
    };
    struct Session { // of a node with a store
        size_t node = 0, store = 0;
        int64_t heard_ns = 0;
        bool ever_heard = false, over = false, for_machine = true;
        std::map<uint64_t, uint64_t> requests; // by tag
        std::vector<uint64_t> leases;
        int64_t to_store_ns = 0, from_store_ns = 0;
    };
    struct Node {
        std::string id;
        std::unique_ptr<Machine> machine; // NULL: dead
        bool paused = false;
        std::vector<std::function<void()>> kept; // what happens to it and to its store, while it is paused
        uint64_t session = 0;
        size_t own = 0;
        std::map<uint64_t, uint32_t> calls;
        bool in = false;
        RoundPlace place;
        int64_t timer_ns = INT64_MAX;
    };
    struct World {
        RoundRecord round;
        size_t store;
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
        throw Broken(what + " at " + std::to_string(now_ / ms) + " ms");
    }
    uint32_t living() const {
        return static_cast<uint32_t>(
            std::count_if(nodes_.begin(), nodes_.end(), [](const auto &node) { return node->machine != nullptr; }));
    }

    // ---- processes
    void add_node() {
        const size_t index = nodes_.size();
        if (index == 0) add_store(0, "main:1");
        nodes_.push_back(std::make_unique<Node>());
        Node &node = *nodes_.back();
        char id[33];
        std::snprintf(id, sizeof id, "%032zx", index);
        node.id = id;
        node.own = add_store(index, "peer:" + std::to_string(index + 2));
        begin_machine(index);
    }
    size_t add_store(size_t owner, const std::string &address) {
        stores_.push_back(std::make_unique<Store>(owner));
        stores_.back()->address = address;
        return stores_.size() - 1;
    }
    void begin_machine(size_t index) {
        Node &node = *nodes_[index];
        MachineSettings settings;
        settings.run = "rendezvous \"sim\"";
        settings.id = node.id;
        settings.address = settings.order_key = "node" + std::to_string(index);
        settings.config = {shape_.min, shape_.max, shape_.last_call_ns};
        settings.keep_alive_ns = lease_ns;
        settings.hosted = true;
        settings.peer = stores_[node.own]->address;
        settings.home = stores_[0]->address;
        node.machine = std::make_unique<Machine>(settings);
        const AskOp config{MUSTER_STORE_SET, keys::config, settings.config.write()};
        do_now(0, {config});
        open_session(index, 0);
    }
    void kill(size_t index) {
        Node &node = *nodes_[index];
        if (node.session != 0) end_session(node.session);
        node.machine.reset();
        node.in = node.paused = false;
        node.calls.clear();
        node.kept.clear();
    }
    void pause(size_t index) { nodes_[index]->paused = true; }
    void wake(size_t index) {
        Node &node = *nodes_[index];
        node.paused = false;
        for (auto &one : std::exchange(node.kept, {})) one();
    }
    // Something happens in a process: now, or when it runs again.
    void in_process(size_t index, std::function<void()> what) {
        Node &node = *nodes_[index];
        if (!node.machine) return;
        if (node.paused)
            node.kept.push_back([this, index, what = std::move(what)] { in_process(index, what); });
        else
            what();
    }
    void input(size_t index, std::function<void(Machine &)> what) {
        in_process(index, [this, index, what = std::move(what)] {
            what(*nodes_[index]->machine);
            perform(index);
        });
    }
    void call(size_t index, uint32_t what, int64_t timeout_ns) {
        Node &node = *nodes_[index];
        if (!node.machine || node.paused) return;
        const uint64_t id = next_call_++;
        node.calls[id] = what;
        if (timeout_ns >= 0)
            at(now_ + timeout_ns, [this, index, id] {
                input(index, [this, id](Machine &machine) { machine.stop(id, MUSTER_TIMEOUT, 1.0, now_); });
            });
        input(index, [this, id, what](Machine &machine) { machine.call(id, what, "reason", now_); });
    }
    void perform(size_t index) {
        Node &node = *nodes_[index];
        for (Action &action : node.machine->take_actions()) {
            switch (action.kind) {
            case Action::ask:
                send(node.session, action.tag, action.ops);
                break;
            case Action::lease:
                grant(node.session, action.tag, action.ttl_ns, action.manual);
                break;
            case Action::end_lease: {
                Session &session = sessions_[node.session];
                std::erase(session.leases, action.number);
                to_store(node.session, [this, store = session.store, lease = action.number] {
                    end_lease(store, lease, MUSTER_STORE_LEASE_ENDED);
                });
                break;
            }
            case Action::withdraw:
                for (auto &[number, session] : sessions_)
                    if (session.node == index && session.requests.count(action.tag) != 0) {
                        requests_[session.requests[action.tag]]->unheard = true;
                        session.requests.erase(action.tag);
                    }
                break;
            case Action::finish:
                if (node.calls[action.tag] == MUSTER_RENDEZVOUS_JOIN && action.error.status == MUSTER_E_QUORUM)
                    ended_with_quorum_++;
                node.calls.erase(action.tag);
                break;
            case Action::begin:
                node.calls.erase(action.tag);
                begins(node, action.place);
                break;
            case Action::over:
                node.in = false;
                break;
            case Action::tell:
                break;
            case Action::visit:
                end_session(node.session);
                open_session(index, store_at(action.address));
                break;
            case Action::dial: {
                const uint64_t session = new_session(index, store_at(action.address), false);
                send(session, action.tag, {{MUSTER_STORE_READ, keys::stands}});
                break;
            }
            case Action::own:
                do_now(node.own, action.ops);
                break;
            }
        }
        const int64_t next = node.machine->wake_at_ns();
        if (next != INT64_MAX && next != node.timer_ns) {
            node.timer_ns = next;
            at(next, [this, index, next] {
                if (nodes_[index]->timer_ns != next) return;
                nodes_[index]->timer_ns = INT64_MAX;
                input(index, [this](Machine &machine) { machine.wake(now_); });
            });
        }
    }

    // ---- ways between them
    bool cut(size_t from, size_t to) const { return from != to && cuts_.count({from, to}) != 0; }
    size_t store_at(const std::string &address) {
        for (size_t i = 0; i < stores_.size(); i++)
            if (stores_[i]->address == address) return i;
        wrong("no store at " + address);
    }
    uint64_t new_session(size_t node, size_t store, bool for_machine) {
        const uint64_t number = next_session_++;
        Session &session = sessions_[number];
        session.node = node;
        session.store = store;
        session.heard_ns = now_;
        session.for_machine = for_machine;
        beat(number);
        return number;
    }
    void open_session(size_t node, size_t store) { nodes_[node]->session = new_session(node, store, true); }
    // From the node's side; its store sees it, if it can.
    void end_session(uint64_t number) {
        Session &session = sessions_[number];
        if (std::exchange(session.over, true)) return;
        const size_t owner = stores_[session.store]->owner;
        if (!cut(session.node, owner))
            for (const uint64_t lease : session.leases)
                at(now_ + below(20) * ms, [this, owner, store = session.store, lease] {
                    in_process(owner, [this, store, lease] { end_lease(store, lease, MUSTER_STORE_LEASE_BROKEN); });
                });
    }
    // While a way is cut all is kept; what was on its way arrives later, also after its session has ended.
    void carry(size_t from, size_t to, int64_t &last_ns, std::function<void()> deliver) {
        if (cut(from, to)) {
            held_[{from, to}].push_back(std::move(deliver));
            return;
        }
        last_ns = std::max(last_ns, now_ + static_cast<int64_t>(below(one_in(10) ? 300 : 5)) * ms);
        at(last_ns, std::move(deliver));
    }
    void heal(size_t from, size_t to) {
        cuts_.erase({from, to});
        for (auto &one : std::exchange(held_[{from, to}], {})) at(now_ + below(100) * ms, std::move(one));
    }
    void to_store(uint64_t number, std::function<void()> deliver) {
        Session &session = sessions_[number];
        const size_t owner = stores_[session.store]->owner;
        carry(session.node, owner, session.to_store_ns,
              [this, owner, deliver = std::move(deliver)] { in_process(owner, deliver); });
    }
    void to_node(uint64_t number, std::function<void()> deliver) {
        Session &session = sessions_[number];
        carry(stores_[session.store]->owner, session.node, session.from_store_ns,
              [this, number, deliver = std::move(deliver)] {
                  in_process(sessions_[number].node, [this, number, deliver] {
                      Session &here = sessions_[number];
                      if (here.over) return;
                      here.heard_ns = now_;
                      here.ever_heard = true;
                      deliver();
                  });
              });
    }
    // Says that it is there, and looks how long nothing was heard.
    void beat(uint64_t number) {
        Session &session = sessions_[number];
        if (session.over || !nodes_[session.node]->machine) return;
        at(now_ + lease_ns / 6, [this, number] { beat(number); });
        in_process(session.node, [this, number] {
            Session &here = sessions_[number];
            if (here.over) return;
            const size_t owner = stores_[here.store]->owner;
            const bool reached = !cut(here.node, owner) && !cut(owner, here.node);
            if (!nodes_[owner]->machine && reached) return lose(number, true);
            if (now_ - here.heard_ns > (here.ever_heard ? lease_ns * 3 / 2 : lease_ns)) return lose(number, false);
            to_store(number, [this, number] {
                Session &there = sessions_[number];
                for (const uint64_t lease : there.leases) stores_[there.store]->table.keep(lease, now_ + lease_ns);
                look_at_leases(there.store);
                to_node(number, [] {});
            });
        });
    }
    void lose(uint64_t number, bool gone) {
        Session &session = sessions_[number];
        Error why = Error::make(session.ever_heard ? MUSTER_E_STORE_LOST : MUSTER_E_UNREACHABLE, "it is lost");
        if (gone) why.os_errno = ECONNREFUSED;
        end_session(number);
        for (const auto &[tag, request] : std::exchange(session.requests, {})) {
            requests_[request]->unheard = true;
            input(session.node, [this, tag = tag, why](Machine &machine) { machine.answer(tag, {why, {}}, now_); });
        }
        lost_[number] = why;
    }

    // ---- requests
    std::unique_ptr<Request> make(const AskOps &ops) {
        auto request = make_request(ops, {});
        if (!request) wrong(request.error().message);
        return std::make_unique<Request>(std::move(*request));
    }
    void do_now(size_t store, const AskOps &ops) {
        const uint64_t number = next_request_++;
        requests_[number] = make(ops);
        requests_[number]->unheard = true;
        requests_[number]->store = store;
        submit(number);
    }
    void send(uint64_t session, uint64_t tag, const AskOps &ops) {
        Session &here = sessions_[session];
        if (here.over) { // it is lost: so is what is asked now
            const Error why = lost_.count(session) != 0 ? lost_[session] : Error::make(MUSTER_E_STORE_LOST, "gone");
            at(now_, [this, node = here.node, tag, why] {
                input(node, [this, tag, why](Machine &machine) { machine.answer(tag, {why, {}}, now_); });
            });
            return;
        }
        const uint64_t number = next_request_++;
        Request &request = *(requests_[number] = make(ops));
        request.node = here.node;
        request.store = here.store;
        request.session = session;
        request.tag = tag;
        here.requests[tag] = number;
        if (!calm_ && static_cast<int>(below(1000)) < shape_.faults && here.ever_heard) {
            answer_failed(number);
            if (one_in(2)) at(now_ + below(3000) * ms, [this, number] { arrive(number); });
            return;
        }
        to_store(session, [this, number] { submit(number); });
    }
    void arrive(uint64_t number) {
        const Request &request = *requests_[number];
        if (request.request.ops()[0].kind != MUSTER_STORE_WATCH)
            in_process(stores_[request.store]->owner, [this, number] { submit(number); });
    }
    void answer_failed(uint64_t number) {
        Request &request = *requests_[number];
        request.unheard = true;
        sessions_[request.session].requests.erase(request.tag);
        at(now_ + below(20) * ms, [this, node = request.node, tag = request.tag] {
            input(node, [this, tag](Machine &machine) {
                machine.answer(tag, {Error::make(MUSTER_E_PEER, "the way broke"), {}}, now_);
            });
        });
    }
    void submit(uint64_t number) {
        Request &request = *requests_[number];
        const size_t store = request.store;
        if (request.unheard && request.request.ops()[0].kind == MUSTER_STORE_WATCH) return;
        List<StoreWaiter> over;
        request.hangs = true;
        stores_[store]->table.submit(request, over);
        finish(store, over);
    }
    void finish(size_t store, List<StoreWaiter> &over) {
        while (StoreWaiter *const one = over.pop_front()) {
            Request &request = static_cast<Request &>(*one);
            request.hangs = false;
            if (request.unheard) continue;
            to_node(request.session,
                    [this, session = request.session, tag = request.tag, node = request.node, answer = request.answer] {
                        if (sessions_[session].requests.erase(tag) == 0) return;
                        if (!sessions_[session].for_machine) end_session(session);
                        input(node, [this, tag, answer](Machine &machine) { machine.answer(tag, answer, now_); });
                    });
        }
        look_at_store(store);
    }
    void grant(uint64_t number, uint64_t tag, int64_t ttl_ns, bool manual) {
        Session &session = sessions_[number];
        if (session.over) return send(number, tag, {{MUSTER_STORE_READ, keys::round}});
        const uint64_t placeholder = next_request_++; // so that the loss of the store ends it
        requests_[placeholder] = make({{MUSTER_STORE_READ, keys::round}});
        session.requests[tag] = placeholder;
        to_store(number, [this, number, tag, ttl_ns, manual] {
            Session &there = sessions_[number];
            const uint64_t lease = stores_[there.store]->table.grant(now_ + ttl_ns);
            look_at_leases(there.store);
            auto result = make_ref<StoreResult>();
            result->entries.resize(1);
            result->entries[0].number = static_cast<int64_t>(lease);
            const StoreAnswer answer{Error(), result};
            to_node(number, [this, number, tag, answer, lease, manual] {
                Session &here = sessions_[number];
                if (here.requests.erase(tag) == 0) return;
                if (!manual) here.leases.push_back(lease);
                input(here.node, [this, tag, answer](Machine &machine) { machine.answer(tag, answer, now_); });
            });
        });
    }
    void end_lease(size_t store, uint64_t lease, uint32_t why) {
        List<StoreWaiter> over;
        stores_[store]->table.end_lease(lease, why, over);
        finish(store, over);
    }
    void look_at_leases(size_t store) {
        Store &here = *stores_[store];
        const int64_t next = here.table.next_end_ns();
        if (next == INT64_MAX || next >= here.look_at_ns) return;
        here.look_at_ns = next;
        at(next, [this, store, next] {
            if (stores_[store]->look_at_ns != next) return;
            in_process(stores_[store]->owner, [this, store] {
                Store &there = *stores_[store];
                there.look_at_ns = INT64_MAX;
                List<StoreWaiter> over;
                there.table.end_leases(now_, over);
                finish(store, over);
                look_at_leases(store);
            });
        });
    }

    // ---- what has to be so
    StoreAnswer look(size_t store, const AskOps &ops) {
        auto request = make(ops);
        List<StoreWaiter> over;
        stores_[store]->table.submit(*request, over);
        over.remove(*request);
        return request->answer;
    }
    void look_at_store(size_t store) {
        Store &here = *stores_[store];
        const StoreAnswer answer = look(store, {{MUSTER_STORE_READ, keys::round}});
        const StoreEntry &entry = answer.result->entries[0];
        if (entry.version == 0 || entry.version == here.round_version) return;
        here.round_version = entry.version;
        const RoundRecord round = *RoundRecord::read(entry.value->bytes());
        if (round.aborted) return;
        const uint64_t number = round.attempt.number;
        const auto [world, fresh] = worlds_.try_emplace(number, World{round, store});
        if (!fresh) wrong("two worlds for round " + std::to_string(number));
        if (round.world < shape_.min || round.world > shape_.max) wrong("a world of " + std::to_string(round.world));
        std::set<uint32_t> ranks;
        AskOp list{MUSTER_STORE_LIST, std::string(keys::places)};
        const StoreAnswer places = look(store, {list});
        for (const StoreEntry &one : places.result->entries) {
            const RoundPlace place = *RoundPlace::read(one.value->bytes());
            if (place.attempt != round.attempt) continue;
            if (place.rank >= round.world || !ranks.insert(place.rank).second) wrong("ranks are no permutation");
        }
        if (ranks.size() != round.world) wrong("places are missing");
    }
    void begins(Node &node, const RoundPlace &place) {
        const auto world = worlds_.find(place.attempt.number);
        if (world == worlds_.end() || world->second.round.attempt != place.attempt ||
            world->second.round.digest != place.digest)
            wrong("a member is in a round that is none");
        if (!taken_[place.attempt.number].insert(place.rank).second) wrong("a rank was given twice");
        node.in = true;
        node.place = place;
    }
    void nobody_waits_in_vain() {
        std::map<size_t, uint32_t> waiting;
        std::map<size_t, bool> busy;
        for (const auto &node : nodes_) {
            if (!node->machine) continue;
            const size_t store = sessions_[node->session].store;
            if (node->in) busy[store] = true;
            if (node->calls.empty()) continue;
            if (sessions_[node->session].over || !nodes_[stores_[store]->owner]->machine)
                wrong("one waits where no store is");
            waiting[store]++;
        }
        for (const auto &[store, count] : waiting)
            if (count >= shape_.min && !busy[store])
                wrong(std::to_string(count) + " wait, and nothing happens, at " + stores_[store]->address);
    }

    // ---- what happens
    void disturb() {
        const size_t index = one_in(5) ? host() : below(nodes_.size());
        Node &node = *nodes_[index];
        const uint64_t dice = below(100);
        if (!node.machine) {
            if (nodes_.size() < shape_.nodes + 5 && one_in(4) && nodes_[0]->machine) add_node();
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
        for (size_t i = 0; i < nodes_.size(); i++)
            if (nodes_[i]->machine && nodes_[i]->paused) wake(i);
        for (size_t i = 0; i < nodes_.size(); i++)
            if (nodes_[i]->machine && !nodes_[i]->in && nodes_[i]->calls.empty()) call(i, MUSTER_RENDEZVOUS_JOIN, -1);
    }

    std::mt19937_64 random_;
    const Shape shape_;
    int64_t now_ = 1000 * ms;
    uint64_t order_ = 0, next_call_ = 1, next_request_ = 1, next_session_ = 1, ended_with_quorum_ = 0;
    bool calm_ = false;
    std::priority_queue<Timed> timed_;
    std::vector<std::unique_ptr<Store>> stores_; // the first is that of the URL
    std::vector<std::unique_ptr<Node>> nodes_;
    std::map<uint64_t, Session> sessions_;
    std::map<uint64_t, Error> lost_; // sessions
    std::map<uint64_t, std::unique_ptr<Request>> requests_;
    std::set<std::pair<size_t, size_t>> cuts_;
    std::map<std::pair<size_t, size_t>, std::vector<std::function<void()>>> held_;
    std::map<uint64_t, World> worlds_;
    std::map<uint64_t, std::set<uint32_t>> taken_;
};

} // namespace muster::test
