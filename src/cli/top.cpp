// SPDX-License-Identifier: MIT
// muster top: the processes of a job, as they publish their metrics in a store.
#include "serving.hpp"
#include "top/page.hpp"
#include "top/table.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

namespace {

constexpr char help[] =
    "usage: muster top --of <store> [options]\n"
    "\n"
    "Shows the processes that publish their metrics in a store, and what has changed: processes that have ended, "
    "rounds,\n"
    "restarts, workers that died. `q` ends it. Publishing is an option of muster store, broker and run,\n"
    "--publish-metrics; programs call muster_metrics_publish().\n"
    "\n"
    "  --of <store>           the store, as tcp://host:29400\n"
    "  --interval <seconds>   time between two readings; default 2\n"
    "  --once                 show it once, after a second reading for what is counted per second, and end\n"
    "  --text                 write what is published, in the format of Prometheus, each line with the label "
    "`process`;\n"
    "                         and end\n"
    "  --html <file>          write a page with plots: at the end, and every ten readings\n"
    "  --secret-file <file>   the secret of the job, not readable by others; else MUSTER_SECRET_FILE, MUSTER_SECRET\n"
    "Status 0: ended by q or a signal, or shown. 1: the store cannot be opened or read. 2: wrong arguments.\n";

struct Options {
    std::string of, html;
    int64_t interval_ns = 2'000'000'000;
    bool once = false, text = false;
};

std::optional<int> read_options(const Arguments &arguments, Options &o) {
    const cli::Command command{"muster top", help};
    std::vector<std::string> words;
    if (const auto status = cli::read_options(
            command, arguments,
            {cli::text("of", o.of), cli::seconds("interval", o.interval_ns, 0.1, 3600), cli::flag("once", o.once),
             cli::flag("text", o.text), cli::text("html", o.html), cli::secret_file()},
            words))
        return status;
    if (!words.empty()) return cli::reject(command, "unexpected argument " + words[0]);
    if (o.of.empty()) return cli::reject(command, "which store? --of is missing");
    return std::nullopt;
}

// The terminal while the table is shown: the other screen, keys at once, no cursor. Restored at the end.
class Terminal {
  public:
    Terminal() {
        is_terminal_ = ::isatty(STDOUT_FILENO) == 1;
        if (!is_terminal_) return;
        has_keys_ = ::tcgetattr(STDIN_FILENO, &before_) == 0;
        if (has_keys_) {
            termios keys = before_;
            keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
            ::tcsetattr(STDIN_FILENO, TCSANOW, &keys);
        }
        std::fputs("\033[?1049h\033[?25l", stdout);
    }
    ~Terminal() {
        if (!is_terminal_) return;
        std::fputs("\033[?25h\033[?1049l", stdout);
        std::fflush(stdout);
        if (has_keys_) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
    }
    Terminal(const Terminal &) = delete;
    Terminal &operator=(const Terminal &) = delete;

    bool has_keys() const { return has_keys_; }
    void show(const top::Job &job, const std::string &title) const {
        winsize size{};
        if (!is_terminal_ || ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) size = {};
        const auto lines = top::make_table(job, title, size.ws_col, size.ws_row);
        std::string all = is_terminal_ ? "\033[H" : "";
        for (size_t i = 0; i < lines.size(); i++) {
            all += lines[i] + (is_terminal_ ? "\033[K" : "");
            if (!is_terminal_ || i + 1 < lines.size()) all += "\n";
        }
        if (is_terminal_) all += "\033[J";
        std::fputs(all.c_str(), stdout);
        std::fflush(stdout);
    }

  private:
    bool is_terminal_ = false, has_keys_ = false;
    termios before_{};
};

int failed(const muster_error &error) {
    fprintf(stderr, "muster top: %s\n", error.message);
    return 1;
}

std::string title_of(const Options &options, const top::Job &job) {
    return "muster top   " + options.of + "   " + std::to_string(job.processes.size()) +
           (job.processes.size() == 1 ? " process" : " processes");
}

// Every sample with the label of its process: several texts as one. Families stay together, as the format demands.
void print_text(const top::Job &job) {
    std::vector<std::string> order;
    std::map<std::string, std::string> heads, samples;
    for (const auto &[name, process] : job.processes) {
        std::string family;
        for (size_t at = 0; at < process.text.size();) {
            const size_t end = std::min(process.text.find('\n', at), process.text.size());
            const std::string line = process.text.substr(at, end - at);
            at = end + 1;
            if (line.rfind("# ", 0) == 0) {
                const size_t from = line.find(' ', 2), to = line.find(' ', from + 1);
                if (from == std::string::npos || to == std::string::npos) continue;
                family = line.substr(from + 1, to - from - 1);
                if (line.rfind("# HELP ", 0) == 0 && heads.count(family) == 0) order.push_back(family);
                if (samples.count(family) == 0) heads[family] += line + "\n";
                continue;
            }
            const size_t name_end = line.find_first_of("{ ");
            if (name_end == std::string::npos || family.empty()) continue;
            const std::string sample = line.substr(0, name_end); // of a histogram: the family, and _bucket or another
            if (sample.compare(0, family.size(), family) != 0) continue;
            const bool has_labels = line[name_end] == '{';
            samples[family] += sample + "{process=\"" + name + "\"" + (has_labels ? "," : "}") +
                               line.substr(name_end + (has_labels ? 1 : 0)) + "\n";
        }
    }
    for (const std::string &family : order) printf("%s%s", heads[family].c_str(), samples[family].c_str());
}

// True: it is to end.
bool wait_for_key(const Terminal &terminal, int signals, int64_t ns) {
    pollfd fds[2] = {{signals, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
    if (poll(fds, terminal.has_keys() ? 2 : 1, static_cast<int>(ns / 1'000'000)) <= 0) return false;
    if ((fds[0].revents & POLLIN) != 0) {
        signalfd_siginfo signal{};
        return read(signals, &signal, sizeof signal) == sizeof signal && signal.ssi_signo != SIGUSR1 &&
               signal.ssi_signo != SIGUSR2;
    }
    char key = 0;
    return read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 4;
}

int watch(const Options &options, muster_store *store, int signals) {
    top::Job job;
    top::History history;
    muster_error why{};
    const int64_t timeout_ns = std::max<int64_t>(options.interval_ns, 2'000'000'000);
    std::string wrong;
    {
        std::optional<Terminal> terminal(std::in_place);
        for (;;) {
            why = {};
            const muster_status status = job.read(store, timeout_ns, why);
            if (status != MUSTER_OK && job.reads == 0) {
                terminal.reset();
                return failed(why);
            }
            history.add(job);
            terminal->show(job, title_of(options, job) +
                                    (status == MUSTER_OK ? "" : std::string("   NO ANSWER: ") + why.message));
            if (!options.html.empty() && job.reads % 10 == 0)
                wrong = top::write_page(options.html, "The job of " + options.of, job, history);
            if (!wrong.empty() || wait_for_key(*terminal, signals, options.interval_ns)) break;
        }
    }
    if (!options.html.empty() && wrong.empty())
        wrong = top::write_page(options.html, "The job of " + options.of, job, history);
    if (!wrong.empty()) fprintf(stderr, "muster top: %s\n", wrong.c_str());
    return wrong.empty() ? 0 : 1;
}

int show_once(const Options &options, muster_store *store, int signals) {
    top::Job job;
    top::History history;
    muster_error why{};
    for (int reading = 0; reading < (options.once ? 2 : 1); reading++) {
        pollfd signal{signals, POLLIN, 0};
        if (reading != 0 && poll(&signal, 1, static_cast<int>(options.interval_ns / 1'000'000) + 500) > 0) return 0;
        if (job.read(store, 10'000'000'000, why) != MUSTER_OK) return failed(why);
        history.add(job);
    }
    if (options.text) {
        print_text(job);
    } else {
        for (const std::string &line : top::make_table(job, title_of(options, job), 0, 0)) printf("%s\n", line.c_str());
    }
    const std::string wrong =
        options.html.empty() ? "" : top::write_page(options.html, "The job of " + options.of, job, history);
    if (!wrong.empty()) fprintf(stderr, "muster top: %s\n", wrong.c_str());
    return wrong.empty() ? 0 : 1;
}

} // namespace

int top_command(const Arguments &arguments) {
    Options options;
    if (const auto status = read_options(arguments, options)) return *status;
    const int signals = serving::block_signals();
    muster_error error{};
    muster_context *context = nullptr;
    muster_store *store = nullptr;
    if (muster_context_create(nullptr, &context, &error) != MUSTER_OK) return failed(error);
    if (muster_store_open(context, options.of.data(), options.of.size(), nullptr, 10'000'000'000, &store, &error) !=
        MUSTER_OK)
        return failed(error);
    const int status =
        options.once || options.text ? show_once(options, store, signals) : watch(options, store, signals);
    muster_store_release(store);
    muster_context_close(context, 1'000'000'000);
    muster_context_release(context);
    return status;
}
