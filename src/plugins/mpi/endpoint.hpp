// SPDX-License-Identifier: MIT
#pragma once
// The endpoint of one context: its links to endpoints of other ranks, what is under way on them, and when it sleeps.
//
// A message is one MPI message: 16 bytes of head, then what the library gave. Its tag is the receiving endpoint's slot,
// the head names the link there. Everything is loop thread only, except look_soon().
//
// While something is going on the endpoint polls MPI. It does so from tasks that post themselves, a few at a time, and
// then from a descriptor that is readable until it sleeps, so that the loop's other descriptors have their turn. (A
// context without a thread polls from the descriptor alone: its host wants its own thread back.)
#include "base/time.hpp"
#include "bell.hpp"
#include "buffers.hpp"
#include "node.hpp"

#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace mpi {

using muster::now_ns;

constexpr uint64_t message_bytes = 256 * 1024 - 64; // with our head it fits what the library stages at a time
constexpr uint64_t credit_bytes = 4 * 1024 * 1024;

struct Head {
    uint32_t mark;
    uint32_t kind;
    uint64_t link; // the receiver's number
};
enum : uint32_t { head_mark = 0x4D'75'4D'31, kind_data = 1, kind_credit = 2 };
constexpr size_t head_bytes = sizeof(Head);

class Endpoint;

struct Link final : Bell::Owner {
    enum class State {
        calling, // dialled, not greeted back yet
        visited, // somebody came, and has not said who it is
        open,    //
        ebbing,  // the peer is gone; what it had sent is still taken in
        lost     // told to the library, which will forget it
    };
    Link(Endpoint &endpoint, uint64_t id);
    void greeted(const Greeting &greeting) override;
    void heard(Word word, uint64_t value) override;
    void hung_up(int os_errno) override;
    bool alive() const { return !said_goodbye && (state == State::open || state == State::calling); }

    Endpoint &endpoint;
    const uint64_t id;
    Bell bell;
    State state = State::calling;
    int rank = -1;
    int door = -1;             // that was dialled, and leads to others; -1: none
    bool greeting_due = false; // when the node is ready
    uint32_t slot = 0;
    uint64_t remote_link = 0;
    bool known = false; // the library knows its number
    bool full = false;  // send has answered MUSTER_AGAIN
    std::vector<uint64_t> questions;
    // Counts of messages. A sleeper tells how many it has received, a sender who finds that less than it has sent rings
    // at once; a sender that believes the peer asleep rings after each message. Nobody sleeps while fewer came in than
    // it was told of by a ring. So every message is received although no two looks are ordered by anything else.
    uint64_t sent = 0, received = 0, announced = 0;
    bool peer_asleep = true; // as far as we know
    bool sleep_told = true;  // the peer believes us asleep
    bool pinged = false;     // and not answered
    bool pong_due = false;
    bool said_goodbye = false;
    uint64_t goodbye_at = 0; // messages it had sent when it left
    int64_t ebb_began = 0, heard_at = 0;
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
    muster_status resolve(const std::string &authority, uint64_t question, uint64_t &out_peer, muster_error *error);
    muster_status send(uint64_t peer, const muster_span *spans, uint32_t count);
    muster_status send_buffer(uint64_t peer, void *segment, uint64_t offset, uint64_t size);
    void forget(uint64_t peer);
    muster_status look();

    void look_soon(); // any thread: something about the node has changed

  private:
    friend struct Link;
    struct Question {
        std::string authority;
        uint64_t number;
    };
    struct Receiving {
        MPI_Request request;
        Buffer buffer;
        size_t bytes;
        bool done;
    };

    // endpoint.cpp
    void look_at_bells();
    muster_status parse(const std::string &authority, int &rank, int &door, muster_error *error) const;
    muster_status call(int rank, int door, uint64_t question, muster_error *error);
    static void visited(void *self, int fd);
    Greeting greeting_to(const Link &link) const;
    void answer(Link &link, muster_status status, const char *text);
    void greet_back(Link &link);
    void opened(Link &link);
    void became_ready();
    void lose(Link &link, const std::string &why);
    void drop(Link &link); // forgotten
    void lose_all(const std::string &why);
    Link *find(uint64_t id);
    Link *dialled(int rank, int door);

    // transfer.cpp
    muster_status room(uint64_t peer, Link *&link);
    bool begin_send(Link &link, uint32_t kind, const muster_span *spans, uint32_t count);
    bool begin_send(Link &link, Sending sending, size_t offset, size_t size);
    void give(const Buffer &buffer);
    bool finish_sends();
    bool finish_sends(Link &link);
    bool take_messages();
    bool finish_receives();
    void deliver();
    void deliver_one(const Buffer &buffer, size_t size);
    void abandon(Link &link);

    // progress.cpp
    static void posted(void *self);
    static void spun(void *self, uint32_t events);
    static void boot_due(void *self);
    static void came_by(void *self);
    void wake();
    void begin_polling();
    bool turn(int polls);
    bool poll();
    void after_poll(bool moved);
    void tell_room();
    void answer_pings();
    bool busy(const Link &link) const;
    void sleep(int64_t now);
    void ebb(int64_t now);
    void boot_later(int64_t now);
    void give_up(const std::string &why);
    void post_turn();

    const muster_host *host_;
    Node &node_;
    muster_endpoint *endpoint_ = nullptr;
    const bool external_;
    bool started_ = false, failed_ = false, was_ready_ = false, may_use_mpi_ = true;
    int slot_ = -1;
    // Listening
    int door_ = -1;
    unsigned door_users_ = 0;
    Door near_door_, far_door_;
    // Links
    std::unordered_map<uint64_t, std::unique_ptr<Link>> links_;
    std::vector<std::unique_ptr<Link>> dropped_; // may still be on the stack below us
    std::vector<Question> waiting_;              // for the node to get ready
    // Transfers
    Buffers &buffers_ = Buffers::all();
    std::unordered_map<int, std::deque<Receiving>> receiving_; // by rank: MPI keeps their order
    std::vector<int> receiving_from_;                          // ranks whose queue is not empty
    size_t sends_ = 0;                                         // under way
    // Sleep
    bool awake_ = false, posted_ = false, pong_due_ = false, full_due_ = false;
    int burst_ = 0;
    int spin_fd_ = -1;
    muster_watch *spin_watch_ = nullptr;
    muster_timer *boot_timer_ = nullptr;
    int64_t boot_wait_ns_ = 0;
    int64_t last_ = 0, slept_at_ = 0, spin_ns_ = 0, spin_most_ns_ = 0;
};

int64_t spin_for(const Node &node); // the longest spell
uint64_t new_link_id();

} // namespace mpi
