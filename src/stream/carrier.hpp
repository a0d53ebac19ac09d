// SPDX-License-Identifier: MIT
#pragma once
// The implementation of side 1 of a Duplex whose side 0 is a Stream: a socket link, a plug-in connection, a fabric
// peer.
//
// The simple way, sufficient for a plug-in: implement Waker for both pipes, move bytes on the engine (gather/consume
// from outgoing(0), push into incoming(0)), and call Duplex::end() when the connection is over. In shared-memory
// duplexes the carrier moves no bytes; it only detects the death of the peer.
//
// The direct way, for sockets: while no bytes wait in the pipes the thread of the host makes the system call.
#include "base/object.hpp"
#include "base/time.hpp"
#include "queue/queue.hpp"

#include <string>

namespace muster {

// Queried by a carrier between two sleeps: has the host cancelled, closed or aborted?
class Interrupted {
  public:
    virtual bool now() const noexcept = 0;

  protected:
    ~Interrupted() = default;
};

template <class Ask>
class Asks final : public Interrupted {
  public:
    explicit Asks(Ask ask) : ask_(ask) {}
    bool now() const noexcept override { return ask_(); }

  private:
    Ask ask_;
};

class SharedPiece;

// Carriers of several streams, to all of which one block can be sent at once. Any thread.
class MulticastGroup {
  public:
    static constexpr uint32_t max_members = 256;   // carriers at a time
    static constexpr size_t min_bytes = 16 * 1024; // not worth it below
    // Made once for a block that is handed over to `count` of them, and passed along with it.
    virtual Ref<SharedPiece> share(uint32_t count, const void *data, size_t size) = 0;

  protected:
    ~MulticastGroup() = default;
};

class Carrier : public Object {
  public:
    struct Moved {
        Status status; // OK: see bytes; AGAIN: not possible in this way now, use the pipe
        size_t bytes;
    };

    // Can a thread that waits drive the engine meanwhile, by receive() and drive()?
    virtual bool drives() const noexcept { return false; }
    // Drives it as long as that seems worthwhile, until `until` holds. OK: check again. AGAIN: it is better to sleep.
    virtual Status drive(Deadline &deadline, const Interrupted &until) noexcept {
        (void)deadline, (void)until;
        return MUSTER_AGAIN;
    }
    // The most that a thread which drives is to copy between two calls of drive(); constant.
    virtual size_t copies_at_once() const noexcept { return SIZE_MAX; }
    // The caller holds the stream's write lock, and the outgoing pipe is empty. Sends the bytes that can be sent
    // without waiting; the caller puts the rest into the pipe.
    virtual Moved send_now(const void *data, size_t size) noexcept {
        (void)data, (void)size;
        return {MUSTER_AGAIN, 0};
    }
    // As send_now(), but waits up to the deadline until all is sent (reading credits meanwhile), so that the bytes of a
    // large write are sent from the memory of the caller. OK with fewer bytes: the deadline has passed, or an event has
    // occurred (end, interrupt): check again. AGAIN: not possible in this way now.
    virtual Moved send(const void *data, size_t size, Deadline &deadline, const Interrupted &interrupted) noexcept {
        (void)deadline, (void)interrupted;
        return send_now(data, size);
    }
    // The caller holds the stream's read lock, and the incoming pipe is empty. Waits up to the deadline (0: checks
    // once) for at least one byte and copies up to `capacity` bytes into `data`; further bytes go into the incoming
    // pipe. OK with 0 bytes: another event has occurred (end, half-close, interrupt), check again. TIMEOUT: no byte in
    // time. AGAIN: the engine is receiving; park on the pipe instead. `spin`: the caller expects the answer at once.
    virtual Moved receive(void *data, size_t capacity, Deadline &deadline, const Interrupted &interrupted,
                          bool spin) noexcept {
        (void)data, (void)capacity, (void)deadline, (void)interrupted, (void)spin;
        return {MUSTER_AGAIN, 0};
    }
    // Makes a receive() or send() in progress in another thread return soon. Any thread.
    virtual void interrupt() noexcept {}
    // The host has consumed bytes; called when a quarter of the window was consumed since the last call, and by a read
    // that found the pipe empty. The place to send credit. The caller holds the read lock.
    virtual void taken() noexcept {}
    // An asynchronous read waits and no thread of the host will call receive(): the engine is to receive now.
    virtual void engage() noexcept {}
    // Begins to send; true when no bytes are left to send. Any thread. After a false the carrier calls Pipe::sent_all()
    // of the outgoing pipe when it would return true: a thread may sleep until then.
    virtual bool flush() noexcept { return true; }
    // The host watches: let the queue's descriptor wake it directly instead of the engine, if the carrier can.
    // `source.on_fd` must end in `fd_ready()`.
    virtual bool watch(Queue &queue, Source &source) noexcept {
        (void)queue, (void)source;
        return false;
    }
    virtual void unwatch(Queue &queue, Source &source) noexcept { (void)queue, (void)source; }
    // A thread that blocks receives all that comes in until this call with false: bytes do not wake the queue, too.
    virtual void pause_watch(bool is_paused) noexcept { (void)is_paused; }
    // The descriptor that watch() has registered is ready: which ::muster_stream_event to report now (0: none, e.g. a
    // heartbeat).
    virtual uint32_t fd_ready(uint32_t epoll_events) noexcept {
        (void)epoll_events;
        return 0;
    }
    // Notifies the peer that the host aborted (Duplex::end() was called already).
    virtual void abort(uint64_t reason, const char *text, size_t text_bytes) noexcept = 0;
    // The host has closed or released its stream: send the rest of the outgoing pipe (for up to 10 s), then end. The
    // carrier keeps itself alive meanwhile.
    virtual void closed() noexcept = 0;
    // The same one all the time; good as long as the carrier.
    virtual MulticastGroup *multicast_group() noexcept { return nullptr; }
    // Could a wait on this stream end only by work of the calling thread itself?
    virtual bool would_deadlock() const noexcept { return false; }
    // Counts for muster_stream_stats.
    struct Io {
        uint64_t caller_io, loop_io, last_received_ns;
    };
    virtual Io io() const noexcept { return {0, 0, 0}; }
    virtual int64_t round_trip_ns() noexcept { return 0; } // of muster_stream_stats
    virtual std::string local_address() { return {}; }     // "tcp://10.0.0.7:41022"; empty: no socket of IP
};

} // namespace muster
