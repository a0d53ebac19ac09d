// SPDX-License-Identifier: MIT
#include "base/boundary.hpp"
#include "base/config.hpp"
#include "base/text.hpp"
#include "metrics/publication.hpp"

#include <climits>
#include <cstring>
#include <unistd.h>

using namespace muster;

namespace {

constexpr int64_t min_interval_ns = 100'000'000, max_interval_ns = 3'600'000'000'000;
constexpr size_t max_name_bytes = 255;

Result<std::string> default_name() {
    char host[HOST_NAME_MAX + 1] = "";
    if (::gethostname(host, sizeof host - 1) != 0) return Error::from_errno(errno, MUSTER_E_SYSTEM, "gethostname");
    return std::string(host).substr(0, max_name_bytes - 20) + "." + std::to_string(::getpid());
}

Result<std::string> read_name(const muster_metrics_config &config) {
    if (config.name == nullptr && config.name_bytes == 0) return default_name();
    if (config.name == nullptr || config.name_bytes == 0 || config.name_bytes > max_name_bytes)
        return Error::make(MUSTER_E_ARG, "a name of %llu bytes: it has 1 to %zu",
                           static_cast<unsigned long long>(config.name_bytes), max_name_bytes);
    std::string name(static_cast<const char *>(config.name), config.name_bytes), shown = name;
    make_printable(shown.data(), shown.size());
    if (shown != name || name.find('/') != std::string::npos)
        return Error::make(MUSTER_E_ARG, "the name `%s` is not printable text without a `/`", shown.c_str());
    return name;
}

} // namespace

extern "C" {

muster_status muster_metrics_write(muster_context *context, char *out_text, size_t capacity, size_t *out_bytes) {
    return boundary([&]() -> Status {
        if (context == nullptr || out_bytes == nullptr) return MUSTER_E_ARG;
        if (unwrap(context)->forked()) return MUSTER_E_FORKED;
        const Uncancelled guard;
        const std::string text = metrics_text(*unwrap(context));
        *out_bytes = text.size();
        if (out_text == nullptr) return MUSTER_OK;
        if (text.size() > capacity) return MUSTER_E_LIMIT;
        text.copy(out_text, text.size());
        return MUSTER_OK;
    });
}

muster_status muster_metrics_publish(muster_context *context, muster_store *store, const muster_metrics_config *given,
                                     muster_metrics **out_metrics, muster_error *error) {
    if (out_metrics != nullptr) *out_metrics = nullptr;
    return boundary(error, [&]() -> Result<void> {
        if (context == nullptr) return Error::make(MUSTER_E_ARG, "no context");
        if (store == nullptr) return Error::make(MUSTER_E_ARG, "no store");
        if (out_metrics == nullptr) return Error::make(MUSTER_E_ARG, "no place for the publication");
        muster_metrics_config config;
        if (auto read = read_config(given, config, "muster_metrics_config"); !read) return read.error();
        if (config.flags != 0) return Error::make(MUSTER_E_ARG, "flags is 0x%x: unknown bits", config.flags);
        if (config.interval_ns != 0 && (config.interval_ns < min_interval_ns || config.interval_ns > max_interval_ns))
            return Error::make(MUSTER_E_ARG, "interval_ns is %lld: it is 0.1 s to 1 hour",
                               static_cast<long long>(config.interval_ns));
        auto name = read_name(config);
        if (!name) return name.error();
        if (unwrap(context)->forked() || unwrap(store)->forked()) return Error::from_status(MUSTER_E_FORKED);
        if ((muster_store_capabilities(store) & MUSTER_STORE_CAN_LEASE) == 0)
            return Error::make(MUSTER_E_UNSUPPORTED, "the store has no leases, with which metrics would end");
        auto made = make_ref<MetricsPublication>(*unwrap(context), Ref<Store>(unwrap(store)), std::move(*name),
                                                 config.interval_ns != 0 ? config.interval_ns : 2'000'000'000);
        if (unwrap(context)->closed() || !made->start()) return Error::make(MUSTER_E_CLOSED, "the context is closed");
        *out_metrics = wrap(made.detach());
        return {};
    });
}

muster_status muster_metrics_get_state(muster_metrics *metrics, muster_metrics_state *out_state) {
    if (metrics == nullptr || out_state == nullptr) return MUSTER_E_ARG;
    if (unwrap(metrics)->forked()) return MUSTER_E_FORKED;
    unwrap(metrics)->get_state(*out_state);
    return MUSTER_OK;
}

void muster_metrics_release(muster_metrics *metrics) {
    if (metrics != nullptr) unwrap(metrics)->host_release();
}

} // extern "C"
