// SPDX-License-Identifier: MIT
#include "rendezvous/machine/round.hpp"

#include "base/codec.hpp"
#include "rendezvous/machine/ask.hpp"

namespace muster {

namespace {
constexpr uint8_t page_version = 1;
constexpr size_t max_page_address_bytes = 1024;
} // namespace

std::string write_page(const std::vector<std::string_view> &addresses) {
    ByteWriter page;
    page.number(page_version);
    for (const std::string_view address : addresses) page.text(address);
    return page.take();
}

bool read_page(std::string_view page, uint32_t index, std::string_view &out_address) {
    ByteReader reader(page);
    reader.expect(page_version);
    for (uint32_t i = 0; i <= index && reader.is_valid(); i++) out_address = reader.text(max_page_address_bytes);
    return reader.is_valid();
}

Result<void> Round::member(uint32_t rank, int64_t timeout_ns, muster_round_member_info &out, Error &why) {
    if (rank >= facts_.world)
        return Error::make(MUSTER_E_ARG, "round %llu: rank %u of a world of %u",
                           static_cast<unsigned long long>(facts_.number), rank, facts_.world);
    const uint32_t number = rank / per_page_;
    Ref<Blob> page;
    {
        const std::lock_guard hold(lock_);
        if (const auto found = read_.find(number); found != read_.end()) page = found->second;
    }
    if (!page && !pages_) return Error::make(MUSTER_E_UNSUPPORTED, "there is no table of members");
    if (!page) {
        auto request =
            make_request({{MUSTER_STORE_GET, std::to_string(number)}}, pages_->prefix(), pages_->conditions());
        if (!request) return request.error();
        StoreAnswer answer = StoreOperation::make(*pages_, std::move(*request), timeout_ns)->wait();
        if (answer.error.status != MUSTER_OK) {
            why = answer.error;
            return answer.error.status < 0 ? Result<void>(answer.error) : Result<void>::positive(answer.error.status);
        }
        const std::lock_guard hold(lock_); // a page that exists stays: another thread may read it
        page = read_.emplace(number, answer.result->entries[0].value).first->second;
    }
    std::string_view address;
    if (!read_page(page->bytes(), rank % per_page_, address))
        return Error::make(MUSTER_E_PROTOCOL, "round %llu: the page of rank %u cannot be understood",
                           static_cast<unsigned long long>(facts_.number), rank);
    out = {};
    out.address = address.data();
    out.address_bytes = address.size();
    return {};
}

} // namespace muster
