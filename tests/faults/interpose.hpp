// SPDX-License-Identifier: MIT
#pragma once
// What the replaced functions ask the injector.
#include "injector.hpp"

#include <cerrno>

namespace faults {

bool is_library(const void *caller) noexcept;
// 0: make the call. Else the errno that it fails with.
int decide(uint32_t kind, const void *caller) noexcept;
void allocated(void *memory, uint64_t bytes, const void *caller) noexcept;
void freed(void *memory) noexcept;

} // namespace faults
