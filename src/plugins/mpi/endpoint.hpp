// SPDX-License-Identifier: MIT
#pragma once
// The endpoint of one context: its links to endpoints of other ranks, their transfers, and when it polls and sleeps.
//
// A message is one MPI message: 16 bytes of head, then the library's bytes. Its tag is the slot of the receiving
// endpoint; the head has the number of the link there. Loop thread only, except post_wake().
//
// An active endpoint polls MPI: from tasks that post themselves, a few in a row, then from a descriptor that is
// readable until the endpoint sleeps, so that the loop serves its other descriptors. (In a context without a thread it
// polls from the descriptor alone, since the host needs its thread back.)
#include "base/time.hpp"
#include "buffers.hpp"
#include "control_socket.hpp"
#include "node.hpp"

#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace mpi {

using muster::now_ns;

constexpr uint64_t message_bytes = 256 * 1024 - 64; // with the header, the size of the library's staging buffer
constexpr uint64_t credit_bytes = 4 * 1024 * 1024;

struct Head {
    uint32_t mark;
    uint32_t kind;
    uint64_t link; // the receiver's number
};
enum : uint32_t { head_mark = 0x4D'75'4D'31, kind_data = 1, kind_credit = 2 };
constexpr size_t head_bytes = sizeof(Head);

class Endpoint;

struct Link final : ControlSocket::Owner {
    enum class State {
        dialing,  // the peer's hello has not arrived
        accepted, // likewise, of a connection that this side has accepted
        open,     //
        draining, // the peer is gone; messages that it had sent are still received
        lost      // reported to the library, which will forget it
    };
    Link(Endpoint &endpoint, uint64_t id);
    void on_hello(const Hello &hello) override;
    void on_control(Control word, uint64_t value) override;
    void on_closed(int os_errno) override;
    bool alive() const { return !said_goodbye && (state == State::open || state == State::dialing); }

    Endpoint &endpoint;
    const uint64_t id;
    ControlSocket control;
    State state = State::dialing;
    int rank = -1;
    int listener = -1;      // the peer's listener that was dialed; -1: none
    bool hello_due = false; // to be sent when the node is ready
    uint32_t slot = 0;
    uint64_t remote_link = 0;
    bool known = false; // the library knows the number
    bool full = false;  // send() has returned MUSTER_AGAIN
    std::vector<uint64_t> requests;
    // Counts of messages. An endpoint that goes to sleep reports how many it has received; a sender that has sent more
    // wakes it at once, and a sender whose peer counts as asleep sends `wake` after each message. No endpoint sleeps
    // while it has received fewer messages than a `wake` has announced. So every message is received, although nothing
    // else orders the polls of the two sides.
    uint64_t sent = 0, received = 0, announced = 0;
    bool peer_asleep = true;    // by its last report
    bool sleep_reported = true; // for the peer, this side counts as asleep
    bool pinged = false;        // without a pong yet
    bool pong_due = false;
    bool said_goodbye = false;
    uint64_t goodbye_at = 0; // messages that it had sent by then
    int64_t draining_since = 0, received_at = 0;
    uint64_t credit_due = 0;
    std::deque<Sending> sending;
};

class Endpoint {
  public:
    Endpoint(const muster_host *host, Node &node);
    ~Endpoint();
    Endpoint(const Endpoint &) = delete;
    Endpoint &operator=(const Endpoint &) = delete;

    // The operations of the table.
    muster_status start(muster_endpoint *endpoint, muster_error *error);
    void stop();
    muster_status publish(const std::string &authority, std::string &out_authority, muster_error *error);
    void withdraw();
    muster_status resolve(const std::string &authority, uint64_t request, uint64_t &out_peer, muster_error *error);
    muster_status send(uint64_t peer, const muster_span *spans, uint32_t count);
    muster_status send_buffer(uint64_t peer, void *segment, uint64_t offset, uint64_t size);
    void forget(uint64_t peer);
    muster_status poll_once();

    void post_wake(); // any thread: the state of the node has changed

  private:
    friend struct Link;
    struct Request {
        std::string authority;
        uint64_t number;
    };
    struct Receiving {
        MPI_Request request;
        Buffer buffer;
        size_t bytes;
        bool done, missing; // MPI has completed it: with its bytes, or without
    };

    // endpoint.cpp
    void receive_controls();
    muster_status parse(const std::string &authority, int &rank, int &listener, muster_error *error) const;
    muster_status call(int rank, int listener, uint64_t request, muster_error *error);
    static void accepted(void *self, int fd);
    Hello hello_to(const Link &link) const;
    void answer(Link &link, muster_status status, const char *text);
    void answer_hello(Link &link);
    void opened(Link &link);
    void became_ready();
    void lose(Link &link, const std::string &why);
    void drop(Link &link); // forgotten
    void lose_all(const std::string &why);
    Link *find(uint64_t id);
    Link *dialled(int rank, int listener);

    // transfer.cpp
    muster_status room(uint64_t peer, Link *&link);
    bool begin_send(Link &link, uint32_t kind, const muster_span *spans, uint32_t count);
    bool begin_send(Link &link, Sending sending, size_t offset, size_t size);
    void give(const Buffer &buffer);
    bool finish_sends();
    bool finish_sends(Link &link);
    void mark_missing(const Receiving &one) const;
    bool is_missing(const Receiving &one) const;
    bool test(Receiving &one);
    bool take_messages();
    bool finish_receives();
    void deliver();
    void deliver_one(const Buffer &buffer, size_t size);
    void lose_rank(int rank);
    void abandon(Link &link);

    // progress.cpp
    static void spun(void *self, uint32_t events);
    static void boot_due(void *self);
    static void wake_posted(void *self);
    void wake();
    void begin_polling();
    bool turn(int polls);
    bool poll();
    void after_poll(bool moved);
    void report_room();
    void answer_pings();
    bool busy(const Link &link) const;
    void sleep(int64_t now);
    void finish_draining(int64_t now);
    void boot_later(int64_t now);
    void give_up(const std::string &why);

    const muster_host *host_;
    Node &node_;
    muster_endpoint *endpoint_ = nullptr;
    bool started_ = false, failed_ = false, was_ready_ = false, may_use_mpi_ = true;
    int slot_ = -1;
    // Listening
    int listener_ = -1;
    unsigned listener_users_ = 0;
    ControlListener local_listener_, remote_listener_;
    // Links
    std::unordered_map<uint64_t, std::unique_ptr<Link>> links_;
    std::vector<std::unique_ptr<Link>> dropped_; // they may still be on the stack of a caller
    std::vector<Request> waiting_;               // for the node to get ready
    // Transfers
    Buffers &buffers_ = Buffers::all();
    std::unordered_map<int, std::deque<Receiving>> receiving_; // by rank: MPI keeps their order
    std::vector<int> receiving_from_;                          // ranks whose queue is not empty
    size_t sends_ = 0;                                         // in progress
    uint64_t missing_mark_ = 0;                                // random: see mark_missing()
    // Sleep
    bool awake_ = false, pong_due_ = false, full_due_ = false;
    int spin_fd_ = -1;
    muster_watch *spin_watch_ = nullptr;
    muster_timer *boot_timer_ = nullptr;
    int64_t boot_wait_ns_ = 0;
    int64_t last_ = 0, slept_at_ = 0, spin_ns_ = 0, max_spin_ns_ = 0;
    int64_t seen_ = 0; // the last look at the clock
    uint32_t turns_since_look_ = 0;
};

int64_t spin_for(const Node &node); // the longest spell
uint64_t new_link_id();

} // namespace mpi
