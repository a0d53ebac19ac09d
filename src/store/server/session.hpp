// SPDX-License-Identifier: MIT
#pragma once
// The server's side of a client: its session, which outlives a lost connection, and its connection.
#include "store/journal/note.hpp"
#include "store/server/answered.hpp"
#include "store/table/table.hpp"
#include "store/wire/record_socket.hpp"
#include "transport/hub.hpp"

namespace muster {

class StoreServer;
class StoreSession;
class StoreConnection;

// A request of a client, from its decoding until its answer.
class ServerRequest final : public StoreWaiter {
  public:
    ServerRequest(StoreSession &session, uint64_t number) noexcept
        : StoreWaiter({}), session(&session), number(number) {}
    StoreSession *session; // outlives it
    uint64_t number;
    bool listed = false;      // among those of its session that hang
    size_t hanging_bytes = 0; // that it counts for while it waits
    Ref<StoreNote> note;      // recorded when the request has changed something
};

// Journal records (journal.cpp), made before the change is applied. They throw bad_alloc.
Ref<StoreNote> note_of_session(const StoreId &session, bool begins);
Ref<StoreNote> note_of_lease(uint64_t lease, bool ends);
Ref<StoreNote> note_of_request(const ServerRequest &asked);
void complete_note(const ServerRequest &asked) noexcept; // adds what was not known before it was applied

// Loop thread. Its timer keeps it alive while it ends.
class StoreSession final : public Object {
  public:
    StoreSession(StoreServer &server, const StoreId &id)
        : forgotten_note(note_of_session(id, false)), server_(server), id_(id) {}
    const StoreId &id() const noexcept { return id_; }

    StoreConnection *connection = nullptr;
    int64_t heard_ns = 0; // when the latest record of the client was received
    std::unordered_map<uint64_t, std::unique_ptr<ServerRequest>> hanging; // by number
    size_t hanging_bytes = 0;
    size_t held_bytes = 0;         // of answers that wait until their changes are durable
    bool spoiled = false;          // an answer was lost because memory ran out
    std::set<uint64_t> leases;     // that its records renew, or that end with its connection
    Ref<StoreNote> forgotten_note; // recorded when the session ends

    AnsweredRequests answered;
    void start_leaving(int64_t at_ns) noexcept; // it ends then, unless the client connects again
    void stop_leaving() noexcept;

  private:
    ~StoreSession() override = default;
    void forgotten() noexcept;
    StoreServer &server_;
    const StoreId id_;
    Timer<StoreSession, &StoreSession::forgotten> leaving_{*this};
};

// Loop thread.
class StoreConnection final : public Object,
                              public Listed<StoreConnection>,
                              private Watch,
                              private RecordReader::Taker {
  public:
    StoreConnection(StoreServer &server, ProvedSocket socket);
    void start() noexcept;
    const std::string &peer() const noexcept { return peer_; }
    StoreSession *session = nullptr;

    // Room for a record; send_all() sends the bytes.
    std::string &out() noexcept { return writer_.plain(); }
    void send_all() noexcept;
    // It does not read its answers, and there is no room for another: it is disconnected, and repeats its requests.
    bool drowns() noexcept;
    void shut(const char *why) noexcept; // its session lives on
    bool over() const noexcept { return !fd_; }
    void look_again() noexcept; // available records may be read again
    bool dirty = false;         // in the server's list of those that have something to send

  private:
    void on_events(uint32_t epoll_events) noexcept override;
    Object &watch_owner() noexcept override { return *this; }
    bool take_record(const StoreHead &head, std::string_view body) override;
    bool has_enough() const noexcept override;
    void read_some() noexcept;
    size_t unsent() const noexcept;
    void too_slow() noexcept { shut("it has not said who it is"); }

    const Ref<StoreServer> server_;
    Fd fd_;
    RecordReader reader_;
    RecordWriter writer_;
    const std::string peer_;
    bool stuck_ = false;  // its socket was full the last time
    bool paused_ = false; // it does not read its answers: its requests are not read
    bool drowned_ = false;
    bool hung_up_ = false; // the connection has ended, after the available bytes
    Timer<StoreConnection, &StoreConnection::too_slow> hello_timer_{*this};
};

} // namespace muster
