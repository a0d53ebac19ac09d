// SPDX-License-Identifier: MIT
// What wire and file formats share: the little-endian codec, percent coding, and the back-off between attempts.
#include "base/back_off.hpp"
#include "base/codec.hpp"
#include "base/percent.hpp"

#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <string>

extern "C" {
#include <cmocka.h>
}

using namespace muster;

enum class Kind : uint16_t { first = 0x0102 };

static void test_numbers_lie_lowest_byte_first(void **) {
    std::string text;
    ByteWriter(text).number(uint8_t{1}).number(Kind::first).number(uint32_t{0x04030201}).number(int64_t{-2});
    assert_string_equal(text.c_str(), "\x01\x02\x01\x01\x02\x03\x04\xfe\xff\xff\xff\xff\xff\xff\xff");
    unsigned char bytes[8];
    put_u16(bytes, 0x0201);
    assert_memory_equal(bytes, "\x01\x02", 2);
    put_u64(bytes, 0x0807060504030201);
    assert_memory_equal(bytes, "\x01\x02\x03\x04\x05\x06\x07\x08", 8);
    assert_int_equal(get_u16(bytes), 0x0201);
    assert_int_equal(get_u32(bytes), 0x04030201);
    assert_int_equal(get_u64(bytes), 0x0807060504030201);
}

static void test_what_was_written_is_read(void **) {
    const std::array<unsigned char, 3> id = {7, 8, 9};
    bool good = false;
    {
        std::string text = "before";
        ByteWriter(text).number(Kind::first).text("name").bytes(id).number(-5).bytes("tail");
        ByteReader from(std::string_view(text).substr(6));
        good = from.number<Kind>() == Kind::first && from.text(4) == "name" && from.array<3>() == id &&
               from.number<int>() == -5 && from.left() == 4 && !from.is_complete() && from.rest() == "tail" &&
               from.is_complete();
    }
    assert_true(good);
}

static void test_reading_past_the_end_is_noticed_and_harmless(void **) {
    bool good = true;
    std::string text;
    ByteWriter(text).number(uint64_t{1}).text("text").number(uint16_t{2}).bytes(std::array<unsigned char, 4>{});
    for (size_t size = 0; size <= text.size(); size++) { // each cut; the memory after it is inaccessible
        const std::string cut(text, 0, size);
        ByteReader from(as_bytes(cut), cut.size());
        const uint64_t number = from.number<uint64_t>();
        const std::string_view name = from.text(100);
        (void)from.number<uint16_t>();
        (void)from.array<4>();
        good = good && from.is_complete() == (size == text.size()) && number == (size >= 8 ? 1 : 0) &&
               name == (size >= 14 ? "text" : "");
        good = good && (from.is_valid() || (from.left() == 0 && from.number<uint8_t>() == 0 && from.rest().empty()));
    }
    assert_true(good);
}

static void test_a_size_that_a_peer_made_up_is_refused(void **) {
    ByteReader from("\xff\xff\x01");
    assert_true(from.bytes(SIZE_MAX).empty());
    assert_false(from.is_valid());
    ByteReader text(std::string_view("\x04\x00text", 6));
    assert_true(text.text(3).empty());
    assert_false(text.is_valid());
    ByteReader required("abc");
    required.require(true);
    assert_true(required.is_valid());
    required.require(false);
    assert_int_equal(required.left(), 0);
}

static void test_percent_coding_keeps_every_byte(void **) {
    bool good = false;
    {
        std::string all, text = "x", back;
        for (int c = 0; c < 256; c++) all += static_cast<char>(c);
        percent_encode(text, all, "-_.");
        good = text.find_first_not_of("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_.%") ==
                   std::string::npos &&
               percent_decode(back, text) && back == "x" + all;
    }
    assert_true(good);
}

static void test_broken_percent_coding_is_refused(void **) {
    std::string out;
    for (const char *broken : {"%", "a%", "%4", "%zz", "%4z", "%z4", "%%41"}) assert_false(percent_decode(out, broken));
    out.clear();
    assert_true(percent_decode(out, "%2f%2F+"));
    assert_string_equal(out.c_str(), "//+");
}

static void test_pauses_double_up_to_their_maximum(void **) {
    BackOff pauses(10, 70);
    assert_int_equal(pauses.current_ns(), 0);
    for (const int64_t wanted : {10, 20, 40, 70, 70}) assert_int_equal(pauses.next_ns(), wanted);
    assert_int_equal(pauses.current_ns(), 70);
    pauses.reset();
    assert_int_equal(pauses.next_ns(), 10);
}

static void test_jitter_adds_up_to_half_of_the_pause(void **) {
    BackOff pauses(10, 40);
    assert_int_equal(pauses.next_ns(uint64_t{0}), 10);
    assert_int_equal(pauses.next_ns(uint64_t{10}), 30);
    assert_int_equal(pauses.next_ns(uint64_t{21}), 40);
    for (uint64_t random = 0; random < 100; random++) assert_in_range(pauses.next_ns(random), 40, 60);
}

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_lie_lowest_byte_first),
        cmocka_unit_test(test_what_was_written_is_read),
        cmocka_unit_test(test_reading_past_the_end_is_noticed_and_harmless),
        cmocka_unit_test(test_a_size_that_a_peer_made_up_is_refused),
        cmocka_unit_test(test_percent_coding_keeps_every_byte),
        cmocka_unit_test(test_broken_percent_coding_is_refused),
        cmocka_unit_test(test_pauses_double_up_to_their_maximum),
        cmocka_unit_test(test_jitter_adds_up_to_half_of_the_pause),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
