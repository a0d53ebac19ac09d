// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <muster/base.h>

static void test_every_status_has_a_name_and_a_text(void **state) {
    (void)state;
    for (int32_t status = MUSTER_TIMEOUT; status >= MUSTER_E_INTERNAL; status--) {
        assert_string_not_equal(muster_status_name(status), "MUSTER_E_?");
        assert_int_equal(strncmp(muster_status_name(status), "MUSTER_", 7), 0);
        assert_true(strlen(muster_status_text(status)) > 3);
        for (int32_t other = MUSTER_TIMEOUT; other > status; other--)
            assert_string_not_equal(muster_status_name(status), muster_status_name(other));
    }
    assert_string_equal(muster_status_name(MUSTER_E_PEER), "MUSTER_E_PEER");
}

static void test_unknown_statuses_are_named_as_such(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        const int32_t unknown = i ? INT32_MIN : 77;
        assert_string_equal(muster_status_name(unknown), "MUSTER_E_?");
        assert_non_null(muster_status_text(unknown));
    }
}

static void test_version_text_and_numbers_agree(void **state) {
    (void)state;
    uint32_t major = 99, minor = 99, patch = 99;
    const char *text = muster_version(&major, &minor, &patch);
    char expected[64];
    snprintf(expected, sizeof expected, "%u.%u.%u", major, minor, patch);
    assert_string_equal(text, expected);
    assert_ptr_equal(muster_version(NULL, NULL, NULL), text);
}

static void test_config_init_zeroes_exactly_the_size_given(void **state) {
    (void)state;
    union {
        uint32_t struct_size;
        unsigned char bytes[64];
    } config;
    memset(&config, 0xaa, sizeof config);
    assert_int_equal(muster_config_init(&config, 40), MUSTER_OK);
    assert_int_equal(config.struct_size, 40);
    for (int i = 4; i < 40; i++) assert_int_equal(config.bytes[i], 0);
    for (int i = 40; i < 64; i++) assert_int_equal(config.bytes[i], 0xaa);
}

static void test_config_init_refuses_impossible_sizes(void **state) {
    (void)state;
    uint32_t config = 7;
    assert_int_equal(muster_config_init(NULL, 40), MUSTER_E_ARG);
    assert_int_equal(muster_config_init(&config, 3), MUSTER_E_ARG);
    assert_int_equal(muster_config_init(&config, 65537), MUSTER_E_ARG);
    assert_int_equal(config, 7);
}

static void test_error_has_the_size_bindings_count_on(void **state) {
    (void)state;
    assert_int_equal(sizeof(muster_error), 256);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_status_has_a_name_and_a_text),
        cmocka_unit_test(test_unknown_statuses_are_named_as_such),
        cmocka_unit_test(test_version_text_and_numbers_agree),
        cmocka_unit_test(test_config_init_zeroes_exactly_the_size_given),
        cmocka_unit_test(test_config_init_refuses_impossible_sizes),
        cmocka_unit_test(test_error_has_the_size_bindings_count_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
