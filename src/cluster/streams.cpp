// SPDX-License-Identifier: MIT
// Streams between members: who dials whom. One that cannot be reached is called: it dials back, with the number of the
// call.
#include "cluster/cluster.hpp"

#include "stream/stream.hpp"
#include "transport/listener.hpp"

#include <algorithm>

namespace muster {

namespace {

constexpr int64_t first_try_ns = 3'000'000'000; // before the other side is asked to dial
constexpr uint32_t most_calls = 1024;
constexpr int64_t call_back_ns = 10'000'000'000;

// Was it the way there? Then the other way may be open.
bool way_is_closed(Status status) noexcept {
    switch (status) {
    case MUSTER_TIMEOUT:
    case MUSTER_E_UNREACHABLE:
    case MUSTER_E_PEER:
    case MUSTER_E_PERMISSION:
    case MUSTER_E_NOT_FOUND:
    case MUSTER_E_PLUGIN:
    case MUSTER_E_UNSUPPORTED:
    case MUSTER_E_SYSTEM:
        return true;
    default:
        return false;
    }
}

} // namespace

// ---- one dial
// -----------------------------------------------------------------------------------------------------------

ClusterDial::ClusterDial(Context &context, uint32_t to, std::string text, int64_t timeout_ns)
    : member(to), label(std::move(text)),
      deadline_ns(timeout_ns < 0 || timeout_ns > INT64_MAX - now_ns() ? INT64_MAX : now_ns() + timeout_ns),
      context_(context) {}

Result<void> ClusterDial::begin(Queue &queue, uint64_t tag) {
    if (queue.closed()) return Error::make(MUSTER_E_CLOSED, "the queue is closed");
    if (!queue.reserve()) return Result<void>::positive(MUSTER_AGAIN);
    queue_ = Ref<Queue>(&queue);
    tag_ = tag;
    return {};
}

void ClusterDial::give_up() noexcept {
    const std::lock_guard hold(lock_);
    if (!std::exchange(over_, true)) queue_->unreserve();
}

bool ClusterDial::over() noexcept {
    const std::lock_guard hold(lock_);
    return over_;
}

void ClusterDial::finish(StreamHandle stream) noexcept {
    end(std::move(stream), Error());
}

void ClusterDial::fail(const Error &why) noexcept {
    end(nullptr, why);
}

void ClusterDial::end(StreamHandle stream, const Error &why) noexcept {
    {
        const std::lock_guard hold(lock_);
        if (std::exchange(over_, true)) return;
        if (!queue_) {
            stream_ = std::move(stream);
            why_ = why;
        }
    }
    if (!queue_) return context_.notify(signal_);
    Entry entry;
    entry.completion.kind = MUSTER_DONE_DIAL;
    entry.completion.tag = tag_;
    entry.completion.status = why.status;
    entry.error = why;
    if (stream) {
        Stream *const given = unwrap(stream.release());
        entry.completion.object = wrap(given);
        entry.object = Ref<Object>(Ref<Stream>::adopt(given));
    }
    queue_->complete(std::move(entry));
}

Result<StreamHandle> ClusterDial::wait() {
    Deadline endless(-1); // the cluster's thread keeps the time
    for (;;) {
        const uint32_t seen = signal_.seen();
        {
            const std::lock_guard hold(lock_);
            if (over_) {
                if (why_.status != MUSTER_OK) return why_;
                return std::move(stream_);
            }
        }
        const Status status = context_.sleep(signal_, seen, endless);
        if (status != MUSTER_OK) {
            fail(Error::from_status(status));
            return Error::from_status(status);
        }
    }
}

// ---- those under way
// ------------------------------------------------------------------------------------------------------

Result<void> Cluster::start_dial(Ref<ClusterDial> dial) {
    const bool taken = post([this, dial] {
        if (dial->over()) return;
        dial->number = ++numbers_;
        dials_.emplace(dial->number, dial);
        if (dial->deadline_ns != INT64_MAX)
            dial->alarm = at(dial->deadline_ns, [this, dial] {
                dial->alarm = 0;
                dial->fail(dial->tried.status == MUSTER_OK
                               ? Error::make(MUSTER_TIMEOUT, "member %u: not in time", dial->member)
                               : Error::make(MUSTER_TIMEOUT, "member %u: not in time; before that %s", dial->member,
                                             dial->tried.message));
                end_dial(*dial);
            });
        if (closing_) {
            dial->fail(Error::make(MUSTER_E_CLOSED, "the cluster is closed"));
            return end_dial(*dial);
        }
        if (dial->member == self()) {
            dial->fail(Error::make(MUSTER_E_ARG, "member %u is this one", dial->member));
            return end_dial(*dial);
        }
        find(dial);
    });
    return taken ? Result<void>() : Error::make(MUSTER_E_CLOSED, "the cluster is closed");
}

void Cluster::end_dial(ClusterDial &dial) noexcept {
    silence(dial.alarm);
    dials_.erase(dial.number); // perhaps its last reference: the caller has another
}

void Cluster::fail_dials(const Error &why, uint32_t member) {
    for (auto line = dials_.begin(); line != dials_.end();) {
        const Ref<ClusterDial> dial = line->second;
        ++line;
        if (member != UINT32_MAX && dial->member != member) continue;
        dial->fail(why);
        end_dial(*dial);
    }
}

void Cluster::found(const Ref<ClusterDial> &dial, std::string address, bool can_call) {
    if (dial->over()) return end_dial(*dial);
    dial->address = std::move(address);
    dial->can_call = can_call && listener_;
    const bool in_vain_before = only_called_.count(dial->member) != 0;
    if (dial->address.empty() || (dial->can_call && in_vain_before)) {
        const Error none = Error::make(MUSTER_E_UNREACHABLE, "it does not listen");
        return tried(dial, nullptr, dial->address.empty() ? none : Error::from_status(MUSTER_E_UNREACHABLE));
    }
    const int64_t left = dial->deadline_ns == INT64_MAX ? -1 : std::max<int64_t>(1, dial->deadline_ns - now_ns());
    const int64_t limit = !dial->can_call ? left : left < 0 ? first_try_ns : std::min(left, first_try_ns);
    ClusterGreeting greeting{ClusterGreeting::stream, id_, self(), dial->member, 0, dial->label};
    this->dial(dial->address, greeting, limit,
               [this, dial](StreamHandle stream, const Error &why) { tried(dial, std::move(stream), why); });
}

void Cluster::tried(const Ref<ClusterDial> &dial, StreamHandle stream, const Error &why) {
    if (stream || dial->over()) {
        dial->finish(std::move(stream));
        return end_dial(*dial);
    }
    dial->tried = why;
    if (dial->can_call && way_is_closed(why.status)) {
        if (!dial->address.empty() && only_called_.size() < most_cluster_workers) only_called_[dial->member] = 1;
        if (call(*dial)) return; // it dials back, tells why it cannot, or the time is over
    }
    const Error told = Error::make(why.status, "member %u: %s", dial->member, why.message);
    dial->fail(told);
    end_dial(*dial);
}

void Cluster::call_failed(uint64_t number, uint32_t member, const Error &why) {
    const auto found = dials_.find(number);
    if (found == dials_.end() || found->second->member != member) return;
    const Ref<ClusterDial> dial = found->second;
    dial->fail(Error::make(why.status, "member %u: %s; it dials back: %s", member, dial->tried.message, why.message));
    end_dial(*dial);
}

void Cluster::answer_call(uint32_t from, uint64_t number, const std::string &label, const std::string &address,
                          std::function<void(const Error &)> failed) {
    if (answering_ == most_calls) return failed(Error::make(MUSTER_E_LIMIT, "%u calls are being answered", most_calls));
    answering_++;
    ClusterGreeting greeting{ClusterGreeting::answer, id_, self(), from, number, {}};
    dial(address, greeting, call_back_ns, [this, from, label, failed](StreamHandle stream, const Error &why) {
        answering_--;
        if (stream) return tell_stream(from, label, std::move(stream));
        failed(why);
    });
}

// ---- connections
// ------------------------------------------------------------------------------------------------------------

void Cluster::dial(const std::string &address, const ClusterGreeting &greeting, int64_t timeout_ns, Dialled done) {
    const std::string words = encode(greeting);
    muster_transport_config config{};
    config.struct_size = sizeof config;
    config.greeting = words.data();
    config.greeting_bytes = words.size();
    const auto number = std::make_shared<uint64_t>(0);
    *number = on([this, number, done](const muster_completion &entry, const Error &why) {
        const Dialled tell = done;
        forget(*number);
        tell(StreamHandle(static_cast<muster_stream *>(entry.object)), why);
    });
    muster_error error{};
    const Status begun = muster_transport_dial_begin(wrap(&context()), address.data(), address.size(), &config,
                                                     timeout_ns, wrap(&*inbox_), *number, &error);
    if (begun == MUSTER_OK) return;
    forget(*number);
    Error why = Error::make(MUSTER_E_LIMIT, "too many dials at once");
    if (begun < 0) static_cast<muster_error &>(why) = error;
    done(nullptr, why);
}

Error Cluster::listen(const std::string &address) {
    Error why;
    muster_listener *made = nullptr;
    muster_transport_config config{};
    config.struct_size = sizeof config;
    config.backlog = most_cluster_workers; // they may all come at once
    muster_transport_listen(wrap(&context()), address.data(), address.size(), &config, &made, &why);
    listener_.reset(made);
    return made == nullptr ? why : Error();
}

void Cluster::expect_connections(uint32_t count) noexcept {
    if (listener_) unwrap(listener_.get())->expect(count);
}

void Cluster::watch_listener() {
    if (!listener_) return;
    muster_listener_watch(listener_.get(), wrap(&*inbox_),
                          on([this](const muster_completion &, const Error &) { accept_all(); }));
}

std::string Cluster::listener_address() const {
    if (!listener_) return {};
    char text[4097];
    size_t size = 0;
    if (muster_listener_address(listener_.get(), text, sizeof text, &size) != MUSTER_OK) return {};
    return {text, size};
}

StreamHandle Cluster::accept_one(Deadline &deadline, Error &why) {
    muster_stream *stream = nullptr;
    const int64_t left = deadline.endless() ? -1 : std::max<int64_t>(1, deadline.left());
    const Status status = muster_listener_accept(listener_.get(), left, &stream, &why);
    if (status == MUSTER_TIMEOUT) why = Error::make(MUSTER_TIMEOUT, "the master did not dial in time");
    return StreamHandle(stream);
}

void Cluster::accept_all() {
    while (listener_) {
        muster_stream *stream = nullptr;
        muster_error error{};
        const Status status = muster_listener_accept(listener_.get(), 0, &stream, &error);
        if (status == MUSTER_AGAIN) return;
        if (status != MUSTER_OK) {
            context().log(MUSTER_LOG_ERROR, "cluster: no connections are taken any more: %s", error.message);
            return;
        }
        take_stream(StreamHandle(stream));
    }
}

void Cluster::take_stream(StreamHandle stream) {
    const auto greeting = greeting_of(stream.get());
    const bool newcomer =
        greeting && greeting->kind == ClusterGreeting::control && greeting->from == nobody && greeting->cluster == 0;
    if (!greeting || (greeting->cluster != id_ && !newcomer)) {
        context().log(MUSTER_LOG_WARN, "cluster: a connection that is none of a member of this cluster was cut");
        return;
    }
    if (greeting->kind == ClusterGreeting::control) return accepted(*greeting, std::move(stream));
    if (greeting->to != self() || greeting->from == self()) return;
    if (greeting->kind == ClusterGreeting::stream)
        return tell_stream(greeting->from, greeting->label, std::move(stream));
    const auto found = dials_.find(greeting->number);
    if (greeting->kind != ClusterGreeting::answer || found == dials_.end() || found->second->member != greeting->from)
        return; // of a dial that is over
    const Ref<ClusterDial> dial = found->second;
    dial->finish(std::move(stream));
    end_dial(*dial);
}

} // namespace muster
