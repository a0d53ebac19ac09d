// SPDX-License-Identifier: MIT
#include "base/config.hpp"

namespace muster {

namespace {
constexpr uint32_t largest = 65536; // no struct of this library is larger
}

Result<void> read_config(const void *from, void *to, size_t size, size_t first_size, const char *name) noexcept {
    uint32_t given = 0;
    std::memcpy(&given, from, sizeof given);
    if (given < first_size || given > largest || given % 4 != 0)
        return Error::make(MUSTER_E_ABI, "%s: struct_size %u was never released, this library has %zu", name, given,
                           size);
    const auto *bytes = static_cast<const unsigned char *>(from);
    for (size_t i = size; i < given; i++)
        if (bytes[i] != 0)
            return Error::make(MUSTER_E_ABI, "%s: byte %zu is set, but this library knows only %zu", name, i, size);
    std::memcpy(to, from, given < size ? given : size);
    const auto own = static_cast<uint32_t>(size);
    std::memcpy(to, &own, sizeof own);
    return {};
}

} // namespace muster
