// SPDX-License-Identifier: MIT
#include "cluster/member/control.hpp"

#include "base/codec.hpp"

#include <algorithm>
#include <cstring>

namespace muster {

namespace {

constexpr size_t max_waiting = 1 << 20;

} // namespace

std::string encode(const ControlMessage &message) {
    const std::string_view text = std::string_view(message.text).substr(0, control_text_max);
    const std::string_view address = std::string_view(message.address).substr(0, control_address_max);
    std::string bytes;
    bytes.reserve(4 + control_head_bytes + text.size() + address.size());
    ByteWriter(bytes)
        .number(static_cast<uint32_t>(control_head_bytes + text.size() + address.size()))
        .number(message.kind)
        .number(message.member)
        .number(message.status)
        .number(message.number)
        .text(text)
        .bytes(address);
    return bytes;
}

std::optional<ControlMessage> decode_control(std::string_view body) {
    ByteReader reader(body);
    ControlMessage message;
    message.kind = reader.number<uint8_t>();
    message.member = reader.number<uint32_t>();
    message.status = reader.number<int32_t>();
    message.number = reader.number<uint64_t>();
    message.text = reader.text(control_text_max);
    reader.require(reader.left() <= control_address_max);
    message.address = reader.rest();
    if (!reader.is_valid()) return std::nullopt;
    return message;
}

Error error_in(const ControlMessage &message) noexcept {
    return Error::make(message.status < 0 ? message.status : MUSTER_E_PEER, "%.200s", message.text.c_str());
}

ControlLink::~ControlLink() {
    stream_.unwatch();
    Deadline once(0);
    stream_->close(once); // accepted bytes are still sent
}

Status ControlLink::watch(Queue &queue, uint64_t tag) noexcept {
    stream_.unwatch();
    return stream_.watch(MUSTER_STREAM_READABLE | MUSTER_STREAM_WRITABLE, queue, tag);
}

bool ControlLink::send(const ControlMessage &message) {
    if (over_) return false;
    out_ += encode(message);
    return flush();
}

bool ControlLink::flush() {
    while (!over_ && sent_ < out_.size()) {
        size_t moved = 0;
        const Status status = stream_.write(out_.data() + sent_, out_.size() - sent_, moved);
        sent_ += moved;
        if (status == MUSTER_AGAIN) break;
        over_ = status != MUSTER_OK;
    }
    if (sent_ == out_.size()) {
        out_.clear();
        sent_ = 0;
    } else if (sent_ > max_waiting / 2) {
        out_.erase(0, sent_);
        sent_ = 0;
    }
    if (out_.size() - sent_ > max_waiting) {
        stream_->abort(0, "it does not read its messages");
        over_ = true;
    }
    return !over_;
}

Error ControlLink::next(ControlMessage &out) {
    for (;;) {
        if (in_.size() >= 4) {
            const size_t size = get_u32(as_bytes(in_));
            const std::string_view body = std::string_view(in_).substr(4);
            if (size < control_head_bytes || size > control_head_bytes + control_text_max + control_address_max)
                return Error::make(MUSTER_E_PROTOCOL, "a message of %zu bytes", size);
            if (body.size() >= size) {
                auto message = decode_control(body.substr(0, size));
                if (!message) return Error::make(MUSTER_E_PROTOCOL, "a malformed message");
                in_.erase(0, 4 + size);
                out = std::move(*message);
                return {};
            }
        }
        char piece[4096];
        size_t moved = 0;
        const Status status = stream_.read(piece, sizeof piece, moved);
        in_.append(piece, moved);
        if (moved == 0 && status != MUSTER_OK) return why(status);
    }
}

Error ControlLink::why(Status status) const noexcept {
    Error error;
    if (status == MUSTER_AGAIN) {
        error.status = MUSTER_AGAIN;
        return error;
    }
    muster_error given{};
    if (stream_->reason(nullptr, &given) < 0) static_cast<muster_error &>(error) = given;
    if (error.status >= 0) error = Error::from_status(status == MUSTER_E_END ? MUSTER_E_PEER : status);
    return error;
}

} // namespace muster
