// SPDX-License-Identifier: MIT
// Requests on their way to the provider of a scheme.
#include "store/served/served.hpp"

#include "plugin/timed.hpp"

namespace muster {

void StoreServedRequest::set_operation(StoreOperation &of, uint64_t of_store) {
    operation = Ref<StoreOperation>(&of);
    store = of_store;
    ops_.resize(of.request.ops().size());
    for (size_t i = 0; i < ops_.size(); i++) {
        const StoreOp &from = of.request.ops()[i];
        muster_store_op &op = ops_[i];
        op.kind = from.kind;
        op.condition = from.condition;
        op.key = from.key.data();
        op.key_bytes = from.key.size();
        op.value = from.value.data();
        op.value_bytes = from.value.size();
        op.expected = from.expected.data();
        op.expected_bytes = from.expected.size();
        op.version = from.version;
        op.number = from.number;
        op.lease = from.lease;
        op.count = from.count;
        op.rank = from.rank;
    }
}

void StoreServedRequest::write(muster_store_request &out) const noexcept {
    out = {};
    out.struct_size = sizeof out;
    out.kind = kind;
    out.store = store;
    out.flags = flags;
    out.ops = ops_.data();
    out.op_count = ops_.size();
    out.url = url.data();
    out.url_bytes = url.size();
    out.lease = lease;
    out.ttl_ns = ttl_ns;
}

StoreProvider::StoreProvider(Context &context, const std::string &scheme, Queue *queue,
                             const muster_store_host_ops *ops, void *self, uint64_t tag)
    : Provided({.context = context,
                .kind = ServedKind::store,
                .name = scheme,
                .shown = "store " + scheme,
                .queue = queue,
                .tag = tag,
                .self = self,
                .has_callbacks = ops != nullptr,
                .is_on_loop = queue == nullptr || (ops != nullptr && (ops->flags & MUSTER_STORE_ANY_THREAD) != 0),
                .callbacks = callbacks_of(ops)}),
      ops_(ops != nullptr ? *ops : muster_store_host_ops{}) {}

void StoreProvider::call(int32_t kind, uint64_t id) {
    if (plugin_ == nullptr) return ServedProvider::call(kind, id);
    const char *const what = kind == MUSTER_REQUEST_STORE    ? "request"
                             : kind == MUSTER_REQUEST_CANCEL ? "cancel"
                             : id != 0                       ? "close"
                                                             : "destroy";
    timed(*plugin_, what, [&] { ServedProvider::call(kind, id); });
}

void StoreProvider::call_for(ServedRequest &request) {
    muster_store_request what;
    static_cast<StoreServedRequest &>(request).write(what);
    ops_.request(self(), request.id(), &what);
}

} // namespace muster
