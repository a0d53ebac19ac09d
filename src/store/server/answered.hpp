// SPDX-License-Identifier: MIT
#pragma once
// The answers to a client's requests that have changed something, until the client has confirmed them.
#include <algorithm>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

namespace muster {

// Records, by the numbers of the requests. One user at a time.
class AnsweredRequests {
  public:
    // Empty: none.
    std::string_view find(uint64_t number) const noexcept {
        if (places_.empty() || places_.back().number < number) return {}; // a new request, as almost all are
        const auto found = place_of(number);
        return found == places_.end() || found->number != number ? std::string_view() : text(*found);
    }
    void add(uint64_t number, std::string_view record) {
        const Place place{number, bytes_.size(), record.size()};
        bytes_.append(record);
        try {
            if (places_.empty() || places_.back().number < number) // so it is, but for those that have waited
                places_.push_back(place);
            else
                places_.insert(place_of(number), place);
        } catch (...) {
            bytes_.resize(place.at);
            throw;
        }
        live_bytes_ += record.size();
    }
    uint64_t floor() const noexcept { return floor_; } // numbers below are known to the client
    void forget_below(uint64_t floor) noexcept {
        if (floor <= floor_) return;
        floor_ = floor;
        while (!places_.empty() && places_.front().number < floor) {
            live_bytes_ -= places_.front().size;
            places_.pop_front();
        }
        if (bytes_.size() > 2 * live_bytes_ + max_waste) tidy();
    }
    size_t bytes() const noexcept { return live_bytes_; }
    size_t count() const noexcept { return places_.size(); }
    template <class Visit>
    void each(const Visit &visit) const { // number, record
        for (const Place &place : places_) visit(place.number, text(place));
    }

  private:
    struct Place {
        uint64_t number;
        size_t at, size; // of its record
    };
    using Places = std::deque<Place>;
    static constexpr size_t max_waste = 1024;
    Places::const_iterator place_of(uint64_t number) const noexcept {
        return std::lower_bound(places_.begin(), places_.end(), number,
                                [](const Place &place, uint64_t n) { return place.number < n; });
    }
    std::string_view text(const Place &place) const noexcept {
        return std::string_view(bytes_).substr(place.at, place.size);
    }
    // Without memory it keeps its size for now.
    void tidy() noexcept {
        try {
            std::string kept;
            kept.reserve(live_bytes_);
            for (const Place &place : places_) kept.append(text(place));
            size_t at = 0;
            for (Place &place : places_) {
                place.at = at;
                at += place.size;
            }
            bytes_ = std::move(kept);
        } catch (const std::bad_alloc &) {
        }
    }

    Places places_;
    std::string bytes_; // records of these, and of some that are forgotten
    size_t live_bytes_ = 0;
    uint64_t floor_ = 0;
};

} // namespace muster
