// SPDX-License-Identifier: MIT
#pragma once
#include "base/fd.hpp"

#include <muster/process.h>

#include <sys/types.h>

namespace muster {

// A child that has just been started.
struct Spawned {
    pid_t pid;
    Fd pidfd; // none when the host reaped the child before it could be watched
};

// Checks the configuration and starts the program in a process group of its own.
Result<Spawned> spawn(const muster_process_config &config);

// Kills a child's group and reaps the child, for failures after the start.
void undo_spawn(const Spawned &child) noexcept;

int open_pidfd(pid_t pid) noexcept;                         // -1 and errno
int send_signal(int pidfd, pid_t pid, int signal) noexcept; // to the whole group; 0 or an errno

} // namespace muster
