// SPDX-License-Identifier: MIT
// Workers on other hosts: one OpenSSH client each. A shell there reads its job from standard input, in one line, and
// the worker reads the ticket in the next; so neither host shows them in a list of processes. The shell reports in
// lines that begin with `muster-worker-`: the process id of the worker before it starts, and its exit code afterwards.
#include "cluster/lifecycle/master.hpp"
#include "cluster/managers/command.hpp"
#include "cluster/managers/options.hpp"
#include "cluster/managers/ssh_options.hpp"

#include <csignal>
#include <deque>

namespace muster {

namespace {

constexpr char shell[] = "exec /bin/sh -c 'IFS= read -r muster_job && eval \"$muster_job\"'";
constexpr std::string_view pid_begins = "muster-worker-pid ", end_begins = "muster-worker-over ",
                           port_begins = "Allocated port ";
constexpr int ssh_has_failed = 255;
constexpr int64_t last_report_ns = 500'000'000;

bool is_for_manager(int fd, std::string_view line) noexcept {
    const auto begins = [line](std::string_view with) { return line.substr(0, with.size()) == with; };
    if (fd == 2) return begins(port_begins);
    return begins(pid_begins) || begins(end_begins) || begins(worker_report_begins);
}

// The host and port of `tcp://host:port?options`; empty: it has another scheme.
std::string_view host_and_port(std::string_view address) {
    constexpr std::string_view scheme = "tcp://";
    if (address.substr(0, scheme.size()) != scheme) return {};
    address.remove_prefix(scheme.size());
    return address.substr(0, address.find_first_of("/?"));
}

bool is_loopback(std::string_view place) {
    return place.substr(0, 4) == "127." || place.substr(0, 5) == "[::1]" || place.substr(0, 10) == "localhost:";
}

class SshManager final : public ClusterManager {
  public:
    explicit SshManager(Context &context) : context_(context), commands_(context) {}
    uint32_t wants() const noexcept override { return MUSTER_MANAGER_LAUNCH | MUSTER_MANAGER_KILL; }
    bool sees_exits() const noexcept override { return true; }
    Result<void> check(const LaunchPlan &plan) const override {
        auto options = SshOptions::read(plan);
        return options ? Result<void>() : options.error();
    }

    void launch(ClusterMaster &master, std::shared_ptr<const LaunchPlan> plan, uint32_t first) override {
        auto options = SshOptions::read(*plan);
        if (!options) { // check() has reported the reason
            for (uint32_t i = 0; i < plan->count; i++) master.failed(first + i, options.error());
            return;
        }
        const auto shared = std::make_shared<SshOptions>(std::move(*options));
        if (shared->tunnel == Tunnel::where_needed)
            shared->tunnel =
                !plan->master_dials() && is_loopback(host_and_port(master.address())) ? Tunnel::yes : Tunnel::no;
        for (uint32_t i = 0; i < plan->count; i++) waiting_.push_back({first + i, i, plan, shared});
        start_waiting(master);
    }

    void ask(ClusterMaster &master, const ManagerQuestion &question, Answer answer) override {
        if (question.want == MUSTER_MANAGER_KILL) kill(master, question.member);
        answer(std::string());
    }

    void forget(ClusterMaster &master, uint32_t member) noexcept override {
        try {
            kill(master, member);
        } catch (const std::bad_alloc &) { // the worker ends when it finds no master, the client when the cluster ends
        }
    }

    void finish() noexcept override { commands_.finish(); }

  private:
    struct Waiting {
        uint32_t member, index;
        std::shared_ptr<const LaunchPlan> plan;
        std::shared_ptr<const SshOptions> options;
    };
    struct Worker {
        std::shared_ptr<const LaunchPlan> plan;
        std::shared_ptr<const SshOptions> options;
        SshHost host;
        uint64_t client = 0; // 0: it is over
        ClusterTimer timer;  // the worker has ended: until the client must have ended, too
        bool is_logging_in = true, has_job = false, killed = false;
        int64_t pid = 0, group = 0; // on the other host
        std::string how;            // it has ended
    };

    void start_waiting(ClusterMaster &master) {
        while (!waiting_.empty() && logging_in_ < waiting_.front().options->parallel) {
            const Waiting next = std::move(waiting_.front());
            waiting_.pop_front();
            if (!master.wanted(next.member)) continue;
            if (auto started = start(master, next); !started) master.failed(next.member, started.error());
        }
    }

    std::vector<std::string> client_of(const Worker &worker) const {
        std::vector<std::string> argv = worker.options->client;
        if (!worker.host.port.empty()) argv.insert(argv.end(), {"-p", worker.host.port});
        return argv;
    }

    Result<void> start(ClusterMaster &master, const Waiting &next) {
        Worker worker;
        worker.plan = next.plan;
        worker.options = next.options;
        worker.host = next.options->host_of(next.index);
        const uint32_t member = next.member;
        Command command;
        command.argv = client_of(worker);
        if (tunnels(worker)) {
            const std::string_view place = host_and_port(master.address());
            if (place.empty())
                return Error::make(MUSTER_E_ADDRESS, "only tcp goes through a tunnel, not %.200s",
                                   master.address().c_str());
            command.argv.insert(command.argv.end(), {"-oLogLevel=INFO", "-R", "0:" + std::string(place)});
        }
        command.argv.insert(command.argv.end(), {"--", worker.host.target, shell});
        command.environment = next.plan->inherited;
        command.has_late_input = true;
        command.outputs = {1, 2};
        command.is_for_manager = &is_for_manager;
        CommandObserver observer;
        observer.on_line = [this, &master, member](int fd, const std::string &line) {
            receive_line(master, member, fd, line);
        };
        observer.on_exit = [this, &master, member](const muster_process_exit &exit) {
            client_over(master, member, exit);
        };
        auto started = commands_.start(master, command, std::move(observer));
        if (!started) return started.error();
        worker.client = *started;
        logging_in_++;
        const bool waits_for_port = tunnels(worker);
        const Worker &kept = workers_.insert_or_assign(member, std::move(worker)).first->second;
        if (!waits_for_port) send_job(master, member, kept, master.address());
        return {};
    }

    static bool tunnels(const Worker &worker) noexcept { return worker.options->tunnel == Tunnel::yes; }

    void send_job(ClusterMaster &master, uint32_t member, const Worker &worker, const std::string &master_address) {
        const LaunchPlan &plan = *worker.plan;
        std::string job;
        if (!plan.directory.empty()) job += "cd " + shell_word(plan.directory) + " || exit 1; ";
        for (const std::string &variable : plan.environment) {
            const size_t sign = variable.find('=');
            job += "export " + variable.substr(0, sign) + "=" + shell_word(variable.substr(sign + 1)) + "; ";
        }
        job += "export MUSTER_WORKER_FD=0 " + mark(member) + "; ";
        job += "/bin/sh -c 'echo " + std::string(pid_begins) + "$$ $1; shift; exec \"$@\"' sh $$";
        for (const std::string &word : plan.argv) job += ' ' + shell_word(word);
        job += "; echo " + std::string(end_begins) + "$?\n";
        Ticket ticket = master.ticket(plan, member);
        if (!ticket.master.empty()) ticket.master = master_address;
        if (auto said = commands_.write_input(worker.client, job + ticket.line()); !said) {
            master.failed(member, said.error());
            commands_.kill(worker.client, SIGKILL);
        }
    }

    // Identifies the process of this worker on the other host.
    std::string mark(uint32_t member) {
        if (mark_.empty()) {
            auto number = random_number();
            mark_ = number ? std::to_string(*number) : "unknown";
        }
        return "MUSTER_WORKER_MARK=" + mark_ + "." + std::to_string(member);
    }

    void receive_line(ClusterMaster &master, uint32_t member, int fd, const std::string &line) {
        const auto found = workers_.find(member);
        if (found == workers_.end()) return;
        Worker &worker = found->second;
        std::string_view rest(line);
        if (fd == 2) { // the port of the tunnel
            rest.remove_prefix(port_begins.size());
            uint16_t port = 0;
            if (!tunnels(worker) || std::exchange(worker.has_job, true) || !take_number_at(rest, port)) return;
            std::string address = master.address();
            const std::string_view place = host_and_port(address);
            address.replace(static_cast<size_t>(place.data() - address.data()), place.size(),
                            "127.0.0.1:" + std::to_string(port));
            return send_job(master, member, worker, address);
        }
        if (rest.substr(0, pid_begins.size()) == pid_begins) {
            rest.remove_prefix(pid_begins.size());
            if (worker.pid != 0 || !take_number_at(rest, worker.pid) || !take_number_at(rest, worker.group)) return;
            logged_in(master, worker);
            if (!worker.plan->master_dials()) master.ready(member, {}, 0);
        } else if (rest.substr(0, end_begins.size()) == end_begins) {
            rest.remove_prefix(end_begins.size());
            int32_t code = 0;
            if (!take_number_at(rest, code)) return;
            worker.how = describe_exit(code > 128 ? muster_process_exit{MUSTER_PROCESS_KILLED, code - 128}
                                                  : muster_process_exit{MUSTER_PROCESS_EXITED, code});
            if (master.has_joined(member)) return worker_over(master, member);
            worker.timer =
                master.start_timer(now_ns() + last_report_ns, [this, &master, member] { // its output is in transit
                    workers_.at(member).timer = {};
                    worker_over(master, member);
                });
        } else if (const auto report = WorkerReport::parse(line); report && worker.plan->master_dials()) {
            master.ready(member, report->address, 0);
        }
    }

    void logged_in(ClusterMaster &master, Worker &worker) {
        if (!std::exchange(worker.is_logging_in, false)) return;
        logging_in_--;
        start_waiting(master);
    }

    // The worker has ended; the client may run for some more time.
    void worker_over(ClusterMaster &master, uint32_t member) {
        const auto found = workers_.find(member);
        if (found == workers_.end()) return;
        Worker &worker = found->second;
        std::string how = worker.how;
        if (!master.has_joined(member))
            if (const std::string words = commands_.shown_line(worker.client, Commands::Line::last); !words.empty())
                how += ": " + words;
        master.cancel_timer(worker.timer);
        workers_.erase(found);
        master.process_over(member, how);
    }

    void client_over(ClusterMaster &master, uint32_t member, const muster_process_exit &exit) {
        const auto found = workers_.find(member);
        if (found == workers_.end()) return;
        Worker &worker = found->second;
        std::string words = commands_.shown_line(worker.client, Commands::Line::last);
        if (!worker.how.empty()) return worker_over(master, member);
        worker.client = 0;
        logged_in(master, worker);
        const auto again = workers_.find(member); // others were started meanwhile
        if (again == workers_.end()) return;
        if (again->second.pid == 0) { // it has never begun
            const std::string target = again->second.host.target;
            workers_.erase(again);
            if (words.empty()) words = describe_exit(exit);
            const bool login = exit.kind == MUSTER_PROCESS_EXITED && exit.value == ssh_has_failed;
            return master.failed(member, Error::make(login ? MUSTER_E_UNREACHABLE : MUSTER_E_PEER, "ssh %s: %s",
                                                     target.c_str(), words.c_str()));
        }
        // The exit of the worker can no longer be seen; one that has joined continues.
        if (again->second.killed || !master.has_joined(member)) return end_by_force(master, member);
        master.lost_sight(member);
    }

    void kill(ClusterMaster &master, uint32_t member) {
        const auto found = workers_.find(member);
        if (found == workers_.end() || std::exchange(found->second.killed, true)) return;
        if (found->second.pid != 0) return end_by_force(master, member);
        commands_.kill(found->second.client, SIGKILL);
    }

    // By a second client: kills the group there, if the process is still the same.
    void end_by_force(ClusterMaster &master, uint32_t member) {
        Worker &worker = workers_.at(member);
        worker.killed = true;
        const std::string pid = std::to_string(worker.pid), group = std::to_string(worker.group);
        Command command;
        command.argv = client_of(worker);
        command.argv.insert(command.argv.end(), {"--", worker.host.target, shell});
        command.environment = worker.plan->inherited;
        command.inputs.push_back({0, "if ! [ -r /proc/" + pid + "/environ ] || tr '\\0' '\\n' </proc/" + pid +
                                         "/environ | grep -qx " + shell_word(mark(member)) + "; then kill -9 " + pid +
                                         "; kill -9 -- -" + group + "; fi 2>/dev/null; true\n"});
        command.outputs = {2};
        CommandObserver observer;
        observer.on_exit = [this, &master, member](const muster_process_exit &exit) {
            const auto left = workers_.find(member);
            if (left == workers_.end()) return;
            if (exit.kind != MUSTER_PROCESS_EXITED || exit.value != 0)
                context_.log(MUSTER_LOG_ERROR, "cluster: worker %u: ssh %s, to kill it: %s", member,
                             left->second.host.target.c_str(), describe_exit(exit).c_str());
            left->second.how = "killed";
            if (left->second.client != 0) commands_.kill(left->second.client, SIGKILL);
            worker_over(master, member);
        };
        if (auto started = commands_.start(master, command, std::move(observer)); !started) {
            context_.log(MUSTER_LOG_ERROR, "cluster: worker %u: ssh: %s", member, started.error().message);
            if (worker.client != 0) commands_.kill(worker.client, SIGKILL);
            worker.how = "it is not known whether it has ended";
            worker_over(master, member);
        }
    }

    Context &context_;
    Commands commands_;
    std::string mark_;
    std::deque<Waiting> waiting_;
    std::map<uint32_t, Worker> workers_;
    uint32_t logging_in_ = 0;
};

} // namespace

Ref<ClusterManager> make_ssh_manager(Context &context) {
    return make_ref<SshManager>(context);
}

} // namespace muster
