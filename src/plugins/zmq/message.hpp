// SPDX-License-Identifier: MIT
#pragma once
// RAII for zmq_msg_t: reference-counted memory, owned or lent. libzmq's sockets are not used.
#include "wire.hpp"

#include <utility>
#include <zmq.h>

namespace star {

// Moves its content, never copies it.
class Message {
  public:
    Message() noexcept { zmq_msg_init(&message_); }
    ~Message() { zmq_msg_close(&message_); }
    Message(const Message &) = delete;
    Message &operator=(const Message &) = delete;
    void take(Message &other) noexcept { zmq_msg_move(&message_, &other.message_); }
    // These return false without memory.
    bool make(size_t size) noexcept { return zmq_msg_close(&message_) == 0 && zmq_msg_init_size(&message_, size) == 0; }
    bool lend(void *data, size_t size, zmq_free_fn *free, void *hint) noexcept {
        return zmq_msg_close(&message_) == 0 && zmq_msg_init_data(&message_, data, size, free, hint) == 0;
    }
    bool make(const Head &head, const void *payload, size_t size) noexcept {
        if (!make(head_bytes + size)) return false;
        put_head(data(), head);
        if (size != 0) memcpy(data() + head_bytes, payload, size);
        return true;
    }
    unsigned char *data() noexcept { return static_cast<unsigned char *>(zmq_msg_data(&message_)); }
    size_t size() const noexcept { return zmq_msg_size(&message_); }
    bool more() const noexcept { return zmq_msg_more(&message_) != 0; }
    zmq_msg_t *get() noexcept { return &message_; }

  private:
    zmq_msg_t message_;
};

} // namespace star
