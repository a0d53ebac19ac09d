// SPDX-License-Identifier: MIT
#pragma once
#include "stream/stream.hpp"

#include <mutex>
#include <uv.h>

namespace muster {

class StreamsOfContext;

// The engine's eye on the eventfd of a shared-memory stream: once begun, it calls wake_reader() and wake_writer() of
// the stream when the peer writes there. Made with the stream, so that it can begin without memory.
class EventFdWatch final : public Object, public Listed<EventFdWatch> {
  public:
    explicit EventFdWatch(StreamsOfContext &part) noexcept : part_(part) {}
    void begin(Stream &stream) noexcept; // any thread; once, or more often
    void end() noexcept;                 // any thread: the stream is going; after return it is not called any more

  private:
    friend class StreamsOfContext;
    void open() noexcept;  // loop thread
    void close() noexcept; // loop thread
    Ref<Stream> stream() noexcept;

    StreamsOfContext &part_;
    Stream *stream_ = nullptr; // under the part's lock; NULL before it begins, and once the stream is going
    std::atomic<bool> begun_{false};
    Errand<EventFdWatch, &EventFdWatch::open> open_{*this};
    Errand<EventFdWatch, &EventFdWatch::close> close_{*this};
    uv_poll_t poll_{}; // on a duplicate of the eventfd; loop thread
    int fd_ = -1;
};

// The streams alive in a context, so that closing it can wait for their bytes and end them. Any thread; uv handles on
// the loop thread.
class StreamsOfContext final : public ContextPart {
  public:
    static StreamsOfContext &of(Context &context);
    explicit StreamsOfContext(Context &context) : context_(context) {}
    bool add(Stream &stream) noexcept; // false: added, but the context has ended the others already
    void remove(Stream &stream) noexcept;

    bool drained() noexcept override;
    void stop() noexcept override;

  private:
    friend class EventFdWatch;
    enum class Walk { begin, go_on };
    Ref<Stream> next_alive(Walk walk) noexcept;

    Context &context_;
    std::mutex lock_; // guards the next two
    List<Stream> streams_;
    bool stopped_ = false;
    List<EventFdWatch> watches_; // with an open handle, which holds a reference; loop thread
};

} // namespace muster
