// SPDX-License-Identifier: MIT
#include "transport/frame.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace muster {

// Checks a header: everything a peer can say about length is bounded here.
Status FrameReader::begin(const unsigned char *header) noexcept {
    if (over_) return complain("bytes after the goodbye");
    const size_t overhead = opener_ ? seal_overhead_bytes : 0;
    const size_t length = get_u32(header + 4);
    if (header[1] != 0 || header[2] != 0 || header[3] != 0) return complain("unknown flags in a frame");
    if (length < overhead) return complain("a sealed frame without its proof");
    const size_t size = length - overhead;
    bool fits = false;
    type_ = static_cast<FrameType>(header[0]);
    switch (type_) {
    case FrameType::data:
        fits = size >= 1 && size <= frame_data_max;
        break;
    case FrameType::heartbeat:
    case FrameType::finish:
    case FrameType::goodbye:
        fits = size == 0;
        break;
    case FrameType::credit:
        fits = size == 8;
        break;
    case FrameType::abort:
        fits = size >= 8 && size <= frame_control_max;
        break;
    default:
        return complain("a frame of unknown type");
    }
    if (!fits) return complain("a frame of impossible length");
    if (finished_ && (type_ == FrameType::data || type_ == FrameType::finish))
        return complain("data after the end of the data");
    if (type_ == FrameType::data) last_data_ = size;
    in_frame_ = true;
    have_ = 0;
    left_ = length;
    return MUSTER_OK;
}

Status FrameReader::dispatch(const unsigned char *payload, size_t size, FrameSink &sink) noexcept {
    switch (type_) {
    case FrameType::data:
        return sink.on_data(payload, size);
    case FrameType::heartbeat:
        return MUSTER_OK;
    case FrameType::credit:
        return sink.on_credit(get_u64(payload));
    case FrameType::finish:
        finished_ = true;
        return sink.on_finish();
    case FrameType::abort:
        return sink.on_abort(get_u64(payload), reinterpret_cast<const char *>(payload + 8), size - 8);
    case FrameType::goodbye:
        over_ = finished_ = true;
        return sink.on_goodbye();
    }
    return complain("a frame of unknown type");
}

// Gathers one sealed frame; when whole, opens it in place.
Status FrameReader::sealed_piece(const unsigned char *&data, size_t &size, FrameSink &sink) noexcept {
    const size_t whole = have_ + left_;
    if (sealed_room_ < whole) {
        const size_t room = std::max<size_t>(whole, std::min<size_t>(2 * sealed_room_, frame_data_max));
        auto *grown = new (std::nothrow) unsigned char[room];
        if (grown == nullptr) return MUSTER_E_NOMEM;
        if (have_ != 0) memcpy(grown, sealed_.get(), have_);
        sealed_.reset(grown);
        sealed_room_ = room;
    }
    const size_t k = std::min(size, left_);
    memcpy(sealed_.get() + have_, data, k);
    data += k, size -= k, have_ += k, left_ -= k;
    if (left_ != 0) return MUSTER_OK;
    in_frame_ = false;
    have_ = 0;
    if (!opener_->open(sealed_.get(), whole, header_)) return complain("a sealed frame that was changed on its way");
    return dispatch(sealed_.get() + seal_lead_bytes, whole - seal_overhead_bytes, sink);
}

Status FrameReader::feed(const unsigned char *data, size_t size, FrameSink &sink) noexcept {
    while (size != 0) {
        if (opener_ && !opener_->ready()) {
            if (!opener_->take_prefix(data, size)) return complain("a seal that cannot be opened");
            continue;
        }
        if (!in_frame_) {
            const size_t k = std::min(size, frame_header_bytes - have_);
            memcpy(header_ + have_, data, k);
            data += k, size -= k, have_ += k;
            if (have_ < frame_header_bytes) return MUSTER_OK;
            if (const Status status = begin(header_); status < 0) return status;
            if (left_ != 0) continue;
            in_frame_ = false;
            if (const Status status = dispatch(nullptr, 0, sink); status < 0) return status;
            continue;
        }
        Status status = MUSTER_OK;
        if (opener_) {
            status = sealed_piece(data, size, sink);
        } else if (type_ == FrameType::data) {
            const size_t k = std::min(size, left_);
            status = sink.on_data(data, k);
            data += k, size -= k;
            left_ -= k;
            if (left_ == 0) in_frame_ = false, have_ = 0;
        } else {
            const size_t k = std::min(size, left_);
            memcpy(control_ + have_, data, k);
            data += k, size -= k, have_ += k, left_ -= k;
            if (left_ == 0) {
                in_frame_ = false;
                status = dispatch(control_, std::exchange(have_, 0), sink);
            }
        }
        if (status < 0) return status;
    }
    return MUSTER_OK;
}

} // namespace muster
