/* SPDX-License-Identifier: MIT */
/* Loaded before AddressSanitizer's run-time into a Julia that was not built for it. Julia opens libraries with
 * RTLD_DEEPBIND, on which the run-time ends the process; and it starts programs from tasks, whose stacks the run-time
 * does not know: its vfork() takes all memory up to the thread's own stack for a stack. */
#include <dlfcn.h>
#include <sys/types.h>
#include <unistd.h>

void *dlopen(const char *name, int mode) {
    void *(*const next)(const char *, int) = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
    return next(name, mode & ~RTLD_DEEPBIND);
}

pid_t vfork(void) {
    return fork();
}
