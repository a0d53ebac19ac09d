// SPDX-License-Identifier: MIT
#pragma once
#include "context/context.hpp"

#include <mutex>
#include <string>
#include <string_view>

namespace muster {

// Sees the lines of one pipe, on the thread of the output.
class LineListener : public Object {
  public:
    virtual bool shown(std::string_view line) noexcept = 0; // false: the line is not written
    virtual void ended() noexcept = 0;                      // no more lines follow
};

// Copies the output of workers to descriptors of the host, line by line, each line after the name of its worker; and to
// a file, unchanged, if there is one. It has a loop on a thread of its own, since the descriptors are those of the
// host: a stopped terminal or a pipe that is not read blocks it. Then workers that continue to write block, too, and
// nothing is lost. Any thread.
class Output final : public Object {
  public:
    // The thread begins with the first of add().
    Output(Context &context, Fd out, Fd err) noexcept;

    // Lines from `pipe` are written to the host's descriptor for `err` or out, after the listener was called, if there
    // is one.
    Result<void> add(Fd pipe, Fd file, bool err, std::string prefix, Ref<LineListener> listener = {});
    // The writers that were added so far have ended: the rest of the pipes is copied, and they are closed. (A process
    // that a worker has left may hold the other ends forever.)
    void finish() noexcept;
    // Until everything was written that was in the pipes at the last finish().
    Status flush(Deadline &deadline) noexcept;
    // No more is added: the thread ends with the last pipe.
    void end() noexcept;

  private:
    class Source;
    ~Output() override;
    Result<void> prepare();
    static void *body(void *self);
    bool is_over() noexcept;
    void finish_added() noexcept;
    void look() noexcept {} // a turn, after which the end of the output is checked
    void copy(Source &source, bool to_the_end) noexcept;
    void show(Source &source, const char *data, size_t size) noexcept;
    void show_line(Source &source) noexcept;
    void write_shown(Fd &to) noexcept;
    void write_all(Fd &to, const char *data, size_t size) noexcept;

    const Ref<Context> context_;
    Loop loop_{*this};
    PostedTask<Output, &Output::finish_added> finish_added_{*this};
    PostedTask<Output, &Output::look> look_{*this};

    // The thread's, once it runs.
    Fd out_, err_;
    std::string read_, shown_; // buffers for bytes that were read, and for bytes to be written

    std::mutex lock_;      // for the members below
    List<Source> sources_; // each with a reference
    bool running_ = false, ended_ = false;
    uint64_t finishes_ = 0; // calls of finish()
    uint64_t finished_ = 0; // number of those whose output was written
    Signal finished_more_;
};

} // namespace muster
