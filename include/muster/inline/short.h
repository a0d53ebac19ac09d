/* SPDX-License-Identifier: MIT */
/** @file
 * Short forms of common tasks for C and C++: strings end with NUL, and there are defaults for the rest. Each is a few
 * calls of the functions that it names, whose documentation has the details; a program may mix both.
 *
 *     muster_listener *listener;                            muster_stream *stream;
 *     muster_stream *stream;                                muster_dial_z(NULL, "tcp://127.0.0.1:7000", -1,
 *     char text[6];                                                       &stream, &error);
 *     muster_listen_z(NULL, "tcp://127.0.0.1:7000",         muster_write_all(stream, "hello", 6, -1);
 *                     &listener, &error);                   muster_end(stream, -1);
 *     muster_listener_accept(listener, -1, &stream, &error);
 *     muster_read_all(stream, text, 6, -1);
 *     muster_end(stream, -1);
 *     muster_listener_release(listener);
 *
 * `context` is NULL for the context of the process (muster_context_default()), whose secret is in the environment. */
#ifndef MUSTER_INLINE_SHORT_H
#define MUSTER_INLINE_SHORT_H

#include <muster/store.h>
#include <muster/transport.h>

/** The context itself, or that of the process in place of NULL, for one call: muster_context_release_default() ends it.
 * @param[in]  context      Context, or NULL.
 * @param[out] out_context  The context.
 * @param[out] error        Detail on failure, or NULL.
 * @return As muster_context_default(). */
static inline muster_status muster_context_or_default(muster_context *context, muster_context **out_context,
                                                      muster_error *error) {
    *out_context = context;
    return context != NULL ? MUSTER_OK : muster_context_default(out_context, error);
}
/** Ends a use of muster_context_or_default().
 * @param[in] context  Context that was given, or NULL.
 * @param[in] used     Context that was returned.
 * @param[in] status   Returned.
 * @return The status. */
static inline muster_status muster_context_release_default(muster_context *context, muster_context *used,
                                                           muster_status status) {
    if (context == NULL) muster_context_release(used);
    return status;
}

/* ---- streams */

/** Listens: muster_transport_listen().
 * @param[in]  context       Context, or NULL.
 * @param[in]  address       Where, as `tcp://127.0.0.1:0`.
 * @param[out] out_listener  The listener; the caller owns one reference. NULL on failure.
 * @param[out] error         Detail on failure, or NULL.
 * @return As muster_transport_listen(). */
static inline muster_status muster_listen_z(muster_context *context, const char *address,
                                            muster_listener **out_listener, muster_error *error) {
    muster_context *used;
    const muster_status status = muster_context_or_default(context, &used, error);
    *out_listener = NULL;
    if (status != MUSTER_OK) return status;
    return muster_context_release_default(
        context, used, muster_transport_listen(used, address, __builtin_strlen(address), NULL, out_listener, error));
}

/** Dials: muster_transport_dial().
 * @param[in]  context     Context, or NULL.
 * @param[in]  address     Where, as `tcp://127.0.0.1:7000`.
 * @param[in]  timeout_ns  Maximum wait; -1: no limit.
 * @param[out] out_stream  The stream; the caller owns one reference, or muster_end() takes it. NULL on failure.
 * @param[out] error       Detail on failure, or NULL.
 * @return As muster_transport_dial(). */
static inline muster_status muster_dial_z(muster_context *context, const char *address, int64_t timeout_ns,
                                          muster_stream **out_stream, muster_error *error) {
    muster_context *used;
    const muster_status status = muster_context_or_default(context, &used, error);
    *out_stream = NULL;
    if (status != MUSTER_OK) return status;
    return muster_context_release_default(
        context, used,
        muster_transport_dial(used, address, __builtin_strlen(address), NULL, timeout_ns, out_stream, error));
}

/** Writes all bytes: muster_stream_write().
 * @param[in] stream      Stream.
 * @param[in] data        The bytes.
 * @param[in] size_bytes  Their number.
 * @param[in] timeout_ns  Maximum wait; -1: no limit.
 * @return As muster_stream_write(); unless it is ::MUSTER_OK, an unknown part was written. */
static inline muster_status muster_write_all(muster_stream *stream, const void *data, size_t size_bytes,
                                             int64_t timeout_ns) {
    size_t written = 0;
    return muster_stream_write(stream, data, size_bytes, timeout_ns, &written);
}

/** Reads so many bytes: muster_stream_read_into().
 * @param[in]  stream      Stream.
 * @param[out] out_data    Where to.
 * @param[in]  size_bytes  How many.
 * @param[in]  timeout_ns  Maximum wait; -1: no limit.
 * @return As muster_stream_read_into(); unless it is ::MUSTER_OK, an unknown part was read. */
static inline muster_status muster_read_all(muster_stream *stream, void *out_data, size_t size_bytes,
                                            int64_t timeout_ns) {
    size_t read = 0;
    return muster_stream_read_into(stream, out_data, size_bytes, 0, timeout_ns, &read);
}

/** Ends a stream: what was written is sent, and the handle is released. muster_stream_close(), muster_stream_release().
 * @param[in] stream      Stream, or NULL; not used again.
 * @param[in] timeout_ns  Maximum wait for what is still to be sent; -1: no limit.
 * @return As muster_stream_close(); ::MUSTER_OK: everything has left. */
static inline muster_status muster_end(muster_stream *stream, int64_t timeout_ns) {
    const muster_status status = stream == NULL ? MUSTER_OK : muster_stream_close(stream, timeout_ns);
    muster_stream_release(stream);
    return status;
}

/* ---- stores */

/** Opens a store: muster_store_open().
 * @param[in]  context     Context, or NULL.
 * @param[in]  url         The store, as `tcp://127.0.0.1:29400`.
 * @param[in]  timeout_ns  Maximum wait; -1: no limit.
 * @param[out] out_store   The store; the caller owns one reference. NULL on failure.
 * @param[out] error       Detail on failure, or NULL.
 * @return As muster_store_open(). */
static inline muster_status muster_store_open_z(muster_context *context, const char *url, int64_t timeout_ns,
                                                muster_store **out_store, muster_error *error) {
    muster_context *used;
    const muster_status status = muster_context_or_default(context, &used, error);
    *out_store = NULL;
    if (status != MUSTER_OK) return status;
    return muster_context_release_default(
        context, used, muster_store_open(used, url, __builtin_strlen(url), NULL, timeout_ns, out_store, error));
}

/** An operation on a key, for muster_store_do().
 * @param[in] kind  A ::muster_store_op_kind.
 * @param[in] key   The key.
 * @return The operation, other fields zero. */
static inline muster_store_op muster_store_op_z(uint32_t kind, const char *key) {
    muster_store_op op;
    __builtin_memset(&op, 0, sizeof op);
    op.kind = kind;
    op.key = key;
    op.key_bytes = __builtin_strlen(key);
    return op;
}

/** Sets the value of a key.
 * @param[in]  store        Store.
 * @param[in]  key          The key.
 * @param[in]  value        The value.
 * @param[in]  value_bytes  Its length.
 * @param[in]  timeout_ns   Maximum wait; -1: no limit.
 * @param[out] error        Detail on failure, or NULL.
 * @return As muster_store_do(). */
static inline muster_status muster_store_set_z(muster_store *store, const char *key, const void *value,
                                               size_t value_bytes, int64_t timeout_ns, muster_error *error) {
    muster_store_op op = muster_store_op_z(MUSTER_STORE_SET, key);
    op.value = value;
    op.value_bytes = value_bytes;
    return muster_store_do(store, &op, 1, timeout_ns, NULL, error);
}

/** Reads a value into memory of the caller; muster_store_get_z() and muster_store_read_z() use it.
 * @param[in]  store       Store.
 * @param[in]  op          GET or READ.
 * @param[out] out_value   Where to; unchanged on failure.
 * @param[in]  capacity    Size of the destination.
 * @param[out] out_bytes   Length of the value; 0 on failure, except ::MUSTER_E_LIMIT.
 * @param[in]  timeout_ns  Maximum wait; -1: no limit.
 * @param[out] error       Detail on failure, or NULL.
 * @return As muster_store_do(); ::MUSTER_E_NOT_FOUND: the key is absent; ::MUSTER_E_LIMIT: the destination is too
 * small.
 */
static inline muster_status muster_store_fetch(muster_store *store, const muster_store_op *op, void *out_value,
                                               size_t capacity, size_t *out_bytes, int64_t timeout_ns,
                                               muster_error *error) {
    muster_store_result *result = NULL;
    muster_store_entry entry;
    muster_status status = muster_store_do(store, op, 1, timeout_ns, &result, error);
    *out_bytes = 0;
    if (status == MUSTER_OK) status = muster_store_result_entry(result, 0, &entry);
    if (status == MUSTER_OK && (entry.flags & MUSTER_STORE_PRESENT) == 0) status = MUSTER_E_NOT_FOUND;
    if (status == MUSTER_OK) {
        *out_bytes = entry.value_bytes;
        if (entry.value_bytes > capacity)
            status = MUSTER_E_LIMIT;
        else if (entry.value_bytes != 0 && out_value != NULL)
            __builtin_memcpy(out_value, entry.value, entry.value_bytes);
    }
    muster_store_result_release(result);
    return status;
}

/** Reads the value of a key, and waits until the key is present.
 * @param[in]  store       Store.
 * @param[in]  key         The key.
 * @param[out] out_value   Where to; unchanged on failure.
 * @param[in]  capacity    Size of the destination.
 * @param[out] out_bytes   Length of the value.
 * @param[in]  timeout_ns  Maximum wait; -1: no limit.
 * @param[out] error       Detail on failure, or NULL.
 * @return As muster_store_fetch(). */
static inline muster_status muster_store_get_z(muster_store *store, const char *key, void *out_value, size_t capacity,
                                               size_t *out_bytes, int64_t timeout_ns, muster_error *error) {
    const muster_store_op op = muster_store_op_z(MUSTER_STORE_GET, key);
    return muster_store_fetch(store, &op, out_value, capacity, out_bytes, timeout_ns, error);
}

/** Reads the value of a key as it is now.
 * @param[in]  store       Store.
 * @param[in]  key         The key.
 * @param[out] out_value   Where to; unchanged on failure.
 * @param[in]  capacity    Size of the destination.
 * @param[out] out_bytes   Length of the value.
 * @param[in]  timeout_ns  Maximum wait for the answer; -1: no limit.
 * @param[out] error       Detail on failure, or NULL.
 * @return As muster_store_fetch(). */
static inline muster_status muster_store_read_z(muster_store *store, const char *key, void *out_value, size_t capacity,
                                                size_t *out_bytes, int64_t timeout_ns, muster_error *error) {
    const muster_store_op op = muster_store_op_z(MUSTER_STORE_READ, key);
    return muster_store_fetch(store, &op, out_value, capacity, out_bytes, timeout_ns, error);
}

/** Adds to the decimal number in a key; an absent key counts as 0.
 * @param[in]  store       Store.
 * @param[in]  key         The key.
 * @param[in]  number      The summand.
 * @param[out] out_sum     The sum, or NULL.
 * @param[in]  timeout_ns  Maximum wait; -1: no limit.
 * @param[out] error       Detail on failure, or NULL.
 * @return As muster_store_do(). */
static inline muster_status muster_store_add_z(muster_store *store, const char *key, int64_t number, int64_t *out_sum,
                                               int64_t timeout_ns, muster_error *error) {
    muster_store_op op = muster_store_op_z(MUSTER_STORE_ADD, key);
    muster_store_result *result = NULL;
    muster_store_entry entry;
    muster_status status;
    op.number = number;
    status = muster_store_do(store, &op, 1, timeout_ns, &result, error);
    if (status == MUSTER_OK) status = muster_store_result_entry(result, 0, &entry);
    if (status == MUSTER_OK && out_sum != NULL) *out_sum = entry.number;
    muster_store_result_release(result);
    return status;
}

/** Sets the value of a key if the key has another value now, or is absent.
 * @param[in]  store           Store.
 * @param[in]  key             The key.
 * @param[in]  expected        The value that it must have; NULL: it must be absent.
 * @param[in]  expected_bytes  Its length.
 * @param[in]  value           The new value.
 * @param[in]  value_bytes     Its length.
 * @param[in]  timeout_ns      Maximum wait; -1: no limit.
 * @param[out] error           Detail on failure, or NULL.
 * @return As muster_store_do(); ::MUSTER_E_CHANGED: it is another one, nothing was changed. */
static inline muster_status muster_store_compare_set_z(muster_store *store, const char *key, const void *expected,
                                                       size_t expected_bytes, const void *value, size_t value_bytes,
                                                       int64_t timeout_ns, muster_error *error) {
    muster_store_op op = muster_store_op_z(MUSTER_STORE_SET, key);
    op.condition = expected == NULL ? MUSTER_STORE_IF_ABSENT : MUSTER_STORE_IF_VALUE;
    op.expected = expected;
    op.expected_bytes = expected_bytes;
    op.value = value;
    op.value_bytes = value_bytes;
    return muster_store_do(store, &op, 1, timeout_ns, NULL, error);
}

/** Waits until a key is present.
 * @param[in]  store       Store.
 * @param[in]  key         The key.
 * @param[in]  timeout_ns  Maximum wait; -1: no limit.
 * @param[out] error       Detail on failure, or NULL.
 * @return As muster_store_do(). */
static inline muster_status muster_store_wait_z(muster_store *store, const char *key, int64_t timeout_ns,
                                                muster_error *error) {
    const muster_store_op op = muster_store_op_z(MUSTER_STORE_WAIT, key);
    return muster_store_do(store, &op, 1, timeout_ns, NULL, error);
}

/** Deletes a key.
 * @param[in]  store       Store.
 * @param[in]  key         The key.
 * @param[in]  timeout_ns  Maximum wait; -1: no limit.
 * @param[out] error       Detail on failure, or NULL.
 * @return As muster_store_do(); ::MUSTER_E_NOT_FOUND: the key was absent. */
static inline muster_status muster_store_delete_z(muster_store *store, const char *key, int64_t timeout_ns,
                                                  muster_error *error) {
    const muster_store_op op = muster_store_op_z(MUSTER_STORE_DELETE, key);
    muster_store_result *result = NULL;
    muster_store_entry entry;
    muster_status status = muster_store_do(store, &op, 1, timeout_ns, &result, error);
    if (status == MUSTER_OK) status = muster_store_result_entry(result, 0, &entry);
    if (status == MUSTER_OK && (entry.flags & MUSTER_STORE_PRESENT) == 0) status = MUSTER_E_NOT_FOUND;
    muster_store_result_release(result);
    return status;
}

#endif
