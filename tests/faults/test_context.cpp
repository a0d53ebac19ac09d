// SPDX-License-Identifier: MIT
// base.h and context.h.
#include "scenario.hpp"

#include <cstring>
#include <sys/stat.h>
#include <unistd.h>

using namespace faults;

static void create_under_fault(Context &context, uint32_t flags) {
    muster_context_config config = context_config();
    config.flags = flags;
    OK(muster_context_create, &config, context.out(), &error);
}

SCENARIO(context, of_the_process) {
    muster_context *shared = nullptr, *again = nullptr;
    OK(muster_context_default, &shared, &error);
    OK(muster_context_default, &again, &error);
    EXPECT(shared == again);
    Context context(shared), other(again);
    OK(muster_context_close, context, second);
    muster_context_release(shared); // the reference of the library, so that nothing is left of this run
}

SCENARIO(context, lifecycle) {
    Context context;
    create_under_fault(context, 0);
    muster_context_stats stats{};
    OK(muster_context_get_stats, context, &stats);
    char text[64];
    size_t bytes = 0;
    OK(muster_context_secret, context, text, sizeof text, &bytes);
    EXPECT(bytes == sizeof secret - 1 && memcmp(text, secret, bytes) == 0);
    Queue queue;
    OK(muster_queue_create, context, nullptr, queue.out(), &error);
    OK(muster_context_log, context, 3, queue, 5);
    OK(muster_context_cancel, context);
    OK(muster_context_close, context, second);
}

SCENARIO(context, external) {
    Context context;
    create_under_fault(context, MUSTER_CONTEXT_EXTERNAL);
    int32_t fd = -1;
    OK(muster_context_fd, context, &fd);
    ::close(fd);
    Queue queue;
    OK(muster_queue_create, context, nullptr, queue.out(), &error);
    OK(muster_queue_post, queue, 1, 2);
    EXPECT(CALL(muster_context_progress, context, 0) >= 0);
    EXPECT(CALL(muster_context_progress, context, 10 * ms) >= 0);
    take_ok(queue, MUSTER_DONE_USER, 1, "muster_queue_next");
}

SCENARIO(context, secrets) {
    int fds[2];
    EXPECT(pipe(fds) == 0 && write(fds[1], secret, sizeof secret - 1) == sizeof secret - 1);
    ::close(fds[1]);
    muster_context_config config{};
    config.struct_size = sizeof config;
    config.secret_fd_plus_one = fds[0] + 1;
    Context context;
    if (const muster_status status = CALL(muster_context_create, &config, context.out(), &error)) {
        expect_fault("muster_context_create", status);
        struct stat what;
        if (fstat(fds[0], &what) == 0) ::close(fds[0]); // it is open if no byte was read from it
    }

    char name[] = "/tmp/muster-fault-XXXXXX";
    const int file = mkstemp(name);
    EXPECT(file >= 0 && write(file, secret, sizeof secret - 1) == sizeof secret - 1);
    ::close(file);
    setenv("MUSTER_SECRET_FILE", name, 1);
    Context second_context;
    muster_status status = CALL(muster_context_create, nullptr, second_context.out(), &error);
    if (status != MUSTER_OK) {
        expect_fault("muster_context_create", status);
        status = CALL(muster_context_create, nullptr, second_context.out(), &error);
    }
    unlink(name);
    unsetenv("MUSTER_SECRET_FILE");
    EXPECT(status == MUSTER_OK);
    Context third; // with a secret that is made
    OK(muster_context_create, nullptr, third.out(), &error);
}

SCENARIO(context, base) {
    EXPECT(strcmp(DO(muster_status_name, MUSTER_OK), "MUSTER_OK") == 0);
    EXPECT(DO(muster_status_text, MUSTER_E_NOMEM) != nullptr);
    uint32_t major = 99;
    EXPECT(DO(muster_version, &major, nullptr, nullptr) != nullptr && major != 99);
    muster_queue_config config;
    OK(muster_config_init, &config, sizeof config);
}
