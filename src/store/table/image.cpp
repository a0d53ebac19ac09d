// SPDX-License-Identifier: MIT
// A table taken down and put up again.
#include "store/table/changes.hpp"
#include "store/table/table.hpp"

namespace muster {

StoreTable::Image StoreTable::image() const {
    Image image;
    image.revision = revision_;
    image.last_lease = last_lease_;
    image.keys.reserve(keys_.size());
    for (const auto &[key, record] : keys_)
        image.keys.push_back({std::string(key->bytes()), record.value, record.version, record.lease});
    for (const auto &[name, queue] : queues_)
        for (const Ref<Blob> &value : queue) image.queued.emplace_back(name, value);
    return image;
}

void StoreTable::clear() noexcept {
    keys_.clear();
    queues_.clear();
    leases_.clear();
    ends_.clear();
    log_.forget_all(0);
    revision_ = bytes_ = last_lease_ = 0;
}

// Changes up to that revision are not in the history.
void StoreTable::put_back(uint64_t revision, uint64_t last_lease) {
    revision_ = revision;
    last_lease_ = last_lease;
    log_.forget_all(revision);
}

void StoreTable::put_back(Image::Key key) {
    if (const auto lease = leases_.find(key.lease); lease != leases_.end()) lease->second.keys.insert(key.key);
    bytes_ += Changes::bytes_of(key.key, *key.value);
    keys_[Blob::make(key.key)] = {std::move(key.value), key.version, key.lease};
}

void StoreTable::put_back(const std::string &queue, Ref<Blob> value) {
    bytes_ += value->size() + Changes::record_bytes;
    queues_[queue].push_back(std::move(value));
}

void StoreTable::put_back_lease(uint64_t lease, int64_t until_ns) {
    leases_[lease].until_ns = until_ns;
    ends_.emplace(until_ns, lease);
    last_lease_ = std::max(last_lease_, lease);
}

} // namespace muster
