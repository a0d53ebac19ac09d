// SPDX-License-Identifier: MIT
#pragma once
// Copying into a target larger than the caches: stores that go past them spare the memory one of three transfers, since
// a plain store first fetches the line it is about to overwrite. libc's memcpy() does the same for one large copy, but
// a stream copies in pieces, and only the stream knows how many will follow.
#include <cstddef>
#include <cstring>

namespace muster {

// Worth it? Large enough, and in memory whose pages are there: fresh pages pass through the cache when the kernel
// clears them, and are better written while they are in it.
bool goes_past_cache(const void *target, size_t size) noexcept;

void copy_past_cache(void *to, const void *from, size_t size) noexcept;

inline void copy_out(void *to, const void *from, size_t size, bool past_cache) noexcept {
    if (past_cache)
        copy_past_cache(to, from, size);
    else
        memcpy(to, from, size);
}

} // namespace muster
