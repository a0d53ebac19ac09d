// SPDX-License-Identifier: MIT
#pragma once
// How records lie in the store: little-endian numbers, and text with its length in front.
#include <cstdint>
#include <string>
#include <string_view>

namespace muster {

class ByteWriter {
  public:
    explicit ByteWriter(uint8_t version) { number(version); }
    template <class T>
    ByteWriter &number(T value) {
        auto left = static_cast<uint64_t>(value);
        for (size_t i = 0; i < sizeof(T); i++, left >>= 8) bytes_.push_back(static_cast<char>(left & 0xff));
        return *this;
    }
    ByteWriter &text(std::string_view value) {
        number(static_cast<uint16_t>(value.size()));
        bytes_.append(value);
        return *this;
    }
    ByteWriter &raw(std::string_view value) {
        bytes_.append(value);
        return *this;
    }
    std::string take() { return std::move(bytes_); }

  private:
    std::string bytes_;
};

// Whoever has read everything asks once whether all was there.
class ByteReader {
  public:
    ByteReader(std::string_view bytes, uint8_t version) : left_(bytes) { good_ = number<uint8_t>() == version; }
    template <class T>
    T number() {
        uint64_t value = 0;
        if (left_.size() < sizeof(T)) return fail<T>();
        for (size_t i = sizeof(T); i-- != 0;) value = value << 8 | static_cast<unsigned char>(left_[i]);
        left_.remove_prefix(sizeof(T));
        return static_cast<T>(value);
    }
    std::string_view text(size_t most) {
        const size_t size = number<uint16_t>();
        return size > most ? fail<std::string_view>() : raw(size);
    }
    std::string_view raw(size_t size) {
        if (left_.size() < size) return fail<std::string_view>();
        const std::string_view found = left_.substr(0, size);
        left_.remove_prefix(size);
        return found;
    }
    void require(bool so) noexcept { good_ = good_ && so; }
    bool good() const noexcept { return good_; }
    bool ended() const noexcept { return good_ && left_.empty(); }

  private:
    template <class T>
    T fail() {
        good_ = false;
        left_ = {};
        return T();
    }
    std::string_view left_;
    bool good_ = true;
};

} // namespace muster
