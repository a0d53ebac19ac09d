// SPDX-License-Identifier: MIT
#pragma once
// A stream that the cluster holds, until it passes it to the host.
#include "base/boundary.hpp"
#include "stream/stream.hpp"

#include <utility>

namespace muster {

// Owns the reference that muster_stream_release() would end. None of its calls waits, or throws. One thread.
class StreamHandle {
  public:
    StreamHandle() noexcept = default;
    explicit StreamHandle(Ref<Stream> stream) noexcept : stream_(stream.detach()) {}
    // The object of a completion; or none.
    explicit StreamHandle(void *object) noexcept : stream_(unwrap(static_cast<muster_stream *>(object))) {}
    StreamHandle(StreamHandle &&other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}
    StreamHandle &operator=(StreamHandle &&other) noexcept {
        reset();
        stream_ = std::exchange(other.stream_, nullptr);
        return *this;
    }
    ~StreamHandle() { reset(); }

    explicit operator bool() const noexcept { return stream_ != nullptr; }
    Stream *operator->() const noexcept { return stream_; }
    Ref<Stream> detach() noexcept { return Ref<Stream>::adopt(std::exchange(stream_, nullptr)); }
    muster_stream *release() noexcept { return wrap(std::exchange(stream_, nullptr)); } // to the host; NULL: none
    void reset() noexcept {
        Stream *const stream = std::exchange(stream_, nullptr);
        if (stream == nullptr || stream->forked()) return;
        boundary([&]() -> Status {
            stream->host_release();
            return MUSTER_OK;
        });
    }

    Status write(const void *data, size_t size, size_t &moved) noexcept {
        Deadline once(0);
        moved = 0;
        return stream_->write(data, size, once, moved);
    }
    Status read(void *data, size_t capacity, size_t &moved) noexcept {
        Deadline once(0);
        moved = 0;
        return stream_->read(data, 1, capacity, once, moved);
    }
    Status peek(const void *&data, size_t &size) noexcept {
        return boundary([&]() -> Status {
            Deadline once(0);
            return stream_->peek(1, once, data, size);
        });
    }
    Status watch(uint32_t interest, Queue &queue, uint64_t tag) noexcept {
        return boundary([&]() -> Status { return stream_->watch(interest, &queue, tag); });
    }
    void unwatch() noexcept {
        boundary([&]() -> Status { return stream_->watch(0, nullptr, 0); });
    }

  private:
    Stream *stream_ = nullptr;
};

} // namespace muster
