// SPDX-License-Identifier: MIT
#include "am/outgoing.hpp"

namespace muster {

namespace {
constexpr size_t block_bytes = 64 * 1024; // small frames share a block of about this size
}

AmOutgoing::Block AmOutgoing::copy_of(std::initializer_list<std::string_view> parts) {
    Block made;
    for (const std::string_view one : parts) made.end += one.size();
    made.copied.reserve(made.end);
    for (const std::string_view one : parts) made.copied.append(one);
    return made;
}

void AmOutgoing::add(std::initializer_list<std::string_view> parts) {
    size_t size = 0;
    for (const std::string_view one : parts) size += one.size();
    if (size == 0) return;
    Block *const last = blocks_.size() < 2 ? nullptr : &blocks_.back(); // front() may be in use
    if (last != nullptr && last->lent == nullptr && last->end + size <= block_bytes) {
        if (last->copied.capacity() < last->end + size) last->copied.reserve(block_bytes);
        for (const std::string_view one : parts) last->copied.append(one);
        last->end += size;
    } else {
        blocks_.push_back(copy_of(parts));
    }
    copied_bytes_ += size;
}

void AmOutgoing::add_lent(std::string_view head, std::string_view lent) {
    blocks_.push_back(copy_of({head}));
    if (!lent.empty()) {
        try {
            blocks_.push_back(block_of(lent));
        } catch (...) {
            blocks_.pop_back();
            throw;
        }
    }
    copied_bytes_ += head.size();
    lent_bytes_ += lent.size();
}

void AmOutgoing::put_back(std::initializer_list<std::string_view> parts) {
    Block made = copy_of(parts);
    if (made.end == 0) return;
    const size_t size = made.end;
    blocks_.push_front(std::move(made));
    copied_bytes_ += size;
}

std::string_view AmOutgoing::front() const noexcept {
    const Block &first = blocks_.front();
    return {(first.lent != nullptr ? first.lent : first.copied.data()) + first.at, first.end - first.at};
}

void AmOutgoing::written(size_t bytes) noexcept {
    Block &first = blocks_.front();
    (first.lent != nullptr ? lent_bytes_ : copied_bytes_) -= bytes;
    first.at += bytes;
    if (first.at == first.end) blocks_.pop_front();
}

void AmOutgoing::clear() noexcept {
    blocks_.clear();
    copied_bytes_ = lent_bytes_ = 0;
}

} // namespace muster
