// SPDX-License-Identifier: MIT
#pragma once
// The control connection of two endpoints: a socket on which they wake each other and notice each other's death. MPI
// has no descriptor to sleep on, and without fault tolerance no way to notice that a rank is gone.
//
// It begins with a Hello in each direction, followed by control messages of 16 bytes. A control message that could not
// be written yet is replaced by a later one of its kind, which bounds what waits. Loop thread only.
#include "node.hpp"

#include <muster/plugin.h>

#include <string>
#include <vector>

namespace mpi {

struct Hello {
    uint64_t mark;
    unsigned char token[16]; // of the reader's RankInfo
    int32_t rank;            // of the writer, as the rest
    uint32_t slot;           // tag of messages to it
    uint64_t link;           // the link's number there, in the head of each message to it
    uint64_t reserved[2];
};
static_assert(sizeof(Hello) == 56);
constexpr uint64_t hello_mark = 0x4D75'7374'6572'4231;

enum class Control : uint32_t {
    sleeping,      // the sender does not poll any more; value: the number of messages it has received
    wake,          // poll; value: the number of messages that the sender has sent
    ping,          // a transfer makes no progress: poll for a while, then answer
    pong,          // the answer
    goodbye,       // the sender leaves in order; value: the number of messages it has sent
    not_listening, // the sender's context does not listen any more: the next dial needs a new connection
    count
};

class ControlSocket {
  public:
    struct Owner {
        virtual void on_hello(const Hello &hello) = 0;
        virtual void on_control(Control word, uint64_t value) = 0;
        virtual void on_closed(int os_errno) = 0; // once; close() follows

      protected:
        ~Owner() = default;
    };

    ControlSocket(const muster_host *host, Owner &owner) : host_(host), owner_(owner) {}
    ~ControlSocket() { close(); }
    ControlSocket(const ControlSocket &) = delete;
    ControlSocket &operator=(const ControlSocket &) = delete;

    muster_status connect(std::vector<SocketName> names, muster_error *error);
    muster_status adopt(int fd); // owns the descriptor in any case
    void send_hello(const Hello &hello);
    void send(Control word, uint64_t value);
    bool is_flushed() const { return out_.empty() && due_ == 0; }
    void receive(); // what has arrived, now
    void close();

  private:
    muster_status try_next(muster_error *error);
    muster_status watch();
    static void ready(void *self, uint32_t events);
    void read();
    void write();

    const muster_host *host_;
    Owner &owner_;
    std::vector<SocketName> names_; // still to be tried
    int fd_ = -1;
    bool connecting_ = false, write_wanted_ = false;
    muster_watch *watch_ = nullptr;
    std::string out_, hello_;
    uint32_t due_ = 0; // bits of control messages that wait
    uint64_t values_[static_cast<int>(Control::count)] = {};
    unsigned char in_[sizeof(Hello)];
    size_t have_ = 0;
    bool hello_received_ = false;
    unsigned life_ = 0; // changes with close(), which the owner may call from inside a callback
};

// A listening socket. Connections of other users are closed.
class ControlListener {
  public:
    using OnAccept = void (*)(void *self, int fd);
    ControlListener(const muster_host *host, OnAccept on_accept, void *self)
        : host_(host), on_accept_(on_accept), self_(self) {}
    ~ControlListener() { close(); }
    ControlListener(const ControlListener &) = delete;
    ControlListener &operator=(const ControlListener &) = delete;
    muster_status open(const SocketName &name, muster_error *error); // an abstract Unix name
    muster_status open(int bound_socket, muster_error *error);       // owns the descriptor in any case
    void close();

  private:
    static void ready(void *self, uint32_t events);
    void pause();
    const muster_host *host_;
    OnAccept on_accept_;
    void *self_;
    int fd_ = -1;
    muster_watch *watch_ = nullptr;
    muster_timer *pause_ = nullptr;
};

// The kernel knows the user of a Unix peer. Also true for TCP, where the token authenticates the peer.
bool same_user(int fd);
// TCP: no delay for small messages, and a vanished host is noticed within 30 s.
void tune_tcp(int fd);

} // namespace mpi
