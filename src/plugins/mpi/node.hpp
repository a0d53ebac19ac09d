// SPDX-License-Identifier: MIT
#pragma once
// This process as a rank: MPI itself, a communicator of our own, and the information that each rank needs of every
// other one before it can dial it. One per process, never destroyed; the endpoints of all contexts share it.
//
// MPI_Comm_idup makes the communicator, MPI_Iallgather exchanges the RankInfos. Neither blocks, so that ranks may load
// the plug-in at different moments. Until all have, ready() is false, and dials wait.
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

void random_bytes(void *to, size_t bytes); // rank_info.cpp

class Endpoint;

constexpr int max_listeners = 8; // listening contexts of a process
constexpr int max_slots = 64;    // contexts of a process

// The information of a rank, exchanged as bytes: all ranks run the same version of this plug-in.
struct RankInfo {
    uint64_t version;
    uint64_t ours;           // the plug-in has initialised MPI there
    unsigned char host[24];  // equal for processes that share a kernel and a network namespace
    unsigned char token[16]; // known only to the ranks of the job
    char name[32];           // prefix of its abstract Unix sockets
};
struct Ports { // exchanged next, where the job has several hosts: TCP
    uint16_t listeners[max_listeners];
    uint16_t exit;
    uint16_t count;
    struct {
        uint16_t family;
        unsigned char bytes[16];
    } addresses[8];
};

// The addresses at which a listener of a rank can be reached, the likeliest first.
struct SocketName {
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
    // Finds or makes it. On the thread that loads the plug-in.
    static muster_status open(const muster_host *host, Node *&out_node, muster_error *error);

    // Permission to call MPI, while it is true: one thread at a time, none after MPI has been finalised.
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
    bool needs_polls() const;                 // messages move while both sides poll
    bool crowded() const { return crowded_; } // more ranks than cores on this host

    bool advance();     // with a Hold: progress towards ready()
    bool ready() const; // any thread
    bool usable_here() const { return level_ >= MPI_THREAD_SERIALIZED || pthread_equal(main_, pthread_self()); }
    std::string failure() const;    // why mpi:// cannot be used; empty: it can
    void fail(const std::string &); // with a Hold

    const RankInfo &info(int rank) const { return rank_infos_[rank]; }
    const unsigned char *own_token() const { return own_info_.token; }
    bool is_local(int rank) const; // rank is on this host
    std::vector<SocketName> listener_names(int rank, int listener) const;
    std::vector<SocketName> exit_names() const; // of rank 0
    SocketName own_name(const std::string &suffix) const;
    int port_socket(int listener); // a bound TCP socket; -1: all ranks are on this host

    // Numbers for an endpoint; -1: none left. Any thread.
    int acquire_slot(Endpoint *endpoint);
    void release_slot(int slot);
    int acquire_listener(int wanted); // -1: the lowest free one
    void release_listener(int listener);

    // Sends that outlive their context: MPI may still read their bytes.
    struct Orphan {
        MPI_Request request;
        void *buffer; // NULL: memory that is never freed
    };
    void adopt(MPI_Request request, void *buffer); // with a Hold
    void keep_forever(void *buffer);               // with a Hold: a request to a dead rank may use it for ever
    void test_orphans();                           // with a Hold
    bool receive_rest();                           // before finalising: receives the rest; true: nothing is in flight

  private:
    friend class ExitBarrier;
    Node() = default;
    muster_status begin(const muster_host *host, muster_error *error);
    void wait_for_ranks();
    void make_info();
    bool check_infos();
    void make_ports();
    static int host_finalises(MPI_Comm, int, void *, void *);

    mutable std::timed_mutex lock_; // around MPI
    mutable std::mutex numbers_;    // slots and listeners, and the text
    bool ours_ = false;             // the plug-in has initialised MPI
    int level_ = 0;
    pthread_t main_{}; // the thread that has loaded it, where only one may call MPI
    int rank_ = 0, size_ = 0;
    bool crowded_ = false, only_tcp_ = false, many_hosts_ = false;
    MPI_Comm comm_ = MPI_COMM_NULL;
    enum class Step { dup, infos, ports, ready } step_ = Step::dup;
    MPI_Request request_ = MPI_REQUEST_NULL;
    RankInfo own_info_{};
    Ports ports_{};
    std::vector<RankInfo> rank_infos_;
    std::vector<Ports> all_ports_;
    int port_sockets_[max_listeners];
    int exit_socket_ = -1;
    std::vector<SocketName> port_names(int rank, uint16_t port) const;
    std::atomic<bool> ready_{false};  // release when all members above are set; acquire in ready()
    std::atomic<bool> broken_{false}; // release after failure_; acquire in failure()
    std::string failure_;
    Endpoint *slots_[max_slots] = {};
    bool used_listeners_[max_listeners] = {};
    std::vector<Orphan> orphans_;
    std::vector<void *> kept_forever_;
};

} // namespace mpi
