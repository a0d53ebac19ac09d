// SPDX-License-Identifier: MIT
#include "base/boundary.hpp"
#include "base/config.hpp"
#include "base/fd.hpp"
#include "base/trace.hpp"
#include "cluster/broadcast/broadcast.hpp"
#include "cluster/lifecycle/master.hpp"
#include "cluster/worker/fetch_ticket.hpp"
#include "cluster/worker/worker.hpp"
#include "context/host_call.hpp"
#include "queue/begun_call.hpp"
#include "store/backend/store.hpp"

#include <cstdlib>
#include <cstring>
#include <fcntl.h>

using namespace muster;

namespace {

Result<void> check_queue(muster_context *context, muster_queue *queue) {
    if (queue == nullptr) return {};
    if (&unwrap(queue)->context() != unwrap(context))
        return Error::make(MUSTER_E_ARG, "the queue is of another context");
    if (unwrap(queue)->closed()) return Error::make(MUSTER_E_CLOSED, "the queue is closed");
    return {};
}

Result<void> check_context(muster_context *context) {
    if (context == nullptr) return Error::make(MUSTER_E_ARG, "no context");
    if (unwrap(context)->forked()) return Error::from_status(MUSTER_E_FORKED);
    if (unwrap(context)->closed()) return Error::make(MUSTER_E_CLOSED, "the context is closed");
    return {};
}

// Calls keep the cluster alive while they are in it: another thread may release it meanwhile.
template <class Body>
Status inside(muster_cluster *cluster, Body &&body) noexcept {
    if (cluster == nullptr) return MUSTER_E_ARG;
    if (unwrap(cluster)->cluster().forked()) return MUSTER_E_FORKED;
    return boundary([&] {
        const Uncancelled guard;
        const Ref<ClusterHandle> handle(unwrap(cluster));
        const Ref<Cluster> self(&handle->cluster());
        const HostCall call(self->context(), handle.get());
        return body(*self);
    });
}

template <class Body>
Status inside_master(muster_cluster *cluster, Body &&body) noexcept {
    return inside(cluster, [&](Cluster &self) {
        auto *const master = dynamic_cast<ClusterMaster *>(&self);
        return master == nullptr ? Status{MUSTER_E_UNSUPPORTED} : body(*master);
    });
}

Result<Ref<ClusterDial>> make_dial(muster_cluster *cluster, uint32_t member, const void *label, size_t label_bytes,
                                   int64_t timeout_ns) {
    if (cluster == nullptr) return Error::make(MUSTER_E_ARG, "no cluster");
    Cluster &self = unwrap(cluster)->cluster();
    if (self.forked()) return Error::from_status(MUSTER_E_FORKED);
    if (label == nullptr && label_bytes != 0) return Error::make(MUSTER_E_ARG, "label_bytes is set, but no label");
    if (label_bytes > max_label_bytes)
        return Error::make(MUSTER_E_ARG, "label_bytes is %zu, at most %zu", label_bytes, max_label_bytes);
    if (timeout_ns == 0) return Error::make(MUSTER_E_ARG, "timeout_ns is 0: a connection takes time");
    std::string text;
    if (label_bytes != 0) text.assign(static_cast<const char *>(label), label_bytes);
    return make_ref<ClusterDial>(self.context(), member, std::move(text), timeout_ns);
}

Result<Ref<ClusterBroadcast>> make_broadcast(muster_cluster *cluster, const uint32_t *members, size_t count,
                                             const void *label, size_t label_bytes, const void *data,
                                             uint64_t size_bytes, int64_t timeout_ns, muster_status *out_statuses) {
    if (cluster == nullptr) return Error::make(MUSTER_E_ARG, "no cluster");
    Cluster &self = unwrap(cluster)->cluster();
    if (self.forked()) return Error::from_status(MUSTER_E_FORKED);
    if (members == nullptr && count != 0) return Error::make(MUSTER_E_ARG, "count is %zu, but no members", count);
    if (members != nullptr && (count == 0 || count > max_cluster_workers))
        return Error::make(MUSTER_E_ARG, "count is %zu, not 1 to %u", count, max_cluster_workers);
    if (members == nullptr && out_statuses != nullptr)
        return Error::make(MUSTER_E_ARG, "out_statuses without members: its length is unknown");
    if (members == nullptr && !self.knows_all_members())
        return Error::make(MUSTER_E_UNSUPPORTED, "no members: only the master of a cluster knows who is in");
    if (label == nullptr && label_bytes != 0) return Error::make(MUSTER_E_ARG, "label_bytes is set, but no label");
    if (label_bytes > max_label_bytes)
        return Error::make(MUSTER_E_ARG, "label_bytes is %zu, at most %zu", label_bytes, max_label_bytes);
    if (data == nullptr && size_bytes != 0) return Error::make(MUSTER_E_ARG, "size_bytes is set, but no data");
    if (size_bytes > uint64_t{INT64_MAX}) return Error::make(MUSTER_E_ARG, "size_bytes is more than 2^63");
    if (timeout_ns == 0) return Error::make(MUSTER_E_ARG, "timeout_ns is 0: nothing arrives in no time");
    std::string text;
    if (label_bytes != 0) text.assign(static_cast<const char *>(label), label_bytes);
    std::vector<uint32_t> to;
    if (count != 0) to.assign(members, members + count);
    return make_ref<ClusterBroadcast>(self.context(), std::move(to), std::move(text), data, size_bytes, timeout_ns,
                                      out_statuses);
}

// An operation that has a slot of a queue and could not be started releases the slot.
template <class Start>
Result<void> start_or_withdraw(QueueOperation &operation, const Start &start) {
    Result<void> started;
    try {
        started = start();
    } catch (const std::bad_alloc &) {
        started = Error::make(MUSTER_E_NOMEM, "out of memory");
    }
    if (!started) operation.withdraw();
    return started;
}

Result<int> ticket_descriptor(int32_t given_plus_one) {
    if (given_plus_one < 0) return Error::make(MUSTER_E_ARG, "ticket_fd_plus_one is %d", given_plus_one);
    if (given_plus_one > 0) return given_plus_one - 1;
    const char *const named = getenv("MUSTER_WORKER_FD");
    if (named == nullptr || *named == '\0')
        return Error::make(MUSTER_E_NOT_FOUND,
                           "this process was not launched as a worker: no MUSTER_WORKER_FD, no MUSTER_WORKER_TICKET");
    char *end = nullptr;
    const long fd = strtol(named, &end, 10);
    if (*end != '\0' || fd < 0 || fd > INT32_MAX || fcntl(static_cast<int>(fd), F_GETFD) < 0)
        return Error::make(MUSTER_E_NOT_FOUND, "MUSTER_WORKER_FD is \"%.40s\", which is no open descriptor", named);
    return static_cast<int>(fd);
}

// Descriptors 0 to 2 stay in use: a descriptor that is opened next must not become this process's input or output.
void leave_descriptor(int fd) noexcept {
    const Fd nothing(fd <= 2 ? open("/dev/null", O_RDWR | O_CLOEXEC) : -1);
    if (nothing)
        dup2(nothing.get(), fd);
    else
        uncancelled::close(fd);
}

Result<Ticket> take_ticket(int32_t given_plus_one) {
    char *const line = given_plus_one == 0 ? getenv(ticket_variable) : nullptr;
    if (line != nullptr && *line != '\0') {
        auto ticket = Ticket::parse_variable(line);
        explicit_bzero(line, strlen(line)); // /proc shows the environment as it is in memory
        return ticket;
    }
    auto fd = ticket_descriptor(given_plus_one);
    if (!fd) return fd.error();
    auto ticket = read_ticket(*fd);
    if (given_plus_one == 0) leave_descriptor(*fd);
    return ticket;
}

Result<void> read_cluster_config(muster_context *context, const muster_cluster_config *given,
                                 muster_cluster_config &config) {
    if (auto ok = check_context(context); !ok) return ok;
    if (auto done = read_config(given, config, "muster_cluster_config"); !done) return done;
    if (config.flags != 0) return Error::make(MUSTER_E_ARG, "flags has unknown bits: 0x%x", config.flags);
    if (config.topology > MUSTER_CLUSTER_CUSTOM)
        return Error::make(MUSTER_E_ARG, "there is no topology %u", config.topology);
    if (config.reserved1 != 0) return Error::make(MUSTER_E_ARG, "reserved1 is not zero");
    if (config.listen == nullptr && config.listen_bytes != 0)
        return Error::make(MUSTER_E_ARG, "listen_bytes is set, but there is no listen");
    if (config.store == nullptr && config.store_bytes != 0)
        return Error::make(MUSTER_E_ARG, "store_bytes is set, but there is no store");
    if (config.join_timeout_ns < 0)
        return Error::make(MUSTER_E_ARG, "join_timeout_ns is %lld", static_cast<long long>(config.join_timeout_ns));
    if (config.leave_timeout_ns < 0)
        return Error::make(MUSTER_E_ARG, "leave_timeout_ns is %lld", static_cast<long long>(config.leave_timeout_ns));
    if (auto ok = check_queue(context, config.queue); !ok) return ok;
    return {};
}

} // namespace

extern "C" muster_status muster_cluster_open(muster_context *context, const muster_cluster_config *given,
                                             muster_cluster **out_cluster, muster_error *error) {
    if (out_cluster != nullptr) *out_cluster = nullptr;
    return boundary(error, [&]() -> Result<void> {
        if (out_cluster == nullptr) return Error::make(MUSTER_E_ARG, "no place for the cluster");
        muster_cluster_config config;
        if (auto done = read_cluster_config(context, given, config); !done) return done;
        const HostCall call(*unwrap(context), nullptr, HostCall::EndedBy::context_too);
        auto handle = make_ref<ClusterHandle>();
        auto master = ClusterMaster::open(*unwrap(context), config);
        if (!master) return master.error();
        handle->hold(Ref<Cluster>(*master));
        *out_cluster = wrap(handle.detach());
        return {};
    });
}

extern "C" muster_status muster_cluster_open_begin(muster_context *context, const muster_cluster_config *given,
                                                   muster_queue *queue, uint64_t tag, muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        muster_cluster_config config;
        if (auto done = read_cluster_config(context, given, config); !done) return done;
        const bool listens = config.listen != nullptr;
        const Ref<Queue> events(config.queue != nullptr ? unwrap(config.queue) : nullptr);
        const auto open = [&in = *unwrap(context), config, listens, events,
                           address = listens ? std::string(config.listen, config.listen_bytes) : std::string()] {
            muster_cluster_config own = config;
            own.listen = listens ? address.data() : nullptr;
            BegunCall::Outcome outcome;
            const auto handle = make_ref<ClusterHandle>();
            auto master = ClusterMaster::open(in, own);
            if (!master) {
                outcome.why = master.error();
                return outcome;
            }
            handle->hold(Ref<Cluster>(*master));
            outcome.handle = wrap(handle.get());
            outcome.object = Ref<Object>(handle);
            return outcome;
        };
        return BegunCall::begin({*unwrap(context), MUSTER_DONE_OPEN, open}, queue, tag);
    });
}

extern "C" muster_status muster_cluster_add(muster_cluster *cluster, const muster_launch *launch, uint32_t *out_first,
                                            muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        if (cluster == nullptr) return Error::make(MUSTER_E_ARG, "no cluster");
        const Ref<Cluster> self(&unwrap(cluster)->cluster());
        if (self->forked()) return Error::from_status(MUSTER_E_FORKED);
        auto *const master = dynamic_cast<ClusterMaster *>(self.get());
        if (master == nullptr) return Error::make(MUSTER_E_UNSUPPORTED, "only the master of a cluster adds workers");
        auto plan = read_launch(launch);
        if (!plan) return plan.error();
        const Ref<ClusterHandle> handle(unwrap(cluster));
        auto first = master->add(std::move(*plan));
        if (!first) return first.error();
        if (out_first != nullptr) *out_first = *first;
        return {};
    });
}

extern "C" muster_status muster_cluster_add_begin(muster_cluster *cluster, const muster_launch *launch,
                                                  muster_queue *queue, uint64_t tag, muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        if (cluster == nullptr) return Error::make(MUSTER_E_ARG, "no cluster");
        const Ref<Cluster> self(&unwrap(cluster)->cluster());
        if (self->forked()) return Error::from_status(MUSTER_E_FORKED);
        if (dynamic_cast<ClusterMaster *>(self.get()) == nullptr)
            return Error::make(MUSTER_E_UNSUPPORTED, "only the master of a cluster adds workers");
        auto plan = read_launch(launch);
        if (!plan) return plan.error();
        const auto add = [self, plan = std::shared_ptr<const LaunchPlan>(std::move(*plan))] {
            BegunCall::Outcome outcome;
            const auto published = make_ref<PublicationResult>(self->context());
            auto &master = static_cast<ClusterMaster &>(*self);
            auto first = master.add(plan, published);
            if (!first)
                outcome.why = first.error();
            else if (*first == 0) // the address of the master is published first
                outcome.why = published->wait();
            else
                outcome.bytes = *first;
            if (outcome.why.status == MUSTER_E_CANCELED) master.cancel_publication(published);
            return outcome;
        };
        return BegunCall::begin({self->context(), MUSTER_DONE_CALL, add}, queue, tag);
    });
}

extern "C" muster_status muster_cluster_remove(muster_cluster *cluster, uint32_t member, int64_t grace_ns) {
    return inside_master(cluster, [&](ClusterMaster &master) { return master.remove(member, grace_ns); });
}

extern "C" muster_status muster_cluster_interrupt(muster_cluster *cluster, uint32_t member) {
    return inside_master(cluster, [&](ClusterMaster &master) { return master.interrupt(member); });
}

extern "C" muster_status muster_cluster_next_event(muster_cluster *cluster, int64_t timeout_ns,
                                                   muster_cluster_event *out_event) {
    return inside(cluster, [&](Cluster &self) {
        if (out_event == nullptr) return Status{MUSTER_E_ARG};
        Deadline deadline(timeout_ns);
        return self.next_event(deadline, *out_event);
    });
}

extern "C" muster_status muster_cluster_cancel(muster_cluster *cluster) {
    return inside(cluster, [](Cluster &self) {
        self.cancel();
        return Status{MUSTER_OK};
    });
}

namespace {

Result<Ref<Store>> open_store_of(Cluster &cluster, Deadline &deadline) {
    auto address = cluster.store_address(deadline);
    if (!address) return address.error();
    muster_store_config config = {};
    config.struct_size = sizeof config;
    return Store::open(cluster.context(), *address, config, deadline);
}

Result<void> check_store_call(muster_cluster *cluster, int64_t timeout_ns) {
    if (cluster == nullptr) return Error::make(MUSTER_E_ARG, "no cluster");
    if (timeout_ns == 0) return Error::make(MUSTER_E_ARG, "timeout_ns is 0: a store is not opened in no time");
    if (unwrap(cluster)->cluster().forked()) return Error::from_status(MUSTER_E_FORKED);
    return {};
}

} // namespace

extern "C" muster_status muster_cluster_store(muster_cluster *cluster, int64_t timeout_ns, muster_store **out_store,
                                              muster_error *error) {
    if (out_store != nullptr) *out_store = nullptr;
    return boundary(error, [&]() -> Result<void> {
        if (out_store == nullptr) return Error::make(MUSTER_E_ARG, "no place for the store");
        if (auto done = check_store_call(cluster, timeout_ns); !done) return done;
        const Ref<ClusterHandle> handle(unwrap(cluster));
        const Ref<Cluster> self(&handle->cluster());
        const HostCall call(self->context(), handle.get(), HostCall::EndedBy::context_too);
        Deadline deadline(timeout_ns);
        auto store = open_store_of(*self, deadline);
        if (!store && store.error().status > 0) {
            report(error, store.error());
            return Result<void>::positive(store.error().status);
        }
        if (!store) return store.error();
        *out_store = wrap(store->detach());
        return {};
    });
}

extern "C" muster_status muster_cluster_store_begin(muster_cluster *cluster, int64_t timeout_ns, muster_queue *queue,
                                                    uint64_t tag, muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        if (auto done = check_store_call(cluster, timeout_ns); !done) return done;
        const Ref<Cluster> self(&unwrap(cluster)->cluster());
        Deadline deadline(timeout_ns);
        if (!deadline.endless()) deadline.at(); // time runs from here
        const auto open = [self, deadline]() mutable {
            BegunCall::Outcome outcome;
            auto store = open_store_of(*self, deadline);
            if (!store) return outcome.why = store.error(), outcome;
            outcome.handle = wrap(store->get());
            outcome.object = std::move(*store);
            return outcome;
        };
        return BegunCall::begin({self->context(), MUSTER_DONE_OPEN, open}, queue, tag);
    });
}

extern "C" muster_status muster_cluster_dial(muster_cluster *cluster, uint32_t member, const void *label,
                                             size_t label_bytes, int64_t timeout_ns, muster_stream **out_stream,
                                             muster_error *error) {
    if (out_stream != nullptr) *out_stream = nullptr;
    return boundary(error, [&]() -> Result<void> {
        if (out_stream == nullptr) return Error::make(MUSTER_E_ARG, "no place for the stream");
        auto dial = make_dial(cluster, member, label, label_bytes, timeout_ns);
        if (!dial) return dial.error();
        const Ref<ClusterHandle> handle(unwrap(cluster));
        const Ref<Cluster> self(&handle->cluster());
        const HostCall call(self->context(), handle.get());
        const TraceSpan span("cluster", "open a stream", {static_cast<const char *>(label), label_bytes});
        if (auto started = self->start_dial(*dial); !started) return started;
        auto stream = (*dial)->wait();
        if (!stream && stream.error().status > 0) {
            report(error, stream.error());
            return Result<void>::positive(stream.error().status);
        }
        if (!stream) return stream.error();
        *out_stream = stream->release();
        return {};
    });
}

extern "C" muster_status muster_cluster_dial_begin(muster_cluster *cluster, uint32_t member, const void *label,
                                                   size_t label_bytes, int64_t timeout_ns, muster_queue *queue,
                                                   uint64_t tag, muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        auto dial = make_dial(cluster, member, label, label_bytes, timeout_ns);
        if (!dial) return dial.error();
        const Ref<Cluster> self(&unwrap(cluster)->cluster());
        if (queue == nullptr) return Error::make(MUSTER_E_ARG, "no queue");
        if (auto ok = check_queue(wrap(&self->context()), queue); !ok) return ok;
        auto begun = (*dial)->deliver_to(*unwrap(queue), tag);
        if (begun.status() != MUSTER_OK) return begun;
        return start_or_withdraw(**dial, [&] { return self->start_dial(*dial); });
    });
}

extern "C" muster_status muster_cluster_broadcast(muster_cluster *cluster, const uint32_t *members, size_t count,
                                                  const void *label, size_t label_bytes, const void *data,
                                                  uint64_t size_bytes, int64_t timeout_ns, muster_status *out_statuses,
                                                  muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        auto broadcast =
            make_broadcast(cluster, members, count, label, label_bytes, data, size_bytes, timeout_ns, out_statuses);
        if (!broadcast) return broadcast.error();
        const Ref<ClusterHandle> handle(unwrap(cluster));
        const Ref<Cluster> self(&handle->cluster());
        const HostCall call(self->context(), handle.get());
        if (self->context().on_loop()) return Error::from_status(MUSTER_E_WOULD_DEADLOCK);
        const TraceSpan span("cluster", "broadcast", {static_cast<const char *>(label), label_bytes});
        (*broadcast)->begins_in(*self);
        if (auto started = self->start_broadcast(*broadcast); !started) return started;
        return (*broadcast)->wait();
    });
}

extern "C" muster_status muster_cluster_broadcast_begin(muster_cluster *cluster, const uint32_t *members, size_t count,
                                                        const void *label, size_t label_bytes, const void *data,
                                                        uint64_t size_bytes, int64_t timeout_ns,
                                                        muster_status *out_statuses, muster_queue *queue, uint64_t tag,
                                                        muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        auto broadcast =
            make_broadcast(cluster, members, count, label, label_bytes, data, size_bytes, timeout_ns, out_statuses);
        if (!broadcast) return broadcast.error();
        const Ref<Cluster> self(&unwrap(cluster)->cluster());
        if (queue == nullptr) return Error::make(MUSTER_E_ARG, "no queue");
        if (auto ok = check_queue(wrap(&self->context()), queue); !ok) return ok;
        (*broadcast)->begins_in(*self);
        auto begun = (*broadcast)->deliver_to(*unwrap(queue), tag);
        if (begun.status() != MUSTER_OK) return begun;
        return start_or_withdraw(**broadcast, [&] { return self->start_broadcast(*broadcast); });
    });
}

extern "C" void muster_broadcast_release(muster_broadcast *broadcast) {
    if (broadcast != nullptr) unwrap(broadcast)->release();
}

extern "C" muster_status muster_cluster_get_member(muster_cluster *cluster, uint32_t member,
                                                   muster_member_info *out_info) {
    return inside(cluster, [&](Cluster &self) {
        return out_info == nullptr ? Status{MUSTER_E_ARG} : self.member(member, *out_info);
    });
}

extern "C" muster_status muster_cluster_list(muster_cluster *cluster, uint32_t *out_members, size_t capacity,
                                             size_t *out_count) {
    return inside_master(cluster, [&](ClusterMaster &master) {
        return out_count == nullptr ? Status{MUSTER_E_ARG} : master.list(out_members, capacity, out_count);
    });
}

extern "C" uint32_t muster_cluster_self(muster_cluster *cluster) {
    return cluster == nullptr ? UINT32_MAX : unwrap(cluster)->cluster().self();
}

extern "C" muster_status muster_cluster_close(muster_cluster *cluster, int64_t timeout_ns) {
    return inside(cluster, [&](Cluster &self) { return self.close(timeout_ns); });
}

extern "C" muster_status muster_cluster_close_begin(muster_cluster *cluster, int64_t timeout_ns, muster_queue *queue,
                                                    uint64_t tag, muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        if (cluster == nullptr) return Error::make(MUSTER_E_ARG, "no cluster");
        const Ref<Cluster> self(&unwrap(cluster)->cluster());
        if (self->forked()) return Error::from_status(MUSTER_E_FORKED);
        const auto await = [self] {
            BegunCall::Outcome outcome;
            if (const Status status = self->await_end(); status != MUSTER_OK) outcome.why = Error::from_status(status);
            return outcome;
        };
        auto begun = BegunCall::begin({self->context(), MUSTER_DONE_CALL, await}, queue, tag);
        if (begun.status() == MUSTER_OK) self->close_soon(timeout_ns);
        return begun;
    });
}

extern "C" void muster_cluster_release(muster_cluster *cluster) {
    if (cluster != nullptr) release_handle(*unwrap(cluster));
}

extern "C" muster_status muster_worker_context(const muster_context_config *given, int32_t ticket_fd_plus_one,
                                               muster_context **out_context, muster_error *error) {
    if (out_context != nullptr) *out_context = nullptr;
    return boundary(error, [&]() -> Result<void> {
        if (out_context == nullptr) return Error::make(MUSTER_E_ARG, "no place for the context");
        muster_context_config config;
        if (auto done = read_config(given, config, "muster_context_config"); !done) return done;
        if (config.secret != nullptr || config.secret_bytes != 0 || config.secret_fd_plus_one != 0)
            return Error::make(MUSTER_E_ARG, "the config names a secret: a worker's is in its ticket");
        auto ticket = take_ticket(ticket_fd_plus_one);
        if (!ticket) return ticket.error();
        if (auto own = ticket->take_own(); !own) return own;
        if (!ticket->key.empty()) {
            ticket = fetch_ticket(*ticket);
            if (!ticket) return ticket.error();
        }
        config.secret = ticket->secret.data();
        config.secret_bytes = ticket->secret.size();
        Error why;
        muster_context *made = nullptr;
        if (muster_context_create(&config, &made, &why) != MUSTER_OK) return why;
        ticket->secret.clear(); // the context has it
        ContextTicket::of(*unwrap(made)).put(std::move(*ticket));
        *out_context = made;
        return {};
    });
}

static Result<void> check_worker_config(muster_context *context, const muster_worker_config &config) {
    constexpr uint32_t known = MUSTER_WORKER_EXIT_WITH_MASTER | MUSTER_WORKER_RAISE_INTERRUPT;
    if ((config.flags & ~known) != 0) return Error::make(MUSTER_E_ARG, "flags has unknown bits: 0x%x", config.flags);
    if (config.exit_grace_ns < 0)
        return Error::make(MUSTER_E_ARG, "exit_grace_ns is %lld", static_cast<long long>(config.exit_grace_ns));
    if (config.report_fd_plus_one < 0)
        return Error::make(MUSTER_E_ARG, "report_fd_plus_one is %d", config.report_fd_plus_one);
    if (config.master != nullptr && config.store != nullptr)
        return Error::make(MUSTER_E_ARG, "master and store: the one or the other");
    if (config.name != nullptr && config.store == nullptr)
        return Error::make(MUSTER_E_ARG, "name is set, but no store to find it in");
    if (config.listen != nullptr && config.master == nullptr && config.store == nullptr)
        return Error::make(MUSTER_E_ARG, "listen is set: where a worker listens that was launched says its ticket");
    return check_queue(context, config.queue);
}

static muster_status start_worker(muster_context *context, const muster_worker_config *given, int64_t timeout_ns,
                                  ClusterWorker::ReportsTo reports_to, muster_cluster **out_cluster,
                                  muster_error *error) {
    if (out_cluster != nullptr) *out_cluster = nullptr;
    return boundary(error, [&]() -> Result<void> {
        if (auto ok = check_context(context); !ok) return ok;
        if (out_cluster == nullptr) return Error::make(MUSTER_E_ARG, "no place for the cluster");
        if (timeout_ns == 0) return Error::make(MUSTER_E_ARG, "timeout_ns is 0: joining takes time");
        muster_worker_config config;
        if (auto done = read_config(given, config, "muster_worker_config"); !done) return done;
        if (auto ok = check_worker_config(context, config); !ok) return ok;
        const HostCall call(*unwrap(context), nullptr, HostCall::EndedBy::context_too);
        auto handle = make_ref<ClusterHandle>();
        const TraceSpan span("cluster", "join");
        auto worker = ClusterWorker::begin(*unwrap(context), config, timeout_ns, reports_to);
        Error why;
        if (!worker)
            why = worker.error();
        else if (reports_to == ClusterWorker::ReportsTo::caller)
            why = (*worker)->await();
        if (why.status > 0) {
            report(error, why);
            return Result<void>::positive(why.status);
        }
        if (why.status < 0) return why;
        handle->hold(Ref<Cluster>(*worker));
        *out_cluster = wrap(handle.detach());
        return {};
    });
}

extern "C" muster_status muster_worker_start(muster_context *context, const muster_worker_config *config,
                                             int64_t timeout_ns, muster_cluster **out_cluster, muster_error *error) {
    return start_worker(context, config, timeout_ns, ClusterWorker::ReportsTo::caller, out_cluster, error);
}

extern "C" muster_status muster_worker_start_begin(muster_context *context, const muster_worker_config *config,
                                                   int64_t timeout_ns, muster_cluster **out_cluster,
                                                   muster_error *error) {
    return start_worker(context, config, timeout_ns, ClusterWorker::ReportsTo::events, out_cluster, error);
}
