// SPDX-License-Identifier: MIT
#include "transport_check/harness.hpp"

#include <algorithm>
#include <cstring>

namespace check {

namespace {
// Eight bytes for each eighth position; splitmix64.
inline uint64_t word_at(uint64_t index, uint64_t sequence) {
    uint64_t z = (index + sequence * 0x632be59bd9b4e019u) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    return z ^ (z >> 27);
}
} // namespace

void fill(unsigned char *to, size_t size, uint64_t position, uint64_t sequence) {
    size_t i = 0;
    while (i < size) {
        const uint64_t at = position + i, word = word_at(at / 8, sequence);
        const size_t skip = at % 8, k = std::min<size_t>(8 - skip, size - i);
        memcpy(to + i, reinterpret_cast<const unsigned char *>(&word) + skip, k);
        i += k;
    }
}

uint64_t first_difference(const unsigned char *data, size_t size, uint64_t position, uint64_t sequence) {
    size_t i = 0;
    while (i < size) {
        const uint64_t at = position + i, word = word_at(at / 8, sequence);
        const size_t skip = at % 8, k = std::min<size_t>(8 - skip, size - i);
        if (memcmp(data + i, reinterpret_cast<const unsigned char *>(&word) + skip, k) != 0)
            for (size_t j = 0; j < k; j++)
                if (data[i + j] != reinterpret_cast<const unsigned char *>(&word)[skip + j]) return at + j;
        i += k;
    }
    return UINT64_MAX;
}

void Checksum::add(const unsigned char *data, size_t size) {
    uint64_t hash = hash_;
    for (size_t i = 0; i < size; i++) hash = (hash ^ data[i]) * 1099511628211u;
    hash_ = hash;
}

void Stream::write(const void *data, size_t size, int64_t timeout) const {
    size_t bytes = 0;
    const muster_status status = muster_stream_write(stream_, data, size, timeout, &bytes);
    if (status != MUSTER_OK) fail("writing %zu bytes: %s after %zu", size, name_of(status).c_str(), bytes);
    if (bytes != size) fail("writing %zu bytes: OK, but %zu written", size, bytes);
}

void Stream::read(void *data, size_t size, int64_t timeout) const {
    size_t bytes = 0;
    const muster_status status = muster_stream_read_into(stream_, data, size, 0, timeout, &bytes);
    if (status != MUSTER_OK) {
        muster_error why{};
        muster_stream_reason(stream_, nullptr, &why);
        fail("reading %zu bytes: %s after %zu (%s)", size, name_of(status).c_str(), bytes, why.message);
    }
    if (bytes != size) fail("reading %zu bytes: OK, but %zu read", size, bytes);
}

void Stream::finish() const {
    expect(muster_stream_finish(stream_), MUSTER_OK, "finish");
}

void Stream::expect_end(int64_t timeout) const {
    unsigned char byte;
    size_t bytes = 0;
    expect(muster_stream_read(stream_, &byte, 1, timeout, &bytes), MUSTER_E_END, "reading at the end");
}

void Stream::close(int64_t timeout) const {
    expect(muster_stream_close(stream_, timeout), MUSTER_OK, "close");
}

std::string Stream::hello() const {
    char text[4096];
    size_t size = 0;
    expect(muster_transport_hello(stream_, text, sizeof text, &size), MUSTER_OK, "hello");
    return {text, size};
}

void Stream::write_sequence(uint64_t size, uint64_t sequence) const {
    std::vector<unsigned char> piece(std::min<uint64_t>(size, 1 << 20));
    for (uint64_t at = 0; at < size;) {
        // Pieces of changing size, so that no two layers agree on their edges.
        const uint64_t k = std::min<uint64_t>({size - at, piece.size(), 1 + (at * 7919 + sequence * 131) % (1 << 20)});
        fill(piece.data(), k, at, sequence);
        write(piece.data(), k);
        at += k;
    }
}

uint64_t Stream::read_sequence(uint64_t size, uint64_t sequence) const {
    std::vector<unsigned char> piece(std::min<uint64_t>(size, 1 << 20) + 1);
    Checksum sum;
    for (uint64_t at = 0; at < size;) {
        const uint64_t k = std::min<uint64_t>({size - at, piece.size(), 1 + (at * 104729 + sequence) % (1 << 20)});
        read(piece.data(), k);
        const uint64_t wrong = first_difference(piece.data(), k, at, sequence);
        if (wrong != UINT64_MAX)
            fail("byte %llu of %llu is not what was sent", static_cast<unsigned long long>(wrong),
                 static_cast<unsigned long long>(size));
        if (size <= 64 << 20) sum.add(piece.data(), k);
        at += k;
    }
    return sum.value();
}

uint64_t Stream::number() const {
    unsigned char bytes[8];
    read(bytes, 8);
    uint64_t number = 0;
    for (int i = 0; i < 8; i++) number |= uint64_t{bytes[i]} << 8 * i;
    return number;
}

void Stream::write_number(uint64_t number) const {
    unsigned char bytes[8];
    for (int i = 0; i < 8; i++) bytes[i] = static_cast<unsigned char>(number >> 8 * i);
    write(bytes, 8);
}

} // namespace check
