// SPDX-License-Identifier: MIT
#include "process/spawn.hpp"

#include "base/libc.hpp"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <vector>

namespace muster {

namespace {

constexpr int max_child_fd = 1023;
constexpr uint64_t max_fds = 64;

// A descriptor of this process under a number above all those the child will have, so that one placement never
// overwrites the source of the next.
struct Placement {
    Fd source;
    int child_fd;
};

// Owns the two spawn objects.
struct Plan {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int actions_rc, attributes_rc; // 0: initialised
    Plan() noexcept
        : actions_rc(posix_spawn_file_actions_init(&actions)), attributes_rc(posix_spawnattr_init(&attributes)) {}
    Plan(const Plan &) = delete;
    Plan &operator=(const Plan &) = delete;
    ~Plan() {
        if (attributes_rc == 0) posix_spawnattr_destroy(&attributes);
        if (actions_rc == 0) posix_spawn_file_actions_destroy(&actions);
    }
};

Result<void> check(const muster_process_config &config) noexcept {
    if (config.flags) return Error::make(MUSTER_E_ARG, "flags has unknown bits: 0x%x", config.flags);
    if (!config.argv || !config.argv[0] || !*config.argv[0]) return Error::make(MUSTER_E_ARG, "argv names no program");
    if (config.fd_count > max_fds)
        return Error::make(MUSTER_E_ARG, "fd_count is %llu, more than %llu",
                           static_cast<unsigned long long>(config.fd_count), static_cast<unsigned long long>(max_fds));
    if (config.fd_count && !config.fds) return Error::make(MUSTER_E_ARG, "fd_count is set, but fds is NULL");
    for (uint64_t i = 0; i < config.fd_count; i++) {
        const muster_process_fd &fd = config.fds[i];
        if (fd.child_fd < 0 || fd.child_fd > max_child_fd)
            return Error::make(MUSTER_E_ARG, "child_fd is %d, not 0 to %d", fd.child_fd, max_child_fd);
        if (fd.parent_fd < -1) return Error::make(MUSTER_E_ARG, "parent_fd is %d", fd.parent_fd);
        for (uint64_t j = 0; j < i; j++)
            if (config.fds[j].child_fd == fd.child_fd)
                return Error::make(MUSTER_E_ARG, "child_fd %d is named twice", fd.child_fd);
    }
    return {};
}

Result<Placement> place(int parent_fd, int child_fd, int above) {
    Fd null;
    if (parent_fd < 0) {
        null = Fd(open("/dev/null", O_RDWR | O_CLOEXEC));
        if (!null) return Error::from_errno(errno, MUSTER_OK, "open /dev/null");
        parent_fd = null.get();
    }
    Fd source(fcntl(parent_fd, F_DUPFD_CLOEXEC, above));
    if (source) return Placement{std::move(source), child_fd};
    // EINVAL: `above` is beyond the limit on descriptors.
    return Error::from_errno(errno, errno == EINVAL ? MUSTER_E_LIMIT : MUSTER_OK, "descriptor %d for the child's %d",
                             parent_fd, child_fd);
}

Result<std::vector<Placement>> place_all(const muster_process_config &config) {
    std::vector<muster_process_fd> wanted(config.fds, config.fds + config.fd_count);
    for (int standard = 0; standard <= 2; standard++) {
        const bool named = std::any_of(wanted.begin(), wanted.end(),
                                       [&](const muster_process_fd &fd) { return fd.child_fd == standard; });
        const bool inherited = standard != 0 && fcntl(standard, F_GETFD) >= 0;
        if (!named) wanted.push_back({inherited ? standard : -1, standard});
    }
    const int above = 1 + std::max_element(wanted.begin(), wanted.end(), [](const auto &a, const auto &b) {
                              return a.child_fd < b.child_fd;
                          })->child_fd;
    std::vector<Placement> placements;
    for (const muster_process_fd &fd : wanted) {
        auto placement = place(fd.parent_fd, fd.child_fd, above);
        if (!placement) return placement.error();
        placements.push_back(std::move(*placement));
    }
    return placements;
}

int plan_descriptors(Plan &plan, const std::vector<Placement> &placements) {
    bool taken[max_child_fd + 1] = {};
    int highest = 2, rc = 0;
    for (const Placement &placement : placements) {
        rc |= posix_spawn_file_actions_adddup2(&plan.actions, placement.source.get(), placement.child_fd);
        taken[placement.child_fd] = true;
        highest = std::max(highest, placement.child_fd);
    }
    // Descriptors that the host has opened without CLOEXEC are closed as well.
    for (int fd = 0; fd < highest; fd++)
        if (!taken[fd]) rc |= posix_spawn_file_actions_addclose(&plan.actions, fd);
    return rc | libc::add_close_from(plan.actions, highest + 1);
}

int plan_attributes(Plan &plan) {
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    return posix_spawnattr_setflags(&plan.attributes,
                                    POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK) |
           posix_spawnattr_setpgroup(&plan.attributes, 0) | posix_spawnattr_setsigdefault(&plan.attributes, &all) |
           posix_spawnattr_setsigmask(&plan.attributes, &none);
}

Error failed(int why, const muster_process_config &config) noexcept {
    struct stat about {};
    if (config.directory && stat(config.directory, &about) != 0)
        return Error::from_errno(errno, MUSTER_OK, "start %s in directory %s", config.argv[0], config.directory);
    if (config.directory && !S_ISDIR(about.st_mode))
        return Error::from_errno(ENOTDIR, MUSTER_OK, "start %s in directory %s", config.argv[0], config.directory);
    // EAGAIN: the limit on processes. ENOEXEC and the like stay a failure of the system.
    return Error::from_errno(why, why == EAGAIN ? MUSTER_E_NOMEM : MUSTER_OK, "start %s", config.argv[0]);
}

} // namespace

int open_pidfd(pid_t pid) noexcept {
    return static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
}

int send_signal(int pidfd, pid_t pid, int signal) noexcept {
    constexpr unsigned process_group = 1u << 2; // PIDFD_SIGNAL_PROCESS_GROUP, Linux 6.9
    if (syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, process_group) == 0) return 0;
    if (errno == EINVAL) {
        // Older kernels: the check prevents that the number belongs to another process by now; the host would have to
        // reap the child and the system to reuse its number between these two lines.
        if (syscall(SYS_pidfd_send_signal, pidfd, 0, nullptr, 0) != 0) return errno;
        if (kill(-pid, signal) == 0) return 0;
    }
    if (errno != ESRCH) return errno;
    // The child has left the group it was started with.
    return syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0) == 0 ? 0 : errno;
}

void undo_spawn(const Spawned &child) noexcept {
    if (child.pidfd)
        send_signal(child.pidfd.get(), child.pid, SIGKILL);
    else
        kill(-child.pid, SIGKILL); // not yet reaped, so the number is its own
    while (waitpid(child.pid, nullptr, 0) < 0 && errno == EINTR) {
    }
}

Result<Spawned> spawn(const muster_process_config &config) {
    if (auto right = check(config); !right) return right.error();
    // Held for the pidfd: a child that cannot be watched should not have been started.
    auto held = place(-1, 0, 3);
    if (!held) return held.error();
    auto placements = place_all(config);
    if (!placements) return placements.error();

    Plan plan;
    int rc = plan.actions_rc | plan.attributes_rc;
    if (rc == 0) rc = plan_descriptors(plan, *placements) | plan_attributes(plan);
    if (rc == 0 && config.directory) rc = posix_spawn_file_actions_addchdir_np(&plan.actions, config.directory);
    if (rc != 0) return Error::make(MUSTER_E_NOMEM, "start %s: out of memory", config.argv[0]);

    Spawned child{};
    // posix_spawn wants char*const*, but changes nothing.
    const auto argv = const_cast<char *const *>(config.argv);
    const auto envp = config.envp ? const_cast<char *const *>(config.envp) : environ;
    rc = posix_spawnp(&child.pid, config.argv[0], &plan.actions, &plan.attributes, argv, envp);
    if (rc != 0) return failed(rc, config);

    held->source.reset();
    child.pidfd = Fd(open_pidfd(child.pid));
    if (!child.pidfd && errno != ESRCH) {
        const int why = errno;
        undo_spawn(child);
        return Error::from_errno(why, MUSTER_OK, "watch %s", config.argv[0]);
    }
    return child;
}

} // namespace muster
