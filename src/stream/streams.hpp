// SPDX-License-Identifier: MIT
#pragma once
#include "stream/stream.hpp"

#include <mutex>

namespace muster {

class StreamsOfContext;

// The loop's watch of the eventfd of a shared-memory stream: once begun, it calls wake_reader() and wake_writer() of
// the stream when the peer writes there. Made with the stream, so that it can begin without memory. Any thread, unless
// a member says otherwise.
class EventFdWatch final : public Object, private Watch {
  public:
    explicit EventFdWatch(StreamsOfContext &part) noexcept : part_(part) {}
    void begin(Stream &stream) noexcept; // once, or more often
    void end() noexcept;                 // the stream is being destroyed; after return it is not called any more

  private:
    void open() noexcept;  // loop thread
    void close() noexcept; // loop thread
    void on_events(uint32_t epoll_events) noexcept override;
    Object &watch_owner() noexcept override { return *this; }
    Ref<Stream> stream() noexcept;

    StreamsOfContext &part_;
    Stream *stream_ = nullptr; // under the part's lock; NULL before it begins, and once the stream is going
    std::atomic<bool> begun_{false};
    PostedTask<EventFdWatch, &EventFdWatch::open> open_{*this};
    PostedTask<EventFdWatch, &EventFdWatch::close> close_{*this};
    Fd fd_; // a duplicate of the eventfd; loop thread
};

// The streams alive in a context, so that closing it can wait for their bytes and end them. Any thread.
class StreamsOfContext final : public ContextPart {
  public:
    static StreamsOfContext &of(Context &context);
    explicit StreamsOfContext(Context &context) : context_(context) { context.metrics.add_part(metrics_); }
    ~StreamsOfContext() override { context_.metrics.remove(metrics_); }
    bool add(Stream &stream) noexcept; // false: added, but the context has ended the others already
    void remove(Stream &stream) noexcept;

    bool drained() noexcept override;
    void stop() noexcept override;

  private:
    friend class EventFdWatch;
    enum class Walk { begin, go_on };
    Ref<Stream> next_alive(Walk walk) noexcept;
    void write_metrics(MetricsWriter &writer);

    Context &context_;
    MetricsNode<StreamsOfContext, &StreamsOfContext::write_metrics> metrics_{*this};
    std::mutex lock_; // guards the rest, and EventFdWatch::stream_
    List<Stream> streams_;
    uint64_t last_number_ = 0; // of a stream
    bool stopped_ = false;
};

} // namespace muster
