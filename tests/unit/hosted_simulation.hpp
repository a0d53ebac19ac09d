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
inline const std::string origin = "main:1"; // the address in the URL

struct Shape { // of a schedule
    uint32_t min = 1, max = 5, nodes = 5;
    int64_t last_call_ns = 500 * ms;
    int faults = 0; // of 1000 requests
    int events = 120;
    bool keeps_state = false; // members have state files, and are restarted
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
            for (size_t k = 0; k < nodes_.size(); k++) // they notice at different times
                at(now_ + below(8000) * ms, [this, k] {
                    Node &node = *nodes_[k];
                    if (node.machine && !node.in && node.calls.empty()) call(k, MUSTER_RENDEZVOUS_JOIN, -1);
                });
            go_on(now_ + 25000 * ms);
            restarts_++;
        }
    }
    // As an agent does.
    void someone_is_gone(size_t index) {
        if (!rejoins_ || !nodes_[index]->in) return;
        at(now_ + below(300) * ms, [this, index, attempt = nodes_[index]->place.attempt] {
            Node &node = *nodes_[index];
            if (node.machine && node.in && node.place.attempt == attempt && node.calls.empty())
                call(index, MUSTER_RENDEZVOUS_JOIN, -1);
        });
    }
    void all_join(int i) {
        rejoins_ = true;
        for (size_t k = 0; k < nodes_.size(); k++)
            if (!nodes_[k]->in && nodes_[k]->calls.empty()) call(k, MUSTER_RENDEZVOUS_JOIN, -1);
        go_on(now_ + 60 * lease_ns);
        if (worlds_.empty()) wrong("no world at all");
        const RoundRecord &latest = worlds_.rbegin()->second.round;
        for (const auto &node : nodes_)
            if (!node->in || node->place.attempt != latest.attempt)
                wrong("one is not in after " + std::to_string(i) + " times");
        if (latest.world != nodes_.size()) wrong("a world of " + std::to_string(latest.world));
    }
    uint64_t restarts() const { return restarts_; }
    uint64_t rounds() const { return worlds_.size(); }
    uint64_t elected() const {
        return std::count_if(worlds_.begin(), worlds_.end(), [](const auto &w) { return w.second.store != 0; });
    }
    uint64_t quorums() const { return ended_with_quorum_; }

  private:
    struct Store {
        explicit Store(size_t of) : owner(of) {}
        size_t owner;
        bool alive = true; // its process
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
        uint64_t session = 0, life = 0;          // life: counts its processes
        size_t own = 0, front = SIZE_MAX;        // front: at the origin
        std::optional<Membership> file;
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
    // MUSTER_TRACE=1 prints what happens, to understand a seed.
    void trace(size_t index, const std::string &what) const {
        static const bool wanted = std::getenv("MUSTER_TRACE") != nullptr;
        if (wanted) std::printf("%8lld ms  node %zu  %s\n", static_cast<long long>(now_ / ms), index, what.c_str());
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
        if (index == 0) {
            add_store(0, origin);
            RunConfig config{shape_.min, shape_.max, shape_.last_call_ns, {}};
            config.identity.fill(7);
            do_now(0, {{MUSTER_STORE_SET, keys::config, config.write()}});
        }
        nodes_.push_back(std::make_unique<Node>());
        begin_machine(index);
    }
    // By the same command. One that was in no round opens the URL as a newcomer does.
    void restart(size_t index) {
        Node &node = *nodes_[index];
        if (node.machine || (!node.file && !serves_origin())) return;
        begin_machine(index);
        call(index, MUSTER_RENDEZVOUS_JOIN, -1);
    }
    bool serves_origin() { return stores_[store_at(origin)]->alive; }
    size_t add_store(size_t owner, const std::string &address) {
        stores_.push_back(std::make_unique<Store>(owner));
        stores_.back()->address = address;
        return stores_.size() - 1;
    }
    void begin_machine(size_t index) {
        Node &node = *nodes_[index];
        char id[33];
        std::snprintf(id, sizeof id, "%032zx", next_id_++);
        node.id = id;
        node.own = add_store(index, "peer:" + std::to_string(stores_.size() + 1));
        const size_t home = store_at(node.file ? node.file->home : origin);
        MachineSettings settings;
        settings.run = "rendezvous \"sim\"";
        settings.id = node.id;
        settings.address = settings.order_key = "node" + std::to_string(index);
        settings.config = {shape_.min, shape_.max, shape_.last_call_ns, {}};
        settings.config.identity.fill(7);
        settings.keep_alive_ns = lease_ns;
        settings.hosted = true;
        settings.keeps_state = shape_.keeps_state;
        settings.majority_ns = shape_.keeps_state ? -1 : 0;
        settings.former = node.file;
        settings.peer = stores_[node.own]->address;
        settings.home = settings.origin = origin;
        settings.serves = home == 0 && index == 0 && stores_[0]->alive;
        node.machine = std::make_unique<Machine>(settings);
        trace(index, "begins, own store " + settings.peer + ", at " + stores_[home]->address +
                         (node.file ? ", was in round " + std::to_string(node.file->place.attempt.number) + " say " +
                                          std::to_string(node.file->say)
                                    : ""));
        open_session(index, home);
    }
    void kill(size_t index) {
        Node &node = *nodes_[index];
        trace(index, "is killed");
        for (auto &[number, session] : sessions_)
            if (session.node == index) end_session(number);
        for (const auto &store : stores_)
            if (store->owner == index) store->alive = false;
        node.life++;
        node.timer_ns = INT64_MAX;
        node.front = SIZE_MAX;
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
        if (node.paused) // what is kept goes with the process
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
    // An answer that comes later, to the same process.
    void answer_later(size_t index, int64_t when, uint64_t tag, StoreAnswer answer) {
        at(when, [this, index, life = nodes_[index]->life, tag, answer] {
            if (nodes_[index]->life == life)
                input(index, [this, tag, answer](Machine &machine) { machine.answer(tag, answer, now_); });
        });
    }
    // The process may end before it is on the disk, and after it.
    void save(size_t index, uint64_t tag, const Membership &membership) {
        const int64_t when = now_ + below(one_in(10) ? 500 : 10) * ms;
        at(when, [this, index, life = nodes_[index]->life, tag, membership] {
            if (nodes_[index]->life != life) return;
            trace(index, "has saved round " + std::to_string(membership.place.attempt.number) + " say " +
                             std::to_string(membership.say));
            nodes_[index]->file = Membership::read(membership.write());
            answer_later(index, now_ + below(5) * ms, tag, {});
        });
    }
    // Processes of even nodes run on the host of the URL.
    void point(size_t index, const AskOps &ops) {
        Node &node = *nodes_[index];
        if (node.front == SIZE_MAX && (index % 2 != 0 || serves_origin())) return;
        trace(index, "points to " + MovedRecord::read(ops[1].value)->address);
        if (node.front == SIZE_MAX) node.front = add_store(index, origin);
        do_now(node.front, ops);
    }
    void call(size_t index, uint32_t what, int64_t timeout_ns) {
        Node &node = *nodes_[index];
        if (!node.machine || node.paused) return;
        trace(index, "call " + std::to_string(what));
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
                trace(index, "call ends: " + std::to_string(action.error.status) + " " + action.error.message);
                if (node.calls[action.tag] == MUSTER_RENDEZVOUS_JOIN && action.error.status == MUSTER_E_QUORUM)
                    ended_with_quorum_++;
                node.calls.erase(action.tag);
                break;
            case Action::begin:
                node.calls.erase(action.tag);
                begins(node, action.place);
                break;
            case Action::over:
                trace(index, action.error.message);
                node.in = false;
                break;
            case Action::tell:
                trace(index, "event " + std::to_string(action.event.kind) + " rank " +
                                 std::to_string(action.event.rank) + " round " + std::to_string(action.event.round) +
                                 " " + action.event.text);
                if (action.event.kind == MUSTER_RENDEZVOUS_LEFT || action.event.kind == MUSTER_RENDEZVOUS_DEAD)
                    someone_is_gone(index);
                break;
            case Action::visit:
                trace(index, "visits " + action.address);
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
            case Action::save:
                save(index, action.tag, action.membership);
                break;
            case Action::discard:
                at(now_, [this, index, life = node.life] {
                    if (nodes_[index]->life == life) nodes_[index]->file.reset();
                });
                break;
            case Action::point:
                point(index, action.ops);
                break;
            case Action::announce:
                send(new_session(index, store_at(action.address), false), action.tag, action.ops);
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
        size_t found = SIZE_MAX;
        for (size_t i = 0; i < stores_.size(); i++)
            if (stores_[i]->address == address && (found == SIZE_MAX || stores_[i]->alive)) found = i;
        if (found == SIZE_MAX) wrong("no store at " + address);
        return found;
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
                at(now_ + below(20) * ms, [this, store = session.store, lease] {
                    in_store(store, [this, store, lease] { end_lease(store, lease, MUSTER_STORE_LEASE_BROKEN); });
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
              [this, store = session.store, deliver = std::move(deliver)] { in_store(store, deliver); });
    }
    void in_store(size_t store, std::function<void()> what) {
        if (!stores_[store]->alive) return;
        in_process(stores_[store]->owner, [this, store, what = std::move(what)] {
            if (stores_[store]->alive) what();
        });
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
            if (!stores_[here.store]->alive && reached) return lose(number, true);
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
            answer_later(here.node, now_, tag, {why, {}});
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
            in_store(request.store, [this, number] { submit(number); });
    }
    void answer_failed(uint64_t number) {
        Request &request = *requests_[number];
        request.unheard = true;
        sessions_[request.session].requests.erase(request.tag);
        answer_later(request.node, now_ + below(20) * ms, request.tag,
                     {Error::make(MUSTER_E_PEER, "the way broke"), {}});
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
            in_store(store, [this, store] {
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
        trace(here.owner, "made round " + std::to_string(number) + " of " + std::to_string(round.world) + " at " +
                              here.address + ", host " + std::to_string(round.host));
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
    // Whether the members that wait there can make the next round: promises to stores that are lost are gone.
    bool enough_promises(size_t store) {
        const AskOp members{MUSTER_STORE_LIST, std::string(keys::members)},
            given{MUSTER_STORE_LIST, std::string(keys::promises)};
        const StoreAnswer answer =
            look(store, {{MUSTER_STORE_READ, keys::round}, members, given, {MUSTER_STORE_READ, keys::moved}});
        const auto &entries = answer.result->entries;
        if (entries.back().version != 0) return false; // the run is not here
        if (!entries[0].value) return store == 0;      // of others: it does not stand
        const RoundRecord last = *RoundRecord::read(entries[0].value->bytes());
        Promises promises;
        for (const StoreEntry &entry : entries)
            if (entry.op == 2) promises.see(entry.key->bytes().substr(keys::promises.size()), entry.value->bytes());
        for (const StoreEntry &entry : entries)
            if (const auto member = entry.op == 1 ? MemberRecord::read(entry.value->bytes()) : std::nullopt;
                member && member->base == last.attempt.number)
                promises.add(member->base, member->old_rank, member->heir);
        trace(stores_[store]->owner, stores_[store]->address + ": round " + std::to_string(last.attempt.number) +
                                         " of " + std::to_string(last.world) + (last.elsewhere ? " elsewhere" : "") +
                                         ", host " + std::to_string(last.host) + ", possible promises " +
                                         std::to_string(promises.count(last)));
        return promises.suffice(last);
    }
    void nobody_waits_in_vain() {
        std::map<size_t, uint32_t> waiting;
        std::map<size_t, bool> busy;
        for (const auto &node : nodes_) {
            if (!node->machine) continue;
            const size_t store = sessions_[node->session].store;
            if (node->in) busy[store] = true;
            if (node->calls.empty()) continue;
            if (shape_.keeps_state && (sessions_[node->session].over || !stores_[store]->alive))
                continue; // for a majority
            if (sessions_[node->session].over || !stores_[store]->alive) wrong("one waits where no store is");
            waiting[store]++;
        }
        for (const auto &[store, count] : waiting)
            if (count >= shape_.min && !busy[store] && (!shape_.keeps_state || enough_promises(store)))
                wrong(std::to_string(count) + " wait, and nothing happens, at " + stores_[store]->address);
    }

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

    std::mt19937_64 random_;
    const Shape shape_;
    int64_t now_ = 1000 * ms;
    uint64_t order_ = 0, next_call_ = 1, next_request_ = 1, next_session_ = 1, ended_with_quorum_ = 0, restarts_ = 0;
    size_t next_id_ = 0;
    bool calm_ = false, rejoins_ = false;
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
