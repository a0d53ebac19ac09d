// SPDX-License-Identifier: MIT
#include "transport/frame.hpp"

#include "transport/handshake.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace muster {

namespace {
struct LengthRange {
    size_t min, max;
};

LengthRange payload_range(FrameType type, size_t data_max) noexcept {
    switch (type) {
    case FrameType::data:
        return {1, data_max};
    case FrameType::credit:
        return {8, 8};
    case FrameType::abort:
        return {8, frame_control_max};
    case FrameType::open:
        return {10, 10 + service_max_bytes + hello_max_bytes};
    case FrameType::accept:
        return {8, 8 + hello_max_bytes};
    case FrameType::refuse:
        return {4, 4 + frame_text_max};
    case FrameType::pair_offer:
        return {0, frame_control_max};
    case FrameType::pair_answer:
        return {4, 4};
    case FrameType::query_routes:
        return {0, service_max_bytes};
    case FrameType::routes:
        return {0, routes_max_bytes};
    case FrameType::heartbeat:
    case FrameType::finish:
    case FrameType::goodbye:
    case FrameType::closed:
        break;
    }
    return {0, 0};
}
} // namespace

size_t put_frame(unsigned char *to, FrameType type, uint32_t stream, const iovec *spans, size_t size,
                 Sealer *sealer) noexcept {
    put_frame_header(to, type, size + (sealer != nullptr ? seal_overhead_bytes : 0), stream);
    unsigned char *at = to + frame_header_bytes + (sealer != nullptr ? seal_lead_bytes : 0);
    for (size_t left = size; left != 0; spans++) {
        const size_t k = std::min(left, spans->iov_len);
        memcpy(at, spans->iov_base, k);
        at += k, left -= k;
    }
    if (sealer != nullptr) sealer->seal(to, size);
    return frame_bytes(size, sealer != nullptr);
}

// Checks a header: every length that a peer can announce is bounded here.
Status FrameReader::begin() noexcept {
    const size_t overhead = opener_ ? seal_overhead_bytes : 0;
    const size_t length = get_u32(header_ + 4);
    type_ = static_cast<FrameType>(header_[0]);
    stream_ = get_u32(header_) >> 8;
    if (!rules_.has_streams && stream_ != 0) return complain("unknown flags in a frame");
    if (type_ < FrameType::data || type_ > rules_.last_type) return complain("a frame of unknown type");
    if (length < overhead) return complain("a sealed frame without its proof");
    const auto [min, max] = payload_range(type_, rules_.data_max);
    if (length - overhead < min || length - overhead > max) return complain("a frame of impossible length");
    if (type_ == FrameType::data) last_data_ = length - overhead;
    in_frame_ = true;
    have_ = 0;
    left_ = length;
    return MUSTER_OK;
}

// Gathers one frame; when it is complete, opens it in place and passes it on.
Status FrameReader::gather(const unsigned char *&data, size_t &size, FrameSink &sink) noexcept {
    const size_t whole = have_ + left_;
    unsigned char *to = small_;
    if (whole > sizeof small_) {
        if (capacity_ < whole) { // at the beginning of the frame: the buffer is empty
            const size_t wanted = std::max(whole, std::min(2 * capacity_, rules_.data_max));
            buffer_.reset(new (std::nothrow) unsigned char[wanted]);
            capacity_ = buffer_ ? wanted : 0;
            if (!buffer_) return MUSTER_E_NOMEM;
        }
        to = buffer_.get();
    }
    const size_t k = std::min(size, left_);
    if (k != 0) memcpy(to + have_, data, k);
    data += k, size -= k, have_ += k, left_ -= k;
    if (left_ != 0) return MUSTER_OK;
    in_frame_ = false;
    have_ = 0;
    size_t bytes = whole;
    if (opener_) {
        if (!opener_->open(to, whole, header_)) return complain("a sealed frame that was changed on its way");
        to += seal_lead_bytes;
        bytes -= seal_overhead_bytes;
    }
    const Status status =
        type_ == FrameType::data ? sink.on_data(stream_, to, bytes) : sink.on_frame(type_, stream_, to, bytes);
    if (!rules_.keeps_buffer) {
        buffer_.reset();
        capacity_ = 0;
    }
    return status;
}

Status FrameReader::feed(const unsigned char *data, size_t size, FrameSink &sink) noexcept {
    while (size != 0) {
        if (opener_ && !opener_->ready()) {
            if (!opener_->take_prefix(data, size)) return complain("a seal that cannot be opened");
            continue;
        }
        Status status = MUSTER_OK;
        if (!in_frame_) {
            const size_t k = std::min(size, frame_header_bytes - have_);
            memcpy(header_ + have_, data, k);
            data += k, size -= k, have_ += k;
            if (have_ < frame_header_bytes) return MUSTER_OK;
            status = begin();
            if (status == MUSTER_OK && left_ == 0) status = gather(data, size, sink);
        } else if (!opener_ && type_ == FrameType::data) {
            const size_t k = std::min(size, left_);
            status = sink.on_data(stream_, data, k);
            data += k, size -= k;
            left_ -= k;
            if (left_ == 0) in_frame_ = false, have_ = 0;
        } else {
            status = gather(data, size, sink);
        }
        if (status < 0) return status;
    }
    return MUSTER_OK;
}

} // namespace muster
