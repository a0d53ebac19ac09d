// SPDX-License-Identifier: MIT
// The members of a group connect to each other once more: for a part of them, or for streams of the host.
#include "base/boundary.hpp"
#include "base/codec.hpp"
#include "group/opening.hpp"
#include "transport/address.hpp"
#include "transport/descriptor_channel.hpp"

#include <algorithm>

namespace muster {

namespace {

constexpr size_t split_record_bytes = 512;

// An address of the same transport and host that is not in use yet.
Result<std::string> fresh_address(const std::string &like) {
    auto parsed = parse_address(like);
    if (!parsed) return parsed.error();
    const size_t options = std::min(like.find('?'), like.size());
    const std::string rest = like.substr(options);
    if (parsed->scheme == "tcp") return "tcp://" + format_host_port(parsed->host, 0) + rest;
    return like.substr(0, options) + '-' + DescriptorChannel::random_digits(16) + rest;
}

// One member's part of the all-gather: color, key, instance, address.
struct Meeting {
    struct Member {
        int64_t key;
        uint32_t rank;
        uint64_t instance;
        std::string address;
    };
    std::vector<Member> members; // of this color, ordered by key and rank
    Error failed;                // a member could not listen: all members of this color know it
};

// The address at which this member listens. Without one it still takes part in the all-gather, where the others wait.
Result<std::string> listen_again(const Group &group, Opening &opening) noexcept {
    try {
        auto at = fresh_address(group.settings.listen);
        if (!at) return at.error();
        if (auto listening = opening.listen(*at); !listening) return listening.error();
        std::string own = opening.address();
        if (own.size() <= split_record_bytes - 32) return own;
        return Error::make(MUSTER_E_LIMIT, "the address to listen at is too long: %zu bytes", own.size());
    } catch (const std::bad_alloc &) {
        return Error::make(MUSTER_E_NOMEM, "out of memory");
    }
}

Result<std::string> exchange_records(Group &group, std::string record, Deadline &deadline) {
    record.resize(split_record_bytes);
    std::string all(group.size() * split_record_bytes, '\0');
    muster_group_operation gather = {};
    gather.struct_size = sizeof gather;
    gather.kind = MUSTER_GROUP_ALL_GATHER;
    gather.type = MUSTER_TYPE_U8;
    gather.count = split_record_bytes;
    gather.input = record.data();
    gather.output = all.data();
    GroupOperation operation;
    if (auto ok = group.read(gather, operation); !ok) return ok.error();
    if (auto done = group.perform(operation, deadline); !done) return done.error();
    return all;
}

Meeting read_records(Group &group, Opening &opening, const std::string &all, int64_t color) {
    Meeting met;
    for (uint32_t r = 0; r < group.size(); r++) {
        ByteReader from(std::string_view(all).substr(r * split_record_bytes, split_record_bytes));
        const auto its_color = static_cast<int64_t>(from.number<uint64_t>());
        const auto its_key = static_cast<int64_t>(from.number<uint64_t>());
        const auto its_instance = from.number<uint64_t>();
        if (its_color != color) continue;
        met.members.push_back({its_key, r, its_instance, std::string(from.text(split_record_bytes))});
    }
    std::stable_sort(met.members.begin(), met.members.end(),
                     [](const Meeting::Member &a, const Meeting::Member &b) { return a.key < b.key; });
    std::vector<std::string> addresses;
    std::vector<uint64_t> instances;
    for (uint32_t i = 0; i < met.members.size(); i++) {
        const Meeting::Member &one = met.members[i];
        if (one.rank == group.rank()) opening.settings.rank = i;
        if (one.address.empty() && group.size() > 1 && met.failed.status == MUSTER_OK) {
            met.failed = Error::make(MUSTER_E_UNREACHABLE, "rank %u could not listen", one.rank);
            met.failed.rank = one.rank;
        }
        addresses.push_back(one.address);
        instances.push_back(one.instance);
    }
    opening.settings.size = static_cast<uint32_t>(met.members.size());
    opening.set_addresses(std::move(addresses), std::move(instances));
    return met;
}

// What a member does once the others wait for its connections: if it fails, the group does, so that no member waits in
// vain.
template <class Body>
auto or_fail(Group &group, Body &&body) -> decltype(body()) {
    Error why;
    try {
        auto done = body();
        if (done) return done;
        why = done.error();
    } catch (const Failure &failure) {
        why = failure.error;
    } catch (const std::bad_alloc &) {
        why = Error::make(MUSTER_E_NOMEM, "out of memory");
    }
    return group.could_not_connect(why);
}

// Listens at a fresh address, and exchanges the addresses of all members of the group.
Result<Meeting> meet_again(Group &group, Opening &opening, int64_t color, int64_t key, Deadline &deadline) {
    Result<std::string> own = std::string();
    if (color >= 0 && group.size() > 1) own = listen_again(group, opening);
    ByteWriter writer;
    writer.number(static_cast<uint64_t>(color)).number(static_cast<uint64_t>(key)).number(opening.instance);
    writer.text(own ? *own : std::string());
    auto all = exchange_records(group, writer.take(), deadline);
    if (!all) return all.error();
    return or_fail(group, [&]() -> Result<Meeting> {
        Meeting met = read_records(group, opening, *all, color);
        if (!own) met.failed = own.error();
        return met;
    });
}

} // namespace

Result<Ref<Group>> split_group(Group &group, int64_t color, int64_t key, Deadline &deadline) {
    Opening opening(group.context(), deadline, &group);
    opening.settings = group.settings;
    opening.settings.name += "/split";
    auto met = meet_again(group, opening, color, key, deadline);
    if (!met) return met.error();
    if (color < 0) return Ref<Group>();
    if (met->failed.status != MUSTER_OK) return met->failed;
    if (opening.settings.size == 1) return Group::make(group.context(), opening.settings, Group::Streams::of_one());
    return or_fail(group, [&]() -> Result<Ref<Group>> {
        auto made = opening.connect();
        if (made) return made;
        Error why = made.error();
        if (why.rank < met->members.size()) why.rank = met->members[why.rank].rank;
        return why;
    });
}

Result<std::vector<Ref<Stream>>> connect_members(Group &group, Deadline &deadline) {
    Opening opening(group.context(), deadline, &group);
    opening.settings = group.settings;
    opening.settings.name += "/streams";
    opening.window_bytes = group.context().settings.window_bytes;
    opening.settings.flags &= ~static_cast<uint32_t>(MUSTER_GROUP_MESSAGES);
    auto met = meet_again(group, opening, 0, 0, deadline);
    if (!met) return met.error();
    if (met->failed.status != MUSTER_OK) return met->failed;
    auto connected = or_fail(group, [&]() -> Result<void> {
        if (group.size() == 1) return {};
        if (auto done = opening.connect_streams(); !done) return done;
        return opening.meet_on_streams();
    });
    if (!connected) return connected.error();
    std::vector<Ref<Stream>> streams = std::move(opening.streams().operations);
    streams.resize(group.size());
    return streams;
}

} // namespace muster
