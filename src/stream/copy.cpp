// SPDX-License-Identifier: MIT
#include "stream/copy.hpp"

#include <cstdint>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace muster {

#if defined(__SSE2__)

namespace {
constexpr size_t large = 32 << 20; // about the size that libc considers larger than the last cache
}

bool goes_past_cache(const void *target, size_t size) noexcept {
    if (size < large) return false;
    static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    // A target that was ever filled has its last page.
    const uintptr_t last = (reinterpret_cast<uintptr_t>(target) + size - 1) & ~(page - 1);
    unsigned char there = 0;
    return mincore(reinterpret_cast<void *>(last), page, &there) == 0 && (there & 1) != 0;
}

void copy_past_cache(void *to, const void *from, size_t size) noexcept {
    auto *t = static_cast<unsigned char *>(to);
    auto *f = static_cast<const unsigned char *>(from);
    constexpr size_t line = 64, word = sizeof(__m128i);
    // Whole lines only: half of one, stored past the cache, costs two transfers.
    const size_t lead = (line - reinterpret_cast<uintptr_t>(t) % line) % line;
    if (size < lead + line) {
        memcpy(to, from, size);
        return;
    }
    memcpy(t, f, lead);
    t += lead, f += lead, size -= lead;
    for (; size >= line; t += line, f += line, size -= line) {
        __m128i words[line / word];
        for (size_t i = 0; i < line / word; i++) words[i] = _mm_loadu_si128(reinterpret_cast<const __m128i *>(f) + i);
        for (size_t i = 0; i < line / word; i++) _mm_stream_si128(reinterpret_cast<__m128i *>(t) + i, words[i]);
    }
    memcpy(t, f, size);
    _mm_sfence(); // a release does not order such stores: before the bytes are published
}

#else

bool goes_past_cache(const void *, size_t) noexcept {
    return false;
}

void copy_past_cache(void *to, const void *from, size_t size) noexcept {
    memcpy(to, from, size);
}

#endif

} // namespace muster
