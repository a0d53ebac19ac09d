// SPDX-License-Identifier: MIT
#pragma once
// Programs that managers start on this host: what each is handed, what it says line by line, and its end.
#include "agent/guard.hpp"
#include "agent/output.hpp"
#include "process/process.hpp"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace muster {

class ClusterMaster;

// What to start.
struct Command {
    struct Input {
        int fd;
        std::string text; // it reads this there, then the end
    };
    std::vector<std::string> argv, environment; // the latter whole, but for the mark of the guard
    std::string directory{};                    // empty: this process's own
    std::vector<Input> inputs{};
    bool is_told_more = false;  // by say(): descriptor 0 has no end before
    std::vector<int> outputs{}; // of which lines are listened to: 1, 2, or one of its own, of which nothing is shown
    // Is this line for the manager? Any thread. Others go where this process's own output goes.
    bool (*for_us)(int fd, std::string_view line) noexcept = nullptr;
};

// What is heard of it, on the cluster's thread.
struct CommandEars {
    std::function<void(int fd, const std::string &line)> told{};
    std::function<void(int fd)> closed{};                      // it says nothing more there
    std::function<void(const muster_process_exit &exit)> over; // the last: what it has said before was told
};

// Those of one manager in one cluster. The cluster's thread.
class Commands {
  public:
    explicit Commands(Context &context) noexcept;
    Commands(const Commands &) = delete;
    Commands &operator=(const Commands &) = delete;
    ~Commands();

    Result<uint64_t> start(ClusterMaster &master, const Command &command, CommandEars ears); // its number
    Result<void> say(uint64_t command, const std::string &text);                             // then it reads the end
    void kill(uint64_t command, int signal) noexcept;                                        // its group
    enum class Words { first, last };
    std::string words(uint64_t command, Words which); // the line it has shown of descriptor 2, if that is listened to
    void finish(int64_t grace_ns = 0) noexcept; // until all are over: by themselves, then by SIGTERM, then by force

  private:
    class Ear;
    struct Child {
        Ref<Process> process;
        uint64_t number = 0,
                 patience = 0; // of its exit in the completions; until it is over, though somebody holds its pipes
        Fd in;
        std::map<int, Ref<Ear>> listening;
        size_t unfinished = 0; // of these
        CommandEars ears;
        bool ended = false;
        muster_process_exit exit{};
    };
    Result<void> begin(Child &child, const muster_process_config &config, std::vector<std::pair<int, Fd>> &said);
    void heard(uint64_t command, int fd, const std::string &line);
    void pipe_ended(uint64_t command, int fd);
    void ended(uint64_t command, const muster_process_exit &exit);
    void over(uint64_t command);
    void name_to_guard() noexcept;

    Context &context_;
    ClusterMaster *master_ = nullptr;
    std::map<uint64_t, Child> children_;
    uint64_t numbers_ = 0;
    Ref<Output> output_; // once something is listened to
    std::string guard_id_;
    Guard guard_;
    bool guard_is_late_ = false;
};

std::string how_it_ended(const muster_process_exit &exit);

// This process's own, but for what is in `over`, which comes in its place.
std::vector<std::string> environment_with(const std::vector<std::string> &own, const std::vector<std::string> &over);

} // namespace muster
