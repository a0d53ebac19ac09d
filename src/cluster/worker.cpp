// SPDX-License-Identifier: MIT
#include "cluster/worker.hpp"

#include "cluster/broadcast.hpp"
#include "cluster/elastic.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <unistd.h>

namespace muster {

namespace {

constexpr int64_t usual_grace_ns = 2'000'000'000;
constexpr int64_t crowd_pause_ns = 20'000'000; // before the master is dialled again
constexpr int most_resets = 100;

int report_descriptor(const muster_worker_config &config) noexcept {
    if (config.report_fd_plus_one > 0) return config.report_fd_plus_one - 1;
    const char *const named = getenv("MUSTER_WORKER_REPORT_FD");
    return named != nullptr ? std::atoi(named) : STDOUT_FILENO;
}

Error told(const ControlMessage &message) noexcept {
    return Error::make(message.status < 0 ? message.status : MUSTER_E_PEER, "%.200s", message.text.c_str());
}

} // namespace

// ---- the ticket
// -----------------------------------------------------------------------------------------------------------

TicketPlace &TicketPlace::of(Context &context) {
    static const char key = 0;
    return static_cast<TicketPlace &>(
        context.part(&key, [](Context &) -> std::unique_ptr<ContextPart> { return std::make_unique<TicketPlace>(); }));
}

void TicketPlace::put(Ticket ticket) {
    const std::lock_guard hold(lock_);
    was_there_ = true;
    ticket_ = std::move(ticket);
}

Result<Ticket> TicketPlace::take() {
    const std::lock_guard hold(lock_);
    if (!was_there_) return Error::make(MUSTER_E_ARG, "the context has no ticket: make it by muster_worker_context()");
    if (!ticket_) return Error::make(MUSTER_E_EXISTS, "this context has come in already");
    Ticket ticket = std::move(*ticket_);
    ticket_.reset();
    return ticket;
}

// ---- coming in
// --------------------------------------------------------------------------------------------------------------

ClusterWorker::ClusterWorker(Context &context, Ticket ticket, const muster_worker_config &config, Ref<Queue> inbox,
                             Ref<Queue> events)
    : Cluster(context, std::move(inbox), std::move(events), config.tag), ticket_(std::move(ticket)),
      flags_(config.flags), exit_grace_ns_(config.exit_grace_ns > 0 ? config.exit_grace_ns : usual_grace_ns),
      report_fd_(report_descriptor(config)) {
    id_ = ticket_.cluster;
    bound_connections(config.most_connections);
    limit_broadcasts(config.broadcast_bytes);
    char name[HOST_NAME_MAX + 1] = "";
    gethostname(name, sizeof name - 1);
    host_ = name;
}

Result<Ref<ClusterWorker>> ClusterWorker::start(Context &context, const muster_worker_config &config,
                                                Deadline &deadline) {
    auto inbox = Queue::create(context, 65536);
    if (!inbox) return inbox.error();
    Ref<Queue> events(config.queue != nullptr ? unwrap(config.queue) : nullptr);
    auto ticket = ticket_of(context, config, deadline);
    if (!ticket) return ticket.error();
    const Ticket kept = *ticket;
    const auto worker = Ref<ClusterWorker>::adopt(
        new ClusterWorker(context, std::move(*ticket), config, std::move(*inbox), std::move(events)));
    Error why = worker->meet(deadline);
    if (why.status == MUSTER_OK) {
        auto started = worker->start_thread_of();
        if (started) return worker;
        why = started.error();
    }
    if (kept.member != 0) TicketPlace::of(context).put(kept); // it may be tried again
    return why;
}

// What whoever has launched it said, or, if nobody has, where it is to come in: then it has no number yet.
Result<Ticket> ClusterWorker::ticket_of(Context &context, const muster_worker_config &config, Deadline &deadline) {
    if (config.master == nullptr && config.store == nullptr) return TicketPlace::of(context).take();
    Ticket ticket;
    ticket.listen = config.listen == nullptr ? "tcp://127.0.0.1:0" : config.listen;
    if (config.master != nullptr) {
        ticket.master = config.master;
        return ticket;
    }
    auto master = find_master(context, config.store, config.name == nullptr ? "" : config.name, deadline);
    if (!master) return master.error();
    ticket.master = std::move(*master);
    return ticket;
}

Error ClusterWorker::meet(Deadline &deadline) {
    if (!ticket_.listen.empty()) {
        if (const Error why = listen(ticket_.listen); why.status != MUSTER_OK) return why;
        own_address_ = listener_address();
    }
    make_shelf(ticket_.listen.empty() ? ticket_.master : ticket_.listen);
    muster_stream *stream = nullptr;
    if (!ticket_.master.empty()) {
        const std::string greeting = encode(ClusterGreeting{ClusterGreeting::control,
                                                            id_,
                                                            ticket_.member == 0 ? nobody : ticket_.member,
                                                            MUSTER_CLUSTER_MASTER,
                                                            0,
                                                            {}});
        muster_transport_config config{};
        config.struct_size = sizeof config;
        config.greeting = greeting.data();
        config.greeting_bytes = greeting.size();
        if (const Error why = dial_master(config, deadline, stream); why.status != MUSTER_OK) return why;
    } else {
        auto dialled = be_dialled(deadline);
        if (!dialled) return dialled.error();
        stream = dialled->release();
    }
    link_ = std::make_unique<ControlLink>(stream);
    return introduce(deadline);
}

// Of many that come at once the master turns some away before they have said who they are: these come again. Such a
// refusal may be lost when the connection closes, so a reset is no reason to give up either.
Error ClusterWorker::dial_master(const muster_transport_config &config, Deadline &deadline, muster_stream *&stream) {
    for (int resets = 0;;) {
        Error why;
        why.status =
            muster_transport_dial(wrap(&context()), ticket_.master.data(), ticket_.master.size(), &config,
                                  deadline.endless() ? -1 : std::max<int64_t>(1, deadline.left()), &stream, &why);
        const bool refused = why.status == MUSTER_E_LIMIT && why.os_errno == 0;
        const bool reset = why.status == MUSTER_E_PEER && why.os_errno == ECONNRESET && resets++ < most_resets;
        if (!refused && !reset) return why;
        if (!deadline.endless() && deadline.left() <= crowd_pause_ns) return why;
        std::this_thread::sleep_for(std::chrono::nanoseconds(crowd_pause_ns));
    }
}

Error ClusterWorker::report() const {
    const std::string line = WorkerReport{own_address_, ticket_.members == 1 ? 0 : ticket_.member}.line();
    for (size_t at = 0; at < line.size();) {
        const ssize_t wrote = uncancelled::write(report_fd_, line.data() + at, line.size() - at);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0)
            return Error::from_errno(errno, MUSTER_E_SYSTEM, "tell the address on descriptor %d", report_fd_);
        at += static_cast<size_t>(wrote);
    }
    return {};
}

Result<StreamHandle> ClusterWorker::be_dialled(Deadline &deadline) {
    if (own_address_.empty()) return Error::make(MUSTER_E_PROTOCOL, "the ticket says neither to listen nor to dial");
    if (const Error why = report(); why.status != MUSTER_OK) return why;
    for (;;) {
        Error why;
        auto stream = accept_one(deadline, why);
        if (!stream) return why;
        const auto greeting = greeting_of(stream.get());
        if (greeting && greeting->cluster == id_ && greeting->kind == ClusterGreeting::control &&
            greeting->to == ticket_.member)
            return stream;
    }
}

// Says who it is, and hears that it is in.
Error ClusterWorker::introduce(Deadline &deadline) {
    ControlMessage hello;
    hello.kind = ControlMessage::hello;
    hello.member = ticket_.member;
    hello.number = static_cast<uint64_t>(getpid());
    hello.text = host_;
    if (const std::string shelf = this->shelf(); !shelf.empty()) hello.text += '\0' + shelf;
    hello.address = own_address_;
    link_->watch(wrap(&*inbox_), 0);
    link_->send(hello);
    for (;;) {
        ControlMessage message;
        Error why = link_->next(message);
        if (why.status == MUSTER_AGAIN) {
            muster_completion entry;
            const Status status = inbox_->next(deadline, &entry, nullptr);
            if (status == MUSTER_OK) {
                link_->flush();
                continue;
            }
            return Error::make(status == MUSTER_AGAIN ? Status{MUSTER_TIMEOUT} : status,
                               "the master did not answer in time");
        }
        if (why.status != MUSTER_OK) return why;
        if (message.kind == ControlMessage::refused) return told(message);
        const bool newcomer = ticket_.member == 0 && message.member != MUSTER_CLUSTER_MASTER;
        if (message.kind != ControlMessage::welcome || (message.member != ticket_.member && !newcomer))
            return Error::make(MUSTER_E_PROTOCOL, "the master answers with a message of kind %u", message.kind);
        if (newcomer) {
            ticket_.member = message.member;
            id_ = message.number;
        }
        master_address_ = message.address;
        master_shelf_ = message.text;
        set_self(message.member);
        return {};
    }
}

// ---- in
// -----------------------------------------------------------------------------------------------------------------------

void ClusterWorker::begin() {
    if ((flags_ & MUSTER_WORKER_EXIT_WITH_MASTER) != 0) muster_stream_exit_with_peer(link_->stream(), exit_grace_ns_);
    watch_listener();
    link_->watch(wrap(&*inbox_), on([this](const muster_completion &, const Error &) { hear(); }));
}

void ClusterWorker::hear() {
    while (link_) {
        ControlMessage message;
        const Error why = link_->next(message);
        if (why.status == MUSTER_AGAIN) {
            link_->flush();
            return;
        }
        if (why.status != MUSTER_OK) return master_gone(why);
        take(message);
    }
}

void ClusterWorker::take(const ControlMessage &message) {
    switch (message.kind) {
    case ControlMessage::there: {
        const auto asked = asked_.find(message.number);
        if (asked == asked_.end()) return;
        const ToldWhere then = std::move(asked->second);
        asked_.erase(asked);
        return then(message);
    }
    case ControlMessage::fares:
        return broadcasts_->hear_report(message.member, message);
    case ControlMessage::broadcast_over:
        return broadcasts_->hear_over(message.member, message.number);
    case ControlMessage::call:
        return answer_call(message.member, message.number, message.text, message.address, message.status != 0,
                           [this, from = message.member, number = message.number](const Error &why) {
                               if (!link_) return;
                               ControlMessage failed;
                               failed.kind = ControlMessage::call_failed;
                               failed.member = from;
                               failed.number = number;
                               failed.status = why.status;
                               failed.text = why.message;
                               link_->send(failed);
                           });
    case ControlMessage::call_failed:
        return call_failed(message.number, message.member, told(message));
    case ControlMessage::gone: {
        const Error why = message.status < 0 ? told(message) : Error();
        tell(why.status < 0 ? MUSTER_CLUSTER_DEAD : MUSTER_CLUSTER_REMOVED, message.member, why, message.text);
        fail_dials(Error::make(MUSTER_E_STALE, "member %u is gone: %.150s", message.member, message.text.c_str()),
                   message.member);
        return broadcasts_->member_gone(message.member, Error::make(MUSTER_E_PEER, "%.200s", message.text.c_str()));
    }
    case ControlMessage::interrupt:
        return interrupt();
    case ControlMessage::die: // nobody else can end it by force
        ::kill(getpid(), SIGKILL);
        return;
    case ControlMessage::leave:
        return tell(MUSTER_CLUSTER_LEAVE, self(), {}, {});
    default:
        return master_gone(Error::make(MUSTER_E_PROTOCOL, "it sent a message of kind %u out of turn", message.kind));
    }
}

void ClusterWorker::interrupt() {
    tell(MUSTER_CLUSTER_INTERRUPT, self(), {}, {});
    if ((flags_ & MUSTER_WORKER_RAISE_INTERRUPT) != 0) ::kill(getpid(), SIGINT);
}

void ClusterWorker::find(const Ref<ClusterDial> &dial) {
    if (dial->member == MUSTER_CLUSTER_MASTER) return found(dial, master_address_, true);
    ask_where(dial->member, dial->number, [this, dial](const ControlMessage &answer) {
        if (answer.status != MUSTER_OK) dial->fail(told(answer));
        found(dial, answer.address, true);
    });
}

void ClusterWorker::ask_where(uint32_t member, uint64_t number, ToldWhere then) {
    ControlMessage question;
    question.kind = ControlMessage::where;
    question.member = member;
    question.number = number;
    asked_[number] = std::move(then);
    if (link_) link_->send(question); // if that fails, the link is about to be over
}

void ClusterWorker::find_shelf(uint32_t member, FoundShelf then) {
    if (member == MUSTER_CLUSTER_MASTER) return then({}, master_shelf_);
    ask_where(member, next_number(), [then](const ControlMessage &answer) {
        if (answer.status != MUSTER_OK) return then(told(answer), {});
        then({}, answer.text);
    });
}

bool ClusterWorker::say(uint32_t to, ControlMessage message) {
    message.member = to;
    return link_ && link_->send(message);
}

bool ClusterWorker::call(ClusterDial &dial) {
    if (!link_) return false;
    ControlMessage wish;
    wish.kind = ControlMessage::call;
    wish.member = dial.member;
    wish.number = dial.number;
    wish.status = dial.own ? 1 : 0;
    wish.text = dial.label;
    wish.address = own_address_;
    return link_->send(wish);
}

void ClusterWorker::accepted(const ClusterGreeting &, StreamHandle) {} // it has a master: the stream is dropped

Status ClusterWorker::member(uint32_t member, muster_member_info &out) noexcept {
    const auto copy = [](const std::string &from, char *to, size_t room) {
        const size_t size = std::min(from.size(), room - 1);
        std::memcpy(to, from.data(), size);
        to[size] = '\0';
    };
    if (member != self() && member != MUSTER_CLUSTER_MASTER) return MUSTER_E_NOT_FOUND;
    out = {};
    out.member = member;
    out.state = over() ? MUSTER_MEMBER_GONE : MUSTER_MEMBER_JOINED;
    if (member == self()) {
        out.pid = getpid();
        copy(host_, out.host, sizeof out.host);
    }
    copy(member == self() ? own_address_ : master_address_, out.address, sizeof out.address);
    return MUSTER_OK;
}

// ---- the end
// --------------------------------------------------------------------------------------------------------------------

void ClusterWorker::end_soon(int64_t) {
    closing_ = true;
    if (!link_) return;
    muster_stream_exit_with_peer(link_->stream(), -1); // the master may go first now
    ControlMessage leaving;
    leaving.kind = ControlMessage::leaving;
    link_->send(leaving);
    link_.reset();
}

void ClusterWorker::master_gone(const Error &why) {
    const Error gone = Error::make(MUSTER_E_PEER, "the master is gone: %s", why.message);
    broadcasts_->fail_all(gone);
    fail_dials(gone);
    Error status = why;
    if (status.status >= 0) status.status = MUSTER_E_PEER;
    tell(MUSTER_CLUSTER_MASTER_GONE, MUSTER_CLUSTER_MASTER, status, why.message);
    link_.reset();
    closing_ = true;
}

void ClusterWorker::abandon() noexcept {
    link_.reset();
}

} // namespace muster
