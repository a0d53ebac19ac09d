// SPDX-License-Identifier: MIT
#include "forwarder/forwarder.hpp"

#include "context/host_call.hpp"

#include <algorithm>

namespace muster {

namespace {
constexpr uint32_t own_queue_capacity = 1 << 22;
constexpr size_t max_hooks = 1024;
constexpr int messages_per_turn = 256; // then the loop does other work

bool has_wildcard(uint64_t address) noexcept {
    int64_t group = 0, id = 0, kind = 0;
    muster_message_address_parts(address, &group, &id, &kind);
    return group == MUSTER_MESSAGE_ANY || id == MUSTER_MESSAGE_ANY || kind == MUSTER_MESSAGE_ANY;
}
} // namespace

// ---- the address table ----------------------------------------------------------------------------------------------

bool RouteTable::add(uint64_t pattern, uint64_t next_hop) {
    const bool is_full = exact_.size() + patterns_.size() >= max_routes;
    if (!has_wildcard(pattern)) {
        if (is_full && exact_.count(pattern) == 0) return false;
        exact_[pattern] = next_hop;
        return true;
    }
    for (Pattern &one : patterns_) {
        if (one.pattern != pattern) continue;
        one.next_hop = next_hop;
        return true;
    }
    if (!is_full) patterns_.push_back({pattern, next_hop});
    return !is_full;
}

bool RouteTable::remove(uint64_t pattern) noexcept {
    if (exact_.erase(pattern) != 0) return true;
    const auto same = [&](const Pattern &one) { return one.pattern == pattern; };
    const auto found = std::find_if(patterns_.begin(), patterns_.end(), same);
    if (found == patterns_.end()) return false;
    patterns_.erase(found);
    return true;
}

uint64_t RouteTable::exact(uint64_t destination) const noexcept {
    const auto found = exact_.find(destination);
    return found == exact_.end() ? 0 : found->second;
}

uint64_t RouteTable::matching(uint64_t destination) const noexcept {
    for (const Pattern &one : patterns_)
        if (muster_message_address_matches(one.pattern, destination) != 0) return one.next_hop;
    return 0;
}

// ---- the beginning and the end --------------------------------------------------------------------------------------

Forwarder::~Forwarder() {
    if (forked()) return;
    own_->set_wake(nullptr, nullptr);
    if (settings.queue) settings.queue->detach(*this);
}

Result<Ref<Forwarder>> Forwarder::make(Context &context, Settings settings, Socket::Settings socket) {
    auto own = Queue::create(context, own_queue_capacity);
    if (!own) return own.error();
    auto made = Ref<Forwarder>::adopt(new Forwarder(context, std::move(settings), std::move(*own)));
    if (made->settings.queue) made->settings.queue->attach(*made, made->settings.tag);
    socket.queue = made->own_;
    auto router = Socket::make(context, std::move(socket));
    if (!router) return router.error();
    made->socket_ = std::move(*router);
    const auto wake = [](void *self) noexcept -> int {
        static_cast<Forwarder *>(self)->turn_.post(static_cast<Forwarder *>(self)->context());
        return 0;
    };
    if (const Status status = made->own_->set_wake(wake, made.get()); status != MUSTER_OK) {
        made->socket_.detach()->host_release();
        return Error::from_status(status);
    }
    return made;
}

Status Forwarder::close(Deadline &deadline) {
    const Ref<Forwarder> self(this);
    {
        const std::lock_guard hold(work_lock_);
        if (std::exchange(closed_, true)) return MUSTER_E_CLOSED;
    }
    uint64_t before = 0;
    {
        const std::lock_guard hold(lock_);
        before = stats_.undelivered;
    }
    const auto is_settled = [&]() -> Status { return waiting_.empty() ? MUSTER_OK : MUSTER_AGAIN; };
    Status status = context_->wait(settled_, deadline, work_lock_, is_settled);
    end(deadline, status);
    const std::lock_guard hold(lock_);
    return status == MUSTER_OK && stats_.undelivered != before ? MUSTER_E_PEER : status;
}

// It is closed. Messages that have not left are returned.
void Forwarder::end(Deadline &deadline, Status &status) noexcept {
    const Status closed = socket_->close(deadline);
    if (status == MUSTER_OK) status = closed == MUSTER_E_CLOSED ? MUSTER_OK : closed;
    if (status == MUSTER_AGAIN) status = MUSTER_TIMEOUT;
    decltype(waiting_) left;
    {
        const std::lock_guard hold(work_lock_);
        left.swap(waiting_);
        waiting_count_ = 0;
    }
    const Error why = Error::make(MUSTER_E_CLOSED, "the forwarder is closed");
    for (auto &[place, messages] : left)
        for (Waiting &one : messages) come_back(std::move(one.message), why);
    turn(); // what the socket has returned
    own_->set_wake(nullptr, nullptr);
}

void Forwarder::host_release() noexcept {
    if (!forked()) {
        context_->host_calls().end_all_on(*this);
        bool open = false;
        {
            const std::lock_guard hold(work_lock_);
            open = !std::exchange(closed_, true);
        }
        Deadline once(0);
        Status status = MUSTER_OK;
        if (open) end(once, status);
        socket_.detach()->host_release();
    }
    release();
}

// ---- calls of the host ----------------------------------------------------------------------------------------------

Status Forwarder::add_route(uint64_t pattern, uint64_t next_hop) {
    if (pattern == 0 || next_hop == 0) return MUSTER_E_ARG;
    const std::lock_guard hold(lock_);
    return routes_.add(pattern, next_hop) ? MUSTER_OK : MUSTER_E_LIMIT;
}

Status Forwarder::remove_route(uint64_t pattern) noexcept {
    const std::lock_guard hold(lock_);
    return routes_.remove(pattern) ? MUSTER_OK : MUSTER_E_NOT_FOUND;
}

Status Forwarder::set_hook(uint32_t type, MessageQueue *into) {
    if (into != nullptr && &into->context() != &context()) return MUSTER_E_ARG;
    const std::lock_guard hold(lock_);
    if (into == nullptr) {
        hooks_.erase(type);
        return MUSTER_OK;
    }
    if (hooks_.size() >= max_hooks && hooks_.count(type) == 0) return MUSTER_E_LIMIT;
    hooks_[type] = Ref<MessageQueue>(into);
    return MUSTER_OK;
}

Result<void> Forwarder::send(Message &message, Deadline &deadline) {
    if (message.header.destination == 0) return Error::make(MUSTER_E_ARG, "the message has no destination");
    uint64_t hop = 0;
    {
        const std::lock_guard hold(lock_);
        hop = next_hop(message.header.destination);
    }
    auto sent = socket_->send(message, deadline, hop);
    if (sent && sent.status() == MUSTER_OK) {
        const std::lock_guard hold(lock_);
        stats_.forwarded++;
    }
    return sent;
}

void Forwarder::stats(muster_forwarder_stats &out) noexcept {
    muster_socket_stats connections;
    socket_->stats(connections);
    const std::lock_guard hold_work(work_lock_);
    const std::lock_guard hold(lock_);
    out = stats_;
    out.peers = connections.peers;
    out.waiting = waiting_count_;
}

// ---- forwarding: the loop thread, and the thread that closes --------------------------------------------------------

void Forwarder::turn() noexcept {
    const Ref<Forwarder> self(this);
    for (;;) {
        muster_completion entry;
        Error error;
        Deadline once(0);
        if (own_->next(once, &entry, &error) != MUSTER_OK) break; // it is armed again
        handle(entry, error);
    }
    bool settled = false, again = false;
    {
        const std::lock_guard hold(work_lock_);
        retry();
        again = receive_some();
        settled = waiting_.empty();
    }
    if (again) turn_.post(*context_);
    if (settled) context_->notify(settled_);
}

void Forwarder::handle(muster_completion &entry, const Error &error) noexcept {
    if (entry.kind == MUSTER_DONE_MESSAGE) {
        Error why = error;
        why.status = entry.status;
        return come_back(Ref<Message>::adopt(unwrap(static_cast<muster_message *>(entry.object))), why);
    }
    if (entry.kind != MUSTER_EVENT_READY) return;
    if (entry.events & MUSTER_SOCKET_EVENT && settings.queue) settings.queue->raise(*this, MUSTER_SOCKET_EVENT);
    if (entry.events & MUSTER_SOCKET_RECEIVABLE) {
        const std::lock_guard hold(work_lock_);
        has_more_ = true;
    }
}

// A message queue of the host has room again.
void Forwarder::room_made() noexcept {
    turn_.post(*context_);
}

// Under work_lock_. True: the socket may have more, and there is room for it.
bool Forwarder::receive_some() noexcept {
    for (int i = 0; has_more_ && !closed_ && waiting_count_ < settings.max_waiting; i++) {
        if (i == messages_per_turn) return true;
        Deadline once(0);
        Ref<Message> message;
        const Status status = socket_->receive(once, message);
        if (status == MUSTER_OK)
            accept(std::move(message));
        else if (status == MUSTER_E_NOMEM)
            return false; // goes on with the next event
        else
            has_more_ = false; // AGAIN: it is reported; otherwise it is the end
    }
    return false;
}

// Under work_lock_.
void Forwarder::accept(Ref<Message> message) noexcept {
    Waiting one;
    one.message = std::move(message);
    Error why;
    try {
        if (place(one, why)) {
            const auto before = waiting_.find(place_of(one));
            if (before != waiting_.end()) {
                before->second.push_back(std::move(one));
                waiting_count_++;
                return;
            }
            const Status status = pass(one, why);
            if (status == MUSTER_OK) return;
            if (status == MUSTER_AGAIN) {
                const auto waits = waiting_.try_emplace(place_of(one)).first;
                waits->second.push_back(std::move(one));
                waiting_count_++;
                return;
            }
        }
    } catch (const std::bad_alloc &) {
        why = Error::from_status(MUSTER_E_NOMEM);
        const auto empty = waiting_.find(place_of(one));
        if (empty != waiting_.end() && empty->second.empty()) waiting_.erase(empty);
    }
    come_back(std::move(one.message), why);
}

// Where does it go? False: nowhere.
bool Forwarder::place(Waiting &message, Error &why) {
    muster_message_header &header = message.message->header;
    const std::lock_guard hold(lock_);
    if (const auto found = hooks_.find(header.type); found != hooks_.end()) {
        message.queue = found->second;
    } else if (header.destination == 0 || header.destination == socket_->settings.hello.address) {
        message.queue = settings.inbox;
        if (!message.queue) why = Error::make(MUSTER_E_NOT_FOUND, "nothing takes the messages for the forwarder");
    } else if (header.hops >= settings.max_hops) {
        stats_.hop_limit++;
        why = Error::make(MUSTER_E_LIMIT, "the message has passed %u forwarders, as many as allowed", header.hops);
    } else {
        header.hops++;
        message.next_hop = next_hop(header.destination);
    }
    return why.status == MUSTER_OK;
}

// Under lock_.
uint64_t Forwarder::next_hop(uint64_t destination) noexcept {
    if (const uint64_t hop = routes_.exact(destination); hop != 0) return hop;
    if (socket_->has_route(destination)) return destination;
    const uint64_t hop = routes_.matching(destination);
    return hop != 0 ? hop : destination;
}

// OK: it is gone. AGAIN: no room; turn() follows when there is. Otherwise it is returned.
Status Forwarder::pass(Waiting &message, Error &why) noexcept {
    Deadline once(0);
    Status status = MUSTER_OK;
    if (message.queue) {
        status = message.queue->push(*message.message, once, this);
        if (status < 0) why = Error::make(status, "the message queue of the host is closed");
    } else {
        try {
            auto sent = socket_->send(*message.message, once, message.next_hop);
            status = sent ? sent.status() : sent.error().status;
            if (!sent) why = sent.error();
        } catch (const std::bad_alloc &) {
            why = Error::from_status(status = MUSTER_E_NOMEM);
        }
    }
    if (status != MUSTER_OK) return status;
    (void)message.message.detach(); // it belongs to the next hop
    const std::lock_guard hold(lock_);
    (message.queue ? stats_.delivered : stats_.forwarded)++;
    return status;
}

// Under work_lock_. Those with the same next hop stay in order.
void Forwarder::retry() noexcept {
    for (auto at = waiting_.begin(); at != waiting_.end();) {
        std::deque<Waiting> &messages = at->second;
        Status status = MUSTER_OK;
        while (!messages.empty()) {
            Error why;
            status = pass(messages.front(), why);
            if (status == MUSTER_AGAIN) break;
            if (status < 0) come_back(std::move(messages.front().message), why);
            messages.pop_front();
            waiting_count_--;
        }
        at = status == MUSTER_AGAIN ? std::next(at) : waiting_.erase(at);
    }
}

void Forwarder::come_back(Ref<Message> message, const Error &why) noexcept {
    {
        const std::lock_guard hold(lock_);
        stats_.undelivered++;
    }
    Entry entry;
    entry.completion.kind = MUSTER_DONE_MESSAGE;
    entry.completion.status = why.status;
    entry.completion.tag = settings.tag;
    entry.completion.bytes = message->header.destination;
    entry.completion.object = wrap(message.get());
    entry.error = why;
    entry.object = std::move(message);
    if (settings.queue && settings.queue->reserve()) return settings.queue->complete(std::move(entry));
    context_->log(MUSTER_LOG_WARN, "a message to 0x%llx could not be forwarded, and the queue has no room for it: %s",
                  static_cast<unsigned long long>(entry.completion.bytes), why.message);
}

} // namespace muster
