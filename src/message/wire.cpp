// SPDX-License-Identifier: MIT
#include "message/wire.hpp"

#include <algorithm>

namespace muster {

namespace {
constexpr uint32_t message_magic = 0x4D54534D; // "MSTM"
constexpr uint8_t message_version = 1;
enum : uint8_t { has_trace = 1, has_wide_sizes = 2, has_references = 4, known_message_flags = 7 };
constexpr size_t trace_bytes = 28, reference_bytes = 8;
constexpr uint64_t is_reference = uint64_t{1} << 63; // in the size of a frame
constexpr uint32_t max_hops = 255;
constexpr size_t references_at = 46; // of their number
constexpr size_t max_kept_sizes = 64;

bool is_traced(const muster_message_header &h) noexcept {
    return (h.trace_id[0] | h.trace_id[1] | h.span_id | h.trace_flags) != 0;
}
bool is_wide(const Message &message) noexcept {
    return message.payload_bytes() > UINT32_MAX;
}
} // namespace

size_t MessageHead::bytes(const Message &message, const LoanReferences &loans) noexcept {
    const size_t references = loans.size();
    return fixed_bytes + (is_traced(message.header) ? trace_bytes : 0) +
           message.frames().size() * (is_wide(message) || references != 0 ? 8 : 4) + references * reference_bytes;
}

void MessageHead::put(PlacedByteWriter &out, const Message &message, const LoanReferences &loans) noexcept {
    const muster_message_header &h = message.header;
    const size_t references = loans.size();
    const bool traced = is_traced(h), wide = is_wide(message) || references != 0;
    PlacedByteWriter to = out; // stays in a register
    to.number(message_magic).number(message_version);
    to.number(static_cast<uint8_t>((traced ? has_trace : 0) | (wide ? has_wide_sizes : 0) |
                                   (references != 0 ? has_references : 0)));
    to.number(static_cast<uint16_t>(message.frames().size()));
    to.number(h.type).number(h.source).number(h.destination).number(h.target).number(h.target_version);
    to.number(static_cast<uint16_t>(std::min(h.hops, max_hops))).number(static_cast<uint16_t>(references));
    to.number(message.payload_bytes());
    if (traced) to.number(h.trace_id[0]).number(h.trace_id[1]).number(h.span_id).number(h.trace_flags);
    for (size_t i = 0; i < message.frames().size(); i++) {
        const uint64_t bytes = message.frames()[i].bytes;
        if (wide)
            to.number(references != 0 && loans.find(i) != nullptr ? bytes | is_reference : bytes);
        else
            to.number(static_cast<uint32_t>(bytes));
    }
    for (size_t i = 0; i < references; i++) to.number(loans[i].slot).number(loans[i].sheet).number(loans[i].generation);
    out = to;
}

size_t MessageHead::whole(const unsigned char *fixed, const char *&why) noexcept {
    const uint8_t flags = fixed[5];
    if (get_u32(fixed) != message_magic) {
        why = "no message begins here";
    } else if (fixed[4] != message_version) {
        why = "a message of an unknown version";
    } else if ((flags & ~known_message_flags) != 0) {
        why = "a message with unknown flags";
    } else {
        return fixed_bytes + (flags & has_trace ? trace_bytes : 0) +
               size_t{get_u16(fixed + 6)} * (flags & has_wide_sizes ? 8 : 4) +
               (flags & has_references ? get_u16(fixed + references_at) * reference_bytes : 0);
    }
    return 0;
}

bool MessageHead::get(std::string_view whole, uint64_t max_payload, const char *&why) {
    ByteReader from(whole);
    muster_message_header h{};
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
    h.hops = from.number<uint16_t>();
    const auto references = from.number<uint16_t>();
    from.require((references != 0) == ((flags & has_references) != 0));
    from.require(references == 0 || (references <= LoanReferences::max && (flags & has_wide_sizes) != 0));
    const auto payload = from.number<uint64_t>();
    if (flags & has_trace) {
        for (uint64_t &half : h.trace_id) half = from.number<uint64_t>();
        h.span_id = from.number<uint64_t>();
        h.trace_flags = from.number<uint32_t>();
    }
    if (payload > max_payload) {
        why = "a message larger than the limit";
        return false;
    }
    if (count <= max_kept_sizes && sizes.capacity() > max_kept_sizes) sizes = {};
    sizes.clear();
    sizes.reserve(count);
    loans.clear();
    uint64_t left = payload;
    for (uint16_t i = 0; i < count; i++) {
        uint64_t size = flags & has_wide_sizes ? from.number<uint64_t>() : from.number<uint32_t>();
        if (references != 0 && (size & is_reference) != 0 && !loans.is_full()) {
            size &= ~is_reference;
            loans.add(i, {});
        }
        from.require(size <= left);
        left -= std::min(size, left);
        sizes.push_back(size);
    }
    from.require(left == 0 && h.hops <= max_hops && loans.size() == references);
    for (size_t i = 0; i < loans.size(); i++) {
        loans[i].slot = from.number<uint16_t>();
        loans[i].sheet = from.number<uint16_t>();
        loans[i].generation = from.number<uint32_t>();
    }
    header = h;
    if (from.is_complete()) return true;
    why = "frames with other sizes than the message";
    return false;
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
    if (!head_.get(whole, max_payload_, why_)) return;
    message_ = make_ref<Message>();
    message_->header = head_.header;
    frame_ = 0;
    left_ = 0;
    next_frame();
}

// The next frame is a reference: it is added without bytes of the stream. False: it cannot be resolved.
bool MessageReader::add_loan() {
    Ref<FrameMemory> memory;
    const unsigned char *data = nullptr;
    const size_t bytes = head_.sizes[frame_];
    const Status status = loan_source_ == nullptr
                              ? MUSTER_E_PROTOCOL
                              : loan_source_->resolve(*head_.loans.find(frame_), bytes, memory, data);
    is_malformed_ = status == MUSTER_E_PROTOCOL;
    if (status == MUSTER_OK)
        message_->add(data, bytes, std::move(memory));
    else if (status == MUSTER_E_STALE)
        why_ = "a loaned frame that its sender has given up";
    else
        why_ = is_malformed_ ? "a reference to a missing frame" : "the memory of a loaned frame cannot be mapped";
    return status == MUSTER_OK;
}

void MessageReader::next_frame() {
    while (left_ == 0 && frame_ < head_.sizes.size()) {
        if (head_.loans.size() != 0 && head_.loans.find(frame_) != nullptr) {
            if (!add_loan()) return;
            frame_++;
            continue;
        }
        left_ = head_.sizes[frame_];
        to_ = message_->add(left_);
        frame_++;
    }
}

} // namespace muster
