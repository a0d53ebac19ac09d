// SPDX-License-Identifier: MIT
#pragma once
#include <string>

namespace muster {

// The numeric address from which this host would send to `host`; nothing is sent. Empty: it is not known. Blocks while
// the name is resolved.
std::string address_towards(const std::string &host);

} // namespace muster
