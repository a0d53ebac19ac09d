// SPDX-License-Identifier: MIT
#include "base/boundary.hpp"
#include "base/config.hpp"
#include "queue/begun_call.hpp"
#include "stream/stream.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <sys/mman.h>

using namespace muster;

namespace {

// The entry of every call: checks the preconditions, then runs the body; no exception leaves.
template <class Body>
Status enter(muster_stream *stream, bool arguments_hold, Body &&body) noexcept {
    if (stream == nullptr || !arguments_hold) return MUSTER_E_ARG;
    if (unwrap(stream)->forked()) return MUSTER_E_FORKED;
    return boundary([&]() -> Status { return body(*unwrap(stream)); });
}

bool many_given(muster_stream *const *streams, uint32_t count, const void *data, size_t size) noexcept {
    if (streams == nullptr || count == 0 || count > 65536 || (data == nullptr && size != 0)) return false;
    return std::find(streams, streams + count, nullptr) == streams + count;
}

bool same_context(muster_stream *stream, muster_queue *queue) noexcept {
    return stream != nullptr && queue != nullptr && &unwrap(queue)->context() == &unwrap(stream)->context();
}

// Huge pages for the whole 2 MiB blocks inside a large target: fewer page faults while it is filled.
void advise_huge_pages(void *data, size_t size) noexcept {
    constexpr uintptr_t huge = 2 << 20;
    const uintptr_t from = (reinterpret_cast<uintptr_t>(data) + huge - 1) & ~(huge - 1);
    const uintptr_t to = (reinterpret_cast<uintptr_t>(data) + size) & ~(huge - 1);
    if (to >= from + huge) madvise(reinterpret_cast<void *>(from), to - from, MADV_HUGEPAGE);
}

Status copy_text(const std::string &text, void *out, size_t capacity, size_t *out_bytes) noexcept {
    *out_bytes = text.size();
    if (out == nullptr) return MUSTER_OK;
    if (capacity < text.size() + 1) return MUSTER_E_LIMIT;
    memcpy(out, text.c_str(), text.size() + 1);
    return MUSTER_OK;
}

constexpr uint32_t all_events = MUSTER_STREAM_READABLE | MUSTER_STREAM_WRITABLE | MUSTER_STREAM_PEER_SILENT |
                                MUSTER_STREAM_PEER_BACK | MUSTER_STREAM_ENDED;

// flush or close, on a thread of the library.
Status begin_wait(muster_stream *stream, int64_t timeout_ns, Status (Stream::*wait)(Deadline &) noexcept,
                  muster_queue *queue, uint64_t tag, muster_error *error) noexcept {
    return boundary(error, [&]() -> Result<void> {
        if (stream == nullptr) return Error::make(MUSTER_E_ARG, "no stream");
        const Ref<Stream> self(unwrap(stream));
        if (self->forked()) return Error::from_status(MUSTER_E_FORKED);
        const auto body = [self, wait, deadline = Deadline(timeout_ns)]() mutable {
            BegunCall::Outcome outcome;
            if (const Status status = (self.get()->*wait)(deadline); status != MUSTER_OK)
                outcome.why = Error::from_status(status);
            return outcome;
        };
        const auto interrupt = [self] { self->cancel(MUSTER_STREAM_WRITE); };
        return BegunCall::begin({self->context(), MUSTER_DONE_CALL, body, interrupt}, queue, tag);
    });
}

} // namespace

extern "C" {

muster_status muster_stream_pair(muster_context *context, const muster_stream_config *config, muster_stream **out_first,
                                 muster_stream **out_second, muster_error *error) {
    if (out_first != nullptr) *out_first = nullptr;
    if (out_second != nullptr) *out_second = nullptr;
    return boundary(error, [&]() -> Result<void> {
        if (context == nullptr || out_first == nullptr || out_second == nullptr)
            return Error::make(MUSTER_E_ARG, "stream pair: no context, or no place for both ends");
        Context &c = *unwrap(context);
        if (c.forked()) return Error::from_status(MUSTER_E_FORKED);
        if (c.closed()) return Error::from_status(MUSTER_E_CLOSED);
        muster_stream_config settings{};
        if (auto read = read_config(config, settings, "muster_stream_config"); !read) return read;
        if (settings.flags != 0) return Error::make(MUSTER_E_ARG, "stream pair: flags %#x are unknown", settings.flags);
        const uint64_t window = settings.window_bytes != 0 ? settings.window_bytes : c.settings.window_bytes;
        if (!std::has_single_bit(window) || window < 4096 || window > (uint64_t{1} << 30))
            return Error::make(MUSTER_E_ARG, "stream pair: window_bytes %llu is not a power of two from 4 KiB to 1 GiB",
                               static_cast<unsigned long long>(window));
        Ref<Stream> first, second;
        Stream::pair(c, window, "pair", first, second);
        *out_first = wrap(first.detach());
        *out_second = wrap(second.detach());
        return {};
    });
}

muster_status muster_stream_write_many(muster_stream *const *streams, uint32_t count, const void *data,
                                       size_t size_bytes, int64_t timeout_ns, muster_status *out_statuses,
                                       size_t *out_bytes) {
    return boundary([&] {
        const Uncancelled guard;
        if (!many_given(streams, count, data, size_bytes)) return Status{MUSTER_E_ARG};
        // The result if there is no memory to begin.
        if (out_statuses != nullptr) std::fill_n(out_statuses, count, MUSTER_E_NOMEM);
        if (out_bytes != nullptr) std::fill_n(out_bytes, count, size_t{0});
        Deadline deadline(timeout_ns);
        return write_many(streams, count, static_cast<const unsigned char *>(data), size_bytes, deadline, out_statuses,
                          out_bytes);
    });
}

muster_status muster_stream_write(muster_stream *stream, const void *data, size_t size_bytes, int64_t timeout_ns,
                                  size_t *out_bytes) {
    if (stream != nullptr && data != nullptr && !unwrap(stream)->forked() &&
        unwrap(stream)->write_quickly(data, size_bytes)) {
        if (out_bytes != nullptr) *out_bytes = size_bytes;
        return MUSTER_OK;
    }
    size_t moved = 0;
    const Status status = enter(stream, data != nullptr || size_bytes == 0, [&](Stream &s) {
        Deadline deadline(timeout_ns);
        return s.write(data, size_bytes, deadline, moved);
    });
    if (out_bytes != nullptr) *out_bytes = moved;
    return status;
}

muster_status muster_stream_write_owned(muster_stream *stream, const void *data, size_t size_bytes, muster_queue *queue,
                                        uint64_t tag) {
    return enter(stream, (data != nullptr || size_bytes == 0) && same_context(stream, queue),
                 [&](Stream &s) { return s.write_owned(data, size_bytes, *unwrap(queue), tag); });
}

muster_status muster_stream_write_owned_many(muster_stream *const *streams, uint32_t count, const void *data,
                                             size_t size_bytes, muster_queue *queue, const uint64_t *tags,
                                             muster_status *out_statuses) {
    return boundary([&] {
        const Uncancelled guard;
        if (!many_given(streams, count, data, size_bytes)) return Status{MUSTER_E_ARG};
        for (uint32_t i = 0; i < count; i++)
            if (!same_context(streams[i], queue)) return Status{MUSTER_E_ARG};
        for (uint32_t i = 0; i < count; i++)
            if (unwrap(streams[i])->forked()) return Status{MUSTER_E_FORKED};
        if (out_statuses != nullptr) std::fill_n(out_statuses, count, MUSTER_E_NOMEM); // without memory to begin
        return write_owned_many(streams, count, data, size_bytes, *unwrap(queue), tags, out_statuses);
    });
}

muster_status muster_stream_reserve(muster_stream *stream, size_t min_bytes, int64_t timeout_ns, void **out_data,
                                    size_t *out_bytes) {
    if (out_bytes != nullptr) *out_bytes = 0;
    return enter(stream, out_data != nullptr && out_bytes != nullptr, [&](Stream &s) {
        Deadline deadline(timeout_ns);
        size_t room = 0;
        const Status status = s.reserve(min_bytes, deadline, *out_data, room);
        if (status == MUSTER_OK) *out_bytes = room;
        return status;
    });
}

muster_status muster_stream_commit(muster_stream *stream, size_t size_bytes) {
    return enter(stream, true, [&](Stream &s) { return s.commit(size_bytes); });
}

muster_status muster_stream_flush(muster_stream *stream, int64_t timeout_ns) {
    return enter(stream, true, [&](Stream &s) {
        Deadline deadline(timeout_ns);
        return s.flush(deadline);
    });
}

muster_status muster_stream_read(muster_stream *stream, void *out_data, size_t capacity_bytes, int64_t timeout_ns,
                                 size_t *out_bytes) {
    size_t moved = 0;
    if (stream != nullptr && out_data != nullptr && capacity_bytes != 0 && !unwrap(stream)->forked())
        moved = unwrap(stream)->read_quickly(out_data, 1, capacity_bytes);
    if (moved != 0) {
        if (out_bytes != nullptr) *out_bytes = moved;
        return MUSTER_OK;
    }
    const Status status = enter(stream, out_data != nullptr && capacity_bytes != 0, [&](Stream &s) {
        Deadline deadline(timeout_ns);
        return s.read(out_data, 1, capacity_bytes, deadline, moved);
    });
    if (out_bytes != nullptr) *out_bytes = moved;
    return status;
}

muster_status muster_stream_read_into(muster_stream *stream, void *out_data, size_t size_bytes, uint32_t flags,
                                      int64_t timeout_ns, size_t *out_bytes) {
    size_t moved = 0;
    if (stream != nullptr && out_data != nullptr && size_bytes != 0 && flags == 0 && !unwrap(stream)->forked())
        moved = unwrap(stream)->read_quickly(out_data, size_bytes, size_bytes);
    if (moved != 0) {
        if (out_bytes != nullptr) *out_bytes = moved;
        return MUSTER_OK;
    }
    const bool arguments_hold = (out_data != nullptr || size_bytes == 0) && (flags & ~MUSTER_STREAM_HUGE_PAGES) == 0;
    const Status status = enter(stream, arguments_hold, [&](Stream &s) -> Status {
        if (size_bytes == 0) return MUSTER_OK;
        if (flags & MUSTER_STREAM_HUGE_PAGES) advise_huge_pages(out_data, size_bytes);
        Deadline deadline(timeout_ns);
        return s.read(out_data, size_bytes, size_bytes, deadline, moved);
    });
    if (out_bytes != nullptr) *out_bytes = moved;
    return status;
}

muster_status muster_stream_read_begin(muster_stream *stream, void *out_data, size_t size_bytes, uint32_t flags,
                                       muster_queue *queue, uint64_t tag) {
    const bool arguments_hold = out_data != nullptr && size_bytes != 0 && (flags & ~MUSTER_STREAM_HUGE_PAGES) == 0;
    return enter(stream, arguments_hold && same_context(stream, queue), [&](Stream &s) {
        if (flags & MUSTER_STREAM_HUGE_PAGES) advise_huge_pages(out_data, size_bytes);
        return s.read_begin(out_data, size_bytes, *unwrap(queue), tag);
    });
}

muster_status muster_stream_peek(muster_stream *stream, size_t min_bytes, int64_t timeout_ns, const void **out_data,
                                 size_t *out_bytes) {
    return enter(stream, out_data != nullptr && out_bytes != nullptr, [&](Stream &s) {
        Deadline deadline(timeout_ns);
        return s.peek(min_bytes, deadline, *out_data, *out_bytes);
    });
}

muster_status muster_stream_consume(muster_stream *stream, size_t size_bytes) {
    return enter(stream, true, [&](Stream &s) { return s.consume(size_bytes); });
}

muster_status muster_stream_finish(muster_stream *stream) {
    return enter(stream, true, [&](Stream &s) { return s.finish(); });
}

muster_status muster_stream_abort(muster_stream *stream, uint64_t reason, const char *text, size_t text_bytes) {
    return enter(stream, text_bytes <= 200 && (text != nullptr || text_bytes == 0), [&](Stream &s) {
        return s.abort(reason, text_bytes == 0 ? std::string_view() : std::string_view(text, text_bytes));
    });
}

muster_status muster_stream_close(muster_stream *stream, int64_t timeout_ns) {
    return enter(stream, true, [&](Stream &s) {
        Deadline deadline(timeout_ns);
        return s.close(deadline);
    });
}

muster_status muster_stream_flush_begin(muster_stream *stream, int64_t timeout_ns, muster_queue *queue, uint64_t tag,
                                        muster_error *error) {
    return begin_wait(stream, timeout_ns, &Stream::flush, queue, tag, error);
}

muster_status muster_stream_close_begin(muster_stream *stream, int64_t timeout_ns, muster_queue *queue, uint64_t tag,
                                        muster_error *error) {
    return begin_wait(stream, timeout_ns, &Stream::close, queue, tag, error);
}

void muster_stream_release(muster_stream *stream) {
    if (stream == nullptr || unwrap(stream)->forked()) return; // the parent's: nothing here may be touched
    boundary([&]() -> Status {
        unwrap(stream)->host_release();
        return MUSTER_OK;
    });
}

muster_status muster_stream_cancel(muster_stream *stream, uint32_t directions) {
    constexpr uint32_t both = MUSTER_STREAM_READ | MUSTER_STREAM_WRITE;
    return enter(stream, directions != 0 && (directions & ~both) == 0, [&](Stream &s) { return s.cancel(directions); });
}

muster_status muster_stream_watch(muster_stream *stream, uint32_t interest, muster_queue *queue, uint64_t tag) {
    const bool arguments_hold = (interest & ~all_events) == 0 && (interest == 0 || same_context(stream, queue));
    return enter(stream, arguments_hold,
                 [&](Stream &s) { return s.watch(interest, interest == 0 ? nullptr : unwrap(queue), tag); });
}

muster_status muster_stream_reason(muster_stream *stream, uint64_t *out_reason, muster_error *error) {
    return enter(stream, true, [&](Stream &s) { return s.reason(out_reason, error); });
}

muster_status muster_stream_peer(muster_stream *stream, char *out_text, size_t capacity, size_t *out_bytes) {
    return enter(stream, out_bytes != nullptr,
                 [&](Stream &s) { return copy_text(s.peer(), out_text, capacity, out_bytes); });
}

muster_status muster_stream_local_address(muster_stream *stream, char *out_text, size_t capacity, size_t *out_bytes) {
    return enter(stream, out_bytes != nullptr, [&](Stream &s) -> Status {
        const std::string own = s.local_address();
        return own.empty() ? MUSTER_E_UNSUPPORTED : copy_text(own, out_text, capacity, out_bytes);
    });
}

muster_status muster_stream_exit_with_peer(muster_stream *stream, int64_t grace_ns) {
    return enter(stream, true, [&](Stream &s) { return s.exit_with_peer(grace_ns); });
}

muster_status muster_stream_get_stats(muster_stream *stream, muster_stream_stats *out_stats) {
    return enter(stream, out_stats != nullptr, [&](Stream &s) {
        s.stats(*out_stats);
        return MUSTER_OK;
    });
}

} // extern "C"
