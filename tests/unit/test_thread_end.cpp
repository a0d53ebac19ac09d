// SPDX-License-Identifier: MIT
// Threads of the library and the exit of the process: the destructors of thread-specific data, as other libraries have
// them, never run beside what these libraries have registered with atexit(). Each case is a process of its own.
// ctest: quick timeout=60
#include "base/thread.hpp"

#include <csetjmp>
#include <cstdarg>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

extern "C" {
#include <cmocka.h>
}

using namespace muster;

namespace {

int trace, reached, released; // write end of the trace; pipes between the threads
int reached_from, released_from;
pthread_key_t key;

void write_byte(int fd, char byte) {
    if (write(fd, &byte, 1) != 1) _exit(9);
}
void read_byte(int fd) {
    char byte;
    if (read(fd, &byte, 1) != 1) _exit(9);
}
void take_a_while() {
    const timespec time{0, 100'000'000}; // for the other thread to go wrong in
    nanosleep(&time, nullptr);
}

// Of the other library: `(` and `)` are its destructor, `c` its clean-up.
void destroy(void *) {
    write_byte(trace, '(');
    write_byte(reached, 1);
    take_a_while();
    write_byte(trace, ')');
}
void clean_up() {
    write_byte(trace, 'c');
    write_byte(released, 1); // a thread that has not ended yet
    take_a_while();
    write_byte(trace, 'C');
}

// What a process writes whose thread is at its end when main() calls exit(), or has not ended yet.
std::string trace_of(bool at_its_end) {
    int lines[2];
    if (pipe(lines) != 0) return "no pipe";
    const pid_t child = fork();
    if (child == 0) {
        close(lines[0]);
        trace = lines[1];
        int first[2], second[2];
        if (pipe(first) != 0 || pipe(second) != 0 || pthread_key_create(&key, destroy) != 0) _exit(9);
        reached_from = first[0], reached = first[1], released_from = second[0], released = second[1];
        std::atexit(clean_up);
        end_threads_before(&key);
        const auto body = [](void *waits) -> void * {
            pthread_setspecific(key, &key);
            if (waits == nullptr) return nullptr;
            write_byte(reached, 1);
            read_byte(released_from);
            return nullptr;
        };
        if (start_thread(body, at_its_end ? nullptr : &key) != 0) _exit(9);
        read_byte(reached_from);
        std::exit(0);
    }
    close(lines[1]);
    std::string all;
    char byte;
    while (read(lines[0], &byte, 1) == 1) all += byte;
    close(lines[0]);
    int status = 1;
    waitpid(child, &status, 0);
    return status == 0 ? all : all + " and failed";
}

void test_exit_waits_for_threads_at_their_end(void **) {
    assert_string_equal(trace_of(true).c_str(), "()cC");
}
void test_threads_that_end_later_stay_until_the_process_is_gone(void **) {
    assert_string_equal(trace_of(false).c_str(), "cC");
}

} // namespace

int main() {
    const CMUnitTest tests[] = {cmocka_unit_test(test_exit_waits_for_threads_at_their_end),
                                cmocka_unit_test(test_threads_that_end_later_stay_until_the_process_is_gone)};
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
