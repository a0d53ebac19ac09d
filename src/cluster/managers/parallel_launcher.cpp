// SPDX-License-Identifier: MIT
// Workers that a parallel launcher starts together: one srun or mpiexec for all workers of a launch. They share a
// ticket; each finds its number by the rank it was given. srun passes its standard input to every task. mpiexec passes
// its own to rank 0 alone, so there the ticket is an environment variable, which the worker wipes when it has read it;
// see lifecycle/launch_keys.hpp for its content.
#include "cluster/lifecycle/master.hpp"
#include "cluster/managers/command.hpp"
#include "cluster/managers/options.hpp"

#include <algorithm>
#include <csignal>
#include <set>

namespace muster {

namespace {

constexpr int64_t end_grace_ns = 5'000'000'000; // of a launcher whose workers are gone

enum class Launcher { mpiexec, srun };

bool is_worker_report(int fd, std::string_view line) noexcept {
    return fd == 1 && line.substr(0, worker_report_begins.size()) == worker_report_begins;
}

class JobManager final : public ClusterManager {
  public:
    JobManager(Context &context, Launcher launcher) noexcept : launcher_(launcher), commands_(context) {}
    uint32_t wants() const noexcept override { return MUSTER_MANAGER_LAUNCH; } // it cannot kill a single one
    bool sees_exits() const noexcept override { return false; }
    Result<void> check(const LaunchPlan &plan) const override {
        auto command = command_of(plan);
        return command ? Result<void>() : command.error();
    }

    void launch(ClusterMaster &master, std::shared_ptr<const LaunchPlan> plan, uint32_t first) override {
        if (auto started = start(master, plan, first); !started)
            for (uint32_t i = 0; i < plan->count; i++) master.failed(first + i, started.error());
    }

    void ask(ClusterMaster &, const ManagerQuestion &, Answer answer) override { answer(std::string()); }

    void forget(ClusterMaster &, uint32_t member) noexcept override { // with the last of them the launcher ends
        const auto job = job_of(member);
        if (job == jobs_.end()) return;
        job->second.members.erase(member);
        if (job->second.members.empty()) commands_.kill(job->second.command, SIGTERM);
    }

    void finish() noexcept override { commands_.finish(end_grace_ns); }

  private:
    struct Job {
        uint64_t command = 0;
        std::set<uint32_t> members; // whose launch was not cancelled
    };

    const char *program() const noexcept { return launcher_ == Launcher::srun ? "srun" : "mpiexec"; }

    Result<Command> command_of(const LaunchPlan &plan) const {
        auto options = ManagerOptions::parse(plan.options, {program(), "flags"});
        if (!options) return options.error();
        if (auto named = needs_program(plan); !named) return named.error();
        auto flags = options->words("flags");
        if (!flags) return flags.error();
        Command command;
        command.argv = {options->text(program(), program())};
        if (launcher_ == Launcher::srun) // one task's death is not that of the others
            command.argv.insert(command.argv.end(), {"--kill-on-bad-exit=0", "--wait=0", "--input=all"});
        command.argv.insert(command.argv.end(), {"-n", std::to_string(plan.count)});
        command.argv.insert(command.argv.end(), flags->begin(), flags->end());
        std::vector<std::string> own = plan.environment;
        if (launcher_ == Launcher::mpiexec) {
            // Open MPI passes these to other hosts; others pass all. (It refuses the list together with an -x.)
            const bool by_flag = std::find(flags->begin(), flags->end(), "-x") != flags->end();
            std::string names = ticket_variable;
            for (const std::string &variable : plan.environment) names += ';' + variable.substr(0, variable.find('='));
            if (by_flag)
                command.argv.insert(command.argv.end(), {"-x", ticket_variable});
            else
                own.push_back("OMPI_MCA_mca_base_env_list=" + names);
        } else {
            own.emplace_back("MUSTER_WORKER_FD=0");
        }
        command.argv.insert(command.argv.end(), plan.argv.begin(), plan.argv.end());
        command.environment = environment_with(plan.inherited, own);
        command.directory = plan.directory;
        command.outputs = plan.master_dials() ? std::vector<int>{1, 2} : std::vector<int>{2};
        command.is_for_manager = &is_worker_report;
        return command;
    }

    Result<void> start(ClusterMaster &master, const std::shared_ptr<const LaunchPlan> &shared, uint32_t first) {
        const LaunchPlan &plan = *shared;
        auto command = command_of(plan);
        if (!command) return command.error();
        Ticket ticket = master.ticket(plan, first);
        ticket.listen = plan.listens() ? plan.listen : std::string();
        ticket.members = plan.count;
        ticket.rank_variables =
            launcher_ == Launcher::srun ? "SLURM_PROCID" : "OMPI_COMM_WORLD_RANK,PMIX_RANK,PMI_RANK";
        if (launcher_ == Launcher::srun) {
            command->inputs.push_back({0, ticket.line()});
        } else {
            auto key = master.make_launch_key(shared, first);
            if (!key) return key.error();
            ticket.key = std::move(*key);
            command->environment.push_back(std::string(ticket_variable) + "=" + ticket.variable());
        }
        CommandObserver observer;
        observer.on_line = [&master, first, count = plan.count](int, const std::string &line) {
            const auto report = WorkerReport::parse(line);
            if (report && report->member - first < count) master.ready(report->member, report->address, 0);
        };
        observer.on_exit = [this, &master, first](const muster_process_exit &exit) { over(master, first, exit); };
        auto started = commands_.start(master, *command, std::move(observer));
        if (!started) return started.error();
        Job &job = jobs_[first];
        job.command = *started;
        for (uint32_t i = 0; i < plan.count; i++) job.members.insert(job.members.end(), first + i);
        return {};
    }

    std::map<uint32_t, Job>::iterator job_of(uint32_t member) noexcept {
        auto job = jobs_.upper_bound(member);
        if (job == jobs_.begin()) return jobs_.end();
        --job;
        return job->second.members.count(member) != 0 ? job : jobs_.end();
    }

    void over(ClusterMaster &master, uint32_t first, const muster_process_exit &exit) {
        const auto job = jobs_.extract(first);
        if (job.empty()) return;
        const auto which = launcher_ == Launcher::srun ? Commands::Line::last : Commands::Line::first;
        const std::string words = commands_.shown_line(job.mapped().command, which);
        const std::string how =
            std::string(program()) + ": " + describe_exit(exit) + (words.empty() ? "" : ": ") + words;
        for (const uint32_t member : job.mapped().members)
            if (master.is_launched(member))
                master.process_over(member, how);
            else
                master.failed(member, Error::make(MUSTER_E_PEER, "%s", how.c_str()));
    }

    const Launcher launcher_;
    Commands commands_;
    std::map<uint32_t, Job> jobs_; // by the first of their members
};

} // namespace

Ref<ClusterManager> make_mpi_manager(Context &context) {
    return make_ref<JobManager>(context, Launcher::mpiexec);
}

Ref<ClusterManager> make_slurm_manager(Context &context) {
    return make_ref<JobManager>(context, Launcher::srun);
}

} // namespace muster
