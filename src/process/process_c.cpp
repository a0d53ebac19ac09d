// SPDX-License-Identifier: MIT
#include "base/boundary.hpp"
#include "base/config.hpp"
#include "context/host_call.hpp"
#include "process/process.hpp"

using namespace muster;

namespace {

// Calls keep the process alive while they are in it: another thread may release it meanwhile.
template <class Body>
Status inside(muster_process *process, Body &&body) noexcept {
    if (!process) return MUSTER_E_ARG;
    if (unwrap(process)->forked()) return MUSTER_E_FORKED;
    return boundary([&] {
        const Uncancelled guard;
        const Ref<Process> self(unwrap(process));
        return body(*self);
    });
}

} // namespace

extern "C" muster_status muster_process_spawn(muster_context *context, const muster_process_config *given,
                                              muster_process **out_process, muster_error *error) {
    if (out_process) *out_process = nullptr;
    return boundary(error, [&]() -> Result<void> {
        if (!context) return Error::make(MUSTER_E_ARG, "no context");
        if (!out_process) return Error::make(MUSTER_E_ARG, "no place for the process");
        if (!given) return Error::make(MUSTER_E_ARG, "no configuration");
        if (unwrap(context)->forked()) return Error::from_status(MUSTER_E_FORKED);
        if (unwrap(context)->closed()) return Error::make(MUSTER_E_CLOSED, "the context is closed");
        muster_process_config config;
        if (auto done = read_config(given, config, "muster_process_config"); !done) return done;
        auto process = Process::spawn(*unwrap(context), config);
        if (!process) return process.error();
        *out_process = wrap(process->detach());
        return {};
    });
}

extern "C" int32_t muster_process_pid(const muster_process *process) {
    return process && !unwrap(process)->forked() ? unwrap(process)->pid() : 0;
}

extern "C" muster_status muster_process_wait(muster_process *process, int64_t timeout_ns,
                                             muster_process_exit *out_exit) {
    return inside(process, [&](Process &self) {
        const HostCall call(self.context(), &self, HostCall::EndedBy::context_too);
        Deadline deadline(timeout_ns);
        return self.wait(deadline, out_exit);
    });
}

extern "C" muster_status muster_process_watch(muster_process *process, muster_queue *queue, uint64_t tag) {
    return inside(process, [&](Process &self) {
        if (!queue || &unwrap(queue)->context() != &self.context()) return Status{MUSTER_E_ARG};
        return self.watch(*unwrap(queue), tag);
    });
}

extern "C" muster_status muster_process_kill(muster_process *process, int32_t signal) {
    return inside(process,
                  [&](Process &self) { return signal >= 0 && signal <= 64 ? self.kill(signal) : MUSTER_E_ARG; });
}

extern "C" void muster_process_release(muster_process *process) {
    if (process) release_handle(*unwrap(process));
}

extern "C" muster_status muster_process_exit_with(muster_context *context, int32_t pid, int64_t grace_ns,
                                                  muster_error *error) {
    return boundary(error, [&]() -> Result<void> {
        if (!context) return Error::make(MUSTER_E_ARG, "no context");
        if (unwrap(context)->forked()) return Error::from_status(MUSTER_E_FORKED);
        if (unwrap(context)->closed()) return Error::make(MUSTER_E_CLOSED, "the context is closed");
        return exit_with(*unwrap(context), pid, grace_ns);
    });
}
