// SPDX-License-Identifier: MIT
#pragma once
// The changes of one request: all are kept, or none.
#include "store/table/table.hpp"

namespace muster {

// Each change is preceded by an undo record, so that undoing needs no memory.
class StoreTable::Changes {
  public:
    explicit Changes(StoreTable &table) noexcept
        : table_(table), bytes_before_(table.bytes_), changes_before_(table.log_.changes().size()) {
        undo_.swap(spare()); // with the room of the last ones
    }
    ~Changes() {
        if (!kept_) take_back();
        undo_.clear();
        if (undo_.capacity() <= max_spare) undo_.swap(spare());
    }
    Changes(const Changes &) = delete;
    Changes &operator=(const Changes &) = delete;

    static constexpr size_t record_bytes = 64; // the approximate cost of a key or a value besides its bytes
    static size_t bytes_of(std::string_view key, const Blob &value) noexcept {
        return key.size() + value.size() + record_bytes;
    }

    bool any() const noexcept { return !undo_.empty(); }
    uint64_t version() const noexcept { return table_.revision_ + 1; } // of all that is changed
    bool fits() const noexcept { return table_.bytes_ <= table_.max_bytes_ || table_.bytes_ <= bytes_before_; }

    void set(std::string_view key, Ref<Blob> value, uint64_t lease) {
        make_room();
        auto found = table_.keys_.lower_bound(key);
        const bool fresh = found == table_.keys_.end() || found->first->bytes() != key;
        const Ref<Blob> name = fresh ? Blob::make(key) : found->first;
        note_change(name, fresh, value);
        if (lease != 0 && (fresh || found->second.lease != lease)) leased_.emplace_back(lease, key);
        if (fresh) {
            found = table_.keys_.emplace_hint(found, name, Record());
            table_.bytes_ += key.size() + record_bytes;
        } else {
            table_.bytes_ -= found->second.value->size();
        }
        Undo undo{fresh ? Undo::fresh : Undo::value};
        undo.key = found->first.get();
        undo.record = &found->second;
        undo.before = std::move(found->second);
        undo_.push_back(std::move(undo));
        table_.bytes_ += value->size();
        found->second = {std::move(value), version(), lease};
    }
    void remove(Keys::iterator found) {
        make_room();
        note_change(found->first, false, {});
        table_.bytes_ -= bytes_of(found->first->bytes(), *found->second.value);
        Undo undo{Undo::removed};
        undo.node = table_.keys_.extract(found);
        undo_.push_back(std::move(undo));
    }
    size_t push(std::string_view name, Ref<Blob> value) {
        make_room();
        if (!table_.places_.empty()) came_.push_back(place_name('q', name));
        Queue one;
        table_.bytes_ += value->size() + record_bytes;
        one.push_back(std::move(value));
        auto found = table_.queues_.find(name);
        if (found == table_.queues_.end()) found = table_.queues_.emplace(std::string(name), Queue()).first;
        Undo undo{Undo::pushed};
        undo.queue = found;
        undo_.push_back(std::move(undo));
        found->second.splice(found->second.end(), one);
        return found->second.size();
    }
    Ref<Blob> pop(Queues::iterator found) {
        make_room();
        Undo undo{Undo::popped};
        undo.queue = found;
        undo.taken.splice(undo.taken.end(), found->second, found->second.begin());
        table_.bytes_ -= undo.taken.front()->size() + record_bytes;
        undo_.push_back(std::move(undo));
        return undo_.back().taken.front();
    }

    void clear(Queues::iterator found) {
        make_room();
        Undo undo{Undo::popped};
        undo.queue = found;
        for (const Ref<Blob> &value : found->second) table_.bytes_ -= value->size() + record_bytes;
        undo.taken.swap(found->second);
        undo_.push_back(std::move(undo));
    }

    // `came`: the places whose waiting requests can continue.
    void keep(std::vector<std::string> &came) {
        came.insert(came.end(), std::make_move_iterator(came_.begin()), std::make_move_iterator(came_.end()));
        for (const auto &[lease, key] : leased_) table_.leases_.find(lease)->second.keys.insert(key);
        kept_ = true;
        if (!undo_.empty()) table_.revision_++;
        table_.log_.trim();
        drop_empty_queues();
    }

  private:
    static constexpr size_t max_spare = 64;
    std::vector<Undo> &spare() noexcept { return table_.spare_undo_; }
    void make_room() { // for one more, so that adding it cannot fail
        if (undo_.size() == undo_.capacity()) undo_.reserve(std::max<size_t>(4, 2 * undo_.size()));
    }
    void note_change(const Ref<Blob> &key, bool fresh, Ref<Blob> value) {
        table_.note_change(key->bytes(), fresh, came_);
        table_.log_.append(version(), key, std::move(value));
    }

    void take_back() noexcept {
        for (size_t i = undo_.size(); i-- != 0;) {
            Undo &one = undo_[i];
            switch (one.what) {
            case Undo::fresh:
                table_.keys_.erase(table_.keys_.find(one.key->bytes()));
                break;
            case Undo::value:
                *one.record = std::move(one.before);
                break;
            case Undo::removed:
                table_.keys_.insert(std::move(one.node));
                break;
            case Undo::pushed:
                one.queue->second.pop_back();
                break;
            case Undo::popped:
                one.queue->second.splice(one.queue->second.begin(), one.taken);
                break;
            }
        }
        drop_empty_queues();
        table_.log_.cut(changes_before_);
        table_.bytes_ = bytes_before_;
    }

    // For a queue that occurs again, the last occurrence counts.
    void drop_empty_queues() noexcept {
        for (size_t i = 0; i < undo_.size(); i++) {
            const Undo &one = undo_[i];
            if (one.what != Undo::pushed && one.what != Undo::popped) continue;
            bool last = one.queue->second.empty();
            for (size_t k = i + 1; last && k < undo_.size(); k++)
                last = (undo_[k].what != Undo::pushed && undo_[k].what != Undo::popped) || undo_[k].queue != one.queue;
            if (last) table_.queues_.erase(one.queue);
        }
    }

    StoreTable &table_;
    const uint64_t bytes_before_;
    const size_t changes_before_;
    bool kept_ = false;
    std::vector<Undo> undo_;
    std::vector<std::string> came_;
    std::vector<std::pair<uint64_t, std::string>> leased_;
};

} // namespace muster
