// SPDX-License-Identifier: MIT
#include "base/boundary.hpp"
#include "base/config.hpp"
#include "message/values.hpp"
#include "message/wire.hpp"
#include "queue/queue.hpp"

using namespace muster;

namespace {

// Fields of an address: group 32 bits, id 20, kind 12. A wildcard has all bits of its field; a kind is never 0, so that
// no address is.
constexpr uint64_t any_group = UINT32_MAX, any_id = 0xFFFFF, any_kind = 0xFFF;

bool pack_field(int64_t value, int64_t min, uint64_t any, uint64_t &out) noexcept {
    if (value == MUSTER_MESSAGE_ANY) {
        out = any;
        return true;
    }
    out = static_cast<uint64_t>(value);
    return value >= min && out < any;
}

Status pack(int64_t group, int64_t id, int64_t kind, uint64_t *out) noexcept {
    uint64_t g = 0, i = 0, k = 0;
    if (out == nullptr || !pack_field(group, 0, any_group, g) || !pack_field(id, 0, any_id, i) ||
        !pack_field(kind, 1, any_kind, k))
        return MUSTER_E_ARG;
    *out = g << 32 | i << 12 | k;
    return MUSTER_OK;
}

void give(const Frame &frame, muster_buffer &out) noexcept {
    out.data = frame.bytes == 0 ? nullptr : frame.data;
    out.bytes = frame.bytes;
}

template <const Frame *(Message::*Move)() noexcept>
Status move_cursor(muster_message *message, muster_buffer *out) noexcept {
    if (message == nullptr || out == nullptr) return MUSTER_E_ARG;
    const Frame *const frame = (unwrap(message)->*Move)();
    if (frame == nullptr) return MUSTER_E_NOT_FOUND;
    give(*frame, *out);
    return MUSTER_OK;
}

} // namespace

extern "C" {

muster_status muster_message_create(muster_message **out_message) {
    if (out_message == nullptr) return MUSTER_E_ARG;
    *out_message = nullptr;
    return boundary([&] {
        *out_message = wrap(make_ref<Message>().detach());
        return Status{MUSTER_OK};
    });
}

muster_status muster_message_copy(const muster_message *message, muster_message **out_message) {
    if (out_message == nullptr) return MUSTER_E_ARG;
    *out_message = nullptr;
    if (message == nullptr) return MUSTER_E_ARG;
    return boundary([&] {
        *out_message = wrap(unwrap(message)->copy().detach());
        return Status{MUSTER_OK};
    });
}

muster_status muster_message_get_header(const muster_message *message, muster_message_header *out_header) {
    if (message == nullptr || out_header == nullptr || out_header->struct_size < sizeof(muster_message_header))
        return MUSTER_E_ARG;
    *out_header = unwrap(message)->header;
    out_header->struct_size = sizeof(muster_message_header);
    return MUSTER_OK;
}

muster_status muster_message_set_header(muster_message *message, const muster_message_header *header) {
    if (message == nullptr || header == nullptr) return MUSTER_E_ARG;
    muster_message_header given;
    if (auto done = read_config(header, given, "muster_message_header"); !done) return done.status();
    given.hops = unwrap(message)->header.hops;
    unwrap(message)->header = given;
    return MUSTER_OK;
}

muster_status muster_message_swap_addresses(muster_message *message) {
    if (message == nullptr) return MUSTER_E_ARG;
    std::swap(unwrap(message)->header.source, unwrap(message)->header.destination);
    return MUSTER_OK;
}

muster_status muster_message_add_frame(muster_message *message, const void *data, size_t bytes) {
    if (message == nullptr || (data == nullptr && bytes != 0)) return MUSTER_E_ARG;
    return boundary([&] {
        if (!unwrap(message)->has_room(bytes)) return Status{MUSTER_E_LIMIT};
        unwrap(message)->add({static_cast<const char *>(data), bytes});
        return Status{MUSTER_OK};
    });
}

muster_status muster_message_lend_frame(muster_message *message, const void *data, size_t bytes, muster_queue *queue,
                                        uint64_t tag) {
    if (message == nullptr || data == nullptr || bytes == 0 || queue == nullptr) return MUSTER_E_ARG;
    if (unwrap(queue)->context().forked()) return MUSTER_E_FORKED;
    return boundary([&] {
        if (!unwrap(message)->has_room(bytes)) return Status{MUSTER_E_LIMIT};
        unwrap(message)->reserve_frame(); // after the loan nothing may fail: its release would be taken for the end
        auto memory = FrameMemory::lend(bytes, *unwrap(queue), tag);
        if (!memory) return memory.error().status;
        unwrap(message)->add(data, bytes, std::move(*memory));
        return Status{MUSTER_OK};
    });
}

muster_status muster_message_take_frame(muster_message *message, void *data, size_t bytes, muster_free_fn release) {
    if (message == nullptr || data == nullptr || bytes == 0 || release == nullptr) return MUSTER_E_ARG;
    return boundary([&] {
        if (!unwrap(message)->has_room(bytes)) return Status{MUSTER_E_LIMIT};
        unwrap(message)->reserve_frame(); // as above
        unwrap(message)->add(data, bytes, FrameMemory::take(data, release));
        return Status{MUSTER_OK};
    });
}

uint32_t muster_message_frame_count(const muster_message *message) {
    return message == nullptr ? 0 : static_cast<uint32_t>(unwrap(message)->frames().size());
}

muster_status muster_message_frame(const muster_message *message, uint32_t index, muster_buffer *out_frame) {
    if (message == nullptr || out_frame == nullptr) return MUSTER_E_ARG;
    if (index >= unwrap(message)->frames().size()) return MUSTER_E_NOT_FOUND;
    give(unwrap(message)->frames()[index], *out_frame);
    return MUSTER_OK;
}

muster_status muster_message_first(muster_message *message, muster_buffer *out_frame) {
    return move_cursor<&Message::first>(message, out_frame);
}

muster_status muster_message_last(muster_message *message, muster_buffer *out_frame) {
    return move_cursor<&Message::last>(message, out_frame);
}

muster_status muster_message_next(muster_message *message, muster_buffer *out_frame) {
    return move_cursor<&Message::next>(message, out_frame);
}

muster_status muster_message_bytes(const muster_message *message, uint64_t *out_payload, uint64_t *out_total) {
    if (message == nullptr) return MUSTER_E_ARG;
    const uint64_t payload = unwrap(message)->payload_bytes();
    if (out_payload != nullptr) *out_payload = payload;
    if (out_total != nullptr) *out_total = payload + MessageHead::bytes(*unwrap(message));
    return MUSTER_OK;
}

muster_status muster_message_to_buffers(muster_message *message, muster_buffer *out_buffers, uint32_t capacity,
                                        uint32_t *out_count) {
    if (message == nullptr || out_count == nullptr) return MUSTER_E_ARG;
    return boundary([&] {
        Message &self = *unwrap(message);
        *out_count = static_cast<uint32_t>(self.frames().size()) + 1;
        if (self.has_pointers) return Status{MUSTER_E_UNSUPPORTED};
        if (out_buffers == nullptr) return Status{MUSTER_OK};
        if (capacity < *out_count) return Status{MUSTER_E_LIMIT};
        self.metadata.resize(MessageHead::bytes(self));
        PlacedByteWriter to(self.metadata.data());
        MessageHead::put(to, self);
        *out_buffers++ = {self.metadata.data(), self.metadata.size()};
        for (const Frame &frame : self.frames()) give(frame, *out_buffers++);
        return Status{MUSTER_OK};
    });
}

muster_status muster_message_from_buffers(const muster_buffer *buffers, uint32_t count, muster_message **out_message,
                                          muster_error *error) {
    if (out_message != nullptr) *out_message = nullptr;
    return boundary(error, [&]() -> Result<void> {
        if (out_message == nullptr) return Error::make(MUSTER_E_ARG, "no place for the message");
        if (buffers == nullptr || count == 0) return Error::make(MUSTER_E_ARG, "no buffers");
        for (uint32_t i = 0; i < count; i++)
            if (buffers[i].data == nullptr && buffers[i].bytes != 0)
                return Error::make(MUSTER_E_ARG, "buffer %u has %llu bytes, but no data", i,
                                   static_cast<unsigned long long>(buffers[i].bytes));
        const char *why = "metadata that are too short";
        const std::string_view whole(static_cast<const char *>(buffers[0].data), buffers[0].bytes);
        if (whole.size() < MessageHead::fixed_bytes || MessageHead::whole(as_bytes(whole), why) == 0)
            return Error::make(MUSTER_E_PROTOCOL, "buffer 0: %s", why);
        MessageHead head;
        bool is_good = head.get(whole, Message::max_bytes, why);
        if (is_good && head.loans.size() != 0) {
            why = "a reference to a frame in memory of a socket";
            is_good = false;
        }
        if (!is_good) return Error::make(MUSTER_E_PROTOCOL, "buffer 0: %s", why);
        if (head.sizes.size() != count - 1)
            return Error::make(MUSTER_E_PROTOCOL, "the metadata have %zu frames, there are %u", head.sizes.size(),
                               count - 1);
        for (uint32_t i = 1; i < count; i++)
            if (buffers[i].bytes != head.sizes[i - 1])
                return Error::make(MUSTER_E_PROTOCOL, "frame %u has %llu bytes, the metadata say %llu", i - 1,
                                   static_cast<unsigned long long>(buffers[i].bytes),
                                   static_cast<unsigned long long>(head.sizes[i - 1]));
        auto made = make_ref<Message>();
        made->header = head.header;
        for (uint32_t i = 1; i < count; i++)
            made->add(std::string_view(static_cast<const char *>(buffers[i].data), buffers[i].bytes));
        *out_message = wrap(made.detach());
        return {};
    });
}

muster_status muster_message_add_values(muster_message *message, const char *picture, const muster_value *values,
                                        uint32_t count, muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        if (message == nullptr) return Error::make(MUSTER_E_ARG, "no message");
        if (picture == nullptr) return Error::make(MUSTER_E_ARG, "no picture");
        if (values == nullptr && count != 0) return Error::make(MUSTER_E_ARG, "no values");
        if (strnlen(picture, size_t{count} + 1) != count)
            return Error::make(MUSTER_E_ARG, "the picture has not %u characters", count);
        return add_values(*unwrap(message), {picture, count}, values);
    });
}

muster_status muster_message_get_values(const muster_message *message, uint32_t index, const char *picture,
                                        char *out_picture, muster_value *out_values, uint32_t capacity,
                                        uint32_t *out_count, muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        if (message == nullptr) return Error::make(MUSTER_E_ARG, "no message");
        if (out_count == nullptr) return Error::make(MUSTER_E_ARG, "no place for the count");
        *out_count = 0;
        const Message &self = *unwrap(message);
        if (index >= self.frames().size())
            return Error::make(MUSTER_E_NOT_FOUND, "frame %u of %zu", index, self.frames().size());
        return get_values(self.frames()[index], self.has_pointers, picture, out_picture, out_values, capacity,
                          *out_count);
    });
}

void muster_message_release(muster_message *message) {
    if (message != nullptr) unwrap(message)->release();
}

muster_status muster_message_address(int64_t group, int64_t id, int64_t kind, uint64_t *out_address) {
    return pack(group, id, kind, out_address);
}

muster_status muster_message_address_parts(uint64_t address, int64_t *out_group, int64_t *out_id, int64_t *out_kind) {
    const auto give = [](int64_t *out, uint64_t value, uint64_t any) {
        if (out != nullptr) *out = value == any ? int64_t{MUSTER_MESSAGE_ANY} : static_cast<int64_t>(value);
    };
    give(out_group, address >> 32, any_group);
    give(out_id, address >> 12 & any_id, any_id);
    give(out_kind, address & any_kind, any_kind);
    return MUSTER_OK;
}

int32_t muster_message_address_matches(uint64_t pattern, uint64_t address) {
    const auto matches = [&](int shift, uint64_t any) {
        const uint64_t wanted = pattern >> shift & any;
        return wanted == any || wanted == (address >> shift & any);
    };
    return matches(32, any_group) && matches(12, any_id) && matches(0, any_kind) ? 1 : 0;
}

muster_status muster_message_address_singa(int32_t group, int32_t id_or_proc, int32_t type, uint64_t *out_address) {
    const auto fits = [](int32_t value, int32_t max) { return value >= -1 && value <= max; };
    if (!fits(group, 32767) || !fits(id_or_proc, 254) || !fits(type, 126)) return MUSTER_E_ARG;
    return pack(group, id_or_proc, type == -1 ? int64_t{MUSTER_MESSAGE_ANY} : int64_t{type} + 1, out_address);
}

uint64_t muster_message_target(uint32_t entity, uint32_t part) {
    return uint64_t{entity} << 32 | part;
}

} // extern "C"
