// SPDX-License-Identifier: MIT
// Workers on this host: child processes, each in a group of its own. The ticket goes through a pipe, which is
// descriptor 3 there; where the master is to dial, the address comes back through one that is descriptor 4.
#include "agent/guard.hpp"
#include "agent/plan.hpp"
#include "cluster/master.hpp"
#include "process/process.hpp"

#include <csignal>
#include <cstring>
#include <deque>
#include <sys/epoll.h>

namespace muster {

namespace {

constexpr int64_t end_patience_ns = 5'000'000'000;
constexpr int spawns_at_once = 8; // then what has come is looked at
constexpr char report_begins[] = "muster-worker ";

std::string how_it_ended(const muster_process_exit &exit) {
    if (exit.kind == MUSTER_PROCESS_EXITED) return "exit code " + std::to_string(exit.value);
    if (exit.kind == MUSTER_PROCESS_KILLED)
        return "killed by signal " + std::to_string(exit.value) + " (" + strsignal(exit.value) + ")";
    return "it is over, and nobody knows how: this process does not reap its children";
}

// The line by which a worker tells where it listens.
class ReportPipe final : public Object, private Source {
  public:
    ReportPipe(Queue &queue, Fd fd) noexcept : queue_(&queue), fd_(std::move(fd)) {}
    Result<void> watch(uint64_t number) {
        queue_->attach(*this, number);
        return queue_->add_fd(*this, fd_.get(), EPOLLIN);
    }
    // Empty: it is not whole yet. Fails when nothing will come any more.
    Result<std::string> read() {
        for (;;) {
            char piece[512];
            const ssize_t got = uncancelled::read(fd_.get(), piece, sizeof piece);
            if (got < 0 && errno == EINTR) continue;
            if (got < 0 && errno == EAGAIN) return std::string();
            if (got <= 0) return Error::make(MUSTER_E_END, "it told no address");
            text_.append(piece, static_cast<size_t>(got));
            const size_t end = text_.find('\n');
            if (end == std::string::npos && text_.size() < 2 * control_address_max) continue;
            constexpr std::string_view begin(report_begins);
            if (end == std::string::npos || text_.compare(0, begin.size(), begin) != 0)
                return Error::make(MUSTER_E_PROTOCOL, "what it tells in place of its address is \"%.60s\"",
                                   text_.c_str());
            return text_.substr(begin.size(), end - begin.size());
        }
    }
    void leave() noexcept {
        queue_->remove_fd(*this, fd_.get());
        queue_->detach(*this);
    }

  private:
    uint32_t on_fd(uint32_t) noexcept override { return MUSTER_STREAM_READABLE; }
    Object &owner() noexcept override { return *this; }
    const Ref<Queue> queue_;
    const Fd fd_;
    std::string text_;
};

class LocalManager final : public ClusterManager {
  public:
    explicit LocalManager(Context &context) noexcept : context_(context) {}
    uint32_t wants() const noexcept override { return MUSTER_MANAGER_LAUNCH | MUSTER_MANAGER_KILL; }
    bool sees_ends() const noexcept override { return true; }

    void launch(ClusterMaster &master, std::shared_ptr<const LaunchPlan> plan, uint32_t first) override {
        pending_.push_back({std::move(plan), first, first});
        if (pending_.size() == 1) go_on(master);
    }

    void ask(ClusterMaster &, const ManagerQuestion &question, Answer answer) override {
        const auto child = children_.find(question.member);
        if (child != children_.end() && question.want == MUSTER_MANAGER_KILL) child->second.process->kill(SIGKILL);
        answer(std::string());
    }

    void forget(ClusterMaster &, uint32_t member) noexcept override { // one still to be started: wanted() tells
        const auto child = children_.find(member);
        if (child != children_.end()) child->second.process->kill(SIGKILL);
    }

    void finish() noexcept override { // nothing is left behind, nor a zombie
        Deadline deadline(end_patience_ns);
        for (auto &[member, child] : children_) {
            child.process->kill(SIGKILL); // it was told as failed
            child.process->wait(deadline, nullptr);
        }
        guard_.finish(end_patience_ns);
    }

  private:
    struct Pending {
        std::shared_ptr<const LaunchPlan> plan;
        uint32_t first, next;
    };
    struct Child {
        Ref<Process> process;
        uint64_t number = 0; // of its exit, in the inbox
        Ref<ReportPipe> report;
        uint64_t report_number = 0;
    };

    void go_on(ClusterMaster &master) {
        master.at(0, [this, &master] { launch_some(master); });
    }

    void launch_some(ClusterMaster &master) {
        for (int i = 0; i < spawns_at_once && !pending_.empty(); i++) {
            const std::shared_ptr<const LaunchPlan> plan = pending_.front().plan;
            const uint32_t member = pending_.front().next++;
            if (pending_.front().next == pending_.front().first + plan->count) pending_.pop_front();
            if (!master.wanted(member)) continue;
            if (auto started = start(master, *plan, member); !started)
                master.failed(member, started.error());
            else if (!plan->master_dials())
                master.ready(member, {}, 0);
        }
        tell_guard();
        if (!pending_.empty()) go_on(master);
    }

    Result<void> start(ClusterMaster &master, const LaunchPlan &plan, uint32_t member) {
        if (!guard_) {
            auto id = random_number();
            if (!id) return id.error();
            guard_id_ = "cluster-" + std::to_string(*id);
            auto guard = Guard::start(context_, guard_id_);
            if (!guard) return guard.error();
            guard_ = std::move(*guard);
        }
        auto ticket = pipe_with(master.ticket(plan, member));
        if (!ticket) return ticket.error();
        Fd report_in, report_out;
        if (plan.master_dials()) {
            int ends[2];
            if (pipe2(ends, O_CLOEXEC) != 0) return Error::from_errno(errno, MUSTER_OK, "a pipe for an address");
            report_in = Fd(ends[0]);
            report_out = Fd(ends[1]);
            fcntl(report_in.get(), F_SETFL, O_NONBLOCK);
        }
        auto process = spawn_worker(plan, ticket->get(), report_out.get());
        if (!process) return process.error();
        Child &child = children_[member];
        child.process = std::move(*process);
        child.number = master.on([this, &master, member](const muster_completion &entry, const Error &) {
            over(master, member, {static_cast<int32_t>(entry.bytes >> 32), static_cast<int32_t>(entry.bytes)});
        });
        if (const Status watched = child.process->watch(master.inbox(), child.number); watched != MUSTER_OK) {
            child.process->kill(SIGKILL);
            master.forget(child.number);
            children_.erase(member);
            return Error::make(watched < 0 ? watched : MUSTER_E_LIMIT, "its process cannot be watched");
        }
        return plan.master_dials() ? hear_address(master, member, child, std::move(report_in)) : Result<void>();
    }

    static Result<Fd> pipe_with(const std::string &text) {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) != 0) return Error::from_errno(errno, MUSTER_OK, "a pipe for a ticket");
        Fd in(ends[0]);
        const Fd out(ends[1]);
        if (uncancelled::write(out.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
            return Error::from_errno(errno, MUSTER_OK, "write a ticket of %zu bytes", text.size());
        return in;
    }

    Result<Ref<Process>> spawn_worker(const LaunchPlan &plan, int ticket, int report) {
        std::vector<std::string> own{"MUSTER_WORKER_FD=3", std::string(agent_id_variable) + "=" + guard_id_};
        if (report >= 0) own.emplace_back("MUSTER_WORKER_REPORT_FD=4");
        std::vector<const char *> argv, envp;
        for (const std::string &word : plan.argv) argv.push_back(word.c_str());
        argv.push_back(nullptr);
        const auto name_of = [](const std::string &variable) {
            return std::string_view(variable).substr(0, variable.find('='));
        };
        const auto add = [&](const std::vector<std::string> &list, auto &&covered) {
            for (const std::string &variable : list)
                if (!covered(name_of(variable))) envp.push_back(variable.c_str());
        };
        const auto in = [&](const std::vector<std::string> &list, std::string_view name) {
            for (const std::string &one : list)
                if (name_of(one) == name) return true;
            return false;
        };
        add(plan.inherited, [&](std::string_view name) { return in(plan.environment, name) || in(own, name); });
        add(plan.environment, [&](std::string_view name) { return in(own, name); });
        add(own, [](std::string_view) { return false; });
        envp.push_back(nullptr);
        const muster_process_fd fds[] = {{ticket, 3}, {report, 4}};
        muster_process_config config{};
        config.struct_size = sizeof config;
        config.argv = argv.data();
        config.envp = envp.data();
        config.directory = plan.directory.empty() ? nullptr : plan.directory.c_str();
        config.fds = fds;
        config.fd_count = report >= 0 ? 2 : 1;
        return Process::spawn(context_, config, Process::Rest::ends);
    }

    Result<void> hear_address(ClusterMaster &master, uint32_t member, Child &child, Fd in) {
        child.report = make_ref<ReportPipe>(master.inbox(), std::move(in));
        child.report_number = master.on([this, &master, member](const muster_completion &, const Error &) {
            const auto found = children_.find(member);
            if (found == children_.end() || !found->second.report) return;
            auto address = found->second.report->read();
            if (address && address->empty()) return;
            forget_report(master, found->second);
            if (address) return master.ready(member, *address, 0);
            found->second.process->kill(SIGKILL); // if it is over by itself, that is what will be told
            if (address.error().status != MUSTER_E_END) master.failed(member, address.error());
        });
        auto watched = child.report->watch(child.report_number);
        if (!watched) {
            forget_report(master, child);
            child.process->kill(SIGKILL);
        }
        return watched;
    }

    static void forget_report(ClusterMaster &master, Child &child) noexcept {
        if (!child.report) return;
        child.report->leave();
        child.report.reset();
        master.forget(child.report_number);
    }

    void over(ClusterMaster &master, uint32_t member, const muster_process_exit &exit) {
        const auto child = children_.find(member);
        if (child == children_.end()) return;
        forget_report(master, child->second);
        master.forget(child->second.number);
        children_.erase(child);
        if (!guard_is_late_) {
            guard_is_late_ = true;
            master.at(0, [this] { tell_guard(); });
        }
        master.process_over(member, how_it_ended(exit));
    }

    void tell_guard() noexcept {
        guard_is_late_ = false;
        try {
            std::vector<pid_t> leaders;
            for (const auto &[member, child] : children_) leaders.push_back(child.process->pid());
            guard_.watch(leaders);
        } catch (const std::bad_alloc &) { // it finds them by the variable
        }
    }

    Context &context_;
    std::deque<Pending> pending_;
    std::map<uint32_t, Child> children_;
    std::string guard_id_;
    Guard guard_;
    bool guard_is_late_ = false;
};

} // namespace

Ref<ClusterManager> make_local_manager(Context &context) {
    return make_ref<LocalManager>(context);
}

} // namespace muster
