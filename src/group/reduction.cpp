// SPDX-License-Identifier: MIT
#include "group/reduction.hpp"

#include "base/bit_cast.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace muster {

namespace {

constexpr size_t block = 512; // elements that are accumulated at a time, in the first-level cache

struct F16 {
    uint16_t bits;
};
struct BF16 {
    uint16_t bits;
};

float widen(BF16 from) noexcept {
    return bit_cast<float>(uint32_t{from.bits} << 16);
}
float widen(F16 from) noexcept {
    const uint32_t sign = uint32_t{from.bits & 0x8000u} << 16, rest = from.bits & 0x7FFFu;
    if (rest >= 0x7C00u) return bit_cast<float>(sign | 0x7F800000u | (rest & 0x3FFu) << 13); // infinite, no number
    if (rest >= 0x0400u) return bit_cast<float>(sign | ((rest << 13) + (112u << 23)));
    return bit_cast<float>(sign | bit_cast<uint32_t>(static_cast<float>(rest) * 0x1p-24f)); // subnormal
}
// Both round to nearest, ties to even.
void narrow(float from, BF16 &to) noexcept {
    const auto bits = bit_cast<uint32_t>(from);
    const bool is_number = (bits & 0x7FFFFFFFu) <= 0x7F800000u;
    to.bits = static_cast<uint16_t>(is_number ? (bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16 : bits >> 16 | 0x40u);
}
void narrow(float from, F16 &to) noexcept {
    const auto bits = bit_cast<uint32_t>(from);
    const uint32_t sign = bits >> 16 & 0x8000u, rest = bits & 0x7FFFFFFFu;
    uint32_t half;
    if (rest > 0x7F800000u)
        half = 0x7E00u; // no number
    else if (rest >= 0x477FF000u)
        half = 0x7C00u; // rounds to infinity
    else if (rest >= 0x38800000u)
        half = (rest - (112u << 23) + 0xFFFu + (rest >> 13 & 1u)) >> 13;
    else // subnormal: the addition of a half rounds it to a multiple of 2^-24
        half = bit_cast<uint32_t>(bit_cast<float>(rest) + 0.5f) - 0x3F000000u;
    to.bits = static_cast<uint16_t>(sign | half);
}

template <class T>
constexpr bool is_narrow = std::is_same_v<T, F16> || std::is_same_v<T, BF16>;
// What a type is accumulated in: integers without a sign, since those with one must not overflow.
template <class T, bool narrow = is_narrow<T>>
struct AccumulatorOf {
    using type = T;
};
template <class T>
struct AccumulatorOf<T, true> {
    using type = float;
};

template <class T, class A>
A load(const unsigned char *from) noexcept {
    T value;
    memcpy(&value, from, sizeof value);
    if constexpr (is_narrow<T>)
        return widen(value);
    else
        return value;
}
template <class T, class A>
void store(unsigned char *to, A value) noexcept {
    T out;
    if constexpr (is_narrow<T>)
        narrow(value, out);
    else
        out = value;
    memcpy(to, &out, sizeof out);
}

struct Sum {
    template <class A>
    A operator()(A a, A b) const noexcept {
        if constexpr (std::is_integral_v<A>) {
            using U = std::make_unsigned_t<A>;
            return static_cast<A>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
        } else {
            return a + b;
        }
    }
};
struct Product {
    template <class A>
    A operator()(A a, A b) const noexcept {
        if constexpr (std::is_integral_v<A>) {
            using U =
                std::common_type_t<std::make_unsigned_t<A>, unsigned>; // 16 bits would be widened to a signed type
            return static_cast<A>(static_cast<U>(a) * static_cast<U>(b));
        } else {
            return a * b;
        }
    }
};
struct Min {
    template <class A>
    A operator()(A a, A b) const noexcept {
        return b < a ? b : a;
    }
};
struct Max {
    template <class A>
    A operator()(A a, A b) const noexcept {
        return a < b ? b : a;
    }
};
struct And {
    template <class A>
    A operator()(A a, A b) const noexcept {
        return static_cast<A>(a & b);
    }
};
struct Or {
    template <class A>
    A operator()(A a, A b) const noexcept {
        return static_cast<A>(a | b);
    }
};
struct Xor {
    template <class A>
    A operator()(A a, A b) const noexcept {
        return static_cast<A>(a ^ b);
    }
};

template <class T, class Op>
void reduce_rows(const void *const *rows, size_t row_count, unsigned char *out, uint64_t count) noexcept {
    using A = typename AccumulatorOf<T>::type;
    A sums[block];
    for (uint64_t at = 0; at < count; at += block) {
        const size_t n = std::min<uint64_t>(block, count - at);
        const auto *row = static_cast<const unsigned char *>(rows[0]) + at * sizeof(T);
        for (size_t i = 0; i < n; i++) sums[i] = load<T, A>(row + i * sizeof(T));
        for (size_t r = 1; r < row_count; r++) {
            row = static_cast<const unsigned char *>(rows[r]) + at * sizeof(T);
            for (size_t i = 0; i < n; i++) sums[i] = Op()(sums[i], load<T, A>(row + i * sizeof(T)));
        }
        for (size_t i = 0; i < n; i++) store<T, A>(out + (at + i) * sizeof(T), sums[i]);
    }
}

using Kernel = void (*)(const void *const *, size_t, unsigned char *, uint64_t) noexcept;

template <class T>
Kernel kernel_of(uint32_t reduction) noexcept {
    switch (reduction) {
    case MUSTER_REDUCE_SUM:
        return reduce_rows<T, Sum>;
    case MUSTER_REDUCE_PRODUCT:
        return reduce_rows<T, Product>;
    case MUSTER_REDUCE_MIN:
        return reduce_rows<T, Min>;
    case MUSTER_REDUCE_MAX:
        return reduce_rows<T, Max>;
    default:
        break;
    }
    if constexpr (std::is_integral_v<T>) {
        switch (reduction) {
        case MUSTER_REDUCE_AND:
            return reduce_rows<T, And>;
        case MUSTER_REDUCE_OR:
            return reduce_rows<T, Or>;
        case MUSTER_REDUCE_XOR:
            return reduce_rows<T, Xor>;
        default:
            break;
        }
    }
    return nullptr;
}

Kernel find_kernel(uint32_t type, uint32_t reduction) noexcept {
    switch (type) {
    case MUSTER_TYPE_I8:
        return kernel_of<int8_t>(reduction);
    case MUSTER_TYPE_U8:
        return kernel_of<uint8_t>(reduction);
    case MUSTER_TYPE_I16:
        return kernel_of<int16_t>(reduction);
    case MUSTER_TYPE_U16:
        return kernel_of<uint16_t>(reduction);
    case MUSTER_TYPE_I32:
        return kernel_of<int32_t>(reduction);
    case MUSTER_TYPE_U32:
        return kernel_of<uint32_t>(reduction);
    case MUSTER_TYPE_I64:
        return kernel_of<int64_t>(reduction);
    case MUSTER_TYPE_U64:
        return kernel_of<uint64_t>(reduction);
    case MUSTER_TYPE_F16:
        return kernel_of<F16>(reduction);
    case MUSTER_TYPE_BF16:
        return kernel_of<BF16>(reduction);
    case MUSTER_TYPE_F32:
        return kernel_of<float>(reduction);
    case MUSTER_TYPE_F64:
        return kernel_of<double>(reduction);
    default:
        return nullptr;
    }
}

} // namespace

size_t bytes_of_type(uint32_t type) noexcept {
    static constexpr uint8_t bytes[] = {0, 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8};
    return type < std::size(bytes) ? bytes[type] : 0;
}

const char *name_of_type(uint32_t type) noexcept {
    static constexpr const char *names[] = {"?",   "i8",  "u8",  "i16",  "u16", "i32", "u32",
                                            "i64", "u64", "f16", "bf16", "f32", "f64", "elements of a reduction"};
    return type < std::size(names) ? names[type] : names[0];
}

const char *name_of_reduction(uint32_t reduction) noexcept {
    static constexpr const char *names[] = {"?", "sum", "product", "min", "max", "and", "or", "xor"};
    if (reduction >= 256) return "a reduction of the host";
    return reduction < std::size(names) ? names[reduction] : names[0];
}

bool Reduction::is_valid() const noexcept {
    return combine != nullptr || find_kernel(type, number) != nullptr;
}

void Reduction::reduce(const void *const *rows, size_t row_count, void *out, uint64_t count) const noexcept {
    if (count == 0 || row_count == 0) return;
    if (combine == nullptr) return find_kernel(type, number)(rows, row_count, static_cast<unsigned char *>(out), count);
    alignas(64) unsigned char sums[16384];
    const uint64_t at_once = sizeof sums / element_bytes; // at least four
    for (uint64_t at = 0; at < count; at += at_once) {
        const uint64_t n = std::min(at_once, count - at);
        const uint64_t offset = at * element_bytes;
        memcpy(sums, static_cast<const unsigned char *>(rows[0]) + offset, n * element_bytes);
        for (size_t r = 1; r < row_count; r++)
            combine(user, static_cast<const unsigned char *>(rows[r]) + offset, sums, n);
        memcpy(static_cast<unsigned char *>(out) + offset, sums, n * element_bytes);
    }
}

} // namespace muster
