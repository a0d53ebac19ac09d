// SPDX-License-Identifier: MIT
#pragma once
// The journal of a server with a data folder: a snapshot and a log of records after it, each with a checksum.
//
//   lock              held by the server that uses the folder
//   <n>.snapshot      the contents when log <n> began; it gets this name when it is complete
//   <n>.log           the changes since then
//
// A thread of its own writes the records that have accumulated and makes them durable by one fdatasync. Space on the
// disk is reserved in advance, so that a full disk is detected before a request is applied.
#include "base/fd.hpp"
#include "base/result.hpp"
#include "context/histogram.hpp"
#include "store/journal/note.hpp"

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace muster {

// Loop thread, except for the functions that its own threads call.
class StoreJournal {
  public:
    // From a thread of the journal: more is durable, or it has failed.
    using Progress = std::function<void()>;
    // False: the record is invalid.
    using Reader = std::function<bool(std::string_view record)>;

    // Locks the folder, makes it if it is missing, and reads its content.
    static Result<std::unique_ptr<StoreJournal>> open(const std::string &folder, bool sync, const Reader &reader);
    ~StoreJournal();                                               // writes the rest
    void start(Progress progress, Histogram *sync_time = nullptr); // of fdatasync(); it outlives the journal

    // The position after it.
    uint64_t append(Ref<StoreNote> note) noexcept;
    uint64_t append(std::string_view record) { return append(make_ref<StoreNote>(record)); } // throws bad_alloc
    uint64_t appended() const noexcept { return appended_; }
    uint64_t durable() const noexcept { return durable_.load(std::memory_order_acquire); } // pairs with the writer's
    // Is there room on the disk for so much? If not, it tries to reserve it; if the writer is late the call waits for
    // that.
    bool has_room(size_t bytes) noexcept;
    Error why_no_room() const noexcept;
    int failed() const noexcept {
        return failed_.load(std::memory_order_acquire);
    } // errno: nothing is durable any more
    uint64_t log_bytes() const noexcept { return appended_ - log_begin_; }
    uint64_t snapshot_bytes() const noexcept { return snapshot_bytes_.load(std::memory_order_relaxed); }
    bool writing_snapshot() const noexcept { return writing_snapshot_.load(std::memory_order_acquire); }

    // Later records go to a new log, after a snapshot that another thread writes: `next` returns its records, one by
    // one, until it returns false. `apart`: the content was not changed but replaced; until the snapshot is complete
    // the folder holds the old content. False: it could not begin.
    bool begin_snapshot(std::function<bool(std::string &record)> next, bool apart = false);
    // The last one that was begun, when it is not being written any more.
    bool snapshot_is_complete() const noexcept { return complete_.load(std::memory_order_acquire) == generation_; }

  private:
    using Notes = NoteQueue<struct NotesOfLog>;
    StoreJournal(std::string folder, bool sync) : folder_(std::move(folder)), sync_(sync) {}
    Result<void> take_folder();
    Result<void> read_all(const Reader &reader);
    Result<uint64_t> read_file(const std::string &name, bool last, const Reader &reader, bool &complete);
    Result<Fd> open_log(uint64_t generation, uint64_t keep);
    void write_all() noexcept;
    bool write_out(Notes &notes) noexcept;
    bool wait_for_room(int why) noexcept;
    void make_room() noexcept;
    void write_snapshot(uint64_t generation, const std::function<bool(std::string &record)> &next) noexcept;
    std::string path(uint64_t generation, const char *kind) const;

    const std::string folder_;
    const bool sync_;
    Histogram *sync_time_ = nullptr;
    Fd lock_file_, folder_fd_;
    uint64_t generation_ = 0, oldest_ = 0; // of the log that is written, and of the oldest file
    uint64_t appended_ = 0;
    uint64_t log_begin_ = 0, log_offset_ = 0; // where this log begins, and the bytes that were in it
    bool too_slow_ = false;                   // the latest wait for room was too long
    Progress progress_;

    std::mutex lock_; // guards the next group
    std::condition_variable wake_, looked_;
    // How often the writer has tried to reserve, and the position of the last attempt.
    uint64_t looks_ = 0, looked_at_ = 0;
    Notes gathered_, gathered_next_; // the latter for the next log
    bool stop_ = false, look_for_room_ = false;
    Fd next_log_; // to continue with, after the accumulated records

    // the writer
    Fd log_;
    uint64_t written_ = 0, log_written_from_ = 0; // position; that of the beginning of this log
    uint64_t file_begin_ = 0;                     // bytes in the log before that

    std::atomic<uint64_t> durable_{0};
    std::atomic<uint64_t> room_until_{0}; // position up to which the disk has room; UINT64_MAX: unknown
    std::atomic<int> no_room_{0}, failed_{0};
    std::atomic<int> stuck_{0}; // errno: a write that found no room is tried again
    std::atomic<uint64_t> snapshot_bytes_{0};
    std::atomic<bool> writing_snapshot_{false};
    std::atomic<uint64_t> complete_{0}; // generation of the last snapshot
    std::thread writer_, snapshot_writer_;
};

} // namespace muster
