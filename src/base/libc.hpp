// SPDX-License-Identifier: MIT
#pragma once
// Functions that the C library has from glibc 2.32 or 2.34 on. A build for an older one (cmake/floor) still uses them
// on machines that have them, and does without elsewhere.
#include <csignal>
#include <pthread.h>
#include <spawn.h>

namespace muster::libc {

// Descriptions and names in English, whatever the locale. NULL: no such number, or for names an old library.
const char *describe_error(int number) noexcept;
const char *signal_name(int number) noexcept; // "KILL"

// 0, or the error number, as the functions of pthread_create().
int create_thread(pthread_t *out, pthread_attr_t *attributes, const sigset_t &blocked, void *(*body)(void *),
                  void *argument) noexcept;

// Plans to close every descriptor from `first` on.
int add_close_from(posix_spawn_file_actions_t &actions, int first) noexcept;

} // namespace muster::libc
