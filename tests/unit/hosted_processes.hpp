// SPDX-License-Identifier: MIT
// The processes of a simulated world, each a real machine with a store of its own: they are started, killed, stopped
// and restarted. After each change of a store: one world for a round, of the right size, whose ranks are a permutation.
#pragma once

#include "hosted_world.hpp"

namespace muster::test {

class HostedProcesses : public HostedWorld {
  protected:
    HostedProcesses(uint64_t seed, const Shape &shape) : HostedWorld(seed, shape) {
        for (uint32_t i = 0; i < shape.nodes; i++) add_node();
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
        call(index, MUSTER_RENDEZVOUS_JOIN, join_timeout_ns_);
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
    void end_and_restart(size_t index) { // after its join has timed out
        at(now_ + below(50) * ms, [this, index] { kill(index); });
        at(now_ + 50 * ms + below(2000) * ms, [this, index] { restart(index); });
    }
    void pause(size_t index) { nodes_[index]->paused = true; }
    void wake(size_t index) {
        Node &node = *nodes_[index];
        node.paused = false;
        for (auto &one : std::exchange(node.kept, {})) one();
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
    void perform(size_t index) override {
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
                if (join_timeout_ns_ > 0 && action.error.status == MUSTER_TIMEOUT) end_and_restart(index);
                break;
            case Action::begin:
                node.calls.erase(action.tag);
                begins(node, action.place);
                break;
            case Action::over:
                trace(index, action.error.message);
                node.in = false;
                break;
            case Action::emit:
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
                trace(index, "announces " + MovedRecord::read(action.ops[0].value)->address);
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
    // As an agent does.
    void someone_is_gone(size_t index) {
        if (!rejoins_ || !nodes_[index]->in) return;
        at(now_ + below(300) * ms, [this, index, attempt = nodes_[index]->place.attempt] {
            Node &node = *nodes_[index];
            if (node.machine && node.in && node.place.attempt == attempt && node.calls.empty())
                call(index, MUSTER_RENDEZVOUS_JOIN, join_timeout_ns_);
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
    void look_at_store(size_t store) override {
        Store &here = *stores_[store];
        const StoreAnswer answer = look(store, {{MUSTER_STORE_READ, keys::round}});
        const StoreEntry &entry = answer.result->entries[0];
        if (entry.version == 0 || entry.version == here.round_version) return;
        here.round_version = entry.version;
        const RoundRecord round = *RoundRecord::read(entry.value->bytes());
        if (round.aborted) return;
        const uint64_t number = round.attempt.number;
        const auto [world, fresh] = worlds_.try_emplace(number, World{round, store, now_});
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
};

} // namespace muster::test
