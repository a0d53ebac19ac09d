// SPDX-License-Identifier: MIT
// Runs scenarios: a dry run lists the sites, then each run fails the call of one of them in a process of its own.
#include "scenario.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dirent.h>
#include <map>
#include <poll.h>
#include <set>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
extern "C" int __lsan_do_recoverable_leak_check();
#endif

namespace faults {

Shared *shared_memory;
const char *function_name(uint32_t index);
uint32_t count_functions();
int be_worker();

namespace {

struct Options {
    bool every_call = false; // each call of a site, not the first alone
    bool is_verbose = false;
    const char *site = nullptr; // of this hash only
};
Options options;
constexpr unsigned limit_s = 25;

int64_t now_ns() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * second + t.tv_nsec;
}

std::set<int> open_descriptors() {
    std::set<int> all;
    DIR *folder = opendir("/proc/self/fd");
    while (const dirent *entry = readdir(folder))
        if (entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(folder)) all.insert(atoi(entry->d_name));
    closedir(folder);
    return all;
}

// Threads other than this one. Those that run begun calls wait for more, idle, for a while; the one that watches calls
// of plug-ins sleeps until the next call. They may stay.
int count_threads() {
    int count = -1;
    DIR *folder = opendir("/proc/self/task");
    while (const dirent *entry = readdir(folder)) {
        if (entry->d_name[0] == '.') continue;
        char name[64] = "";
        FILE *file = fopen((std::string("/proc/self/task/") + entry->d_name + "/comm").c_str(), "r");
        const bool known = file != nullptr && fgets(name, sizeof name, file) != nullptr;
        if (known && strcmp(name, "muster-call\n") != 0 && strcmp(name, "muster-watch\n") != 0) count++;
        if (file != nullptr) fclose(file);
    }
    closedir(folder);
    return count;
}

// Running, or ended and not reaped.
bool has_children() {
    siginfo_t info{};
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

std::string target_of(int fd) {
    char link[64], name[256];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t n = ::readlink(link, name, sizeof name - 1);
    return n < 0 ? "?" : std::string(name, static_cast<size_t>(n));
}

struct Fault {
    const Site *site; // NULL: dry run
    uint32_t call;
    int os_errno;
};

// One run, in this process, which ends with it.
[[noreturn]] void run_here(const Scenario &scenario, const Fault &fault, bool with_stacks) {
    alarm(limit_s);
    const std::set<int> before = open_descriptors();
    track(with_stacks);
    std::thread([&] { // what the library keeps for a thread ends with it
        arm(fault.site == nullptr ? Mode::record : Mode::fail, fault.site, fault.call, fault.os_errno);
        try {
            scenario.run();
        } catch (const Ended &) {
        }
        disarm();
    })
        .join();
    // Threads that end and descriptors that they hold may take a moment after the call that ends them.
    const int64_t end = now_ns() + 3 * second;
    std::string leaked;
    for (;;) {
        leaked.clear();
        for (const int fd : open_descriptors())
            if (before.count(fd) == 0) leaked += " " + std::to_string(fd) + " (" + target_of(fd) + ")";
        if (leaked.empty() && count_threads() == 0 && !has_children()) break;
        if (now_ns() > end) break;
        poll(nullptr, 0, 2);
    }
    if (!leaked.empty()) wrong("descriptors were left open:%s", leaked.c_str());
    if (const int count = count_threads(); count != 0) wrong("%d threads were left", count);
    if (has_children()) wrong("a child process was left");
    Shared &s = *shared_memory;
    s.live = live_allocations(s.leaks, sizeof s.leaks / sizeof *s.leaks);
    s.leak_count = std::min<uint32_t>(s.live, sizeof s.leaks / sizeof *s.leaks);
#ifdef __SANITIZE_ADDRESS__
    if (__lsan_do_recoverable_leak_check() != 0) wrong("memory was leaked (report above)");
#endif
    _exit(0);
}

// One run in a process of its own. Returns an empty text if all is well.
std::string run(const Scenario &scenario, const Fault &fault, bool with_stacks = false) {
    Shared &s = *shared_memory;
    s.message[0] = '\0';
    s.fired = s.fired_in_library = s.live = s.leak_count = 0;
    fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) run_here(scenario, fault, with_stacks);
    int status;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFSIGNALED(status)) {
        const int number = WTERMSIG(status);
        return number == SIGALRM ? "hangs" : std::string("ended by signal ") + strsignal(number);
    }
    if (WEXITSTATUS(status) == 0) return "";
    return s.message[0] != '\0' ? s.message : "ended by exit code " + std::to_string(WEXITSTATUS(status));
}

std::string symbolize(const char *module, const uint64_t *frames, uint32_t count) {
    std::string command = std::string("addr2line -Cfs -e '") + module + "'", text;
    char number[32];
    for (uint32_t i = 0; i < count; i++) {
        snprintf(number, sizeof number, " 0x%llx", static_cast<unsigned long long>(frames[i] - 1));
        command += number;
    }
    FILE *pipe = popen((command + " 2>/dev/null").c_str(), "r");
    char function[4096], line[4096];
    while (pipe != nullptr && fgets(function, sizeof function, pipe) && fgets(line, sizeof line, pipe)) {
        function[strcspn(function, "\n")] = '\0';
        line[strcspn(line, "\n")] = '\0';
        if (strlen(function) > 110) strcpy(function + 107, "...");
        text += std::string("        ") + function + "  " + line + "\n";
    }
    if (pipe != nullptr) pclose(pipe);
    return text;
}

std::string library_file() {
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[4096];
    std::string name;
    while (maps != nullptr && fgets(line, sizeof line, maps))
        if (char *at = strstr(line, "/libmuster.so")) {
            while (at > line && at[-1] != ' ') at--;
            name.assign(strchr(line, '/'), strcspn(strchr(line, '/'), "\n"));
            break;
        }
    if (maps != nullptr) fclose(maps);
    return name;
}

struct Counts {
    unsigned scenarios = 0, sites = 0, runs = 0, fired = 0, failed = 0, known = 0;
};

// Lines of known.txt: `scenario | part of the report | what is wrong`. The scenario may be a header.
bool is_known(const Scenario &scenario, const std::string &text_of_report) {
    FILE *file = fopen(MUSTER_KNOWN_FAULTS, "r");
    if (file == nullptr) return false;
    char line[1024];
    bool known = false;
    const std::string name = std::string(scenario.header) + "." + scenario.name;
    while (!known && fgets(line, sizeof line, file)) {
        const std::string text = line;
        const size_t first = text.find(" | "), last = text.find(" | ", first + 3);
        if (text[0] == '#' || first == std::string::npos || last == std::string::npos) continue;
        const std::string where = text.substr(0, first);
        known = (where == name || where == scenario.header) &&
                text_of_report.find(text.substr(first + 3, last - first - 3)) != std::string::npos;
    }
    fclose(file);
    return known;
}

// False: it is known.
bool report(const Scenario &scenario, const Site &site, uint32_t call, int os_errno, const std::string &why) {
    const std::string stack = symbolize(site.module, site.frames, site.frame_count);
    const bool known = is_known(scenario, why + "\n" + stack);
    printf("%s  %s.%s, call %u of %s fails with %s in %s (site %016llx)\n    %s\n%s", known ? "known " : "FAILED",
           scenario.header, scenario.name, call + 1, kinds[site.kind].name, strerrorname_np(os_errno),
           function_name(site.function), static_cast<unsigned long long>(site.hash), why.c_str(), stack.c_str());
    fflush(stdout);
    return !known;
}

void report_leaks(const Scenario &scenario, const Fault &fault, const std::set<uint64_t> &usual) {
    run(scenario, fault, true);
    const Shared &s = *shared_memory;
    std::set<uint64_t> shown;
    const std::string library = library_file();
    for (uint32_t i = 0; i < s.leak_count; i++) {
        const Leak &leak = s.leaks[i];
        if (usual.count(leak.hash) != 0 || !shown.insert(leak.hash).second || shown.size() > 3) continue;
        printf("    %llu bytes allocated in %s at\n%s", static_cast<unsigned long long>(leak.bytes),
               function_name(leak.function), symbolize(library.c_str(), leak.frames, leak.frame_count).c_str());
    }
}

void run_all(const Scenario &scenario, Counts &counts) {
    Shared &s = *shared_memory;
    counts.scenarios++;
    s.site_count = s.is_full = 0;
    const int64_t start = now_ns();
    const std::string why = run(scenario, {nullptr, 0, 0}, false);
    if (!why.empty() || s.is_full != 0) {
        counts.failed++;
        printf("FAILED  %s.%s without a fault: %s\n", scenario.header, scenario.name,
               s.is_full != 0 ? "too many sites" : why.c_str());
        return;
    }
    const int64_t dry_ns = now_ns() - start;
    const uint32_t live = s.live;
    std::vector<Site> sites(s.sites, s.sites + s.site_count);
    // The module's name is a pointer of the child's; the library's own file serves for all that is not a plug-in.
    const std::string library = library_file();
    for (Site &site : sites) site.module = library.c_str();
    counts.sites += static_cast<unsigned>(sites.size());
    unsigned fired = 0, runs = 0, failed = 0;
    for (const Site &site : sites) {
        char hash[32];
        snprintf(hash, sizeof hash, "%016llx", static_cast<unsigned long long>(site.hash));
        if (options.site != nullptr && strcmp(options.site, hash) != 0) continue;
        const uint32_t calls = options.every_call ? site.calls : 1;
        for (const int code : kinds[site.kind].os_errnos)
            for (uint32_t call = 0; code != 0 && call < calls; call++) {
                const Fault fault{&site, call, code};
                std::string why_not = run(scenario, fault);
                bool leaks = false;
                if (why_not.empty() && s.live > live + 0 && s.fired != 0) {
                    // A thread that ends late may hold something: only what stays in a second run counts.
                    if (run(scenario, fault).empty() && s.live > live) {
                        why_not = std::to_string(s.live - live) + " allocations were not freed";
                        leaks = true;
                    }
                }
                runs++;
                fired += s.fired;
                if (why_not.empty()) continue;
                if (!report(scenario, site, call, code, why_not)) {
                    counts.known++;
                    continue;
                }
                failed++;
                if (leaks) {
                    run(scenario, {nullptr, 0, 0}, true);
                    std::set<uint64_t> usual;
                    for (uint32_t i = 0; i < s.leak_count; i++) usual.insert(s.leaks[i].hash);
                    report_leaks(scenario, fault, usual);
                }
            }
    }
    counts.runs += runs;
    counts.fired += fired;
    counts.failed += failed;
    printf("%s  %s.%s: %zu sites, %u runs, %u faults injected, %u failed; %.1f ms without, %.1f s in all\n",
           failed != 0 ? "FAILED" : "ok    ", scenario.header, scenario.name, sites.size(), runs, fired, failed,
           static_cast<double>(dry_ns) / 1e6, static_cast<double>(now_ns() - start) / 1e9);
    fflush(stdout);
}

// Every exported function is called by a scenario.
int check_coverage() {
    for (const Scenario &scenario : scenarios()) {
        const std::string why = run(scenario, {nullptr, 0, 0});
        if (!why.empty()) {
            printf("FAILED  %s.%s: %s\n", scenario.header, scenario.name, why.c_str());
            return 1;
        }
    }
    unsigned missing = 0;
    const char *const plugins = getenv("MUSTER_PLUGIN_PATH");
    const bool has_star = access((std::string(plugins ? plugins : "") + "/muster-zmq.so").c_str(), R_OK) == 0;
    for (uint32_t i = 0; i < count_functions(); i++)
        if (shared_memory->called[i] == 0) {
            const std::string name = function_name(i);
            if (!has_star && (name.rfind("muster_broker_", 0) == 0 || name.rfind("muster_plugin_", 0) == 0)) {
                printf("skipped  %s: muster-zmq.so is not built here\n", name.c_str());
                continue;
            }
            printf("FAILED  no scenario calls %s\n", function_name(i));
            missing++;
        }
    printf("%u of %u functions are called\n", count_functions() - missing, count_functions());
    return missing != 0;
}

} // namespace

int run_program(int count, char **arguments) {
    setvbuf(stdout, nullptr, _IOLBF, 0);
    shared_memory =
        static_cast<Shared *>(mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    init(shared_memory);
    std::vector<const char *> wanted;
    for (int i = 1; i < count; i++) {
        if (strcmp(arguments[i], "--coverage") == 0) return check_coverage();
        if (strcmp(arguments[i], "--every-call") == 0)
            options.every_call = true;
        else if (strncmp(arguments[i], "--site=", 7) == 0)
            options.site = arguments[i] + 7;
        else if (strncmp(arguments[i], "--depth=", 8) == 0)
            depth = std::clamp(atoi(arguments[i] + 8), 1, max_frames);
        else
            wanted.push_back(arguments[i]);
    }
    Counts counts;
    for (const Scenario &scenario : scenarios()) {
        const std::string name = std::string(scenario.header) + "." + scenario.name;
        const auto fits = [&](const char *one) { return name == one || strcmp(scenario.header, one) == 0; };
        if (wanted.empty() || std::any_of(wanted.begin(), wanted.end(), fits)) run_all(scenario, counts);
    }
    printf("%u scenarios, %u sites, %u runs, %u faults injected, %u failed, %u of known.txt\n", counts.scenarios,
           counts.sites, counts.runs, counts.fired, counts.failed, counts.known);
    return counts.failed != 0 || counts.scenarios == 0;
}

} // namespace faults

int main(int count, char **arguments) {
    if (count == 2 && strcmp(arguments[1], "--worker") == 0) return faults::be_worker();
    return faults::run_program(count, arguments);
}
