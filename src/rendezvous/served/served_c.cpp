// SPDX-License-Identifier: MIT
#include "base/boundary.hpp"
#include "base/config.hpp"
#include "plugin/session_address.hpp"
#include "rendezvous/served/served.hpp"

#include <cstring>

using namespace muster;

namespace {

Result<void> serve(muster_context *context, const char *scheme, size_t scheme_bytes, const muster_rendezvous_ops *ops,
                   void *self, muster_queue *requests, uint64_t tag) {
    if (context == nullptr || requests == nullptr) return Error::make(MUSTER_E_ARG, "serve: no context or no queue");
    Context &owner = *unwrap(context);
    if (owner.forked()) return Error::from_status(MUSTER_E_FORKED);
    if (scheme == nullptr || !valid_scheme({scheme, scheme_bytes}))
        return Error::make(MUSTER_E_ARG, "serve: a scheme is 1 to 31 of a-z 0-9 + . -, a letter first");
    if (&unwrap(requests)->context() != &owner)
        return Error::make(MUSTER_E_ARG, "serve: the queue is of another context");
    const std::string name(scheme, scheme_bytes);
    if (builtin_store(name) || name == "static")
        return Error::make(MUSTER_E_EXISTS, "serve %s: it is taken", name.c_str());
    return ServedRequests::of(owner).add(*make_ref<RendezvousProvider>(owner, name, *unwrap(requests), ops, self, tag));
}

// The queue of an answer, or why there is none.
Result<Queue *> queue_of(muster_queue *requests) {
    if (requests == nullptr) return Error::make(MUSTER_E_ARG, "answer: no queue");
    if (unwrap(requests)->context().forked()) return Error::from_status(MUSTER_E_FORKED);
    return unwrap(requests);
}

} // namespace

extern "C" muster_status muster_rendezvous_serve(muster_context *context, const char *scheme, size_t scheme_bytes,
                                                 muster_queue *requests, uint64_t tag, muster_error *error) {
    return boundary(error, [&] { return serve(context, scheme, scheme_bytes, nullptr, nullptr, requests, tag); });
}

extern "C" muster_status muster_rendezvous_serve_ops(muster_context *context, const char *scheme, size_t scheme_bytes,
                                                     const muster_rendezvous_ops *ops, void *self,
                                                     muster_queue *requests, muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        muster_rendezvous_ops table;
        if (Result<void> read = read_config(ops, table, "muster_rendezvous_ops"); !read) return read;
        if (table.request == nullptr || table.flags != 0)
            return Error::make(MUSTER_E_ARG, "serve: the table has no request, or unknown flags");
        return serve(context, scheme, scheme_bytes, &table, self, requests, tag_of(self));
    });
}

extern "C" muster_status muster_rendezvous_withdraw(muster_context *context, const char *scheme, size_t scheme_bytes) {
    return boundary(nullptr, [&]() -> Result<void> {
        if (context == nullptr || scheme == nullptr) return Error::from_status(MUSTER_E_ARG);
        if (unwrap(context)->forked()) return Error::from_status(MUSTER_E_FORKED);
        const std::string name(scheme, scheme_bytes);
        return ServedRequests::of(*unwrap(context))
            .withdraw(ServedKind::rendezvous, name, ("rendezvous " + name).c_str());
    });
}

extern "C" muster_status muster_rendezvous_request_read(muster_queue *requests, uint64_t request,
                                                        muster_rendezvous_request *out_what) {
    return boundary(nullptr, [&]() -> Result<void> {
        if (out_what == nullptr) return Error::from_status(MUSTER_E_ARG);
        auto queue = queue_of(requests);
        if (!queue) return queue.error();
        const uint32_t room = out_what->struct_size;
        if (room < sizeof *out_what || room > 65536) return Error::from_status(MUSTER_E_ABI);
        muster_rendezvous_request what;
        if (auto read = RendezvousProvider::read(**queue, request, what); !read) return read;
        std::memset(out_what, 0, room); // a newer caller's members
        *out_what = what;
        out_what->struct_size = room;
        return {};
    });
}

extern "C" muster_status muster_rendezvous_request_round(muster_queue *requests, uint64_t request,
                                                         const muster_rendezvous_assignment *place,
                                                         muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        auto queue = queue_of(requests);
        if (!queue) return queue.error();
        if (place == nullptr) return Error::make(MUSTER_E_ARG, "answer: no place");
        muster_rendezvous_assignment given;
        if (auto read = read_config(place, given, "muster_rendezvous_assignment"); !read) return read;
        return RendezvousProvider::round(**queue, request, given);
    });
}

extern "C" muster_status muster_rendezvous_request_done(muster_queue *requests, uint64_t request, const void *text,
                                                        size_t text_bytes, muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        auto queue = queue_of(requests);
        if (!queue) return queue.error();
        if (text == nullptr && text_bytes != 0) return Error::make(MUSTER_E_ARG, "answer: a text without a place");
        return RendezvousProvider::done(**queue, request,
                                        {text == nullptr ? "" : static_cast<const char *>(text), text_bytes});
    });
}

extern "C" muster_status muster_rendezvous_request_fail(muster_queue *requests, uint64_t request, muster_status status,
                                                        const char *text, size_t text_bytes) {
    return boundary(nullptr, [&]() -> Result<void> {
        auto queue = queue_of(requests);
        if (!queue) return queue.error();
        if (status >= 0 || text_bytes > 200 || (text == nullptr && text_bytes != 0))
            return Error::from_status(MUSTER_E_ARG);
        return RendezvousProvider::fail(**queue, request, status, {text == nullptr ? "" : text, text_bytes});
    });
}

extern "C" muster_status muster_rendezvous_notify(muster_queue *requests, uint64_t member,
                                                  const muster_rendezvous_event *event, muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        auto queue = queue_of(requests);
        if (!queue) return queue.error();
        if (event == nullptr) return Error::make(MUSTER_E_ARG, "tell: no event");
        return RendezvousProvider::notify(**queue, member, *event);
    });
}
