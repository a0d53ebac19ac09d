// SPDX-License-Identifier: MIT
#include "base/boundary.hpp"
#include "base/config.hpp"
#include "serve/served_calls.hpp"
#include "store/served/served.hpp"

using namespace muster;

namespace {

Result<void> serve(muster_context *context, const char *scheme, size_t scheme_bytes, const muster_store_host_ops *ops,
                   void *self, muster_queue *requests, uint64_t tag) {
    if (auto valid = check_serve(context, scheme, scheme_bytes, requests); !valid) return valid;
    const std::string name(scheme, scheme_bytes);
    if (builtin_store(name)) return Error::make(MUSTER_E_EXISTS, "serve %s: it is taken", name.c_str());
    return ServedRequests::of(*unwrap(context))
        .add(*make_ref<StoreProvider>(*unwrap(context), name, unwrap(requests), ops, self, tag));
}

} // namespace

extern "C" muster_status muster_store_serve(muster_context *context, const char *scheme, size_t scheme_bytes,
                                            muster_queue *requests, uint64_t tag, muster_error *error) {
    return boundary(error, [&] { return serve(context, scheme, scheme_bytes, nullptr, nullptr, requests, tag); });
}

extern "C" muster_status muster_store_serve_ops(muster_context *context, const char *scheme, size_t scheme_bytes,
                                                const muster_store_host_ops *ops, void *self, muster_queue *requests,
                                                muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        muster_store_host_ops table;
        if (Result<void> read = read_config(ops, table, "muster_store_host_ops"); !read) return read;
        if (table.request == nullptr || (table.flags & ~uint32_t{MUSTER_STORE_ANY_THREAD}) != 0)
            return Error::make(MUSTER_E_ARG, "serve: the table has no request, or unknown flags");
        return serve(context, scheme, scheme_bytes, &table, self, requests, tag_of(self));
    });
}

extern "C" muster_status muster_store_withdraw(muster_context *context, const char *scheme, size_t scheme_bytes) {
    return boundary(nullptr,
                    [&] { return withdraw_served(ServedKind::store, "store", context, scheme, scheme_bytes); });
}

extern "C" muster_status muster_store_request_read(muster_queue *requests, uint64_t request,
                                                   muster_store_request *out_what) {
    return boundary(nullptr, [&]() -> Result<void> {
        auto queue = queue_of_answer(requests);
        if (!queue) return queue.error();
        if (auto valid = check_size(out_what); !valid) return valid;
        muster_store_request what;
        if (auto read = StoreProvider::read((*queue)->context(), *queue, request, what); !read) return read;
        copy_out(out_what, what);
        return {};
    });
}

extern "C" muster_status muster_store_request_open(muster_queue *requests, uint64_t request,
                                                   const muster_store_traits *traits, muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        auto queue = queue_of_answer(requests);
        if (!queue) return queue.error();
        if (traits == nullptr) return Error::make(MUSTER_E_ARG, "answer: no traits");
        muster_store_traits given;
        if (auto read = read_config(traits, given, "muster_store_traits"); !read) return read;
        return StoreProvider::opened((*queue)->context(), *queue, request, given);
    });
}

extern "C" muster_status muster_store_request_done(muster_queue *requests, uint64_t request, muster_status status,
                                                   const muster_store_entry *entries, size_t entry_count,
                                                   uint64_t revision, muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        auto queue = queue_of_answer(requests);
        if (!queue) return queue.error();
        return StoreProvider::done((*queue)->context(), *queue, request, status, entries, entry_count, revision);
    });
}

extern "C" muster_status muster_store_request_fail(muster_queue *requests, uint64_t request, muster_status status,
                                                   uint32_t op, const char *text, size_t text_bytes) {
    return boundary(nullptr, [&]() -> Result<void> {
        auto queue = queue_of_answer(requests);
        if (!queue) return queue.error();
        if ((status >= 0 && status != MUSTER_AGAIN) || text_bytes > 200 || (text == nullptr && text_bytes != 0))
            return Error::from_status(MUSTER_E_ARG);
        return StoreProvider::fail((*queue)->context(), *queue, request, status, op,
                                   {text == nullptr ? "" : text, text_bytes});
    });
}
