// SPDX-License-Identifier: MIT
#pragma once
// Requests for the memory of another locale, as payload of active messages. docs/wire.md has the format.
#include "base/codec.hpp"

#include <muster/memory.h>

#include <optional>

namespace muster {

// An operation: 56 bytes, and what a PUT copies. The reply of a GET is the bytes; of others the value and the count.
struct RemoteOperation {
    static constexpr size_t bytes = 56, reply_bytes = 16, size_at = 16; // size_at: the offset of `bytes`
    static void put(char *to, const muster_memory_operation &what) noexcept {
        PlacedByteWriter writer(to);
        writer.number(static_cast<uint8_t>(what.kind)).number(static_cast<uint8_t>(what.cell));
        writer.number(static_cast<uint8_t>(what.order)).number(static_cast<uint8_t>(what.operation));
        writer.number(what.notify).number(what.target).number(what.bytes).number(what.value);
        writer.number(what.expected).number(what.expected_count).number(what.signal);
    }
    // `local` is the payload of a PUT; the rest is as the peer says, and not checked. `placed`: bytes of a PUT that are
    // elsewhere.
    static std::optional<muster_memory_operation> get(const unsigned char *from, size_t size,
                                                      size_t placed = 0) noexcept {
        ByteReader reader(from, size);
        muster_memory_operation what{};
        what.struct_size = sizeof what;
        what.kind = reader.number<uint8_t>();
        what.cell = reader.number<uint8_t>();
        what.order = reader.number<uint8_t>();
        what.operation = reader.number<uint8_t>();
        what.notify = reader.number<uint32_t>();
        what.target = reader.number<uint64_t>();
        what.bytes = reader.number<uint64_t>();
        what.value = reader.number<uint64_t>();
        what.expected = reader.number<uint64_t>();
        what.expected_count = reader.number<uint64_t>();
        what.signal = reader.number<uint64_t>();
        const std::string_view rest = reader.rest();
        reader.require(rest.size() + placed == (what.kind == MUSTER_MEMORY_PUT ? what.bytes : 0));
        if (!reader.is_complete()) return std::nullopt;
        if (what.kind == MUSTER_MEMORY_PUT) what.local = const_cast<char *>(rest.data());
        return what;
    }
};

} // namespace muster
