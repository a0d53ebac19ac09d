// SPDX-License-Identifier: MIT
// Workers on this host: child processes, each in a group of its own. The ticket goes through a pipe, which is
// descriptor 3 there; where the master is to dial, the address is returned through descriptor 4.
#include "cluster/lifecycle/master.hpp"
#include "cluster/managers/command.hpp"

#include <csignal>
#include <deque>

namespace muster {

namespace {

constexpr int spawns_at_once = 8; // before other events are served
constexpr int ticket_fd = 3, report_fd = 4;

bool is_report(int fd, std::string_view) noexcept {
    return fd == report_fd;
}

class LocalManager final : public ClusterManager {
  public:
    explicit LocalManager(Context &context) : commands_(context) {}
    uint32_t wants() const noexcept override { return MUSTER_MANAGER_LAUNCH | MUSTER_MANAGER_KILL; }
    bool sees_exits() const noexcept override { return true; }
    Result<void> check(const LaunchPlan &plan) const override { return needs_program(plan); }

    void launch(ClusterMaster &master, std::shared_ptr<const LaunchPlan> plan, uint32_t first) override {
        pending_.push_back({std::move(plan), first, first});
        if (pending_.size() != 1) return;
        try {
            go_on(master);
        } catch (const std::bad_alloc &) { // the master reports it
            pending_.pop_back();
            throw;
        }
    }

    void ask(ClusterMaster &master, const ManagerQuestion &question, Answer answer) override {
        if (question.want == MUSTER_MANAGER_KILL) forget(master, question.member);
        answer(std::string());
    }

    void forget(ClusterMaster &,
                uint32_t member) noexcept override { // a worker that was not started yet is not needed any more
        const auto command = commands_of_.find(member);
        if (command != commands_of_.end()) commands_.kill(command->second, SIGKILL);
    }

    void finish() noexcept override { commands_.finish(); }

  private:
    struct Pending {
        std::shared_ptr<const LaunchPlan> plan;
        uint32_t first, next;
    };

    void go_on(ClusterMaster &master) {
        master.post([this, &master] { launch_some(master); });
    }

    void launch_some(ClusterMaster &master) {
        for (int i = 0; i < spawns_at_once && !pending_.empty(); i++) {
            const std::shared_ptr<const LaunchPlan> plan = pending_.front().plan;
            const uint32_t member = pending_.front().next++;
            if (pending_.front().next == pending_.front().first + plan->count) pending_.pop_front();
            if (!master.wanted(member)) continue;
            Result<void> started;
            try {
                started = start(master, *plan, member);
            } catch (const std::bad_alloc &) {
                started = Error::make(MUSTER_E_NOMEM, "start worker %u: out of memory", member);
            }
            if (!started)
                master.failed(member, started.error());
            else if (!plan->master_dials())
                master.ready(member, {}, 0);
        }
        if (!pending_.empty()) go_on(master);
    }

    Result<void> start(ClusterMaster &master, const LaunchPlan &plan, uint32_t member) {
        std::vector<std::string> own = plan.environment;
        own.push_back("MUSTER_WORKER_FD=" + std::to_string(ticket_fd));
        if (plan.master_dials()) own.push_back("MUSTER_WORKER_REPORT_FD=" + std::to_string(report_fd));
        Command command;
        command.argv = plan.argv;
        command.environment = environment_with(plan.inherited, own);
        command.directory = plan.directory;
        command.inputs.push_back({ticket_fd, master.ticket(plan, member).line()});
        if (plan.master_dials()) command.outputs.push_back(report_fd);
        command.is_for_manager = &is_report;
        CommandObserver observer;
        observer.on_line = [this, &master, member](int, const std::string &line) {
            take_address(master, member, line);
        };
        observer.on_pipe_end = [this, &master, member](int) {
            if (!master.is_launched(member)) forget(master, member); // it reported no address
        };
        observer.on_exit = [this, &master, member](const muster_process_exit &exit) {
            commands_of_.erase(member);
            std::string how;
            try {
                how = describe_exit(exit);
            } catch (const std::bad_alloc &) { // then without a text
            }
            master.process_over(member, how);
        };
        uint64_t &number = commands_of_[member]; // before the start, since it needs memory
        auto started = commands_.start(master, command, std::move(observer));
        if (!started) {
            commands_of_.erase(member);
            return started.error();
        }
        number = *started;
        return {};
    }

    void take_address(ClusterMaster &master, uint32_t member, const std::string &line) {
        if (const auto report = WorkerReport::parse(line)) return master.ready(member, report->address, 0);
        forget(master, member);
        master.failed(member,
                      Error::make(MUSTER_E_PROTOCOL, "in place of its address it reports \"%.60s\"", line.c_str()));
    }

    Commands commands_;
    std::deque<Pending> pending_;
    std::map<uint32_t, uint64_t> commands_of_; // of workers that run
};

} // namespace

Ref<ClusterManager> make_local_manager(Context &context) {
    return make_ref<LocalManager>(context);
}

} // namespace muster
