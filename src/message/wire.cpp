// SPDX-License-Identifier: MIT
#include "message/wire.hpp"

#include <algorithm>

namespace muster {

namespace {
constexpr uint32_t message_magic = 0x4D54534D; // "MSTM"
constexpr uint8_t message_version = 1;
enum : uint8_t { has_trace = 1, has_wide_sizes = 2 };
constexpr size_t trace_bytes = 28;
constexpr uint32_t max_hops = 255;

bool is_traced(const muster_message_header &h) noexcept {
    return (h.trace_id[0] | h.trace_id[1] | h.span_id | h.trace_flags) != 0;
}
bool is_wide(const Message &message) noexcept {
    return message.payload_bytes() > UINT32_MAX;
}
} // namespace

size_t MessageHead::bytes(const Message &message) noexcept {
    return fixed_bytes + (is_traced(message.header) ? trace_bytes : 0) +
           message.frames().size() * (is_wide(message) ? 8 : 4);
}

void MessageHead::put(PlacedByteWriter &to, const Message &message) noexcept {
    const muster_message_header &h = message.header;
    const bool traced = is_traced(h), wide = is_wide(message);
    to.number(message_magic).number(message_version);
    to.number(static_cast<uint8_t>((traced ? has_trace : 0) | (wide ? has_wide_sizes : 0)));
    to.number(static_cast<uint16_t>(message.frames().size()));
    to.number(h.type).number(h.source).number(h.destination).number(h.target).number(h.target_version);
    to.number(std::min(h.hops, max_hops)).number(message.payload_bytes());
    if (traced) to.number(h.trace_id[0]).number(h.trace_id[1]).number(h.span_id).number(h.trace_flags);
    for (const Frame &frame : message.frames()) {
        if (wide)
            to.number(static_cast<uint64_t>(frame.bytes));
        else
            to.number(static_cast<uint32_t>(frame.bytes));
    }
}

size_t MessageHead::whole(const unsigned char *fixed, const char *&why) noexcept {
    const uint8_t flags = fixed[5];
    if (get_u32(fixed) != message_magic) {
        why = "no message begins here";
    } else if (fixed[4] != message_version) {
        why = "a message of an unknown version";
    } else if ((flags & ~(has_trace | has_wide_sizes)) != 0) {
        why = "a message with unknown flags";
    } else {
        return fixed_bytes + (flags & has_trace ? trace_bytes : 0) +
               size_t{get_u16(fixed + 6)} * (flags & has_wide_sizes ? 8 : 4);
    }
    return 0;
}

std::optional<MessageHead> MessageHead::get(std::string_view whole, uint64_t max_payload, const char *&why) {
    ByteReader from(whole);
    std::optional<MessageHead> head(std::in_place);
    muster_message_header &h = head->header;
    h.struct_size = sizeof h;
    from.expect(message_magic);
    from.expect(message_version);
    const auto flags = from.number<uint8_t>();
    const auto count = from.number<uint16_t>();
    h.type = from.number<uint32_t>();
    h.source = from.number<uint64_t>();
    h.destination = from.number<uint64_t>();
    h.target = from.number<uint64_t>();
    h.target_version = from.number<int64_t>();
    h.hops = from.number<uint32_t>();
    const auto payload = from.number<uint64_t>();
    if (flags & has_trace) {
        for (uint64_t &half : h.trace_id) half = from.number<uint64_t>();
        h.span_id = from.number<uint64_t>();
        h.trace_flags = from.number<uint32_t>();
    }
    if (payload > max_payload) {
        why = "a message larger than the limit";
        return std::nullopt;
    }
    head->sizes.reserve(count);
    uint64_t left = payload;
    for (uint16_t i = 0; i < count; i++) {
        const uint64_t size = flags & has_wide_sizes ? from.number<uint64_t>() : from.number<uint32_t>();
        from.require(size <= left);
        left -= std::min(size, left);
        head->sizes.push_back(size);
    }
    from.require(left == 0 && h.hops <= max_hops);
    if (from.is_complete()) return head;
    why = "frames with other sizes than the message";
    return std::nullopt;
}

// ---- the reader -----------------------------------------------------------------------------------------------------

size_t MessageReader::step(const unsigned char *data, size_t size) {
    if (!message_) return read_head(data, size);
    const size_t used = std::min(size, left_);
    if (used != 0) memcpy(to_, data, used);
    to_ += used, left_ -= used;
    next_frame();
    return used;
}

// Metadata that arrived whole is read in place.
size_t MessageReader::read_head(const unsigned char *data, size_t size) {
    const auto missing = [this](size_t wanted) { return wanted - std::min(wanted, partial_.size()); };
    if (partial_.empty() && size >= MessageHead::fixed_bytes) {
        const size_t whole = MessageHead::whole(data, why_);
        if (whole == 0) return 0;
        if (size >= whole) {
            begin({reinterpret_cast<const char *>(data), whole});
            return whole;
        }
    }
    size_t wanted = MessageHead::fixed_bytes;
    if (partial_.size() >= wanted) wanted = MessageHead::whole(as_bytes(partial_), why_);
    const size_t used = std::min(size, missing(wanted));
    partial_.append(reinterpret_cast<const char *>(data), used);
    if (partial_.size() < wanted) return used;
    if (wanted == MessageHead::fixed_bytes) {
        wanted = MessageHead::whole(as_bytes(partial_), why_);
        if (wanted == 0 || partial_.size() < wanted) return used;
    }
    const std::string whole = std::move(partial_);
    partial_ = std::string();
    begin(whole);
    return used;
}

void MessageReader::begin(std::string_view whole) {
    auto head = MessageHead::get(whole, max_payload_, why_);
    if (!head) return;
    head_ = std::move(*head);
    message_ = make_ref<Message>();
    message_->header = head_.header;
    frame_ = 0;
    left_ = 0;
    next_frame();
}

void MessageReader::next_frame() {
    while (left_ == 0 && frame_ < head_.sizes.size()) {
        left_ = head_.sizes[frame_];
        to_ = message_->add(left_);
        frame_++;
    }
}

} // namespace muster
