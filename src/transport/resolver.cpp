// SPDX-License-Identifier: MIT
#include "transport/resolver.hpp"

#include "base/thread.hpp"

#include <sys/prctl.h>

namespace muster {

namespace {
constexpr int most_threads = 8;
}

Resolver &Resolver::of(Context &context) {
    static const char key = 0;
    return static_cast<Resolver &>(
        context.part(&key, [](Context &c) -> std::unique_ptr<ContextPart> { return std::make_unique<Resolver>(c); }));
}

void Resolver::look_up(const std::string &host, int port, Found found) {
    std::vector<SocketAddress> numeric(1);
    if (numeric_address(host, port, numeric[0])) return found(std::move(numeric));
    Job job{host, port, std::move(found)};
    if (running_ >= most_threads)
        waiting_.push_back(std::move(job));
    else
        start(std::move(job));
}

void Resolver::start(Job job) {
    struct Work {
        Ref<Context> context;
        Resolver *resolver;
        Job job;
    };
    auto work = std::make_unique<Work>(Work{Ref<Context>(&context_), this, std::move(job)});
    running_++;
    const int rc = start_thread(
        [](void *given) -> void * {
            prctl(PR_SET_NAME, "muster-resolve");
            std::unique_ptr<Work> w(static_cast<Work *>(given));
            auto result = muster::look_up(w->job.host, w->job.port, false);
            Context &context = *w->context;
            // The job ends on the loop thread, where what it holds belongs; the thread's own reference goes here.
            auto shared = std::make_shared<Job>(std::move(w->job));
            context.post([resolver = w->resolver, shared, result = std::move(result)] {
                resolver->running_--;
                if (!resolver->waiting_.empty()) {
                    Job next = std::move(resolver->waiting_.front());
                    resolver->waiting_.pop_front();
                    resolver->start(std::move(next));
                }
                shared->found(result);
            });
            return nullptr;
        },
        work.get());
    if (rc == 0) {
        work.release();
        return;
    }
    running_--;
    work->job.found(Error::from_errno(rc, MUSTER_E_NOMEM, "look up %s: thread", work->job.host.c_str()));
}

} // namespace muster
