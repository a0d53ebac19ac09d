// SPDX-License-Identifier: MIT
#pragma once
// Where the members of a group find each other: in the store of a round or of a cluster, or in a store of the host; or
// by no store.
#include "base/result.hpp"
#include "base/time.hpp"

#include <muster/group.h>

#include <utility>

namespace muster {

// Holds a reference of its own where the store was opened here.
class MeetingPlace {
  public:
    // `rank` and `size` are those of the configuration, and are replaced by those of a round or a cluster.
    static Result<MeetingPlace> of(const muster_group_config &config, Deadline &deadline, uint32_t &rank,
                                   uint32_t &size);
    MeetingPlace(MeetingPlace &&other) noexcept
        : store_(std::exchange(other.store_, nullptr)), own_(std::exchange(other.own_, nullptr)) {}
    MeetingPlace(const MeetingPlace &) = delete;
    MeetingPlace &operator=(const MeetingPlace &) = delete;
    MeetingPlace &operator=(MeetingPlace &&) = delete;
    ~MeetingPlace() { muster_store_release(own_); }
    muster_store *store() const noexcept { return store_; } // null: none

  private:
    MeetingPlace(muster_store *store, muster_store *own) noexcept : store_(store), own_(own) {}
    muster_store *store_, *own_;
};

} // namespace muster
