// SPDX-License-Identifier: MIT
#include "group/meeting_place.hpp"

#include <algorithm>

namespace muster {

namespace {

Error error_of(Status status, const Error &why) noexcept {
    return why.status != MUSTER_OK ? why : Error::from_status(status);
}

} // namespace

Result<MeetingPlace> MeetingPlace::of(const muster_group_config &config, Deadline &deadline, uint32_t &rank,
                                      uint32_t &size) {
    const int given = (config.round != nullptr) + (config.store != nullptr) + (config.cluster != nullptr);
    if (given > 1) return Error::make(MUSTER_E_ARG, "more than one of round, store and cluster is given");
    const bool by_member = (config.flags & MUSTER_GROUP_RANK_OF_MEMBER) != 0;
    if (by_member && config.cluster == nullptr)
        return Error::make(MUSTER_E_ARG, "MUSTER_GROUP_RANK_OF_MEMBER is set, and no cluster is given");
    Error why;
    muster_store *opened = nullptr;
    if (config.round != nullptr) {
        muster_round_info info;
        if (const Status status = muster_round_get_info(config.round, &info); status != MUSTER_OK)
            return Error::from_status(status);
        if (const Status status = muster_round_store(config.round, &opened, &why); status != MUSTER_OK)
            return error_of(status, why);
        rank = info.rank;
        size = info.world;
        return MeetingPlace(opened, opened);
    }
    if (config.cluster == nullptr) return MeetingPlace(config.store, nullptr);
    if (by_member) {
        rank = muster_cluster_self(config.cluster);
        if (rank == UINT32_MAX) return Error::make(MUSTER_E_NOT_FOUND, "this process has not joined the cluster yet");
        if (rank >= size)
            return Error::make(MUSTER_E_ARG, "this is member %u of the cluster, and the group has %u members", rank,
                               size);
    }
    const int64_t left_ns = deadline.endless() ? -1 : std::max<int64_t>(1, deadline.left());
    if (const Status status = muster_cluster_store(config.cluster, left_ns, &opened, &why); status != MUSTER_OK)
        return error_of(status, why);
    return MeetingPlace(opened, opened);
}

} // namespace muster
