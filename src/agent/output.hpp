// SPDX-License-Identifier: MIT
#pragma once
#include "base/fd.hpp"
#include "base/list.hpp"
#include "context/context.hpp"

#include <mutex>
#include <string>
#include <string_view>

namespace muster {

// Looks at the lines of one pipe, on the thread of the output.
class LineListener : public Object {
  public:
    virtual bool shown(std::string_view line) noexcept = 0; // false: nobody is to see this line
    virtual void ended() noexcept = 0;                      // there are no more
};

// Carries what workers write to where people see it, line by line, each behind the name of its worker; and to a file
// as it is, where that is wanted. A thread of its own does it, since the descriptors are the host's: a terminal that is
// stopped, a pipe that nobody reads. Then workers that go on writing wait, too, and nothing is lost. Any thread.
class Output final : public Object {
  public:
    // The thread begins with the first of add().
    Output(Context &context, Fd out, Fd err) noexcept;

    // Lines from `pipe` go to the host's descriptor for `err` or out, past a listener if there is one.
    Result<void> add(Fd pipe, Fd file, bool err, std::string prefix, Ref<LineListener> listener = {});
    // The writers that were meant are gone: what is in the pipes now is carried, and they are closed. (What a worker
    // left behind may hold the other ends for ever.)
    void finish() noexcept;
    // Until everything was written that was there at the last finish().
    Status flush(Deadline &deadline) noexcept;
    // No more is added: the thread ends with the last pipe.
    void end() noexcept;

  private:
    struct Source : Listed<Source> {
        Fd pipe, file;
        Fd *to = nullptr;
        std::string prefix, line; // the beginning of a line, the rest is yet to come
        Ref<LineListener> listener;
        uint64_t finishes = 0; // there had been when it was added; the next one is its own
    };
    ~Output() override = default;
    Result<void> prepare();
    static void *body(void *self);
    void work() noexcept;
    uint64_t take_news() noexcept;
    void finish_older(uint64_t finishes) noexcept;
    bool over() noexcept;
    void carry(Source *source, bool to_the_end) noexcept;
    void show(Source &source, const char *data, size_t size) noexcept;
    void show_line(Source &source) noexcept;
    void write_shown(Fd &to) noexcept;
    void write_all(Fd &to, const char *data, size_t size) noexcept;

    const Ref<Context> context_;

    // The thread's, once it runs.
    Fd out_, err_;
    List<Source> sources_;     // owned
    std::string read_, shown_; // room for what was read, and for what is to be written

    std::mutex lock_; // for what follows
    Fd wake_, epoll_;
    List<Source> added_; // owned
    bool running_ = false, ended_ = false;
    uint64_t finishes_ = 0; // calls of finish()
    uint64_t carried_ = 0;  // those whose output was written
    Signal carried_more_;
};

} // namespace muster
