// SPDX-License-Identifier: MIT
#include "memory/nodes.hpp"

#include "transport/hub.hpp"

#include <atomic>
#include <cstring>

namespace muster {

namespace {

// What each locale contributes. The first part has to be the same everywhere; locales that have the same second part
// share memory. Padding is none.
struct LocaleInfo {
    uint64_t locale_bits, incarnation_bits, flags, max_tokens, max_pending, segment_bytes, symmetric_bytes;
    unsigned char boot[16];
    uint64_t net_namespace, user, alone; // alone: differs for each locale that shares nothing
    uint64_t memories;                   // the number of the last memory that this process has made with others
};
static_assert(sizeof(LocaleInfo) == 104);

// relaxed: calls that are made at the same time by groups of the same processes would have to be in one order anyway.
std::atomic<uint64_t> memories_made{0};

LocaleInfo describe_locale(Group &group, const MemoryShape &shape) {
    const HostIdentity &host = Hub::of(group.context()).host;
    LocaleInfo info{};
    info.locale_bits = shape.locale_bits;
    info.incarnation_bits = shape.incarnation_bits;
    info.flags = shape.flags;
    info.max_tokens = shape.max_tokens;
    info.max_pending = shape.max_pending;
    info.segment_bytes = shape.segment_bytes;
    info.symmetric_bytes = shape.symmetric_bytes;
    std::memcpy(info.boot, host.boot.data(), sizeof info.boot);
    info.net_namespace = host.net_namespace;
    info.user = host.user;
    info.alone = shape.flags & MUSTER_MEMORY_NO_SHARED_MEMORY ? group.rank() + uint64_t{1} : 0;
    info.memories = memories_made.load(std::memory_order_relaxed);
    return info;
}

bool share_memory(const LocaleInfo &a, const LocaleInfo &b) noexcept {
    constexpr size_t from = offsetof(LocaleInfo, boot);
    return std::memcmp(reinterpret_cast<const char *>(&a) + from, reinterpret_cast<const char *>(&b) + from,
                       offsetof(LocaleInfo, memories) - from) == 0;
}

} // namespace

Result<void> exchange_bytes(Group &group, uint32_t kind, const void *input, void *output, uint64_t bytes,
                            Deadline &deadline) {
    muster_group_operation what{};
    what.struct_size = sizeof what;
    what.kind = kind;
    what.type = MUSTER_TYPE_U8;
    what.count = bytes;
    what.input = input;
    what.output = output;
    GroupOperation operation;
    if (auto ok = group.read(what, operation); !ok) return ok;
    return group.perform(operation, deadline);
}

Result<void> agree_on_result(Group &group, const Error &own, Deadline &deadline) {
    std::vector<int32_t> all(group.size());
    const int32_t status = own.status;
    if (auto done = exchange_bytes(group, MUSTER_GROUP_ALL_GATHER, &status, all.data(), sizeof status, deadline); !done)
        return done;
    if (own.status != MUSTER_OK) return own;
    for (uint32_t r = 0; r < all.size(); r++) {
        if (all[r] == MUSTER_OK) continue;
        Error why = Error::make(all[r], "locale %u could not take part", r);
        why.rank = r;
        return why;
    }
    return {};
}

Result<MemoryNodes> find_nodes(Group &group, const MemoryShape &shape, Deadline &deadline) {
    const LocaleInfo own = describe_locale(group, shape);
    std::vector<LocaleInfo> all(group.size());
    if (auto done = exchange_bytes(group, MUSTER_GROUP_ALL_GATHER, &own, all.data(), sizeof own, deadline); !done)
        return done.error();
    for (uint32_t r = 0; r < all.size(); r++) {
        const LocaleInfo &one = all[r];
        if (std::memcmp(&one, &all[0], offsetof(LocaleInfo, boot)) == 0) continue;
        Error why = Error::make(
            MUSTER_E_MISMATCH,
            "locale %u has segments of %llu bytes, %llu of them symmetric, %llu bits for the locale, %llu for the "
            "incarnation, and flags 0x%llx; locale 0 has %llu, %llu, %llu, %llu, 0x%llx",
            r, static_cast<unsigned long long>(one.segment_bytes), static_cast<unsigned long long>(one.symmetric_bytes),
            static_cast<unsigned long long>(one.locale_bits), static_cast<unsigned long long>(one.incarnation_bits),
            static_cast<unsigned long long>(one.flags), static_cast<unsigned long long>(all[0].segment_bytes),
            static_cast<unsigned long long>(all[0].symmetric_bytes),
            static_cast<unsigned long long>(all[0].locale_bits),
            static_cast<unsigned long long>(all[0].incarnation_bits), static_cast<unsigned long long>(all[0].flags));
        why.rank = r;
        return why;
    }
    MemoryNodes found;
    found.node_of.resize(all.size());
    for (uint32_t r = 0; r < all.size(); r++) {
        uint32_t node = 0;
        while (node < found.nodes.size() && !share_memory(all[r], all[found.nodes[node].front()])) node++;
        if (node == found.nodes.size()) found.nodes.emplace_back();
        found.nodes[node].push_back(r);
        found.node_of[r] = node;
    }
    found.own = found.node_of[group.rank()];
    for (const LocaleInfo &one : all) found.number = std::max(found.number, one.memories + 1);
    // Other threads make memories, too: the number only grows.
    uint64_t last = memories_made.load(std::memory_order_relaxed);
    while (last < found.number && !memories_made.compare_exchange_weak(last, found.number, std::memory_order_relaxed)) {
    }
    return found;
}

} // namespace muster
