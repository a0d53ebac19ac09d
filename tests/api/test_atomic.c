// SPDX-License-Identifier: MIT
// Atomic objects: each operation, ABA cells under contention, waits, and wrong use.
// ctest: quick timeout=120
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <muster/atomic.h>
#include <muster/inline/atomic.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#include "asleep.h"

static const int64_t ms = 1000000, second = 1000000000;
static const int32_t orders[] = {MUSTER_ATOMIC_SEQ_CST, MUSTER_ATOMIC_ACQ_REL, MUSTER_ATOMIC_RELAXED};

static void test_words_of_64_bits(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) {
        const int32_t o = orders[i];
        uint64_t cell = 1, got = 0, expected = 7;
        assert_int_equal(muster_atomic_write64(&cell, 5, o), MUSTER_OK);
        assert_int_equal(muster_atomic_read64(&cell, o, &got), MUSTER_OK);
        assert_int_equal(got, 5);
        assert_int_equal(muster_atomic_exchange64(&cell, 6, o, &got), MUSTER_OK);
        assert_int_equal(got, 5);
        assert_int_equal(muster_atomic_compare_exchange64(&cell, &expected, 8, o), MUSTER_AGAIN);
        assert_int_equal(expected, 6); // what it saw
        assert_int_equal(muster_atomic_compare_exchange64(&cell, &expected, 8, o), MUSTER_OK);
        const struct {
            int32_t operation;
            uint64_t operand, result;
        } steps[] = {
            {MUSTER_ATOMIC_ADD, (uint64_t)-9, (uint64_t)-1},
            {MUSTER_ATOMIC_AND, 0xf0f0, 0xf0f0},
            {MUSTER_ATOMIC_OR, 0xf, 0xf0ff},
            {MUSTER_ATOMIC_XOR, 0xff, 0xf000},
            {MUSTER_ATOMIC_MIN, (uint64_t)-4, (uint64_t)-4},
            {MUSTER_ATOMIC_MIN, 3, (uint64_t)-4},
            {MUSTER_ATOMIC_MAX, 3, 3},
            {MUSTER_ATOMIC_MAX, (uint64_t)-8, 3},
            {MUSTER_ATOMIC_UMAX, (uint64_t)-8, (uint64_t)-8},
            {MUSTER_ATOMIC_UMIN, 1, 1},
        };
        uint64_t before = 8;
        for (size_t s = 0; s < sizeof steps / sizeof *steps; s++) {
            assert_int_equal(muster_atomic_fetch64(&cell, steps[s].operation, steps[s].operand, o, &got), MUSTER_OK);
            assert_int_equal(got, before);
            assert_int_equal(cell, steps[s].result);
            before = cell;
        }
        assert_int_equal(muster_atomic_fetch64(&cell, MUSTER_ATOMIC_ADD, 1, o, NULL), MUSTER_OK);
    }
}

static void test_words_of_32_bits_and_flags(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) {
        const int32_t o = orders[i];
        uint32_t cell = 1, got = 0, expected = 7, flag = 0;
        assert_int_equal(muster_atomic_write32(&cell, 5, o), MUSTER_OK);
        assert_int_equal(muster_atomic_read32(&cell, o, &got), MUSTER_OK);
        assert_int_equal(got, 5);
        assert_int_equal(muster_atomic_exchange32(&cell, 6, o, &got), MUSTER_OK);
        assert_int_equal(got, 5);
        assert_int_equal(muster_atomic_compare_exchange32(&cell, &expected, 8, o), MUSTER_AGAIN);
        assert_int_equal(expected, 6);
        assert_int_equal(muster_atomic_compare_exchange32(&cell, &expected, 8, o), MUSTER_OK);
        assert_int_equal(muster_atomic_fetch32(&cell, MUSTER_ATOMIC_ADD, (uint32_t)-9, o, &got), MUSTER_OK);
        assert_int_equal(cell, UINT32_MAX);
        assert_int_equal(muster_atomic_fetch32(&cell, MUSTER_ATOMIC_MAX, 2, o, &got), MUSTER_OK);
        assert_int_equal(cell, 2); // -1 is smaller
        assert_int_equal(muster_atomic_fetch32(&cell, MUSTER_ATOMIC_UMIN, 1, o, &got), MUSTER_OK);
        assert_int_equal(cell, 1);
        assert_int_equal(muster_atomic_test_and_set(&flag, o), MUSTER_OK);
        assert_int_equal(muster_atomic_test_and_set(&flag, o), MUSTER_AGAIN);
        assert_int_equal(muster_atomic_clear(&flag, o), MUSTER_OK);
        assert_int_equal(muster_atomic_test_and_set(&flag, o), MUSTER_OK);
    }
}

static void test_every_write_of_an_aba_cell_counts(void **state) {
    (void)state;
    assert_int_equal(muster_aba_size(), 16);
    assert_int_equal(muster_aba_alignment(), 16);
    muster_aba_cell cell = {{0, 0}};
    muster_aba seen;
    assert_int_equal(muster_aba_read(&cell.now, &seen), MUSTER_OK);
    assert_int_equal(seen.value, 0);
    assert_int_equal(seen.count, 0);
    assert_int_equal(muster_aba_write(&cell.now, 5), MUSTER_OK);
    assert_int_equal(muster_aba_exchange(&cell.now, 6, &seen), MUSTER_OK);
    assert_int_equal(seen.value, 5);
    assert_int_equal(seen.count, 1);
    uint64_t value = 9;
    assert_int_equal(muster_aba_compare_exchange_value(&cell.now, &value, 7), MUSTER_AGAIN);
    assert_int_equal(value, 6);
    assert_int_equal(muster_aba_compare_exchange_value(&cell.now, &value, 5), MUSTER_OK);
    // The value is 5 again; an exchange that expects {5, 1} fails.
    seen = (muster_aba){5, 1};
    assert_int_equal(muster_aba_compare_exchange(&cell.now, &seen, 8), MUSTER_AGAIN);
    assert_int_equal(seen.value, 5);
    assert_int_equal(seen.count, 3);
    assert_int_equal(muster_aba_compare_exchange(&cell.now, &seen, 8), MUSTER_OK);
    seen = muster_aba_read_inline(&cell.now);
    assert_int_equal(seen.value, 8);
    assert_int_equal(seen.count, 4);
    seen = muster_aba_exchange_inline(&cell.now, 1);
    assert_int_equal(seen.count, 4);
}

// Threads and a process write; each value is its writer and number, so a torn read is seen. Where a call returns the
// contents before, they are those that the write before has left.
enum { writes = 20000 };
static struct contended {
    muster_aba_cell cell;
    struct {
        uint64_t value, before;
        bool knows_before;
    } by_count[3 * writes + 1];
} * contended;
static void write_all(uint64_t who) {
    muster_aba *const cell = &contended->cell.now;
    for (uint64_t i = 0; i < writes; i++) {
        const uint64_t value = who << 32 | i;
        muster_aba seen;
        muster_aba_read(cell, &seen);
        if (seen.count != 0 && (seen.value >> 32) > 3) abort();
        switch (i % 6) {
        case 0:
            muster_aba_write(cell, value);
            continue;
        case 1:
            muster_aba_exchange(cell, value, &seen);
            break;
        case 2:
            while (muster_aba_compare_exchange(cell, &seen, value) != MUSTER_OK) {
            }
            break;
        case 3:
            while (muster_aba_compare_exchange_value(cell, &seen.value, value) != MUSTER_OK) {
            }
            continue;
        case 4:
            seen = muster_aba_exchange_inline(cell, value);
            break;
        default:
            seen = muster_aba_guess_inline(cell);
            while (!muster_aba_compare_exchange_inline(cell, &seen, value)) {
            }
        }
        contended->by_count[seen.count + 1].value = value;
        contended->by_count[seen.count + 1].before = seen.value;
        contended->by_count[seen.count + 1].knows_before = true;
    }
}
static void *write_in_thread(void *who) {
    write_all((uintptr_t)who);
    return NULL;
}
static void test_counts_are_exact_under_contention_of_threads_and_processes(void **state) {
    (void)state;
    contended = mmap(NULL, sizeof *contended, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(contended != MAP_FAILED);
    const pid_t child = fork();
    if (child == 0) {
        write_all(3);
        _exit(0);
    }
    pthread_t threads[2];
    for (uintptr_t i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_in_thread, (void *)(i + 1)), 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(muster_aba_read_inline(&contended->cell.now).count, 3 * writes);
    int checked = 0;
    for (int i = 2; i <= 3 * writes; i++) {
        if (!contended->by_count[i].knows_before || !contended->by_count[i - 1].knows_before) continue;
        assert_int_equal(contended->by_count[i].before, contended->by_count[i - 1].value);
        checked++;
    }
    assert_true(checked > writes / 6);
    munmap(contended, sizeof *contended);
}

static struct waited {
    uint64_t wide[2];
    uint32_t narrow;
} * shared_cells;
static atomic_int waiter_thread, waiter_over;
static void *wait_for_all(void *result) {
    atomic_store(&waiter_thread, (int)syscall(SYS_gettid));
    muster_atomic_condition c[3] = {
        {.cell = &shared_cells->wide[0], .value = 1ULL << 40, .size_bytes = 8, .comparison = MUSTER_ATOMIC_EQUAL},
        {.cell = &shared_cells->wide[1], .value = 5, .size_bytes = 8, .comparison = MUSTER_ATOMIC_GREATER},
        {.cell = &shared_cells->narrow, .value = 3, .size_bytes = 4, .comparison = MUSTER_ATOMIC_LESS_EQUAL}};
    *(muster_status *)result = muster_atomic_wait(c, 3, 3, 20 * second);
    atomic_store(&waiter_over, 1);
    return NULL;
}
static void test_waits_for_any_and_all_cells_across_processes(void **state) {
    (void)state;
    shared_cells = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared_cells != MAP_FAILED);
    shared_cells->narrow = 9;
    muster_atomic_condition c[2] = {
        {.cell = &shared_cells->wide[0], .value = 0, .size_bytes = 8, .comparison = MUSTER_ATOMIC_NOT_EQUAL},
        {.cell = &shared_cells->narrow, .value = 9, .size_bytes = 4, .comparison = MUSTER_ATOMIC_EQUAL}};
    assert_int_equal(muster_atomic_wait(c, 2, 1, 0), MUSTER_OK);
    assert_int_equal(c[0].is_true, 0);
    assert_int_equal(c[1].is_true, 1);
    assert_int_equal(muster_atomic_wait(c, 2, 2, 0), MUSTER_TIMEOUT);
    assert_int_equal(muster_atomic_wait(c, 2, 2, 5 * ms), MUSTER_TIMEOUT);
    assert_int_equal(muster_atomic_wait(c, 1, 1, 5 * ms), MUSTER_TIMEOUT);
    pthread_t thread;
    muster_status result = MUSTER_E_INTERNAL;
    assert_int_equal(pthread_create(&thread, NULL, wait_for_all, &result), 0);
    while (atomic_load(&waiter_thread) == 0) sched_yield();
    until_asleep(atomic_load(&waiter_thread), &waiter_over);
    assert_int_equal(atomic_load(&waiter_over), 0);
    const pid_t child = fork();
    if (child == 0) { // only the high half of the first one changes
        uint64_t before;
        muster_atomic_exchange64(&shared_cells->wide[0], 1ULL << 40, MUSTER_ATOMIC_SEQ_CST, &before);
        muster_atomic_notify(&shared_cells->wide[0], 8);
        muster_atomic_write64(&shared_cells->wide[1], 6, MUSTER_ATOMIC_ACQ_REL);
        muster_atomic_notify(&shared_cells->wide[1], 8);
        muster_atomic_write32(&shared_cells->narrow, 3, MUSTER_ATOMIC_ACQ_REL);
        muster_atomic_notify(&shared_cells->narrow, 4);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    pthread_join(thread, NULL);
    assert_int_equal(result, MUSTER_OK);
    munmap(shared_cells, 4096);
}

static void test_wrong_use_is_an_error_and_changes_nothing(void **state) {
    (void)state;
    _Alignas(16) unsigned char bytes[48] = {0};
    uint64_t *const odd = (uint64_t *)(void *)(bytes + 4), *const even = (uint64_t *)(void *)bytes;
    uint64_t value = 1;
    uint32_t narrow = 1;
    assert_int_equal(muster_atomic_read64(odd, 0, &value), MUSTER_E_ARG);
    assert_int_equal(muster_atomic_read64(even, 0, NULL), MUSTER_E_ARG);
    assert_int_equal(muster_atomic_read64(NULL, 0, &value), MUSTER_E_ARG);
    assert_int_equal(muster_atomic_write64(even, 1, 3), MUSTER_E_ARG);
    assert_int_equal(muster_atomic_write64(even, 1, -1), MUSTER_E_ARG);
    assert_int_equal(muster_atomic_exchange64(odd, 1, 0, &value), MUSTER_E_ARG);
    assert_int_equal(muster_atomic_compare_exchange64(odd, &value, 1, 0), MUSTER_E_ARG);
    assert_int_equal(muster_atomic_fetch64(even, 8, 1, 0, &value), MUSTER_E_ARG);
    assert_int_equal(muster_atomic_fetch32((uint32_t *)(void *)(bytes + 2), 0, 1, 0, &narrow), MUSTER_E_ARG);
    assert_int_equal(muster_atomic_test_and_set(NULL, 0), MUSTER_E_ARG);
    assert_int_equal(muster_atomic_clear((uint32_t *)(void *)(bytes + 1), 0), MUSTER_E_ARG);
    muster_aba *const misaligned = (muster_aba *)(void *)(bytes + 8);
    muster_aba seen = {3, 4};
    assert_int_equal(muster_aba_read(misaligned, &seen), MUSTER_E_ARG);
    assert_int_equal(muster_aba_write(misaligned, 1), MUSTER_E_ARG);
    assert_int_equal(muster_aba_exchange(misaligned, 1, &seen), MUSTER_E_ARG);
    assert_int_equal(muster_aba_compare_exchange(misaligned, &seen, 1), MUSTER_E_ARG);
    assert_int_equal(muster_aba_compare_exchange_value(misaligned, &value, 1), MUSTER_E_ARG);
    assert_int_equal(muster_aba_read(NULL, &seen), MUSTER_E_ARG);
    muster_atomic_condition c = {.cell = even, .size_bytes = 2};
    assert_int_equal(muster_atomic_wait(&c, 1, 1, 0), MUSTER_E_ARG);
    c.size_bytes = 8;
    c.comparison = 6;
    assert_int_equal(muster_atomic_wait(&c, 1, 1, 0), MUSTER_E_ARG);
    c.comparison = 0;
    assert_int_equal(muster_atomic_wait(&c, 1, 2, 0), MUSTER_E_ARG);
    assert_int_equal(muster_atomic_wait(&c, 0, 0, 0), MUSTER_E_ARG);
    assert_int_equal(muster_atomic_wait(&c, 65, 1, 0), MUSTER_E_ARG);
    assert_int_equal(muster_atomic_notify(even, 3), MUSTER_E_ARG);
    for (size_t i = 0; i < sizeof bytes; i++) assert_int_equal(bytes[i], 0);
    assert_int_equal(seen.value, 3);
    assert_int_equal(value, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words_of_64_bits),
        cmocka_unit_test(test_words_of_32_bits_and_flags),
        cmocka_unit_test(test_every_write_of_an_aba_cell_counts),
        cmocka_unit_test(test_counts_are_exact_under_contention_of_threads_and_processes),
        cmocka_unit_test(test_waits_for_any_and_all_cells_across_processes),
        cmocka_unit_test(test_wrong_use_is_an_error_and_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
