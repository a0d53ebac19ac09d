// SPDX-License-Identifier: MIT
#include "base/boundary.hpp"
#include "base/config.hpp"
#include "base/text.hpp"
#include "cluster/served.hpp"
#include "serve/served_calls.hpp"

#include <algorithm>
#include <cstring>

using namespace muster;

namespace {

constexpr size_t text_max = 200;
constexpr uint32_t every_want = MUSTER_MANAGER_LAUNCH | MUSTER_MANAGER_CONNECT | MUSTER_MANAGER_CONNECT_WORKER |
                                MUSTER_MANAGER_REGISTER | MUSTER_MANAGER_DEREGISTER | MUSTER_MANAGER_INTERRUPT |
                                MUSTER_MANAGER_KILL | MUSTER_MANAGER_FINALIZE;

bool good_name(std::string_view name) noexcept {
    if (name.empty() || name.size() > 63) return false;
    for (const char c : name) {
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!letter && c != '-' && c != '_') return false;
    }
    return true;
}

Result<void> serve(muster_context *context, const char *name, size_t name_bytes, uint32_t wants,
                   const muster_manager_ops *ops, void *self, muster_queue *requests, uint64_t tag) {
    if (context == nullptr) return Error::make(MUSTER_E_ARG, "no context");
    if (requests == nullptr) return Error::make(MUSTER_E_ARG, "no queue");
    if (unwrap(context)->forked()) return Error::from_status(MUSTER_E_FORKED);
    if (&unwrap(requests)->context() != unwrap(context))
        return Error::make(MUSTER_E_ARG, "the queue is of another context");
    if (name == nullptr || !good_name({name, name_bytes}))
        return Error::make(MUSTER_E_ARG, "a manager's name is 1 to 63 letters, digits, '-' or '_'");
    if ((wants & ~every_want) != 0) return Error::make(MUSTER_E_ARG, "wants has unknown bits: 0x%x", wants);
    return ServedRequests::of(*unwrap(context))
        .add(*make_ref<ServedManager>(*unwrap(context), std::string(name, name_bytes), wants, *unwrap(requests), ops,
                                      self, tag));
}

Result<std::string> take_text(const char *text, size_t bytes, size_t most, const char *name) {
    if (text == nullptr && bytes != 0) return Error::make(MUSTER_E_ARG, "%s is NULL, and has a length", name);
    if (bytes > most) return Error::make(MUSTER_E_ARG, "%s has %zu bytes, at most %zu", name, bytes, most);
    return text == nullptr ? std::string() : std::string(text, bytes);
}

Result<void> read_failure(muster_status status, const char *text, size_t text_bytes, Error &out) {
    if (status >= 0) return Error::make(MUSTER_E_ARG, "status %d is no failure", status);
    auto said = take_text(text, text_bytes, text_max, "the text");
    if (!said) return said.error();
    make_printable(said->data(), said->size());
    out = said->empty() ? Error::from_status(status) : Error::make(status, "%s", said->c_str());
    return {};
}

} // namespace

extern "C" muster_status muster_manager_serve(muster_context *context, const char *name, size_t name_bytes,
                                              uint32_t wants, muster_queue *requests, uint64_t tag,
                                              muster_error *error) {
    return boundary(error, [&] { return serve(context, name, name_bytes, wants, nullptr, nullptr, requests, tag); });
}

extern "C" muster_status muster_manager_serve_ops(muster_context *context, const char *name, size_t name_bytes,
                                                  const muster_manager_ops *given, void *self, muster_queue *requests,
                                                  muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        if (given == nullptr) return Error::make(MUSTER_E_ARG, "no table of callbacks");
        muster_manager_ops ops;
        if (auto done = read_config(given, ops, "muster_manager_ops"); !done) return done;
        if (ops.flags != 0) return Error::make(MUSTER_E_ARG, "flags has unknown bits: 0x%x", ops.flags);
        if (ops.launch == nullptr) return Error::make(MUSTER_E_ARG, "launch is NULL: no function starts workers");
        return serve(context, name, name_bytes, 0, &ops, self, requests, tag_of(self));
    });
}

extern "C" muster_status muster_manager_withdraw(muster_context *context, const char *name, size_t name_bytes) {
    return boundary(nullptr,
                    [&] { return withdraw_served(ServedKind::manager, "manager", context, name, name_bytes); });
}

extern "C" muster_status muster_manager_request_read(muster_queue *requests, uint64_t request,
                                                     muster_manager_request *out_what) {
    return boundary(nullptr, [&]() -> Result<void> {
        auto queue = queue_of_answer(requests);
        if (!queue) return queue.error();
        if (out_what == nullptr) return Error::make(MUSTER_E_ARG, "no place for the request");
        if (out_what->struct_size < sizeof(muster_manager_request))
            return Error::make(MUSTER_E_ABI, "muster_manager_request: a size of %u was never released",
                               out_what->struct_size);
        muster_manager_request what;
        if (auto done = ServedManager::read(**queue, request, what); !done) return done;
        what.struct_size = out_what->struct_size;
        std::memcpy(out_what, &what, sizeof what);
        return {};
    });
}

extern "C" muster_status muster_manager_ticket(muster_queue *requests, uint64_t request, uint32_t member,
                                               char *out_text, size_t capacity, size_t *out_bytes) {
    return boundary(nullptr, [&]() -> Result<void> {
        auto queue = queue_of_answer(requests);
        if (!queue) return queue.error();
        if (out_bytes == nullptr) return Error::make(MUSTER_E_ARG, "no place for the length");
        auto ticket = ServedManager::ticket(**queue, request, member);
        if (!ticket) return ticket.error();
        *out_bytes = ticket->size();
        if (out_text == nullptr) return {};
        if (capacity < ticket->size()) return Error::make(MUSTER_E_LIMIT, "%zu bytes of room", capacity);
        std::copy(ticket->begin(), ticket->end(), out_text);
        return {};
    });
}

extern "C" muster_status muster_manager_worker_ready(muster_queue *requests, uint64_t request, uint32_t member,
                                                     const char *address, size_t address_bytes, uint64_t data,
                                                     muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        auto queue = queue_of_answer(requests);
        if (!queue) return queue.error();
        auto text = take_text(address, address_bytes, control_address_max, "the address");
        if (!text) return text.error();
        return ServedManager::ready(**queue, request, member, std::move(*text), data);
    });
}

extern "C" muster_status muster_manager_worker_failed(muster_queue *requests, uint64_t request, uint32_t member,
                                                      muster_status status, const char *text, size_t text_bytes,
                                                      muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        auto queue = queue_of_answer(requests);
        if (!queue) return queue.error();
        Error why;
        if (auto done = read_failure(status, text, text_bytes, why); !done) return done;
        return ServedManager::failed(**queue, request, member, why);
    });
}

extern "C" muster_status muster_manager_worker_ended(muster_queue *requests, muster_cluster *cluster, uint32_t member,
                                                     const char *text, size_t text_bytes, muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        auto queue = queue_of_answer(requests);
        if (!queue) return queue.error();
        if (cluster == nullptr) return Error::make(MUSTER_E_ARG, "no cluster");
        const Ref<Cluster> self(&unwrap(cluster)->cluster());
        if (self->forked()) return Error::from_status(MUSTER_E_FORKED);
        auto *const master = dynamic_cast<ClusterMaster *>(self.get());
        if (master == nullptr) return Error::make(MUSTER_E_UNSUPPORTED, "this member is not the master");
        auto how = take_text(text, text_bytes, text_max, "the text");
        if (!how) return how.error();
        const Status status = master->process_ended(**queue, member, std::move(*how));
        if (status == MUSTER_E_ARG) return Error::make(status, "worker %u was not launched through this queue", member);
        return status < 0 ? Result<void>(Error::from_status(status)) : Result<void>();
    });
}

extern "C" muster_status muster_manager_request_done(muster_queue *requests, uint64_t request, const char *address,
                                                     size_t address_bytes, muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        auto queue = queue_of_answer(requests);
        if (!queue) return queue.error();
        auto text = take_text(address, address_bytes, control_address_max, "the address");
        if (!text) return text.error();
        return ServedManager::done(**queue, request, std::move(*text));
    });
}

extern "C" muster_status muster_manager_request_fail(muster_queue *requests, uint64_t request, muster_status status,
                                                     const char *text, size_t text_bytes) {
    return boundary(nullptr, [&]() -> Result<void> {
        auto queue = queue_of_answer(requests);
        if (!queue) return queue.error();
        Error why;
        if (auto done = read_failure(status, text, text_bytes, why); !done) return done;
        return ServedManager::fail(**queue, request, why);
    });
}
