// SPDX-License-Identifier: MIT
#pragma once
// The connection between the two servers of a pair, and its messages, after both have proved the secret.
//
//   dialer                   listener
//     hi                  ->
//                         <- hello      see put_hello(); the dialer answers with its own, so that this is never the
//     hello               ->            message of a process that has ended
//
//   primary                  standby
//     snapshot            ->            one record of the contents
//     numbered, from 1:
//     whole               ->            the contents are complete
//     note                ->            a change
//     beat                ->            a heartbeat
//     in_sync             ->            the standby is in sync: epoch (8), lease (8), has a folder (1)
//     resign              ->            the primary stops; the standby takes over
//                         <- confirm    of that number and all below
//                         <- leave      the standby stops
#include "store/standby/roles.hpp"
#include "store/wire/record_socket.hpp"
#include "transport/hub.hpp"

namespace muster {

constexpr char store_hello_pair[] = "muster store pair 1";

enum class PairRecord : uint8_t {
    hi = 64,
    hello = 65,
    snapshot = 66,
    whole = 67,
    note = 68,
    beat = 69,
    in_sync = 70,
    resign = 71,
    confirm = 72,
    leave = 73
};

void put_hello(std::string &to, const PairHello &hello);
bool get_hello(std::string_view body, PairHello &hello);

class PairLink;

class PairLinkOwner {
  public:
    virtual bool link_says(PairLink &link, PairRecord what, uint64_t number, std::string_view body) = 0; // false: wrong
    virtual void link_was_read(PairLink &link) noexcept = 0;
    virtual void link_has_room(PairLink &link) noexcept = 0;
    virtual void link_ended(PairLink &link, const char *why) noexcept = 0; // not after shut()
    virtual Object &link_owner() noexcept = 0;

  protected:
    ~PairLinkOwner() = default;
};

// Loop thread.
class PairLink final : public Object, private Watch, private RecordReader::Taker {
  public:
    PairLink(Hub &hub, PairLinkOwner &owner, ProvedSocket socket, bool dialled);
    bool start() noexcept; // false: it could not be watched
    // Throws bad_alloc. flush() sends.
    void put(PairRecord what, uint64_t number, std::string_view body = {});
    void flush() noexcept;
    void shut() noexcept;
    bool over() const noexcept { return !fd_; }
    size_t unsent() const noexcept { return writer_.unsent(); }
    bool dialled() const noexcept { return dialled_; } // by this side
    const std::string &peer() const noexcept { return peer_; }
    const std::string &host() const noexcept { return host_; } // of the other
    bool on_this_host() const noexcept { return on_this_host_; }

  private:
    void on_events(uint32_t epoll_events) noexcept override;
    Object &watch_owner() noexcept override { return *this; }
    bool take_record(const StoreHead &head, std::string_view body) override;
    void end(const char *why) noexcept;
    void too_slow() noexcept { end("it has not said who it is"); }

    Hub &hub_;
    PairLinkOwner &owner_;
    const Ref<Object> owner_alive_;
    Fd fd_;
    RecordReader reader_;
    RecordWriter writer_;
    const std::string peer_;
    const bool dialled_;
    std::string host_;
    bool on_this_host_ = false, is_hello_received_ = false;
    Timer<PairLink, &PairLink::too_slow> hello_timer_{*this};
};

} // namespace muster
