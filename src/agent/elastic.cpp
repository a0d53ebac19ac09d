// SPDX-License-Identifier: MIT
// The part of the agent's thread that deals with other nodes.
#include "agent/agent.hpp"

#include <algorithm>
#include <cstring>

namespace muster {

namespace {

constexpr int64_t second = 1'000'000'000;
constexpr int64_t leave_timeout_ns =
    5 * second;                 // for the last report to the other nodes, when the store does not answer
constexpr size_t max_ops = 500; // of one request
constexpr char succeeded[] = "job succeeded", failed[] = "job failed (%d): "; // reasons of a run that is closed

muster_store_op operation(uint32_t kind, const std::string &key) noexcept {
    muster_store_op op{};
    op.kind = kind;
    op.key = key.data();
    op.key_bytes = key.size();
    return op;
}

muster_store_op setting(const std::string &key, const std::string &value) noexcept {
    muster_store_op op = operation(MUSTER_STORE_SET, key);
    op.value = value.data();
    op.value_bytes = value.size();
    return op;
}

std::string_view value_at(muster_store_result *result, uint64_t index) noexcept {
    muster_store_entry entry{};
    if (muster_store_result_entry(result, index, &entry) != MUSTER_OK) return {};
    return {static_cast<const char *>(entry.value), entry.value_bytes};
}

// Why a run was closed, read from the error of a join: the job has succeeded, has failed with an exit code, or was
// closed by another program.
Error read_end(Error closed) noexcept {
    int code = 0;
    const char *const reason = strstr(closed.message, "job failed (");
    if (reason && sscanf(reason, failed, &code) == 1) closed.provider_code = code;
    if (!strstr(closed.message, succeeded)) closed.status = MUSTER_E_ABORTED;
    return closed;
}

std::string offer_key(size_t node) {
    return "agent/offer/" + std::to_string(node);
}
std::string standing_key(size_t node) {
    return "agent/standing/" + std::to_string(node);
}

} // namespace

Result<void> Agent::open_rendezvous() {
    if (!plan_.rendezvous) return {};
    nodes_.emplace(*context_, *inbox_, *plan_.rendezvous);
    show(MUSTER_AGENT_JOINING);
    Deadline deadline(plan_.join_timeout_ns);
    return open_nodes(deadline);
}

Result<void> Agent::open_nodes(Deadline &deadline) {
    for (;;) { // in steps, to notice a stop of the agent in between
        const int64_t left = deadline.endless() ? second : std::min(deadline.left(), second);
        Result<void> opened = nodes_->open(std::max<int64_t>(left, 1));
        if (opened) break;
        if (stop_why() != MUSTER_OK) return {};
        if (opened.error().status != MUSTER_E_UNREACHABLE || deadline.passed()) return opened;
    }
    show_rendezvous(true);
    return {};
}

// The node with the store has ended before the first round: only time is lost.
Result<void> Agent::open_again(Deadline &deadline) {
    show_rendezvous(false);
    nodes_->close();
    return open_nodes(deadline);
}

// muster_agent_rendezvous() returns it as long as it is open.
void Agent::show_rendezvous(bool open) noexcept {
    const std::lock_guard hold(lock_);
    open_rendezvous_ = open ? nodes_->rendezvous() : nullptr;
}

// Gets the ranks of this node's workers in the world.
Result<bool> Agent::settle() {
    if (plan_.rendezvous) {
        Result<bool> joined = join();
        return joined && *joined ? settle_among_nodes() : joined;
    }
    Result<void> settled = settle_alone();
    standing_.round++;
    if (!settled) return settled.error();
    return true;
}

Result<void> Agent::settle_alone() {
    standing_.world_size = standing_.role_world_size = plan_.worker_count;
    standing_.master_address = plan_.master_address.empty() ? plan_.local_address : plan_.master_address;
    if (standing_.master_address.empty()) standing_.master_address = "127.0.0.1";
    standing_.master_port = plan_.master_port;
    if (standing_.master_port != 0) return {};
    auto port = HeldPort::find();
    if (!port) return port.error();
    port_ = std::move(*port);
    standing_.master_port = port_.number();
    return {};
}

Result<bool> Agent::join() {
    nodes_->forget_round();
    show(MUSTER_AGENT_JOINING);
    Deadline deadline(plan_.join_timeout_ns);
    Error joined;
    for (;;) {
        const int64_t left = deadline.endless() ? -1 : std::max<int64_t>(deadline.left(), 1);
        joined = ask(MUSTER_RENDEZVOUS_JOIN, "", left, true);
        if (stop_why() != MUSTER_OK) return false;
        if (joined.status == MUSTER_OK) return true;
        const bool too_early = joined.status == MUSTER_E_STORE_LOST && nodes_->round().number == 0;
        if (!too_early || deadline.passed()) break;
        if (auto opened = open_again(deadline); !opened) return opened.error();
        if (stop_why() != MUSTER_OK) return false;
    }
    if (joined.status == MUSTER_TIMEOUT) joined.status = MUSTER_E_UNREACHABLE;
    if (joined.status != MUSTER_E_CLOSED) return joined;
    if (!seen_) { // the end of an earlier job, not of this one
        joined.status = MUSTER_E_STALE;
        return joined;
    }
    return read_end(joined);
}

// The records that the agents of a round exchange.
Result<bool> Agent::settle_among_nodes() {
    const muster_round_info &round = nodes_->round();
    const uint32_t restarts = standing_.restarts;
    Result<Standing> standing = learn_standing();
    if (stop_why() != MUSTER_OK) return false;
    if (!standing && round_lost()) return false;
    const Status status = standing ? Status{MUSTER_OK} : standing.error().status;
    if (!standing && status != MUSTER_E_STALE && status != MUSTER_E_STORE_LOST) return standing.error();
    if (!standing) return false; // over before it began
    standing_ = *standing;
    standing_.restarts = std::max(standing_.restarts, restarts);
    standing_.round = round.number;
    standing_.group_rank = round.rank;
    standing_.group_world_size = round.world;
    return true;
}

Result<Standing> Agent::learn_standing() {
    const muster_round_info &round = nodes_->round();
    if (round.world == 1 || !nodes_->has_view()) {
        if (round.world > 1 && (plan_.master_address.empty() || plan_.master_port == 0))
            return Error::make(MUSTER_E_ARG, "static: without a store the nodes need master_address and master_port");
        if (auto settled = settle_alone(); !settled) return settled.error();
        Standing own = standing_;
        own.first_rank = own.first_role_rank = round.rank * plan_.worker_count; // the same number on all nodes
        own.world_size = own.role_world_size = round.world * plan_.worker_count;
        return own;
    }
    const std::string key = offer_key(round.rank);
    const std::string offer = write_offer({plan_.worker_count, standing_.restarts, plan_.role});
    if (const Error done = ask_others({setting(key, offer)}); done.status != MUSTER_OK) return done;
    if (round.rank == 0) {
        auto all = give_standings();
        if (!all) return all.error();
        return (*all)[0];
    }
    const std::string own = standing_key(round.rank);
    if (const Error done = ask_others({operation(MUSTER_STORE_GET, own)}); done.status != MUSTER_OK) return done;
    return read_standing(value_at(nodes_->result(), 0));
}

// Rank 0 waits for the offers of all nodes, and writes for each node the places of its workers.
Result<std::vector<Standing>> Agent::give_standings() {
    const uint32_t world = nodes_->round().world;
    std::vector<Offer> offers;
    std::vector<std::string> keys, values;
    std::vector<muster_store_op> ops;
    keys.reserve(max_ops); // the operations point to them
    values.reserve(max_ops);
    for (uint32_t node = 0; node < world; node++) {
        keys.push_back(offer_key(node));
        ops.push_back(operation(MUSTER_STORE_GET, keys.back()));
        if (ops.size() < max_ops && node + 1 < world) continue;
        if (const Error done = ask_others(ops); done.status != MUSTER_OK) return done;
        for (size_t i = 0; i < ops.size(); i++) {
            auto offer = read_offer(value_at(nodes_->result(), i));
            if (!offer) return offer.error();
            offers.push_back(std::move(*offer));
        }
        keys.clear(), ops.clear();
    }
    if (auto settled = settle_alone(); !settled) return settled.error();
    std::string address = standing_.master_address;
    if (plan_.master_address.empty() && plan_.local_address.empty())
        address = find_local_address(plan_.rendezvous->url);
    std::vector<Standing> standings = make_standings(offers, address, standing_.master_port);
    for (uint32_t node = 1; node < world; node++) {
        keys.push_back(standing_key(node));
        values.push_back(write_standing(standings[node]));
        ops.push_back(setting(keys.back(), values.back()));
        if (ops.size() < max_ops && node + 1 < world) continue;
        if (const Error done = ask_others(ops); done.status != MUSTER_OK) return done;
        keys.clear(), values.clear(), ops.clear();
    }
    return standings;
}

// A worker has failed here: this ends the round for all nodes at once, and the run, if there is no restart left.
void Agent::report_failure(const Error &failure, bool last) {
    if (!nodes_) return;
    char reason[200];
    const int code = static_cast<int>(failure.provider_code < 0 ? 128 - failure.provider_code : failure.provider_code);
    const int begin = last ? snprintf(reason, sizeof reason, failed, code) : 0;
    const int room = static_cast<int>(sizeof reason) - begin - 5;
    size_t size = std::min<size_t>(failure.message_bytes, static_cast<size_t>(room));
    while (size > 0 && size < failure.message_bytes && (failure.message[size] & 0xc0) == 0x80) size--;
    memcpy(reason + begin, failure.message, size);
    const std::string text(reason, static_cast<size_t>(begin) + size);
    if (last) ask(MUSTER_RENDEZVOUS_CLOSE, text, leave_timeout_ns, false);
    ask(MUSTER_RENDEZVOUS_ABORT, text, leave_timeout_ns, false);
}

// Several nodes may see a last failure at the same time: the first to close the run decides how the job ends.
Error Agent::end_of_job(const Error &own) {
    if (!nodes_) return own;
    const Error end = ask(MUSTER_RENDEZVOUS_JOIN, "", leave_timeout_ns, true);
    const Error given = read_end(end);
    const bool others = end.status == MUSTER_E_CLOSED && given.provider_code != 0 && !strstr(end.message, own.message);
    return others ? given : own;
}

// All workers of this node have succeeded. True: those of the other nodes, too.
Result<bool> Agent::finish(Error &why_not) {
    if (!nodes_) return true;
    show(MUSTER_AGENT_DONE);
    const uint32_t world = nodes_->round().world;
    const std::string key = "agent/done";
    bool all = !nodes_->has_view();
    const auto over = [&](const Error &answer) { // the round, without all having succeeded
        why_not = Error::make(MUSTER_E_STALE, "%s", answer.message);
        return answer.status == MUSTER_E_STALE || answer.status == MUSTER_E_STORE_LOST || stop_why() != MUSTER_OK;
    };
    if (nodes_->has_view()) {
        muster_store_op one = operation(MUSTER_STORE_ADD, key);
        one.number = 1;
        const Error added = ask_view({one});
        if (added.status != MUSTER_OK) return over(added) ? Result<bool>(false) : added;
        muster_store_entry entry{};
        muster_store_result_entry(nodes_->result(), 0, &entry);
        all = entry.number >= world;
        // Before the exit barrier, after which the host of the store may end.
        if (all) ask(MUSTER_RENDEZVOUS_CLOSE, succeeded, leave_timeout_ns, false);
    }
    Error exit = ask(MUSTER_RENDEZVOUS_EXIT, "", plan_.exit_timeout_ns, true);
    if (exit.status == MUSTER_E_UNSUPPORTED && all) return true; // `static:` has no exit barrier
    if (all || nodes_->closed()) return true;                    // events from now on have no effect on the job
    if (exit.status == MUSTER_TIMEOUT) exit.status = MUSTER_E_UNREACHABLE;
    if (exit.status != MUSTER_OK) return over(exit) ? Result<bool>(false) : exit;
    // The nodes still present are done; the absent ones may have been lost before.
    const Error counted = ask_view({operation(MUSTER_STORE_GET, key)});
    if (counted.status != MUSTER_OK) return over(counted) ? Result<bool>(false) : counted;
    if (value_at(nodes_->result(), 0) == std::to_string(world)) return true;
    why_not = Error::make(MUSTER_E_STALE, "a node was lost before its workers had succeeded");
    return false;
}

// Leaves a run that continues without this node, or that was closed.
Error Agent::leave(const Error &outcome) {
    if (nodes_ && nodes_->rendezvous() && !closed_) ask(MUSTER_RENDEZVOUS_LEAVE, "", leave_timeout_ns, false);
    return outcome.status == MUSTER_E_CLOSED && stop_why() == MUSTER_OK ? Error() : outcome; // the job has succeeded
}

void Agent::on_rendezvous_event(const muster_rendezvous_event &event) {
    seen_ = seen_ || event.kind == MUSTER_RENDEZVOUS_JOINED || event.kind == MUSTER_RENDEZVOUS_COMPLETE;
    Error why = Error::make(MUSTER_E_STALE, "%s", event.text);
    bool lost = false;
    switch (event.kind) {
    case MUSTER_RENDEZVOUS_LEFT:
        why = Error::make(MUSTER_E_STALE, "node %u has left", event.rank);
        lost = true;
        break;
    case MUSTER_RENDEZVOUS_DEAD:
        why = Error::make(MUSTER_E_STALE, "node %u: %s", event.rank, event.text);
        lost = true;
        break;
    case MUSTER_RENDEZVOUS_ABORTED:
    case MUSTER_RENDEZVOUS_EXPELLED:
    case MUSTER_RENDEZVOUS_LOST:
        lost = true;
        break;
    case MUSTER_RENDEZVOUS_WAITING: // a node whose workers are done does not start again for a newcomer
        why = Error::make(MUSTER_E_STALE, "%u more can be in the world", event.count);
        lost = event.count > 0 && nodes_->exiting() == 0;
        break;
    default:
        break;
    }
    if (lost && event.round > lost_.round) lost_ = {event.round, why};
    why.status = MUSTER_OK;
    post_event(MUSTER_AGENT_RENDEZVOUS_EVENT, event.kind, why);
}

// Events may arrive before the answer to the join that they follow, and after the end of their round.
bool Agent::round_lost() const noexcept {
    return nodes_ && lost_.round != 0 && lost_.round >= nodes_->round().number;
}

Error Agent::ask(uint32_t operation, const std::string &reason, int64_t timeout_ns, bool stoppable) {
    return await_answer(nodes_->ask(operation, reason, timeout_ns), stoppable);
}

Error Agent::ask_view(const std::vector<muster_store_op> &ops) {
    return await_answer(nodes_->ask_view(ops, plan_.join_timeout_ns), true);
}

// The offer of another node may never arrive once that node is gone.
Error Agent::ask_others(const std::vector<muster_store_op> &ops) {
    return await_answer(nodes_->ask_view(ops, plan_.join_timeout_ns), true, true);
}

Error Agent::await_answer(const Result<void> &begun, bool stoppable, bool ends_with_round) {
    if (!begun) return begun.error();
    bool canceled = false;
    while (!nodes_->answered() && !closed_) {
        const bool ends = (stoppable && stop_why() != MUSTER_OK) || (ends_with_round && round_lost());
        if (ends && !canceled) {
            nodes_->cancel();
            canceled = true;
        }
        take_next(never);
    }
    return nodes_->answered() ? nodes_->answer() : Error::make(MUSTER_E_CLOSED, "the context was closed");
}

} // namespace muster
