// SPDX-License-Identifier: MIT
// ctest: quick timeout=120
// What a host's own children inherit (nothing), and what happens when no descriptor is left (a status).
#include "live.h"

#include <dirent.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>

enum { most = 1024 };

static int open_descriptors(char marks[most]) {
    int count = 0;
    for (int fd = 0; fd < most; fd++) count += marks[fd] = fcntl(fd, F_GETFD) >= 0;
    return count;
}

static void every_descriptor_is_cloexec(void) {
    for (uint32_t flags = 0; flags <= MUSTER_CONTEXT_EXTERNAL; flags += MUSTER_CONTEXT_EXTERNAL) {
        char before[most], now[most];
        const int count = open_descriptors(before);
        live l;
        live_begin(&l, flags);
        CHECK(open_descriptors(now) > count + 10);
        for (int fd = 0; fd < most; fd++) {
            if (before[fd] || !now[fd]) continue;
            const int bits = fcntl(fd, F_GETFD);
            if (bits >= 0 && !(bits & FD_CLOEXEC)) {
                char link[64], target[256];
                snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
                const ssize_t n = readlink(link, target, sizeof target - 1);
                fprintf(stderr, "descriptor %d is inherited: %.*s\n", fd, (int)(n > 0 ? n : 0), target);
                _exit(94);
            }
        }
        live_end(&l);
    }
}

// A host's own child, started in the plainest way.
static void a_hosts_child_inherits_nothing(void) {
    live l;
    int ends[2];
    CHECK(pipe(ends) == 0);
    live_begin(&l, 0);
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], 1);
        close(ends[0]);
        close(ends[1]);
        execlp("ls", "ls", "/proc/self/fd", (char *)NULL);
        _exit(1);
    }
    close(ends[1]);
    char text[4096] = "";
    size_t used = 0;
    for (ssize_t n; (n = read(ends[0], text + used, sizeof text - 1 - used)) > 0;) used += (size_t)n;
    CHECK(waitpid(child, NULL, 0) == child);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        const int fd = atoi(line);
        if (fd <= 2 || fd == ends[0]) continue;
        // What is left: the folder that ls reads, and what this program was started with.
        if (fcntl(fd, F_GETFD) >= 0 && (fcntl(fd, F_GETFD) & FD_CLOEXEC)) {
            fprintf(stderr, "descriptor %d was inherited\n", fd);
            _exit(94);
        }
    }
    close(ends[0]);
    live_end(&l);
}

static void nothing_is_left_behind(void) {
    char before[most], after[most];
    live l;
    live_begin(&l, 0); // the first use may keep something for the process
    live_end(&l);
    const int64_t settle = guest_now_ns() + 20 * SECOND;
    int count = open_descriptors(before);
    for (int round = 0; round < 5; round++) {
        live_begin(&l, round % 2 ? MUSTER_CONTEXT_EXTERNAL : 0);
        live_end(&l);
    }
    while (open_descriptors(after) > count) { // freed on the loop's own time
        if (guest_now_ns() > settle) {
            for (int fd = 0; fd < most; fd++) {
                char link[64], target[256] = "";
                snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
                if (after[fd] && !before[fd] && readlink(link, target, sizeof target - 1) > 0)
                    fprintf(stderr, "descriptor %d is left: %s\n", fd, target);
            }
            _exit(93);
        }
        usleep(1000);
    }
}

static int allowed_failures;

// Statuses that a call may give when descriptors are short. Anything else is wrong, and so is a hang.
static int short_of(muster_status status, const muster_error *error) {
    if (status == MUSTER_OK) return 0;
    allowed_failures++;
    // A handshake whose other side found no descriptor sees its connection break, or its memory not shared.
    const muster_status expected[] = {MUSTER_E_LIMIT,       MUSTER_E_PEER,        MUSTER_E_PROTOCOL,
                                      MUSTER_E_UNSUPPORTED, MUSTER_E_UNREACHABLE, MUSTER_TIMEOUT};
    int known = 0;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) known |= status == expected[i];
    if (!known) {
        fprintf(stderr, "status %d with no descriptor left: %s\n", status, error ? error->message : "");
        _exit(92);
    }
    return 1;
}

static void use_what_can_be_had(int allowed) {
    char marks[most];
    open_descriptors(marks);
    int end = 0; // the first number beyond so many free ones
    for (int left = allowed; marks[end] || left-- > 0; end++) {
    }
    struct rlimit before, limit;
    getrlimit(RLIMIT_NOFILE, &before);
    limit = before;
    limit.rlim_cur = (rlim_t)end;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);

    muster_error error = {0};
    muster_context *context;
    if (!short_of(muster_context_create(NULL, &context, &error), &error)) {
        muster_queue *queue;
        if (!short_of(muster_queue_create(context, NULL, &queue, &error), &error)) {
            int32_t fd;
            if (!short_of(muster_queue_fd(queue, &fd), NULL)) close(fd);
            short_of(muster_queue_set_wake(queue, (muster_wake_fn)(void (*)(void))getpid, NULL), NULL);
            EXPECT(muster_queue_post(queue, 1, 1), MUSTER_OK);
            muster_completion entry;
            EXPECT(muster_queue_next(queue, SECOND, &entry, &error), MUSTER_OK);
            muster_queue_close(queue);
            muster_queue_release(queue);
        }
        const char *const argv[] = {"true", NULL};
        muster_process_config child;
        muster_config_init(&child, sizeof child);
        child.argv = argv;
        muster_process *process;
        if (!short_of(muster_process_spawn(context, &child, &process, &error), &error)) {
            EXPECT(muster_process_wait(process, 20 * SECOND, NULL), MUSTER_OK);
            muster_process_release(process);
        }
        CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD); // no child is left
        const char *const schemes[] = {"inproc", "tcp", "unix", "shm"};
        for (int i = 0; i < 4; i++) {
            char address[256];
            size_t bytes;
            workout_address(schemes[i], address, sizeof address);
            muster_listener *listener;
            if (short_of(muster_transport_listen(context, address, strlen(address), NULL, &listener, &error), &error))
                continue;
            EXPECT(muster_listener_address(listener, address, sizeof address, &bytes), MUSTER_OK);
            muster_stream *dialled, *accepted;
            if (!short_of(muster_transport_dial(context, address, bytes, NULL, SECOND, &dialled, &error), &error)) {
                if (!short_of(muster_listener_accept(listener, SECOND, &accepted, &error), &error)) {
                    workout_talk(&live_api, dialled, accepted);
                    muster_stream_release(accepted);
                }
                muster_stream_release(dialled);
            }
            muster_listener_release(listener);
        }
        CHECK(muster_context_close(context, 5 * SECOND) >= 0);
        muster_context_release(context);
    }
    CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
}

#if defined(__SANITIZE_ADDRESS__)
enum { address_sanitizer = 1 };
#else
enum { address_sanitizer = 0 };
#endif

static void descriptors_run_out(void) {
    int tightest_failures = 0;
    for (int allowed = 0; allowed < 160; allowed++) { // streams that have ended give theirs back a little later
        allowed_failures = 0;
        use_what_can_be_had(allowed);
        if (allowed == 0) tightest_failures = allowed_failures;
        if (getenv("GUEST_VERBOSE")) printf("%d descriptors: %d calls failed\n", allowed, allowed_failures);
        if (allowed_failures == 0) break;
        CHECK(allowed < 159); // with so many all must be well
    }
    CHECK(tightest_failures > 0);
    workout(&live_api); // and nothing is broken for ever
}

int main(void) {
    guest_run("every descriptor is closed by exec", every_descriptor_is_cloexec, 0, 1);
    guest_run("a host's own child inherits nothing", a_hosts_child_inherits_nothing, 0, 1);
    guest_run("nothing is left behind", nothing_is_left_behind, 0, 1);
    // The sanitizer's own checks need a few.
    if (address_sanitizer)
        printf("skipped descriptors running out: the sanitizer needs some\n");
    else
        guest_run("descriptors running out is a status", descriptors_run_out, 0, 1);
    return guest_result();
}
