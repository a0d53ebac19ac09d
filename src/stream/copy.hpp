// SPDX-License-Identifier: MIT
#pragma once
// Copies into a target that is larger than the caches: stores that bypass them save one of three memory transfers,
// since a plain store first fetches the line that it is about to overwrite. memcpy() of libc does the same from three
// quarters of the last cache on, which in a virtual machine is that of the whole host and used by others, too; and of a
// copy in pieces memcpy() does not know how many follow.
#include <cstddef>
#include <cstring>

namespace muster {

// Worth it? Only if the target is large, and its pages exist: fresh pages pass through the cache when the kernel clears
// them, and are better written while they are in it.
// `whole`: the bytes of all pieces of the copy, if this is one.
bool goes_past_cache(const void *target, size_t size, size_t whole = 0) noexcept;

void copy_past_cache(void *to, const void *from, size_t size) noexcept;

inline void copy_out(void *to, const void *from, size_t size, bool past_cache) noexcept {
    if (past_cache)
        copy_past_cache(to, from, size);
    else
        memcpy(to, from, size);
}

// One copy, not in pieces; `size` may be 0.
void copy_whole(void *to, const void *from, size_t size) noexcept;

} // namespace muster
