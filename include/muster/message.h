/* SPDX-License-Identifier: MIT */
/** @file
 * The message: a header with addresses, type and target, and any number of frames of bytes.
 *
 * A message is made, filled with frames, and sent through a socket (socket.h), which takes it over; a received message
 * belongs to the receiver. The design follows Msg of Apache SINGA.
 *
 * Addresses are 64-bit numbers of the users' choice. muster_message_address() packs a group, an id and a kind into one,
 * and checks the ranges; a field may be the wildcard ::MUSTER_MESSAGE_ANY, for muster_message_address_matches().
 *
 * A frame is added by copying its bytes, by lending them (a queue returns them), or by handing them over with
 * the function that frees them. Frames of a copy of a message share the bytes. A zero byte, which is not counted,
 * follows the bytes of every copied and every received frame, so a text frame can be used as a C string; except for
 * loaned frames (muster_socket_loan_frame()).
 *
 * Calls that change one message are made by one thread at a time; messages do not belong to a context. */
#ifndef MUSTER_MESSAGE_H
#define MUSTER_MESSAGE_H

#include <muster/queue.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Opaque; made by muster_message_create(), or received. */
typedef struct muster_message muster_message;

/** Values of muster_message_header::type that Apache SINGA defines. Other values belong to the user; they are carried
 * unchanged. */
enum muster_message_type {
    MUSTER_MESSAGE_GET = 0,           /**< A worker gets a parameter. */
    MUSTER_MESSAGE_PUT = 1,           /**< A worker sets a parameter. */
    MUSTER_MESSAGE_SYNC = 2,          /**< A server synchronises a parameter with another server. */
    MUSTER_MESSAGE_UPDATE = 3,        /**< A worker sends a gradient. */
    MUSTER_MESSAGE_SYNC_REQUEST = 4,  /**< A request between server groups. */
    MUSTER_MESSAGE_SYNC_RESPONSE = 5, /**< Its answer. */
    MUSTER_MESSAGE_STOP = 6,          /**< The sender stops. */
    MUSTER_MESSAGE_DATA = 7,          /**< Data of a layer, between workers. */
    MUSTER_MESSAGE_GOT = 8,           /**< The answer to ::MUSTER_MESSAGE_GET. */
    MUSTER_MESSAGE_UPDATED = 9,       /**< The answer to ::MUSTER_MESSAGE_UPDATE. */
    MUSTER_MESSAGE_CONNECT = 10,      /**< A thread registers with the forwarder of its process. */
    MUSTER_MESSAGE_METRIC = 11,       /**< Figures for people. */
    MUSTER_MESSAGE_USER = 256         /**< The first value without a meaning of SINGA. */
};

/** A field of an address that matches every value of that field. */
enum muster_message_any {
    MUSTER_MESSAGE_ANY = -1 /**< As a group, an id or a kind. */
};

/** Header of a message; all zero in a new one. */
typedef struct muster_message_header {
    uint32_t struct_size;   /**< sizeof(muster_message_header) of the caller. */
    uint32_t type;          /**< A ::muster_message_type value, or a value of the user. */
    uint64_t source;        /**< Address of the sender; 0: the socket that sends it sets its own. */
    uint64_t destination;   /**< Address of the receiver; a dealer may leave it 0. */
    uint64_t target;        /**< What the message is about; see muster_message_target(). */
    int64_t target_version; /**< Version of the target. */
    uint64_t trace_id[2];   /**< Id of a trace, 16 bytes as in W3C Trace Context; zero: none. A socket
                                sets it in a message without one while a trace of this process is on (trace.h). */
    uint64_t span_id;       /**< Id of the parent span. */
    uint32_t trace_flags;   /**< Flags of the trace. */
    uint32_t hops;          /**< Number of forwarders that the message has passed; not to be set. */
} muster_message_header;

/** Bytes in memory. */
typedef struct muster_buffer {
    const void *data; /**< First byte; NULL if it is empty. */
    uint64_t bytes;   /**< Number of bytes. */
} muster_buffer;

/** One value of a format frame. Which field is used depends on the character of the picture. */
typedef struct muster_value {
    int64_t integer;  /**< `i`, `q`, `1`, `2`, `4`, `8`, and `p` (an address in this process). */
    double real;      /**< `f` and `d`. */
    const void *data; /**< `s` and `b`: first byte. When reading, it points into the frame. */
    uint64_t bytes;   /**< `s` and `b`: number of bytes, without a terminator. */
} muster_value;

/** Makes an empty message.
 * @param[out] out_message  The message; it belongs to the caller.
 * @retval MUSTER_OK      Made.
 * @retval MUSTER_E_ARG   No destination.
 * @retval MUSTER_E_NOMEM Memory ran out.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_message_create(muster_message **out_message);

/** Copies a message: header, and frames. Bytes of small frames are copied; the others are shared by both.
 * @param[in]  message      Message to copy.
 * @param[out] out_message  The copy; it belongs to the caller.
 * @retval MUSTER_OK      Copied.
 * @retval MUSTER_E_ARG   No message or no destination.
 * @retval MUSTER_E_NOMEM Memory ran out.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_message_copy(const muster_message *message, muster_message **out_message);

/** Returns the header.
 * @param[in]  message     Message to query.
 * @param[in,out] out_header  Filled; its struct_size is set by the caller.
 * @retval MUSTER_OK     The struct was filled.
 * @retval MUSTER_E_ARG  No message or no destination, or an impossible struct_size.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_message_get_header(const muster_message *message, muster_message_header *out_header);

/** Replaces the header, except for `hops`.
 * @param[in] message  Message to change.
 * @param[in] header   The new values; copied.
 * @retval MUSTER_OK     Changed.
 * @retval MUSTER_E_ARG  No message or no header, or an impossible struct_size.
 * @retval MUSTER_E_ABI  The header has non-zero fields that are newer than this library.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_message_set_header(muster_message *message, const muster_message_header *header);

/** Exchanges source and destination: the message becomes its answer.
 * @param[in] message  Message to change.
 * @retval MUSTER_OK     Exchanged.
 * @retval MUSTER_E_ARG  No message.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_message_swap_addresses(muster_message *message);

/** Adds a frame with a copy of bytes. A text needs no terminator.
 * @param[in] message  Message to change.
 * @param[in] data     The bytes; copied. NULL if the frame is empty.
 * @param[in] bytes    Number of bytes.
 * @retval MUSTER_OK       Added as the last frame.
 * @retval MUSTER_E_ARG    No message, or no data with a size above 0.
 * @retval MUSTER_E_LIMIT  The message has 65,535 frames, or the frames are larger than 2^62 bytes together.
 * @retval MUSTER_E_NOMEM  Memory ran out.
 * @threads{any; one at a time} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_message_add_frame(muster_message *message, const void *data, size_t bytes);

/** Adds a frame by reference. The bytes are lent to the library, and must not change, until ::MUSTER_DONE_RELEASED is
 * taken off the queue. It follows exactly once, when no message has the frame any more, with the number of bytes. They
 * remain lent until then also if the queue is closed, which drops the notification.
 * @param[in] message  Message to change.
 * @param[in] data     The bytes.
 * @param[in] bytes    Number of bytes, at least 1.
 * @param[in] queue    Queue for the release.
 * @param[in] tag      Returned in muster_completion::tag.
 * @retval MUSTER_OK        Added as the last frame; the release follows.
 * @retval MUSTER_AGAIN     The queue has no free slot; nothing was lent.
 * @retval MUSTER_E_ARG     No message, data, size or queue; nothing was lent.
 * @retval MUSTER_E_LIMIT   As muster_message_add_frame(); nothing was lent.
 * @retval MUSTER_E_NOMEM   Nothing was lent.
 * @retval MUSTER_E_CLOSED  The queue is closed; nothing was lent.
 * @retval MUSTER_E_FORKED  The queue belongs to the parent process.
 * @threads{any; one at a time} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_message_lend_frame(muster_message *message, const void *data, size_t bytes,
                                                   muster_queue *queue, uint64_t tag);

/** Frees the memory of a frame that was handed over; free() of the C library can be used unchanged.
 * @param data  The address that was handed over. */
typedef void (*muster_free_fn)(void *data);

/** Adds a frame by handing over its memory.
 * @param[in] message  Message to change.
 * @param[in] data     The bytes; they belong to the message from now on.
 * @param[in] bytes    Number of bytes, at least 1.
 * @param[in] release  Called once with `data` when no message has the frame any more, on any thread, perhaps during a
 *                     call that ends a message; it must not block, unwind or call Muster.
 * @retval MUSTER_OK       Added as the last frame.
 * @retval MUSTER_E_ARG    No message, data, size or function; the memory still belongs to the caller, as below.
 * @retval MUSTER_E_LIMIT  As muster_message_add_frame().
 * @retval MUSTER_E_NOMEM  Memory ran out.
 * @threads{any; one at a time} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_message_take_frame(muster_message *message, void *data, size_t bytes,
                                                   muster_free_fn release);

/** Returns the number of frames.
 * @param[in] message  Message to query; NULL has none.
 * @return Number of frames.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API uint32_t muster_message_frame_count(const muster_message *message);

/** Returns a frame by its index.
 * @param[in]  message    Message to query.
 * @param[in]  index      Index of the frame, from 0.
 * @param[out] out_frame  Its bytes; valid until the message ends.
 * @retval MUSTER_OK          Returned.
 * @retval MUSTER_E_ARG       No message or no destination.
 * @retval MUSTER_E_NOT_FOUND The message has not that many frames.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_message_frame(const muster_message *message, uint32_t index, muster_buffer *out_frame);

/** Moves the cursor of a message to its first frame.
 * @param[in]  message    Message; the cursor of a new or received one is before the first frame.
 * @param[out] out_frame  The frame; valid until the message ends.
 * @retval MUSTER_OK          Returned.
 * @retval MUSTER_E_ARG       No message or no destination.
 * @retval MUSTER_E_NOT_FOUND The message has no frames.
 * @threads{any; one at a time} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_message_first(muster_message *message, muster_buffer *out_frame);

/** Moves the cursor to the last frame; see muster_message_first().
 * @param[in]  message    Message.
 * @param[out] out_frame  The frame; valid until the message ends.
 * @retval MUSTER_OK          Returned.
 * @retval MUSTER_E_ARG       No message or no destination.
 * @retval MUSTER_E_NOT_FOUND The message has no frames.
 * @threads{any; one at a time} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_message_last(muster_message *message, muster_buffer *out_frame);

/** Moves the cursor to the next frame; see muster_message_first().
 * @param[in]  message    Message.
 * @param[out] out_frame  The frame; valid until the message ends.
 * @retval MUSTER_OK          Returned.
 * @retval MUSTER_E_ARG       No message or no destination.
 * @retval MUSTER_E_NOT_FOUND The cursor was at the last frame, where it remains.
 * @threads{any; one at a time} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_message_next(muster_message *message, muster_buffer *out_frame);

/** Returns the size of a message.
 * @param[in]  message      Message to query.
 * @param[out] out_payload  Bytes of all frames, or NULL.
 * @param[out] out_total    The same with the metadata that are sent with them, or NULL.
 * @retval MUSTER_OK     Returned.
 * @retval MUSTER_E_ARG  No message.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_message_bytes(const muster_message *message, uint64_t *out_payload,
                                              uint64_t *out_total);

/** Returns a message as an array of buffers, for a transport of the host's: the first one has the metadata, the others
 * are the frames. docs/wire.md describes the metadata.
 * @param[in]  message      Message; it is not changed.
 * @param[out] out_buffers  Shape (capacity): filled; valid until the message changes or ends. NULL: only count.
 * @param[in]  capacity     Number of places.
 * @param[out] out_count    Number of buffers: one more than the message has frames.
 * @retval MUSTER_OK       Returned, or only counted.
 * @retval MUSTER_E_ARG    No message, or no place for the count.
 * @retval MUSTER_E_LIMIT  The capacity is too small; out_count is set.
 * @retval MUSTER_E_NOMEM  Memory ran out.
 * @retval MUSTER_E_UNSUPPORTED  A format frame has a pointer, which means nothing in another process.
 * @threads{any; one at a time} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_message_to_buffers(muster_message *message, muster_buffer *out_buffers,
                                                   uint32_t capacity, uint32_t *out_count);

/** Makes a message from buffers; the inverse of muster_message_to_buffers().
 * @param[in]  buffers      Shape (count): metadata, then the frames; copied.
 * @param[in]  count        Number of buffers, at least 1.
 * @param[out] out_message  The message; it belongs to the caller.
 * @param[out] error        Detail on failure, or NULL.
 * @retval MUSTER_OK          Made.
 * @retval MUSTER_E_ARG       No buffers or no destination.
 * @retval MUSTER_E_PROTOCOL  The metadata are malformed, or do not belong to these frames; the error says why.
 * @retval MUSTER_E_NOMEM     Memory ran out.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_message_from_buffers(const muster_buffer *buffers, uint32_t count,
                                                     muster_message **out_message, muster_error *error);

/** Adds a format frame: values with their types, which the reader checks. The picture has one character per value:
 * `i` signed 32-bit, `q` signed 64-bit, `1` `2` `4` `8` unsigned of so many bytes, `f` float, `d` double, `s` text, `b`
 * bytes, `p` a pointer. A message with a pointer cannot leave this process.
 * @param[in]  message  Message to change.
 * @param[in]  picture  Types of the values, NUL-terminated.
 * @param[in]  values   Shape (count): the values; copied.
 * @param[in]  count    Number of values: the length of the picture.
 * @param[out] error    Detail on failure, or NULL.
 * @retval MUSTER_OK       Added as the last frame.
 * @retval MUSTER_E_ARG    No message, picture or values; a length other than that of the picture; an unknown
 *                         character; or a value out of range. The error names the position and the value.
 * @retval MUSTER_E_LIMIT  As muster_message_add_frame().
 * @retval MUSTER_E_NOMEM  Memory ran out.
 * @threads{any; one at a time} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_message_add_values(muster_message *message, const char *picture,
                                                   const muster_value *values, uint32_t count, muster_error *error);

/** Reads a format frame.
 * @param[in]  message     Message to query.
 * @param[in]  index       Index of the frame.
 * @param[in]  picture     Expected types, NUL-terminated; NULL: any.
 * @param[out] out_picture Types of the values with a terminator, at most `capacity` + 1 characters; or NULL.
 * @param[out] out_values  Shape (capacity): the values; texts and bytes are valid until the message ends. Or NULL.
 * @param[in]  capacity    Number of places.
 * @param[out] out_count   Number of values in the frame.
 * @param[out] error       Detail on failure, or NULL.
 * @retval MUSTER_OK          Read, or only counted.
 * @retval MUSTER_E_ARG       No message, or no place for the count.
 * @retval MUSTER_E_NOT_FOUND The message has not that many frames.
 * @retval MUSTER_E_PROTOCOL  The frame is no format frame, is malformed, or has other types than expected; the error
 *                            names the position and both types.
 * @retval MUSTER_E_LIMIT     The capacity is too small; out_count is set.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_message_get_values(const muster_message *message, uint32_t index, const char *picture,
                                                   char *out_picture, muster_value *out_values, uint32_t capacity,
                                                   uint32_t *out_count, muster_error *error);

/** Frees a message and its frames.
 * @param[in] message  Message, or NULL.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API void muster_message_release(muster_message *message);

/** Packs an address.
 * @param[in]  group        0 to 2^32 - 2, or ::MUSTER_MESSAGE_ANY.
 * @param[in]  id           0 to 2^20 - 2, or ::MUSTER_MESSAGE_ANY.
 * @param[in]  kind         1 to 4094, or ::MUSTER_MESSAGE_ANY.
 * @param[out] out_address  The address; it is never 0.
 * @retval MUSTER_OK     Packed.
 * @retval MUSTER_E_ARG  No destination, or a value out of range.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_message_address(int64_t group, int64_t id, int64_t kind, uint64_t *out_address);

/** Takes an address apart.
 * @param[in]  address    An address of muster_message_address().
 * @param[out] out_group  Group, or ::MUSTER_MESSAGE_ANY; or NULL.
 * @param[out] out_id     Id, or ::MUSTER_MESSAGE_ANY; or NULL.
 * @param[out] out_kind   Kind, or ::MUSTER_MESSAGE_ANY; or NULL.
 * @retval MUSTER_OK     Returned.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_message_address_parts(uint64_t address, int64_t *out_group, int64_t *out_id,
                                                      int64_t *out_kind);

/** Does an address match a pattern, whose fields may be ::MUSTER_MESSAGE_ANY?
 * @param[in] pattern  An address, perhaps with wildcards.
 * @param[in] address  An address.
 * @return 1: it matches; 0: it does not.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API int32_t muster_message_address_matches(uint64_t pattern, uint64_t address);

/** Converts an address of Apache SINGA, whose fields had 16, 8 and 8 bits. Where SINGA truncated silently, this fails.
 * @param[in]  group        0 to 32767, or -1.
 * @param[in]  id_or_proc   0 to 254, or -1.
 * @param[in]  type         0 to 126, or -1; the kind of the result is one more.
 * @param[out] out_address  The address.
 * @retval MUSTER_OK     Converted.
 * @retval MUSTER_E_ARG  No destination, or a value that SINGA could not carry.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_message_address_singa(int32_t group, int32_t id_or_proc, int32_t type,
                                                      uint64_t *out_address);

/** Packs what a message is about: a parameter and a slice of it, or a layer and a blob of it.
 * @param[in] entity  Parameter or layer.
 * @param[in] part    Slice or blob.
 * @return The value of muster_message_header::target; `entity` is in the upper 32 bits.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API uint64_t muster_message_target(uint32_t entity, uint32_t part);

#ifdef __cplusplus
}
#endif
#endif
