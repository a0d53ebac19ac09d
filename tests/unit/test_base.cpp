// SPDX-License-Identifier: MIT
// The inside of base: error texts, errno, growing structs, deadlines, references.
#include "base/boundary.hpp"
#include "base/config.hpp"
#include "base/object.hpp"
#include "base/time.hpp"

#include <cerrno>
#include <csetjmp>
#include <cstdarg>
#include <cstring>
#include <stdexcept>
#include <string>

extern "C" {
#include <cmocka.h>
}

using namespace muster;

static void test_error_texts_are_cut_between_characters(void **) {
    bool whole = true;
    // A text of two-, three- and four-byte characters, moved by one byte at a time over the edge.
    for (const char *character : {"\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x8e\xb5"})
        for (size_t shift = 0; shift < 8; shift++) {
            std::string text(shift, 'x');
            while (text.size() < 400) text += character;
            const Error error = Error::make(MUSTER_E_ARG, "%s", text.c_str());
            const std::string kept = error.message;
            whole = whole && kept.size() == error.message_bytes && kept.size() > sizeof error.message - 5 &&
                    kept.size() < sizeof error.message && text.compare(0, kept.size(), kept) == 0 &&
                    (kept.size() - shift) % strlen(character) == 0;
        }
    assert_true(whole);
}

static void test_an_error_is_no_success_whatever_its_status(void **) {
    const Result<void> late = Error::make(MUSTER_TIMEOUT, "nobody answers");
    assert_false(static_cast<bool>(late));
    assert_int_equal(late.status(), MUSTER_TIMEOUT);
    assert_false(static_cast<bool>(Result<void>(Error::make(MUSTER_E_ARG, "no"))));
    assert_true(static_cast<bool>(Result<void>(Error())));
    assert_true(static_cast<bool>(Result<void>()));
    assert_true(static_cast<bool>(Result<void>::positive(MUSTER_AGAIN)));
}

static void test_short_texts_are_kept_whole(void **) {
    const Error error = Error::make(MUSTER_E_ARG, "window is %d \xc3\xa4", 5);
    assert_string_equal(error.message, "window is 5 \xc3\xa4");
    assert_int_equal(error.message_bytes, 14);
    assert_int_equal(error.rank, UINT32_MAX);
}

static void test_a_length_that_a_plug_in_made_up_is_cut(void **) {
    struct {
        muster::Error error;
        char behind[16];
    } from, to;
    std::memset(from.behind, 'x', sizeof from.behind);
    std::memset(to.behind, 'y', sizeof to.behind);
    std::memset(from.error.message, 'm', sizeof from.error.message);
    from.error.message_bytes = UINT32_MAX;
    to.error = from.error;
    assert_int_equal(to.error.message_bytes, sizeof to.error.message - 1);
    assert_int_equal(std::strlen(to.error.message), sizeof to.error.message - 1);
    for (const char c : to.behind) assert_int_equal(c, 'y');
}

static void test_errno_texts_say_what_where_and_why(void **) {
    Error error = Error::from_errno(ECONNREFUSED, MUSTER_OK, "dial %s", "tcp://n3:4100");
    assert_string_equal(error.message, "dial tcp://n3:4100: connection refused");
    assert_int_equal(error.status, MUSTER_E_UNREACHABLE);
    assert_int_equal(error.os_errno, ECONNREFUSED);
    error = Error::from_errno(99999, MUSTER_E_SYSTEM, "open x");
    assert_string_equal(error.message, "open x: errno 99999");
    assert_int_equal(error.status, MUSTER_E_SYSTEM);
}

static void test_errno_maps_to_the_status_that_helps(void **) {
    assert_int_equal(status_of_errno(EMFILE), MUSTER_E_LIMIT);
    assert_int_equal(status_of_errno(ENFILE), MUSTER_E_LIMIT);
    assert_int_equal(status_of_errno(ENOMEM), MUSTER_E_NOMEM);
    assert_int_equal(status_of_errno(EACCES), MUSTER_E_PERMISSION);
    assert_int_equal(status_of_errno(EADDRINUSE), MUSTER_E_EXISTS);
    assert_int_equal(status_of_errno(ECONNRESET), MUSTER_E_PEER);
    assert_int_equal(status_of_errno(EXDEV), MUSTER_E_SYSTEM);
    bool all_negative = true;
    for (int os_errno = 1; os_errno < 200; os_errno++) all_negative = all_negative && status_of_errno(os_errno) < 0;
    assert_true(all_negative);
}

static void test_nothing_thrown_leaves_a_boundary(void **) {
    muster_error error{};
    assert_int_equal(boundary(&error, []() -> Result<void> { throw std::bad_alloc(); }), MUSTER_E_NOMEM);
    assert_int_equal(error.status, MUSTER_E_NOMEM);
    assert_int_equal(boundary(&error, []() -> Result<void> { throw std::runtime_error("odd"); }), MUSTER_E_INTERNAL);
    assert_non_null(strstr(error.message, "odd"));
    assert_int_equal(boundary(&error, []() -> Result<void> { throw 5; }), MUSTER_E_INTERNAL);
    assert_int_equal(boundary([]() -> Status { throw std::bad_alloc(); }), MUSTER_E_NOMEM);
    assert_int_equal(boundary([]() -> Status { throw 5; }), MUSTER_E_INTERNAL);
    assert_int_equal(boundary(nullptr, []() -> Result<void> { throw 5; }), MUSTER_E_INTERNAL);
}

static void test_success_leaves_the_error_alone(void **) {
    muster_error error{};
    error.status = 77;
    assert_int_equal(boundary(&error, []() -> Result<void> { return {}; }), MUSTER_OK);
    assert_int_equal(boundary(&error, []() -> Result<void> { return Result<void>::positive(MUSTER_AGAIN); }),
                     MUSTER_AGAIN);
    assert_int_equal(error.status, 77);
}

namespace {
struct First { // as released
    uint32_t struct_size;
    uint32_t flags;
};
struct Second { // one release later
    uint32_t struct_size;
    uint32_t flags;
    uint64_t more;
};
} // namespace

static void test_older_structs_are_filled_up_with_zero(void **) {
    const First given{sizeof(First), 5};
    Second known{1, 1, 1};
    const bool done = bool(read_config(reinterpret_cast<const Second *>(&given), known, "config", sizeof(First)));
    assert_true(done);
    assert_int_equal(known.flags, 5);
    assert_int_equal(known.more, 0);
    assert_int_equal(known.struct_size, sizeof(Second));
}

static void test_newer_structs_are_fine_while_zero(void **) {
    Second given{sizeof(Second), 5, 0};
    First known{1, 1};
    const bool done = bool(read_config(reinterpret_cast<const First *>(&given), known, "config"));
    assert_true(done);
    assert_int_equal(known.flags, 5);
    given.more = uint64_t{1} << 56; // the last byte of all
    const Result<void> refused = read_config(reinterpret_cast<const First *>(&given), known, "config");
    assert_int_equal(refused.status(), MUSTER_E_ABI);
}

static void test_no_struct_means_all_zero(void **) {
    Second known{1, 1, 1};
    const bool done = bool(read_config(static_cast<const Second *>(nullptr), known, "config"));
    assert_true(done);
    assert_int_equal(known.flags, 0);
    assert_int_equal(known.more, 0);
}

static void test_deadlines_do_not_overflow(void **) {
    Deadline far(INT64_MAX), endless(-5), once(0), soon(1);
    assert_true(far.left() > INT64_MAX / 2);
    assert_false(far.passed());
    assert_false(endless.passed());
    assert_int_equal(endless.left(), -1);
    assert_true(once.look_once());
    assert_true(once.passed());
    while (!soon.passed()) {
    }
    assert_int_equal(soon.left(), 0);
}

namespace {
struct Counted : Object {
    explicit Counted(int &alive) : alive(alive) { alive++; }
    ~Counted() override { alive--; }
    int &alive;
};
} // namespace

static void test_references_free_once(void **) {
    int alive = 0;
    {
        Ref<Counted> first = make_ref<Counted>(alive), second = first, third;
        third = std::move(first);
        second = third;
        Counted *const raw = second.detach();
        raw->release();
        Ref<Object> base = third;
        third.reset();
        if (alive != 1) alive = 100;
    }
    assert_int_equal(alive, 0);
}

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_error_texts_are_cut_between_characters),
        cmocka_unit_test(test_an_error_is_no_success_whatever_its_status),
        cmocka_unit_test(test_short_texts_are_kept_whole),
        cmocka_unit_test(test_a_length_that_a_plug_in_made_up_is_cut),
        cmocka_unit_test(test_errno_texts_say_what_where_and_why),
        cmocka_unit_test(test_errno_maps_to_the_status_that_helps),
        cmocka_unit_test(test_nothing_thrown_leaves_a_boundary),
        cmocka_unit_test(test_success_leaves_the_error_alone),
        cmocka_unit_test(test_older_structs_are_filled_up_with_zero),
        cmocka_unit_test(test_newer_structs_are_fine_while_zero),
        cmocka_unit_test(test_no_struct_means_all_zero),
        cmocka_unit_test(test_deadlines_do_not_overflow),
        cmocka_unit_test(test_references_free_once),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
