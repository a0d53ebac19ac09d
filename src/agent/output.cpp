// SPDX-License-Identifier: MIT
#include "agent/output.hpp"

#include "base/libc.hpp"
#include "base/thread.hpp"

#include <algorithm>
#include <cstring>
#include <sys/epoll.h>
#include <sys/ioctl.h>

namespace muster {

namespace {

constexpr size_t piece = 64 * 1024;        // maximum read of one worker before the next one's turn
constexpr size_t max_line = 64 * 1024;     // a longer line is shown as several
constexpr size_t max_shown = 2 * max_line; // collected before it is written

} // namespace

// One pipe of a worker. The thread's, but for `finishes`.
class Output::Source final : public Object, public Listed<Source>, public Watch {
  public:
    explicit Source(Output &output) noexcept : output(output) {}
    void on_events(uint32_t) noexcept override {
        if (pipe) output.copy(*this, false);
    }
    Object &watch_owner() noexcept override { return *this; }

    Output &output;
    Fd pipe, file;
    Fd *to = nullptr;
    std::string prefix, line; // the beginning of a line, whose rest has not arrived
    Ref<LineListener> listener;
    uint64_t finishes = 0; // calls of finish() before it was added; the next one is its own
};

Output::Output(Context &context, Fd out, Fd err) noexcept
    : context_(&context), out_(std::move(out)), err_(std::move(err)) {}

Output::~Output() = default;

// Everything that the thread needs: it allocates no memory later.
Result<void> Output::prepare() {
    if (running_) return {};
    read_.resize(piece);
    shown_.reserve(max_shown);
    if (!loop_.is_open()) {
        if (auto opened = loop_.open(Loop::Mode::waits); !opened) return opened;
    }
    retain(); // the thread's
    if (const int why = start_thread(&body, this)) {
        release();
        return Error::from_errno(why, MUSTER_E_NOMEM, "a thread for the output of workers");
    }
    running_ = true;
    return {};
}

Result<void> Output::add(Fd pipe, Fd file, bool err, std::string prefix, Ref<LineListener> listener) {
    const std::lock_guard hold(lock_);
    if (auto ready = prepare(); !ready) return ready;
    auto source = make_ref<Source>(*this);
    source->pipe = std::move(pipe);
    source->file = std::move(file);
    source->to = err ? &err_ : &out_;
    source->prefix = std::move(prefix);
    source->listener = std::move(listener);
    source->line.reserve(max_line);
    source->finishes = finishes_;
    const int fd = source->pipe.get();
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); // the worker's end is a description of its own
    if (auto watched = loop_.watch(*source, fd, EPOLLIN); !watched) return watched;
    sources_.push_back(*source.detach());
    return {};
}

void Output::finish() noexcept {
    const std::lock_guard hold(lock_);
    finishes_++;
    if (running_)
        finish_added_.post(loop_);
    else
        finished_ = finishes_;
}

void Output::end() noexcept {
    const std::lock_guard hold(lock_);
    ended_ = true;
    if (running_) look_.post(loop_);
}

Status Output::flush(Deadline &deadline) noexcept {
    uint64_t wanted = 0;
    return context_->wait(finished_more_, deadline, lock_, [&] {
        if (wanted == 0) wanted = finishes_;
        return Status{finished_ >= wanted ? MUSTER_OK : MUSTER_AGAIN};
    });
}

void *Output::body(void *self) {
    pthread_setname_np(pthread_self(), "muster-output");
    const auto output = Ref<Output>::adopt(static_cast<Output *>(self));
    output->loop_.enter();
    while (!output->is_over()) output->loop_.turn(INT64_MAX);
    output->loop_.refuse_tasks();
    output->loop_.close();
    return nullptr;
}

bool Output::is_over() noexcept {
    const std::lock_guard hold(lock_);
    running_ = !ended_ || finished_ != finishes_ || !sources_.empty();
    return !running_;
}

void Output::finish_added() noexcept {
    for (;;) {
        Source *source;
        {
            const std::lock_guard hold(lock_);
            source = sources_.first(); // in order of their finishes
            if (source == nullptr || source->finishes == finishes_) {
                finished_ = finishes_;
                break;
            }
        }
        copy(*source, true);
    }
    context_->notify(finished_more_);
}

void Output::copy(Source &source, bool to_the_end) noexcept {
    // The end means: everything that is in the pipe now. Another process may still hold the other end, and write.
    int present = 0;
    if (to_the_end) ioctl(source.pipe.get(), FIONREAD, &present);
    bool over = to_the_end;
    for (size_t most = to_the_end ? static_cast<size_t>(present) : piece; most > 0;) {
        const ssize_t n = uncancelled::read(source.pipe.get(), read_.data(), std::min(most, piece));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) break;
        over = over || n <= 0;
        if (n <= 0) break;
        if (source.file) write_all(source.file, read_.data(), static_cast<size_t>(n));
        show(source, read_.data(), static_cast<size_t>(n));
        if (!to_the_end) break;
        most -= static_cast<size_t>(n);
    }
    if (!over) return;
    if (!source.line.empty()) show(source, "\n", 1);
    if (source.listener) source.listener->ended();
    // A child that is just being started has a copy of the descriptor, which would keep it watched.
    loop_.unwatch(source, source.pipe.get());
    source.pipe.reset();
    {
        const std::lock_guard hold(lock_);
        sources_.remove(source);
    }
    source.release();
}

void Output::show(Source &source, const char *data, size_t size) noexcept {
    while (size > 0) {
        const void *const newline = memchr(data, '\n', size);
        const size_t length = newline ? static_cast<size_t>(static_cast<const char *>(newline) - data) : size;
        const size_t part = std::min(length, max_line - source.line.size());
        source.line.append(data, part);
        const size_t used = part + (part == length && newline ? 1 : 0);
        if (used > part || source.line.size() == max_line) show_line(source);
        data += used;
        size -= used;
    }
    write_shown(*source.to);
}

void Output::show_line(Source &source) noexcept {
    if (source.listener && !source.listener->shown(source.line)) return source.line.clear();
    if (shown_.size() + source.prefix.size() + source.line.size() + 1 > max_shown) write_shown(*source.to);
    shown_ += source.prefix;
    shown_ += source.line;
    shown_ += '\n';
    source.line.clear();
}

void Output::write_shown(Fd &to) noexcept {
    write_all(to, shown_.data(), shown_.size());
    shown_.clear();
}

void Output::write_all(Fd &to, const char *data, size_t size) noexcept {
    while (to && size > 0) {
        const ssize_t n = uncancelled::write(to.get(), data, size);
        if (n >= 0) {
            data += n;
            size -= static_cast<size_t>(n);
        } else if (errno == EAGAIN) {
            pollfd ready{to.get(), POLLOUT, 0};
            uncancelled::wait_poll(&ready, 1, nullptr);
        } else if (errno != EINTR) {
            // The reader is gone, or the disk is full: the workers continue.
            context_->log(MUSTER_LOG_ERROR, "output of workers is lost from here on: %s", libc::describe_error(errno));
            to.reset();
        }
    }
}

} // namespace muster
