// SPDX-License-Identifier: MIT
#pragma once
// The fault injector: makes one allocation or one system call of the library fail, once, at a chosen site.
//
// A site is a kind of call (malloc, socket, ...), the exported function that the test called in this thread (none in a
// thread of the library), and the call stack inside the library. A dry run lists the sites; each later run fails the
// first call of one of them. Calls that the test itself, the C library or foreign libraries make do not count.
#include <cstdint>

namespace faults {

constexpr int max_frames = 16;

struct Site {
    uint64_t hash;
    uint32_t kind;     // index into kinds
    uint32_t function; // index into the table of functions, or no_function
    uint32_t calls;    // in the dry run
    uint32_t frame_count;
    uint64_t frames[max_frames]; // offsets in the module
    const char *module;          // file of the module; stays valid in the process that recorded it
};

constexpr uint32_t no_function = UINT32_MAX;

struct Kind {
    const char *name;
    int os_errnos[3]; // what the call fails with, in a run each
};
extern const Kind kinds[];
extern const uint32_t kind_count;

constexpr uint32_t max_sites = 16384;

// Allocations of the library that are not freed, for the search for leaks.
struct Leak {
    void *memory;
    uint64_t hash; // of the stack, if stacks are recorded
    uint32_t function;
    uint64_t bytes;
    uint32_t frame_count;
    uint64_t frames[max_frames];
};

// Memory shared by the runner and the processes of the runs.
struct Shared {
    uint32_t site_count;
    uint32_t is_full; // more sites than fit
    Site sites[max_sites];
    uint32_t called[512];      // calls of each function
    uint32_t fired;            // the fault of this run was injected
    uint32_t fired_in_library; // ... in a thread of the library
    uint32_t live;             // allocations that the run did not free
    uint32_t leak_count;
    Leak leaks[1024];
    char message[4096]; // why this run is wrong
};

enum class Mode { off, record, fail };

// Prepares the process; `shared` outlives it.
void init(Shared *shared);
// From now on, calls are recorded, or the `call`-th call (from 0) of the site fails with os_errno.
void arm(Mode mode, const Site *target, uint32_t call, int os_errno);
void disarm();
bool has_fired();
bool fired_in_library();
const char *fault_kind(); // of the run: the name in kinds
// The exported function that this thread is about to call; no_function after it.
void enter(uint32_t function);
void leave();
// Calls of this thread do not count from here on, until they do again.
void pause(bool is_paused);
// How deep call stacks are compared.
extern int depth;

// Records the allocations that are not freed from now on.
void track(bool with_stacks); // from now on
uint32_t live_allocations(Leak *out, uint32_t capacity);

} // namespace faults
