/* SPDX-License-Identifier: MIT */
/** @file
 * The stream: a duplex byte stream with half-close, abort and back-pressure by bytes.
 *
 * A stream comes from muster_transport_dial(), from a listener, or as one of two ends from muster_stream_pair(). Its
 * two directions are independent. Each is used by one thread at a time; a second thread waits its turn within its
 * timeout.
 *
 * Calls that take a `timeout_ns` look once with 0 and wait without end with -1; every one reports `out_bytes`, whatever
 * its status. What arrived before the peer ended, aborted or died stays readable before that status shows.
 *
 * What ended a stream is answered by every call that would move its bytes: ::MUSTER_E_PEER, ::MUSTER_E_ABORTED,
 * ::MUSTER_E_CLOSED after muster_context_close(); rarely ::MUSTER_E_NOMEM, ::MUSTER_E_LIMIT (shared memory, and no
 * descriptor was left to wait with) or ::MUSTER_E_CANCELED (an unwanted pump, see muster_request_stream()).
 *
 * Written bytes travel at once: muster_stream_flush() is needed only after muster_stream_commit(), or to wait until
 * everything has left this process. Small writes are gathered while an earlier one is still on its way. */
#ifndef MUSTER_STREAM_H
#define MUSTER_STREAM_H

#include <muster/queue.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Opaque; one end of a duplex byte stream. */
typedef struct muster_stream muster_stream;

/** What a stream can be ready for, or has met; bits of muster_completion::events. */
enum muster_stream_event {
    MUSTER_STREAM_READABLE = 1,    /**< Bytes, the end, or a failure can be read without waiting. */
    MUSTER_STREAM_WRITABLE = 2,    /**< Bytes can be written, or writing fails, without waiting. */
    MUSTER_STREAM_PEER_SILENT = 4, /**< Nothing was heard of the peer for silent_ns; it may be stopped or cut off. */
    MUSTER_STREAM_PEER_BACK = 8,   /**< The silent peer was heard again. */
    MUSTER_STREAM_ENDED = 16 /**< Both directions are over; reads and writes tell why. See muster_stream_reason(). */
};

/** Directions, for muster_stream_cancel(). */
enum muster_stream_direction {
    MUSTER_STREAM_READ = 1, /**< What comes in. */
    MUSTER_STREAM_WRITE = 2 /**< What goes out. */
};

/** Flags of muster_stream_read_into() and muster_stream_read_begin(). */
enum muster_stream_read_flag {
    MUSTER_STREAM_HUGE_PAGES = 1 /**< Advise huge pages for the untouched inside of a large target first. */
};

/** How to make a pair; all zero means the defaults named here. */
typedef struct muster_stream_config {
    uint32_t struct_size;  /**< sizeof(muster_stream_config) of the caller. */
    uint32_t flags;        /**< Zero. */
    uint64_t window_bytes; /**< Most bytes buffered per direction, power of two, 4 KiB to 1 GiB; 0: the context's. */
} muster_stream_config;

/** Counters of a stream since its start. */
typedef struct muster_stream_stats {
    uint64_t bytes_in;         /**< Bytes read by the host. */
    uint64_t bytes_out;        /**< Bytes accepted from the host. */
    uint64_t buffered_in;      /**< Bytes waiting to be read now. */
    uint64_t buffered_out;     /**< Bytes not yet handed on now. */
    uint64_t reads;            /**< Read calls that moved bytes. */
    uint64_t writes;           /**< Write calls that moved bytes. */
    uint64_t waits;            /**< Times a thread went to sleep on this stream. */
    uint64_t wakeups;          /**< Times this end woke the other. */
    uint64_t spins_won;        /**< Waits that ended while spinning. */
    uint64_t spins_lost;       /**< Spins that ended in sleep. */
    uint64_t caller_io;        /**< System calls for this stream made by the host's own threads. */
    uint64_t loop_io;          /**< System calls for this stream made by the progress engine. */
    uint64_t last_received_ns; /**< CLOCK_MONOTONIC of the last sign of the peer, 0 if the transport has none. */
    uint64_t multicast_group;  /**< Not 0: streams of this process with the same number are given one block at once by
                        muster_stream_write_owned_many(). */
    uint64_t reserved[2];      /**< Zero. */
} muster_stream_stats;

/** Makes two connected ends in this process: what is written to one is read from the other.
 * A host keeps one end and pumps the other through whatever it has; that is a whole transport in a few lines.
 * An idle pair costs no descriptor and about 5 KiB, one used both ways about 14 KiB; `ctest -R api.stream_many -V` of
 * the sources measures both. Buffers grow from 4 KiB with use.
 * @param[in]  context     Context they belong to; the streams keep it alive.
 * @param[in]  config      Their size; copied. NULL means all defaults.
 * @param[out] out_first   One end; the caller owns one reference.
 * @param[out] out_second  The other end; the caller owns one reference.
 * @param[out] error       Detail on failure, or NULL.
 * @retval MUSTER_OK       Made.
 * @retval MUSTER_E_ARG    No context, no place, or a value out of range.
 * @retval MUSTER_E_ABI    The config has non-zero fields that are newer than this library.
 * @retval MUSTER_E_NOMEM  Memory ran out.
 * @retval MUSTER_E_CLOSED The context is closed.
 * @retval MUSTER_E_FORKED The context belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_stream_pair(muster_context *context, const muster_stream_config *config,
                                            muster_stream **out_first, muster_stream **out_second, muster_error *error);

/** Writes bytes; returns when all were accepted (copied or sent), not when the peer has read them.
 * @param[in]  stream      Stream to write to.
 * @param[in]  data        First byte; the caller's again when the call returns.
 * @param[in]  size_bytes  How many; any size, 0 does nothing.
 * @param[in]  timeout_ns  Longest wait for room; 0 accepts what fits now.
 * @param[out] out_bytes   Bytes accepted, always set.
 * @retval MUSTER_OK         All accepted.
 * @retval MUSTER_AGAIN      The timeout was 0 and not all fitted; a watch for ::MUSTER_STREAM_WRITABLE is armed again.
 * @retval MUSTER_TIMEOUT    The time passed before all were accepted.
 * @retval MUSTER_E_ARG      No stream, or no data with a size above 0.
 * @retval MUSTER_E_NOMEM    No memory for more; out_bytes were accepted.
 * @retval MUSTER_E_BUSY     A reservation is out.
 * @retval MUSTER_E_CLOSED   This side finished writing or closed the stream.
 * @retval MUSTER_E_PEER     The peer closed or died, or the way to it broke; muster_stream_reason() tells more.
 * @retval MUSTER_E_ABORTED  The stream was aborted; muster_stream_reason() tells why.
 * @retval MUSTER_E_LIMIT    The stream has ended: no descriptor was left to wait with.
 * @retval MUSTER_E_CANCELED muster_stream_cancel() was called meanwhile.
 * @retval MUSTER_E_WOULD_DEADLOCK  The wait could end only by a request this thread must serve.
 * @retval MUSTER_E_FORKED   The stream belongs to the parent process.
 * @threads{any; one at a time per direction, others wait within their timeout} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_stream_write(muster_stream *stream, const void *data, size_t size_bytes,
                                             int64_t timeout_ns, size_t *out_bytes);

/** Writes the same bytes to many streams: to each it is one muster_stream_write() of all of them, but the bytes are
 * taken from memory once, piece by piece, and the slowest stream sets the pace of all. A stream that fails is left out
 * from there on; the others go on.
 * @param[in]  streams       The streams, of one context or of several; each once.
 * @param[in]  count         How many, 1 to 65536.
 * @param[in]  data          First byte; the caller's again when the call returns.
 * @param[in]  size_bytes    How many; any size, 0 does nothing.
 * @param[in]  timeout_ns    Longest wait for room on all of them together; 0 accepts what fits now.
 * @param[out] out_statuses  Shape (count): what muster_stream_write() would have given for each; or NULL.
 * @param[out] out_bytes     Shape (count): bytes each has accepted, always set; or NULL.
 * @retval MUSTER_OK         All accepted by all.
 * @retval MUSTER_AGAIN      The timeout was 0 and not all fitted; none has failed.
 * @retval MUSTER_TIMEOUT    The time passed before all were accepted by all; none has failed.
 * @retval MUSTER_E_ARG      No streams, one of them is NULL, a count out of range, or no data with a size above 0;
 * nothing was written.
 * @retval MUSTER_E_NOMEM    As the next, for want of memory.
 * @retval MUSTER_E_BUSY     The first stream that failed has a reservation out.
 * @retval MUSTER_E_CLOSED   The first stream that failed was finished or closed on this side.
 * @retval MUSTER_E_PEER     The peer of the first stream that failed closed or died, or the way to it broke.
 * @retval MUSTER_E_ABORTED  The first stream that failed was aborted.
 * @retval MUSTER_E_LIMIT    The first stream that failed has ended: no descriptor was left to wait with.
 * @retval MUSTER_E_CANCELED muster_stream_cancel() was called on the first stream that failed.
 * @retval MUSTER_E_WOULD_DEADLOCK  The wait for the first stream that failed could end only by this thread.
 * @retval MUSTER_E_FORKED   The first stream that failed belongs to the parent process.
 * @threads{any; one at a time per direction, others wait within their timeout} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_stream_write_many(muster_stream *const *streams, uint32_t count, const void *data,
                                                  size_t size_bytes, int64_t timeout_ns, muster_status *out_statuses,
                                                  size_t *out_bytes);

/** Hands a buffer over without copying it; it stays the library's until ::MUSTER_DONE_RELEASED is taken off the queue,
 * exactly once, with the bytes sent and how it ended: also on failure, abort and cancel.
 * Writes after it keep their order. Best above 64 KiB.
 * @param[in] stream      Stream to write to.
 * @param[in] data        First byte; unchanged until released. NULL if empty.
 * @param[in] size_bytes  Length.
 * @param[in] queue       Where the release appears.
 * @param[in] tag         Returned in muster_completion::tag.
 * @retval MUSTER_OK         Taken; the release will come, perhaps it has already.
 * @retval MUSTER_AGAIN      No slot in the queue, 64 buffers wait already, or another thread waits in this direction;
 * nothing taken.
 * @retval MUSTER_E_ARG      No stream or queue, no data with a size above 0, or a queue of another context; nothing
 * taken.
 * @retval MUSTER_E_BUSY     A reservation is out; nothing taken.
 * @retval MUSTER_E_CLOSED   Taken, and released with this status: writing is finished. Nothing taken if it is the queue
 * that is closed.
 * @retval MUSTER_E_PEER     Taken, and released with this status: the peer is gone.
 * @retval MUSTER_E_ABORTED  Taken, and released with this status: the stream was aborted.
 * @retval MUSTER_E_LIMIT    Taken, and released with this status: no descriptor was left to wait with.
 * @retval MUSTER_E_CANCELED Taken, and released with this status: muster_stream_cancel() was called meanwhile.
 * @retval MUSTER_E_NOMEM    Nothing taken.
 * @retval MUSTER_E_WOULD_DEADLOCK  A callback of the engine's met another thread in this direction; nothing taken.
 * @retval MUSTER_E_FORKED   Nothing taken: the stream belongs to the parent process.
 * @threads{any; one at a time per direction} @blocks{while another thread moves bytes in this direction} @since 0.1 */
MUSTER_API muster_status muster_stream_write_owned(muster_stream *stream, const void *data, size_t size_bytes,
                                                   muster_queue *queue, uint64_t tag);

/** Hands one buffer over to many streams: to each it is one muster_stream_write_owned() of all of it, with a release of
 * its own. Where a transport can send one message to many peers (`zmq://`), a buffer of 16 KiB or more goes there once
 * for up to 256 streams, and is given to each by the broker; the slowest of these sets the pace, and one that stands
 * still for seconds is left behind.
 * @param[in]  streams       The streams, of one context; each once.
 * @param[in]  count         How many, 1 to 65536.
 * @param[in]  data          First byte; unchanged until the last release. NULL if empty.
 * @param[in]  size_bytes    Length.
 * @param[in]  queue         Where the releases appear.
 * @param[in]  tags          Shape (count): returned in muster_completion::tag; NULL: the place among the streams.
 * @param[out] out_statuses  Shape (count): what muster_stream_write_owned() gave for each; or NULL. A release comes for
 * those of which it says so.
 * @retval MUSTER_OK         Taken by all; the releases will come.
 * @retval MUSTER_E_ARG      No streams or queue, one of the streams is NULL or of another context, a count out of
 * range, or no data with a size above 0; nothing taken.
 * @retval MUSTER_E_NOMEM    Nothing taken by the first stream that failed, or by any, for want of memory.
 * @retval MUSTER_E_FORKED   A stream belongs to the parent process; nothing taken.
 * @retval MUSTER_AGAIN      The first stream that did not take it: no slot in the queue, or as
 * muster_stream_write_owned().
 * @retval MUSTER_E_BUSY     The first stream that did not take it has a reservation out.
 * @retval MUSTER_E_CLOSED   The first stream that failed, or the queue, is closed.
 * @retval MUSTER_E_PEER     The peer of the first stream that failed is gone.
 * @retval MUSTER_E_ABORTED  The first stream that failed was aborted.
 * @retval MUSTER_E_LIMIT    The first stream that failed has ended: no descriptor was left to wait with.
 * @retval MUSTER_E_CANCELED muster_stream_cancel() was called on the first stream that failed.
 * @retval MUSTER_E_WOULD_DEADLOCK  As muster_stream_write_owned(), of the first stream that failed.
 * @threads{any; one at a time per direction} @blocks{while another thread moves bytes in this direction} @since 0.1 */
MUSTER_API muster_status muster_stream_write_owned_many(muster_stream *const *streams, uint32_t count, const void *data,
                                                        size_t size_bytes, muster_queue *queue, const uint64_t *tags,
                                                        muster_status *out_statuses);

/** Reserves room inside the outgoing buffer, to be filled in place and handed on by muster_stream_commit().
 * @param[in]  stream      Stream to write to.
 * @param[in]  min_bytes   Least room wanted, 1 to a quarter of window_bytes.
 * @param[in]  timeout_ns  Longest wait for the room.
 * @param[out] out_data    First byte of the room; valid until commit.
 * @param[out] out_bytes   Size of the room, at least min_bytes on success.
 * @retval MUSTER_OK         Reserved; no other write until commit.
 * @retval MUSTER_AGAIN      No room, and the timeout was 0.
 * @retval MUSTER_TIMEOUT    No room in time.
 * @retval MUSTER_E_ARG      No stream or place, or min_bytes out of range.
 * @retval MUSTER_E_BUSY     A reservation is already out.
 * @retval MUSTER_E_NOMEM    Memory ran out.
 * @retval MUSTER_E_CLOSED   This side finished writing or closed the stream.
 * @retval MUSTER_E_PEER     The peer closed or died, or the way to it broke.
 * @retval MUSTER_E_ABORTED  The stream was aborted.
 * @retval MUSTER_E_LIMIT    The stream has ended: no descriptor was left to wait with.
 * @retval MUSTER_E_CANCELED muster_stream_cancel() was called meanwhile.
 * @retval MUSTER_E_WOULD_DEADLOCK  The wait could end only by a request this thread must serve.
 * @retval MUSTER_E_FORKED   The stream belongs to the parent process.
 * @threads{any; one at a time per direction, others wait within their timeout} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_stream_reserve(muster_stream *stream, size_t min_bytes, int64_t timeout_ns,
                                               void **out_data, size_t *out_bytes);

/** Hands on the first bytes of a reservation. They may be gathered with later ones until muster_stream_flush().
 * @param[in] stream      Stream with a reservation out.
 * @param[in] size_bytes  Bytes filled in, 0 up to the size reserved; 0 gives the reservation back.
 * @retval MUSTER_OK        Handed on.
 * @retval MUSTER_E_ARG     No stream, no reservation, or more than was reserved.
 * @retval MUSTER_E_CLOSED  This side closed the stream meanwhile; nothing was handed on.
 * @retval MUSTER_E_PEER    The peer closed or died meanwhile; nothing was handed on.
 * @retval MUSTER_E_ABORTED The stream was aborted meanwhile; nothing was handed on.
 * @retval MUSTER_E_LIMIT    The stream has ended: no descriptor was left to wait with.
 * @retval MUSTER_E_NOMEM    The stream has ended: there was no memory for it.
 * @retval MUSTER_E_CANCELED The stream has ended: its pump is no longer wanted; see muster_request_stream().
 * @retval MUSTER_E_WOULD_DEADLOCK  A callback of the engine's met another thread in this direction; ask again.
 * @retval MUSTER_E_FORKED  The stream belongs to the parent process.
 * @threads{the one that reserved} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_stream_commit(muster_stream *stream, size_t size_bytes);

/** Waits until every byte accepted so far has left this process (for shared memory and pairs: can be read by the peer).
 * @param[in] stream      Stream to flush.
 * @param[in] timeout_ns  Longest wait; 0 only starts what can be started now.
 * @retval MUSTER_OK         Nothing is held back any more.
 * @retval MUSTER_AGAIN      Bytes are still held back, and the timeout was 0.
 * @retval MUSTER_TIMEOUT    Bytes are still held back.
 * @retval MUSTER_E_ARG      No stream.
 * @retval MUSTER_E_CLOSED   The context is closed.
 * @retval MUSTER_E_PEER     The peer closed or died, or the way to it broke.
 * @retval MUSTER_E_ABORTED  The stream was aborted.
 * @retval MUSTER_E_LIMIT    The stream has ended: no descriptor was left to wait with.
 * @retval MUSTER_E_NOMEM    The stream has ended: there was no memory for it.
 * @retval MUSTER_E_CANCELED muster_stream_cancel() was called meanwhile.
 * @retval MUSTER_E_WOULD_DEADLOCK  The wait could end only by a request this thread must serve.
 * @retval MUSTER_E_FORKED   The stream belongs to the parent process.
 * @threads{any; one at a time per direction, others wait within their timeout} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_stream_flush(muster_stream *stream, int64_t timeout_ns);

/** Begins to flush, as muster_stream_flush() does; ::MUSTER_DONE_CALL comes with its status. Until then the direction
 * is in use: a write waits for it, as for a flush in another thread.
 * @param[in]  stream      Stream to flush.
 * @param[in]  timeout_ns  Longest time it may take; -1 has no end.
 * @param[in]  queue       Queue of the same context for the completion.
 * @param[in]  tag         Returned in muster_completion::tag.
 * @param[out] error       Detail on failure, or NULL.
 * @begun{::MUSTER_DONE_CALL}
 * @retval MUSTER_E_ARG     A value is missing or out of range, or the queue is of another context.
 * @retval MUSTER_E_NOMEM   Memory or threads ran out.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_stream_flush_begin(muster_stream *stream, int64_t timeout_ns, muster_queue *queue,
                                                   uint64_t tag, muster_error *error);

/** Reads what is there, at least one byte.
 * @param[in]  stream          Stream to read from.
 * @param[out] out_data        Where the bytes go.
 * @param[in]  capacity_bytes  Room there, at least 1.
 * @param[in]  timeout_ns      Longest wait for the first byte; 0 looks once.
 * @param[out] out_bytes       Bytes read, always set.
 * @retval MUSTER_OK         One byte or more.
 * @retval MUSTER_AGAIN      Nothing there, and the timeout was 0; a watch for ::MUSTER_STREAM_READABLE is armed again.
 * @retval MUSTER_TIMEOUT    Nothing came in time.
 * @retval MUSTER_E_ARG      No stream, no place, or no room.
 * @retval MUSTER_E_BUSY     Bytes are shown by muster_stream_peek().
 * @retval MUSTER_E_END      The peer finished writing, and everything was read.
 * @retval MUSTER_E_CLOSED   This side closed the stream.
 * @retval MUSTER_E_PEER     The peer died or the way to it broke; everything before was read.
 * @retval MUSTER_E_ABORTED  The stream was aborted; muster_stream_reason() tells why.
 * @retval MUSTER_E_LIMIT    The stream has ended: no descriptor was left to wait with.
 * @retval MUSTER_E_NOMEM    The stream has ended: there was no memory for it.
 * @retval MUSTER_E_CANCELED muster_stream_cancel() was called meanwhile.
 * @retval MUSTER_E_WOULD_DEADLOCK  The wait could end only by a request this thread must serve.
 * @retval MUSTER_E_FORKED   The stream belongs to the parent process.
 * @threads{any; one at a time per direction, others wait within their timeout} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_stream_read(muster_stream *stream, void *out_data, size_t capacity_bytes,
                                            int64_t timeout_ns, size_t *out_bytes);

/** Reads exactly so many bytes, straight into the caller's memory without a stage in between.
 * @param[in]  stream      Stream to read from.
 * @param[out] out_data    Where the bytes go.
 * @param[in]  size_bytes  How many; any size, 0 does nothing.
 * @param[in]  flags       ::muster_stream_read_flag values, or'ed.
 * @param[in]  timeout_ns  Longest wait for all of them; 0 takes what is there.
 * @param[out] out_bytes   Bytes read, always set; after a shortage the rest can be asked for again.
 * @retval MUSTER_OK         All of them.
 * @retval MUSTER_AGAIN      Fewer were there, and the timeout was 0; a watch is armed again.
 * @retval MUSTER_TIMEOUT    Fewer came in time.
 * @retval MUSTER_E_ARG      No stream, no place with a size above 0, or unknown flags.
 * @retval MUSTER_E_BUSY     Bytes are shown by muster_stream_peek().
 * @retval MUSTER_E_END      The peer finished writing before that many.
 * @retval MUSTER_E_CLOSED   This side closed the stream.
 * @retval MUSTER_E_PEER     The peer died or the way to it broke before that many.
 * @retval MUSTER_E_ABORTED  The stream was aborted.
 * @retval MUSTER_E_LIMIT    The stream has ended: no descriptor was left to wait with.
 * @retval MUSTER_E_NOMEM    The stream has ended: there was no memory for it.
 * @retval MUSTER_E_CANCELED muster_stream_cancel() was called meanwhile.
 * @retval MUSTER_E_WOULD_DEADLOCK  The wait could end only by a request this thread must serve.
 * @retval MUSTER_E_FORKED   The stream belongs to the parent process.
 * @threads{any; one at a time per direction, others wait within their timeout} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_stream_read_into(muster_stream *stream, void *out_data, size_t size_bytes,
                                                 uint32_t flags, int64_t timeout_ns, size_t *out_bytes);

/** Begins to read exactly so many bytes; the engine fills the caller's memory, and ::MUSTER_DONE_READ comes with the
 * count and how it ended. Reads begun or called later come after it.
 * @param[in]  stream      Stream to read from.
 * @param[out] out_data    Where the bytes go; the library's until the completion, or until cancel has returned.
 * @param[in]  size_bytes  How many, at least 1.
 * @param[in]  flags       ::muster_stream_read_flag values, or'ed.
 * @param[in]  queue       Queue of the same context for the completion.
 * @param[in]  tag         Returned in muster_completion::tag.
 * @retval MUSTER_OK       Begun; the completion will come.
 * @retval MUSTER_AGAIN    No slot in the queue, 64 reads wait already, or another thread waits in this direction; not
 * begun.
 * @retval MUSTER_E_ARG    No stream, place, size or queue, unknown flags, or a queue of another context; not begun.
 * @retval MUSTER_E_BUSY   Bytes are shown by muster_stream_peek(); not begun.
 * @retval MUSTER_E_CANCELED muster_stream_cancel() was called meanwhile; not begun.
 * @retval MUSTER_E_NOMEM  Not begun.
 * @retval MUSTER_E_CLOSED This side closed the stream, or the queue is closed; not begun.
 * @retval MUSTER_E_WOULD_DEADLOCK  A callback of the engine's met another thread in this direction; not begun.
 * @retval MUSTER_E_FORKED The stream belongs to the parent process.
 * @threads{any; one at a time per direction} @blocks{while another thread moves bytes in this direction} @since 0.1 */
MUSTER_API muster_status muster_stream_read_begin(muster_stream *stream, void *out_data, size_t size_bytes,
                                                  uint32_t flags, muster_queue *queue, uint64_t tag);

/** Shows bytes where they lie, without taking them.
 * @param[in]  stream      Stream to read from.
 * @param[in]  min_bytes   Least wanted, 1 to a quarter of window_bytes.
 * @param[in]  timeout_ns  Longest wait for them.
 * @param[out] out_data    First byte; valid until muster_stream_consume().
 * @param[out] out_bytes   Bytes shown: at least min_bytes on success, what there is otherwise.
 * @retval MUSTER_OK         Shown; no other read until consume.
 * @retval MUSTER_AGAIN      Fewer there, and the timeout was 0; nothing is shown.
 * @retval MUSTER_TIMEOUT    Fewer came in time; nothing is shown.
 * @retval MUSTER_E_ARG      No stream or place, or min_bytes out of range.
 * @retval MUSTER_E_BUSY     Bytes are already shown.
 * @retval MUSTER_E_END      The peer finished writing before that many; what is left can be read.
 * @retval MUSTER_E_NOMEM    Memory ran out.
 * @retval MUSTER_E_CLOSED   This side closed the stream.
 * @retval MUSTER_E_PEER     The peer died before that many; what is left can be read.
 * @retval MUSTER_E_ABORTED  The stream was aborted.
 * @retval MUSTER_E_LIMIT    The stream has ended: no descriptor was left to wait with.
 * @retval MUSTER_E_CANCELED muster_stream_cancel() was called meanwhile.
 * @retval MUSTER_E_WOULD_DEADLOCK  The wait could end only by a request this thread must serve.
 * @retval MUSTER_E_FORKED   The stream belongs to the parent process.
 * @threads{any; one at a time per direction, others wait within their timeout} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_stream_peek(muster_stream *stream, size_t min_bytes, int64_t timeout_ns,
                                            const void **out_data, size_t *out_bytes);

/** Takes the first bytes of what muster_stream_peek() showed.
 * @param[in] stream      Stream with bytes shown.
 * @param[in] size_bytes  How many, 0 up to the number shown.
 * @retval MUSTER_OK       Taken; nothing is shown any more.
 * @retval MUSTER_E_ARG    No stream, nothing shown, or more than was shown.
 * @retval MUSTER_E_WOULD_DEADLOCK  A callback of the engine's met another thread in this direction; ask again.
 * @retval MUSTER_E_FORKED The stream belongs to the parent process.
 * @threads{the one that peeked} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_stream_consume(muster_stream *stream, size_t size_bytes);

/** Finishes writing (half-close): the peer reads everything and then ::MUSTER_E_END; this side can still read.
 * @param[in] stream  Stream to finish.
 * @retval MUSTER_OK        Finished, or it was before.
 * @retval MUSTER_E_ARG     No stream.
 * @retval MUSTER_E_BUSY    A reservation is out.
 * @retval MUSTER_E_PEER    The peer is gone.
 * @retval MUSTER_E_ABORTED The stream was aborted.
 * @retval MUSTER_E_LIMIT    The stream has ended: no descriptor was left to wait with.
 * @retval MUSTER_E_NOMEM    The stream has ended: there was no memory for it.
 * @retval MUSTER_E_CANCELED The stream has ended: its pump is no longer wanted; see muster_request_stream().
 * @retval MUSTER_E_CLOSED  This side closed the stream.
 * @retval MUSTER_E_FORKED  The stream belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_stream_finish(muster_stream *stream);

/** Ends both directions at once and tells the peer why; bytes on their way may be lost, which both sides are told.
 * @param[in] stream        Stream to abort.
 * @param[in] reason        The host's own code, passed to the peer.
 * @param[in] text          Text for people, or NULL.
 * @param[in] text_bytes    Length of the text, at most 200 bytes.
 * @retval MUSTER_OK       Aborted, or it was over before.
 * @retval MUSTER_E_ARG    No stream, or a text that is too long, or NULL with a length.
 * @retval MUSTER_E_FORKED The stream belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_stream_abort(muster_stream *stream, uint64_t reason, const char *text,
                                             size_t text_bytes);

/** Closes in order: finishes writing, waits until everything has left, then ends. Bytes of a socket have left when
 * the kernel has taken them, those of a plug-in when the plug-in has, of a host-served transport when they lie in the
 * pump; over shared memory, inproc and pairs when the peer has read them. Asked again it does not wait: it tells how it
 * stands.
 * @param[in] stream      Stream to close; the caller keeps its reference.
 * @param[in] timeout_ns  Longest wait; when it is over the rest is sent behind the caller's back, up to 10 s more.
 * @retval MUSTER_OK        Closed, and everything has left.
 * @retval MUSTER_AGAIN     Closed; the rest is being sent, and the timeout was 0, or it had been closed before.
 * @retval MUSTER_TIMEOUT   Closed; the rest is being sent.
 * @retval MUSTER_E_ARG     No stream.
 * @retval MUSTER_E_CLOSED  Closed; the context was closed before, bytes may be lost.
 * @retval MUSTER_E_PEER    Closed; the peer was gone, bytes may be lost.
 * @retval MUSTER_E_ABORTED Closed; it had been aborted.
 * @retval MUSTER_E_LIMIT    Closed; the stream had ended: no descriptor was left to wait with.
 * @retval MUSTER_E_NOMEM    Closed; the stream had ended: there was no memory for it.
 * @retval MUSTER_E_WOULD_DEADLOCK  Closed; the rest is being sent, but this thread must not wait for it.
 * @retval MUSTER_E_CANCELED Closed; the wait was cancelled, the rest is being sent.
 * @retval MUSTER_E_FORKED  The stream belongs to the parent process.
 * @threads{any} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_stream_close(muster_stream *stream, int64_t timeout_ns);

/** Begins to close, as muster_stream_close() does; ::MUSTER_DONE_CALL comes with its status. To cancel it ends the
 * wait: the stream is closed all the same, and the rest is sent in the background.
 * @param[in]  stream      Stream to close; the caller keeps its reference.
 * @param[in]  timeout_ns  Longest time until everything has left; -1 has no end.
 * @param[in]  queue       Queue of the same context for the completion.
 * @param[in]  tag         Returned in muster_completion::tag.
 * @param[out] error       Detail on failure, or NULL.
 * @begun{::MUSTER_DONE_CALL}
 * @retval MUSTER_E_ARG     A value is missing or out of range, or the queue is of another context.
 * @retval MUSTER_E_NOMEM   Memory or threads ran out.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_stream_close_begin(muster_stream *stream, int64_t timeout_ns, muster_queue *queue,
                                                   uint64_t tag, muster_error *error);

/** Releases the handle; the stream closes as by muster_stream_close() with no wait. Safe while another thread is inside
 * a call on it: that call returns ::MUSTER_E_CLOSED. Reads that were begun complete with ::MUSTER_E_CLOSED before this
 * returns; buffers handed over go on their way, and stay lent until their completion or the end of its queue. Memory
 * shown by muster_stream_peek() or muster_stream_reserve() must not be accessed any more.
 * @param[in] stream  What to release; NULL has no effect.
 * @threads{any, finalizers included} @blocks{no} @since 0.1 */
MUSTER_API void muster_stream_release(muster_stream *stream);

/** Ends the waits and operations under way in one or both directions with ::MUSTER_E_CANCELED.
 * When it returns no library thread will touch their buffers again; what was moved is told by their completions. The
 * stream stays usable, unless a buffer of muster_stream_write_owned() was taken in part: then both sides find it
 * aborted.
 * @param[in] stream      Stream whose operations end.
 * @param[in] directions  ::muster_stream_direction values, or'ed.
 * @retval MUSTER_OK       Nothing is under way any more.
 * @retval MUSTER_E_ARG    No stream, or unknown directions.
 * @retval MUSTER_E_FORKED The stream belongs to the parent process.
 * @threads{any} @blocks{for the copy of one piece, at most 256 KiB} @since 0.1 */
MUSTER_API muster_status muster_stream_cancel(muster_stream *stream, uint32_t directions);

/** Watches a stream: ::MUSTER_EVENT_READY appears in the queue when it becomes ready for what is wanted.
 * A direction is armed when the watch is set and again whenever a call on it answers ::MUSTER_AGAIN; one that is ready
 * already tells at once. Silence, return and end of the peer are always told once they happen.
 * @param[in] stream    Stream to watch.
 * @param[in] interest  ::muster_stream_event values, or'ed; 0 stops the watch, and no event of it will be taken
 *                      after return.
 * @param[in] queue     Queue of the same context; kept alive by the watch. Ignored if interest is 0.
 * @param[in] tag       Returned in muster_completion::tag.
 * @retval MUSTER_OK       Watched.
 * @retval MUSTER_E_ARG    No stream or queue, unknown bits, or a queue of another context.
 * @retval MUSTER_E_NOMEM  Memory ran out.
 * @retval MUSTER_E_LIMIT  No descriptor is left.
 * @retval MUSTER_E_CLOSED This side closed the stream, or the queue is closed.
 * @retval MUSTER_E_FORKED The stream belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_stream_watch(muster_stream *stream, uint32_t interest, muster_queue *queue,
                                             uint64_t tag);

/** Tells why a stream ended. A peer that closed in order ends it with ::MUSTER_E_PEER, "the peer has closed the
 * stream". Not so between the two ends of a pair or of inproc, which share one memory: there it is still ::MUSTER_OK
 * without ::MUSTER_STREAM_ENDED, while reading gives ::MUSTER_E_END and writing ::MUSTER_E_PEER.
 * @param[in]  stream      Stream to query.
 * @param[out] out_reason  The code given to muster_stream_abort() by whoever aborted, 0 otherwise; or NULL.
 * @param[out] error       Filled with the status and a sentence: who, and why; or NULL.
 * @retval MUSTER_OK        It has not ended.
 * @retval MUSTER_E_ARG     No stream.
 * @retval MUSTER_E_PEER    The peer closed or died, or the way to it broke.
 * @retval MUSTER_E_ABORTED It was aborted.
 * @retval MUSTER_E_LIMIT    It has ended: no descriptor was left to wait with.
 * @retval MUSTER_E_NOMEM    It has ended: there was no memory for it.
 * @retval MUSTER_E_CANCELED It has ended: its pump is no longer wanted; see muster_request_stream().
 * @retval MUSTER_E_CLOSED  This side closed it, or the context.
 * @retval MUSTER_E_FORKED  The stream belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_stream_reason(muster_stream *stream, uint64_t *out_reason, muster_error *error);

/** Names the peer: the address text that was dialled or that the connection came from.
 * @param[in]  stream      Stream to query.
 * @param[out] out_text    Destination of the text, NUL-terminated; NULL to get the size only.
 * @param[in]  capacity    Size of the destination, the terminator included.
 * @param[out] out_bytes   Length of the text, without the terminator.
 * @copied
 * @retval MUSTER_E_ARG    No stream, or no place for the length.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_stream_peer(muster_stream *stream, char *out_text, size_t capacity, size_t *out_bytes);

/** Ends this process when the peer of this stream, or the way to it, is gone: SIGTERM to itself from a library thread,
 * then SIGKILL. For workers, whose computing threads cannot notice. An end made here (close, abort, the context's
 * close) does not count. This and muster_process_exit_with() are the only places where Muster signals its own process.
 * @param[in] stream    Stream to the master.
 * @param[in] grace_ns  Time between SIGTERM and SIGKILL, 0: none; negative takes it back.
 * @retval MUSTER_OK             Set.
 * @retval MUSTER_E_ARG          No stream.
 * @retval MUSTER_E_UNSUPPORTED  The context has no thread of its own, or the other end is in it, too (a pair, inproc).
 * @retval MUSTER_E_FORKED       The stream belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_stream_exit_with_peer(muster_stream *stream, int64_t grace_ns);

/** Reads the counters of a stream.
 * @param[in]  stream     Stream to query.
 * @param[out] out_stats  Filled.
 * @filled
 * @retval MUSTER_E_ARG    No stream or no destination.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_stream_get_stats(muster_stream *stream, muster_stream_stats *out_stats);

#ifdef __cplusplus
}
#endif
#endif
