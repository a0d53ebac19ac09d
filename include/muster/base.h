/* SPDX-License-Identifier: MIT */
/** @file
 * Status codes, error details, version: the base of every other header.
 *
 * Every fallible function returns a ::muster_status: 0 means done, a positive value means not (all) done now, call
 * again, a negative value is a failure; test for failure with `status < 0`. Cold calls also fill a caller-owned
 * ::muster_error, so that no text is stored per thread. On failure a created handle is set to NULL and other outputs
 * are unchanged, except byte counts, which are always correct.
 *
 * Text and bytes are (pointer, size) pairs; text is UTF-8 and needs no terminator going in.
 *
 * Lifetimes follow one rule for every object. A handle is the host's reference to an object; `muster_..._release()`
 * drops it, from any thread, also from a finalizer.
 * - A call that waits on the handle in another thread returns ::MUSTER_E_CLOSED.
 * - An operation that was begun (a function whose name ends with `_begin`, and muster_stream_write_owned()) belongs to
 *   the queue in which it completes, and not to the handle. It continues, or ends as it would if the object were
 * closed; in both cases its completion appears once, and memory that it was lent stays lent until then.
 * - Releasing the queue, or closing it, ends all operations that would complete there. When the call returns, none of
 *   the memory that they were lent is accessed any more.
 *
 * Therefore a program that has released its queue may free every buffer that it has lent with that queue, in whatever
 * state the streams are; and a language with a garbage collector may release objects in any order. */
#ifndef MUSTER_BASE_H
#define MUSTER_BASE_H

#include <stddef.h>
#include <stdint.h>

#ifndef MUSTER_API
#if defined(__GNUC__)
#define MUSTER_API __attribute__((visibility("default")))
#else
#define MUSTER_API
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** Result of a call: 0, a positive "not now", or a negative failure; see ::muster_status_value. */
typedef int32_t muster_status;

/** The values of a ::muster_status. */
enum muster_status_value {
    MUSTER_OK = 0,          /**< Done. */
    MUSTER_AGAIN = 1,       /**< Nothing (more) can be done now; a watch of the object is armed again. */
    MUSTER_TIMEOUT = 2,     /**< The deadline has passed; byte counts say what was done before. */
    MUSTER_E_ARG = -1,      /**< An argument is wrong; nothing changed. */
    MUSTER_E_ABI = -2,      /**< A struct has non-zero fields newer than this library, or a size never released. */
    MUSTER_E_NOMEM = -3,    /**< Memory, threads or address space ran out. */
    MUSTER_E_LIMIT = -4,    /**< A limit was reached: descriptors, a configured bound, a size. */
    MUSTER_E_CLOSED = -5,   /**< This side has closed the object or its context. */
    MUSTER_E_CANCELED = -6, /**< Cancelled from another thread. */
    MUSTER_E_FORKED = -7,   /**< The handle belongs to the parent of this process. */
    MUSTER_E_WOULD_DEADLOCK = -8, /**< The wait could end only by work of the calling thread itself. */
    MUSTER_E_UNSUPPORTED = -9,    /**< This object or build cannot do that. */
    MUSTER_E_EXISTS = -10,        /**< The name is in use. */
    MUSTER_E_NOT_FOUND = -11,     /**< No such thing: file, scheme, plug-in, name, process. */
    MUSTER_E_STALE = -12,         /**< The id belongs to something that is over. */
    MUSTER_E_BUSY = -13,          /**< The object is in use, and the call cannot wait for it. */
    MUSTER_E_PERMISSION = -14,    /**< The operating system refuses this user. */
    MUSTER_E_AUTH = -15,          /**< The proof of the shared secret failed, on one side or the other. */
    MUSTER_E_PROTOCOL = -16,      /**< The peer violated the protocol, or has no common version. */
    MUSTER_E_ADDRESS = -17,       /**< The address cannot be parsed. */
    MUSTER_E_UNREACHABLE = -18,   /**< No answer from the address: refused, no route, name unknown. */
    MUSTER_E_PEER = -19,          /**< The peer closed or died, or the connection to it broke. */
    MUSTER_E_ABORTED = -20,       /**< The stream was aborted with a reason, here or by the peer. */
    MUSTER_E_END = -21,           /**< Orderly end: the peer half-closed and everything was read. */
    MUSTER_E_SYSTEM = -22,        /**< A system call failed; see muster_error::os_errno. */
    MUSTER_E_PLUGIN = -23,        /**< A plug-in is missing, refused to start, or violated its contract. */
    MUSTER_E_INTERNAL = -24,      /**< A defect of the library; please report the text. */
    MUSTER_E_CHANGED = -25,       /**< A condition does not hold: the value is not the expected one. */
    MUSTER_E_STORE_LOST = -26,    /**< The store is lost with its content, or cannot be reached any more. */
    MUSTER_E_QUORUM = -27,        /**< Too few members of the last round can be reached to make the next one. */
    MUSTER_E_MISMATCH = -28       /**< The members of a group perform different operations. */
};

/** The reason of a failure; caller-owned, 256 bytes, no pointers. Written when the status is negative, and by a dial
 * that is not complete in time (::MUSTER_TIMEOUT). */
typedef struct muster_error {
    muster_status status;   /**< The value that the call returned. */
    int32_t os_errno;       /**< errno of the failing system call, or 0. */
    int64_t provider_code;  /**< Code of the library that a plug-in uses (libzmq, MPI), or 0. */
    uint32_t rank;          /**< Rank at fault, or UINT32_MAX if local or unknown. */
    uint32_t message_bytes; /**< Length of the text, terminator not counted. */
    char message[232];      /**< UTF-8, NUL-terminated, cut at a character boundary. */
} muster_error;

/** Returns the name of a status, for logs: "MUSTER_E_PEER".
 * @param[in] status  Any value.
 * @return Static text, never NULL; "MUSTER_E_?" for a value that this library does not know.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API const char *muster_status_name(muster_status status);

/** Describes a status in a few words: "the peer died or the way to it broke".
 * @param[in] status  Any value.
 * @return Static text, never NULL.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API const char *muster_status_text(muster_status status);

/** Returns the version of the loaded library.
 * @param[out] out_major  Major number, or NULL.
 * @param[out] out_minor  Minor number, or NULL.
 * @param[out] out_patch  Patch number, or NULL.
 * @return The same as static text, "0.1.0".
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API const char *muster_version(uint32_t *out_major, uint32_t *out_minor, uint32_t *out_patch);

/** Initialises a growing struct: zeroes it and writes its size into the first field.
 * For languages without C macros; the same as `memset` and `struct_size = sizeof`.
 * @param[out] config       Any struct of this library that begins with `uint32_t struct_size`.
 * @param[in]  struct_size  Its size in the compiled caller, 4 to 65536 bytes.
 * @retval MUSTER_OK     Initialised.
 * @retval MUSTER_E_ARG  NULL or an impossible size.
 * @threads{any} @blocks{no} @since 0.1 */
MUSTER_API muster_status muster_config_init(void *config, uint32_t struct_size);

#ifdef __cplusplus
}
#endif
#endif
