// SPDX-License-Identifier: MIT
#pragma once
// A collective operation, checked and in a form that all paths use.
#include "base/result.hpp"
#include "group/board.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

// Kinds besides those of muster_group_kind: operations of the library itself.
constexpr uint32_t group_close_kind = 64;
// Up to this size of an array every member that needs the result reduces all inputs by itself.
constexpr uint64_t reduce_alone_bytes = 16 * 1024;

// A value. Sizes are in elements unless a name says otherwise.
struct GroupOperation {
    uint32_t kind = 0, root = 0, flags = 0;
    Reduction reduction; // also: the type, and the bytes of an element
    uint64_t count = 0;
    const unsigned char *input = nullptr; // that of an operation in place is the output
    unsigned char *output = nullptr;
    bool in_place = false;         // input and output are the same
    std::vector<uint64_t> counts;  // empty: blocks of `count` elements
    std::vector<uint64_t> sources; // ALL_TO_ALL with counts: elements from each rank
    std::vector<uint64_t> offsets; // of the block of each rank, and the end; operations with blocks only

    // Fills a new one. `size`: of the group. `find`: the reduction of the host with this number, or NULL.
    Result<void> read(const muster_group_operation &given, uint32_t rank, uint32_t size,
                      const Reduction *(*find)(void *of, uint32_t number), void *of);

    uint64_t element_bytes() const noexcept { return reduction.element_bytes; }
    uint64_t block(uint32_t rank) const noexcept { return counts.empty() ? count : counts[rank]; }
    uint64_t block_bytes(uint32_t rank) const noexcept { return block(rank) * element_bytes(); }
    uint64_t offset_bytes(uint32_t rank) const noexcept { return offsets[rank] * element_bytes(); }
    uint64_t source(uint32_t rank) const noexcept { return sources.empty() ? count : sources[rank]; }
    bool has_root() const noexcept;
    bool reduces() const noexcept;
    Fingerprint fingerprint(uint64_t sequence) const noexcept;
};

// The head of a message between two members over a stream; its payload follows. A value.
struct GroupMessageHead {
    static constexpr size_t bytes = 48;
    Fingerprint fingerprint;
    uint64_t payload_bytes = 0;

    void put(char *to) const noexcept;
    static std::optional<GroupMessageHead> read(std::string_view from) noexcept;
};

const char *name_of_kind(uint32_t kind) noexcept;
std::string describe(const Fingerprint &fingerprint); // "all-reduce 17 of 1000 f64 (sum)"
// Two members perform different operations.
// What the group fails with where an operation of this member fails with `why`: time limits and resources of a member
// are its own, so for the group they are MUSTER_E_ABORTED.
Error failure_of_group(uint32_t rank, uint32_t kind, uint64_t sequence, const Error &why);
Error make_mismatch(uint32_t rank, const Fingerprint &own, uint32_t other_rank, const Fingerprint &other);

} // namespace muster
