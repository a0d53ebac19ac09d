// SPDX-License-Identifier: MIT
#pragma once
// The bytes of one fuzz input, taken off the front; zeroes when they are used up.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

class Input {
  public:
    Input(const uint8_t *data, size_t size) : data_(data), left_(size) {}
    size_t left() const { return left_; }
    uint8_t byte() {
        if (left_ == 0) return 0;
        left_--;
        return *data_++;
    }
    uint64_t number(int bytes) {
        uint64_t v = 0;
        for (int i = 0; i < bytes; i++) v |= uint64_t{byte()} << 8 * i;
        return v;
    }
    // Up to `size` bytes as they lie; `got` of them.
    const uint8_t *take(size_t size, size_t &got) {
        got = std::min(size, left_);
        const uint8_t *at = data_;
        data_ += got;
        left_ -= got;
        return at;
    }

  private:
    const uint8_t *data_;
    size_t left_;
};

#define FUZZ_CHECK(condition)                                                                                          \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition);                              \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
