// SPDX-License-Identifier: MIT
#include "plugin/pending_sessions.hpp"

namespace muster {

namespace {

constexpr int64_t report_ns = 1'000'000'000; // between log records about displaced connections

std::string_view without_port(std::string_view peer) noexcept {
    const size_t colon = peer.rfind(':');
    const bool port = colon != std::string_view::npos && colon + 1 != peer.size() &&
                      peer.find_first_not_of("0123456789", colon + 1) == std::string_view::npos;
    return port ? peer.substr(0, colon) : peer;
}

} // namespace

PendingSession::PendingSession(std::string_view peer) : origin_(without_port(peer)) {}

int64_t PendingSession::since() const noexcept {
    const Session *const session = pending_session();
    return session != nullptr ? session->started_ns() : 0;
}

bool PendingSession::has_hello() const noexcept {
    const Session *const session = pending_session();
    return session != nullptr && session->has_hello();
}

bool PendingSession::lingers() const noexcept {
    const Session *const session = pending_session();
    return session == nullptr || session->refused();
}

void PendingSession::displace() noexcept {
    if (Session *const session = pending_session()) session->displace();
}

PendingSessions::PendingSessions(Context &context, Ref<ListenerCore> core, std::string where)
    : context_(context), hub_(Hub::of(context)), core_(std::move(core)), where_(std::move(where)) {}

void PendingSessions::add(PendingSession &session) {
    pending_.add(session);
    if (pending_.count() > core_->max_unauthenticated()) make_place_.post(context_);
}

void PendingSessions::remove(PendingSession &session) noexcept {
    if (PendingHandshakes::holds(session)) pending_.remove(session);
}

void PendingSessions::make_place() noexcept {
    while (pending_.count() > core_->max_unauthenticated()) {
        const int64_t now = now_ns();
        PendingHandshake *const one = pending_.displaceable(core_->max_unauthenticated(), now);
        if (one == nullptr) return hub_.start_timer(again_, now + PendingHandshakes::hello_ns);
        const Ref<Object> alive(&one->pending_object());
        if (displaced_++ == 0) hub_.start_timer(report_, now + report_ns);
        one->displace(); // it leaves the list when its session has ended
        if (PendingHandshakes::holds(*one)) pending_.remove(*one);
    }
}

void PendingSessions::report() noexcept {
    context_.log(MUSTER_LOG_WARN,
                 "%s: %llu connections that had not proved themselves made place for newer ones within a second",
                 where_.c_str(), static_cast<unsigned long long>(std::exchange(displaced_, 0)));
}

} // namespace muster
