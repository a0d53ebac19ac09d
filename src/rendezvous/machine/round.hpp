// SPDX-License-Identifier: MIT
#pragma once
// The result of a join: a rank in a world, a store view, and the table of members, page by page.
#include "store/backend/store.hpp"

#include <muster/rendezvous.h>

#include <array>

namespace muster {

using Digest = std::array<unsigned char, 32>;

struct RoundFacts {
    uint64_t number = 0;
    uint32_t rank = 0, world = 0;
    Digest digest = {};
};

// Pages of the table: the addresses of `per_page` consecutive members.
std::string write_page(const std::vector<std::string_view> &addresses);
// False: it is invalid, or shorter.
bool read_page(std::string_view page, uint32_t index, std::string_view &out_address);

// Any thread.
class Round final : public Object {
  public:
    static constexpr uint32_t default_page = 64;
    // `pages`: address of the pages of the table, NULL if there are none.
    Round(const RoundFacts &facts, Ref<Store> view, Ref<Store> pages, uint32_t per_page) noexcept
        : facts_(facts), view_(std::move(view)), pages_(std::move(pages)), per_page_(per_page) {}
    // With all pages of the table, or none.
    Round(const RoundFacts &facts, Ref<Store> view, std::map<uint32_t, Ref<Blob>> table, uint32_t per_page) noexcept
        : facts_(facts), view_(std::move(view)), per_page_(per_page), read_(std::move(table)) {}
    const RoundFacts &facts() const noexcept { return facts_; }
    bool over() const noexcept { return view_ && view_->guard() != nullptr && view_->guard()->over(); }
    const Ref<Store> &view() const noexcept { return view_; }
    Result<void> member(uint32_t rank, int64_t timeout_ns, muster_round_member_info &out, Error &why);

  private:
    const RoundFacts facts_;
    const Ref<Store> view_, pages_;
    const uint32_t per_page_;
    std::mutex lock_; // guards the rest
    std::map<uint32_t, Ref<Blob>> read_;
};

inline Round *unwrap(muster_round *handle) noexcept {
    return reinterpret_cast<Round *>(handle);
}
inline const Round *unwrap(const muster_round *handle) noexcept {
    return reinterpret_cast<const Round *>(handle);
}
inline muster_round *wrap(Round *object) noexcept {
    return reinterpret_cast<muster_round *>(object);
}

} // namespace muster
