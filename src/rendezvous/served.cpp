// SPDX-License-Identifier: MIT
// Requests on their way to whoever serves a scheme, what is answered, and the end of a scheme.
#include "rendezvous/served.hpp"

#include "queue/refusal.hpp"
#include "store/store.hpp"

#include <algorithm>

namespace muster {

namespace {

constexpr size_t list_max = 1 << 20;

Error over(uint64_t id) noexcept {
    return Error::make(MUSTER_E_STALE, "request %llu is over, or never was", static_cast<unsigned long long>(id));
}

} // namespace

// ---- one who waits ------------------------------------------------------------------------------------------------

void ServedWait::done(Context &context, const Error &how, std::string text) noexcept {
    {
        const std::lock_guard hold(lock_);
        over_ = true;
        how_ = how;
        text_ = std::move(text);
    }
    context.notify(signal_);
}

Result<std::string> ServedWait::wait(Context &context, Deadline &deadline, uint64_t id) {
    Deadline endless(-1);
    Deadline *limit = &deadline;
    for (;;) {
        const uint32_t seen = signal_.seen();
        {
            const std::lock_guard hold(lock_);
            if (over_) {
                if (how_.status != MUSTER_OK) return how_;
                return std::move(text_);
            }
        }
        const Status status = context.sleep(signal_, seen, *limit);
        if (status == MUSTER_OK) continue;
        if (ServedRendezvous::of(context).drop(id)) return Error::make(status, "no answer in time");
        limit = &endless; // it is being answered
    }
}

// ---- one request and one scheme -------------------------------------------------------------------------------------

void RendezvousRequest::tell(muster_rendezvous_request &out) const noexcept {
    out = {};
    out.struct_size = sizeof out;
    out.kind = kind;
    out.member = kind == MUSTER_RENDEZVOUS_REQUEST_OPEN ? id : member;
    out.config = kind == MUSTER_RENDEZVOUS_REQUEST_OPEN ? &config_ : nullptr;
    out.reason = reason.data();
    out.reason_bytes = reason.size();
    out.timeout_ns = timeout_ns;
}

void RendezvousRequest::end(const Error &why) noexcept {
    if (waits) return waits->done(scheme_->context(), why);
    asker->finished(*operation, why);
}

RendezvousScheme::RendezvousScheme(Context &context, std::string name, Queue &queue, const muster_rendezvous_ops *ops,
                                   void *self, uint64_t tag)
    : context_(context), name_(std::move(name)), queue_(&queue), with_ops_(ops != nullptr), self_(self), tag_(tag),
      registrant_(pthread_self()) {
    if (ops != nullptr) ops_ = *ops;
}

bool RendezvousScheme::would_deadlock() const noexcept {
    return queue_->served_here(registrant_);
}

bool RendezvousScheme::reserve(int slots) noexcept {
    for (int i = 0; i < slots; i++) {
        if (queue_->reserve()) continue;
        unreserve(i);
        return false;
    }
    return true;
}

Error RendezvousScheme::why_refused() const {
    return muster::why_refused(*queue_, ("serve " + name_ + ": the queue of requests").c_str());
}

void RendezvousScheme::unreserve(int slots) noexcept {
    for (int i = 0; i < slots; i++) queue_->unreserve();
}

void RendezvousScheme::say(int32_t kind, RendezvousRequest *about) noexcept {
    Entry entry;
    entry.completion.kind = kind;
    entry.completion.request = about != nullptr ? about->id : 0;
    entry.completion.tag = tag_;
    if (with_ops_) entry.table = this;
    entry.asker = about != nullptr ? Ref<Object>(about) : Ref<Object>(this); // each keeps the table
    queue_->complete(std::move(entry));
}

// On the thread that dispatches.
void RendezvousScheme::serve(const muster_completion &entry) {
    const uint64_t id = entry.request;
    switch (entry.kind) {
    case MUSTER_REQUEST_RENDEZVOUS: {
        const Ref<RendezvousRequest> request = ServedRendezvous::of(context_).heard(id);
        if (!request) return; // over before anybody has heard of it
        muster_rendezvous_request what;
        request->tell(what);
        return ops_.request(self_, id, &what);
    }
    case MUSTER_REQUEST_CANCEL:
        return ops_.cancel != nullptr ? ops_.cancel(self_, id) : void();
    default:
        if (id != 0) return ops_.close != nullptr ? ops_.close(self_, id) : void();
        if (ops_.destroy != nullptr) ops_.destroy(self_);
    }
}

// ---- the schemes of a context ---------------------------------------------------------------------------------------

ServedRendezvous &ServedRendezvous::of(Context &context) {
    static const char key = 0;
    return static_cast<ServedRendezvous &>(context.part(
        &key, [](Context &c) -> std::unique_ptr<ContextPart> { return std::make_unique<ServedRendezvous>(c); }));
}

Result<void> ServedRendezvous::add(Ref<RendezvousScheme> scheme) {
    const char *const name = scheme->name().c_str();
    if (context_.closed()) return Error::make(MUSTER_E_CLOSED, "serve %s: the context is closed", name);
    if (scheme->queue().closed()) return Error::make(MUSTER_E_CLOSED, "serve %s: the queue is closed", name);
    const int last_word = scheme->has_table() ? 1 : 0;
    if (!scheme->reserve(last_word)) return scheme->why_refused();
    struct Reserved {
        RendezvousScheme *scheme;
        int slots;
        ~Reserved() { scheme->unreserve(slots); }
    } reserved{scheme.get(), last_word};
    scheme->queue().set_server(*this);
    const std::lock_guard hold(lock_);
    if (schemes_.count(scheme->name()) != 0) return Error::make(MUSTER_E_EXISTS, "serve %s: it is taken", name);
    schemes_.emplace(scheme->name(), scheme);
    reserved.slots = 0;
    return {};
}

Ref<RendezvousScheme> ServedRendezvous::find(const std::string &scheme) {
    const std::lock_guard hold(lock_);
    const auto found = schemes_.find(scheme);
    return found == schemes_.end() ? Ref<RendezvousScheme>() : found->second;
}

Result<void> ServedRendezvous::send(RendezvousRequest &request) {
    RendezvousScheme &scheme = request.scheme();
    if (request.settings) {
        const RendezvousSettings &from = *request.settings;
        muster_rendezvous_config &to = request.config_;
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
    if (!scheme.reserve(2)) return scheme.why_refused();
    bool withdrawn = false;
    try {
        const std::lock_guard hold(lock_);
        withdrawn = scheme.withdrawn_;
        if (!withdrawn) {
            request.id = next_;
            requests_.emplace(next_, Ref<RendezvousRequest>(&request));
            next_++;
            scheme.under_way_++;
        }
    } catch (...) {
        scheme.unreserve(2);
        throw;
    }
    if (withdrawn) {
        scheme.unreserve(2);
        return Error::make(MUSTER_E_CLOSED, "rendezvous %s: nobody serves it any more", scheme.name().c_str());
    }
    scheme.say(MUSTER_REQUEST_RENDEZVOUS, &request);
    return {};
}

// Its callback is about to run. Empty: it is over.
Ref<RendezvousRequest> ServedRendezvous::heard(uint64_t id) noexcept {
    const std::lock_guard hold(lock_);
    const auto found = requests_.find(id);
    if (found == requests_.end()) return {};
    found->second->seen_ = true;
    return found->second;
}

// The last word to the host about a request that was taken out of the table.
void ServedRendezvous::part_with(RendezvousRequest &request, int32_t last_word) noexcept {
    RendezvousScheme &scheme = request.scheme();
    if (last_word == 0 || (scheme.has_table() && !request.seen_)) // it will not hear of it
        scheme.unreserve(1);
    else
        scheme.say(last_word, &request);
    leave(scheme);
}

void ServedRendezvous::leave(RendezvousScheme &scheme) noexcept {
    bool end = false;
    {
        const std::lock_guard hold(lock_);
        end = --scheme.under_way_ == 0 && scheme.withdrawn_;
    }
    if (end && scheme.has_table()) scheme.say(MUSTER_REQUEST_CLOSE, nullptr);
}

bool ServedRendezvous::drop(uint64_t id) noexcept {
    Ref<RendezvousRequest> request;
    {
        const std::lock_guard hold(lock_);
        const auto found = requests_.find(id);
        if (found == requests_.end() || found->second->answered_) return false;
        request = std::move(found->second);
        requests_.erase(found);
    }
    part_with(*request, MUSTER_REQUEST_CANCEL);
    return true;
}

void ServedRendezvous::close_member(RendezvousRequest &open) noexcept {
    const Ref<RendezvousRequest> alive(&open);
    {
        const std::lock_guard hold(lock_);
        open.home_ = nullptr;
        if (requests_.erase(open.id) == 0) return; // its scheme was taken back
    }
    part_with(open, MUSTER_REQUEST_CLOSE);
}

Ref<ServedMember> ServedRendezvous::home_of(RendezvousRequest &open) noexcept {
    return open.home_ != nullptr && open.home_->try_retain() ? Ref<ServedMember>::adopt(open.home_)
                                                             : Ref<ServedMember>();
}

// ---- the host's words -----------------------------------------------------------------------------------------------

Result<Ref<RendezvousRequest>> ServedRendezvous::look(Queue &queue, uint64_t id) {
    const std::lock_guard hold(lock_);
    const auto found = requests_.find(id);
    if (found == requests_.end() || &found->second->scheme().queue() != &queue || found->second->answered_)
        return over(id);
    return found->second;
}

// It is answered now. False: somebody else was first.
bool ServedRendezvous::take(RendezvousRequest &request) noexcept {
    {
        const std::lock_guard hold(lock_);
        const auto found = requests_.find(request.id);
        if (found == requests_.end() || found->second->answered_) return false;
        request.answered_ = request.seen_ = true;
        if (request.kind == MUSTER_RENDEZVOUS_REQUEST_OPEN) return true; // and stays, as the member
        requests_.erase(found);
    }
    part_with(request, 0);
    return true;
}

Result<void> ServedRendezvous::read(Queue &queue, uint64_t id, muster_rendezvous_request &out) {
    auto request = look(queue, id);
    if (!request) return request.error();
    (*request)->tell(out);
    return {};
}

Result<void> ServedRendezvous::round(Queue &queue, uint64_t id, const muster_rendezvous_assignment &place) {
    auto found = look(queue, id);
    if (!found) return found.error();
    RendezvousRequest &request = **found;
    if (request.kind != MUSTER_RENDEZVOUS_REQUEST_JOIN)
        return Error::make(MUSTER_E_ARG, "request %llu is no join", static_cast<unsigned long long>(id));
    if (auto can_be = request.asker->check(place); !can_be) {
        if (!take(request)) return over(id);
        request.end(Error::make(MUSTER_E_PLUGIN, "rendezvous %s answers wrongly: %s", request.scheme().name().c_str(),
                                can_be.error().message));
        return can_be.error();
    }
    auto made = request.asker->make_round(place);
    if (!made) return made.error();
    if (!take(request)) return over(id);
    request.asker->joined(*request.operation, std::move(*made));
    return {};
}

Result<void> ServedRendezvous::done(Queue &queue, uint64_t id, std::string_view text) {
    auto found = look(queue, id);
    if (!found) return found.error();
    RendezvousRequest &request = **found;
    if (request.kind == MUSTER_RENDEZVOUS_REQUEST_JOIN)
        return Error::make(MUSTER_E_ARG, "request %llu is a join: it is answered with a round, or fails",
                           static_cast<unsigned long long>(id));
    const size_t most = request.kind == MUSTER_RENDEZVOUS_REQUEST_LIST ? list_max : 0;
    if (text.size() > most) return Error::make(MUSTER_E_ARG, "a text of %zu bytes, at most %zu", text.size(), most);
    std::string lines(text);
    if (!take(request)) return over(id);
    if (request.waits)
        request.waits->done(context_, Error(), std::move(lines));
    else
        request.asker->finished(*request.operation, Error());
    return {};
}

Result<void> ServedRendezvous::fail(Queue &queue, uint64_t id, Status status, std::string_view text) {
    auto found = look(queue, id);
    if (!found) return found.error();
    RendezvousRequest &request = **found;
    if (text.empty()) text = muster_status_text(status);
    const Error why = Error::make(status, "%.*s", static_cast<int>(text.size()), text.data());
    bool taken = false;
    {
        const std::lock_guard hold(lock_);
        taken = requests_.count(id) != 0 && !request.answered_;
        if (taken) requests_.erase(id); // an OPEN, too
        if (taken) request.answered_ = request.seen_ = true;
    }
    if (!taken) return over(id);
    part_with(request, 0);
    request.end(why);
    return {};
}

Result<void> ServedRendezvous::tell(Queue &queue, uint64_t member, const muster_rendezvous_event &event) {
    Ref<ServedMember> home;
    {
        const std::lock_guard hold(lock_);
        const auto found = requests_.find(member);
        if (found != requests_.end() && &found->second->scheme().queue() == &queue && found->second->answered_)
            home = home_of(*found->second);
    }
    if (!home)
        return Error::make(MUSTER_E_STALE, "there is no member %llu, or not any more",
                           static_cast<unsigned long long>(member));
    return home->told(event);
}

// ---- the end --------------------------------------------------------------------------------------------------------

Result<void> ServedRendezvous::withdraw(const std::string &scheme) {
    const Ref<RendezvousScheme> found = find(scheme);
    if (!found)
        return Error::make(MUSTER_E_NOT_FOUND, "withdraw %s: the host serves no such rendezvous", scheme.c_str());
    withdraw(*found);
    return {};
}

void ServedRendezvous::withdraw(RendezvousScheme &scheme) noexcept {
    const Ref<RendezvousScheme> alive(&scheme);
    {
        const std::lock_guard hold(lock_);
        if (scheme.withdrawn_) return;
        scheme.withdrawn_ = true;
        scheme.under_way_++; // this walk
        const auto found = schemes_.find(scheme.name());
        if (found != schemes_.end() && found->second.get() == &scheme) schemes_.erase(found);
    }
    const Error why = Error::make(MUSTER_E_CLOSED, "rendezvous %s: nobody serves it any more", scheme.name().c_str());
    for (;;) {
        Ref<RendezvousRequest> request;
        Ref<ServedMember> home;
        bool answered = false;
        {
            const std::lock_guard hold(lock_);
            const auto found = std::find_if(requests_.begin(), requests_.end(),
                                            [&](const auto &one) { return &one.second->scheme() == &scheme; });
            if (found == requests_.end()) break;
            request = std::move(found->second);
            requests_.erase(found);
            home = home_of(*request);
            answered = request->answered_;
        }
        part_with(*request, answered ? MUSTER_REQUEST_CLOSE : MUSTER_REQUEST_CANCEL);
        if (!answered) request->end(why);
        if (home) home->lose(MUSTER_E_CLOSED, "nobody serves it any more");
    }
    leave(scheme);
}

void ServedRendezvous::queue_released(Queue &queue) noexcept {
    for (;;) {
        Ref<RendezvousScheme> scheme;
        {
            const std::lock_guard hold(lock_);
            const auto found = std::find_if(schemes_.begin(), schemes_.end(),
                                            [&](const auto &one) { return &one.second->queue() == &queue; });
            if (found == schemes_.end()) return;
            scheme = found->second;
        }
        withdraw(*scheme);
    }
}

void ServedRendezvous::close() noexcept {
    for (;;) {
        Ref<RendezvousScheme> scheme;
        {
            const std::lock_guard hold(lock_);
            if (schemes_.empty()) return;
            scheme = schemes_.begin()->second;
        }
        withdraw(*scheme);
    }
}

} // namespace muster
