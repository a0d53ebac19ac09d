// SPDX-License-Identifier: MIT
#pragma once
// A connection that the host transports: a session sends into one end of a duplex; the host pumps its other end.
#include "base/list.hpp"
#include "plugin/pending_sessions.hpp"
#include "plugin/session.hpp"

namespace muster {

class ServedTransport;
class ServedListener;

// Loop thread only, but for the wake-ups.
class Pump final : public Channel, public PendingSession, private Waker, private Side, private SessionOwner {
  public:
    Pump(ServedTransport &transport, uint64_t request, Ref<ServedListener> listener, std::string requested,
         SessionConfig config);

    // The host has its end: bytes flow now.
    void attach(Ref<Duplex> duplex) noexcept;
    Session &session() noexcept { return *session_; }
    const std::string &requested() const noexcept { return requested_; } // the address, of a dial
    // The session has ended in order, and the host has not closed its end yet: only that is awaited.
    bool is_leaving() const noexcept { return leaving_; }

    size_t room() noexcept override;
    Status send(const void *data, size_t size, size_t &taken) noexcept override;
    void turn() noexcept override;
    void resume() noexcept override { session_->schedule(); }
    void close(bool orderly) noexcept override;
    bool would_deadlock() const noexcept override { return user_->here(); }

    // The host's end of a new duplex; any thread. attach() makes the other end that of the session.
    Ref<Stream> make_end(const Ref<Duplex> &duplex);
    // The host's answer, once. Any thread; the table of requests ensures that there is no other.
    void attach_later(Ref<Duplex> duplex) noexcept;
    void fail_later(const Error &why) noexcept;
    void fail(const Error &why) noexcept {
        if (session_) session_->end_now(why);
    }
    void wind_down() noexcept {
        if (session_) session_->wind_down();
    }
    void leave() noexcept; // does not wait for the host any more

  private:
    void wake_reader() noexcept override { schedule(); }
    void wake_writer() noexcept override { schedule(); }
    void ended() noexcept override { schedule(); }
    void peer_events(uint32_t) noexcept override {}
    void schedule() noexcept;
    Object &pending_object() noexcept override { return *this; }
    Session *pending_session() const noexcept override { return session_.get(); }
    void proved_or_over() noexcept;
    void session_proved(Session &session) override;
    SessionListener session_listener(Session &session, std::string_view service) override;
    void session_over(Session &session, const Error &why) override;

    void take_answer() noexcept; // loop thread
    void host_closed() noexcept; // loop thread: has it?
    // In place of the session's wake-ups once that has ended in order.
    struct HostCloses final : Waker {
        explicit HostCloses(Pump &pump) noexcept : pump_(pump) {}
        void wake_reader() noexcept override {}
        void wake_writer() noexcept override;
        Pump &pump_;
    };

    const Ref<ServedTransport> transport_;
    const uint64_t request_;
    PostedTask<Pump, &Pump::take_answer> answered_{*this};
    PostedTask<Pump, &Pump::host_closed> host_closed_{*this};
    HostCloses host_closes_{*this};
    Ref<Duplex> given_; // these two are written before the task is posted
    Error refused_;
    const Ref<ServedListener> listener_; // of an incoming connection
    const Ref<StreamUser> user_ = make_ref<StreamUser>();
    const std::string peer_, requested_;
    Ref<Session> session_;
    Ref<Duplex> duplex_;
    bool full_ = false, unproved_ = false, leaving_ = false;
};

} // namespace muster
