// SPDX-License-Identifier: MIT
#pragma once
// This process as a rank: MPI itself, a communicator of our own, and what every rank has to know of every other before
// it can call it. One per process, never destroyed; the endpoints of all contexts share it.
//
// The communicator is made by MPI_Comm_idup and the cards of the ranks go round by MPI_Iallgather: neither waits, so
// ranks may load the plug-in at different moments. Until all have, ready() is false and who dials waits.
#include <muster/plugin.h>

#include <atomic>
#include <mpi.h>
#include <mutex>
#include <netinet/in.h>
#include <pthread.h>
#include <string>
#include <sys/un.h>
#include <vector>

namespace mpi {

class Endpoint;

constexpr int doors_max = 8;  // contexts of a process that listen
constexpr int slots_max = 64; // contexts of a process

// What a rank tells of itself: goes round as bytes, all ranks run the same version of it.
struct Card {
    uint64_t version;
    uint64_t ours;           // MPI was initialised by the plug-in there
    unsigned char host[24];  // equal for processes that share a kernel and a network namespace
    unsigned char token[16]; // whoever knows it is a rank of the job
    char name[32];           // prefix of its abstract Unix sockets
};
struct Ports { // the second round, where there is more than one host: TCP
    uint16_t doors[doors_max];
    uint16_t exit;
    uint16_t count;
    struct {
        uint16_t family;
        unsigned char bytes[16];
    } addresses[8];
};

// Where a door of a rank can be reached, from the likeliest on.
struct Where {
    union {
        sockaddr any;
        sockaddr_un unix_name;
        sockaddr_in v4;
        sockaddr_in6 v6;
    };
    socklen_t bytes;
};

class Node {
  public:
    // Finds or makes it; the thread that loads the plug-in.
    static muster_status open(const muster_host *host, Node *&out_node, muster_error *error);

    // MPI may be called while one of these is alive and true: by one thread at a time, and none after the end.
    class Hold {
      public:
        explicit Hold(Node &node);
        explicit operator bool() const { return usable_; }

      private:
        const std::lock_guard<std::timed_mutex> lock_;
        const bool usable_;
    };

    int rank() const { return rank_; }
    int size() const { return size_; }
    MPI_Comm comm() const { return comm_; }
    bool crowded() const { return crowded_; } // more ranks than cores on this host

    bool advance();     // with a Hold: goes on towards ready()
    bool ready() const; // any thread
    bool usable_here() const { return level_ >= MPI_THREAD_SERIALIZED || pthread_equal(main_, pthread_self()); }
    std::string trouble() const;    // why it never will be, or may not be used any more; empty: nothing is wrong
    void fail(const std::string &); // with a Hold

    const Card &card(int rank) const { return cards_[rank]; }
    const unsigned char *own_token() const { return card_.token; }
    bool near(int rank) const; // on this host
    std::vector<Where> reach(int rank, int door) const;
    std::vector<Where> reach_exit() const; // of rank 0
    Where own_name(const std::string &suffix) const;
    int port_socket(int door); // a bound TCP socket for a door, where there are other hosts, else -1

    // Numbers for an endpoint, -1: none left. Any thread.
    int take_slot(Endpoint *endpoint);
    void give_slot(int slot);
    int take_door(int wanted); // -1: the lowest that is free
    void give_door(int door);

    // Sends that outlive their context: MPI may still read the bytes.
    struct Orphan {
        MPI_Request request;
        void *buffer; // NULL: not ours to free, and good for ever
    };
    void adopt(MPI_Request request, void *buffer); // with a Hold
    void bury(void *buffer);                       // with a Hold: kept for ever, a request to a dead rank may use it
    void test_orphans();                           // with a Hold
    bool empty_the_box(); // at the end: takes what nobody will ask for; true: nothing of ours is under way

  private:
    friend class ExitBarrier;
    Node() = default;
    muster_status begin(const muster_host *host, muster_error *error);
    void wait_a_moment();
    void make_card();
    bool read_cards();
    void make_ports();
    static int host_finalises(MPI_Comm, int, void *, void *);

    mutable std::timed_mutex lock_; // around MPI
    mutable std::mutex numbers_;    // slots and doors, and the text
    bool ours_ = false;             // we have initialised MPI
    int level_ = 0;
    pthread_t main_{}; // the thread that has loaded it, where only one may call MPI
    int rank_ = 0, size_ = 0;
    bool crowded_ = false, only_tcp_ = false, many_hosts_ = false;
    MPI_Comm comm_ = MPI_COMM_NULL;
    enum class Step { dup, cards, ports, ready } step_ = Step::dup;
    MPI_Request request_ = MPI_REQUEST_NULL;
    Card card_{};
    Ports ports_{};
    std::vector<Card> cards_;
    std::vector<Ports> all_ports_;
    int port_sockets_[doors_max];
    int exit_socket_ = -1;
    std::vector<Where> reach_port(int rank, uint16_t port) const;
    std::atomic<bool> ready_{false};  // release once everything above is there; acquire in ready()
    std::atomic<bool> broken_{false}; // release after trouble_; acquire in trouble()
    std::string trouble_;
    Endpoint *slots_[slots_max] = {};
    bool doors_[doors_max] = {};
    std::vector<Orphan> orphans_;
    std::vector<void *> buried_;
};

} // namespace mpi
