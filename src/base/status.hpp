// SPDX-License-Identifier: MIT
#pragma once
#include "base/result.hpp"

namespace muster {

const char *status_name(Status status) noexcept; // "MUSTER_E_PEER", "MUSTER_E_?" when unknown
const char *status_text(Status status) noexcept; // a few words, never NULL

} // namespace muster
