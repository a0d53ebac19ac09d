// SPDX-License-Identifier: MIT
#include "message/values.hpp"

#include "base/bit_cast.hpp"
#include "base/codec.hpp"

#include <cfloat>
#include <cmath>

namespace muster {

namespace {

constexpr uint32_t values_magic = 0x3156'4D89; // 0x89 "MV1"
constexpr size_t head_bytes = 8;               // values_magic and the number of values; then their types

// Bytes of a value of fixed size; 8 for the length of a text; 0: no such type.
size_t width_of(char type) noexcept {
    switch (type) {
    case '1':
        return 1;
    case '2':
        return 2;
    case 'i':
    case '4':
    case 'f':
        return 4;
    case 'q':
    case '8':
    case 'd':
    case 's':
    case 'b':
    case 'p':
        return 8;
    default:
        return 0;
    }
}
bool has_bytes(char type) noexcept {
    return type == 's' || type == 'b';
}

bool fits(char type, const muster_value &value) noexcept {
    switch (type) {
    case 'i':
        return value.integer >= INT32_MIN && value.integer <= INT32_MAX;
    case '1':
        return value.integer >= 0 && value.integer <= UINT8_MAX;
    case '2':
        return value.integer >= 0 && value.integer <= UINT16_MAX;
    case '4':
        return value.integer >= 0 && value.integer <= UINT32_MAX;
    case 'f':
        return !std::isfinite(value.real) || std::fabs(value.real) <= FLT_MAX;
    default:
        return true;
    }
}

void put(PlacedByteWriter &to, char type, const muster_value &value) noexcept {
    switch (type) {
    case '1':
        to.number(static_cast<uint8_t>(value.integer));
        break;
    case '2':
        to.number(static_cast<uint16_t>(value.integer));
        break;
    case 'i':
    case '4':
        to.number(static_cast<uint32_t>(value.integer));
        break;
    case 'f':
        to.number(bit_cast<uint32_t>(static_cast<float>(value.real)));
        break;
    case 'd':
        to.number(bit_cast<uint64_t>(value.real));
        break;
    case 's':
    case 'b':
        to.number(value.bytes).bytes({static_cast<const char *>(value.data), value.bytes});
        break;
    default:
        to.number(value.integer);
    }
}

muster_value get(ByteReader &from, char type) noexcept {
    muster_value value{};
    switch (type) {
    case '1':
        value.integer = from.number<uint8_t>();
        break;
    case '2':
        value.integer = from.number<uint16_t>();
        break;
    case 'i':
        value.integer = from.number<int32_t>();
        break;
    case '4':
        value.integer = from.number<uint32_t>();
        break;
    case 'f':
        value.real = static_cast<double>(bit_cast<float>(from.number<uint32_t>()));
        break;
    case 'd':
        value.real = bit_cast<double>(from.number<uint64_t>());
        break;
    case 's':
    case 'b': {
        value.bytes = from.number<uint64_t>();
        from.require(value.bytes <= from.left());
        value.data = from.bytes(from.is_valid() ? value.bytes : 0).data();
        break;
    }
    default:
        value.integer = from.number<int64_t>();
    }
    return value;
}

} // namespace

Result<void> add_values(Message &message, std::string_view picture, const muster_value *values) {
    uint64_t bytes = head_bytes + picture.size();
    for (size_t i = 0; i < picture.size(); i++) {
        const char type = picture[i];
        const muster_value &value = values[i];
        if (width_of(type) == 0)
            return Error::make(MUSTER_E_ARG, "picture: character %zu is 0x%02x: no type of a value", i,
                               static_cast<unsigned char>(type));
        if (!fits(type, value))
            return Error::make(MUSTER_E_ARG, "value %zu is %lld (%g): out of range for '%c'", i,
                               static_cast<long long>(value.integer), value.real, type);
        if (has_bytes(type) && value.data == nullptr && value.bytes != 0)
            return Error::make(MUSTER_E_ARG, "value %zu has %llu bytes, but no data", i,
                               static_cast<unsigned long long>(value.bytes));
        if (has_bytes(type) && value.bytes > Message::max_bytes)
            return Error::make(MUSTER_E_LIMIT, "value %zu has %llu bytes", i,
                               static_cast<unsigned long long>(value.bytes));
        bytes += width_of(type) + (has_bytes(type) ? value.bytes : 0);
        if (!message.has_room(bytes)) return Error::from_status(MUSTER_E_LIMIT);
    }
    if (!message.has_room(bytes)) return Error::from_status(MUSTER_E_LIMIT);
    PlacedByteWriter to(reinterpret_cast<char *>(message.add(bytes)));
    to.number(values_magic).number(static_cast<uint32_t>(picture.size())).bytes(picture);
    for (size_t i = 0; i < picture.size(); i++) put(to, picture[i], values[i]);
    if (picture.find('p') != std::string_view::npos) message.has_pointers = true;
    return {};
}

Result<void> get_values(const Frame &frame, bool may_have_pointers, const char *picture, char *out_picture,
                        muster_value *out_values, uint32_t capacity, uint32_t &out_count) {
    ByteReader from(frame.data, frame.bytes);
    const bool is_format = from.number<uint32_t>() == values_magic;
    const auto count = from.number<uint32_t>();
    const std::string_view types = from.bytes(count);
    if (!is_format || !from.is_valid()) return Error::make(MUSTER_E_PROTOCOL, "this is no format frame");
    const size_t wanted = picture == nullptr ? count : strlen(picture);
    for (size_t i = 0; i < types.size(); i++) {
        if (width_of(types[i]) == 0 || (types[i] == 'p' && !may_have_pointers))
            return Error::make(MUSTER_E_PROTOCOL, "value %zu has the type 0x%02x, which cannot arrive here", i,
                               static_cast<unsigned char>(types[i]));
        if (picture != nullptr && i < wanted && picture[i] != types[i])
            return Error::make(MUSTER_E_PROTOCOL, "value %zu is '%c', expected was '%c'", i, types[i], picture[i]);
    }
    if (wanted != count)
        return Error::make(MUSTER_E_PROTOCOL, "the frame has %u values, expected were %zu", count, wanted);
    ByteReader check = from; // all of it, before anything is returned
    for (const char type : types) get(check, type);
    if (!check.is_complete()) return Error::make(MUSTER_E_PROTOCOL, "the frame does not end with its last value");
    out_count = count;
    if (out_values == nullptr && out_picture == nullptr) return {};
    if (capacity < count) return Error::make(MUSTER_E_LIMIT, "%u values, room for %u", count, capacity);
    for (size_t i = 0; i < types.size(); i++) {
        if (out_picture != nullptr) out_picture[i] = types[i];
        const muster_value value = get(from, types[i]);
        if (out_values != nullptr) out_values[i] = value;
    }
    if (out_picture != nullptr) out_picture[count] = '\0';
    return {};
}

} // namespace muster
