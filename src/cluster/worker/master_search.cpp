// SPDX-License-Identifier: MIT
#include "cluster/worker/master_search.hpp"

#include "cluster/launch/launch_plan.hpp"

#include <algorithm>

namespace muster {

MasterSearch::MasterSearch(muster_store *store, std::string url, const std::string &name)
    : store_(store), url_(std::move(url)), key_(master_address_key(name)) {}

MasterSearch::~MasterSearch() {
    if (request_ != 0) muster_store_cancel(store_, request_);
    muster_store_release(store_);
}

Result<std::unique_ptr<MasterSearch>> MasterSearch::open(Context &context, const std::string &url,
                                                         const std::string &name, Deadline &deadline) {
    muster_store *store = nullptr;
    Error why;
    why.status = muster_store_open(wrap(&context), url.data(), url.size(), nullptr,
                                   deadline.endless() ? -1 : std::max<int64_t>(1, deadline.left()), &store, &why);
    if (why.status != MUSTER_OK) return why;
    return in(store, url, name);
}

std::unique_ptr<MasterSearch> MasterSearch::in(muster_store *store, const std::string &url, const std::string &name) {
    return std::unique_ptr<MasterSearch>(new MasterSearch(store, url, name));
}

Error MasterSearch::begin(int64_t timeout_ns, muster_queue *queue, uint64_t tag) {
    muster_store_op op{};
    op.kind = MUSTER_STORE_GET;
    op.key = key_.data();
    op.key_bytes = key_.size();
    Error why;
    why.status = muster_store_begin(store_, &op, 1, timeout_ns, queue, tag, &request_, &why);
    return why;
}

Result<std::string> MasterSearch::address(const muster_completion &entry, const Error &why) {
    auto *const result = static_cast<muster_store_result *>(entry.object);
    Error wrong = why;
    std::string address;
    muster_store_entry found{};
    if (wrong.status == MUSTER_OK) wrong.status = muster_store_result_entry(result, 0, &found);
    if (wrong.status == MUSTER_OK) address.assign(static_cast<const char *>(found.value), found.value_bytes);
    muster_store_result_release(result);
    if (wrong.status != MUSTER_OK) return wrong;
    return address;
}

} // namespace muster
