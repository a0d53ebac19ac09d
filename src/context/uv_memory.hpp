// SPDX-License-Identifier: MIT
#pragma once

namespace muster {

// To be called before libuv is used; once is enough, more often is harmless. Any thread.
void give_uv_a_reserve() noexcept;

} // namespace muster
