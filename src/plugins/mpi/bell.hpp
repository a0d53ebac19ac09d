// SPDX-License-Identifier: MIT
#pragma once
// The out-of-band link of two endpoints: a socket on which they wake each other and learn of each other's death. MPI
// has no descriptor to sleep on, and without fault tolerance no way to tell that a rank is gone.
//
// It begins with one greeting in each direction, then come words of 16 bytes. A word that could not be written yet is
// replaced by a later one of its kind, so what waits here is bounded. Loop thread only.
#include "node.hpp"

#include <muster/plugin.h>

#include <string>
#include <vector>

namespace mpi {

struct Greeting {
    uint64_t mark;
    unsigned char token[16]; // of the card of the side that reads it
    int32_t rank;            // of the side that writes it; the rest as well
    uint32_t slot;           // tag of messages to it
    uint64_t link;           // number of this link there, in the head of each message to it
    uint64_t reserved[2];
};
static_assert(sizeof(Greeting) == 56);
constexpr uint64_t greeting_mark = 0x4D75'7374'6572'4231;

enum class Word : uint32_t {
    asleep,  // I poll no more; so many messages of yours I have received
    ring,    // wake up: so many messages I have sent
    ping,    // something between us does not get on: poll for a while, and say so
    pong,    // I have polled
    goodbye, // I leave in order; so many messages I have sent
    shut,    // nobody listens here any more: ask at my door again
    count
};

class Bell {
  public:
    struct Owner {
        virtual void greeted(const Greeting &greeting) = 0;
        virtual void heard(Word word, uint64_t value) = 0;
        virtual void hung_up(int os_errno) = 0; // once; close() is next

      protected:
        ~Owner() = default;
    };

    Bell(const muster_host *host, Owner &owner) : host_(host), owner_(owner) {}
    ~Bell() { close(); }
    Bell(const Bell &) = delete;
    Bell &operator=(const Bell &) = delete;

    muster_status connect(std::vector<Where> places, muster_error *error);
    muster_status adopt(int fd); // takes it in any case
    void greet(const Greeting &greeting);
    void say(Word word, uint64_t value);
    bool everything_said() const { return out_.empty() && due_ == 0; }
    void look(); // now, for what has come in
    void close();

  private:
    muster_status try_next(muster_error *error);
    muster_status watch();
    static void ready(void *self, uint32_t events);
    void read();
    void write();

    const muster_host *host_;
    Owner &owner_;
    std::vector<Where> places_; // still to be tried
    int fd_ = -1;
    bool connecting_ = false, write_wanted_ = false;
    muster_watch *watch_ = nullptr;
    std::string out_, greeting_;
    uint32_t due_ = 0; // bits of words that wait
    uint64_t values_[static_cast<int>(Word::count)] = {};
    unsigned char in_[sizeof(Greeting)];
    size_t have_ = 0;
    bool greeted_ = false;
    unsigned life_ = 0; // changes when it is closed, perhaps inside of a call to the owner
};

// A listening socket. The process of another user gets a hang-up.
class Door {
  public:
    using Visitor = void (*)(void *self, int fd);
    Door(const muster_host *host, Visitor visitor, void *self) : host_(host), visitor_(visitor), self_(self) {}
    ~Door() { close(); }
    Door(const Door &) = delete;
    Door &operator=(const Door &) = delete;
    muster_status open(const Where &where, muster_error *error); // an abstract name
    muster_status open(int bound_socket, muster_error *error);   // takes it in any case
    void close();

  private:
    static void ready(void *self, uint32_t events);
    void pause();
    const muster_host *host_;
    Visitor visitor_;
    void *self_;
    int fd_ = -1;
    muster_watch *watch_ = nullptr;
    muster_timer *pause_ = nullptr;
};

// Who is at the other end of a Unix socket is told by the kernel; true also for TCP, where the token has to do.
bool same_user(int fd);
// TCP: small words at once, and a host that vanished is noticed in half a minute.
void tune_tcp(int fd);

} // namespace mpi
