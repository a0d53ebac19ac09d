// SPDX-License-Identifier: MIT
#pragma once
// The connection of a session: bytes in order to one other process, and its end. A plug-in's connection, a fabric's
// peer, or the pump of a transport that the host serves implement it.
#include "base/object.hpp"
#include "base/result.hpp"

#include <cstddef>

namespace muster {

class MulticastGroup;
class SharedSegment;

// Loop thread only. Received bytes are passed to Session::deliver(); the session calls this from its own turn only,
// never from inside deliver(), writable() or lost().
class Channel : public Object {
  public:
    // Maximum bytes of the next send(), 0: none now; Session::writable() follows.
    virtual size_t room() noexcept = 0;
    // OK: all; AGAIN: `taken` of them, Session::writable() follows; otherwise the channel is lost.
    virtual Status send(const void *data, size_t size, size_t &taken) noexcept = 0;
    // Bytes before the payload that the channel may write to; constant.
    virtual size_t headroom() const noexcept { return 0; }
    // Accepts a whole segment, of which `size` bytes at `offset` are to be sent. OK: it belongs to the channel. AGAIN:
    // as send(), nothing was accepted. UNSUPPORTED: use send().
    virtual Status send_buffer(void *segment, size_t offset, size_t size) noexcept {
        (void)segment, (void)offset, (void)size;
        return MUSTER_E_UNSUPPORTED;
    }
    // Begin of a turn: here channels that receive no events fetch their bytes.
    virtual void turn() noexcept {}
    // Polls for bytes, outside a turn. OK: there were some; AGAIN: none, perhaps soon; TIMEOUT: none, and the loop is
    // notified when there are some.
    virtual Status poll() noexcept { return MUSTER_TIMEOUT; }
    virtual bool polls() const noexcept { return false; } // poll() can do more than that
    // Messages move only while both sides poll; constant.
    virtual bool needs_polls() const noexcept { return false; }
    // deliver() has accepted fewer bytes than given, and accepts more again.
    virtual void resume() noexcept {}
    // No more send().
    virtual void finish() noexcept {}
    virtual void proved() noexcept {}
    virtual void paired(Ref<SharedSegment> segment, Status status) noexcept;
    virtual bool can_pair() const noexcept { return false; }
    // Any thread: by which one block is sent to the streams of many channels; constant.
    virtual MulticastGroup *multicast_group() noexcept { return nullptr; }
    // Any thread: does the calling thread have to transport the bytes for which a stream of this channel waits?
    virtual bool would_deadlock() const noexcept { return false; }
    // The last call: in order (sent bytes still arrive), or at once.
    virtual void close(bool orderly) noexcept = 0;
};

} // namespace muster
