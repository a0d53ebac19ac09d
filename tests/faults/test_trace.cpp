// SPDX-License-Identifier: MIT
// trace.h.
#include "scenario.hpp"

#include <cstdio>
#include <cstdlib>
#include <unistd.h>

using namespace faults;

namespace {

HANDLE(Group, muster_group, muster_group_release)

} // namespace

SCENARIO(trace, one) {
    char folder[] = "/tmp/muster-faults-trace.XXXXXX";
    EXPECT(mkdtemp(folder) != nullptr);
    const std::string path = std::string(folder) + "/trace";
    Context context;
    create(context);
    muster_trace_config config{};
    config.struct_size = sizeof config;
    config.events = 256;
    OK(muster_trace_start, &config, &error);
    DO(muster_trace_begin, "span", 4);
    DO(muster_trace_mark, "mark", 4);
    DO(muster_trace_flow, "flow", 4, 7);
    DO(muster_trace_end, );
    Group group;
    muster_group_config alone{};
    alone.struct_size = sizeof alone;
    alone.size = 1;
    OK(muster_group_open, context, &alone, patience, group.out(), &error);
    muster_trace_state state{};
    OK(muster_trace_align, group, patience, &state, &error);
    OK(muster_trace_get_state, &state);
    EXPECT(state.is_on == 1);
    OK(muster_trace_save, path.data(), path.size(), &error);
    DO(muster_trace_stop, );
    std::remove(path.c_str());
    rmdir(folder);
}
