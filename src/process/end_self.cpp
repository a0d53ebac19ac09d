// SPDX-License-Identifier: MIT
#include "process/end_self.hpp"

#include "context/context.hpp"

#include <csignal>
#include <new>
#include <unistd.h>
#include <uv.h>

namespace muster {

void end_self(Context &context, int64_t grace_ns) noexcept {
    struct End final : Task {
        uv_loop_t *loop;
        int64_t grace_ns;
        void run() noexcept override {
            kill(getpid(), SIGTERM);
            // Never closed: either the process ends by it, or it ends before. The loop does not wait for it.
            auto *timer = new (std::nothrow) uv_timer_t;
            if (timer == nullptr || uv_timer_init(loop, timer) != 0) {
                kill(getpid(), SIGKILL);
                return;
            }
            uv_unref(reinterpret_cast<uv_handle_t *>(timer));
            const auto end = [](uv_timer_t *) { kill(getpid(), SIGKILL); };
            uv_timer_start(timer, end, static_cast<uint64_t>(grace_ns / 1'000'000), 0);
        }
    };
    auto *task = new (std::nothrow) End;
    if (task != nullptr) {
        task->loop = context.loop();
        task->grace_ns = grace_ns;
        if (context.post(std::unique_ptr<Task>(task))) return;
    }
    kill(getpid(), SIGTERM);
}

} // namespace muster
