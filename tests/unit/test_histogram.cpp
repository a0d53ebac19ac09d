// SPDX-License-Identifier: MIT
// A duration is counted in the first bucket whose limit it does not exceed.
#include "context/histogram.hpp"

#include <csetjmp>
#include <cstdarg>
#include <cstdint>

extern "C" {
#include <cmocka.h>
}

using namespace muster;

namespace {

size_t bucket_of(int64_t ns) {
    Histogram histogram;
    histogram.observe(ns);
    size_t found = SIZE_MAX;
    for (size_t i = 0; i <= Histogram::buckets; i++) {
        if (histogram.count_in(i) == 0) continue;
        assert_true(found == SIZE_MAX && histogram.count_in(i) == 1);
        found = i;
    }
    return found;
}

void test_limits_belong_to_their_buckets(void **) {
    for (size_t i = 0; i < Histogram::buckets; i++) {
        assert_int_equal(bucket_of(Histogram::limit_ns(i)), i);
        assert_int_equal(bucket_of(Histogram::limit_ns(i) + 1), i + 1);
    }
    assert_int_equal(bucket_of(0), 0);
    assert_int_equal(bucket_of(-5), 0); // a clock that went back
    assert_int_equal(bucket_of(INT64_MAX), Histogram::buckets);
}

void test_seconds_are_the_sum(void **) {
    Histogram histogram;
    histogram.observe(1'500'000'000);
    histogram.observe(-1);
    histogram.observe(500'000'000);
    assert_true(histogram.seconds() > 1.999 && histogram.seconds() < 2.001);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_limits_belong_to_their_buckets),
        cmocka_unit_test(test_seconds_are_the_sum),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
