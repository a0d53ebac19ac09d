// SPDX-License-Identifier: MIT
#pragma once
// Dealers and routers: sockets that send and receive messages over streams of any transport.
#include "base/back_off.hpp"
#include "queue/queue.hpp"
#include "socket/peer.hpp"
#include "transport/dial.hpp"
#include "transport/listener.hpp"

#include <muster/socket.h>

#include <deque>
#include <optional>
#include <unordered_map>
#include <unordered_set>

namespace muster {

// An address that a socket connects to. Under the lock of the socket; it remains until the socket is destroyed.
struct Connection {
    Connection(std::string to, uint64_t number) : address(std::move(to)), id(number) {}
    const std::string address;
    const uint64_t id;               // the tag of its dial
    int64_t retry_at_ns = INT64_MAX; // no dial is in progress, and the next one begins then
    BackOff back_off{5'000'000, 1'000'000'000};
};

// Threads. The loop thread takes the entries of the socket's own queue: connections, readiness, ends. It writes the
// messages that did not leave at once. Any thread sends: it writes to the stream itself if nothing waits before it. One
// receiving thread at a time has the role of the receiver and reads the streams; the others wait for the inbox or the
// role. If there is one peer, the receiver waits in the read of its stream; otherwise it sleeps until the loop thread
// notifies that a peer is readable.
// Locks: lock_, then SocketPeer::out_lock. None is held while a thread waits.
class Socket final : public Object, private Source {
  public:
    struct Settings {
        PeerHello hello;
        uint32_t max_peers;
        uint64_t max_message_bytes, max_queued_bytes;
        uint32_t max_queued_messages, max_unrouted_messages;
        Ref<Queue> queue; // of the host, or none
        uint64_t tag;
        uint64_t max_loaned_bytes = 0; // 0: it does not loan
    };
    static Result<Ref<Socket>> make(Context &context, Settings settings);

    const Settings settings;
    Context &context() const noexcept { return *context_; }
    bool forked() const noexcept { return context_->forked(); }

    Result<std::string> bind(std::string_view address, size_t capacity);
    Result<void> connect(std::string_view address);
    Status wait_peers(uint32_t count, Deadline &deadline, uint32_t &out_count) noexcept;
    // The caller keeps the message unless the result is OK. `next_hop`: the address of a peer, by default the
    // destination of the message.
    Result<void> send(Message &message, Deadline &deadline, uint64_t next_hop = 0);
    bool has_route(uint64_t address) noexcept; // to a connected peer
    Status receive(Deadline &deadline, Ref<Message> &out);
    // Adds a frame in memory that peers on this host read in place. AGAIN: all of it is in use.
    Result<void> loan_frame(Message &message, size_t bytes, unsigned char *&out_data);
    Status next_event(Deadline &deadline, muster_socket_event &out) noexcept;
    void stats(muster_socket_stats &out) noexcept;
    void cancel() noexcept;
    // Ends all connections; also the status of a wait that cannot be made on this thread.
    Status close(Deadline &deadline);
    void host_release() noexcept;

  private:
    // Results of route(), push() and keep_unrouted(), besides failures: AGAIN, a queue of messages is full;
    // no_slot, the queue of the host is.
    static constexpr Status no_slot = MUSTER_E_BUSY;
    // Waits until look(), called with the lock held, returns something other than AGAIN.
    template <class Look>
    Status wait_for(Signal &signal, Deadline &deadline, Look &&look) noexcept {
        bool first = true;
        uint32_t cancels = 0;
        return context_->wait(signal, deadline, lock_, [&]() -> Status {
            if (std::exchange(first, false)) cancels = cancels_;
            if (const Status status = look(); status != MUSTER_AGAIN) return status;
            if (ended_) return MUSTER_E_CLOSED;
            return cancels != cancels_ ? MUSTER_E_CANCELED : MUSTER_AGAIN;
        });
    }
    Socket(Context &context, Settings what, Ref<Queue> own, Ref<LoanPool> loans);
    ~Socket() override;
    void write_metrics(MetricsWriter &writer);
    MetricsNode<Socket, &Socket::write_metrics> metrics_{*this};
    Object &owner() noexcept override { return *this; }
    // socket.cpp
    void enter() noexcept;
    void turn() noexcept;
    void handle(muster_completion &entry, const muster_error &error) noexcept;
    void accept_all(Listener &listener) noexcept;
    void connected(Ref<Stream> stream, Connection *connection) noexcept;
    Result<Ref<SocketPeer>> add_peer(Ref<Stream> &stream, const PeerHello &hello, Connection *connection) noexcept;
    void dial(Connection &connection) noexcept;
    void dial_later(Connection &connection) noexcept;
    void dial_due() noexcept;
    void end() noexcept;
    void end_at_loop() noexcept;
    // peers.cpp
    Ref<SocketPeer> find_peer(uint64_t id) noexcept;
    void add_route(SocketPeer &peer);
    void take_unrouted(SocketPeer &peer) noexcept;
    void remove_routes(SocketPeer &peer) noexcept;
    void learn(SocketPeer &peer, uint64_t source);
    void end_output(SocketPeer &peer, uint32_t event_kind, const char *why) noexcept;
    void end_input(SocketPeer &peer) noexcept;
    void undelivered(Outgoing &&outgoing, Status why) noexcept;
    void report(uint32_t kind, const PeerHello &peer, uint64_t undelivered, const char *text) noexcept;
    // send.cpp
    Status route(Message &message, uint64_t next_hop, std::optional<uint32_t> &cancels, Error &why);
    Status keep_unrouted(Message &message, uint64_t next_hop, Error &why);
    Status push(SocketPeer &peer, Message &message);
    bool reserve_slot(Outgoing &outgoing) noexcept;
    void flush(SocketPeer &peer) noexcept;
    void made_room() noexcept;
    // receive.cpp
    Status read_as_receiver(Deadline &deadline);
    Status read_ready_peers();
    Status read_one_peer(SocketPeer &peer, Deadline &deadline);
    Status read_once(SocketPeer &peer, Deadline &deadline);
    Status end_of_messages(SocketPeer &peer) noexcept;
    void take_all(SocketPeer &peer);
    bool add_readable(SocketPeer &peer) noexcept;
    void mark_readable(SocketPeer &peer) noexcept;
    void look_for_end(SocketPeer &peer) noexcept;
    void arm_later() noexcept;
    void arm_due() noexcept;
    void interrupt_receiver() noexcept;
    void readiness(uint32_t events) noexcept;

    const Ref<Context> context_;
    const Ref<Queue> own_;      // what the loop thread takes
    const Ref<LoanPool> loans_; // or none
    Signal in_signal_, room_signal_, event_signal_;

    std::mutex lock_; // guards what follows
    bool closing_ = false, ended_ = false;
    uint32_t cancels_ = 0;
    uint64_t next_id_ = 1;
    std::unordered_map<uint64_t, Ref<SocketPeer>> peers_; // by id; until everything was read
    std::vector<Ref<SocketPeer>> live_;                   // that can be written to; a dealer's turn
    size_t turn_at_ = 0;
    std::unordered_map<uint64_t, std::vector<Ref<SocketPeer>>> routes_; // by address; the last one is used
    std::unordered_set<uint64_t> lost_;                                 // addresses of peers that were connected
    std::deque<uint64_t> lost_order_;
    std::list<Outgoing> unrouted_;
    uint64_t unrouted_bytes_ = 0;
    std::unordered_map<uint64_t, Ref<Listener>> listeners_;
    std::unordered_map<uint64_t, std::unique_ptr<Connection>> connections_;
    std::deque<muster_socket_event> events_;
    muster_socket_stats stats_{};
    // receiving
    std::deque<Ref<Message>> inbox_;
    // Peers whose streams are to be read; each has a reference. A peer is in this list, or the watch of its stream is
    // armed: a read without bytes arms it, and its event puts the peer here.
    List<SocketPeer> readable_;
    bool has_receiver_ = false;      // a thread has the role
    bool is_looking_ = false;        // it is the loop thread, which does not wait
    uint32_t waiting_receivers_ = 0; // threads that wait for the role or the inbox
    uint32_t receiver_cancels_ = 0;  // the value of cancels_ when the receiver began
    Ref<SocketPeer> direct_;         // whose read the receiver waits in
    uint64_t direct_reads_ = 0, armed_reads_ = 0;
    bool is_arming_ = false;  // arm_due() follows
    bool wants_room_ = false; // SENDABLE is to be raised

    std::vector<unsigned char> in_buffer_; // these two: of the receiver
    std::vector<Ref<Message>> taken_;

    PostedTask<Socket, &Socket::enter> enter_{*this};
    PostedTask<Socket, &Socket::turn> turn_{*this};
    PostedTask<Socket, &Socket::end_at_loop> end_{*this};
    PostedTask<Socket, &Socket::interrupt_receiver> interrupt_{*this};
    PostedTask<Socket, &Socket::dial_due> redial_soon_{*this};
    PostedTask<Socket, &Socket::arm_later> arm_soon_{*this};
    Timer<Socket, &Socket::dial_due> redial_{*this};
    Timer<Socket, &Socket::arm_due> arm_{*this};
    Timer<Socket, &Socket::interrupt_receiver> interrupt_again_{*this};
    Closing<Socket, &Socket::end_at_loop> closing_node_{*this};
};

inline Socket *unwrap(muster_socket *handle) noexcept {
    return reinterpret_cast<Socket *>(handle);
}
inline const Socket *unwrap(const muster_socket *handle) noexcept {
    return reinterpret_cast<const Socket *>(handle);
}
inline muster_socket *wrap(Socket *object) noexcept {
    return reinterpret_cast<muster_socket *>(object);
}

} // namespace muster
