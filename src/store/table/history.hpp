// SPDX-License-Identifier: MIT
#pragma once
// The latest changes of a store, in order, for watchers.
#include "store/table/blob.hpp"

#include <algorithm>
#include <deque>

namespace muster {

// One user at a time.
class StoreLog {
  public:
    struct Change {
        uint64_t revision;
        Ref<Blob> key, value;     // no value: it was deleted
        uint32_t lease_flags = 0; // or went with its lease, and why
    };

    // All changes after this revision are stored.
    uint64_t floor() const noexcept { return floor_; }
    const std::deque<Change> &changes() const noexcept { return changes_; }
    auto behind(uint64_t revision) const noexcept {
        return std::upper_bound(changes_.begin(), changes_.end(), revision,
                                [](uint64_t r, const Change &change) { return r < change.revision; });
    }

    size_t count_behind(uint64_t revision) const noexcept {
        return static_cast<size_t>(changes_.end() - behind(revision));
    }
    bool has_removed(std::string_view prefix, uint64_t since) const noexcept {
        for (auto at = removals_.rbegin(); at != removals_.rend() && (*at)->revision > since; ++at)
            if ((*at)->key->bytes().starts_with(prefix)) return true;
        return false;
    }

    void append(uint64_t revision, Ref<Blob> key, Ref<Blob> value, uint32_t lease_flags = 0) {
        const size_t size = bytes_of(*key, value.get());
        changes_.push_back({revision, std::move(key), std::move(value), lease_flags});
        if (!changes_.back().value) {
            try {
                removals_.push_back(&changes_.back());
            } catch (...) {
                changes_.pop_back();
                throw;
            }
        }
        bytes_ += size;
    }
    // The last ones were not made after all.
    void cut(size_t count) noexcept {
        while (changes_.size() > count) {
            if (!changes_.back().value) removals_.pop_back();
            bytes_ -= bytes_of(*changes_.back().key, changes_.back().value.get());
            changes_.pop_back();
        }
    }
    // Removes the oldest changes beyond the limits; whole revisions.
    void trim() noexcept {
        while (changes_.size() > max_changes || bytes_ > max_bytes) {
            floor_ = changes_.front().revision;
            while (!changes_.empty() && changes_.front().revision == floor_) {
                if (!changes_.front().value) removals_.pop_front();
                bytes_ -= bytes_of(*changes_.front().key, changes_.front().value.get());
                changes_.pop_front();
            }
        }
    }
    // A change could not be recorded: watchers have to read the keys again.
    void forget_all(uint64_t revision) noexcept {
        removals_.clear();
        changes_.clear();
        bytes_ = 0;
        floor_ = revision;
    }

    static constexpr size_t max_changes = 65536, max_bytes = 16 << 20;

  private:
    static size_t bytes_of(const Blob &key, const Blob *value) noexcept {
        return key.size() + (value == nullptr ? 0 : value->size()) + sizeof(Change);
    }
    std::deque<Change> changes_;
    std::deque<const Change *> removals_; // those of them without a value
    size_t bytes_ = 0;
    uint64_t floor_ = 0;
};

} // namespace muster
