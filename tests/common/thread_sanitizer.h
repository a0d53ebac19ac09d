// SPDX-License-Identifier: MIT
// 1 in a program that is built with ThreadSanitizer, which makes it some ten times slower.
#ifndef THREAD_SANITIZER_H
#define THREAD_SANITIZER_H

#if defined(__SANITIZE_THREAD__)
#define UNDER_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNDER_THREAD_SANITIZER 1
#endif
#endif
#ifndef UNDER_THREAD_SANITIZER
#define UNDER_THREAD_SANITIZER 0
#endif

#endif
