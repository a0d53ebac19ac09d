// SPDX-License-Identifier: MIT
#include "cluster/launch_keys.hpp"

#include "cluster/bytes.hpp"
#include "cluster/cluster.hpp"

#include <algorithm>
#include <cerrno>
#include <sodium.h>

namespace muster {

namespace {

constexpr size_t key_bytes = 32;
constexpr int64_t fetch_ns = 60'000'000'000, pause_ns = 20'000'000;

struct ReleaseContext {
    void operator()(muster_context *context) const noexcept { muster_context_release(context); }
};

// Reads all that the master says, up to its end.
Result<std::string> read_all(muster_stream *stream, Deadline &deadline) {
    std::string all;
    for (;;) {
        char piece[4096];
        size_t moved = 0;
        const int64_t left = deadline.left();
        if (left <= 0) return Error::make(MUSTER_TIMEOUT, "the master did not answer in time");
        const Status status = muster_stream_read(stream, piece, sizeof piece, left, &moved);
        all.append(piece, moved);
        if (status == MUSTER_E_END) return all;
        if (status < 0) return Error::make(status, "the connection broke before the ticket was whole");
        if (all.size() > ticket_max_bytes) return Error::make(MUSTER_E_PROTOCOL, "an answer that is too long");
    }
}

Result<Ticket> read_answer(std::string_view answer) {
    if (answer.empty()) return Error::make(MUSTER_E_PEER, "the master hung up");
    const auto refused = static_cast<unsigned char>(answer[0]);
    answer.remove_prefix(1);
    if (refused == 0) return Ticket::parse(answer.substr(0, answer.find('\n')));
    if (answer.size() < 4) return Error::make(MUSTER_E_PROTOCOL, "a refusal that makes no sense");
    const auto status = static_cast<int32_t>(take_number<uint32_t>(answer));
    return Error::make(status < 0 ? status : Status{MUSTER_E_PEER}, "%.*s",
                       static_cast<int>(std::min<size_t>(answer.size(), 255)), answer.data());
}

} // namespace

// ---- the master
// ----------------------------------------------------------------------------------------------------------

Result<std::vector<unsigned char>> LaunchKeys::make(std::shared_ptr<const LaunchPlan> plan, uint32_t first,
                                                    uint32_t count) {
    std::vector<unsigned char> key(key_bytes);
    randombytes_buf(key.data(), key.size());
    Launch launch;
    launch.plan = std::move(plan);
    for (uint32_t i = 0; i < count; i++) launch.left.insert(launch.left.end(), first + i);
    launch.waiting = launch.left;
    launches_.emplace(first, std::move(launch));
    if (keys_->add(first, secret_key(key.data(), key.size()))) return key;
    launches_.erase(first);
    return Error::make(MUSTER_E_LIMIT, "%zu launches are under way", OtherKeys::max_keys);
}

Result<std::shared_ptr<const LaunchPlan>> LaunchKeys::take(uint64_t key, uint32_t member) {
    const auto launch = launches_.find(static_cast<uint32_t>(key));
    if (key > UINT32_MAX || launch == launches_.end() || launch->second.left.count(member) == 0)
        return Error::make(MUSTER_E_STALE, "the master does not expect worker %u any more", member);
    if (launch->second.waiting.erase(member) == 0)
        return Error::make(MUSTER_E_EXISTS, "another process has fetched the ticket of worker %u", member);
    return launch->second.plan;
}

void LaunchKeys::over(uint32_t member) noexcept {
    auto launch = launches_.upper_bound(member);
    if (launch == launches_.begin()) return;
    --launch;
    if (launch->second.left.erase(member) == 0) return;
    launch->second.waiting.erase(member);
    if (!launch->second.left.empty()) return;
    keys_->remove(launch->first);
    launches_.erase(launch);
}

// ---- the worker
// ----------------------------------------------------------------------------------------------------------

// Of many that come at once the master turns some away for the moment: these dial again.
Result<Ticket> fetch_ticket(const Ticket &with_key) {
    Deadline deadline(fetch_ns);
    muster_context_config config{};
    config.struct_size = sizeof config;
    config.secret = with_key.key.data();
    config.secret_bytes = with_key.key.size();
    Error why;
    muster_context *made = nullptr;
    if (muster_context_create(&config, &made, &why) != MUSTER_OK) return why;
    const std::unique_ptr<muster_context, ReleaseContext> context(made);
    const ClusterGreeting hello{
        ClusterGreeting::ticket, with_key.cluster, with_key.member, MUSTER_CLUSTER_MASTER, 0, {}};
    const std::string greeting = encode(hello);
    std::string address = with_key.master;
    if (address.find("seal=yes") == std::string::npos)
        address += (address.find('?') == std::string::npos ? "?" : "&") + std::string("seal=yes");
    muster_transport_config how{};
    how.struct_size = sizeof how;
    how.hello = greeting.data();
    how.hello_bytes = greeting.size();
    for (;;) {
        muster_stream *stream = nullptr;
        const int64_t left = std::max<int64_t>(deadline.left(), 1);
        const Status status = muster_transport_dial(made, address.data(), address.size(), &how, left, &stream, &why);
        const StreamHandle held(stream);
        if (status == MUSTER_OK) {
            auto answer = read_all(stream, deadline);
            if (!answer)
                return Error::make(answer.error().status, "fetch the ticket of worker %u from %s: %s", with_key.member,
                                   with_key.master.c_str(), answer.error().message);
            auto ticket = read_answer(*answer);
            if (!ticket)
                return Error::make(ticket.error().status, "fetch the ticket of worker %u from %s: %s", with_key.member,
                                   with_key.master.c_str(), ticket.error().message);
            return ticket;
        }
        const bool again =
            (status == MUSTER_E_LIMIT && why.os_errno == 0) || (status == MUSTER_E_PEER && why.os_errno == ECONNRESET);
        if (!again || deadline.left() <= pause_ns)
            return Error::make(why.status, "fetch the ticket of worker %u: %s", with_key.member, why.message);
        Signal nobody;
        Deadline shortly(pause_ns);
        (void)unwrap(made)->sleep(nobody, nobody.seen(), shortly);
    }
}

} // namespace muster
