// SPDX-License-Identifier: MIT
#pragma once
// Workers that a launcher starts together get their ticket in a variable of the environment, which stays readable for
// as long as the launcher runs. So the ticket does not have the secret: it has a key, made only for this launch, with
// which each of them dials its master, sealed, and fetches a ticket of its own. The master issues each ticket once, and
// refuses the key when every worker of the launch has joined or is gone.
#include "cluster/launch/launch_plan.hpp"
#include "transport/handshake.hpp"

#include <map>
#include <set>

namespace muster {

// Of the master. The cluster's thread, except for other_keys().
class LaunchKeys {
  public:
    const std::shared_ptr<OtherKeys> &other_keys() const noexcept { return keys_; }
    // A key for `count` workers from `first`. Empty: the maximum number is reached.
    Result<std::vector<unsigned char>> make(std::shared_ptr<const LaunchPlan> plan, uint32_t first, uint32_t count);
    // The plan of a worker that fetches its ticket, for the first time.
    Result<std::shared_ptr<const LaunchPlan>> take(uint64_t key, uint32_t member);
    void over(uint32_t member) noexcept; // it has joined, or is gone

  private:
    struct Launch {
        std::shared_ptr<const LaunchPlan> plan;
        std::set<uint32_t> left, waiting; // those that have not joined; of these, those that have not fetched theirs
    };
    const std::shared_ptr<OtherKeys> keys_ = std::make_shared<OtherKeys>();
    std::map<uint32_t, Launch> launches_; // by the first, which names the key
};

} // namespace muster
