// SPDX-License-Identifier: MIT
// Requests to the provider of a scheme, and the host's answers.
#include "rendezvous/served/served.hpp"

#include "store/backend/store.hpp"

namespace muster {

namespace {

constexpr size_t max_list_bytes = 1 << 20;

Result<Ref<RendezvousRequest>> find(Queue &queue, uint64_t id, bool answered = false) {
    return ServedRequests::of(queue.context()).find<RendezvousRequest>(&queue, id, answered);
}

} // namespace

// ---- requests -------------------------------------------------------------------------------------------------------

void RendezvousRequest::set_settings(const RendezvousSettings &settings) {
    settings_ = settings;
    settings_->queue.reset();
    const RendezvousSettings &from = *settings_;
    muster_rendezvous_config &to = config_;
    to.struct_size = sizeof to;
    to.flags = from.flags;
    to.run_id = from.run_id.data();
    to.run_id_bytes = from.run_id.size();
    to.url = from.url.data();
    to.url_bytes = from.url.size();
    to.address = from.address.data();
    to.address_bytes = from.address.size();
    to.order_key = from.order_key.data();
    to.order_key_bytes = from.order_key.size();
    to.min = from.min;
    to.max = from.max;
    to.rank = from.rank;
    to.keep_alive_attempts = 1;
    to.keep_alive_ns = from.keep_alive_ns;
    to.last_call_ns = from.last_call_ns;
}

void RendezvousRequest::write(muster_rendezvous_request &out) const noexcept {
    const bool opens = kind == MUSTER_RENDEZVOUS_REQUEST_OPEN;
    out = {};
    out.struct_size = sizeof out;
    out.kind = kind;
    out.member = opens ? id() : member;
    out.config = opens ? &config_ : nullptr;
    out.reason = reason.data();
    out.reason_bytes = reason.size();
    out.timeout_ns = timeout_ns;
}

void RendezvousRequest::end(const Error &why) noexcept {
    if (answer) return answer->set(provider().context(), why);
    caller->finished(*operation, why);
}

void RendezvousRequest::set_member(ServedMember *opened) noexcept {
    const std::lock_guard hold(lock_);
    opened_ = opened;
}

Ref<ServedMember> RendezvousRequest::opened_member() noexcept {
    const std::lock_guard hold(lock_);
    return opened_ != nullptr && opened_->try_retain() ? Ref<ServedMember>::adopt(opened_) : Ref<ServedMember>();
}

void RendezvousRequest::withdrawn(const Error &why, bool answered) noexcept {
    const Ref<ServedMember> opened = opened_member();
    if (!answered) end(why);
    if (opened) opened->lose(MUSTER_E_CLOSED, "it is no longer served");
}

RendezvousProvider::RendezvousProvider(Context &context, const std::string &scheme, Queue &queue,
                                       const muster_rendezvous_ops *ops, void *self, uint64_t tag)
    : Provided({.context = context,
                .kind = ServedKind::rendezvous,
                .name = scheme,
                .shown = "rendezvous " + scheme,
                .queue = &queue,
                .tag = tag,
                .self = self,
                .has_callbacks = ops != nullptr,
                .callbacks = callbacks_of(ops)}),
      ops_(ops != nullptr ? *ops : muster_rendezvous_ops{}) {}

void RendezvousProvider::call_for(ServedRequest &request) {
    muster_rendezvous_request what;
    static_cast<RendezvousRequest &>(request).write(what);
    ops_.request(self(), request.id(), &what);
}

// ---- answers --------------------------------------------------------------------------------------------------------

Result<void> RendezvousProvider::read(Queue &queue, uint64_t id, muster_rendezvous_request &out) {
    auto request = find(queue, id);
    if (!request) return request.error();
    (*request)->write(out);
    return {};
}

Result<void> RendezvousProvider::round(Queue &queue, uint64_t id, const muster_rendezvous_assignment &place) {
    auto found = find(queue, id);
    if (!found) return found.error();
    RendezvousRequest &request = **found;
    ServedRequests &requests = ServedRequests::of(queue.context());
    if (request.kind != MUSTER_RENDEZVOUS_REQUEST_JOIN)
        return Error::make(MUSTER_E_ARG, "request %llu is no join", static_cast<unsigned long long>(id));
    if (auto valid = request.caller->check(place); !valid) {
        if (!requests.answer(request)) return requests.stale(id);
        request.end(Error::make(MUSTER_E_PLUGIN, "rendezvous %s answers wrongly: %s", request.provider().name().c_str(),
                                valid.error().message));
        return valid.error();
    }
    auto made = request.caller->make_round(place);
    if (!made) return made.error();
    if (!requests.answer(request)) return requests.stale(id);
    request.caller->joined(*request.operation, std::move(*made));
    return {};
}

Result<void> RendezvousProvider::done(Queue &queue, uint64_t id, std::string_view text) {
    auto found = find(queue, id);
    if (!found) return found.error();
    RendezvousRequest &request = **found;
    ServedRequests &requests = ServedRequests::of(queue.context());
    if (request.kind == MUSTER_RENDEZVOUS_REQUEST_JOIN)
        return Error::make(MUSTER_E_ARG, "request %llu is a join: it is answered with a round, or fails",
                           static_cast<unsigned long long>(id));
    const size_t max_bytes = request.kind == MUSTER_RENDEZVOUS_REQUEST_LIST ? max_list_bytes : 0;
    if (text.size() > max_bytes)
        return Error::make(MUSTER_E_ARG, "a text of %zu bytes, at most %zu", text.size(), max_bytes);
    std::string lines(text);
    const bool opens = request.kind == MUSTER_RENDEZVOUS_REQUEST_OPEN;
    if (!(opens ? requests.answer_and_keep(request) : requests.answer(request))) return requests.stale(id);
    if (request.answer)
        request.answer->set(queue.context(), std::move(lines));
    else
        request.caller->finished(*request.operation, Error());
    return {};
}

Result<void> RendezvousProvider::fail(Queue &queue, uint64_t id, Status status, std::string_view text) {
    auto found = find(queue, id);
    if (!found) return found.error();
    if (text.empty()) text = muster_status_text(status);
    ServedRequests &requests = ServedRequests::of(queue.context());
    if (!requests.answer(**found)) return requests.stale(id);
    (*found)->end(Error::make(status, "%.*s", static_cast<int>(text.size()), text.data()));
    return {};
}

Result<void> RendezvousProvider::notify(Queue &queue, uint64_t member, const muster_rendezvous_event &event) {
    auto opening = find(queue, member, true);
    const Ref<ServedMember> found = opening ? (*opening)->opened_member() : Ref<ServedMember>();
    if (!found)
        return Error::make(MUSTER_E_STALE, "there is no member %llu, or not any more",
                           static_cast<unsigned long long>(member));
    return found->notify(event);
}

} // namespace muster
