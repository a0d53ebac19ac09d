// SPDX-License-Identifier: MIT
#pragma once
// A store in a file that several processes write, one at a time.
//
// The file is a log of the requests that have changed something, in order. Replaying them gives the same table with the
// same revisions. Each record has a checksum. A record that is incomplete at the end, because its writer was killed,
// was never acknowledged; the next writer removes it. The header holds the end of the acknowledged records: an invalid
// record before that place is damage, and is never removed (docs/adr/0008). A log that consists mostly of history is
// rewritten to a new file, which replaces it with the same owner and mode.
//
// One process writes at a time, under a lock on the file: an open-file-description lock of fcntl, because it belongs to
// one opening of the file (several in one process exclude each other, and closing another does not release it), ends
// with the process, and is a lock of the server's on NFS, where acquiring it also refreshes the client's view of the
// file.
#include "base/fd.hpp"
#include "store/table/table.hpp"

#include <memory>
#include <string>

namespace muster {

// One user at a time.
class FileLog {
  public:
    FileLog(std::string path, bool sync, uint64_t max_bytes) noexcept
        : path_(std::move(path)), sync_(sync), max_bytes_(max_bytes) {}

    Result<void> open(); // makes the file if there is none, and checks whether it is a store
    Result<void> lock(); // waits
    void unlock() noexcept;
    void forget() noexcept; // the table differs from the file: all of it is read next time

    // With the lock: the table has everything that others have written.
    Result<void> catch_up();
    StoreTable &table() noexcept { return *table_; }
    // A request that the table has done, as revision table().revision().
    void note(const StoreRequest &request);
    // The noted records; otherwise they are removed from the table, and from the file unless in_doubt().
    Result<void> write();
    bool in_doubt() const noexcept { return in_doubt_; }
    Result<void> tidy(); // rewrites the log if that is worth it

  private:
    Result<void> begin_file(uint64_t size);
    Result<size_t> apply(std::string_view bytes, bool last, bool &torn);
    Result<void> cut(uint64_t size);
    bool record_behind(uint64_t size) const;
    void acknowledge() noexcept;
    Result<Fd> draft(std::string &name) const;
    Error wrong(const char *what, uint64_t at) const noexcept;

    std::string path_;
    bool sync_;
    uint64_t max_bytes_; // of keys and values: chosen when the file is made
    Fd file_;
    std::unique_ptr<StoreTable> table_;
    uint64_t end_ = 0;          // up to here the table has it; 0: nothing
    uint64_t acknowledged_ = 0; // end of the acknowledged records according to the header; 0: not stored
    std::string noted_;
    bool in_doubt_ = false; // since lock(): a record that could not be written could not be removed either
};

} // namespace muster
