// SPDX-License-Identifier: MIT
#pragma once
// Which locales share memory: those of one user on one host, here called a node.
#include "group/group.hpp"
#include "memory/layout.hpp"

#include <vector>

namespace muster {

struct MemoryNodes {
    static constexpr uint32_t elsewhere = UINT32_MAX;
    std::vector<std::vector<uint32_t>> nodes; // the locales of each, in ascending order; nodes by their first one
    std::vector<uint32_t> node_of;            // of each locale
    uint32_t own = 0;                         // the node of this process
    uint64_t number = 0; // of this memory: higher than that of all that its processes have made before

    // For the pointers; after 2^bits - 1 memories the first one comes again.
    uint32_t incarnation_of(uint32_t bits) const noexcept {
        return bits == 0 ? 0 : static_cast<uint32_t>(1 + (number - 1) % ((uint64_t{1} << bits) - 1));
    }

    const std::vector<uint32_t> &here() const noexcept { return nodes[own]; }
    uint32_t leader() const noexcept { return here().front(); } // makes the memory of this node
    // The place of a locale in the memory of this node, or elsewhere.
    uint32_t place_of(uint32_t locale) const noexcept {
        const std::vector<uint32_t> &all = here();
        const auto at = std::lower_bound(all.begin(), all.end(), locale);
        return at != all.end() && *at == locale ? static_cast<uint32_t>(at - all.begin()) : elsewhere;
    }
};

// All locales make the call. MISMATCH: their configurations differ.
Result<MemoryNodes> find_nodes(Group &group, const MemoryShape &shape, Deadline &deadline);

// An operation of the group on bytes.
Result<void> exchange_bytes(Group &group, uint32_t kind, const void *input, void *output, uint64_t bytes,
                            Deadline &deadline);

// The failure of this locale or else of the first one that has failed, so that all of them return one.
Result<void> agree_on_result(Group &group, const Error &own, Deadline &deadline);

} // namespace muster
