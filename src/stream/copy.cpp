// SPDX-License-Identifier: MIT
#include "stream/copy.hpp"

#include <algorithm>
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
constexpr size_t line = 64;
// Several runs of lines at a time keep more of the memory busy than one does, where the source is in no
// cache, either; memcpy() of libc does the same.
constexpr size_t runs = 4, run_bytes = 4096;

void copy_line(unsigned char *to, const unsigned char *from) noexcept {
    constexpr size_t count = line / sizeof(__m128i);
    __m128i words[count];
    for (size_t i = 0; i < count; i++) words[i] = _mm_loadu_si128(reinterpret_cast<const __m128i *>(from) + i);
    for (size_t i = 0; i < count; i++) _mm_stream_si128(reinterpret_cast<__m128i *>(to) + i, words[i]);
}
} // namespace

bool goes_past_cache(const void *target, size_t size, size_t whole) noexcept {
    if (std::max(size, whole) < large || size == 0) return false;
    static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    // A target that was ever filled has its last page.
    const uintptr_t last = (reinterpret_cast<uintptr_t>(target) + size - 1) & ~(page - 1);
    unsigned char there = 0;
    return mincore(reinterpret_cast<void *>(last), page, &there) == 0 && (there & 1) != 0;
}

namespace {
// `in_runs`: several runs at a time.
void copy_past_cache(void *to, const void *from, size_t size, bool in_runs) noexcept {
    auto *t = static_cast<unsigned char *>(to);
    auto *f = static_cast<const unsigned char *>(from);
    // Whole lines only: half of one, stored past the cache, costs two transfers.
    const size_t lead = (line - reinterpret_cast<uintptr_t>(t) % line) % line;
    if (size < lead + line) {
        memcpy(to, from, size);
        return;
    }
    memcpy(t, f, lead);
    t += lead, f += lead, size -= lead;
    constexpr size_t all = runs * run_bytes;
    for (; in_runs && size >= all; t += all, f += all, size -= all)
        for (size_t at = 0; at < run_bytes; at += line)
            for (size_t r = 0; r < runs; r++) copy_line(t + r * run_bytes + at, f + r * run_bytes + at);
    for (; size >= line; t += line, f += line, size -= line) copy_line(t, f);
    memcpy(t, f, size);
    _mm_sfence(); // a release does not order such stores: before the bytes are published
}
} // namespace

void copy_past_cache(void *to, const void *from, size_t size) noexcept {
    copy_past_cache(to, from, size, false);
}

void copy_whole(void *to, const void *from, size_t size) noexcept {
    if (goes_past_cache(to, size))
        copy_past_cache(to, from, size, true);
    else
        memcpy(to, from, size);
}

#else

bool goes_past_cache(const void *, size_t, size_t) noexcept {
    return false;
}

void copy_past_cache(void *to, const void *from, size_t size) noexcept {
    memcpy(to, from, size);
}

void copy_whole(void *to, const void *from, size_t size) noexcept {
    memcpy(to, from, size);
}

#endif

} // namespace muster
