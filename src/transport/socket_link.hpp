// SPDX-License-Identifier: MIT
#pragma once
// A link over a socket. The host's own threads make the system calls while they can: a write on an idle link is sent by
// the writer, a read that waits sleeps on the socket itself. The loop takes over when nobody is inside.
#include "transport/link.hpp"

namespace muster {

// Any thread unless a member says otherwise.
class SocketLink final : public Link, private Pollable {
  public:
    SocketLink(Hub &hub, Ref<Duplex> duplex, int host_side, const Agreement &terms, uint64_t own_window,
               std::string peer, Fd fd);

  private:
    // Link
    ssize_t wire_send(const iovec *spans, int count) noexcept override;
    bool wire_any_thread() const noexcept override { return true; }
    void wire_start() noexcept override;
    void wire_finish() noexcept override;
    void wire_read_soon() noexcept override;
    void wire_shut() noexcept override;
    void wire_close() noexcept override;
    // Pollable
    void on_events(uint32_t epoll_events) noexcept override;
    Object &pollable_object() noexcept override { return *this; }

    void count_io() noexcept;
    void set_interest(bool in, bool out, bool again = false) noexcept;
    void want_out(bool on) noexcept;
    void read_some(unsigned char *staging, size_t size) noexcept;
    bool pull(unsigned char *staging, size_t size) noexcept; // rx lock held

    Fd fd_; // open until wire_close()
    std::mutex interest_lock_;
    bool interest_in_ = false, interest_out_ = false, registered_ = false;
};

} // namespace muster
