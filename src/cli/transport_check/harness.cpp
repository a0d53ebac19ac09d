// SPDX-License-Identifier: MIT
#include "transport_check/harness.hpp"

#include "transport_check/carriage.hpp"
#include "transport_check/ranks.hpp"
#include "transport_check/servant.hpp"

#include <cstdarg>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace check {

void fail(const char *format, ...) {
    char text[512];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    throw Failed{text};
}

void skip(const std::string &why) {
    throw Skipped{why};
}

std::string name_of(muster_status status) {
    return muster_status_name(status);
}

namespace {
thread_local std::string last_call;
} // namespace

void called(const char *what, muster_status status, const muster_error *error) {
    last_call = std::string(what) + " ended with " + muster_status_name(status);
    if (status < 0 && error != nullptr && error->message[0] != '\0') last_call += std::string(": ") + error->message;
}

void not_so(const char *condition) {
    if (last_call.empty()) fail("not so: %s", condition);
    fail("not so: %s; before, %s", condition, last_call.c_str());
}

void expect(muster_status got, muster_status wanted, const char *what, const muster_error *error) {
    called(what, got, error);
    if (got == wanted) return;
    fail("%s: %s instead of %s%s%s", what, name_of(got).c_str(), name_of(wanted).c_str(),
         error != nullptr && error->message[0] != '\0' ? ": " : "", error != nullptr ? error->message : "");
}

// ---- a context
// -------------------------------------------------------------------------------------------------------

Host::Host(const Options &options, const std::string &secret) {
    muster_context_config config{};
    config.struct_size = sizeof config;
    config.secret = secret.data();
    config.secret_bytes = secret.size();
    config.heartbeat_ns = options.heartbeat_ns;
    config.silent_ns = options.silent_ns;
    config.dead_ns = options.dead_ns;
    config.handshake_timeout_ns = 2 * second * options.slowdown;
    muster_error error{};
    expect(muster_context_create(&config, &context_, &error), MUSTER_OK, "context", &error);
    if (options.log) print_log();
    if (!options.plugin.empty())
        expect(muster_plugin_load(context_, options.plugin.data(), options.plugin.size(), &error), MUSTER_OK,
               "loading the plug-in", &error);
    if (!options.servant.empty()) servant_ = std::make_unique<Servant>(options.servant, context_);
    if (options.address.starts_with("served://")) carriage_ = std::make_unique<Carriage>(context_, options.pulled);
}

Host::~Host() {
    carriage_.reset();
    servant_.reset();
    muster_context_close(context_, second);
    if (log_ != nullptr) {
        muster_queue_close(log_);
        logger_.join();
        muster_queue_release(log_);
    }
    muster_context_release(context_);
}

void Host::print_log() {
    expect(muster_queue_create(context_, nullptr, &log_, nullptr), MUSTER_OK, "queue");
    expect(muster_context_log(context_, MUSTER_LOG_DEBUG, log_, 0), MUSTER_OK, "log");
    logger_ = std::thread([this] {
        muster_completion entry;
        muster_error text{};
        while (muster_queue_next(log_, -1, &entry, &text) == MUSTER_OK)
            fprintf(stderr, "# %d: %s\n", getpid(), text.message);
    });
}

void Host::close() {
    expect(muster_context_close(context_, time_limit), MUSTER_OK, "closing the context");
}

std::unique_ptr<Listener> Host::listen(const std::string &address, const std::string &hello) const {
    muster_transport_config config{};
    config.struct_size = sizeof config;
    config.hello = hello.data();
    config.hello_bytes = hello.size();
    muster_listener *listener = nullptr;
    muster_error error{};
    expect(muster_transport_listen(context_, address.data(), address.size(), &config, &listener, &error), MUSTER_OK,
           "listen", &error);
    if (carriage_) carriage_->await_listeners(++listens_);
    return std::make_unique<Listener>(listener);
}

Stream Host::dial(const std::string &address, const std::string &hello, int64_t timeout) const {
    muster_transport_config config{};
    config.struct_size = sizeof config;
    config.hello = hello.data();
    config.hello_bytes = hello.size();
    if (servant_) config.retry_ns = timeout; // only the servant knows when it listens
    muster_stream *stream = nullptr;
    muster_error error{};
    expect(muster_transport_dial(context_, address.data(), address.size(), &config, timeout, &stream, &error),
           MUSTER_OK, "dial", &error);
    return Stream(stream);
}

muster_status Host::try_dial(const std::string &address, muster_error &error, int64_t timeout) const {
    muster_stream *stream = nullptr;
    memset(&error, 0, sizeof error);
    const muster_status status =
        muster_transport_dial(context_, address.data(), address.size(), nullptr, timeout, &stream, &error);
    muster_stream_release(stream);
    return status;
}

// The listener of a servant exists some time after muster_transport_listen(); the other process cannot report when.
// With another secret the answer is a refusal, which is an answer, too.
void Host::await_listener(const std::string &address) const {
    if (!servant_) return;
    muster_transport_config config{};
    config.struct_size = sizeof config;
    config.retry_ns = time_limit;
    muster_stream *stream = nullptr;
    muster_error error{};
    const muster_status status =
        muster_transport_dial(context_, address.data(), address.size(), &config, time_limit, &stream, &error);
    muster_stream_release(stream);
    if (status != MUSTER_E_AUTH) expect(status, MUSTER_OK, "the first dial", &error);
}

std::string Listener::address() const {
    char text[4200];
    size_t size = 0;
    expect(muster_listener_address(listener_, text, sizeof text, &size), MUSTER_OK, "the listener's address");
    return {text, size};
}

Stream Listener::accept(int64_t timeout) const {
    muster_stream *stream = nullptr;
    muster_error error{};
    expect(muster_listener_accept(listener_, timeout, &stream, &error), MUSTER_OK, "accept", &error);
    return Stream(stream);
}

// ---- the other side as a process of its own
// --------------------------------------------------------------------------

namespace {

class Process final : public Peer {
  public:
    // A failure here ends the process as well: the destructor of the object that Process() has made runs.
    Process(const Host &host, const Options &options, const std::string &secret, const std::string &address)
        : Process() {
        int secret_pipe[2], answer_pipe[2];
        if (pipe2(secret_pipe, O_CLOEXEC) != 0 || pipe2(answer_pipe, O_CLOEXEC) != 0) fail("no pipe");
        const std::string slowdown = std::to_string(options.slowdown), parent = std::to_string(getpid());
        std::vector<const char *> arguments = {
            options.program.c_str(), "transport-check", "--peer",        "3", "--parent",
            parent.c_str(),          "--time-scale",    slowdown.c_str()};
        if (options.pulled) arguments.push_back("--pulled");
        if (options.log) arguments.push_back("--log");
        if (!options.servant.empty()) {
            arguments.push_back("--serve");
            arguments.push_back(options.servant.c_str());
        }
        if (!options.plugin.empty()) arguments.push_back(options.plugin.c_str());
        arguments.push_back(address.c_str());
        arguments.push_back(nullptr);
        const muster_process_fd fds[] = {{secret_pipe[0], 3}, {answer_pipe[1], 1}};
        muster_process_config config{};
        config.struct_size = sizeof config;
        config.argv = arguments.data();
        config.fds = fds;
        config.fd_count = 2;
        muster_error error{};
        const muster_status status = muster_process_spawn(host.context(), &config, &process_, &error);
        ::close(secret_pipe[0]);
        ::close(answer_pipe[1]);
        answers_ = answer_pipe[0];
        if (status == MUSTER_OK && ::write(secret_pipe[1], secret.data(), secret.size()) < 0) fail("no secret written");
        ::close(secret_pipe[1]);
        expect(status, MUSTER_OK, "starting the peer", &error);
        // "listening ADDRESS" or "failed TEXT"
        std::string line;
        const int64_t until = now_ns() + time_limit;
        for (char c = 0; c != '\n';) {
            pollfd waiting{answers_, POLLIN, 0};
            const auto left = static_cast<int>((until - now_ns()) / ms);
            if (left <= 0 || poll(&waiting, 1, left) <= 0) fail("the peer process says nothing");
            if (::read(answers_, &c, 1) != 1) fail("the peer process ended: %s", line.c_str());
            if (c != '\n') line += c;
        }
        if (!line.starts_with("listening ")) fail("the peer process: %s", line.c_str());
        address_ = line.substr(10);
        host.await_listener(address_);
    }
    ~Process() override {
        if (process_ != nullptr) {
            muster_process_kill(process_, SIGKILL);
            muster_process_exit how;
            muster_process_wait(process_, time_limit, &how);
            muster_process_release(process_);
        }
        ::close(answers_);
    }
    std::string address() const override { return address_; }
    void signal(int number) override {
        expect(muster_process_kill(process_, number), MUSTER_OK, "signalling the peer");
        if (number != SIGSTOP) return;
        // Its threads stop one by one; the kernel notifies the parent when the last one has stopped.
        siginfo_t how{};
        const int64_t until = now_ns() + time_limit;
        while (how.si_pid == 0 && now_ns() < until) {
            if (waitid(P_PID, static_cast<id_t>(muster_process_pid(process_)), &how, WSTOPPED | WNOHANG | WNOWAIT) != 0)
                return; // another thread reaps here: then it is only very likely that it has stopped
            std::this_thread::yield();
        }
    }
    bool separate() const override { return true; }

  private:
    Process() = default;

    muster_process *process_ = nullptr;
    int answers_ = -1;
    std::string address_;
};

class InThread final : public Peer {
  public:
    InThread(const Host &host, const std::string &address) : listener_(host.listen(address)) {
        address_ = listener_->address();
        thread_ = std::thread([this, &host] { serve(host, *listener_); });
    }
    ~InThread() override {
        muster_listener_close(listener_->get());
        thread_.join();
    }
    std::string address() const override { return address_; }
    void signal(int) override { skip("both ends are in one process"); }
    bool separate() const override { return false; }

  private:
    std::unique_ptr<Listener> listener_;
    std::string address_;
    std::thread thread_;
};

} // namespace

std::unique_ptr<Peer> start_process(const Host &host, const Options &options, const std::string &secret,
                                    const std::string &address) {
    if (options.pool != nullptr) return options.pool->start(secret, address);
    return std::make_unique<Process>(host, options, secret, address);
}

std::unique_ptr<Peer> start_thread(const Host &host, const std::string &address) {
    return std::make_unique<InThread>(host, address);
}

std::string unique_address(const Options &options) {
    static std::atomic<unsigned> count{0};
    std::string address = options.address;
    if (const size_t at = address.find("///@"); at != std::string::npos && options.ranks.empty()) {
        const char *tmp = getenv("TMPDIR");
        address.replace(at, 3, std::string("//") + (tmp != nullptr ? tmp : "/tmp") + "/");
    }
    for (size_t at = address.find('@'); at != std::string::npos; at = address.find('@', at + 1))
        address.replace(at, 1, "check-" + std::to_string(getpid()) + "-" + std::to_string(count++));
    return address;
}

std::unique_ptr<Peer> World::another(const std::string &with_secret) const {
    if (!peer.separate()) skip("both ends are in one process");
    return start_process(host, options, with_secret, unique_address(options));
}

std::string World::fresh_address() const {
    // A listener exists there for a moment, then none does.
    const std::unique_ptr<Listener> listener = host.listen(unique_address(options));
    std::string address = listener->address();
    expect(muster_listener_close(listener->get()), MUSTER_OK, "closing a listener");
    return address;
}

} // namespace check
