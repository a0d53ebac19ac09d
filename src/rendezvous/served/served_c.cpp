// SPDX-License-Identifier: MIT
#include "base/boundary.hpp"
#include "base/config.hpp"
#include "rendezvous/served/served.hpp"
#include "serve/served_calls.hpp"

using namespace muster;

namespace {

Result<void> serve(muster_context *context, const char *scheme, size_t scheme_bytes, const muster_rendezvous_ops *ops,
                   void *self, muster_queue *requests, uint64_t tag) {
    if (auto valid = check_serve(context, scheme, scheme_bytes, requests); !valid) return valid;
    const std::string name(scheme, scheme_bytes);
    if (builtin_store(name) || name == "static")
        return Error::make(MUSTER_E_EXISTS, "serve %s: it is taken", name.c_str());
    return ServedRequests::of(*unwrap(context))
        .add(*make_ref<RendezvousProvider>(*unwrap(context), name, *unwrap(requests), ops, self, tag));
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
    return boundary(
        nullptr, [&] { return withdraw_served(ServedKind::rendezvous, "rendezvous", context, scheme, scheme_bytes); });
}

extern "C" muster_status muster_rendezvous_request_read(muster_queue *requests, uint64_t request,
                                                        muster_rendezvous_request *out_what) {
    return boundary(nullptr, [&]() -> Result<void> {
        auto queue = queue_of_answer(requests);
        if (!queue) return queue.error();
        if (auto valid = check_size(out_what); !valid) return valid;
        muster_rendezvous_request what;
        if (auto read = RendezvousProvider::read(**queue, request, what); !read) return read;
        copy_out(out_what, what);
        return {};
    });
}

extern "C" muster_status muster_rendezvous_request_round(muster_queue *requests, uint64_t request,
                                                         const muster_rendezvous_assignment *place,
                                                         muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        auto queue = queue_of_answer(requests);
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
        auto queue = queue_of_answer(requests);
        if (!queue) return queue.error();
        if (text == nullptr && text_bytes != 0) return Error::make(MUSTER_E_ARG, "answer: a text without a place");
        return RendezvousProvider::done(**queue, request,
                                        {text == nullptr ? "" : static_cast<const char *>(text), text_bytes});
    });
}

extern "C" muster_status muster_rendezvous_request_fail(muster_queue *requests, uint64_t request, muster_status status,
                                                        const char *text, size_t text_bytes) {
    return boundary(nullptr, [&]() -> Result<void> {
        auto queue = queue_of_answer(requests);
        if (!queue) return queue.error();
        if (status >= 0 || text_bytes > 200 || (text == nullptr && text_bytes != 0))
            return Error::from_status(MUSTER_E_ARG);
        return RendezvousProvider::fail(**queue, request, status, {text == nullptr ? "" : text, text_bytes});
    });
}

extern "C" muster_status muster_rendezvous_notify(muster_queue *requests, uint64_t member,
                                                  const muster_rendezvous_event *event, muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        auto queue = queue_of_answer(requests);
        if (!queue) return queue.error();
        if (event == nullptr) return Error::make(MUSTER_E_ARG, "notify: no event");
        return RendezvousProvider::notify(**queue, member, *event);
    });
}
