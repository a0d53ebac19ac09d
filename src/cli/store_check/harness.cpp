// SPDX-License-Identifier: MIT
#include "store_check/harness.hpp"

#include <cstring>

namespace store_check {

// ---- results
// ---------------------------------------------------------------------------------------------------------

muster_store_entry Answer::entry(uint64_t index) const {
    muster_store_entry found{};
    if (muster_store_result_entry(result_, index, &found) != MUSTER_OK)
        fail("there is no entry %llu, but %llu", static_cast<unsigned long long>(index),
             static_cast<unsigned long long>(count()));
    return found;
}

std::string Answer::key(uint64_t index) const {
    const muster_store_entry found = entry(index);
    return {static_cast<const char *>(found.key), found.key_bytes};
}

std::string Answer::value(uint64_t index) const {
    const muster_store_entry found = entry(index);
    return {static_cast<const char *>(found.value), found.value_bytes};
}

void Answer::expect_holds(uint64_t index, std::string_view text) const {
    if ((entry(index).flags & MUSTER_STORE_PRESENT) == 0)
        fail("entry %llu is not there", static_cast<unsigned long long>(index));
    if (value(index) != text)
        fail("entry %llu holds \"%.60s\" instead of \"%.60s\"", static_cast<unsigned long long>(index),
             value(index).c_str(), std::string(text).c_str());
}

void Answer::expect_absent(uint64_t index) const {
    const muster_store_entry found = entry(index);
    CHECK((found.flags & MUSTER_STORE_PRESENT) == 0);
    CHECK(found.version == 0);
    CHECK(found.value_bytes == 0);
}

void Answer::expect_text(std::string_view part) const {
    if (text().find(part) == std::string::npos) fail("\"%s\" is not in: %s", std::string(part).c_str(), text().c_str());
}

// ---- the store
// -------------------------------------------------------------------------------------------------------

Place::Place(muster_context *context, muster_store *store, const std::string &prefix) : context_(context) {
    check::expect(muster_store_view(store, prefix.data(), prefix.size(), &store_, nullptr), MUSTER_OK, "a view");
    check::expect(muster_queue_create(context, nullptr, &queue_, nullptr), MUSTER_OK, "a queue");
}

Place::~Place() {
    muster_queue_close(queue_);
    muster_queue_release(queue_);
    muster_store_release(store_);
}

void Place::need(uint32_t capability) const {
    static constexpr const char *names[] = {"transactions", "queues", "waits", "watches", "leases", "barriers"};
    for (uint32_t bit = 0; bit < 6; bit++)
        if ((capability >> bit & 1) && !can(1u << bit)) check::skip(std::string("the store has no ") + names[bit]);
}

Answer Place::try_run(const std::vector<Op> &ops, int64_t timeout) const {
    muster_error error{};
    muster_store_result *result = nullptr;
    const std::vector<muster_store_op> plain(ops.begin(), ops.end());
    const muster_status status = muster_store_do(store_, plain.data(), plain.size(), timeout, &result, &error);
    check::called(("a request of kind " + std::to_string(ops[0].kind)).c_str(), status, &error);
    return {status, error, result};
}

Answer Place::run(std::vector<Op> ops, muster_status wanted, int64_t timeout) const {
    Answer answer = try_run(ops, timeout);
    if (answer.status() != wanted)
        fail("a request of kind %u ends with %s instead of %s: %s", ops[0].kind,
             check::name_of(answer.status()).c_str(), check::name_of(wanted).c_str(), answer.text().c_str());
    return answer;
}

uint64_t Place::begin(const std::vector<Op> &ops, uint64_t tag, int64_t timeout) const {
    uint64_t number = 0;
    muster_error error{};
    const std::vector<muster_store_op> plain(ops.begin(), ops.end());
    check::expect(muster_store_begin(store_, plain.data(), plain.size(), timeout, queue_, tag, &number, &error),
                  MUSTER_OK, "begin", &error);
    CHECK(number != 0);
    return number;
}

Answer Place::take(uint64_t *out_tag, muster_status wanted) const {
    muster_completion done{};
    muster_error error{};
    check::expect(muster_queue_next(queue_, time_limit, &done, &error), MUSTER_OK, "a completion");
    Answer answer(done.status, error, static_cast<muster_store_result *>(done.object));
    CHECK(done.kind == MUSTER_DONE_STORE);
    check::expect(done.status, wanted, "a begun request", &error);
    CHECK((done.object != nullptr) == (wanted == MUSTER_OK || wanted == MUSTER_E_CHANGED));
    if (out_tag != nullptr) *out_tag = done.tag;
    return answer;
}

void Place::expect_none() const {
    muster_completion done{};
    check::expect(muster_queue_next(queue_, 0, &done, nullptr), MUSTER_AGAIN, "a completion too early");
}

Lease::Lease(const Place &place, int64_t ttl, uint32_t flags) {
    muster_error error{};
    check::expect(muster_store_lease(place.store(), ttl, flags, time_limit, &lease_, &error), MUSTER_OK, "a lease",
                  &error);
    CHECK(muster_lease_id(lease_) != 0);
}

int64_t least_lease(const Place &place) {
    for (const int64_t ttl : {50 * ms, second, 2 * second, 5 * second, 10 * second}) {
        muster_lease *lease = nullptr;
        const muster_status status = muster_store_lease(place.store(), ttl, 0, time_limit, &lease, nullptr);
        if (status == MUSTER_OK) {
            muster_lease_end(lease, time_limit, nullptr);
            muster_lease_release(lease);
            return ttl;
        }
        check::expect(status, MUSTER_E_UNSUPPORTED, "a short lease");
    }
    fail("no lease of 10 s or less");
}

} // namespace store_check
