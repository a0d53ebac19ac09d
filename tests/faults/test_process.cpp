// SPDX-License-Identifier: MIT
// process.h.
#include "scenario.hpp"

#include <csignal>

using namespace faults;

static muster_process_config command(const char *const *argv) {
    muster_process_config config{};
    config.struct_size = sizeof config;
    config.argv = argv;
    return config;
}

SCENARIO(process, wait) {
    Context context;
    create(context);
    const char *const argv[] = {"sh", "-c", "exit 3", nullptr};
    muster_process_config config = command(argv);
    const muster_process_fd fds[] = {{-1, 1}, {-1, 5}};
    config.fds = fds;
    config.fd_count = 2;
    config.directory = "/";
    Process process;
    OK(muster_process_spawn, context, &config, process.out(), &error);
    EXPECT(DO(muster_process_pid, process) > 0);
    muster_process_exit how{};
    OK(muster_process_wait, process, patience, &how);
    EXPECT(has_fired() || (how.kind == MUSTER_PROCESS_EXITED && how.value == 3));
}

SCENARIO(process, watch_and_kill) {
    Context context;
    create(context);
    Queue queue;
    OK(muster_queue_create, context, nullptr, queue.out(), &error);
    const char *const argv[] = {"sleep", "20", nullptr};
    const muster_process_config config = command(argv);
    Process process;
    OK(muster_process_spawn, context, &config, process.out(), &error);
    OK(muster_process_watch, process, queue, 4);
    OK(muster_process_kill, process, SIGTERM);
    take(queue, MUSTER_DONE_EXIT, 4, "muster_process_wait");
}

SCENARIO(process, exit_with) {
    Context context;
    create(context);
    const char *const argv[] = {"sleep", "20", nullptr};
    const muster_process_config config = command(argv);
    Process process;
    OK(muster_process_spawn, context, &config, process.out(), &error);
    signal(SIGTERM, SIG_IGN);
    OK(muster_process_exit_with, context, DO(muster_process_pid, process), 20 * second, &error);
    DO(muster_context_close, context, 0);
    OK(muster_process_kill, process, SIGKILL);
    muster_process_exit how{};
    CALL(muster_process_wait, process, patience, &how);
}
