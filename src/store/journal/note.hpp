// SPDX-License-Identifier: MIT
#pragma once
// A change as the journal records it. Its memory is allocated before the change is applied, so that neither recording
// it nor sending it to the standby can fail because memory runs out.
#include "base/list.hpp"
#include "base/object.hpp"

#include <string>
#include <string_view>

namespace muster {

enum class PairRecord : uint8_t;

// Shared by the journal and the feed of the standby, which have a list place in it each. Filled before it is appended;
// afterwards the head belongs to the journal, the other members to the feed, and the record does not change.
class StoreNote final : public Object,
                        public Listed<StoreNote, struct NotesOfLog>,
                        public Listed<StoreNote, struct NotesOfFeed> {
  public:
    static constexpr size_t head_bytes = 20; // of the log, before the record
    explicit StoreNote(std::string_view record = {}) : bytes(head_bytes, '\0') { bytes.append(record); }
    std::string_view record() const noexcept { return std::string_view(bytes).substr(head_bytes); }

    std::string bytes; // head and record
    PairRecord what{};
    int64_t at_ns = 0;

  private:
    ~StoreNote() override = default;
};

// Notes in the order they were appended; holds a reference to each. One user at a time.
template <class Which>
class NoteQueue {
  public:
    NoteQueue() noexcept = default;
    NoteQueue(const NoteQueue &) = delete;
    NoteQueue &operator=(const NoteQueue &) = delete;
    ~NoteQueue() { clear(); }
    bool empty() const noexcept { return list_.empty(); }
    StoreNote *first() const noexcept { return list_.first(); }
    static StoreNote *after(StoreNote &note) noexcept { return List<StoreNote, Which>::after(note); }
    void push(Ref<StoreNote> note) noexcept { list_.push_back(*note.detach()); }
    Ref<StoreNote> pop() noexcept { return Ref<StoreNote>::adopt(list_.pop_front()); }
    void swap(NoteQueue &other) noexcept { list_.swap(other.list_); }
    void clear() noexcept {
        while (!empty()) pop();
    }

  private:
    List<StoreNote, Which> list_;
};

} // namespace muster
