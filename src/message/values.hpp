// SPDX-License-Identifier: MIT
#pragma once
// Format frames: values with their types.
#include "message/message.hpp"

#include <string_view>

namespace muster {

// Adds the frame of these values; as many as the picture has characters.
Result<void> add_values(Message &message, std::string_view picture, const muster_value *values);

// Reads a format frame; see muster_message_get_values(). E_LIMIT: `capacity` is too small, and `out_count` is set.
Result<void> get_values(const Frame &frame, bool may_have_pointers, const char *picture, char *out_picture,
                        muster_value *out_values, uint32_t capacity, uint32_t &out_count);

} // namespace muster
