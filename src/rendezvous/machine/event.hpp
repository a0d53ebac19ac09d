// SPDX-License-Identifier: MIT
#pragma once
#include <muster/rendezvous.h>

#include <string_view>

namespace muster {

// A text that is too long is truncated.
muster_rendezvous_event make_event(uint32_t kind, uint64_t round, uint32_t rank, uint32_t count, std::string_view text);

} // namespace muster
