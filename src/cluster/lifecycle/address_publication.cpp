// SPDX-License-Identifier: MIT
#include "cluster/lifecycle/address_publication.hpp"

#include "cluster/launch/launch_plan.hpp"

namespace muster {

namespace {

constexpr int64_t store_timeout_ns = 30'000'000'000, withdraw_timeout_ns = 2'000'000'000, lease_ns = 15'000'000'000;

} // namespace

AddressPublication::AddressPublication(ClusterMaster &master, std::string store_url, const std::string &name)
    : master_(master), url_(std::move(store_url)), key_(master_address_key(name)) {}

AddressPublication::~AddressPublication() {
    muster_lease_release(lease_);
    muster_store_release(store_);
}

// Each step keeps this alive until its completion was taken, which may hold a reference.
uint64_t AddressPublication::await(void (AddressPublication::*next)(const muster_completion &, const Error &)) {
    pending_ =
        master_.on_completion([self = shared_from_this(), next](const muster_completion &entry, const Error &why) {
            self->master_.drop_handler(entry.tag);
            self->pending_ = 0;
            ((*self).*next)(entry, why);
        });
    return pending_;
}

void AddressPublication::not_begun(const Error &why) {
    master_.drop_handler(std::exchange(pending_, 0));
    finish(why.status == MUSTER_AGAIN ? Error::make(MUSTER_E_LIMIT, "the queue of the cluster is full") : why);
}

void AddressPublication::begin(std::function<void()> before, Done done) {
    before_ = std::move(before);
    done_ = std::move(done);
    const uint64_t tag = await(&AddressPublication::opened);
    Error why;
    why.status = muster_store_open_begin(wrap(&master_.context()), url_.data(), url_.size(), nullptr, store_timeout_ns,
                                         wrap(&master_.completions()), tag, &why);
    if (why.status != MUSTER_OK) not_begun(why);
}

void AddressPublication::opened(const muster_completion &entry, const Error &why) {
    store_ = static_cast<muster_store *>(entry.object);
    if (store_ == nullptr || !done_) return finish(why);
    const uint64_t tag = await(&AddressPublication::leased);
    Error begun;
    begun.status = muster_store_lease_begin(store_, lease_ns, MUSTER_LEASE_CONNECTED, store_timeout_ns,
                                            wrap(&master_.completions()), tag, nullptr, &begun);
    if (begun.status != MUSTER_OK) not_begun(begun);
}

void AddressPublication::leased(const muster_completion &entry, const Error &why) {
    lease_ = static_cast<muster_lease *>(entry.object);
    if (lease_ == nullptr || !done_) return finish(why);
    before_();
    const std::string &address = master_.address();
    muster_store_op op{};
    op.kind = MUSTER_STORE_SET;
    op.key = key_.data();
    op.key_bytes = key_.size();
    op.value = address.data();
    op.value_bytes = address.size();
    op.lease = muster_lease_id(lease_);
    const uint64_t tag = await(&AddressPublication::written);
    Error begun;
    begun.status =
        muster_store_begin(store_, &op, 1, store_timeout_ns, wrap(&master_.completions()), tag, nullptr, &begun);
    if (begun.status != MUSTER_OK) not_begun(begun);
}

void AddressPublication::written(const muster_completion &entry, const Error &why) {
    muster_store_result_release(static_cast<muster_store_result *>(entry.object));
    finish(why);
}

void AddressPublication::finish(const Error &why) {
    before_ = nullptr;
    if (const Done done = std::exchange(done_, nullptr)) done(why);
}

void AddressPublication::abandon() noexcept {
    before_ = nullptr;
    done_ = nullptr;
    if (pending_ != 0) muster_queue_cancel_operation(wrap(&master_.completions()), pending_);
}

void AddressPublication::withdraw(std::function<void()> done) {
    abandon();
    if (lease_ == nullptr) return done();
    const auto once = std::make_shared<std::function<void()>>(std::move(done));
    const auto finish = [self = shared_from_this(), once] {
        self->master_.cancel_timer(self->withdrawal_timer_);
        if (const auto first = std::exchange(*once, nullptr)) first();
    };
    const uint64_t tag = master_.on_completion([this, finish](const muster_completion &entry, const Error &) {
        master_.drop_handler(entry.tag);
        finish();
    });
    if (muster_lease_end_begin(lease_, withdraw_timeout_ns, wrap(&master_.completions()), tag, nullptr) == MUSTER_OK) {
        // The call may have to wait for a thread of the library.
        withdrawal_timer_ = master_.start_timer(now_ns() + withdraw_timeout_ns, [this, finish] {
            withdrawal_timer_ = {};
            finish();
        });
        return;
    }
    master_.drop_handler(tag);
    finish();
}

} // namespace muster
