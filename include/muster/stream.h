/* SPDX-License-Identifier: MIT */
/** @file
 * The stream: a duplex byte stream with half-close, abort and back-pressure by bytes.
 *
 * A stream comes from muster_transport_dial(), from a listener, or as one of two ends from muster_stream_pair(). Its
 * two directions are independent. Each is used by one thread at a time; a second thread waits for the first one within
 * its timeout.
 *
 * Calls that take a `timeout_ns` do not wait with 0, and wait without limit with -1; each reports `out_bytes`, whatever
 * its status. Bytes that arrived before the peer ended, aborted or died can be read before that status is returned.
 *
 * After a stream has ended, every call that would move its bytes returns the reason: ::MUSTER_E_PEER;
 * ::MUSTER_E_ABORTED; ::MUSTER_E_CLOSED after muster_context_close(); rarely ::MUSTER_E_NOMEM, ::MUSTER_E_LIMIT (shared
 * memory, and no descriptor was left to wait with) or ::MUSTER_E_CANCELED (a pump that is no longer needed, see
 * muster_request_stream()).
 *
 * Written bytes are sent at once: muster_stream_flush() is needed only after muster_stream_commit(), or to wait until
 * everything has left this process. Small writes are combined while an earlier one is still being sent; over sockets
 * also after more than 32 writes of up to 4 KiB that have followed each other within 20 us, without a read: these are
 * sent within about 0.1 ms. Over MPI, in a context with a thread, a small write that follows a read or a flush within a
 * millisecond is sent within a millisecond, or by the next read or flush. */
#ifndef MUSTER_STREAM_H
#define MUSTER_STREAM_H

#include <muster/queue.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Opaque; one end of a duplex byte stream. */
typedef struct muster_stream muster_stream;

/** Events of a stream; bits of muster_completion::events. */
enum muster_stream_event {
    MUSTER_STREAM_READABLE = 1, /**< Bytes, the end, or a failure can be read without waiting. */
    MUSTER_STREAM_WRITABLE = 2, /**< Bytes can be written, or writing fails, without waiting. */
    MUSTER_STREAM_PEER_SILENT =
        4, /**< Nothing was received from the peer for silent_ns; it may be stopped or unreachable. */
    MUSTER_STREAM_PEER_BACK = 8, /**< The silent peer has sent again. */
    MUSTER_STREAM_ENDED =
        16 /**< Both directions have ended; reads and writes return the reason. See muster_stream_reason(). */
};

/** Directions, for muster_stream_cancel(). */
enum muster_stream_direction {
    MUSTER_STREAM_READ = 1, /**< The incoming direction. */
    MUSTER_STREAM_WRITE = 2 /**< The outgoing direction. */
};

/** Flags of muster_stream_read_into() and muster_stream_read_begin(). */
enum muster_stream_read_flag {
    MUSTER_STREAM_HUGE_PAGES = 1 /**< First advise huge pages for the untouched inner part of a large destination. */
};

/** How to make a pair of streams; all zero means the defaults named here. */
typedef struct muster_stream_config {
    uint32_t struct_size;  /**< sizeof(muster_stream_config) of the caller. */
    uint32_t flags;        /**< Zero. */
    uint64_t window_bytes; /**< Maximum bytes buffered per direction, a power of two, 4 KiB to 1 GiB; 0: as for the
                                context. */
} muster_stream_config;

/** Counters of a stream since its start. */
typedef struct muster_stream_stats {
    uint64_t bytes_in;         /**< Bytes read by the host. */
    uint64_t bytes_out;        /**< Bytes accepted from the host. */
    uint64_t buffered_in;      /**< Bytes that wait to be read. */
    uint64_t buffered_out;     /**< Bytes that are not sent yet. */
    uint64_t reads;            /**< Read calls that moved bytes. */
    uint64_t writes;           /**< Write calls that moved bytes. */
    uint64_t waits;            /**< Times a thread went to sleep on this stream. */
    uint64_t wakeups;          /**< Times this end woke the other. */
    uint64_t spins_won;        /**< Waits that ended while spinning. */
    uint64_t spins_lost;       /**< Spins that ended in sleep. */
    uint64_t caller_io;        /**< System calls for this stream made by the host's own threads. */
    uint64_t loop_io;          /**< System calls for this stream made by the progress engine. */
    uint64_t last_received_ns; /**< CLOCK_MONOTONIC at which bytes of the peer were last received; 0 if the transport
                                    does not report it. */
    uint64_t multicast_group;  /**< Not 0: muster_stream_write_owned_many() can send one message to the streams of this
                                    process with the same number. */
    uint64_t round_trip_ns; /**< Round trip to the host of the peer, as the kernel estimates it from acknowledgements of
                                 TCP; 0: the bytes take another way, or it is not known yet. */
    uint64_t reserved;      /**< Zero. */
} muster_stream_stats;

/** Makes two connected ends in this process: what is written to one is read from the other.
 * A host that keeps one end and transports the bytes of the other has a complete transport in a few lines.
 * An idle pair costs no descriptor and about 5 KiB, one used both ways about 14 KiB; `ctest -R api.stream_many -V` of
 * the sources measures both. Buffers grow from 4 KiB with use.
 * @param[in]  context     Context of the streams; they keep it alive.
 * @param[in]  config      Options; copied. NULL means all defaults.
 * @param[out] out_first   One end; the caller owns one reference.
 * @param[out] out_second  The other end; the caller owns one reference.
 * @param[out] error       Detail on failure, or NULL.
 * @retval MUSTER_OK       The streams were made.
 * @retval MUSTER_E_ARG    No context, no destination, or a value out of range.
 * @retval MUSTER_E_ABI    The config has non-zero fields that are newer than this library.
 * @retval MUSTER_E_NOMEM  Memory ran out.
 * @retval MUSTER_E_CLOSED The context is closed.
 * @retval MUSTER_E_FORKED The context belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_stream_pair(muster_context *context, const muster_stream_config *config,
                                            muster_stream **out_first, muster_stream **out_second, muster_error *error);

/** Writes bytes; returns when all were accepted (copied or sent), not when the peer has read them.
 * @param[in]  stream      Stream to write to.
 * @param[in]  data        The bytes; lent until the call returns.
 * @param[in]  size_bytes  Number of bytes; 0 has no effect.
 * @param[in]  timeout_ns  Maximum wait for room; 0 accepts what fits without waiting, -1: no limit.
 * @param[out] out_bytes   Bytes accepted, always set.
 * @retval MUSTER_OK         All bytes were accepted.
 * @retval MUSTER_AGAIN      The timeout was 0 and not all fitted; a watch for ::MUSTER_STREAM_WRITABLE is armed again.
 * @retval MUSTER_TIMEOUT    The time passed before all were accepted.
 * @retval MUSTER_E_ARG      No stream, or no data with a size above 0.
 * @retval MUSTER_E_NOMEM    Memory ran out; out_bytes were accepted.
 * @retval MUSTER_E_BUSY     A reservation is outstanding.
 * @retval MUSTER_E_CLOSED   This side finished writing or closed the stream.
 * @retval MUSTER_E_PEER     The peer closed or died, or the connection broke; muster_stream_reason() has the detail.
 * @retval MUSTER_E_ABORTED  The stream was aborted; muster_stream_reason() has the reason.
 * @retval MUSTER_E_LIMIT    The stream has ended: no descriptor was left to wait with.
 * @retval MUSTER_E_CANCELED muster_stream_cancel() was called during the call.
 * @retval MUSTER_E_WOULD_DEADLOCK  The wait could only end by a request that this thread has to serve.
 * @retval MUSTER_E_FORKED   The stream belongs to the parent process.
 * @threads{any; one at a time per direction, others wait within their timeout} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_stream_write(muster_stream *stream, const void *data, size_t size_bytes,
                                             int64_t timeout_ns, size_t *out_bytes);

/** Writes the same bytes to many streams: to each it is one muster_stream_write() of all of them, but the bytes are
 * read from memory once, piece by piece, and the slowest stream determines the speed of all. A stream that fails is
 * left out from then on; the others continue.
 * @param[in]  streams       The streams, of one context or of several; each once.
 * @param[in]  count         Number of streams, 1 to 65536.
 * @param[in]  data          The bytes; lent until the call returns.
 * @param[in]  size_bytes    Number of bytes; 0 has no effect.
 * @param[in]  timeout_ns    Maximum wait for room on all of them together; 0 accepts what fits without waiting.
 * @param[out] out_statuses  Shape (count): for each the status that muster_stream_write() would have returned; or NULL.
 * @param[out] out_bytes     Shape (count): bytes that each has accepted, always set; or NULL.
 * @retval MUSTER_OK         All streams have accepted all bytes.
 * @retval MUSTER_AGAIN      The timeout was 0 and not all fitted; none has failed.
 * @retval MUSTER_TIMEOUT    The time passed before all were accepted by all; none has failed.
 * @retval MUSTER_E_ARG      No streams, one of them is NULL, a count out of range, or no data with a size above 0;
 *                           nothing was written.
 * @retval MUSTER_E_NOMEM    As the following statuses, because memory ran out.
 * @retval MUSTER_E_BUSY     The first stream that failed has an outstanding reservation.
 * @retval MUSTER_E_CLOSED   The first stream that failed was finished or closed on this side.
 * @retval MUSTER_E_PEER     The peer of the first stream that failed closed or died, or the connection broke.
 * @retval MUSTER_E_ABORTED  The first stream that failed was aborted.
 * @retval MUSTER_E_LIMIT    The first stream that failed has ended: no descriptor was left to wait with.
 * @retval MUSTER_E_CANCELED muster_stream_cancel() was called on the first stream that failed.
 * @retval MUSTER_E_WOULD_DEADLOCK  The wait for the first stream that failed could end only by this thread.
 * @retval MUSTER_E_FORKED   The first stream that failed belongs to the parent process.
 * @threads{any; one at a time per direction, others wait within their timeout} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_stream_write_many(muster_stream *const *streams, uint32_t count, const void *data,
                                                  size_t size_bytes, int64_t timeout_ns, muster_status *out_statuses,
                                                  size_t *out_bytes);

/** Writes a buffer without copying it. The buffer is lent to the library until ::MUSTER_DONE_RELEASED is taken off the
 * queue, which follows exactly once, with the number of bytes sent and the status, also on failure, abort and cancel.
 * Later writes are sent after it. Best above 64 KiB.
 * @param[in] stream      Stream to write to.
 * @param[in] data        The bytes; not to be changed until released. NULL if empty.
 * @param[in] size_bytes  Length.
 * @param[in] queue       Queue of the same context for the release.
 * @param[in] tag         Returned in muster_completion::tag.
 * @retval MUSTER_OK         Accepted; the release follows, perhaps before this call returns.
 * @retval MUSTER_AGAIN      No slot in the queue, 64 buffers wait already, or another thread waits in this
 *                           direction; nothing was accepted.
 * @retval MUSTER_E_ARG      No stream or queue, no data with a size above 0, or a queue of another context; nothing
 *                           was accepted.
 * @retval MUSTER_E_BUSY     A reservation is outstanding; nothing was accepted.
 * @retval MUSTER_E_CLOSED   Accepted, and released with this status: writing is finished. Nothing was accepted if it
 *                           is the queue that is closed.
 * @retval MUSTER_E_PEER     Accepted, and released with this status: the peer is gone.
 * @retval MUSTER_E_ABORTED  Accepted, and released with this status: the stream was aborted.
 * @retval MUSTER_E_LIMIT    Accepted, and released with this status: no descriptor was left to wait with.
 * @retval MUSTER_E_CANCELED Accepted, and released with this status: muster_stream_cancel() was called during the call.
 * @retval MUSTER_E_NOMEM    Nothing was accepted.
 * @retval MUSTER_E_WOULD_DEADLOCK  Called inside a callback of the engine while another thread uses this direction;
 *                                  nothing was accepted.
 * @retval MUSTER_E_FORKED   Nothing was accepted: the stream belongs to the parent process.
 * @threads{any; one at a time per direction} @blocks{while another thread moves bytes in this direction} @since 0.1 */
MUSTER_API muster_status muster_stream_write_owned(muster_stream *stream, const void *data, size_t size_bytes,
                                                   muster_queue *queue, uint64_t tag);

/** Writes one buffer to many streams without copying it: for each stream as one muster_stream_write_owned() of all of
 * it, with a release of its own. Where a transport can send one message to many peers (`zmq://`), a buffer of 16 KiB or
 * more is sent once for up to 256 streams, and the broker delivers it to each; the slowest of these determines the
 * speed, and a stream that makes no progress for seconds is then served separately.
 * @param[in]  streams       The streams, of one context; each once.
 * @param[in]  count         Number of streams, 1 to 65536.
 * @param[in]  data          The bytes; not to be changed until the last release. NULL if empty.
 * @param[in]  size_bytes    Length.
 * @param[in]  queue         Queue of the same context for the releases.
 * @param[in]  tags          Shape (count): returned in muster_completion::tag; NULL: the index of the stream.
 * @param[out] out_statuses  Shape (count): for each the status of muster_stream_write_owned(); or NULL. A release
 *                           follows for the streams whose status says so.
 * @retval MUSTER_OK         Accepted by all streams; the releases follow.
 * @retval MUSTER_E_ARG      No streams or queue, one of the streams is NULL or of another context, a count out of
 *                           range, or no data with a size above 0; nothing was accepted.
 * @retval MUSTER_E_NOMEM    Nothing was accepted by the first stream that failed, or by any, because memory ran out.
 * @retval MUSTER_E_FORKED   A stream belongs to the parent process; nothing was accepted.
 * @retval MUSTER_AGAIN      The first stream that did not accept it: no slot in the queue, or as
 *                           muster_stream_write_owned().
 * @retval MUSTER_E_BUSY     The first stream that did not accept it has an outstanding reservation.
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

/** Reserves room inside the outgoing buffer, to be filled in place and sent by muster_stream_commit().
 * @param[in]  stream      Stream to write to.
 * @param[in]  min_bytes   Minimum size of the room, 1 to a quarter of window_bytes.
 * @param[in]  timeout_ns  Maximum wait for the room.
 * @param[out] out_data    First byte of the room; valid until commit.
 * @param[out] out_bytes   Size of the room, at least min_bytes on success.
 * @retval MUSTER_OK         Reserved; no other write until commit.
 * @retval MUSTER_AGAIN      No room, and the timeout was 0.
 * @retval MUSTER_TIMEOUT    No room in time.
 * @retval MUSTER_E_ARG      No stream or destination, or min_bytes out of range.
 * @retval MUSTER_E_BUSY     A reservation is already outstanding.
 * @retval MUSTER_E_NOMEM    Memory ran out.
 * @retval MUSTER_E_CLOSED   This side finished writing or closed the stream.
 * @retval MUSTER_E_PEER     The peer closed or died, or the connection broke.
 * @retval MUSTER_E_ABORTED  The stream was aborted.
 * @retval MUSTER_E_LIMIT    The stream has ended: no descriptor was left to wait with.
 * @retval MUSTER_E_CANCELED muster_stream_cancel() was called during the call.
 * @retval MUSTER_E_WOULD_DEADLOCK  The wait could only end by a request that this thread has to serve.
 * @retval MUSTER_E_FORKED   The stream belongs to the parent process.
 * @threads{any; one at a time per direction, others wait within their timeout} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_stream_reserve(muster_stream *stream, size_t min_bytes, int64_t timeout_ns,
                                               void **out_data, size_t *out_bytes);

/** Sends the first bytes of a reservation. They may be combined with later ones until muster_stream_flush().
 * @param[in] stream      Stream with an outstanding reservation.
 * @param[in] size_bytes  Number of bytes that were filled in, at most the reserved size; 0 drops the reservation.
 * @retval MUSTER_OK        The bytes will be sent.
 * @retval MUSTER_E_ARG     No stream, no reservation, or more than was reserved.
 * @retval MUSTER_E_CLOSED  This side closed the stream; nothing was sent.
 * @retval MUSTER_E_PEER    The peer closed or died; nothing was sent.
 * @retval MUSTER_E_ABORTED The stream was aborted; nothing was sent.
 * @retval MUSTER_E_LIMIT    The stream has ended: no descriptor was left to wait with.
 * @retval MUSTER_E_NOMEM    The stream has ended: there was no memory for it.
 * @retval MUSTER_E_CANCELED The stream has ended: its pump is no longer needed; see muster_request_stream().
 * @retval MUSTER_E_WOULD_DEADLOCK  Called inside a callback of the engine while another thread uses this direction;
 *                                  call again.
 * @retval MUSTER_E_FORKED  The stream belongs to the parent process.
 * @threads{the one that reserved} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_stream_commit(muster_stream *stream, size_t size_bytes);

/** Waits until every byte accepted so far has left this process (for shared memory and pairs: can be read by the peer).
 * @param[in] stream      Stream to flush.
 * @param[in] timeout_ns  Maximum wait; 0 only begins to send, -1: no limit.
 * @retval MUSTER_OK         All bytes have left.
 * @retval MUSTER_AGAIN      Some bytes have not left yet, and the timeout was 0.
 * @retval MUSTER_TIMEOUT    Some bytes have not left yet.
 * @retval MUSTER_E_ARG      No stream.
 * @retval MUSTER_E_CLOSED   The context is closed.
 * @retval MUSTER_E_PEER     The peer closed or died, or the connection broke.
 * @retval MUSTER_E_ABORTED  The stream was aborted.
 * @retval MUSTER_E_LIMIT    The stream has ended: no descriptor was left to wait with.
 * @retval MUSTER_E_NOMEM    The stream has ended: there was no memory for it.
 * @retval MUSTER_E_CANCELED muster_stream_cancel() was called during the call.
 * @retval MUSTER_E_WOULD_DEADLOCK  The wait could only end by a request that this thread has to serve.
 * @retval MUSTER_E_FORKED   The stream belongs to the parent process.
 * @threads{any; one at a time per direction, others wait within their timeout} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_stream_flush(muster_stream *stream, int64_t timeout_ns);

/** Begins to flush, as muster_stream_flush() does; ::MUSTER_DONE_CALL has its status. Until then the direction
 * is in use: a write waits for it, as for a flush in another thread.
 * @param[in]  stream      Stream to flush.
 * @param[in]  timeout_ns  Maximum time; -1: no limit.
 * @param[in]  queue       Queue of the same context for the completion.
 * @param[in]  tag         Returned in muster_completion::tag.
 * @param[out] error       Detail on failure, or NULL.
 * @begun{::MUSTER_DONE_CALL}
 * @retval MUSTER_E_ARG     A value is missing or out of range, or the queue is of another context.
 * @retval MUSTER_E_NOMEM   Memory or threads ran out.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_stream_flush_begin(muster_stream *stream, int64_t timeout_ns, muster_queue *queue,
                                                   uint64_t tag, muster_error *error);

/** Reads the bytes that have arrived, at least one.
 * @param[in]  stream          Stream to read from.
 * @param[out] out_data        Destination of the bytes.
 * @param[in]  capacity_bytes  Size of the destination, at least 1.
 * @param[in]  timeout_ns      Maximum wait for the first byte; 0 checks once, -1: no limit.
 * @param[out] out_bytes       Number of bytes read, always set.
 * @retval MUSTER_OK         One byte or more.
 * @retval MUSTER_AGAIN      No byte has arrived, and the timeout was 0; a watch for ::MUSTER_STREAM_READABLE is
 *                           armed again.
 * @retval MUSTER_TIMEOUT    No byte arrived in time.
 * @retval MUSTER_E_ARG      No stream, no destination, or a destination of size 0.
 * @retval MUSTER_E_BUSY     A muster_stream_peek() is outstanding.
 * @retval MUSTER_E_END      The peer finished writing, and everything was read.
 * @retval MUSTER_E_CLOSED   This side closed the stream.
 * @retval MUSTER_E_PEER     The peer died or the connection broke; everything before was read.
 * @retval MUSTER_E_ABORTED  The stream was aborted; muster_stream_reason() has the reason.
 * @retval MUSTER_E_LIMIT    The stream has ended: no descriptor was left to wait with.
 * @retval MUSTER_E_NOMEM    The stream has ended: there was no memory for it.
 * @retval MUSTER_E_CANCELED muster_stream_cancel() was called during the call.
 * @retval MUSTER_E_WOULD_DEADLOCK  The wait could only end by a request that this thread has to serve.
 * @retval MUSTER_E_FORKED   The stream belongs to the parent process.
 * @threads{any; one at a time per direction, others wait within their timeout} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_stream_read(muster_stream *stream, void *out_data, size_t capacity_bytes,
                                            int64_t timeout_ns, size_t *out_bytes);

/** Reads exactly the requested number of bytes, directly into the memory of the caller.
 * @param[in]  stream      Stream to read from.
 * @param[out] out_data    Destination of the bytes.
 * @param[in]  size_bytes  Number of bytes; 0 has no effect.
 * @param[in]  flags       ::muster_stream_read_flag values, or'ed.
 * @param[in]  timeout_ns  Maximum wait for all of them; 0 reads the bytes that have arrived, -1: no limit.
 * @param[out] out_bytes   Number of bytes read, always set; if it is smaller, a further call can read the rest.
 * @retval MUSTER_OK         All bytes were read.
 * @retval MUSTER_AGAIN      Fewer bytes have arrived, and the timeout was 0; a watch is armed again.
 * @retval MUSTER_TIMEOUT    Fewer bytes arrived in time.
 * @retval MUSTER_E_ARG      No stream, no destination with a size above 0, or unknown flags.
 * @retval MUSTER_E_BUSY     A muster_stream_peek() is outstanding.
 * @retval MUSTER_E_END      The peer finished writing before that many.
 * @retval MUSTER_E_CLOSED   This side closed the stream.
 * @retval MUSTER_E_PEER     The peer died or the connection broke before that many.
 * @retval MUSTER_E_ABORTED  The stream was aborted.
 * @retval MUSTER_E_LIMIT    The stream has ended: no descriptor was left to wait with.
 * @retval MUSTER_E_NOMEM    The stream has ended: there was no memory for it.
 * @retval MUSTER_E_CANCELED muster_stream_cancel() was called during the call.
 * @retval MUSTER_E_WOULD_DEADLOCK  The wait could only end by a request that this thread has to serve.
 * @retval MUSTER_E_FORKED   The stream belongs to the parent process.
 * @threads{any; one at a time per direction, others wait within their timeout} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_stream_read_into(muster_stream *stream, void *out_data, size_t size_bytes,
                                                 uint32_t flags, int64_t timeout_ns, size_t *out_bytes);

/** Begins to read exactly the requested number of bytes; the engine fills the caller's memory, and ::MUSTER_DONE_READ
 * has the count and the status. Reads that are begun or called later get the bytes after it.
 * @param[in]  stream      Stream to read from.
 * @param[out] out_data    Destination of the bytes; lent to the library until the completion, or until cancel has
 *                         returned.
 * @param[in]  size_bytes  Number of bytes, at least 1.
 * @param[in]  flags       ::muster_stream_read_flag values, or'ed.
 * @param[in]  queue       Queue of the same context for the completion.
 * @param[in]  tag         Returned in muster_completion::tag.
 * @retval MUSTER_OK       Begun; the completion follows.
 * @retval MUSTER_AGAIN    No slot in the queue, 64 reads wait already, or another thread waits in this direction;
 *                         not begun.
 * @retval MUSTER_E_ARG    No stream, destination, size or queue, unknown flags, or a queue of another context; not
 *                         begun.
 * @retval MUSTER_E_BUSY   A muster_stream_peek() is outstanding; not begun.
 * @retval MUSTER_E_CANCELED muster_stream_cancel() was called during the call; not begun.
 * @retval MUSTER_E_NOMEM  Not begun.
 * @retval MUSTER_E_CLOSED This side closed the stream, or the queue is closed; not begun.
 * @retval MUSTER_E_WOULD_DEADLOCK  Called inside a callback of the engine while another thread uses this direction;
 *                                  not begun.
 * @retval MUSTER_E_FORKED The stream belongs to the parent process.
 * @threads{any; one at a time per direction} @blocks{while another thread moves bytes in this direction} @since 0.1 */
MUSTER_API muster_status muster_stream_read_begin(muster_stream *stream, void *out_data, size_t size_bytes,
                                                  uint32_t flags, muster_queue *queue, uint64_t tag);

/** Returns a pointer to received bytes, without consuming them.
 * @param[in]  stream      Stream to read from.
 * @param[in]  min_bytes   Minimum number of bytes, 1 to a quarter of window_bytes.
 * @param[in]  timeout_ns  Maximum wait for them.
 * @param[out] out_data    First byte; valid until muster_stream_consume().
 * @param[out] out_bytes   Number of bytes: at least min_bytes on success, otherwise as many as are available.
 * @retval MUSTER_OK         The bytes are available; no other read is possible until consume.
 * @retval MUSTER_AGAIN      Fewer bytes are available, and the timeout was 0.
 * @retval MUSTER_TIMEOUT    Fewer bytes arrived in time.
 * @retval MUSTER_E_ARG      No stream or destination, or min_bytes out of range.
 * @retval MUSTER_E_BUSY     A peek is outstanding.
 * @retval MUSTER_E_END      The peer finished writing before that many; what is left can be read.
 * @retval MUSTER_E_NOMEM    Memory ran out.
 * @retval MUSTER_E_CLOSED   This side closed the stream.
 * @retval MUSTER_E_PEER     The peer died before that many; what is left can be read.
 * @retval MUSTER_E_ABORTED  The stream was aborted.
 * @retval MUSTER_E_LIMIT    The stream has ended: no descriptor was left to wait with.
 * @retval MUSTER_E_CANCELED muster_stream_cancel() was called during the call.
 * @retval MUSTER_E_WOULD_DEADLOCK  The wait could only end by a request that this thread has to serve.
 * @retval MUSTER_E_FORKED   The stream belongs to the parent process.
 * @threads{any; one at a time per direction, others wait within their timeout} @blocks{up to timeout_ns} @since 0.1 */
MUSTER_API muster_status muster_stream_peek(muster_stream *stream, size_t min_bytes, int64_t timeout_ns,
                                            const void **out_data, size_t *out_bytes);

/** Consumes the first of the bytes that muster_stream_peek() returned.
 * @param[in] stream      Stream with an outstanding peek.
 * @param[in] size_bytes  Number of bytes, 0 up to the number returned.
 * @retval MUSTER_OK       Consumed; the peek is over.
 * @retval MUSTER_E_ARG    No stream, no outstanding peek, or more bytes than it returned.
 * @retval MUSTER_E_WOULD_DEADLOCK  Called inside a callback of the engine while another thread uses this direction;
 *                                  call again.
 * @retval MUSTER_E_FORKED The stream belongs to the parent process.
 * @threads{the one that peeked} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_stream_consume(muster_stream *stream, size_t size_bytes);

/** Finishes writing (half-close): the peer reads everything and then ::MUSTER_E_END; this side can still read.
 * @param[in] stream  Stream to finish.
 * @retval MUSTER_OK        Finished, or it was before.
 * @retval MUSTER_E_ARG     No stream.
 * @retval MUSTER_E_BUSY    A reservation is outstanding.
 * @retval MUSTER_E_PEER    The peer is gone.
 * @retval MUSTER_E_ABORTED The stream was aborted.
 * @retval MUSTER_E_LIMIT    The stream has ended: no descriptor was left to wait with.
 * @retval MUSTER_E_NOMEM    The stream has ended: there was no memory for it.
 * @retval MUSTER_E_CANCELED The stream has ended: its pump is no longer needed; see muster_request_stream().
 * @retval MUSTER_E_CLOSED  This side closed the stream.
 * @retval MUSTER_E_FORKED  The stream belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_stream_finish(muster_stream *stream);

/** Ends both directions at once and notifies the peer of the reason. Bytes in transit may be lost; both sides are
 * notified of the abort.
 * @param[in] stream        Stream to abort.
 * @param[in] reason        A code of the host, passed to the peer.
 * @param[in] text          Text for people, or NULL.
 * @param[in] text_bytes    Length of the text, at most 200 bytes.
 * @retval MUSTER_OK       Aborted, or it was over before.
 * @retval MUSTER_E_ARG    No stream, or a text that is too long, or NULL with a length.
 * @retval MUSTER_E_FORKED The stream belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_stream_abort(muster_stream *stream, uint64_t reason, const char *text,
                                             size_t text_bytes);

/** Closes in order: finishes writing, waits until everything has left, then ends. Bytes of a socket have left when
 * the kernel has accepted them, those of a plug-in when the plug-in has, those of a host-served transport when they are
 * in the pump, and over shared memory, inproc and pairs when the peer has read them. A further call does not wait and
 * returns the current status.
 * @param[in] stream      Stream to close; the caller keeps its reference.
 * @param[in] timeout_ns  Maximum wait; after it the rest is sent in the background, for up to 10 s more.
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

/** Begins to close, as muster_stream_close() does; ::MUSTER_DONE_CALL has its status. Cancelling the operation
 * ends the wait: the stream is closed nevertheless, and the rest is sent in the background.
 * @param[in]  stream      Stream to close; the caller keeps its reference.
 * @param[in]  timeout_ns  Maximum time until everything has left; -1: no limit.
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
 * returns; buffers of muster_stream_write_owned() are still sent, and stay lent until their completion or the end of
 * its queue. Memory of muster_stream_peek() or muster_stream_reserve() must not be accessed any more.
 * @param[in] stream  What to release; NULL has no effect.
 * @threads{any, finalizers included} @blocks{no} @since 0.1 */
MUSTER_API void muster_stream_release(muster_stream *stream);

/** Cancels the waits and operations in one or both directions: they end with ::MUSTER_E_CANCELED.
 * When it returns no library thread accesses their buffers any more; their completions have the number of bytes moved.
 * The stream remains usable, unless a buffer of muster_stream_write_owned() was sent in part: then it is aborted for
 * both sides.
 * @param[in] stream      Stream whose operations end.
 * @param[in] directions  ::muster_stream_direction values, or'ed.
 * @retval MUSTER_OK       No operation is in progress any more.
 * @retval MUSTER_E_ARG    No stream, or unknown directions.
 * @retval MUSTER_E_FORKED The stream belongs to the parent process.
 * @threads{any} @blocks{for the copy of one piece, at most 256 KiB} @since 0.1 */
MUSTER_API muster_status muster_stream_cancel(muster_stream *stream, uint32_t directions);

/** Watches a stream: ::MUSTER_EVENT_READY appears in the queue when it becomes ready for an event of interest.
 * A direction is armed when the watch is set and again whenever a call on it returns ::MUSTER_AGAIN; one that is
 * already ready notifies at once. Silence, return and end of the peer are always reported when they happen.
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

/** Returns the reason why a stream ended. A peer that closed in order ends it with ::MUSTER_E_PEER, "the peer has
 * closed the stream". Not so between the two ends of a pair or of inproc, which share one memory: there it is still
 * ::MUSTER_OK without ::MUSTER_STREAM_ENDED, while reading returns ::MUSTER_E_END and writing ::MUSTER_E_PEER.
 * @param[in]  stream      Stream to query.
 * @param[out] out_reason  The code given to muster_stream_abort() by the side that aborted, otherwise 0; or NULL.
 * @param[out] error       Filled with the status and a text with the side and the reason; or NULL.
 * @retval MUSTER_OK        The stream has not ended.
 * @retval MUSTER_E_ARG     No stream.
 * @retval MUSTER_E_PEER    The peer closed or died, or the connection broke.
 * @retval MUSTER_E_ABORTED It was aborted.
 * @retval MUSTER_E_LIMIT    It has ended: no descriptor was left to wait with.
 * @retval MUSTER_E_NOMEM    It has ended: there was no memory for it.
 * @retval MUSTER_E_CANCELED It has ended: its pump is no longer needed; see muster_request_stream().
 * @retval MUSTER_E_CLOSED  This side closed it, or the context.
 * @retval MUSTER_E_FORKED  The stream belongs to the parent process.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_stream_reason(muster_stream *stream, uint64_t *out_reason, muster_error *error);

/** Copies the name of the peer: the address that was dialled, or from which the connection was made.
 * @param[in]  stream      Stream to query.
 * @param[out] out_text    Destination of the text, NUL-terminated; NULL to get the size only.
 * @param[in]  capacity    Size of the destination, the terminator included.
 * @param[out] out_bytes   Length of the text, without the terminator.
 * @copied
 * @retval MUSTER_E_ARG    No stream, or no destination for the length.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_stream_peer(muster_stream *stream, char *out_text, size_t capacity, size_t *out_bytes);

/** Copies the address at which this end of a stream of tcp has its socket, such as `tcp://10.0.0.7:41022`: what
 * getsockname() gives. A stream that was moved to shared memory keeps that socket.
 * @param[in]  stream      Stream to query.
 * @param[out] out_text    Destination of the text, NUL-terminated; NULL to get the size only.
 * @param[in]  capacity    Size of the destination, the terminator included.
 * @param[out] out_bytes   Length of the text, without the terminator.
 * @copied
 * @retval MUSTER_E_ARG          No stream, or no destination for the length.
 * @retval MUSTER_E_UNSUPPORTED  It has no socket of IP: another transport, or the connection is closed already.
 * @retval MUSTER_E_NOMEM        Memory ran out.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_stream_local_address(muster_stream *stream, char *out_text, size_t capacity,
                                                     size_t *out_bytes);

/** Ends this process when the peer of this stream, or the connection to it, is gone: SIGTERM to itself from a library
 * thread, then SIGKILL. For workers, whose computing threads cannot notice it. An end caused on this side (close,
 * abort, the context's close) does not count. This and muster_process_exit_with() are the only places where Muster
 * signals its own process.
 * @param[in] stream    Stream to the master.
 * @param[in] grace_ns  Time between SIGTERM and SIGKILL, 0: none; negative: undoes the call.
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
