// SPDX-License-Identifier: MIT
#pragma once
#include <cstdint>

namespace muster {

class Context;

// The one signal Muster ever sends its own process, where the host has asked for it: SIGTERM now, SIGKILL after the
// grace, from the context's thread. Any thread.
void end_self(Context &context, int64_t grace_ns) noexcept;

} // namespace muster
