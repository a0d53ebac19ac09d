// SPDX-License-Identifier: MIT
// Copies past the cache are copies: every offset of both sides, every odd length, nothing beyond.
#include "stream/copy.hpp"

#include <algorithm>
#include <csetjmp>
#include <cstdarg>
#include <cstdint>
#include <sys/mman.h>
#include <vector>

extern "C" {
#include <cmocka.h>
}

using namespace muster;

namespace {

bool one_copy(size_t to_offset, size_t from_offset, size_t size) {
    unsigned char from[512], to[512];
    for (size_t i = 0; i < sizeof from; i++) from[i] = static_cast<unsigned char>(i * 7 + 1), to[i] = 0xee;
    copy_past_cache(to + to_offset, from + from_offset, size);
    for (size_t i = 0; i < sizeof to; i++) {
        const bool inside = i >= to_offset && i < to_offset + size;
        if (to[i] != (inside ? from[from_offset + i - to_offset] : 0xee)) return false;
    }
    return true;
}

void test_copies_every_offset_and_length(void **) {
    size_t wrong = 0;
    for (size_t to = 0; to < 65; to++)
        for (size_t from = 0; from < 17; from++)
            for (size_t size = 0; size <= 260; size += size < 140 ? 1 : 13) wrong += !one_copy(to, from, size);
    assert_int_equal(wrong, 0);
}

// Runs of pages at a time, and what is left of them.
void test_one_large_copy(void **) {
    constexpr size_t size = (32 << 20) + 3 * 4096 + 77, edge = 64;
    std::vector<unsigned char> from(size + edge), to(size + 2 * edge, 0xee);
    for (size_t i = 0; i < from.size(); i++) from[i] = static_cast<unsigned char>(i * 7 + (i >> 9));
    for (size_t shift : {size_t{0}, size_t{13}}) {
        std::fill(to.begin(), to.end(), static_cast<unsigned char>(0xee));
        copy_whole(&to[edge - shift], &from[shift], size);
        assert_memory_equal(&to[edge - shift], &from[shift], size);
        assert_int_equal(to[edge - shift - 1], 0xee);
        assert_int_equal(to[edge - shift + size], 0xee);
    }
    copy_whole(nullptr, nullptr, 0);
}

void test_small_or_fresh_targets_are_not_taken_past_the_cache(void **) {
    constexpr size_t size = 64 << 20;
    void *memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    const bool small = goes_past_cache(memory, 4096), fresh = goes_past_cache(memory, size - 5);
    static_cast<unsigned char *>(memory)[size - 6] = 1;
    const bool filled = goes_past_cache(memory, size - 5);
    munmap(memory, size);
    assert_false(small);
    assert_false(fresh);
#if defined(__SSE2__)
    assert_true(filled);
#else
    assert_false(filled);
#endif
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_copies_every_offset_and_length),
        cmocka_unit_test(test_one_large_copy),
        cmocka_unit_test(test_small_or_fresh_targets_are_not_taken_past_the_cache),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
