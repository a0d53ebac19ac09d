// SPDX-License-Identifier: MIT
#pragma once
#include "stream/stream.hpp"

#include <mutex>
#include <unordered_map>

typedef struct uv_poll_s uv_poll_t;

namespace muster {

// The streams alive in a context, so that closing it can wait for their bytes and end them; and the eventfds of
// shared-memory streams that the engine watches. Any thread; uv handles on the loop thread.
class StreamsOfContext final : public ContextPart {
  public:
    static StreamsOfContext &of(Context &context);
    explicit StreamsOfContext(Context &context) : context_(context) {}
    bool add(Stream &stream) noexcept; // false: added, but the context has ended the others already
    void remove(Stream &stream) noexcept;
    // From now on the engine calls wake_reader() and wake_writer() of the stream when its eventfd is written.
    void watch_event_fd(Stream &stream);

    bool drained() noexcept override;
    void stop() noexcept override;

  private:
    struct Watch;
    Context &context_;
    std::mutex lock_;
    Stream *first_ = nullptr;
    bool stopped_ = false;
    std::unordered_map<Stream *, Watch *> watches_; // loop thread
};

} // namespace muster
