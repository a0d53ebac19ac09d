// SPDX-License-Identifier: MIT
#pragma once
// Programs that managers start on this host: their input, their output line by line, and their exit.
#include "agent/guard.hpp"
#include "agent/output.hpp"
#include "cluster/member/cluster.hpp"
#include "process/process.hpp"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace muster {

class ClusterMaster;

// The configuration of a command.
struct Command {
    struct Input {
        int fd;
        std::string text; // the text that the program reads there, followed by the end
    };
    std::vector<std::string> argv, environment; // the latter complete, except for the variable of the guard
    std::string directory{};                    // empty: this process's own
    std::vector<Input> inputs{};
    bool has_late_input = false; // by write_input(), which also ends descriptor 0
    std::vector<int> outputs{};  // descriptors whose lines are read: 1, 2, or one of its own, whose lines are not shown
    // Is this line for the manager? Any thread. Other lines are written to the output of this process.
    bool (*is_for_manager)(int fd, std::string_view line) noexcept = nullptr;
};

// Notifications for the manager, on the cluster's thread.
struct CommandObserver {
    std::function<void(int fd, const std::string &line)> on_line{};
    std::function<void(int fd)> on_pipe_end{};                    // the program writes no more lines there
    std::function<void(const muster_process_exit &exit)> on_exit; // last, after all lines
};

// The programs of one manager in one cluster. The cluster's thread.
class Commands {
  public:
    explicit Commands(Context &context) noexcept;
    Commands(const Commands &) = delete;
    Commands &operator=(const Commands &) = delete;
    ~Commands();

    Result<uint64_t> start(ClusterMaster &master, const Command &command, CommandObserver observer); // its number
    Result<void> write_input(uint64_t command, const std::string &text); // then it reads the end
    void kill(uint64_t command, int signal) noexcept;                    // its group
    enum class Line { first, last };
    std::string shown_line(uint64_t command,
                           Line which);         // the line it has shown of descriptor 2, if that is listened to
    void finish(int64_t grace_ns = 0) noexcept; // until all are over: by themselves, then by SIGTERM, then by force

  private:
    class PipeObserver;
    struct Child {
        Ref<Process> process;
        uint64_t number = 0; // of its exit among the completions
        ClusterTimer timer;  // it has exited; for how long its pipes may stay open
        Fd in;
        std::map<int, Ref<PipeObserver>> listening;
        size_t unfinished = 0; // of these
        CommandObserver observer;
        bool ended = false;
        muster_process_exit exit{};
    };
    Result<void> begin(Child &child, const muster_process_config &config, std::vector<std::pair<int, Fd>> &said);
    void line_received(uint64_t command, int fd, const std::string &line);
    void pipe_ended(uint64_t command, int fd);
    void ended(uint64_t command, const muster_process_exit &exit);
    void over(uint64_t command);
    void update_guard() noexcept;

    Context &context_;
    ClusterMaster *master_ = nullptr;
    std::map<uint64_t, Child> children_;
    uint64_t numbers_ = 0;
    Ref<Output> output_; // once something is listened to
    std::string guard_id_;
    Guard guard_;
    bool guard_update_pending_ = false;
};

std::string describe_exit(const muster_process_exit &exit);

// That of this process, with the variables of `over` replaced.
std::vector<std::string> environment_with(const std::vector<std::string> &own, const std::vector<std::string> &over);

} // namespace muster
