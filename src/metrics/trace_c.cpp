// SPDX-License-Identifier: MIT
#include "base/boundary.hpp"
#include "base/config.hpp"
#include "base/text.hpp"
#include "base/time.hpp"
#include "base/trace.hpp"

#include <muster/trace.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <vector>

using namespace muster;

namespace {

constexpr uint32_t default_events = 8192, min_events = 256, max_events = 1 << 24;
constexpr int exchanges = 32;

void fill_trace_state(muster_trace_state *out) noexcept {
    const Trace::State found = Trace::state();
    *out = {found.events, found.threads, found.offset_ns, found.offset_error_ns, found.is_on, 0};
}

} // namespace

extern "C" {

muster_status muster_trace_start(const muster_trace_config *given, muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        muster_trace_config config;
        if (auto read = read_config(given, config, "muster_trace_config"); !read) return read.error();
        const uint32_t events = config.events == 0 ? default_events : config.events;
        if (events < min_events || events > max_events)
            return Error::make(MUSTER_E_ARG, "events is %u, outside of %u to %u", config.events, min_events,
                               max_events);
        std::string_view name;
        if (config.name != nullptr) {
            name = {static_cast<const char *>(config.name), config.name_bytes};
            if (name.empty() || name.size() > 255)
                return Error::make(MUSTER_E_ARG, "name has %zu bytes, not 1 to 255", name.size());
        } else if (config.name_bytes != 0) {
            return Error::make(MUSTER_E_ARG, "name is NULL, and name_bytes %llu",
                               static_cast<unsigned long long>(config.name_bytes));
        }
        return Trace::start(name, events);
    });
}

void muster_trace_stop(void) {
    Trace::stop();
}

void muster_trace_begin(const char *name, size_t name_bytes) {
    if (Trace::is_on() && name != nullptr) Trace::write({Trace::Kind::begin, "host", nullptr, {name, name_bytes}});
}

void muster_trace_end(void) {
    if (Trace::is_on()) Trace::write({Trace::Kind::end, "host", nullptr});
}

void muster_trace_mark(const char *name, size_t name_bytes) {
    if (name != nullptr) Trace::mark("host", nullptr, {name, name_bytes});
}

void muster_trace_flow(const char *name, size_t name_bytes, uint64_t flow) {
    if (name != nullptr) Trace::mark("host", nullptr, {name, name_bytes}, flow);
}

muster_status muster_trace_get_state(muster_trace_state *out_state) {
    if (out_state == nullptr) return MUSTER_E_ARG;
    fill_trace_state(out_state);
    return MUSTER_OK;
}

// Each member sends the time at which it has begun an exchange, and that at which its last one has ended. No member has
// received everything before all have begun. So, for the offset that is to be added here, begin(0) <= end(here) +
// offset, and begin(here) + offset <= end(0) of the same exchange.
muster_status muster_trace_align(muster_group *group, int64_t timeout_ns, muster_trace_state *out_state,
                                 muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        if (group == nullptr) return Error::make(MUSTER_E_ARG, "no group");
        const uint32_t rank = muster_group_rank(group);
        std::vector<int64_t> times(2 * static_cast<size_t>(muster_group_size(group)));
        Deadline deadline(timeout_ns);
        int64_t low = INT64_MIN, high = INT64_MAX, begun = 0, ended = 0;
        for (int i = 0; i <= exchanges; i++) {
            const int64_t last_begun = begun;
            const int64_t own[2] = {begun = now_ns(), ended};
            muster_error detail{};
            const Status status = muster_group_all_gather(group, own, times.data(), 2, MUSTER_TYPE_I64,
                                                          deadline.endless() ? -1 : deadline.left(), &detail);
            if (status != MUSTER_OK) {
                Error why = Error::make(status, "%s", detail.message);
                why.rank = detail.rank;
                return why;
            }
            ended = now_ns();
            low = std::max(low, times[0] - ended);
            if (i > 0) high = std::min(high, times[1] - last_begun); // of the exchange before
        }
        if (rank == 0)
            Trace::set_offset(0, 0);
        else
            Trace::set_offset(low + (high - low) / 2, std::max<int64_t>(0, (high - low + 1) / 2));
        if (out_state != nullptr) fill_trace_state(out_state);
        return {};
    });
}

muster_status muster_trace_save(const char *path, size_t path_bytes, muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        if (path == nullptr || path_bytes == 0 || path_bytes >= PATH_MAX || memchr(path, 0, path_bytes) != nullptr)
            return Error::make(MUSTER_E_ARG, "a path has 1 to %d bytes without a NUL", PATH_MAX - 1);
        return Trace::save(std::string(path, path_bytes));
    });
}

} // extern "C"
