// SPDX-License-Identifier: MIT
#pragma once
// The classes with which the cases of the conformance suite are written: the two processes, streams that throw, bytes
// that can be checked. Only the public headers, and SHARED of tests/abi/layers.py.
#include "base/time.hpp"

#include <muster/plugin.h>
#include <muster/process.h>
#include <muster/serve.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace check {

constexpr int64_t ms = 1'000'000;
constexpr int64_t second = 1'000 * ms;
// For operations that should complete at once on an idle machine.
inline int64_t time_limit = 20 * second;

// The end of a case when a guarantee did not hold, or cannot be checked here.
struct Failed {
    std::string text;
};
struct Skipped {
    std::string text;
};
[[noreturn, gnu::format(printf, 1, 2)]] void fail(const char *format, ...);
[[noreturn]] void skip(const std::string &why);
std::string name_of(muster_status status);
void expect(muster_status got, muster_status wanted, const char *what, const muster_error *error = nullptr);
// The latest call of this thread, for the text of a guarantee that did not hold.
void called(const char *what, muster_status status, const muster_error *error = nullptr);
[[noreturn]] void not_so(const char *condition);
#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) ::check::not_so(#condition);                                                                 \
    } while (false)

using muster::now_ns;

// ---- bytes: the byte at a position of a numbered sequence
// ------------------------------------------------------------

void fill(unsigned char *to, size_t size, uint64_t position, uint64_t sequence);
// The first position that differs, or UINT64_MAX.
uint64_t first_difference(const unsigned char *data, size_t size, uint64_t position, uint64_t sequence);
// A checksum that does not depend on how the bytes are split into pieces.
class Checksum {
  public:
    void add(const unsigned char *data, size_t size);
    uint64_t value() const { return hash_; }

  private:
    uint64_t hash_ = 1469598103934665603u;
};

// ---- handles
// ---------------------------------------------------------------------------------------------------------

class Stream {
  public:
    Stream() = default;
    explicit Stream(muster_stream *stream) : stream_(stream) {}
    Stream(Stream &&other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}
    Stream &operator=(Stream &&other) noexcept {
        std::swap(stream_, other.stream_);
        return *this;
    }
    ~Stream() { muster_stream_release(stream_); }
    muster_stream *get() const { return stream_; }
    explicit operator bool() const { return stream_ != nullptr; }

    void write(const void *data, size_t size, int64_t timeout = time_limit) const; // all of it
    void read(void *data, size_t size, int64_t timeout = time_limit) const;        // exactly so much
    void finish() const;
    void expect_end(int64_t timeout = time_limit) const; // no further bytes arrive
    void close(int64_t timeout = time_limit) const;      // everything was delivered
    std::string hello() const;
    // `size` bytes of a sequence, in pieces.
    void write_sequence(uint64_t size, uint64_t sequence) const;
    uint64_t read_sequence(uint64_t size, uint64_t sequence) const; // the checksum
    uint64_t number() const;                                        // 8 bytes
    void write_number(uint64_t number) const;

  private:
    muster_stream *stream_ = nullptr;
};

class Listener {
  public:
    explicit Listener(muster_listener *listener) : listener_(listener) {}
    ~Listener() { muster_listener_release(listener_); }
    Listener(const Listener &) = delete;
    Listener &operator=(const Listener &) = delete;
    muster_listener *get() const { return listener_; }
    std::string address() const;
    Stream accept(int64_t timeout = time_limit) const;

  private:
    muster_listener *listener_;
};

class RankPool; // the other ranks

struct Options {
    std::string plugin;  // a file to load, or empty
    std::string servant; // a file that serves the scheme, or empty
    std::string address; // the address to listen at; '@' stands for a unique text
    std::string ranks;   // a folder in which the ranks of a job meet: the other side is one of them
    std::string only;    // part of the names of the cases to run
    uint64_t max_bytes = 64 << 20;
    bool long_cases = false;
    bool log = false;     // print the library's log records to stderr
    bool guarded = false; // the transport itself admits no peer without the secret
    bool pulled = false;  // served:// by pulling requests instead of callbacks
    int64_t slowdown = 1; // of this machine or build: every time is multiplied
    int64_t heartbeat_ns = 300 * ms;
    int64_t silent_ns = 1200 * ms;
    int64_t dead_ns = 4 * second;
    std::string program;      // this one, to be started again
    RankPool *pool = nullptr; // with `ranks`
};

class Carriage; // serves served://
class Servant;  // serves a scheme from outside

// A context with everything the address needs.
class Host {
  public:
    Host(const Options &options, const std::string &secret);
    ~Host();
    Host(const Host &) = delete;
    Host &operator=(const Host &) = delete;
    muster_context *context() const { return context_; }
    std::unique_ptr<Listener> listen(const std::string &address, const std::string &hello = "the listener") const;
    Stream dial(const std::string &address, const std::string &hello, int64_t timeout = time_limit) const;
    muster_status try_dial(const std::string &address, muster_error &error, int64_t timeout = time_limit) const;
    void await_listener(const std::string &address) const; // of another process
    void close();                                          // expects that everything could be delivered

  private:
    void print_log();
    muster_context *context_ = nullptr;
    std::unique_ptr<Carriage> carriage_;
    std::unique_ptr<Servant> servant_;
    muster_queue *log_ = nullptr;
    std::thread logger_;
    mutable std::atomic<unsigned> listens_{0};
};

// ---- the other side
// --------------------------------------------------------------------------------------------------

// Serves incoming streams as their hello requests; see peer.cpp. Ends when the listener is closed.
void serve(const Host &host, const Listener &listener);
// The second process; the first is `parent`.
int peer_main(const Options &options, int secret_fd, int parent);

// The view that a case has of the other process: its address, and how to stop or kill it.
class Peer {
  public:
    virtual ~Peer() = default;
    virtual std::string address() const = 0;
    virtual void signal(int number) = 0; // throws Skipped if it is no process of its own
    virtual bool separate() const = 0;
};

std::unique_ptr<Peer> start_process(const Host &host, const Options &options, const std::string &secret,
                                    const std::string &address);
std::unique_ptr<Peer> start_thread(const Host &host, const std::string &address); // inproc://

struct World {
    const Options &options;
    Host &host;
    Peer &peer;
    std::string secret;
    Stream dial(const std::string &what) const { return host.dial(peer.address(), what); }
    std::unique_ptr<Peer> another(const std::string &secret) const; // a peer of its own for cases that kill it
    std::string fresh_address() const;                              // an address without a listener
};

struct Case {
    const char *name;
    void (*run)(World &world);
    bool long_only = false;
};
extern const std::vector<Case> byte_cases, ending_cases, peer_cases, secret_cases;

std::string unique_address(const Options &options);
int run_all(const Options &options);
int run_rank(Options options); // one of them: the checker or a servant

} // namespace check
