// SPDX-License-Identifier: MIT
#include "transport/resolver.hpp"

#include "base/thread.hpp"

#include <sys/prctl.h>

namespace muster {

namespace {
constexpr int max_threads = 8;
}

Resolver &Resolver::of(Context &context) {
    static const char key = 0;
    return static_cast<Resolver &>(
        context.part(&key, [](Context &c) -> std::unique_ptr<ContextPart> { return std::make_unique<Resolver>(c); }));
}

// A lookup in progress: it is in the list of waiting ones, on a thread, then in the mailbox.
struct Resolver::Job final : Task, Listed<Resolver::Job> {
    Job(Resolver &resolver, const std::string &host, int port, Found found)
        : resolver(resolver), host(host), port(port), found(std::move(found)), result(Error()) {}

    void look() noexcept {
        try {
            result = muster::look_up(host, port, false);
        } catch (const std::bad_alloc &) {
            result = Error::make(MUSTER_E_NOMEM, "look up %s: out of memory", host.c_str());
        }
    }
    void run() noexcept override { resolver.answer(*this); }

    Resolver &resolver;
    const std::string host;
    const int port;
    const Found found;
    Result<std::vector<SocketAddress>> result;
    Ref<Context> context; // of the thread
};

Resolver::~Resolver() {
    while (Job *const job = waiting_.pop_front()) delete job;
}

void Resolver::look_up(const std::string &host, int port, Found found) {
    std::vector<SocketAddress> numeric(1);
    if (numeric_address(host, port, numeric[0])) return found(std::move(numeric));
    auto job = std::make_unique<Job>(*this, host, port, std::move(found));
    if (running_ < max_threads) return start(std::move(job));
    waiting_.push_back(*job.release());
}

void Resolver::start(std::unique_ptr<Job> job) noexcept {
    running_++;
    job->context = Ref<Context>(&context_);
    const int rc = start_thread(
        [](void *given) -> void * {
            prctl(PR_SET_NAME, "muster-resolve");
            std::unique_ptr<Job> job(static_cast<Job *>(given));
            job->look();
            // The job ends on the loop thread, to which its members belong; the reference of this thread is released
            // here.
            const Ref<Context> context = std::move(job->context);
            context->post(std::unique_ptr<Task>(std::move(job)));
            return nullptr;
        },
        job.get());
    if (rc == 0) {
        (void)job.release(); // the thread's now
        return;
    }
    job->context.reset(); // the dial holds another
    job->result = Error::from_errno(rc, MUSTER_E_NOMEM, "look up %s: thread", job->host.c_str());
    answer(*job);
}

void Resolver::answer(Job &job) noexcept {
    running_--;
    if (Job *const next = waiting_.pop_front()) start(std::unique_ptr<Job>(next));
    job.found(std::move(job.result));
}

} // namespace muster
