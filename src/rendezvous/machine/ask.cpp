// SPDX-License-Identifier: MIT
#include "rendezvous/machine/ask.hpp"

namespace muster {

Result<StoreRequest> make_request(const AskOps &ops, std::string_view prefix,
                                  std::span<const StoreCondition> conditions) {
    std::vector<muster_store_op> plain(ops.size());
    for (size_t i = 0; i < ops.size(); i++) {
        const AskOp &op = ops[i];
        plain[i] = {op.kind,         op.condition,    op.key.data(),      op.key.size(),
                    op.value.data(), op.value.size(), op.expected.data(), op.expected.size(),
                    op.version,      op.number,       op.lease,           op.count,
                    op.rank};
    }
    return StoreRequest::read(plain.data(), plain.size(), prefix, conditions);
}

} // namespace muster
