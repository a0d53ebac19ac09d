// SPDX-License-Identifier: MIT
#include "queue/queue.hpp"

#include "queue/served.hpp"
#include "queue/state.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>

namespace muster {

namespace {

constexpr uint32_t max_idle_spares = 1024; // about 350 KiB, after so many entries at a time

} // namespace

Queue::State::~State() {
    for (Node *list : {first, spare})
        while (list) delete std::exchange(list, list->next);
}

Result<void> Queue::State::open(const Context &context, uint32_t most) {
    capacity = most;
    inner = Fd(epoll_create1(EPOLL_CLOEXEC));
    event_source = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    epoll_event source_event{}, end_event{};
    source_event.events = end_event.events = EPOLLIN | EPOLLET;
    source_event.data.u64 = source_key;
    end_event.data.u64 = end_key;
    if (!inner || !event_source || epoll_ctl(inner.get(), EPOLL_CTL_ADD, event_source.get(), &source_event) != 0 ||
        epoll_ctl(inner.get(), EPOLL_CTL_ADD, context.end_fd(), &end_event) != 0)
        return Error::from_errno(errno, MUSTER_OK, "make a queue: descriptors");
    return {};
}

Queue::Queue(Context &context, std::unique_ptr<State> state) noexcept : context_(&context), state_(std::move(state)) {}

Queue::~Queue() = default;

Result<Ref<Queue>> Queue::create(Context &context, uint32_t capacity) {
    auto state = std::make_unique<State>();
    if (auto done = state->open(context, capacity); !done) return done.error();
    return Ref<Queue>::adopt(new Queue(context, std::move(state)));
}

void Queue::last_reference_gone() noexcept {
    if (context_->forked()) return; // locks and descriptors are shared with the parent or stale: they are not touched
    context_->leave_log(*this);
    if (state_->wake) (void)state_->wake->set(nullptr, nullptr); // the queue was not closed
    delete this;
}

bool Queue::closed() const noexcept {
    return state_->closed.load(std::memory_order_relaxed);
}

bool Queue::State::add_spare() noexcept {
    auto *node = new (std::nothrow) Node;
    if (!node) return false;
    node->next = spare;
    spare = node;
    spares++;
    return true;
}

void Queue::State::push(Entry &&entry) noexcept {
    Node *const node = spare;
    spare = node->next;
    spares--;
    node->entry = std::move(entry);
    node->order = order++;
    node->next = nullptr;
    (last ? last->next : first) = node;
    last = node;
    depth++;
}

bool Queue::reserve(QueueUser *user) noexcept {
    State &s = *state_;
    const std::lock_guard hold(s.lock);
    if (s.closed || s.depth + s.reserved >= s.capacity) return false;
    // Every reserved slot has its node, so that complete() cannot fail.
    if (s.spares <= s.reserved && !s.add_spare()) return false;
    s.reserved++;
    if (user != nullptr) s.enlist(*user);
    return true;
}

void Queue::unreserve() noexcept {
    State &s = *state_;
    const std::lock_guard hold(s.lock);
    s.reserved--;
}

void Queue::unreserve(QueueUser &user) noexcept {
    delist(user);
    unreserve();
}

void Queue::complete(Entry &&entry, QueueUser *user) noexcept {
    State &s = *state_;
    Entry dropped;
    if (entry.completion.status < 0 && entry.error.message_bytes == 0)
        entry.error = Error::from_status(entry.completion.status); // no operation ends without a text
    std::unique_lock hold(s.lock);
    if (user != nullptr) s.delist(*user, hold);
    s.reserved--;
    if (s.closed) {
        dropped = std::move(entry);
        return; // `dropped` is destroyed after `hold`: a destructor may call this queue
    }
    s.push(std::move(entry));
    const bool should_signal = s.parking.pushed();
    hold.unlock();
    if (should_signal) s.signal();
}

void Queue::complete(QueueEndings &operations, size_t count) noexcept {
    State &s = *state_;
    std::unique_lock hold(s.lock);
    for (size_t n = 0; n < count; n++)
        if (QueueUser *const user = operations.user(n)) s.delist(*user, hold);
    s.reserved -= static_cast<uint32_t>(count);
    if (s.closed) return;
    for (size_t n = 0; n < count; n++) s.push(operations.entry(n));
    const bool should_signal = s.parking.pushed();
    hold.unlock();
    if (should_signal) s.signal();
}

bool Queue::try_post(Entry &&entry) noexcept {
    State &s = *state_;
    std::unique_lock hold(s.lock);
    const bool room = !s.closed && s.depth + s.reserved < s.capacity && (s.spares > s.reserved || s.add_spare());
    if (!room) {
        if (entry.completion.kind == MUSTER_EVENT_LOG) s.log_dropped++;
        return false;
    }
    s.push(std::move(entry));
    const bool should_signal = s.parking.pushed();
    hold.unlock();
    if (should_signal) s.signal();
    return true;
}

Queue::State::Take Queue::State::take(Entry &out, bool tabled_only) noexcept {
    if (!holds_any()) return Take::none;
    if (ready_first && (!first || ready_first->order_ < first->order)) {
        if (tabled_only) return Take::refused;
        Source &source = *ready_first;
        out.completion.kind = MUSTER_EVENT_READY;
        out.completion.tag = source.tag_;
        out.completion.events = source.pending_;
        unlink(source);
        remember(source);
    } else {
        Node *const node = first;
        if (tabled_only && !node->entry.provider) return Take::refused;
        first = node->next;
        if (!first) last = nullptr;
        depth--;
        out = std::move(node->entry);
        if (spares - reserved < max_idle_spares) {
            node->entry = Entry{};
            node->next = spare;
            spare = node;
            spares++;
        } else {
            delete node;
        }
    }
    taken++;
    taken_since_look++;
    return Take::taken;
}

bool Queue::enlist(QueueUser &user) noexcept {
    State &s = *state_;
    const Uncancelled guard;
    std::unique_lock hold(s.lock);
    if (s.ended_elsewhere(user)) s.ended.wait(hold, [&] { return s.ending != &user; });
    if (s.closed) return false;
    s.enlist(user);
    return true;
}

void Queue::delist(QueueUser &user) noexcept {
    const Uncancelled guard;
    std::unique_lock hold(state_->lock);
    state_->delist(user, hold);
}

void Queue::State::enlist(QueueUser &user) noexcept {
    if (user.enlisted_) return;
    user.enlisted_ = true;
    user.prev_ = nullptr;
    user.next_ = users;
    if (users) users->prev_ = &user;
    users = &user;
}

void Queue::State::delist(QueueUser &user, std::unique_lock<std::mutex> &hold) noexcept {
    if (ended_elsewhere(user)) ended.wait(hold, [&] { return ending != &user; });
    if (!user.enlisted_) return;
    user.enlisted_ = false;
    (user.prev_ ? user.prev_->next_ : users) = user.next_;
    if (user.next_) user.next_->prev_ = user.prev_;
    user.next_ = user.prev_ = nullptr;
}

Queue::State::Node *Queue::State::take_all() noexcept {
    last = nullptr;
    depth = 0;
    return std::exchange(first, nullptr);
}

// The only handle of the host: entries can no longer be taken. The queue is closed, so that no buffer is lent to
// operations whose end is never reported, and entries that were not taken are deleted now: operations may keep the
// queue itself for a long time. A served transport holds the queue, the queue the context, and the context the
// transport: it is withdrawn.
void Queue::host_release() noexcept {
    if (context_->forked()) return release(); // locks and descriptors are the parent's
    if (ServedRequests *const served = served_.load(std::memory_order_acquire)) served->queue_released(*this);
    close();
    State::Node *dropped;
    {
        const std::lock_guard hold(state_->lock);
        dropped = state_->take_all();
    }
    while (dropped != nullptr) delete std::exchange(dropped, dropped->next); // no lock: objects in them are released
    release();
}

void Queue::close() noexcept {
    State &s = *state_;
    const Uncancelled guard;
    end_operations();
    forget_host_fds();
    s.signal(); // threads that sleep or poll notice it
    const std::lock_guard one_at_a_time(s.wake_lock);
    if (!s.wake) return;
    (void)s.wake->set(nullptr, nullptr);
    s.wake.reset();
}

// A user that is visited cannot leave meanwhile, as at the end; users that are added later were begun later.
bool Queue::cancel_operation(uint64_t tag) noexcept {
    State &s = *state_;
    const Uncancelled guard;
    bool found = false;
    const std::lock_guard one_at_a_time(s.cancel_lock); // a walk marks the users it has visited
    std::unique_lock hold(s.lock);
    const uint64_t visit = ++s.visits;
    for (QueueUser *user = s.users; user != nullptr;) {
        if (user->visit_ == visit || !user->owner().try_retain()) {
            user = user->next_;
            continue;
        }
        user->visit_ = visit;
        Ref<Object> owner = Ref<Object>::adopt(&user->owner());
        s.ended.wait(hold, [&] { return s.ending == nullptr; });
        if (user->enlisted_) {
            s.ending = user, s.ending_thread = pthread_self();
            hold.unlock();
            found |= user->cancel_operation(tag);
            hold.lock();
            s.ending = nullptr;
            s.ended.notify_all();
        }
        hold.unlock(); // the last reference may be released here
        owner.reset();
        hold.lock();
        user = s.users; // the list may be another one by now
    }
    return found;
}

// Nothing new begins, and when this returns no buffer is lent to an operation of this queue.
void Queue::end_operations() noexcept {
    State &s = *state_;
    std::unique_lock hold(s.lock);
    s.closed = s.parking.closed = true;
    s.followed.notify_all();
    while (QueueUser *user = s.users) {
        s.users = user->next_;
        if (s.users) s.users->prev_ = nullptr;
        user->enlisted_ = false;
        user->next_ = nullptr;
        if (!user->owner().try_retain()) continue; // being destroyed by another thread
        Ref<Object> owner = Ref<Object>::adopt(&user->owner());
        s.ended.wait(hold, [&] { return s.ending == nullptr; }); // of another thread that closes, too
        s.ending = user, s.ending_thread = pthread_self();
        hold.unlock();
        user->end_operations();
        hold.lock();
        s.ending = nullptr;
        s.ended.notify_all();
        hold.unlock(); // the last reference may be released here
        owner.reset();
        hold.lock();
    }
    s.ended.wait(hold, [&] { return s.ending == nullptr; });
}

void Queue::stats(muster_queue_stats &out) noexcept {
    State &s = *state_;
    out = {};
    const std::lock_guard hold(s.lock);
    out.depth = uint64_t{s.depth} + s.ready_count;
    out.outstanding = s.reserved;
    out.taken = s.taken;
    out.wakeups = s.signals.load(std::memory_order_relaxed);
    out.log_dropped = s.log_dropped;
}

} // namespace muster
