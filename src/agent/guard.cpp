// SPDX-License-Identifier: MIT
#include "agent/guard.hpp"

#include "agent/plan.hpp"

#include <sys/socket.h>

namespace muster {

namespace {

// Reads lines `= 12 34`, process groups, until the other end of its input is closed; the last line counts. (A line that
// was cut, because the guard was stopped and the socket full, is continued by the next: that line has two signs.) Its
// input is closed no earlier than the exec of a worker that is being started: until then that has the descriptor, too.
// Such a worker, not yet named in a line, and processes that have left their group are found by the variable in their
// environment.
constexpr char script[] = R"(trap '' HUP INT QUIT TERM USR1 USR2 PIPE ALRM TSTP
groups=
while read -r line; do
    case $line in
    *=*=*) ;;
    '= done') exit 0 ;;
    =*) groups=${line#=} ;;
    esac
done
for leader in $groups; do kill -s KILL -- "-$leader"; done
for again in 1 2 3; do
    found=$(grep -lsaz "^$2=$1\$" /proc/[0-9]*/environ)
    [ "$found" ] || break
    for entry in $found; do entry=${entry%/environ}; kill -s KILL -- "${entry#/proc/}"; done
done)";

} // namespace

Result<Guard> Guard::start(Context &context, const std::string &agent_id) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return Error::from_errno(errno, MUSTER_OK, "a socket for the guard of the workers");
    const Fd in(ends[0]);
    Guard guard;
    guard.socket_ = Fd(ends[1]);
    // It holds no directory, no terminal, and no variables by which the guard of an outer agent could take it for a
    // worker.
    const char *const argv[] = {"/bin/sh", "-c", script, "muster-guard", agent_id.c_str(), agent_id_variable, nullptr};
    const char *const envp[] = {"PATH=/usr/bin:/bin", nullptr};
    const muster_process_fd fds[] = {{in.get(), 0}, {-1, 1}, {-1, 2}};
    muster_process_config config{};
    config.struct_size = sizeof config;
    config.argv = argv;
    config.envp = envp;
    config.directory = "/";
    config.fds = fds;
    config.fd_count = 3;
    auto process = Process::spawn(context, config);
    if (!process) return process.error();
    guard.process_ = std::move(*process);
    return guard;
}

Guard::~Guard() {
    finish(1'000'000'000); // otherwise its process would stay unreaped
}

void Guard::finish(int64_t timeout_ns) noexcept {
    if (!socket_) return;
    write_line("= done\n");
    socket_.reset();
    Deadline deadline(timeout_ns);
    if (process_) process_->wait(deadline, nullptr);
}

void Guard::watch(const std::vector<pid_t> &leaders) noexcept {
    if (!socket_) return;
    try {
        std::string line = "=";
        for (const pid_t leader : leaders) line += ' ' + std::to_string(leader);
        write_line(line + '\n');
    } catch (const std::bad_alloc &) { // the guard still finds them by the variable
    }
}

void Guard::write_line(const std::string &line) noexcept {
    [[maybe_unused]] const ssize_t written =
        uncancelled::send(socket_.get(), line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

} // namespace muster
