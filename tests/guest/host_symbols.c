// SPDX-License-Identifier: MIT
// ctest: full timeout=120
// A host that exports functions of libuv's, libsodium's and the C++ run-time's names, all of them wrong, and may have
// loaded another libuv before. The library must use its own under every mode of dlopen().
#include "guest.h"
#include "workout.h"

#include <dlfcn.h>

static void wrong(const char *name) {
    fprintf(stderr, "the library called the host's %s()\n", name);
    _exit(97);
}

// Generated from the archives the library is made of: X(uv_run) X(crypto_auth) ...
#define X(name)                                                                                                        \
    void name(void);                                                                                                   \
    void name(void) {                                                                                                  \
        wrong(#name);                                                                                                  \
    }
#include "wrong_names.inc"
#undef X

// The C++ run-time's, which an older libstdc++ in the host would offer.
#define CXX(name, symbol)                                                                                              \
    void name(void) __asm__(symbol);                                                                                   \
    void name(void) {                                                                                                  \
        wrong(symbol);                                                                                                 \
    }
#ifndef MUSTER_SANITIZED // a sanitizer's own run-time offers these, and the library is meant to take them
CXX(operator_new, "_Znwm")
CXX(operator_delete, "_ZdlPv")
CXX(operator_delete_sized, "_ZdlPvm")
CXX(allocate_exception, "__cxa_allocate_exception")
CXX(throw_exception, "__cxa_throw")
CXX(begin_catch, "__cxa_begin_catch")
CXX(personality, "__gxx_personality_v0")
CXX(terminate, "_ZSt9terminatev")
CXX(throw_bad_alloc, "_ZSt17__throw_bad_allocv")
CXX(throw_length_error, "_ZSt20__throw_length_errorPKc")
CXX(string_append, "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE9_M_appendEPKcm")
#endif

static int mode;
static const char *before; // loaded first, or NULL

static void use(void) {
    CHECK((uintptr_t)dlsym(RTLD_DEFAULT, "uv_run") == (uintptr_t)uv_run); // the traps are set
    if (before) CHECK(dlopen(before, RTLD_NOW | RTLD_GLOBAL) != NULL);
    CHECK(getenv("MUSTER_LIBRARY") != NULL);
    void *library = dlopen(getenv("MUSTER_LIBRARY"), mode);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        _exit(96);
    }
    workout_api api;
    workout_find(&api, library);
    workout(&api);
}

// In a process of its own: its destructors call what this program exports.
static int is_there(const char *library) {
    const pid_t child = fork();
    if (child == 0) _exit(dlopen(library, RTLD_LAZY) == NULL);
    int status;
    return waitpid(child, &status, 0) == child && status == 0;
}

int main(void) {
    const struct {
        const char *name;
        int bit;
    } binding[] = {{"lazy", RTLD_LAZY}, {"now", RTLD_NOW}}, scope[] = {{"local", RTLD_LOCAL}, {"global", RTLD_GLOBAL}},
      deep[] = {{"", 0}, {" deepbind", RTLD_DEEPBIND}};
#ifdef MUSTER_SANITIZED
    const int deep_modes = 1; // sanitizers refuse RTLD_DEEPBIND
#else
    const int deep_modes = 2;
#endif
    const char *const other_uv[] = {NULL, "libuv.so.1"};
    for (int u = 0; u < 2; u++) {
        before = other_uv[u];
        if (before && !is_there(before)) {
            printf("skipped %s is not there\n", before);
            continue;
        }
        for (int b = 0; b < 2; b++)
            for (int s = 0; s < 2; s++)
                for (int d = 0; d < deep_modes; d++) {
                    char name[128];
                    snprintf(name, sizeof name, "dlopen %s %s%s%s%s", binding[b].name, scope[s].name, deep[d].name,
                             before ? " after " : "", before ? before : "");
                    mode = binding[b].bit | scope[s].bit | deep[d].bit;
                    guest_run(name, use, 0, 1);
                }
    }
    return guest_result();
}
