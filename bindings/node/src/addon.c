// SPDX-License-Identifier: MIT
// The calls of libmuster that index.js needs, as a Node-API module: no call here blocks, and what happens later is
// handed to one function of JavaScript, on its thread. Node-API alone is used, so one build works with every later
// Node.
#include <muster/muster.h>
#include <node_api.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OK(call)                                                                                                       \
    do {                                                                                                               \
        if ((call) != napi_ok) return fail_napi(env);                                                                  \
    } while (0)

enum { max_ops = 64, entries_at_once = 1024, longest_text = 4400 };

// ---- errors ---------------------------------------------------------------------------------------------------------

static napi_value fail_napi(napi_env env) {
    bool is_pending = false;
    const napi_extended_error_info *info = NULL;
    napi_get_last_error_info(env, &info);
    napi_is_exception_pending(env, &is_pending);
    const char *const text = info != NULL && info->error_message != NULL ? info->error_message : "a wrong argument";
    if (!is_pending) napi_throw_type_error(env, NULL, text);
    return NULL;
}

static napi_value fail(napi_env env, muster_status status, const char *text, size_t bytes) {
    napi_value error, code, message, number;
    if (bytes == 0) text = muster_status_text(status), bytes = strlen(text);
    if (napi_create_string_utf8(env, text, bytes, &message) != napi_ok ||
        napi_create_string_utf8(env, muster_status_name(status), NAPI_AUTO_LENGTH, &code) != napi_ok ||
        napi_create_error(env, code, message, &error) != napi_ok ||
        napi_create_int32(env, status, &number) != napi_ok ||
        napi_set_named_property(env, error, "status", number) != napi_ok)
        return fail_napi(env);
    napi_throw(env, error);
    return NULL;
}

static napi_value fail_with(napi_env env, muster_status status, const muster_error *error) {
    return fail(env, status, error->message, error->message_bytes);
}

// ---- handles --------------------------------------------------------------------------------------------------------

enum kind { CONTEXT = 0x6d01, STREAM, LISTENER, STORE };

// What JavaScript holds; `object` is NULL once it was released.
typedef struct handle {
    enum kind kind;
    void *object;
} handle;

typedef struct runtime {
    handle base; // kind CONTEXT, object the muster_context
    napi_env env;
    muster_queue *queue;
    napi_threadsafe_function woken;
    napi_ref on_entry;
    bool is_open;
} runtime;

static void release_object(handle *h) {
    void *const object = h->object;
    h->object = NULL;
    if (h->kind == STREAM) muster_stream_release(object);
    if (h->kind == LISTENER) muster_listener_release(object);
    if (h->kind == STORE) muster_store_release(object);
}

static void collected(napi_env env, void *data, void *hint) {
    (void)env, (void)hint;
    handle *const h = data;
    release_object(h);
    free(h);
}

static napi_value wrap(napi_env env, enum kind kind, void *object) {
    handle *const h = malloc(sizeof *h);
    napi_value value;
    if (h == NULL) return fail(env, MUSTER_E_NOMEM, NULL, 0);
    *h = (handle){kind, object};
    if (napi_create_external(env, h, collected, NULL, &value) == napi_ok) return value;
    collected(env, h, NULL);
    return fail_napi(env);
}

// The object behind an argument; NULL, with an exception: it is another one, or was released.
static void *unwrap(napi_env env, napi_value value, enum kind kind) {
    void *data = NULL;
    napi_valuetype type;
    if (napi_typeof(env, value, &type) != napi_ok || type != napi_external ||
        napi_get_value_external(env, value, &data) != napi_ok || data == NULL || ((handle *)data)->kind != kind) {
        fail(env, MUSTER_E_ARG, NULL, 0);
        return NULL;
    }
    if (((handle *)data)->object == NULL) {
        fail(env, MUSTER_E_CLOSED, NULL, 0);
        return NULL;
    }
    return kind == CONTEXT ? data : ((handle *)data)->object;
}

// ---- arguments ------------------------------------------------------------------------------------------------------

#define ARGUMENTS(count)                                                                                               \
    napi_value args[count];                                                                                            \
    size_t got = count;                                                                                                \
    OK(napi_get_cb_info(env, info, &got, args, NULL, NULL));                                                           \
    if (got < (count)) return fail(env, MUSTER_E_ARG, NULL, 0)

// A string or bytes; a string is copied to the heap, and `*out_free` has to be freed. False: an exception is pending.
static bool read_bytes(napi_env env, napi_value value, const void **out, size_t *out_bytes, void **out_free) {
    napi_valuetype type;
    *out = NULL, *out_bytes = 0, *out_free = NULL;
    if (napi_typeof(env, value, &type) != napi_ok) return fail_napi(env), false;
    if (type == napi_undefined || type == napi_null) return true;
    if (type == napi_string) {
        size_t bytes = 0;
        char *text = NULL;
        if (napi_get_value_string_utf8(env, value, NULL, 0, &bytes) == napi_ok) text = malloc(bytes + 1);
        if (text == NULL || napi_get_value_string_utf8(env, value, text, bytes + 1, &bytes) != napi_ok) {
            free(text);
            return fail(env, MUSTER_E_NOMEM, NULL, 0), false;
        }
        *out = *out_free = text, *out_bytes = bytes;
        return true;
    }
    void *data = NULL;
    size_t length = 0;
    napi_typedarray_type element;
    bool is_array = false;
    if (napi_is_typedarray(env, value, &is_array) != napi_ok || !is_array ||
        napi_get_typedarray_info(env, value, &element, &length, &data, NULL, NULL) != napi_ok ||
        element != napi_uint8_array) {
        napi_throw_type_error(env, NULL, "bytes are a Uint8Array or a string");
        return false;
    }
    *out = data != NULL ? data : "", *out_bytes = length;
    return true;
}

static bool read_int64(napi_env env, napi_value value, int64_t *out) {
    napi_valuetype type;
    bool is_lossless = true;
    if (napi_typeof(env, value, &type) != napi_ok) return fail_napi(env), false;
    if (type == napi_undefined) return *out = 0, true;
    const napi_status got = type == napi_bigint ? napi_get_value_bigint_int64(env, value, out, &is_lossless)
                                                : napi_get_value_int64(env, value, out);
    if (got == napi_ok && is_lossless) return true;
    if (got == napi_ok) napi_throw_range_error(env, NULL, "the number has more than 64 bits");
    return got == napi_ok ? false : (fail_napi(env), false);
}

static napi_value undefined(napi_env env) {
    napi_value value;
    return napi_get_undefined(env, &value) == napi_ok ? value : NULL;
}

static napi_value number(napi_env env, int64_t value) {
    napi_value result;
    const bool is_safe = value >= -9007199254740991 && value <= 9007199254740991;
    const napi_status made =
        is_safe ? napi_create_int64(env, value, &result) : napi_create_bigint_int64(env, value, &result);
    return made == napi_ok ? result : fail_napi(env);
}

static napi_value checked(napi_env env, muster_status status, const muster_error *error) {
    return status == MUSTER_OK ? undefined(env) : fail_with(env, status, error);
}

static napi_value text_or_failure(napi_env env, muster_status status, const char *text, const size_t *bytes) {
    napi_value value;
    if (status != MUSTER_OK) return fail(env, status, NULL, 0);
    OK(napi_create_string_utf8(env, text, *bytes, &value));
    return value;
}

// ---- a context ------------------------------------------------------------------------------------------------------

// A thread of the library: there are entries.
static int wake(void *user) {
    napi_call_threadsafe_function(((runtime *)user)->woken, NULL, napi_tsfn_nonblocking);
    return 0;
}

static napi_value buffer_of(napi_env env, const void *data, size_t bytes) {
    napi_value value;
    return napi_create_buffer_copy(env, bytes, data, NULL, &value) == napi_ok ? value : NULL;
}

static bool set(napi_env env, napi_value object, const char *name, napi_value value) {
    return value != NULL && napi_set_named_property(env, object, name, value) == napi_ok;
}

// An array of the entries of a result, with its `revision`.
static napi_value entries_of(napi_env env, const muster_store_result *result) {
    napi_value list;
    const uint64_t count = muster_store_result_count(result);
    OK(napi_create_array_with_length(env, count, &list));
    if (!set(env, list, "revision", number(env, (int64_t)muster_store_result_revision(result)))) return fail_napi(env);
    for (uint64_t i = 0; i < count; i++) {
        muster_store_entry entry;
        napi_value one, flags;
        if (muster_store_result_entry(result, i, &entry) != MUSTER_OK) continue;
        OK(napi_create_object(env, &one));
        OK(napi_create_uint32(env, entry.flags, &flags));
        if (!set(env, one, "flags", flags) || !set(env, one, "version", number(env, (int64_t)entry.version)) ||
            !set(env, one, "number", number(env, entry.number)) ||
            !set(env, one, "key", buffer_of(env, entry.key, entry.key_bytes)) ||
            !set(env, one, "value", buffer_of(env, entry.value, entry.value_bytes)) ||
            napi_set_element(env, list, (uint32_t)i, one) != napi_ok)
            return fail_napi(env);
    }
    return list;
}

// What an entry hands over, as a value of JavaScript.
static napi_value object_of(napi_env env, const muster_completion *entry) {
    switch (entry->object != NULL ? entry->kind : 0) {
    case MUSTER_DONE_DIAL:
        return wrap(env, STREAM, entry->object);
    case MUSTER_DONE_OPEN:
        return wrap(env, STORE, entry->object);
    case MUSTER_DONE_STORE: {
        const napi_value list = entries_of(env, entry->object);
        muster_store_result_release(entry->object);
        return list;
    }
    default:
        return undefined(env);
    }
}

static void hand_over(napi_env env, const runtime *r, const muster_completion *entry, const muster_error *error) {
    napi_handle_scope scope;
    napi_value function, self, args[6];
    if (napi_open_handle_scope(env, &scope) != napi_ok) return;
    const bool is_made =
        napi_get_reference_value(env, r->on_entry, &function) == napi_ok && napi_get_undefined(env, &self) == napi_ok &&
        (args[0] = number(env, (int64_t)entry->tag)) != NULL &&
        napi_create_int32(env, entry->status, &args[1]) == napi_ok &&
        napi_create_uint32(env, entry->events, &args[2]) == napi_ok && (args[3] = object_of(env, entry)) != NULL &&
        napi_create_string_utf8(env, error->message, error->message_bytes, &args[4]) == napi_ok &&
        napi_create_string_utf8(env, muster_status_name(entry->status), NAPI_AUTO_LENGTH, &args[5]) == napi_ok;
    if (is_made) napi_call_function(env, self, function, 6, args, NULL);
    napi_value thrown;
    bool is_pending = false;
    napi_is_exception_pending(env, &is_pending);
    // As from any callback of Node: an exception that nothing catches ends the program.
    if (is_pending && napi_get_and_clear_last_exception(env, &thrown) == napi_ok) napi_fatal_exception(env, thrown);
    napi_close_handle_scope(env, scope);
}

// The thread of JavaScript, after a wake().
static void take_entries(napi_env env, napi_value unused, void *context, void *data) {
    (void)unused, (void)data;
    runtime *const r = context;
    if (env == NULL) return; // the environment ends
    for (int taken = 0; r->is_open; taken++) {
        if (taken == entries_at_once) { // timers and others have their turn
            wake(r);
            return;
        }
        muster_completion entry;
        muster_error error = {0};
        if (muster_queue_next(r->queue, 0, &entry, &error) != MUSTER_OK) return;
        hand_over(env, r, &entry, &error);
    }
}

static void shut(void *data) {
    runtime *const r = data;
    if (!r->is_open) return;
    r->is_open = false;
    muster_queue_set_wake(r->queue, NULL, NULL); // returns when wake() does not run any more
    muster_queue_close(r->queue);
    muster_context_close(r->base.object, 0);
    napi_release_threadsafe_function(r->woken, napi_tsfn_abort);
}

static void runtime_collected(napi_env env, void *data, void *hint) {
    (void)hint;
    runtime *const r = data;
    if (r->is_open) napi_remove_env_cleanup_hook(env, shut, r);
    shut(r);
    napi_delete_reference(env, r->on_entry);
    muster_queue_release(r->queue);
    muster_context_release(r->base.object);
    free(r);
}

// open(secret, onEntry): a context with a queue. onEntry(tag, status, events, object, message, statusName)
static napi_value open_context(napi_env env, napi_callback_info info) {
    ARGUMENTS(2);
    const void *secret;
    void *to_free;
    size_t bytes;
    if (!read_bytes(env, args[0], &secret, &bytes, &to_free)) return NULL;
    muster_context_config config = {.struct_size = sizeof config, .secret = secret, .secret_bytes = bytes};
    muster_error error = {0};
    muster_context *context = NULL;
    muster_queue *queue = NULL;
    muster_status status = muster_context_create(&config, &context, &error);
    free(to_free);
    if (status == MUSTER_OK) status = muster_queue_create(context, NULL, &queue, &error);
    runtime *const r = status == MUSTER_OK ? calloc(1, sizeof *r) : NULL;
    if (r == NULL) {
        muster_queue_release(queue);
        muster_context_release(context);
        return fail_with(env, status != MUSTER_OK ? status : MUSTER_E_NOMEM, &error);
    }
    r->base = (handle){CONTEXT, context}, r->env = env, r->queue = queue;
    napi_value name, value;
    const bool is_made = napi_create_string_utf8(env, "muster", NAPI_AUTO_LENGTH, &name) == napi_ok &&
                         napi_create_reference(env, args[1], 1, &r->on_entry) == napi_ok &&
                         napi_create_threadsafe_function(env, NULL, NULL, name, 0, 1, NULL, NULL, r, take_entries,
                                                         &r->woken) == napi_ok &&
                         napi_unref_threadsafe_function(env, r->woken) == napi_ok;
    if (is_made) status = muster_queue_set_wake(queue, wake, r);
    r->is_open = is_made && status == MUSTER_OK;
    if (!r->is_open || napi_create_external(env, r, runtime_collected, NULL, &value) != napi_ok) {
        runtime_collected(env, r, NULL);
        return status != MUSTER_OK ? fail(env, status, NULL, 0) : fail_napi(env);
    }
    napi_add_env_cleanup_hook(env, shut, r);
    return value;
}

static napi_value close_context(napi_env env, napi_callback_info info) {
    ARGUMENTS(1);
    runtime *const r = unwrap(env, args[0], CONTEXT);
    if (r == NULL) return NULL;
    if (r->is_open) napi_remove_env_cleanup_hook(env, shut, r);
    shut(r);
    return undefined(env);
}

// hold(context, on): does it keep the process alive?
static napi_value hold(napi_env env, napi_callback_info info) {
    ARGUMENTS(2);
    bool on = false;
    runtime *const r = unwrap(env, args[0], CONTEXT);
    if (r == NULL) return NULL;
    OK(napi_get_value_bool(env, args[1], &on));
    if (r->is_open)
        OK(on ? napi_ref_threadsafe_function(env, r->woken) : napi_unref_threadsafe_function(env, r->woken));
    return undefined(env);
}

static runtime *open_runtime(napi_env env, napi_value value) {
    runtime *const r = unwrap(env, value, CONTEXT);
    if (r != NULL && !r->is_open) return fail(env, MUSTER_E_CLOSED, NULL, 0), NULL;
    return r;
}

// ---- streams and listeners ------------------------------------------------------------------------------------------

// The arguments (context, address, timeoutNs, tag) of what is opened in the background; `to_free` has to be freed.
typedef struct opening {
    runtime *r;
    const void *address;
    size_t bytes;
    void *to_free;
    int64_t timeout_ns, tag;
} opening;

static bool read_opening(napi_env env, const napi_value *args, opening *out) {
    out->r = open_runtime(env, args[0]);
    return out->r != NULL && read_int64(env, args[2], &out->timeout_ns) && read_int64(env, args[3], &out->tag) &&
           read_bytes(env, args[1], &out->address, &out->bytes, &out->to_free);
}

static napi_value dial(napi_env env, napi_callback_info info) {
    ARGUMENTS(4);
    opening o;
    muster_error error = {0};
    if (!read_opening(env, args, &o)) return NULL;
    const muster_status status = muster_transport_dial_begin(o.r->base.object, o.address, o.bytes, NULL, o.timeout_ns,
                                                             o.r->queue, (uint64_t)o.tag, &error);
    free(o.to_free);
    return checked(env, status, &error);
}

// listen(context, address, tag): a listener; its tag is ready when a connection waits
static napi_value listen_at(napi_env env, napi_callback_info info) {
    ARGUMENTS(3);
    runtime *const r = open_runtime(env, args[0]);
    const void *address;
    void *to_free;
    size_t bytes;
    int64_t tag;
    if (r == NULL || !read_int64(env, args[2], &tag) || !read_bytes(env, args[1], &address, &bytes, &to_free))
        return NULL;
    muster_error error = {0};
    muster_listener *listener = NULL;
    muster_status status = muster_transport_listen(r->base.object, address, bytes, NULL, &listener, &error);
    free(to_free);
    if (status == MUSTER_OK) status = muster_listener_watch(listener, r->queue, (uint64_t)tag);
    if (status == MUSTER_OK) return wrap(env, LISTENER, listener);
    muster_listener_release(listener);
    return fail_with(env, status, &error);
}

static napi_value listener_address(napi_env env, napi_callback_info info) {
    ARGUMENTS(1);
    char text[longest_text];
    size_t bytes = 0;
    muster_listener *const listener = unwrap(env, args[0], LISTENER);
    if (listener == NULL) return NULL;
    return text_or_failure(env, muster_listener_address(listener, text, sizeof text, &bytes), text, &bytes);
}

// accept(listener): a stream that waits; undefined: none
static napi_value accept_one(napi_env env, napi_callback_info info) {
    ARGUMENTS(1);
    muster_error error = {0};
    muster_stream *stream = NULL;
    muster_listener *const listener = unwrap(env, args[0], LISTENER);
    if (listener == NULL) return NULL;
    const muster_status status = muster_listener_accept(listener, 0, &stream, &error);
    if (status == MUSTER_AGAIN) return undefined(env);
    return status == MUSTER_OK ? wrap(env, STREAM, stream) : fail_with(env, status, &error);
}

static napi_value pair(napi_env env, napi_callback_info info) {
    ARGUMENTS(1);
    runtime *const r = open_runtime(env, args[0]);
    muster_error error = {0};
    muster_stream *ends[2];
    napi_value list;
    if (r == NULL) return NULL;
    const muster_status status = muster_stream_pair(r->base.object, NULL, &ends[0], &ends[1], &error);
    if (status != MUSTER_OK) return fail_with(env, status, &error);
    const napi_value first = wrap(env, STREAM, ends[0]), second = wrap(env, STREAM, ends[1]);
    if (first == NULL || second == NULL) return NULL;
    OK(napi_create_array_with_length(env, 2, &list));
    OK(napi_set_element(env, list, 0, first));
    OK(napi_set_element(env, list, 1, second));
    return list;
}

// watch(stream, context, events, tag)
static napi_value watch(napi_env env, napi_callback_info info) {
    ARGUMENTS(4);
    muster_stream *const stream = unwrap(env, args[0], STREAM);
    runtime *const r = stream != NULL ? open_runtime(env, args[1]) : NULL;
    int64_t events, tag;
    if (r == NULL || !read_int64(env, args[2], &events) || !read_int64(env, args[3], &tag)) return NULL;
    const muster_status status = muster_stream_watch(stream, (uint32_t)events, r->queue, (uint64_t)tag);
    return status == MUSTER_OK ? undefined(env) : fail(env, status, NULL, 0);
}

// The reason why a stream has ended, where it has one.
static napi_value fail_stream(napi_env env, muster_stream *stream, muster_status status) {
    muster_error error = {0};
    uint64_t reason = 0;
    if (muster_stream_reason(stream, &reason, &error) == MUSTER_OK) error.message_bytes = 0; // it has not ended
    return fail_with(env, status, &error);
}

// read(stream, bytes): how many were read; -1: none has arrived; 0: the end
static napi_value read_some(napi_env env, napi_callback_info info) {
    ARGUMENTS(2);
    const void *place;
    void *to_free;
    size_t bytes, moved = 0;
    muster_stream *const stream = unwrap(env, args[0], STREAM);
    if (stream == NULL || !read_bytes(env, args[1], &place, &bytes, &to_free)) return NULL;
    free(to_free);
    const muster_status status = muster_stream_read(stream, (void *)place, bytes, 0, &moved);
    if (status == MUSTER_OK) return number(env, (int64_t)moved);
    if (status == MUSTER_AGAIN || status == MUSTER_E_END) return number(env, status == MUSTER_AGAIN ? -1 : 0);
    return fail_stream(env, stream, status);
}

// write(stream, bytes, from): how many were accepted, perhaps fewer than there are
static napi_value write_some(napi_env env, napi_callback_info info) {
    ARGUMENTS(3);
    const void *data;
    void *to_free;
    size_t bytes, moved = 0;
    int64_t from;
    muster_stream *const stream = unwrap(env, args[0], STREAM);
    if (stream == NULL || !read_int64(env, args[2], &from) || !read_bytes(env, args[1], &data, &bytes, &to_free))
        return NULL;
    if (from < 0 || (uint64_t)from > bytes) {
        free(to_free);
        return fail(env, MUSTER_E_ARG, NULL, 0);
    }
    const muster_status status =
        muster_stream_write(stream, (const char *)data + from, bytes - (size_t)from, 0, &moved);
    free(to_free);
    return status == MUSTER_OK || status == MUSTER_AGAIN ? number(env, (int64_t)moved)
                                                         : fail_stream(env, stream, status);
}

static napi_value finish(napi_env env, napi_callback_info info) {
    ARGUMENTS(1);
    muster_stream *const stream = unwrap(env, args[0], STREAM);
    if (stream == NULL) return NULL;
    const muster_status status = muster_stream_finish(stream);
    return status == MUSTER_OK ? undefined(env) : fail_stream(env, stream, status);
}

// abort(stream, reason, text)
static napi_value abort_stream(napi_env env, napi_callback_info info) {
    ARGUMENTS(3);
    const void *text;
    void *to_free;
    size_t bytes;
    int64_t reason;
    muster_stream *const stream = unwrap(env, args[0], STREAM);
    if (stream == NULL || !read_int64(env, args[1], &reason) || !read_bytes(env, args[2], &text, &bytes, &to_free))
        return NULL;
    const muster_status status = muster_stream_abort(stream, (uint64_t)reason, text, bytes);
    free(to_free);
    return status == MUSTER_OK ? undefined(env) : fail(env, status, NULL, 0);
}

// close(stream, context, timeoutNs, tag)
static napi_value close_stream(napi_env env, napi_callback_info info) {
    ARGUMENTS(4);
    muster_stream *const stream = unwrap(env, args[0], STREAM);
    runtime *const r = stream != NULL ? open_runtime(env, args[1]) : NULL;
    int64_t timeout_ns, tag;
    muster_error error = {0};
    if (r == NULL || !read_int64(env, args[2], &timeout_ns) || !read_int64(env, args[3], &tag)) return NULL;
    return checked(env, muster_stream_close_begin(stream, timeout_ns, r->queue, (uint64_t)tag, &error), &error);
}

static napi_value peer(napi_env env, napi_callback_info info) {
    ARGUMENTS(1);
    char text[longest_text];
    size_t bytes = 0;
    muster_stream *const stream = unwrap(env, args[0], STREAM);
    if (stream == NULL) return NULL;
    return text_or_failure(env, muster_stream_peer(stream, text, sizeof text, &bytes), text, &bytes);
}

// release(handle), of a stream, listener or store: at once, not when it is collected
static napi_value release(napi_env env, napi_callback_info info) {
    ARGUMENTS(1);
    void *data = NULL;
    OK(napi_get_value_external(env, args[0], &data));
    if (data != NULL && ((handle *)data)->kind != CONTEXT) release_object(data);
    return undefined(env);
}

// ---- stores ---------------------------------------------------------------------------------------------------------

static napi_value open_store(napi_env env, napi_callback_info info) {
    ARGUMENTS(4);
    opening o;
    muster_error error = {0};
    if (!read_opening(env, args, &o)) return NULL;
    const muster_status status = muster_store_open_begin(o.r->base.object, o.address, o.bytes, NULL, o.timeout_ns,
                                                         o.r->queue, (uint64_t)o.tag, &error);
    free(o.to_free);
    return checked(env, status, &error);
}

static napi_value view(napi_env env, napi_callback_info info) {
    ARGUMENTS(2);
    const void *prefix;
    void *to_free;
    size_t bytes;
    muster_store *const store = unwrap(env, args[0], STORE), *made = NULL;
    if (store == NULL || !read_bytes(env, args[1], &prefix, &bytes, &to_free)) return NULL;
    muster_error error = {0};
    const muster_status status = muster_store_view(store, prefix, bytes, &made, &error);
    free(to_free);
    return status == MUSTER_OK ? wrap(env, STORE, made) : fail_with(env, status, &error);
}

typedef struct op_memory {
    void *to_free[3];
} op_memory;

static bool read_property(napi_env env, napi_value object, const char *name, int64_t *out) {
    napi_value value;
    if (napi_get_named_property(env, object, name, &value) != napi_ok) return fail_napi(env), false;
    return read_int64(env, value, out);
}

static bool read_op(napi_env env, napi_value object, muster_store_op *op, op_memory *memory) {
    const struct {
        const char *name;
        const void **data;
        uint64_t *bytes;
    } texts[] = {{"key", &op->key, &op->key_bytes},
                 {"value", &op->value, &op->value_bytes},
                 {"expected", &op->expected, &op->expected_bytes}};
    int64_t kind, condition, version, count, rank;
    for (size_t i = 0; i < 3; i++) {
        napi_value value;
        size_t bytes;
        if (napi_get_named_property(env, object, texts[i].name, &value) != napi_ok) return fail_napi(env), false;
        if (!read_bytes(env, value, texts[i].data, &bytes, &memory->to_free[i])) return false;
        *texts[i].bytes = bytes;
    }
    if (!read_property(env, object, "kind", &kind) || !read_property(env, object, "condition", &condition) ||
        !read_property(env, object, "version", &version) || !read_property(env, object, "number", &op->number) ||
        !read_property(env, object, "count", &count) || !read_property(env, object, "rank", &rank))
        return false;
    op->kind = (uint32_t)kind, op->condition = (uint32_t)condition, op->version = (uint64_t)version;
    op->count = (uint32_t)count, op->rank = (uint32_t)rank;
    return true;
}

// request(store, context, ops, timeoutNs, tag): its number, for cancel()
static napi_value request(napi_env env, napi_callback_info info) {
    ARGUMENTS(5);
    muster_store *const store = unwrap(env, args[0], STORE);
    runtime *const r = store != NULL ? open_runtime(env, args[1]) : NULL;
    uint32_t count = 0;
    int64_t timeout_ns, tag;
    if (r == NULL || !read_int64(env, args[3], &timeout_ns) || !read_int64(env, args[4], &tag)) return NULL;
    OK(napi_get_array_length(env, args[2], &count));
    if (count == 0 || count > max_ops) return fail(env, MUSTER_E_ARG, NULL, 0);
    muster_store_op ops[max_ops];
    op_memory memory[max_ops];
    memset(ops, 0, count * sizeof *ops);
    memset(memory, 0, count * sizeof *memory);
    bool is_read = true;
    for (uint32_t i = 0; is_read && i < count; i++) {
        napi_value one;
        is_read = napi_get_element(env, args[2], i, &one) == napi_ok && read_op(env, one, &ops[i], &memory[i]);
    }
    muster_error error = {0};
    uint64_t id = 0;
    muster_status status = MUSTER_E_ARG;
    if (is_read) status = muster_store_begin(store, ops, count, timeout_ns, r->queue, (uint64_t)tag, &id, &error);
    for (uint32_t i = 0; i < count; i++)
        for (size_t k = 0; k < 3; k++) free(memory[i].to_free[k]);
    if (!is_read) return NULL;
    return status == MUSTER_OK ? number(env, (int64_t)id) : fail_with(env, status, &error);
}

static napi_value cancel(napi_env env, napi_callback_info info) {
    ARGUMENTS(2);
    int64_t id;
    muster_store *const store = unwrap(env, args[0], STORE);
    if (store == NULL || !read_int64(env, args[1], &id)) return NULL;
    muster_store_cancel(store, (uint64_t)id); // a request that has ended meanwhile is not an error
    return undefined(env);
}

static napi_value version(napi_env env, napi_callback_info info) {
    (void)info;
    napi_value value;
    OK(napi_create_string_utf8(env, muster_version(NULL, NULL, NULL), NAPI_AUTO_LENGTH, &value));
    return value;
}

NAPI_MODULE_INIT() {
    static const struct {
        const char *name;
        napi_callback call;
    } calls[] = {{"open", open_context},
                 {"close", close_context},
                 {"hold", hold},
                 {"dial", dial},
                 {"listen", listen_at},
                 {"listenerAddress", listener_address},
                 {"accept", accept_one},
                 {"pair", pair},
                 {"watch", watch},
                 {"read", read_some},
                 {"write", write_some},
                 {"finish", finish},
                 {"abort", abort_stream},
                 {"closeStream", close_stream},
                 {"peer", peer},
                 {"release", release},
                 {"openStore", open_store},
                 {"view", view},
                 {"request", request},
                 {"cancel", cancel},
                 {"version", version}};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        napi_value function;
        OK(napi_create_function(env, calls[i].name, NAPI_AUTO_LENGTH, calls[i].call, NULL, &function));
        OK(napi_set_named_property(env, exports, calls[i].name, function));
    }
    return exports;
}
