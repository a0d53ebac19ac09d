// SPDX-License-Identifier: MIT
#pragma once
// A link over a socket. The host's own threads make the system calls while they can: a write on an idle link is sent by
// the writer, a read that waits sleeps on the socket itself. The loop takes over when nobody is inside.
//
// Who receives: the loop, while `interest_in_` is set. A thread that comes to wait takes that interest away (one system
// call) and keeps it away as long as threads come again within a few milliseconds; then idle_tick() gives it back. A
// watched link stays with the host, whose queue holds the socket; the loop looks after it at each heartbeat.
#include "transport/link.hpp"

namespace muster {

// Any thread unless a member says otherwise.
class SocketLink final : public Link, private Watch {
  public:
    SocketLink(Hub &hub, Ref<Duplex> duplex, int host_side, const Agreement &terms, uint64_t own_window,
               std::string peer, Fd fd);
    ~SocketLink() override;

    // Carrier
    Moved send_now(const void *data, size_t size) noexcept override;
    Moved send(const void *data, size_t size, Deadline &deadline, const Interrupted &interrupted) noexcept override;
    Moved receive(void *data, size_t capacity, Deadline &deadline, const Interrupted &interrupted,
                  bool spin) noexcept override;
    void interrupt() noexcept override;
    void engage() noexcept override;
    bool watch(Queue &queue, Source &source) noexcept override;
    void unwatch(Queue &queue, Source &source) noexcept override;
    uint32_t fd_ready(uint32_t epoll_events) noexcept override;
    // Hub
    void tick(int64_t now, bool late) noexcept override;
    bool idle_tick() noexcept override;

  private:
    // Link
    ssize_t wire_send(const iovec *spans, int count) noexcept override;
    bool wire_any_thread() const noexcept override { return true; }
    void wire_start() noexcept override;
    void wire_finish() noexcept override;
    void wire_read_soon() noexcept override;
    void wire_shut() noexcept override;
    void wire_close() noexcept override;
    // Watch
    void on_events(uint32_t epoll_events) noexcept override;
    Object &watch_owner() noexcept override { return *this; }

    // Without asking the loop to go on where the socket is full: the caller waits, or leaves the rest to the pipe.
    ssize_t send_spans(const iovec *spans, int count) noexcept;
    ssize_t send_bytes(const void *data, size_t size) noexcept;
    template <class Call>
    ssize_t after_send_call(Call &&call) noexcept;
    void count_io() noexcept;
    void set_interest(bool in, bool out, bool again = false) noexcept;
    void read_some(unsigned char *staging, size_t size, bool to_the_end) noexcept;
    enum class Pulled { nothing, some, enough };
    Pulled pull(unsigned char *staging, size_t size, size_t most, bool to_the_end) noexcept; // rx lock held
    bool took(ssize_t n, int why) noexcept; // what to make of an answer of recv(): true: bytes to be read

    // --- socket_link_direct.cpp: threads of the host ---
    class Target;
    struct Plan;
    bool claim(bool wishes) noexcept; // takes the rx lock, and receiving, away from the loop
    void leave_rx() noexcept;
    void stay_near() noexcept;
    int receive_once(Target &target) noexcept; // 1: bytes came, 0: none, -1: over
    bool spin(Target &target) noexcept;
    bool sleep_in(Deadline &deadline, const Interrupted &interrupted) noexcept;
    bool sleep_out(bool reads, bool starved, Deadline &deadline, const Interrupted &interrupted) noexcept;
    void give_bell_in() noexcept;
    bool streaming(size_t size) noexcept;
    size_t send_frames(const unsigned char *data, size_t size, size_t &rest) noexcept;
    void keep_rest(const unsigned char *data, size_t size) noexcept;
    enum class Room { yes, no, elsewhere };
    Room await_room(bool starved, Deadline &deadline, const Interrupted &interrupted) noexcept;

    Fd fd_;                // open until wire_close()
    const bool may_block_; // the context has a thread of its own: a host's thread may sleep on the socket
    std::mutex interest_lock_;
    bool interest_in_ = false, interest_out_ = false, registered_ = false; // under interest_lock_
    std::atomic<bool> watched_{false};                                     // the host's queue holds the socket
    std::atomic<bool> near_{false};                                        // the hub calls idle_tick()
    std::atomic<uint32_t> visits_{0};                          // relaxed: how often threads of the host came
    std::atomic<bool> waiting_in_{false}, waiting_out_{false}; // seq_cst: set before a sleeper looks a last time
    std::atomic<int> event_in_{-1}, event_out_{-1};            // of the bells, for interrupt(); made at the first sleep
    std::mutex watch_lock_;                                    // guards the two
    Queue *queue_ = nullptr;
    Source *source_ = nullptr;

    // loop thread
    uint32_t visits_seen_ = 0;
    // rx lock
    Bell bell_in_;         // its epoll holds the socket
    bool drained_ = false; // the last answer of the socket left nothing in it: what comes raises an edge
    bool hung_up_ = false; // the end has come, behind what is still there
    bool vain_ = false;    // the last look before a sleep found nothing
    uint32_t spin_turns_ = 0, spin_pause_ = 0, spins_lost_ = 0, sleeps_ = 0;
    // tx lock
    Bell bell_out_;
    // the writing host
    int64_t last_small_ns_ = 0;
    uint32_t small_run_ = 0;
    std::atomic<bool> answered_{false}; // relaxed: the host has read since its last write
};

} // namespace muster
