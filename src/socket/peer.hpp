// SPDX-License-Identifier: MIT
#pragma once
// A connected peer of a socket: its stream, the messages that wait to be written, and the reader of those it sends.
#include "base/list.hpp"
#include "message/wire.hpp"
#include "stream/stream.hpp"

#include <muster/socket.h>

#include <list>
#include <mutex>

namespace muster {

struct Connection;

// What both sides send with the handshake of the transport.
struct PeerHello {
    uint8_t kind = 0; // a muster_socket_kind
    uint64_t address = 0, incarnation = 0;
    std::string write() const;
    static std::optional<PeerHello> read(std::string_view bytes) noexcept;
};

// A message on its way into a stream.
struct Outgoing {
    Ref<Message> message;
    uint64_t next_hop = 0;       // of a router: the address of the peer
    bool has_slot = false;       // in the queue of the host, for the case that it cannot be delivered
    std::string head;            // made before it is begun
    size_t part = 0, offset = 0; // the part being written: 0 is the head, then the frames
    bool is_begun() const noexcept { return part != 0 || offset != 0; }
    uint64_t bytes() const noexcept { return message->payload_bytes(); }
    void make_head();
};

class SocketPeer final : public Object, public Listed<SocketPeer> {
  public:
    SocketPeer(Ref<Stream> with, const PeerHello &says, uint64_t number, Connection *made_by, uint64_t max_message)
        : stream(*with.detach()), hello(says), id(number), connection(made_by), reader(max_message) {}

    Stream &stream; // the peer has the handle
    const PeerHello hello;
    const uint64_t id;            // the tag of its entries in the socket's queue; never used again
    Connection *const connection; // that dialled it; NULL: it was accepted

    // Both with the lock held; they write as much as is possible without waiting. OK: all of it; AGAIN; otherwise the
    // stream has ended. If memory runs out a part may have been written, and the stream is to be aborted.
    // A new message, before which nothing waits; `outgoing` is filled if a part remains.
    Status write_first(Outgoing &outgoing);
    // The first messages of the queue; those that were written whole are to be removed.
    Status write_next(size_t &out_written);

    std::mutex out_lock;     // guards these; after the lock of the socket
    std::list<Outgoing> out; // the first one may be begun
    uint64_t out_bytes = 0;
    bool out_ended = false; // nothing more is written
    uint64_t messages_out = 0, bytes_out = 0;

    // Of the thread that has the role of the receiver.
    MessageReader reader;
    std::vector<uint64_t> learned; // sources other than its address; under the lock of the socket

    // Under the lock of the socket.
    bool in_ended = false; // everything was read

  private:
    Status write(Outgoing &outgoing) noexcept;
    static void begin_at(Outgoing &outgoing, size_t moved);
    ~SocketPeer() override { stream.host_release(); }
};

} // namespace muster
