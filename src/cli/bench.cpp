// SPDX-License-Identifier: MIT
// muster bench: what streams do on this machine, or between two.
#include "bench/picture.hpp"
#include "markup.hpp"
#include "serving.hpp"

#include <muster/transport.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace {

constexpr char help[] =
    "usage: muster bench [options]\n"
    "       muster bench --serve <address>\n"
    "       muster bench [options] <address>\n"
    "\n"
    "Measures streams: half of a round trip of 64 bytes, messages of 64 bytes, and bytes in messages of 64 KiB,\n"
    "1 MiB and 64 MiB, one way. The first form measures two processes of this host over each transport, the others\n"
    "two hosts: one serves an address, tcp://0.0.0.0:4100 say, and the other one measures.\n"
    "\n"
    "  --only <name>        this transport alone: inproc, shm, unix, tcp or sealed (tcp, encrypted as between hosts)\n"
    "  --seconds <s>        time for each figure; default 0.5\n"
    "  --svg <file>         draw the figures, too\n"
    "  --tsv                tab-separated values, without units, in place of the table\n"
    "  --serve <address>    be the other end, until a signal arrives\n"
    "  --secret-file <file> secret of both ends, not readable by others; else MUSTER_SECRET_FILE, MUSTER_SECRET\n"
    "Status 0: measured. 1: something failed. 2: wrong arguments.\n";

constexpr int64_t second = 1'000'000'000, patience = 30 * second;
constexpr const char *local_names[] = {"inproc", "shm", "unix", "tcp", "sealed"};

struct Options {
    std::string served, address, only, svg;
    int64_t time_ns = second / 2;
    bool is_tsv = false;
};

class Context {
  public:
    Context() = default;
    Context(const Context &) = delete;
    Context &operator=(const Context &) = delete;
    ~Context() {
        if (context_ != nullptr) muster_context_close(context_, second);
        muster_context_release(context_);
    }
    // With this secret; empty: that of the environment.
    bool open(const std::string &secret, muster_error &error) {
        muster_context_config config{};
        config.struct_size = sizeof config;
        config.secret = secret.empty() ? nullptr : secret.data();
        config.secret_bytes = secret.size();
        return muster_context_create(&config, &context_, &error) == MUSTER_OK;
    }
    muster_context *get() const { return context_; }

  private:
    muster_context *context_ = nullptr;
};

std::string text_of(const muster_error &error) {
    return error.message_bytes != 0 ? std::string(error.message, error.message_bytes)
                                    : muster_status_text(error.status);
}

std::string local_address(const std::string &name) {
    const std::string own = "muster-bench-" + std::to_string(getpid());
    const char *const folder = getenv("TMPDIR");
    if (name == "shm") return "shm://" + own;
    if (name == "unix") return "unix://" + std::string(folder != nullptr ? folder : "/tmp") + "/" + own + "?upgrade=no";
    return std::string("tcp://127.0.0.1:0?upgrade=no") + (name == "sealed" ? "&seal=yes" : "");
}

// Listens; the address at which it does, empty: it failed.
std::string listen(muster_context *context, const std::string &address, muster_listener *&listener,
                   muster_error &error) {
    char real[1024];
    size_t bytes = 0;
    if (muster_transport_listen(context, address.data(), address.size(), nullptr, &listener, &error) != MUSTER_OK)
        return {};
    if (muster_listener_address(listener, real, sizeof real, &bytes) != MUSTER_OK) return {};
    return {real, bytes};
}

void answer_and_release(muster_stream *stream) {
    bench::answer(stream);
    muster_stream_close(stream, second);
    muster_stream_release(stream);
}

// The second process of a local measurement: writes its address, serves one stream, and ends.
[[noreturn]] void be_second_process(const std::string &name, const std::string &secret, int to) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int status = 1;
    {
        Context context;
        muster_error error{};
        muster_listener *listener = nullptr;
        muster_stream *stream = nullptr;
        std::string address;
        if (context.open(secret, error)) address = listen(context.get(), local_address(name), listener, error);
        const std::string line = (address.empty() ? "!" + text_of(error) : address);
        const bool is_written = write(to, line.data(), line.size()) == static_cast<ssize_t>(line.size());
        close(to);
        if (is_written && !address.empty() &&
            muster_listener_accept(listener, patience, &stream, &error) == MUSTER_OK) {
            answer_and_release(stream);
            status = 0;
        }
        muster_listener_release(listener);
    }
    _exit(status);
}

std::string measure_processes(const std::string &name, double seconds, bench::Figures &figures) {
    std::string secret(32, '\0');
    if (getrandom(secret.data(), secret.size(), 0) != static_cast<ssize_t>(secret.size())) return "no random bytes";
    int ends[2];
    if (pipe(ends) != 0) return std::strerror(errno);
    const pid_t child = fork(); // no context of this process is open
    if (child == 0) {
        close(ends[0]);
        be_second_process(name, secret, ends[1]);
    }
    close(ends[1]);
    std::string address, why;
    char part[1024];
    for (ssize_t got; child > 0 && (got = read(ends[0], part, sizeof part)) > 0;)
        address.append(part, static_cast<size_t>(got));
    close(ends[0]);
    Context context;
    muster_error error{};
    muster_stream *stream = nullptr;
    if (child < 0)
        why = std::strerror(errno);
    else if (address.empty() || address[0] == '!')
        why = address.empty() ? "the second process has ended" : address.substr(1);
    else if (!context.open(secret, error) || muster_transport_dial(context.get(), address.data(), address.size(),
                                                                   nullptr, patience, &stream, &error) != MUSTER_OK)
        why = text_of(error);
    else
        why = bench::measure(stream, seconds, figures);
    muster_stream_release(stream);
    if (child > 0) {
        if (!why.empty()) kill(child, SIGKILL);
        waitpid(child, nullptr, 0);
    }
    return why;
}

std::string measure_threads(double seconds, bench::Figures &figures) {
    Context context;
    muster_error error{};
    muster_stream *near_end = nullptr, *far_end = nullptr;
    if (!context.open("", error) ||
        muster_stream_pair(context.get(), nullptr, &near_end, &far_end, &error) != MUSTER_OK)
        return text_of(error);
    std::thread other(answer_and_release, far_end);
    std::string why = bench::measure(near_end, seconds, figures);
    muster_stream_release(near_end);
    other.join();
    return why;
}

std::string measure_address(const std::string &address, double seconds, bench::Figures &figures) {
    Context context;
    muster_error error{};
    muster_stream *stream = nullptr;
    if (!context.open("", error) || muster_transport_dial(context.get(), address.data(), address.size(), nullptr,
                                                          patience, &stream, &error) != MUSTER_OK)
        return text_of(error);
    std::string why = bench::measure(stream, seconds, figures);
    muster_stream_close(stream, second);
    muster_stream_release(stream);
    return why;
}

void print(const std::string &name, const bench::Figures &f, bool is_tsv) {
    if (is_tsv) {
        printf("%s\t%.4g\t%.4g\t%.6g\t%.6g\t%.6g\t%.6g\n", name.c_str(), f.half_us, f.half_99_us, f.rate, f.bytes_64k,
               f.bytes_1m, f.bytes_64m);
    } else {
        printf("%-12s %12s %12s %12s %12s %12s %12s\n", name.c_str(), bench::microseconds(f.half_us).c_str(),
               bench::microseconds(f.half_99_us).c_str(), (markup::with_unit(f.rate) + "/s").c_str(),
               (markup::with_unit(f.bytes_64k) + "B/s").c_str(), (markup::with_unit(f.bytes_1m) + "B/s").c_str(),
               (markup::with_unit(f.bytes_64m) + "B/s").c_str());
    }
    fflush(stdout);
}

int measure_all(const Options &options) {
    const double seconds = static_cast<double>(options.time_ns) * 1e-9;
    std::vector<std::string> names;
    if (!options.address.empty())
        names.push_back(options.address);
    else
        for (const char *name : local_names)
            if (options.only.empty() || options.only == name) names.emplace_back(name);
    if (options.is_tsv)
        puts("stream\thalf_us\thalf_99_us\tmessages_per_s\tbytes_per_s_64k\tbytes_per_s_1m\tbytes_per_s_64m");
    else
        printf("%-12s %12s %12s %12s %12s %12s %12s\n%-12s %12s %12s %12s %12s %12s %12s\n", "", "round trip/2", "99 %",
               "messages", "bytes", "", "", "", "64 B", "64 B", "64 B", "64 KiB", "1 MiB", "64 MiB");
    bench::Rows rows;
    int status = 0;
    for (const std::string &name : names) {
        bench::Figures figures;
        std::string why;
        if (!options.address.empty())
            why = measure_address(name, seconds, figures);
        else
            why = name == "inproc" ? measure_threads(seconds, figures) : measure_processes(name, seconds, figures);
        if (why.empty()) {
            print(name, figures, options.is_tsv);
            rows.emplace_back(name, figures);
        } else {
            fprintf(stderr, "muster bench: %s: %s\n", name.c_str(), why.c_str());
            status = 1;
        }
    }
    if (options.svg.empty() || rows.empty()) return status;
    const std::string wrong = bench::draw(options.svg, rows);
    if (!wrong.empty()) fprintf(stderr, "muster bench: %s\n", wrong.c_str());
    return wrong.empty() ? status : 1;
}

// One client at a time, so that they do not measure each other.
int serve(const Options &options) {
    const int signals = serving::block_signals();
    Context context;
    muster_error error{};
    muster_listener *listener = nullptr;
    std::string address;
    if (context.open("", error)) address = listen(context.get(), options.served, listener, error);
    if (address.empty()) {
        fprintf(stderr, "muster bench: %s: %s\n", options.served.c_str(), text_of(error).c_str());
        return 1;
    }
    printf("%s\n", address.c_str());
    fflush(stdout);
    std::thread accepting([listener] {
        muster_stream *stream = nullptr;
        while (muster_listener_accept(listener, -1, &stream, nullptr) == MUSTER_OK) answer_and_release(stream);
    });
    pollfd one{signals, POLLIN, 0};
    while (poll(&one, 1, -1) < 0 && errno == EINTR) continue;
    muster_context_close(context.get(), 0); // ends the wait, and a measurement
    accepting.join();
    muster_listener_release(listener);
    return 0;
}

} // namespace

int bench_command(const Arguments &arguments) {
    const cli::Command command{"muster bench", help};
    Options options;
    std::vector<std::string> words;
    const auto status =
        cli::read_options(command, arguments,
                          {cli::text("serve", options.served), cli::text("only", options.only),
                           cli::seconds("seconds", options.time_ns, 0.01, 3600), cli::text("svg", options.svg),
                           cli::flag("tsv", options.is_tsv), cli::secret_file()},
                          words);
    if (status) return *status;
    if (words.size() > 1) return cli::reject(command, "unexpected argument " + words[1]);
    if (!words.empty()) options.address = words[0];
    if (!options.served.empty() && !options.address.empty())
        return cli::reject(command, "--serve, and an address to measure: which of them?");
    if (!options.only.empty() && !options.address.empty())
        return cli::reject(command, "--only, and an address to measure: which of them?");
    bool is_known = options.only.empty();
    for (const char *name : local_names) is_known = is_known || options.only == name;
    if (!is_known) return cli::reject(command, "--only " + options.only + " is none of inproc, shm, unix, tcp, sealed");
    return options.served.empty() ? measure_all(options) : serve(options);
}
