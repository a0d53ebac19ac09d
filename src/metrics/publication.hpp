// SPDX-License-Identifier: MIT
#pragma once
// Writes the metrics of a context into a store at intervals, on a thread of the library.
#include "context/context.hpp"
#include "context/metrics.hpp"
#include "queue/call_threads.hpp"
#include "store/backend/store.hpp"

#include <muster/metrics.h>

namespace muster {

// The timer of the context's loop adds it to the threads for calls; the call starts the timer again. So it is in one of
// the two places at a time, or has ended. Any thread.
class MetricsPublication final : public CallTask {
  public:
    MetricsPublication(Context &context, Ref<Store> store, std::string name, int64_t interval_ns)
        : context_(&context), store_(std::move(store)), key_("muster/metrics/" + std::move(name)),
          interval_ns_(interval_ns) {}
    bool start() noexcept { return wake_.post(*context_); } // false: the context has ended
    void get_state(muster_metrics_state &out) noexcept;
    bool forked() const noexcept { return context_->forked() || store_->forked(); }
    void host_release() noexcept;

  private:
    ~MetricsPublication() override { muster_lease_release(lease_); }
    void run() noexcept override;
    Error publish();
    void end_lease() noexcept;
    bool ended() noexcept;

    // ---- the loop thread
    void wake() noexcept;
    void due() noexcept;

    const Ref<Context> context_;
    const Ref<Store> store_;
    const std::string key_;
    const int64_t interval_ns_;
    muster_lease *lease_ = nullptr; // of the call

    std::mutex lock_; // for the next ones
    muster_metrics_state state_{};
    bool ended_ = false;      // the host has released it
    bool is_calling_ = false; // it is among the calls, or in one

    Timer<MetricsPublication, &MetricsPublication::due> timer_{*this};
    PostedTask<MetricsPublication, &MetricsPublication::wake> wake_{*this};
};

inline MetricsPublication *unwrap(muster_metrics *handle) noexcept {
    return reinterpret_cast<MetricsPublication *>(handle);
}
inline muster_metrics *wrap(MetricsPublication *object) noexcept {
    return reinterpret_cast<muster_metrics *>(object);
}

} // namespace muster
