// SPDX-License-Identifier: MIT
#pragma once
// The little-endian codec of every wire and file format. Plug-ins use it, too: it needs only the standard library.
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace muster {

// Unsigned numbers at a known place; the caller has checked that the place is large enough.
template <std::unsigned_integral T>
void put_little_endian(unsigned char *to, T value) noexcept {
    if constexpr (std::endian::native == std::endian::little)
        memcpy(to, &value, sizeof value);
    else
        for (size_t i = 0; i < sizeof value; i++) to[i] = static_cast<unsigned char>(uint64_t{value} >> 8 * i);
}
template <std::unsigned_integral T>
T get_little_endian(const unsigned char *from) noexcept {
    T value = 0;
    if constexpr (std::endian::native == std::endian::little)
        memcpy(&value, from, sizeof value);
    else
        for (size_t i = 0; i < sizeof value; i++) value = static_cast<T>(value | uint64_t{from[i]} << 8 * i);
    return value;
}

inline void put_u16(unsigned char *to, uint16_t value) noexcept {
    put_little_endian(to, value);
}
inline void put_u32(unsigned char *to, uint32_t value) noexcept {
    put_little_endian(to, value);
}
inline void put_u64(unsigned char *to, uint64_t value) noexcept {
    put_little_endian(to, value);
}
inline uint16_t get_u16(const unsigned char *from) noexcept {
    return get_little_endian<uint16_t>(from);
}
inline uint32_t get_u32(const unsigned char *from) noexcept {
    return get_little_endian<uint32_t>(from);
}
inline uint64_t get_u64(const unsigned char *from) noexcept {
    return get_little_endian<uint64_t>(from);
}

inline const unsigned char *as_bytes(std::string_view text) noexcept {
    return reinterpret_cast<const unsigned char *>(text.data());
}
inline unsigned char *as_bytes(std::string &text) noexcept {
    return reinterpret_cast<unsigned char *>(text.data());
}
template <size_t count>
std::string_view as_text(const std::array<unsigned char, count> &bytes) noexcept {
    return {reinterpret_cast<const char *>(bytes.data()), count};
}

// The unsigned type that carries a number or an enumeration.
template <size_t bytes>
using UnsignedOfSize =
    std::conditional_t<bytes == 1, uint8_t,
                       std::conditional_t<bytes == 2, uint16_t, std::conditional_t<bytes == 4, uint32_t, uint64_t>>>;

// What the two writers have in common; Writer::put(bytes, size) stores them.
template <class Writer>
class ByteWriting {
  public:
    // An integer or an enumeration, in as many bytes as its type has.
    template <class T>
    Writer &number(T value) {
        unsigned char bytes[sizeof(T)];
        put_little_endian(bytes, static_cast<UnsignedOfSize<sizeof(T)>>(value));
        self().put(reinterpret_cast<const char *>(bytes), sizeof bytes);
        return self();
    }
    Writer &bytes(std::string_view value) {
        self().put(value.data(), value.size());
        return self();
    }
    template <size_t count>
    Writer &bytes(const std::array<unsigned char, count> &value) {
        return bytes(as_text(value));
    }
    // The length in two bytes, then the text, which the caller has bounded.
    Writer &text(std::string_view value) { return number(static_cast<uint16_t>(value.size())).bytes(value); }

  private:
    Writer &self() noexcept { return static_cast<Writer &>(*this); }
};

// Appends to a string of the caller or to its own; throws what appending throws. One thread at a time.
class ByteWriter : public ByteWriting<ByteWriter> {
  public:
    ByteWriter() noexcept : to_(own_) {}
    explicit ByteWriter(std::string &to) noexcept : to_(to) {}
    ByteWriter(const ByteWriter &) = delete;
    ByteWriter &operator=(const ByteWriter &) = delete;

    void put(const char *bytes, size_t size) { to_.append(bytes, size); }
    std::string take() noexcept { return std::move(to_); }

  private:
    std::string own_;
    std::string &to_;
};

// Writes to a place whose size the caller has counted before: without a check and a call for each field.
class PlacedByteWriter : public ByteWriting<PlacedByteWriter> {
  public:
    explicit PlacedByteWriter(char *to) noexcept : to_(to) {}
    void put(const char *bytes, size_t size) noexcept {
        if (size != 0) memcpy(to_, bytes, size);
        to_ += size;
    }

  private:
    char *to_;
};

// Reads bytes of a peer, a file or a store. A read past the end returns zero or an empty view, makes the reader invalid
// for good, and never reads memory outside; the caller checks once at the end. Views point into the bytes. One thread
// at a time.
class ByteReader {
  public:
    explicit ByteReader(std::string_view bytes) noexcept : left_(bytes) {}
    ByteReader(const unsigned char *bytes, size_t size) noexcept : left_(reinterpret_cast<const char *>(bytes), size) {}

    template <class T>
    T number() noexcept {
        const std::string_view taken = bytes(sizeof(T));
        if (taken.size() != sizeof(T)) return T();
        return static_cast<T>(get_little_endian<UnsignedOfSize<sizeof(T)>>(as_bytes(taken)));
    }
    std::string_view bytes(size_t size) noexcept {
        if (size > left_.size()) {
            require(false);
            return {};
        }
        const std::string_view taken = left_.substr(0, size);
        left_.remove_prefix(size);
        return taken;
    }
    template <size_t count>
    std::array<unsigned char, count> array() noexcept {
        std::array<unsigned char, count> value{};
        const std::string_view taken = bytes(count);
        if (taken.size() == count) memcpy(value.data(), taken.data(), count);
        return value;
    }
    // A text after its length in two bytes; a longer one than `max_bytes` makes the reader invalid.
    std::string_view text(size_t max_bytes) noexcept {
        const size_t size = number<uint16_t>();
        require(size <= max_bytes);
        return bytes(size);
    }
    std::string_view rest() noexcept { return bytes(left_.size()); }

    // Makes the reader invalid where a value is impossible; nothing is left then.
    void require(bool condition) noexcept {
        if (condition) return;
        is_valid_ = false;
        left_ = {};
    }
    // The next number can only be this one.
    template <class T>
    void expect(T value) noexcept {
        require(number<T>() == value);
    }
    size_t left() const noexcept { return left_.size(); }
    bool is_valid() const noexcept { return is_valid_; }
    bool is_complete() const noexcept { return is_valid_ && left_.empty(); } // valid, and every byte was read

  private:
    std::string_view left_;
    bool is_valid_ = true;
};

} // namespace muster
