// SPDX-License-Identifier: MIT
#pragma once
// Builds a request to the store: operations that own their bytes.
#include "store/table/request.hpp"

namespace muster {

struct AskOp {
    uint32_t kind = MUSTER_STORE_NONE;
    std::string key, value = {};
    uint32_t condition = MUSTER_STORE_ALWAYS;
    std::string expected = {};
    uint64_t version = 0, lease = 0;
    int64_t number = 0;
    uint32_t count = 0, rank = 0; // of a barrier

    AskOp if_absent() && { return std::move(*this).under(MUSTER_STORE_IF_ABSENT); }
    AskOp if_value(std::string_view what) && {
        expected = what;
        return std::move(*this).under(MUSTER_STORE_IF_VALUE);
    }
    AskOp if_version(uint64_t what) && {
        version = what;
        return std::move(*this).under(MUSTER_STORE_IF_VERSION);
    }
    AskOp on_lease(uint64_t what) && {
        lease = what;
        return std::move(*this);
    }

  private:
    AskOp under(uint32_t what) && {
        condition = what;
        return std::move(*this);
    }
};
using AskOps = std::vector<AskOp>;

Result<StoreRequest> make_request(const AskOps &ops, std::string_view prefix,
                                  std::span<const StoreCondition> conditions = {});

} // namespace muster
