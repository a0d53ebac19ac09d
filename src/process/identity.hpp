// SPDX-License-Identifier: MIT
#pragma once
// Is a thread of some process still alive? Ids are used again by the kernel; the start time makes them unique.
#include <cstdint>
#include <sys/types.h>

namespace muster {

// Clock ticks since boot when the thread was started; 0 if it does not exist, is dead (a zombie included), or /proc
// cannot be read. A zombie that is the first thread of a process counts as alive while other threads run.
uint64_t thread_start_time(pid_t process, pid_t thread) noexcept;

// False only if it is certain. `start_time` 0: any thread with this id is meant.
bool may_be_alive(pid_t process, pid_t thread, uint64_t start_time) noexcept;

// Identifies the namespace of the process ids of this process; 0 if unknown.
uint64_t process_id_namespace() noexcept;

} // namespace muster
