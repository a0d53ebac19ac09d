// SPDX-License-Identifier: MIT
#pragma once
// A client as the server knows it: its session, which outlives a lost connection, and its connection.
#include "store/record_socket.hpp"
#include "store/table.hpp"
#include "transport/hub.hpp"

#include <algorithm>
#include <deque>

namespace muster {

class StoreServer;
class StoreSession;
class StoreConnection;

// A request of a client, from the moment it is understood until its answer is made.
class ServerRequest final : public StoreWaiter {
  public:
    ServerRequest(StoreSession &session, uint64_t number, StoreRequest what) noexcept
        : StoreWaiter(std::move(what)), session(session), number(number) {}
    StoreSession &session; // outlives it
    const uint64_t number;
    bool listed = false;      // among those of its session that hang
    size_t hanging_bytes = 0; // that it counts for while it waits
};

// Loop thread. Its timer keeps it while it forgets it.
class StoreSession final : public Object {
  public:
    StoreSession(StoreServer &server, const StoreId &id) noexcept : server_(server), id_(id) {}
    const StoreId &id() const noexcept { return id_; }

    StoreConnection *connection = nullptr;
    int64_t heard_ns = 0;                                                 // when the client last said something
    std::unordered_map<uint64_t, std::unique_ptr<ServerRequest>> hanging; // by number
    size_t hanging_bytes = 0;
    size_t held_bytes = 0;     // of answers that wait until what they tell of is durable
    bool spoiled = false;      // an answer got lost for want of memory
    std::set<uint64_t> leases; // that are kept while it says something, or for its connection

    // How requests ended that have changed something, as records; the client has not said yet that it knows.
    const std::string *answered(uint64_t number) const noexcept {
        const auto found = place_of(number);
        return found == answered_.end() || found->first != number ? nullptr : &found->second;
    }
    void remember(uint64_t number, std::string record) {
        const size_t bytes = record.size();
        if (answered_.empty() || answered_.back().first < number) // so it is, but for those that have waited
            answered_.emplace_back(number, std::move(record));
        else
            answered_.emplace(place_of(number), number, std::move(record));
        answered_bytes_ += bytes;
    }
    uint64_t floor() const noexcept { return floor_; }
    void forget_below(uint64_t floor) noexcept {
        floor_ = std::max(floor_, floor);
        while (!answered_.empty() && answered_.front().first < floor) {
            answered_bytes_ -= answered_.front().second.size();
            answered_.pop_front();
        }
    }
    using Answered = std::deque<std::pair<uint64_t, std::string>>; // by number
    const Answered &all_answered() const noexcept { return answered_; }
    size_t answered_bytes() const noexcept { return answered_bytes_; }
    size_t answered_count() const noexcept { return answered_.size(); }
    void start_leaving(int64_t at_ns) noexcept; // nobody comes again until then: it is forgotten
    void stop_leaving() noexcept;

  private:
    ~StoreSession() override = default;
    void forgotten() noexcept;
    Answered::const_iterator place_of(uint64_t number) const noexcept {
        return std::lower_bound(answered_.begin(), answered_.end(), number,
                                [](const auto &one, uint64_t n) { return one.first < n; });
    }
    StoreServer &server_;
    const StoreId id_;
    Answered answered_;
    size_t answered_bytes_ = 0;
    uint64_t floor_ = 0; // numbers below have been answered, and the client knows
    Timer<StoreSession, &StoreSession::forgotten> leaving_{*this};
};

// Loop thread.
class StoreConnection final : public Object,
                              public Listed<StoreConnection>,
                              private Pollable,
                              private RecordReader::Taker {
  public:
    StoreConnection(StoreServer &server, ProvedSocket socket);
    void start() noexcept;
    const std::string &peer() const noexcept { return peer_; }
    StoreSession *session = nullptr;

    // Room for a record; send_all() sends what is there.
    std::string &out() noexcept { return writer_.plain(); }
    void send_all() noexcept;
    // It does not take its answers, and there is no room for another: it is cut off, and asks again.
    bool drowns() noexcept;
    void shut(const char *why) noexcept; // its session lives on
    bool over() const noexcept { return !fd_; }
    void look_again() noexcept; // what is there may be read
    bool dirty = false;         // in the server's list of those that have something to send

  private:
    void on_events(uint32_t epoll_events) noexcept override;
    Object &pollable_object() noexcept override { return *this; }
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
    bool paused_ = false; // it takes no answers: its requests are not read
    bool drowned_ = false;
    bool hung_up_ = false; // the end has come, behind what is still there
    Timer<StoreConnection, &StoreConnection::too_slow> patience_{*this};
};

} // namespace muster
