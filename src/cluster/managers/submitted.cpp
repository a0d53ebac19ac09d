// SPDX-License-Identifier: MIT
// Workers that a queueing system starts (PBS, SGE, LSF, HTCondor, sbatch): a command hands over a script, and mostly
// returns before any of them runs. Each worker of the launch is a task with a number in a variable of its environment,
// from which the script makes its rank. The script has a ticket for all of them, with a key for this launch alone where
// there can be one; see lifecycle/launch_keys.hpp.
#include "base/fd.hpp"
#include "cluster/lifecycle/master.hpp"
#include "cluster/managers/command.hpp"
#include "cluster/managers/options.hpp"

#include <cctype>
#include <csignal>
#include <cstdlib>
#include <set>
#include <unistd.h>

namespace muster {

namespace {

constexpr int64_t submission_grace_ns = 5'000'000'000;
constexpr char rank_variable[] = "MUSTER_WORKER_RANK";

bool is_of_submission(int fd, std::string_view) noexcept {
    return fd == 1; // what it prints has the number of the job; errors are shown
}
bool is_of_cancellation(int, std::string_view) noexcept {
    return true; // the job may have ended by itself, so its errors are not shown
}

void replace_all(std::string &text, std::string_view name, const std::string &by) {
    for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + by.size()))
        text.replace(at, name.size(), by);
}

bool is_variable_name(const std::string &name) noexcept {
    if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) return false;
    for (const char c : name)
        if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_') return false;
    return true;
}

// A file that only this user can read, deleted with the object.
class Script {
  public:
    Script() = default;
    Script(Script &&other) noexcept : path_(std::exchange(other.path_, {})) {}
    Script &operator=(Script &&other) noexcept {
        std::swap(path_, other.path_);
        return *this;
    }
    ~Script() {
        if (!path_.empty()) ::unlink(path_.c_str());
    }
    static Result<Script> make(const std::string &folder, const std::string &text) {
        std::string path = folder + "/muster-workers-XXXXXX";
        const Fd file(::mkostemp(path.data(), O_CLOEXEC)); // mode 0600
        if (!file) return Error::from_errno(errno, MUSTER_E_SYSTEM, "a script in %s", folder.c_str());
        Script made;
        made.path_ = path;
        size_t written = 0;
        while (written < text.size()) {
            const ssize_t size = ::write(file.get(), text.data() + written, text.size() - written);
            if (size < 0 && errno == EINTR) continue;
            if (size < 0) return Error::from_errno(errno, MUSTER_E_SYSTEM, "write %s", path.c_str());
            written += static_cast<size_t>(size);
        }
        if (::fchmod(file.get(), 0700) != 0) return Error::from_errno(errno, MUSTER_E_SYSTEM, "chmod %s", path.c_str());
        return made;
    }
    const std::string &path() const noexcept { return path_; }

  private:
    std::string path_;
};

class SubmittingManager final : public ClusterManager {
  public:
    explicit SubmittingManager(Context &context) noexcept : commands_(context) {}
    uint32_t wants() const noexcept override { return MUSTER_MANAGER_LAUNCH; }
    bool sees_exits() const noexcept override { return false; }
    Result<void> check(const LaunchPlan &plan) const override {
        auto settings = Settings::read(plan);
        return settings ? Result<void>() : settings.error();
    }
    void launch(ClusterMaster &master, std::shared_ptr<const LaunchPlan> plan, uint32_t first) override {
        if (auto submitted = submit(master, plan, first); !submitted)
            for (uint32_t i = 0; i < plan->count; i++) master.failed(first + i, submitted.error());
    }
    void ask(ClusterMaster &, const ManagerQuestion &, Answer answer) override { answer(std::string()); }
    void forget(ClusterMaster &master, uint32_t member) noexcept override {
        auto at = jobs_.upper_bound(member);
        if (at == jobs_.begin() || (--at)->second.members.erase(member) == 0 || !at->second.members.empty()) return;
        commands_.kill(at->second.command, SIGTERM); // if it waits for the workers
        cancel(master, at->second);
        if (at->second.is_over) jobs_.erase(at); // otherwise its exit does that
    }
    void finish() noexcept override {
        commands_.finish(submission_grace_ns);
        jobs_.clear();
    }

  private:
    struct Settings {
        std::vector<std::string> submit, cancel;
        std::string rank, folder;
        uint32_t first = 0;
        bool whole_word = false;

        static Result<Settings> read(const LaunchPlan &plan) {
            auto options = ManagerOptions::parse(plan.options, {"submit", "rank", "first", "cancel", "job", "folder"});
            if (!options) return options.error();
            if (auto named = needs_program(plan); !named) return named.error();
            if (plan.master_dials())
                return Error::make(MUSTER_E_ARG, "flags: workers of `command` dial the master, not the other way");
            Settings made;
            auto submit = options->words("submit"), cancel = options->words("cancel");
            if (!submit) return submit.error();
            if (!cancel) return cancel.error();
            made.submit = std::move(*submit);
            made.cancel = std::move(*cancel);
            if (made.submit.empty())
                return Error::make(MUSTER_E_ARG, "options: `submit` is missing, the command that takes a script");
            made.rank = options->text("rank");
            if (!is_variable_name(made.rank) && (plan.count > 1 || !made.rank.empty()))
                return Error::make(MUSTER_E_ARG,
                                   "options: `rank` is \"%.60s\", not the name of the variable that has "
                                   "the number of a task",
                                   made.rank.c_str());
            auto first = options->number("first", 0, 0, 1'000'000);
            if (!first) return first.error();
            made.first = *first;
            const std::string job = options->text("job", "number");
            if (job != "number" && job != "word")
                return Error::make(MUSTER_E_ARG, "options: `job` is \"%.60s\": `number` or `word`", job.c_str());
            made.whole_word = job == "word";
            const char *const temporary = std::getenv("TMPDIR");
            made.folder = options->text("folder", temporary != nullptr && *temporary != '\0' ? temporary : "/tmp");
            return made;
        }
    };
    struct Job {
        Settings settings;
        Script script;
        uint64_t command = 0;
        std::string number;         // of the job, as the command has printed it
        std::set<uint32_t> members; // whose launch was not cancelled
        bool is_over = false;       // the command has ended
    };

    static std::string script_of(const Settings &settings, const LaunchPlan &plan, const Ticket &ticket) {
        std::string text = "#!/bin/sh\n";
        if (plan.count > 1)
            text += std::string(rank_variable) + "=$((${" + settings.rank + ":?} - " + std::to_string(settings.first) +
                    ")) || exit\nexport " + rank_variable + "\n";
        text += "export " + std::string(ticket_variable) + "=" + ticket.variable() + "\n";
        for (const std::string &variable : plan.environment) {
            const size_t sign = variable.find('=');
            if (sign != std::string::npos)
                text += "export " + variable.substr(0, sign) + "=" + shell_word(variable.substr(sign + 1)) + "\n";
        }
        if (!plan.directory.empty()) text += "cd " + shell_word(plan.directory) + " || exit\n";
        text += "exec";
        for (const std::string &word : plan.argv) text += " " + shell_word(word);
        return text + "\n";
    }

    Result<void> submit(ClusterMaster &master, const std::shared_ptr<const LaunchPlan> &shared, uint32_t first) {
        const LaunchPlan &plan = *shared;
        auto settings = Settings::read(plan);
        if (!settings) return settings.error();
        Ticket ticket = master.ticket(plan, first);
        ticket.listen = plan.listens() ? plan.listen : std::string();
        ticket.members = plan.count;
        ticket.rank_variables = plan.count > 1 ? rank_variable : "";
        auto key = master.make_launch_key(shared, first);
        if (!key) return key.error();
        ticket.key = std::move(*key);
        auto script = Script::make(settings->folder, script_of(*settings, plan, ticket));
        if (!script) return script.error();

        Command command;
        bool names_script = false;
        for (std::string word : settings->submit) {
            names_script = names_script || word.find("{script}") != std::string::npos;
            replace_all(word, "{count}", std::to_string(plan.count));
            replace_all(word, "{first}", std::to_string(settings->first));
            replace_all(word, "{last}", std::to_string(settings->first + plan.count - 1));
            replace_all(word, "{script}", script->path());
            command.argv.push_back(std::move(word));
        }
        if (!names_script) command.argv.push_back(script->path());
        command.environment = plan.inherited;
        command.directory = plan.directory;
        command.outputs = {1, 2};
        command.is_for_manager = &is_of_submission;
        CommandObserver observer;
        observer.on_line = [this, first](int fd, const std::string &line) { take_line(first, fd, line); };
        observer.on_exit = [this, &master, first](const muster_process_exit &exit) { submitted(master, first, exit); };
        auto started = commands_.start(master, command, std::move(observer));
        if (!started) return started.error();
        Job &job = jobs_[first];
        job.settings = std::move(*settings);
        job.script = std::move(*script);
        job.command = *started;
        for (uint32_t i = 0; i < plan.count; i++) job.members.insert(job.members.end(), first + i);
        return {};
    }

    void take_line(uint32_t first, int fd, const std::string &line) {
        const auto found = jobs_.find(first);
        if (found == jobs_.end() || fd != 1 || !found->second.number.empty()) return;
        constexpr std::string_view digits = "0123456789";
        const size_t from =
            found->second.settings.whole_word ? line.find_first_not_of(" \t") : line.find_first_of(digits);
        if (from == std::string::npos) return;
        const size_t to =
            found->second.settings.whole_word ? line.find_first_of(" \t", from) : line.find_first_not_of(digits, from);
        found->second.number = line.substr(from, to - from);
    }

    void submitted(ClusterMaster &master, uint32_t first, const muster_process_exit &exit) {
        const auto found = jobs_.find(first);
        if (found == jobs_.end()) return;
        Job &job = found->second;
        job.is_over = true;
        if (job.members.empty()) { // cancelled meanwhile
            cancel(master, job);
            jobs_.erase(found);
            return;
        }
        if (exit.kind == MUSTER_PROCESS_EXITED && exit.value == 0) return; // the workers come later
        const std::string words = commands_.shown_line(job.command, Commands::Line::first);
        const std::string how =
            job.settings.submit[0] + ": " + describe_exit(exit) + (words.empty() ? "" : ": ") + words;
        const std::set<uint32_t> members = std::move(job.members);
        jobs_.erase(found); // the script is deleted before the failure is reported
        for (const uint32_t member : members)
            if (master.is_launched(member))
                master.process_over(member, how);
            else
                master.failed(member, Error::make(MUSTER_E_PEER, "%s", how.c_str()));
    }

    // Once, when no worker of the job is left, and its number is known.
    void cancel(ClusterMaster &master, Job &job) noexcept {
        if (job.settings.cancel.empty() || job.number.empty()) return;
        try {
            Command command;
            for (std::string word : job.settings.cancel) {
                replace_all(word, "{job}", job.number);
                command.argv.push_back(std::move(word));
            }
            job.settings.cancel.clear();
            command.environment = environment_with({}, {});
            for (char **one = environ; *one != nullptr; one++) command.environment.emplace_back(*one);
            command.outputs = {1, 2};
            command.is_for_manager = &is_of_cancellation;
            CommandObserver observer;
            observer.on_exit = [](const muster_process_exit &) {};
            (void)commands_.start(master, command, std::move(observer));
        } catch (const std::bad_alloc &) { // the workers end without it, when the master is gone
        }
    }

    Commands commands_;
    std::map<uint32_t, Job> jobs_; // by the first of their members
};

} // namespace

Ref<ClusterManager> make_command_manager(Context &context) {
    return make_ref<SubmittingManager>(context);
}

} // namespace muster
