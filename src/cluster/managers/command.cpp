// SPDX-License-Identifier: MIT
#include "cluster/managers/command.hpp"

#include "agent/plan.hpp"
#include "cluster/lifecycle/master.hpp"

#include <algorithm>
#include <cctype>
#include <csignal>
#include <cstring>
#include <fcntl.h>

namespace muster {

namespace {

constexpr int64_t end_timeout_ns = 5'000'000'000;
constexpr int64_t last_lines_ns = 500'000'000; // a program's children may hold its pipes for ever
constexpr size_t default_pipe_bytes = 65536, max_pipe_bytes = 1 << 20, max_shown = 200;

std::string_view name_of(const std::string &variable) noexcept {
    return std::string_view(variable).substr(0, variable.find('='));
}

Result<void> make_pipe(Fd &in, Fd &out) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return Error::from_errno(errno, MUSTER_OK, "a pipe to a program");
    in = Fd(ends[0]);
    out = Fd(ends[1]);
    return {};
}

// Writes to a pipe that may have no reader meanwhile.
Result<void> fill(const Fd &out, const std::string &text) {
    if (text.size() > max_pipe_bytes ||
        (text.size() > default_pipe_bytes && fcntl(out.get(), F_SETPIPE_SZ, max_pipe_bytes) < 0))
        return Error::make(MUSTER_E_LIMIT, "a program is to be handed %zu bytes, more than a pipe holds", text.size());
    fcntl(out.get(), F_SETFL, O_NONBLOCK);
    if (uncancelled::write(out.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
        return Error::from_errno(errno, MUSTER_OK, "write %zu bytes for a program", text.size());
    return {};
}

} // namespace

std::string describe_exit(const muster_process_exit &exit) {
    if (exit.kind == MUSTER_PROCESS_EXITED) return "exit code " + std::to_string(exit.value);
    if (exit.kind == MUSTER_PROCESS_KILLED)
        return "killed by signal " + std::to_string(exit.value) + " (" + strsignal(exit.value) + ")";
    return "it has ended with an unknown result: this process does not reap its children";
}

std::vector<std::string> environment_with(const std::vector<std::string> &own, const std::vector<std::string> &over) {
    std::vector<std::string> all;
    const auto covered = [&over](const std::string &variable) {
        return std::any_of(over.begin(), over.end(),
                           [&](const std::string &one) { return name_of(one) == name_of(variable); });
    };
    std::copy_if(own.begin(), own.end(), std::back_inserter(all), [&](const auto &one) { return !covered(one); });
    all.insert(all.end(), over.begin(), over.end());
    return all;
}

// ---- output of commands ---------------------------------------------------------------------------------------------

// Any thread; it receives nothing more when the cluster's thread has released it.
class Commands::PipeObserver final : public LineListener {
  public:
    PipeObserver(ClusterMaster &master, Commands &commands, uint64_t command, int fd, const Command &what)
        : fd_(fd), is_for_manager_(what.is_for_manager), commands_(&commands), master_(&master), command_(command) {}

    bool shown(std::string_view line) noexcept override {
        const bool ours = is_for_manager_ != nullptr && is_for_manager_(fd_, line);
        const std::lock_guard hold(lock_);
        try {
            if (ours && commands_ != nullptr)
                master_->post_report([commands = commands_, command = command_, fd = fd_, text = std::string(line)](
                                         ClusterMaster &) { commands->line_received(command, fd, text); });
            if (!ours && std::any_of(line.begin(), line.end(), [](unsigned char c) { return std::isalnum(c); })) {
                last_ = line.substr(0, max_shown);
                if (first_.empty()) first_ = last_;
            }
        } catch (const std::bad_alloc &) { // the timeouts are left
        }
        return !ours;
    }

    void ended() noexcept override {
        const std::lock_guard hold(lock_);
        try {
            if (commands_ != nullptr)
                master_->post_report([commands = commands_, command = command_, fd = fd_](ClusterMaster &) {
                    commands->pipe_ended(command, fd);
                });
        } catch (const std::bad_alloc &) { // its process ends, too
        }
    }

    void leave() noexcept {
        const std::lock_guard hold(lock_);
        commands_ = nullptr;
    }
    std::string shown_line(Line which) {
        const std::lock_guard hold(lock_);
        return which == Line::first ? first_ : last_;
    }

  private:
    const int fd_;
    bool (*const is_for_manager_)(int, std::string_view) noexcept;
    std::mutex lock_;    // guards the rest
    Commands *commands_; // none: the cluster is over
    ClusterMaster *const master_;
    const uint64_t command_;
    std::string first_, last_;
};

std::string Commands::shown_line(uint64_t command, Line which) {
    const auto child = children_.find(command);
    if (child == children_.end()) return {};
    const auto observer = child->second.listening.find(2);
    return observer == child->second.listening.end() ? std::string() : observer->second->shown_line(which);
}

void Commands::line_received(uint64_t command, int fd, const std::string &line) {
    const auto child = children_.find(command);
    if (child == children_.end() || !child->second.observer.on_line) return;
    const auto on_line = child->second.observer.on_line; // it may end the command
    on_line(fd, line);
}

Commands::Commands(Context &context) noexcept : context_(context) {}
Commands::~Commands() = default;

// ---- its life -------------------------------------------------------------------------------------------------------

Result<void> Commands::write_input(uint64_t command, const std::string &text) {
    const auto child = children_.find(command);
    if (child == children_.end() || !child->second.in) return Error::make(MUSTER_E_PEER, "it is over");
    const Fd out = std::move(child->second.in); // closed after it
    return fill(out, text);
}

Result<uint64_t> Commands::start(ClusterMaster &master, const Command &command, CommandObserver observer) {
    master_ = &master;
    if (!guard_) {
        auto id = random_number();
        if (!id) return id.error();
        guard_id_ = "cluster-" + std::to_string(*id);
        auto guard = Guard::start(context_, guard_id_);
        if (!guard) return guard.error();
        guard_ = std::move(*guard);
    }
    const uint64_t number = ++numbers_;
    std::vector<Fd> theirs;
    std::vector<muster_process_fd> fds;
    std::vector<std::pair<int, Fd>> said;
    Fd more;
    const auto give = [&](Fd fd, int as) {
        fds.push_back({fd.get(), as});
        theirs.push_back(std::move(fd));
    };
    for (const Command::Input &input : command.inputs) {
        Fd in, out;
        if (auto made = make_pipe(in, out); !made) return made.error();
        if (auto filled = fill(out, input.text); !filled) return filled.error();
        give(std::move(in), input.fd);
    }
    if (command.has_late_input) {
        Fd in;
        if (auto made = make_pipe(in, more); !made) return made.error();
        give(std::move(in), 0);
    }
    for (const int fd : command.outputs) {
        Fd in, out;
        if (auto made = make_pipe(in, out); !made) return made.error();
        said.emplace_back(fd, std::move(in));
        give(std::move(out), fd);
    }
    std::vector<const char *> argv, envp;
    const std::string mark = std::string(agent_id_variable) + "=" + guard_id_;
    for (const std::string &word : command.argv) argv.push_back(word.c_str());
    for (const std::string &variable : command.environment)
        if (name_of(variable) != agent_id_variable) envp.push_back(variable.c_str());
    envp.push_back(mark.c_str());
    argv.push_back(nullptr);
    envp.push_back(nullptr);
    muster_process_config config{};
    config.struct_size = sizeof config;
    config.argv = argv.data();
    config.envp = envp.data();
    config.directory = command.directory.empty() ? nullptr : command.directory.c_str();
    config.fds = fds.data();
    config.fd_count = fds.size();
    // The record first: a process without one would be neither ended nor reaped.
    if (!said.empty() && !output_)
        output_ = make_ref<Output>(context_, Fd(fcntl(1, F_DUPFD_CLOEXEC, 3)), Fd(fcntl(2, F_DUPFD_CLOEXEC, 3)));
    Child &child = children_[number];
    child.in = std::move(more);
    child.observer = std::move(observer);
    Result<void> begun;
    try {
        child.number = master.on_completion([this, number](const muster_completion &entry, const Error &) {
            ended(number, {static_cast<int32_t>(entry.bytes >> 32), static_cast<int32_t>(entry.bytes)});
        });
        for (const auto &[fd, pipe] : said)
            child.listening.emplace(fd, make_ref<PipeObserver>(master, *this, number, fd, command));
        begun = begin(child, config, said);
    } catch (const std::bad_alloc &) {
        begun = Error::make(MUSTER_E_NOMEM, "start a program: out of memory");
    }
    if (!begun) {
        if (child.process) child.process->kill(SIGKILL);
        for (const auto &[fd, observer] : child.listening) observer->leave();
        master.drop_handler(child.number);
        children_.erase(number);
        return begun.error();
    }
    update_guard();
    return number;
}

Result<void> Commands::begin(Child &child, const muster_process_config &config, std::vector<std::pair<int, Fd>> &said) {
    auto process = Process::spawn(context_, config, Process::Rest::ends);
    if (!process) return process.error();
    child.process = std::move(*process);
    if (const Status watched = child.process->watch(master_->completions(), child.number); watched != MUSTER_OK)
        return Error::make(watched < 0 ? watched : MUSTER_E_LIMIT, "its process cannot be watched");
    for (auto &[fd, pipe] : said) {
        auto added = output_->add(std::move(pipe), Fd(), fd == 2, {}, Ref<LineListener>(child.listening.at(fd)));
        if (!added) return added.error();
        child.unfinished++;
    }
    return {};
}

void Commands::kill(uint64_t command, int signal) noexcept {
    const auto child = children_.find(command);
    if (child != children_.end()) child->second.process->kill(signal);
}

void Commands::ended(uint64_t command, const muster_process_exit &exit) {
    const auto child = children_.find(command);
    if (child == children_.end()) return;
    child->second.ended = true;
    child->second.exit = exit;
    child->second.in.reset();
    if (child->second.unfinished == 0) return over(command);
    try {
        child->second.timer = master_->start_timer(now_ns() + last_lines_ns, [this, command] {
            children_.at(command).timer = {};
            over(command);
        });
    } catch (const std::bad_alloc &) { // without its last lines
        over(command);
    }
}

void Commands::pipe_ended(uint64_t command, int fd) {
    const auto child = children_.find(command);
    if (child == children_.end()) return;
    child->second.unfinished--;
    if (child->second.unfinished == 0 && child->second.ended) return over(command);
    const auto closed = child->second.observer.on_pipe_end;
    if (closed) closed(fd);
}

void Commands::over(uint64_t command) {
    Child &child = children_.at(command);
    master_->cancel_timer(child.timer);
    master_->drop_handler(child.number);
    const auto tell = std::move(child.observer.on_exit);
    const muster_process_exit exit = child.exit;
    const auto forget = [&] {
        for (const auto &[fd, observer] : children_.at(command).listening) observer->leave();
        children_.erase(command);
        update_guard();
    };
    try {
        tell(exit); // the observer may still need its last lines
    } catch (...) {
        forget();
        throw;
    }
    forget();
}

void Commands::update_guard() noexcept {
    if (std::exchange(guard_update_pending_, true)) return;
    try {
        master_->start_timer(0, [this] {
            guard_update_pending_ = false;
            std::vector<pid_t> leaders;
            for (const auto &[number, child] : children_) leaders.push_back(child.process->pid());
            guard_.watch(leaders);
        });
    } catch (const std::bad_alloc &) { // it finds them by the variable
        guard_update_pending_ = false;
    }
}

void Commands::finish(int64_t grace_ns) noexcept {
    for (auto &[number, child] : children_)
        for (const auto &[fd, observer] : child.listening) observer->leave();
    const auto wait_for_all = [this](int64_t timeout_ns) {
        Deadline deadline(timeout_ns);
        for (auto &[number, child] : children_) child.process->wait(deadline, nullptr);
    };
    if (grace_ns > 0) {
        wait_for_all(grace_ns);
        for (auto &[number, child] : children_) child.process->kill(SIGTERM);
        wait_for_all(grace_ns);
    }
    for (auto &[number, child] : children_) child.process->kill(SIGKILL);
    wait_for_all(end_timeout_ns);
    children_.clear();
    if (output_) {
        output_->finish();
        output_->end();
    }
    guard_.finish(end_timeout_ns);
}

} // namespace muster
