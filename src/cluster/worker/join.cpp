// SPDX-License-Identifier: MIT
// How a worker comes in: what was passed to it, the master, and the number that the master confirms.
#include "cluster/broadcast/broadcast.hpp"
#include "cluster/worker/worker.hpp"
#include "context/host_call.hpp"
#include "transport/transport.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <unistd.h>

namespace muster {

namespace {

constexpr int64_t default_grace_ns = 2'000'000'000;
constexpr int64_t retry_ns = 20'000'000;        // before the master is dialled again
constexpr int64_t max_dial_ns = 60'000'000'000; // nothing stops a dial but its end
constexpr int max_resets = 100;

int report_descriptor(const muster_worker_config &config) noexcept {
    if (config.report_fd_plus_one > 0) return config.report_fd_plus_one - 1;
    const char *const named = getenv("MUSTER_WORKER_REPORT_FD");
    return named != nullptr ? std::atoi(named) : STDOUT_FILENO;
}

// May this thread wait for connections at the address? Not if it has to serve the transport meanwhile.
Result<void> check_wait(Context &context, const std::string &text) {
    if (context.on_loop()) return Error::from_status(MUSTER_E_WOULD_DEADLOCK);
    auto address = parse_address(text);
    if (!address) return address.error();
    auto transport = Registry::of(context).find(address->scheme);
    if (!transport) return transport.error();
    if (!(*transport)->would_deadlock()) return {};
    return Error::make(MUSTER_E_WOULD_DEADLOCK, "%s: this thread has to serve the transport it would wait for",
                       text.c_str());
}

} // namespace

// ---- the ticket -----------------------------------------------------------------------------------------------------

ContextTicket &ContextTicket::of(Context &context) {
    static const char key = 0;
    return static_cast<ContextTicket &>(context.part(
        &key, [](Context &) -> std::unique_ptr<ContextPart> { return std::make_unique<ContextTicket>(); }));
}

void ContextTicket::put(Ticket ticket) {
    const std::lock_guard hold(lock_);
    has_existed_ = true;
    ticket_ = std::move(ticket);
}

Result<Ticket> ContextTicket::take() {
    const std::lock_guard hold(lock_);
    if (!has_existed_)
        return Error::make(MUSTER_E_ARG, "the context has no ticket: make it by muster_worker_context()");
    if (!ticket_) return Error::make(MUSTER_E_EXISTS, "this context has come in already");
    Ticket ticket = std::move(*ticket_);
    ticket_.reset();
    return ticket;
}

// The ticket of the launcher, or without a launch one with the address to join at: then it has no number yet.
Result<Ticket> ClusterWorker::ticket_of(Context &context, const muster_worker_config &config) {
    if (config.master == nullptr && config.store == nullptr) return ContextTicket::of(context).take();
    Ticket ticket;
    ticket.listen = config.listen == nullptr ? "tcp://127.0.0.1:0" : config.listen;
    if (config.master != nullptr) ticket.master = config.master;
    return ticket;
}

// It may be tried again.
void ClusterWorker::return_ticket() noexcept {
    if (original_ticket_.member == 0) return;
    try {
        ContextTicket::of(context()).put(original_ticket_);
    } catch (const std::bad_alloc &) {
        context().log(MUSTER_LOG_ERROR, "cluster: out of memory: this context cannot come in again");
    }
}

// ---- begun ----------------------------------------------------------------------------------------------------------

ClusterWorker::ClusterWorker(Context &context, Ticket ticket, const muster_worker_config &config, int64_t deadline_ns,
                             ReportsTo reports_to, Ref<Queue> completions, Ref<Queue> events)
    : Cluster(context, std::move(completions), std::move(events), config.tag), flags_(config.flags),
      exit_grace_ns_(config.exit_grace_ns > 0 ? config.exit_grace_ns : default_grace_ns),
      report_fd_(report_descriptor(config)), reports_to_(reports_to), deadline_ns_(deadline_ns),
      join_error_(Error::make(MUSTER_E_CLOSED, "the context is closed")), ticket_(std::move(ticket)),
      original_ticket_(ticket_) {
    id_ = ticket_.cluster;
    limit_connections(config.max_connections);
    limit_broadcasts(config.max_broadcast_bytes);
    char name[HOST_NAME_MAX + 1] = "";
    gethostname(name, sizeof name - 1);
    host_ = name;
}

Result<Ref<ClusterWorker>> ClusterWorker::begin(Context &context, const muster_worker_config &config,
                                                int64_t timeout_ns, ReportsTo reports_to) {
    Deadline deadline(timeout_ns);
    const int64_t deadline_ns = deadline.endless() ? INT64_MAX : deadline.at();
    auto completions = Queue::create(context, 65536);
    if (!completions) return completions.error();
    Ref<Queue> events(config.queue != nullptr ? unwrap(config.queue) : nullptr);
    auto ticket = ticket_of(context, config);
    if (!ticket) return ticket.error();
    const auto worker = Ref<ClusterWorker>::adopt(new ClusterWorker(
        context, std::move(*ticket), config, deadline_ns, reports_to, std::move(*completions), std::move(events)));
    Error why = worker->prepare(config, deadline);
    if (why.status == MUSTER_OK) {
        auto started = worker->start_thread_of(reports_to == ReportsTo::events);
        if (started) return worker;
        why = started.error();
    }
    worker->stop_listening();
    worker->return_ticket();
    return why;
}

// Everything that may fail at once.
Error ClusterWorker::prepare(const muster_worker_config &config, Deadline &deadline) {
    const std::string &way = ticket_.master.empty() ? ticket_.listen : ticket_.master;
    if (config.store != nullptr && reports_to_ == ReportsTo::events) {
        store_url_ = config.store;
        store_name_ = config.name == nullptr ? "" : config.name;
    } else if (config.store != nullptr) {
        auto search = MasterSearch::open(context(), config.store, config.name == nullptr ? "" : config.name, deadline);
        if (!search) return search.error();
        search_ = std::move(*search);
    } else if (way.empty()) {
        return Error::make(MUSTER_E_PROTOCOL, "the ticket says neither to listen nor to dial");
    } else if (reports_to_ == ReportsTo::caller) {
        if (auto may = check_wait(context(), way); !may) return may.error();
    }
    if (!ticket_.listen.empty()) {
        // Whether a host that serves the transport listens is waited for in begin(), as long as all else.
        if (reports_to_ == ReportsTo::caller)
            if (auto may = check_wait(context(), ticket_.listen); !may) return may.error();
        if (const Error why = listen(ticket_.listen, Listener::Opening::begun); why.status != MUSTER_OK) return why;
        own_address_ = listener_address();
    }
    make_inbox(ticket_.listen.empty() ? ticket_.master : ticket_.listen);
    return {};
}

Error ClusterWorker::await() noexcept {
    const Status status = wait_for_self();
    if (status == MUSTER_OK) return {};
    if (over()) return join_error_;
    close_soon(-1);
    return Error::make(status, "%s", HostCall::why_ended(status));
}

// ---- the cluster's thread -------------------------------------------------------------------------------------------

void ClusterWorker::begin() {
    try {
        if (deadline_ns_ != INT64_MAX)
            join_timer_ = start_timer(deadline_ns_, [this] {
                join_timer_ = {};
                join_failed(Error::make(MUSTER_TIMEOUT, "%.220s", timeout_text_.c_str()));
            });
        timeout_text_ = "the transport that the host serves did not listen at " + ticket_.listen + " in time";
        when_listening([this](const Error &why) {
            if (is_listening_known_ || closing_) return;
            is_listening_known_ = true;
            if (why.status != MUSTER_OK) return join_failed(why);
            own_address_ = listener_address();
            if (!store_url_.empty())
                open_store();
            else if (search_)
                search_master();
            else
                reach_master();
        });
    } catch (const std::bad_alloc &) {
        join_failed(Error::from_status(MUSTER_E_NOMEM));
    }
}

int64_t ClusterWorker::left_ns() const noexcept {
    return deadline_ns_ == INT64_MAX ? -1 : std::max<int64_t>(1, deadline_ns_ - now_ns());
}

void ClusterWorker::open_store() {
    timeout_text_ = "the store " + store_url_ + " was not open in time";
    const uint64_t number = on_completion([this](const muster_completion &entry, const Error &why) {
        auto *const store = static_cast<muster_store *>(entry.object);
        if (store == nullptr) return join_failed(why);
        search_ = MasterSearch::in(store, std::exchange(store_url_, {}), store_name_);
        if (!closing_) search_master();
    });
    Error why;
    why.status = muster_store_open_begin(wrap(&context()), store_url_.data(), store_url_.size(), nullptr, -1,
                                         wrap(&*completions_), number, &why); // the alarm ends it
    if (why.status == MUSTER_AGAIN) why = Error::make(MUSTER_E_LIMIT, "the completions is full");
    if (why.status != MUSTER_OK) join_failed(why);
}

void ClusterWorker::search_master() {
    timeout_text_ = "no master has come to " + search_->url() + " in time";
    const uint64_t number = on_completion([this](const muster_completion &entry, const Error &why) {
        auto address = MasterSearch::address(entry, why);
        search_.reset();
        if (!address) {
            const bool late = address.error().status == MUSTER_TIMEOUT;
            return join_failed(late ? Error::make(MUSTER_TIMEOUT, "%.220s", timeout_text_.c_str()) : address.error());
        }
        ticket_.master = std::move(*address);
        reach_master();
    });
    if (const Error why = search_->begin(left_ns(), wrap(&*completions_), number); why.status != MUSTER_OK)
        join_failed(why);
}

void ClusterWorker::reach_master() {
    if (ticket_.master.empty())
        await_master();
    else
        dial_master();
}

// Of many that connect at once the master displaces some before they have sent a hello: these dial again. The refusal
// may be lost when the connection closes, so a reset is no reason to give up either.
void ClusterWorker::dial_master() {
    timeout_text_ = "dial " + ticket_.master + ": not in time";
    ClusterHello hello{ClusterHello::control, id_, ticket_.member == 0 ? no_member : ticket_.member,
                       MUSTER_CLUSTER_MASTER, 0,   {}};
    const int64_t left = left_ns(), limit = left < 0 ? max_dial_ns : std::min(left, max_dial_ns);
    dial(ticket_.master, hello, limit, [this](StreamHandle stream, const Error &why) {
        if (stream) return send_hello(std::move(stream));
        const bool refused = why.status == MUSTER_E_LIMIT && why.os_errno == 0;
        const bool reset = why.status == MUSTER_E_PEER && why.os_errno == ECONNRESET && resets_++ < max_resets;
        const bool slow = why.status == MUSTER_TIMEOUT;
        const int64_t again = now_ns() + retry_ns;
        if ((!refused && !reset && !slow) || again >= deadline_ns_) return join_failed(why);
        start_timer(again, [this] {
            if (!closing_) dial_master();
        });
    });
}

void ClusterWorker::await_master() {
    timeout_text_ = "the master did not dial in time";
    if (const Error why = report(); why.status != MUSTER_OK) return join_failed(why);
    watch_listener();
}

Error ClusterWorker::report() const {
    const std::string line = WorkerReport{own_address_, ticket_.members == 1 ? 0 : ticket_.member}.line();
    for (size_t at = 0; at < line.size();) {
        const ssize_t wrote = uncancelled::write(report_fd_, line.data() + at, line.size() - at);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0)
            return Error::from_errno(errno, MUSTER_E_SYSTEM, "write the address to descriptor %d", report_fd_);
        at += static_cast<size_t>(wrote);
    }
    return {};
}

void ClusterWorker::accepted(const ClusterHello &hello, StreamHandle stream) {
    const bool awaited = !link_ && !closing_ && ticket_.master.empty() && !search_ && store_url_.empty();
    if (awaited && hello.cluster == id_ && hello.to == ticket_.member) send_hello(std::move(stream));
}

// Sends the hello, and will be notified that it has joined.
void ClusterWorker::send_hello(StreamHandle stream) {
    timeout_text_ = "the master did not answer in time";
    // The transport of a host may have returned it only now.
    if (!ticket_.listen.empty()) own_address_ = listener_address();
    ControlMessage hello;
    hello.kind = ControlMessage::hello;
    hello.member = ticket_.member;
    hello.number = static_cast<uint64_t>(getpid());
    hello.text = host_;
    if (const std::string inbox = this->inbox_address(); !inbox.empty()) hello.text += '\0' + inbox;
    hello.address = own_address_;
    link_ = std::make_unique<ControlLink>(std::move(stream));
    const Status status =
        link_->watch(*completions_, on_completion([this](const muster_completion &, const Error &) { receive(); }));
    if (status != MUSTER_OK) return join_failed(Error::from_status(status));
    link_->send(hello);
}

void ClusterWorker::receive_join_answer(const ControlMessage &message) {
    if (message.kind == ControlMessage::refused) return join_failed(error_in(message));
    const bool newcomer = ticket_.member == 0 && message.member != MUSTER_CLUSTER_MASTER;
    if (message.kind != ControlMessage::welcome || (message.member != ticket_.member && !newcomer))
        return join_failed(
            Error::make(MUSTER_E_PROTOCOL, "the master answers with a message of kind %u", message.kind));
    if (newcomer) {
        ticket_.member = message.member;
        id_ = message.number;
    }
    master_address_ = message.address;
    master_inbox_ = message.text;
    joined();
}

void ClusterWorker::joined() {
    has_joined_ = true;
    cancel_timer(join_timer_);
    if ((flags_ & MUSTER_WORKER_EXIT_WITH_MASTER) != 0) link_->stream()->exit_with_peer(exit_grace_ns_);
    if (reports_to_ == ReportsTo::caller) open_events();
    set_self(ticket_.member);
    if (reports_to_ == ReportsTo::events) report_event(MUSTER_CLUSTER_JOINED, ticket_.member, {}, {});
    watch_listener(); // also for members that have connected meanwhile
}

void ClusterWorker::join_failed(const Error &why) noexcept {
    if (closing_) return;
    join_error_ = why;
    closing_ = true;
    link_.reset();
    search_.reset();
    stop_listening();
    return_ticket();
    if (reports_to_ == ReportsTo::caller || why.status == MUSTER_E_CLOSED) return;
    report_event(MUSTER_CLUSTER_FAILED, ticket_.member == 0 ? no_member : ticket_.member, why, why.message);
}

} // namespace muster
