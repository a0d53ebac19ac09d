// SPDX-License-Identifier: MIT
#pragma once
// A connected peer of a socket: its stream, the messages that wait to be written, and the reader of those it sends.
#include "base/list.hpp"
#include "message/wire.hpp"
#include "socket/loan.hpp"
#include "stream/stream.hpp"

#include <muster/socket.h>

#include <list>
#include <mutex>
#include <optional>

namespace muster {

struct Connection;

// What both sides send with the handshake of the transport.
struct PeerHello {
    uint8_t kind = 0; // a muster_socket_kind
    uint64_t address = 0, incarnation = 0;
    LoanOrigin loans;
    std::string write() const;
    static std::optional<PeerHello> read(std::string_view bytes) noexcept;
};

// A message on its way into a stream.
struct Outgoing {
    Ref<Message> message;
    uint64_t next_hop = 0;       // of a router: the address of the peer
    bool has_slot = false;       // in the queue of the host, for the case that it cannot be delivered
    std::string head;            // made before it is begun
    LoanReferences loans;        // for the peer that it is for
    bool has_loans = false;      // they were made
    size_t part = 0, offset = 0; // the part being written: 0 is the head, then the frames
    bool is_begun() const noexcept { return part != 0 || offset != 0; }
    uint64_t bytes() const noexcept { return message->payload_bytes(); }
    bool is_reference(size_t frame) const noexcept { return loans.size() != 0 && loans.find(frame) != nullptr; }
    void forget_head() noexcept { // it was not begun, and is for another peer from now on
        head.clear();
        loans = {};
        has_loans = false;
    }
};

class SocketPeer final : public Object, public Listed<SocketPeer> {
  public:
    // `own_loans`: the pool of the socket, or NULL. `its_loans`: what the peer loans, or empty.
    SocketPeer(Ref<Stream> with, const PeerHello &says, uint64_t number, Connection *made_by, uint64_t max_message,
               LoanPool *own_loans, Ref<LoanView> its_loans)
        : stream(*with.detach()), hello(says), id(number), connection(made_by), reader(max_message), loans_(own_loans),
          sheet_(own_loans != nullptr ? own_loans->take_sheet() : std::nullopt), view_(std::move(its_loans)) {
        reader.set_loans(view_.get());
    }

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
    // The connection has ended: the peer returns no loans any more. Under out_lock.
    void abandon_loans() noexcept {
        if (sheet_) loans_->give_sheet_back(*sheet_);
        sheet_.reset();
    }

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
    void make_head(Outgoing &outgoing);
    void make_loans(Outgoing &outgoing) noexcept;
    bool refers(const Message &message) const noexcept {
        return message.has_loans && sheet_ && loans_->is_mapped_by(hello.incarnation);
    }
    Status write(Outgoing &outgoing) noexcept;
    void begin_at(Outgoing &outgoing, size_t moved);

    LoanPool *const loans_;         // of the socket
    std::optional<uint16_t> sheet_; // of this peer in it; guarded by out_lock
    const Ref<LoanView> view_;
    ~SocketPeer() override { stream.host_release(); }
};

} // namespace muster
