// SPDX-License-Identifier: MIT
#pragma once
// The sessions of a listener whose bytes a plug-in or the host transports, until each has proved the secret and opened
// its stream. Such a listener has no queue of the kernel in which new connections could wait: they are pushed. So it
// accepts some beyond the limit, and the policy of PendingHandshakes ends those above the limit. That is done in a turn
// of the loop of its own, as ending a session calls the plug-in, which may be in the middle of a call to the library.
#include "plugin/session.hpp"
#include "transport/pending_handshakes.hpp"

#include <algorithm>

namespace muster {

class PendingSession : public PendingHandshake {
  public:
    explicit PendingSession(std::string_view peer); // as the plug-in or the host names it
    int64_t since() const noexcept override;
    bool has_hello() const noexcept override;
    bool lingers() const noexcept override;
    const std::string &origin() const noexcept override { return origin_; }
    void displace() noexcept override;

  protected:
    ~PendingSession() = default;
    virtual Session *pending_session() const noexcept = 0; // NULL: it is over

  private:
    const std::string origin_; // the peer without a port
};

// Loop thread only, unless a member says otherwise.
class PendingSessions final : public Object {
  public:
    // `where`: for log records.
    PendingSessions(Context &context, Ref<ListenerCore> core, std::string where);
    bool full() const noexcept { return pending_.count() >= limit(); }
    uint64_t limit() const noexcept { // at any time; any thread
        const uint64_t limit = core_->max_unauthenticated();
        return limit + std::max<uint64_t>(limit, min_beyond);
    }
    void add(PendingSession &session);             // before it is started; throws bad_alloc
    void remove(PendingSession &session) noexcept; // if it is in the list

  private:
    // Those of a quarter of a second at 1,000 per second: the loop may be late.
    static constexpr uint32_t min_beyond = 256;
    void make_place() noexcept;
    void report() noexcept;

    Context &context_;
    Hub &hub_;
    const Ref<ListenerCore> core_;
    const std::string where_;
    PendingHandshakes pending_;
    uint64_t displaced_ = 0; // not reported yet
    PostedTask<PendingSessions, &PendingSessions::make_place> make_place_{*this};
    Timer<PendingSessions, &PendingSessions::make_place> again_{*this};
    Timer<PendingSessions, &PendingSessions::report> report_{*this};
};

} // namespace muster
