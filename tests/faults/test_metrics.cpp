// SPDX-License-Identifier: MIT
// metrics.h.
#include "scenario.hpp"

using namespace faults;

namespace {

HANDLE(Metrics, muster_metrics, muster_metrics_release)

} // namespace

SCENARIO(metrics, text) {
    Context context;
    create(context);
    size_t bytes = 0;
    OK(muster_metrics_write, context, nullptr, 0, &bytes);
    std::string text(bytes + 200, '\0');
    OK(muster_metrics_write, context, text.data(), text.size(), &bytes);
    EXPECT(text.find("muster_streams 0\n") != std::string::npos);
}

SCENARIO(metrics, publication) {
    Context context;
    create(context);
    Store store;
    OK(muster_store_open, context, "memory:", 7, nullptr, patience, store.out(), &error);
    muster_metrics_config config{};
    config.struct_size = sizeof config;
    config.name = "me";
    config.name_bytes = 2;
    config.interval_ns = 100'000'000;
    Metrics metrics;
    OK(muster_metrics_publish, context, store, &config, metrics.out(), &error);
    const char key[] = "muster/metrics/me";
    muster_store_op get{};
    get.kind = MUSTER_STORE_GET;
    get.key = key;
    get.key_bytes = sizeof key - 1;
    OK(muster_store_do, store, &get, 1, patience, nullptr, &error); // a text that failed is written again
    muster_metrics_state state{};
    OK(muster_metrics_get_state, metrics, &state);
    EXPECT(state.status <= 0);
}
