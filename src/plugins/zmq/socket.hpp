// SPDX-License-Identifier: MIT
#pragma once
// libzmq's messages and sockets, held so that they are closed.
#include "wire.hpp"

#include <utility>
#include <zmq.h>

namespace star {

// A message; what it holds moves, and is not copied.
class Message {
  public:
    Message() noexcept { zmq_msg_init(&message_); }
    ~Message() { zmq_msg_close(&message_); }
    Message(const Message &) = delete;
    Message &operator=(const Message &) = delete;
    void take(Message &other) noexcept { zmq_msg_move(&message_, &other.message_); }
    // False: no memory.
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

// One user at a time.
class Socket {
  public:
    Socket() = default;
    Socket(void *context, int type) noexcept : socket_(zmq_socket(context, type)) {
        set(ZMQ_LINGER, 0);
        set(ZMQ_SNDHWM, 0);
        set(ZMQ_RCVHWM, 0);
        set(ZMQ_IPV6, 1);
    }
    ~Socket() { close(); }
    Socket(Socket &&other) noexcept : socket_(std::exchange(other.socket_, nullptr)) {}
    Socket &operator=(Socket &&other) noexcept {
        std::swap(socket_, other.socket_);
        return *this;
    }
    void close() noexcept {
        if (void *const socket = std::exchange(socket_, nullptr)) zmq_close(socket);
    }
    explicit operator bool() const noexcept { return socket_ != nullptr; }
    void *get() const noexcept { return socket_; }
    bool set(int option, int value) noexcept { return zmq_setsockopt(socket_, option, &value, sizeof value) == 0; }
    bool set(int option, const std::string &text) noexcept {
        return zmq_setsockopt(socket_, option, text.c_str(), text.size()) == 0;
    }
    int number(int option) const noexcept {
        int value = 0;
        size_t size = sizeof value;
        return zmq_getsockopt(socket_, option, &value, &size) == 0 ? value : -1;
    }
    int fd() const noexcept { return number(ZMQ_FD); }
    bool readable() const noexcept { return (number(ZMQ_EVENTS) & ZMQ_POLLIN) != 0; }
    // False: errno tells; the message is untouched.
    bool send(Message &message, bool more = false) noexcept {
        return zmq_msg_send(message.get(), socket_, ZMQ_DONTWAIT | (more ? ZMQ_SNDMORE : 0)) >= 0;
    }
    bool receive(Message &message) noexcept { return zmq_msg_recv(message.get(), socket_, ZMQ_DONTWAIT) >= 0; }

  private:
    void *socket_ = nullptr;
};

// What happens to a socket's connections. The name is an endpoint of its own within the context. libzmq's threads wait
// until somebody takes what they tell, for ever when nobody can: so it is told to stop before the reader goes. Ends
// before the socket that is watched.
class Monitor {
  public:
    struct Event {
        uint16_t what = 0;
        uint32_t value = 0;
        std::string address;
    };
    Monitor() = default;
    ~Monitor() { close(); }
    Monitor(const Monitor &) = delete;
    Monitor &operator=(const Monitor &) = delete;
    bool open(void *context, Socket &watched, const std::string &name) {
        socket_ = Socket(context, ZMQ_PAIR);
        if (!socket_ || zmq_socket_monitor(watched.get(), name.c_str(), ZMQ_EVENT_ALL) != 0) return false;
        watched_ = watched.get();
        if (zmq_connect(socket_.get(), name.c_str()) == 0) return true;
        close();
        return false;
    }
    void close() noexcept {
        if (void *const watched = std::exchange(watched_, nullptr)) zmq_socket_monitor(watched, nullptr, 0);
        socket_.close();
    }
    int fd() const noexcept { return socket_.fd(); }
    bool next(Event &event) {
        Message first, second;
        if (!socket_ || !socket_.receive(first)) return false;
        if (first.size() >= 6) {
            memcpy(&event.what, first.data(), 2);
            memcpy(&event.value, first.data() + 2, 4);
        }
        if (first.more() && socket_.receive(second))
            event.address.assign(reinterpret_cast<char *>(second.data()), second.size());
        return true;
    }

  private:
    void *watched_ = nullptr;
    Socket socket_;
};

} // namespace star
