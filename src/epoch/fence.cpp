// SPDX-License-Identifier: MIT
#include "epoch/fence.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace muster {

namespace {

long membarrier(int command) noexcept {
    return ::syscall(SYS_membarrier, command, 0, 0);
}

} // namespace

bool register_fence(Fence wanted) noexcept {
    switch (wanted) {
    case Fence::private_membarrier:
        return membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0 &&
               membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0;
    case Fence::global_membarrier:
        return membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) == 0 &&
               membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED) == 0;
    case Fence::per_pin:
        break;
    }
    return true;
}

// The system call cannot fail once the process is registered.
void heavy_fence(Fence form) noexcept {
    full_fence();
    if (form == Fence::private_membarrier) membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
    if (form == Fence::global_membarrier) membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
}

} // namespace muster
