// SPDX-License-Identifier: MIT
#include "agent/output.hpp"

#include "base/thread.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <sys/eventfd.h>
#include <sys/ioctl.h>

namespace muster {

namespace {

constexpr size_t piece = 64 * 1024;             // most that is read of one worker before it is the next one's turn
constexpr size_t longest_line = 64 * 1024;      // a longer one is shown as several
constexpr size_t most_shown = 2 * longest_line; // collected before it is written

} // namespace

Output::Output(Context &context, Fd out, Fd err) noexcept
    : context_(&context), out_(std::move(out)), err_(std::move(err)) {}

// What the thread needs: it asks for no memory later.
Result<void> Output::prepare() {
    if (running_) return {};
    read_.resize(piece);
    shown_.reserve(most_shown);
    wake_ = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    epoll_ = Fd(epoll_create1(EPOLL_CLOEXEC));
    epoll_event readable{EPOLLIN, {nullptr}};
    if (!wake_ || !epoll_ || epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &readable) != 0)
        return Error::from_errno(errno, MUSTER_OK, "descriptors for the output of workers");
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
    auto source = std::make_unique<Source>();
    source->pipe = std::move(pipe);
    source->file = std::move(file);
    source->to = err ? &err_ : &out_;
    source->prefix = std::move(prefix);
    source->listener = std::move(listener);
    source->line.reserve(longest_line);
    source->finishes = finishes_;
    const int fd = source->pipe.get();
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); // the worker's end is a description of its own
    epoll_event readable{EPOLLIN, {source.get()}};
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &readable) != 0)
        return Error::from_errno(errno, MUSTER_OK, "watch the output of a worker");
    added_.push_back(*source.release());
    return {};
}

void Output::finish() noexcept {
    const std::lock_guard hold(lock_);
    finishes_++;
    if (running_)
        eventfd_write(wake_.get(), 1);
    else
        carried_ = finishes_;
}

void Output::end() noexcept {
    const std::lock_guard hold(lock_);
    ended_ = true;
    if (running_) eventfd_write(wake_.get(), 1);
}

Status Output::flush(Deadline &deadline) noexcept {
    uint64_t wanted = 0;
    for (;;) {
        const uint32_t seen = carried_more_.seen();
        {
            const std::lock_guard hold(lock_);
            if (wanted == 0) wanted = finishes_;
            if (carried_ >= wanted) return MUSTER_OK;
        }
        if (deadline.look_once()) return MUSTER_AGAIN;
        if (const Status status = context_->sleep(carried_more_, seen, deadline); status != MUSTER_OK) return status;
    }
}

void *Output::body(void *self) {
    pthread_setname_np(pthread_self(), "muster-output");
    const auto output = Ref<Output>::adopt(static_cast<Output *>(self));
    output->work();
    return nullptr;
}

void Output::work() noexcept {
    do {
        epoll_event events[32];
        const int count = uncancelled::wait_epoll(epoll_.get(), events, 32, -1);
        const uint64_t finishes = take_news(); // so that whoever is in `events` is in `sources_`
        for (int i = 0; i < count; i++)
            if (events[i].data.ptr != nullptr) carry(static_cast<Source *>(events[i].data.ptr), false);
        finish_older(finishes);
    } while (!over());
}

uint64_t Output::take_news() noexcept {
    const std::lock_guard hold(lock_);
    eventfd_t ignored = 0;
    eventfd_read(wake_.get(), &ignored);
    while (Source *const source = added_.pop_front()) sources_.push_back(*source);
    return finishes_;
}

void Output::finish_older(uint64_t finishes) noexcept {
    for (Source *source = sources_.begin_walk(); source != nullptr; source = sources_.next())
        if (source->finishes < finishes) carry(source, true);
    {
        const std::lock_guard hold(lock_);
        if (carried_ == finishes) return;
        carried_ = finishes;
    }
    context_->notify(carried_more_);
}

bool Output::over() noexcept {
    const std::lock_guard hold(lock_);
    running_ = !ended_ || carried_ != finishes_ || !sources_.empty() || !added_.empty();
    return !running_;
}

void Output::carry(Source *source, bool to_the_end) noexcept {
    // The end is that of what is there now: somebody may still hold the other end, and write.
    int there = 0;
    if (to_the_end) ioctl(source->pipe.get(), FIONREAD, &there);
    bool over = to_the_end;
    for (size_t most = to_the_end ? static_cast<size_t>(there) : piece; most > 0;) {
        const ssize_t n = uncancelled::read(source->pipe.get(), read_.data(), std::min(most, piece));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) break;
        over = over || n <= 0;
        if (n <= 0) break;
        if (source->file) write_all(source->file, read_.data(), static_cast<size_t>(n));
        show(*source, read_.data(), static_cast<size_t>(n));
        if (!to_the_end) break;
        most -= static_cast<size_t>(n);
    }
    if (!over) return;
    if (!source->line.empty()) show(*source, "\n", 1);
    if (source->listener) source->listener->ended();
    // A child that is just being started has a copy of the descriptor, which would keep it watched.
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, source->pipe.get(), nullptr);
    sources_.remove(*source);
    delete source;
}

void Output::show(Source &source, const char *data, size_t size) noexcept {
    while (size > 0) {
        const void *const newline = memchr(data, '\n', size);
        const size_t length = newline ? static_cast<size_t>(static_cast<const char *>(newline) - data) : size;
        const size_t part = std::min(length, longest_line - source.line.size());
        source.line.append(data, part);
        const size_t used = part + (part == length && newline ? 1 : 0);
        if (used > part || source.line.size() == longest_line) show_line(source);
        data += used;
        size -= used;
    }
    write_shown(*source.to);
}

void Output::show_line(Source &source) noexcept {
    if (source.listener && !source.listener->shown(source.line)) return source.line.clear();
    if (shown_.size() + source.prefix.size() + source.line.size() + 1 > most_shown) write_shown(*source.to);
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
            // Nobody reads it any more, or the disk is full: the workers go on.
            context_->log(MUSTER_LOG_ERROR, "output of workers is lost from here on: %s", strerrordesc_np(errno));
            to.reset();
        }
    }
}

} // namespace muster
