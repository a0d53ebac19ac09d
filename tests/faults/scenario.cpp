// SPDX-License-Identifier: MIT
#include "scenario.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <unistd.h>

namespace faults {

thread_local muster_error error;
extern Shared *shared_memory;

namespace {

struct Function {
    const char *name;
    bool returns_status, has_error;
    std::initializer_list<muster_status> documented;
};
const Function functions[] = {
#include "documented.inc"
};
constexpr uint32_t function_count = sizeof functions / sizeof *functions;
static_assert(function_count <= sizeof Shared::called / sizeof(uint32_t));

std::vector<Scenario> &registry() {
    static std::vector<Scenario> all;
    return all;
}

thread_local void **handles[4];
thread_local int handle_count;
std::function<bool()> is_over;
void *const poison = reinterpret_cast<void *>(0x5a5a);
constexpr muster_status untouched = 77777;

bool documents(const Function &f, muster_status status) {
    for (const muster_status one : f.documented)
        if (one == status) return true;
    return false;
}

} // namespace

const std::vector<Scenario> &scenarios() {
    return registry();
}

Registered::Registered(const char *header, const char *name, void (*run)()) {
    registry().push_back({header, name, run});
}

void wrong(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char text[sizeof Shared::message];
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (shared_memory->message[0] == '\0') std::memcpy(shared_memory->message, text, sizeof text);
    _exit(2);
}

void ended() {
    throw Ended{};
}

uint32_t function_index(const char *name) {
    for (uint32_t i = 0; i < function_count; i++)
        if (std::strcmp(functions[i].name, name) == 0) return i;
    wrong("%s is no function of the library", name);
}

const char *function_name(uint32_t index) {
    return index < function_count ? functions[index].name : "a thread of the library";
}

uint32_t count_functions() {
    return function_count;
}

void note_handle(void **handle) {
    *handle = poison;
    handles[handle_count++] = handle;
}

void begin_call(uint32_t function) {
    std::memset(&error, 0x5a, sizeof error);
    error.status = untouched;
    enter(function);
}

void end_plain_call() {
    leave();
}

muster_status end_call(uint32_t function, muster_status status) {
    leave();
    const Function &f = functions[function];
    const char *const name = muster_status_name(status);
    if (!documents(f, status))
        wrong("%s gives %s, which it does not document%s%s", f.name, name, f.has_error ? ": " : "",
              f.has_error && error.status == status ? error.message : "");
    if (f.has_error && status < 0) {
        if (error.status != status)
            wrong("%s gives %s, but the status of its muster_error is %d", f.name, name, error.status);
        if (error.message_bytes == 0) wrong("%s gives %s with an empty text", f.name, name);
        if (std::memchr(error.message, 0, sizeof error.message) != error.message + error.message_bytes)
            wrong("%s gives %s, and message_bytes does not fit the text", f.name, name);
    }
    if (error.status == untouched) error.message[0] = '\0';
    for (int i = 0; i < handle_count; i++) {
        void *const got = *handles[i];
        if (status == MUSTER_OK && (got == poison || got == nullptr)) wrong("%s gives MUSTER_OK and no object", f.name);
        if (status < 0 && got != nullptr) wrong("%s gives %s and does not set the handle to NULL", f.name, name);
        if (status != MUSTER_OK && got == poison) *handles[i] = nullptr;
    }
    handle_count = 0;
    if (status == MUSTER_E_INTERNAL) wrong("%s gives MUSTER_E_INTERNAL: %s", f.name, error.message);
    return status;
}

void expect_fault(const char *function, muster_status status) {
    if (!has_fired())
        wrong("%s gives %s although no call has failed: %s", function, muster_status_name(status), error.message);
    if (is_over && is_over()) ended(); // a client waits until its server is back, and times out
    if (status == MUSTER_TIMEOUT) wrong("%s has timed out: the failure was not reported: %s", function, error.message);
}

Mortal::Mortal(std::function<bool()> condition) {
    is_over = std::move(condition);
}

Mortal::~Mortal() {
    is_over = nullptr;
}

void check_status(const char *function, muster_status status, const char *where) {
    const Function &f = functions[function_index(function)];
    if (!documents(f, status))
        wrong("%s has %s, which %s does not document: %s", where, muster_status_name(status), function, error.message);
    if (status < 0 && error.message_bytes == 0)
        wrong("%s has %s with an empty text", where, muster_status_name(status));
}

muster_completion take(muster_queue *queue, int32_t kind, uint64_t tag, const char *function) {
    constexpr int64_t longer = patience + 4 * second; // than the operation, whose own limit may be what ends it
    for (;;) {
        muster_completion entry{};
        const muster_status status = CALL(muster_queue_next, queue, longer, &entry, &error);
        if (status != MUSTER_OK)
            wrong("muster_queue_next gives %s; the completion of %s did not appear", muster_status_name(status),
                  function);
        if (entry.kind == MUSTER_EVENT_READY || entry.kind == MUSTER_EVENT_LOG) continue;
        if (entry.kind != kind || entry.tag != tag)
            wrong("completion of kind %d, tag %d instead of kind %d, tag %d", entry.kind, static_cast<int>(entry.tag),
                  kind, static_cast<int>(tag));
        if (entry.status != MUSTER_OK) {
            char where[128];
            snprintf(where, sizeof where, "the completion (kind %d)", kind);
            check_status(function, entry.status, where);
        }
        return entry;
    }
}

muster_completion take_ok(muster_queue *queue, int32_t kind, uint64_t tag, const char *function) {
    const muster_completion entry = take(queue, kind, tag, function);
    if (entry.status != MUSTER_OK) {
        expect_fault(function, entry.status);
        ended();
    }
    return entry;
}

muster_context_config context_config() {
    muster_context_config config{};
    config.struct_size = sizeof config;
    config.secret = secret;
    config.secret_bytes = sizeof secret - 1;
    return config;
}

void create(Context &context, uint32_t flags) {
    muster_context_config config = context_config();
    config.flags = flags;
    const Paused guard; // see test_context.cpp
    OK(muster_context_create, &config, context.out(), &error);
}

} // namespace faults
