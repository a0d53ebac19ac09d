// SPDX-License-Identifier: MIT
// A simulated world of stores that processes serve: its clock, the ways between processes, which are cut and healed,
// and the requests that go over them. hosted_processes.hpp has the processes, hosted_simulation.hpp the schedules.
#pragma once

#include "rendezvous/machine/machine.hpp"
#include "schedules.hpp"
#include "store/table/table.hpp"

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

class HostedWorld {
  protected:
    HostedWorld(uint64_t seed, const Shape &shape) : random_(seed), shape_(shape) {}
    virtual ~HostedWorld() {
        for (auto &[number, request] : requests_)
            if (request->hangs) stores_[request->store]->table.withdraw(*request);
    }
    virtual void perform(size_t node) = 0;        // what its machine wants done
    virtual void look_at_store(size_t store) = 0; // after each change

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
        int64_t made_ns;
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

    std::mt19937_64 random_;
    const Shape shape_;
    int64_t now_ = 1000 * ms;
    uint64_t order_ = 0, next_call_ = 1, next_request_ = 1, next_session_ = 1, ended_with_quorum_ = 0, restarts_ = 0;
    size_t next_id_ = 0;
    bool calm_ = false, rejoins_ = false;
    int64_t join_timeout_ns_ = -1; // a process whose join has taken that long ends, and is restarted
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
