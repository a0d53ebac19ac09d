// SPDX-License-Identifier: MIT
// Streams between members. A member that cannot be dialled is asked to dial back, with the number of the request.
#include "cluster/broadcast/broadcast.hpp"

#include "context/host_call.hpp"
#include "stream/stream.hpp"
#include "transport/listener.hpp"

#include <algorithm>

namespace muster {

namespace {

constexpr int64_t first_try_ns = 3'000'000'000; // before the other side is requested to dial
constexpr uint32_t max_dials_back = 1024;
constexpr int64_t dial_back_timeout_ns = 10'000'000'000;

// Does the network refuse this direction? Then the other may be open.
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

// ---- one dial -------------------------------------------------------------------------------------------------------

ClusterDial::ClusterDial(Context &context, uint32_t to, std::string text, int64_t timeout_ns)
    : QueueOperation(context, MUSTER_DONE_DIAL), member(to), label(std::move(text)),
      deadline_ns(timeout_ns < 0 || timeout_ns > INT64_MAX - now_ns() ? INT64_MAX : now_ns() + timeout_ns) {}

void ClusterDial::end_early(Ending why) noexcept {
    if (why == Ending::queue_closed) return fail(Error::make(MUSTER_E_CLOSED, "the queue is closed"));
    fail(Error::make(MUSTER_E_CANCELED, "member %u: cancelled", member));
}

void ClusterDial::finish(StreamHandle stream) noexcept {
    end(std::move(stream), Error());
}

void ClusterDial::fail(const Error &why) noexcept {
    end({}, why);
}

void ClusterDial::end(StreamHandle stream, const Error &why) noexcept {
    if (on_done) {
        const auto report = std::exchange(on_done, nullptr);
        if (!complete({why})) return;
        try {
            report(std::move(stream), why);
        } catch (const std::bad_alloc &) { // waiting threads have a deadline
        }
        return;
    }
    Outcome outcome{why};
    if (stream) outcome.give(stream.detach());
    // NOLINTNEXTLINE(bugprone-use-after-move): complete() leaves it as it is if it is too late
    if (!complete(std::move(outcome))) stream = StreamHandle(outcome.take<Stream>()); // too late: it is closed
}

Result<StreamHandle> ClusterDial::wait() {
    Deadline endless(-1); // the cluster's thread keeps the time
    Outcome outcome = QueueOperation::wait(
        endless, [this](Status status) { fail(Error::make(status, "%s", HostCall::why_ended(status))); });
    if (outcome.why.status != MUSTER_OK) return outcome.why;
    return StreamHandle(outcome.take<Stream>());
}

// ---- dials in progress ----------------------------------------------------------------------------------------------

Result<void> Cluster::start_dial(Ref<ClusterDial> dial) {
    if (auto in = check_joined(); !in) return in;
    const bool taken = post([this, dial = std::move(dial)] {
        if (!dial->is_over()) dial_now(dial);
    });
    return taken ? Result<void>() : Error::make(MUSTER_E_CLOSED, "the cluster is closed");
}

void Cluster::dial_now(const Ref<ClusterDial> &dial) {
    set_subject(dial);
    dial->number = ++numbers_;
    dials_.emplace(dial->number, dial);
    if (dial->deadline_ns != INT64_MAX)
        dial->timer = start_timer(dial->deadline_ns, [this, dial] {
            dial->timer = {};
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
    dial->slot = take_slot();
    if (!dial->slot) {
        dial->fail(Error::make(MUSTER_E_LIMIT, "here: %s", no_slot().message));
        return end_dial(*dial);
    }
    find(dial);
}

void Cluster::end_dial(ClusterDial &dial) noexcept {
    if (dial.stream) dial.stream.unwatch();
    drop_handler(std::exchange(dial.watch, 0));
    dial.stream.reset();
    dial.slot.reset();
    cancel_timer(dial.timer);
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

void Cluster::found(const Ref<ClusterDial> &dial, std::string address, bool can_dial_back) {
    set_subject(dial);
    if (dial->is_over()) return end_dial(*dial);
    dial->address = std::move(address);
    dial->can_dial_back = can_dial_back && listener_;
    const bool is_unreachable = unreachable_members_.count(dial->member) != 0;
    if (dial->address.empty() || (dial->can_dial_back && is_unreachable)) {
        const Error none = Error::make(MUSTER_E_UNREACHABLE, "it does not listen");
        return tried(dial, {}, dial->address.empty() ? none : Error::from_status(MUSTER_E_UNREACHABLE));
    }
    const int64_t left = dial->deadline_ns == INT64_MAX ? -1 : std::max<int64_t>(1, dial->deadline_ns - now_ns());
    const int64_t limit = !dial->can_dial_back ? left : left < 0 ? first_try_ns : std::min(left, first_try_ns);
    const uint8_t kind = dial->on_done ? ClusterHello::broadcast : ClusterHello::stream;
    ClusterHello hello{kind, id_, self(), dial->member, dial->number, dial->label};
    if (Trace::is_on()) Trace::mark("cluster", "dial", dial->label, flow_of_dial(self(), dial->number));
    this->dial(dial->address, hello, limit, [this, dial](StreamHandle stream, const Error &why) {
        set_subject(dial);
        if (stream && !dial->is_over()) return await_acceptance(dial, std::move(stream));
        tried(dial, {}, why);
    });
}

// The member that has accepted the connection first sends whether it accepts the stream: a zero byte, or a refusal.
void Cluster::await_acceptance(const Ref<ClusterDial> &dial, StreamHandle stream) {
    dial->stream = std::move(stream);
    dial->watch = on_completion([this, dial](const muster_completion &, const Error &) {
        set_subject(dial);
        receive_acceptance(dial);
    });
    const Status status = dial->stream.watch(MUSTER_STREAM_READABLE, *completions_, dial->watch);
    if (status != MUSTER_OK) tried(dial, {}, Error::from_status(status));
}

void Cluster::receive_acceptance(const Ref<ClusterDial> &dial) {
    size_t need = 1;
    while (dial->acceptance.size() < need) {
        char piece[refusal_head_bytes + 255];
        size_t moved = 0;
        const Status status = dial->stream.read(piece, need - dial->acceptance.size(), moved);
        dial->acceptance.append(piece, moved);
        if (moved == 0 && status == MUSTER_AGAIN) return;
        if (moved == 0) return tried(dial, {}, Error::make(MUSTER_E_PEER, "it hung up"));
        const auto text = static_cast<unsigned char>(dial->acceptance[0]);
        if (text != 0) need = refusal_head_bytes + text;
    }
    drop_handler(std::exchange(dial->watch, 0));
    dial->stream.unwatch();
    if (need == 1) return tried(dial, std::move(dial->stream), {});
    tried(dial, {}, decode_refusal(dial->acceptance));
}

Error Cluster::no_slot() const noexcept {
    return Error::make(MUSTER_E_LIMIT, "as many connections are open as may be, %u", connection_limit_->max());
}

void Cluster::tried(const Ref<ClusterDial> &dial, StreamHandle stream, const Error &why) {
    if (stream) stream->keep_to_the_end(dial->slot);
    if (stream || dial->is_over()) {
        dial->finish(std::move(stream));
        return end_dial(*dial);
    }
    dial->tried = why;
    if (dial->can_dial_back && way_is_closed(why.status)) {
        if (!dial->address.empty() && unreachable_members_.size() < max_cluster_workers)
            unreachable_members_[dial->member] = 1;
        if (request_dial_back(*dial)) return; // it dials back, reports why it cannot, or the deadline passes
    }
    const Error named = Error::make(why.status, "member %u: %s", dial->member, why.message);
    dial->fail(named);
    end_dial(*dial);
}

void Cluster::dial_back_failed(uint64_t number, uint32_t member, const Error &why) {
    const auto found = dials_.find(number);
    if (found == dials_.end() || found->second->member != member) return;
    const Ref<ClusterDial> dial = found->second;
    set_subject(dial);
    dial->fail(Error::make(why.status, "member %u: %s; it dials back: %s", member, dial->tried.message, why.message));
    end_dial(*dial);
}

void Cluster::dial_back(uint32_t from, uint64_t number, const std::string &label, const std::string &address,
                        bool broadcast, std::function<void(const Error &)> failed) {
    if (dialling_back_ == max_dials_back)
        return failed(Error::make(MUSTER_E_LIMIT, "%u requests to dial back are under way", max_dials_back));
    const Ref<Object> place = take_slot();
    if (!place) return failed(no_slot());
    dialling_back_++;
    ClusterHello hello{ClusterHello::answer, id_, self(), from, number, {}};
    dial(address, hello, dial_back_timeout_ns,
         [this, from, number, label, broadcast, failed = std::move(failed), place](StreamHandle stream,
                                                                                   const Error &why) {
             dialling_back_--;
             if (stream) stream->keep_to_the_end(place);
             if (stream && broadcast) return broadcasts_->take_stream(from, std::move(stream));
             if (stream) return report_stream(from, number, label, std::move(stream));
             failed(why);
         });
}

// ---- connections ----------------------------------------------------------------------------------------------------

void Cluster::dial(const std::string &address, const ClusterHello &hello, int64_t timeout_ns, const Dialled &done) {
    const std::string words = encode(hello);
    muster_transport_config config{};
    config.struct_size = sizeof config;
    config.hello = words.data();
    config.hello_bytes = words.size();
    const auto number = std::make_shared<uint64_t>(0);
    *number = on_completion([this, number, done](const muster_completion &entry, const Error &why) {
        drop_handler(*number);
        done(StreamHandle(entry.object), why);
    });
    muster_error error{};
    const Status begun = muster_transport_dial_begin(wrap(&context()), address.data(), address.size(), &config,
                                                     timeout_ns, wrap(&*completions_), *number, &error);
    if (begun == MUSTER_OK) return;
    drop_handler(*number);
    Error why = Error::make(MUSTER_E_LIMIT, "too many dials at once");
    if (begun < 0) static_cast<muster_error &>(why) = error;
    done({}, why);
}

Error Cluster::listen(const std::string &address, Listener::Opening opening) {
    TransportOptions options;
    options.window_bytes = context().settings.window_bytes;
    options.backlog = max_cluster_workers; // they may all connect at once
    options.other_keys = other_keys();
    auto made = Listener::open(context(), address, options, opening);
    if (!made) return made.error();
    listener_ = std::move(*made);
    return {};
}

// The watch is set first: from then on every change is notified.
void Cluster::when_listening(const std::function<void(const Error &)> &then) {
    if (!listener_) return then({});
    listener_->watch(&*completions_,
                     on_completion([this, then](const muster_completion &, const Error &) { check_listening(then); }));
    check_listening(then);
}

void Cluster::check_listening(const std::function<void(const Error &)> &then) {
    if (!listener_) return;
    Deadline once(0);
    Error why;
    if (listener_->await_opened(once, why) != MUSTER_AGAIN) then(why);
}

void Cluster::stop_listening() noexcept {
    if (const Ref<Listener> listener = std::move(listener_)) listener->close();
}

void Cluster::expect_connections(uint32_t count) noexcept {
    if (listener_) listener_->expect(count);
}

void Cluster::watch_listener() {
    if (!listener_) return;
    listener_->watch(&*completions_, on_completion([this](const muster_completion &, const Error &) { accept_all(); }));
}

std::string Cluster::listener_address() const {
    if (!listener_) return {};
    return listener_->address();
}

void Cluster::accept_all() {
    while (listener_ && accepts()) {
        Ref<Stream> stream;
        Error why;
        Deadline once(0);
        const Status status = listener_->accept(once, stream, why);
        if (status == MUSTER_AGAIN) return;
        if (status == MUSTER_E_NOMEM) throw std::bad_alloc();
        if (status != MUSTER_OK) {
            context().log(MUSTER_LOG_ERROR, "cluster: no connections are accepted any more: %s", why.message);
            return;
        }
        StreamHandle accepted(std::move(stream));
        try_step([&] {
            take_stream(std::move(accepted));
        }); // a connection for which memory runs out is lost; the loop continues with the next
    }
}

void Cluster::take_stream(StreamHandle stream) {
    uint64_t key = 0;
    const auto hello = hello_of(*stream.operator->(), &key);
    if (key != 0 || (hello && hello->kind == ClusterHello::ticket)) {
        if (key != 0 && hello && hello->kind == ClusterHello::ticket && hello->cluster == id_)
            send_ticket(key, hello->from, std::move(stream));
        return;
    }
    const bool newcomer =
        hello && hello->kind == ClusterHello::control && hello->from == no_member && hello->cluster == 0;
    if (!hello || (hello->cluster != id_ && !newcomer)) {
        context().log(MUSTER_LOG_WARN, "cluster: a connection that is none of a member of this cluster was cut");
        return;
    }
    if (hello->kind == ClusterHello::control) return accepted(*hello, std::move(stream));
    if (hello->to != self() || hello->from == self()) return;
    const bool broadcast = hello->kind == ClusterHello::broadcast;
    if (broadcast || hello->kind == ClusterHello::stream) {
        if (!send_acceptance(stream)) return;
        if (broadcast) return broadcasts_->take_stream(hello->from, std::move(stream));
        return report_stream(hello->from, hello->number, hello->label, std::move(stream));
    }
    const auto found = dials_.find(hello->number);
    if (hello->kind != ClusterHello::answer || found == dials_.end() || found->second->member != hello->from)
        return; // of a dial that is over
    set_subject(found->second);
    tried(found->second, std::move(stream), {});
}

bool Cluster::send_acceptance(StreamHandle &stream) {
    Ref<Object> place = take_slot();
    const std::string word = place ? std::string(1, '\0') : encode_refusal(no_slot());
    size_t moved = 0;
    stream.write(word.data(), word.size(), moved);
    if (!place) return false;
    stream->keep_to_the_end(std::move(place));
    return true;
}

} // namespace muster
