// SPDX-License-Identifier: MIT
#pragma once
// What a session talks through: bytes in order to one other process, and the end of that. A plug-in's connection, a
// fabric's peer, or the pump of a transport served by the host implement it.
#include "base/object.hpp"
#include "base/result.hpp"

#include <cstddef>

namespace muster {

class MulticastGroup;
class SharedSegment;

// Loop thread only. Bytes that come in are given to Session::deliver(); the session calls here from its own turn alone,
// never from inside deliver(), writable() or lost().
class Channel : public Object {
  public:
    // Bytes the next send() may be given, 0: none now; Session::writable() follows.
    virtual size_t room() noexcept = 0;
    // OK: all; AGAIN: `taken` of them, Session::writable() follows; else the channel is lost.
    virtual Status send(const void *data, size_t size, size_t &taken) noexcept = 0;
    // Bytes in front of what is sent that the channel may write to; the same all the time.
    virtual size_t headroom() const noexcept { return 0; }
    // Takes a whole segment, of which `size` bytes at `offset` are to be sent. OK: it is the channel's. AGAIN: as
    // send(), nothing was taken. UNSUPPORTED: send() must be asked.
    virtual Status send_buffer(void *segment, size_t offset, size_t size) noexcept {
        (void)segment, (void)offset, (void)size;
        return MUSTER_E_UNSUPPORTED;
    }
    // Begin of a turn: the place to fetch what came in, for channels that receive no events.
    virtual void turn() noexcept {}
    // Looks for what came in, outside of a turn. OK: something did; AGAIN: nothing, soon perhaps; TIMEOUT: nothing, and
    // the loop will learn when there is something.
    virtual Status poll() noexcept { return MUSTER_TIMEOUT; }
    virtual bool polls() const noexcept { return false; } // poll() can do more than that
    // deliver() took less than it was given, and takes more again.
    virtual void resume() noexcept {}
    // No more send().
    virtual void finish() noexcept {}
    virtual void proved() noexcept {}
    virtual void paired(Ref<SharedSegment> segment, Status status) noexcept;
    virtual bool can_pair() const noexcept { return false; }
    // Any thread: how one block goes to the streams of many channels; the same one all the time.
    virtual MulticastGroup *multicast_group() noexcept { return nullptr; }
    // Any thread: is it the one that must carry the bytes a wait on this channel's streams is for?
    virtual bool would_deadlock() const noexcept { return false; }
    // The last call: in order (what was sent still arrives), or at once.
    virtual void close(bool orderly) noexcept = 0;
};

} // namespace muster
