// SPDX-License-Identifier: MIT
#include "store/journal/journal.hpp"

#include "base/thread.hpp"
#include "base/time.hpp"
#include "transport/frame.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <map>
#include <sodium.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

namespace muster {

namespace {

// Length (4), checksum of the rest (8), bytes known to be durable (8).
constexpr size_t head_bytes = StoreNote::head_bytes;
constexpr size_t record_max = 32 << 20;         // longer ones are none
constexpr uint64_t room_ahead = 40 << 20;       // reserved in advance; more than one record needs
constexpr std::chrono::seconds longest_wait{2}; // for the writer, if that is late or begins a log
constexpr uint64_t least_room = 64 << 10;       // that is requested from a disk which is nearly full
constexpr size_t file_buffer_bytes = 1 << 20;
constexpr size_t max_parts = 128; // of one write
constexpr std::chrono::milliseconds pause_when_full{100};
constexpr char end_of_snapshot[] = "end";

// SipHash-2-4: it detects records torn by a crash, not forged ones.
uint64_t checksum(const unsigned char *bytes, size_t size) noexcept {
    static const unsigned char key[crypto_shorthash_KEYBYTES] = "muster journal";
    unsigned char hash[crypto_shorthash_BYTES];
    crypto_shorthash(hash, bytes, size, key);
    return get_u64(hash);
}

// Fills the head before a record. `durable`: of the file to which it is written.
void put_head(std::string &bytes, uint64_t durable) noexcept {
    auto *const head = reinterpret_cast<unsigned char *>(bytes.data());
    const size_t record = bytes.size() - head_bytes;
    put_u32(head, static_cast<uint32_t>(record));
    put_u64(head + 12, durable);
    put_u64(head + 4, checksum(head + 12, 8 + record));
}

bool is_full(int why) noexcept {
    return why == ENOSPC || why == EDQUOT;
}

// A file of records that is read.
class Records {
  public:
    explicit Records(const std::string &name) : file_(fopen(name.c_str(), "re"), fclose) {
        struct stat about {};
        if (file_ && fstat(fileno(file_.get()), &about) == 0) size_ = static_cast<uint64_t>(about.st_size);
        if (file_) setvbuf(file_.get(), nullptr, _IOFBF, file_buffer_bytes);
    }
    bool open() const noexcept { return file_ != nullptr; }
    uint64_t size() const noexcept { return size_; }

    // The next record, if it is whole. Empty: it is not.
    std::string next(uint64_t &durable) {
        unsigned char head[12];
        if (size_ - at_ < head_bytes || fread(head, 1, sizeof head, file_.get()) != sizeof head) return {};
        const uint32_t size = get_u32(head);
        if (size == 0 || size > record_max || size > size_ - at_ - head_bytes) return {};
        std::string record(8 + size_t{size}, '\0');
        const auto *const bytes = reinterpret_cast<const unsigned char *>(record.data());
        if (fread(record.data(), 1, record.size(), file_.get()) != record.size() ||
            checksum(bytes, record.size()) != get_u64(head + 4))
            return {};
        durable = get_u64(bytes);
        at_ += head_bytes + size;
        return record.erase(0, 8);
    }
    uint64_t at() const noexcept { return at_; }
    bool at_end() const noexcept { return at_ == size_; }
    // Does a later record say that this place was on the disk already? Then it was not torn by a crash.
    bool was_durable() {
        const uint64_t place = at_;
        for (uint64_t at = place + 1; at < size_; at++) {
            uint64_t durable = 0;
            at_ = at;
            if (fseeko(file_.get(), static_cast<off_t>(at), SEEK_SET) != 0) break;
            if (!next(durable).empty() && durable > place) return true;
        }
        at_ = place;
        return false;
    }

  private:
    const std::unique_ptr<FILE, int (*)(FILE *)> file_;
    uint64_t size_ = 0, at_ = 0;
};

Error failed_at(const std::string &what, int why) {
    Error error = Error::from_errno(why, MUSTER_OK, "data folder %s", what.c_str());
    return error;
}

} // namespace

std::string StoreJournal::path(uint64_t generation, const char *kind) const {
    return folder_ + "/" + std::to_string(generation) + "." + kind;
}

// ---- reading --------------------------------------------------------------------------------------------------------

Result<std::unique_ptr<StoreJournal>> StoreJournal::open(const std::string &folder, bool sync, const Reader &reader) {
    std::unique_ptr<StoreJournal> journal(new StoreJournal(folder, sync));
    if (auto taken = journal->take_folder(); !taken) return taken.error();
    if (auto read = journal->read_all(reader); !read) return read.error();
    return journal;
}

Result<void> StoreJournal::take_folder() {
    if (mkdir(folder_.c_str(), 0700) != 0 && errno != EEXIST) return failed_at(folder_, errno);
    folder_fd_ = Fd(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!folder_fd_) return failed_at(folder_, errno);
    lock_file_ = Fd(openat(folder_fd_.get(), "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!lock_file_) return failed_at(folder_ + "/lock", errno);
    if (flock(lock_file_.get(), LOCK_EX | LOCK_NB) == 0) return {};
    if (errno == EWOULDBLOCK)
        return Error::make(MUSTER_E_EXISTS, "data folder %s: another server uses it", folder_.c_str());
    return failed_at(folder_ + "/lock", errno);
}

// The latest snapshot, and the logs after it.
Result<void> StoreJournal::read_all(const Reader &reader) {
    uint64_t snapshot = 0, last = 0;
    bool any = false;
    std::map<uint64_t, bool> logs; // the existing ones; true: not empty
    const std::unique_ptr<DIR, int (*)(DIR *)> listing(opendir(folder_.c_str()), closedir);
    if (!listing) return failed_at(folder_, errno);
    while (const dirent *const entry = readdir(listing.get())) {
        char *end = nullptr;
        const uint64_t number = strtoull(entry->d_name, &end, 10);
        if (end == entry->d_name) continue;
        if (strcmp(end, ".snapshot") == 0) snapshot = std::max(snapshot, number), any = true;
        struct stat about {};
        if (strcmp(end, ".log") == 0)
            logs[number] = fstatat(folder_fd_.get(), entry->d_name, &about, 0) != 0 || about.st_size != 0;
    }
    bool complete = false;
    if (any) {
        auto read = read_file(path(snapshot, "snapshot"), false, reader, complete);
        if (!read) return read.error();
        if (!complete)
            return Error::make(MUSTER_E_SYSTEM, "data folder %s: the snapshot has no end",
                               path(snapshot, "snapshot").c_str());
        snapshot_bytes_.store(*read, std::memory_order_relaxed);
    } else if (!logs.empty() && logs.begin()->first != 0) {
        return Error::make(MUSTER_E_SYSTEM, "data folder %s: the snapshot of the logs is missing", folder_.c_str());
    }
    uint64_t keep = 0;
    last = snapshot;
    for (uint64_t number = snapshot; logs.count(number) != 0; number++) {
        const auto next = logs.find(number + 1);
        const bool is_last = next == logs.end() || !next->second;
        auto read = read_file(path(number, "log"), is_last, reader, complete);
        if (!read) return read.error();
        keep = *read;
        last = number;
        if (is_last) break;
    }
    for (const auto &[number, filled] : logs) // begun after a snapshot that was not completed
        if (number > last) unlink(path(number, "log").c_str());
    generation_ = last;
    oldest_ = logs.empty() ? snapshot : std::min(snapshot, logs.begin()->first);
    auto log = open_log(last, keep);
    if (!log) return log.error();
    log_ = std::move(*log);
    file_begin_ = log_offset_ = keep;
    return {};
}

// The number of bytes of complete records. An incomplete record at the end of the last log was never acknowledged;
// anywhere else the disk has lost data, and the server must not start.
Result<uint64_t> StoreJournal::read_file(const std::string &name, bool last, const Reader &reader, bool &complete) {
    complete = false;
    Records records(name);
    if (!records.open()) return failed_at(name, errno);
    while (!records.at_end()) {
        const uint64_t at = records.at();
        uint64_t durable = 0;
        const std::string record = records.next(durable);
        if (record.empty() && last && !records.was_durable()) return at;
        if (record.empty() || (record != end_of_snapshot && !reader(record)))
            return Error::make(MUSTER_E_SYSTEM, "data folder %s: the record at byte %llu %s", name.c_str(),
                               static_cast<unsigned long long>(at), record.empty() ? "is damaged" : "makes no sense");
        complete = record == end_of_snapshot;
    }
    return records.at();
}

Result<Fd> StoreJournal::open_log(uint64_t generation, uint64_t keep) {
    const std::string name = path(generation, "log");
    Fd log(::open(name.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    if (!log || ftruncate(log.get(), static_cast<off_t>(keep)) != 0 ||
        lseek(log.get(), static_cast<off_t>(keep), SEEK_SET) < 0 || (sync_ && fsync(folder_fd_.get()) != 0))
        return failed_at(name, errno);
    return log;
}

// ---- writing --------------------------------------------------------------------------------------------------------

void StoreJournal::start(Progress progress, Histogram *sync_time) {
    sync_time_ = sync_time;
    progress_ = std::move(progress);
    make_room();
    const SignalsBlocked blocked; // the thread inherits the mask
    writer_ = std::thread([this] { write_all(); });
}

StoreJournal::~StoreJournal() {
    {
        const std::lock_guard hold(lock_);
        stop_ = true;
    }
    wake_.notify_one();
    if (writer_.joinable()) writer_.join();
    if (snapshot_writer_.joinable()) snapshot_writer_.join();
}

uint64_t StoreJournal::append(Ref<StoreNote> note) noexcept {
    bool first = false;
    const uint64_t so_far = durable(), in_file = so_far >= log_begin_ ? so_far - log_begin_ + log_offset_ : 0;
    put_head(note->bytes, in_file);
    appended_ += note->bytes.size();
    {
        const std::lock_guard hold(lock_);
        Notes &to = next_log_ ? gathered_next_ : gathered_;
        first = to.empty();
        to.push(std::move(note));
    }
    if (first) wake_.notify_one();
    return appended_;
}

bool StoreJournal::has_room(size_t bytes) noexcept {
    const auto stuck = [&] { return stuck_.load(std::memory_order_relaxed) != 0; };
    const auto there = [&] {
        return !stuck() && appended_ + bytes + head_bytes <= room_until_.load(std::memory_order_acquire);
    };
    if (there()) return true;
    std::unique_lock hold(lock_);
    look_for_room_ = true;
    wake_.notify_one();
    if (no_room_.load(std::memory_order_relaxed) != 0 || stuck())
        return false; // known to be full; the next one may find otherwise
    const uint64_t looks = looks_;
    looked_.wait_for(hold, longest_wait, [&] {
        return there() || failed() != 0 || no_room_.load(std::memory_order_relaxed) != 0 || stuck() ||
               // No bytes are left to be written: there will be no more room.
               (looks_ != looks && looked_at_ == appended_);
    });
    too_slow_ = looked_at_ != appended_;
    return there();
}

Error StoreJournal::why_no_room() const noexcept {
    const int stuck = stuck_.load(std::memory_order_relaxed);
    const int why = stuck != 0 ? stuck : no_room_.load(std::memory_order_relaxed);
    if (why == 0 && too_slow_)
        return Error::make(MUSTER_E_LIMIT, "data folder %s: the disk does not keep up", folder_.c_str());
    return Error::from_errno(why != 0 ? why : ENOSPC, MUSTER_E_LIMIT, "data folder %s", folder_.c_str());
}

// The writer, or before it runs.
void StoreJournal::make_room() noexcept {
    const uint64_t until = room_until_.load(std::memory_order_relaxed);
    if (until == UINT64_MAX || until >= written_ + room_ahead) return;
    const auto in_file = static_cast<off_t>(file_begin_ + (written_ - log_written_from_));
    uint64_t room = 2 * room_ahead;
    while (fallocate(log_.get(), FALLOC_FL_KEEP_SIZE, in_file, static_cast<off_t>(room)) != 0) {
        if (errno != ENOSPC || room / 2 < least_room) {
            room = 0;
            break;
        }
        room /= 2;
    }
    if (room != 0) {
        no_room_.store(0, std::memory_order_relaxed);
        if (written_ + room > until) room_until_.store(written_ + room, std::memory_order_release);
    } else if (errno == EOPNOTSUPP) { // then write_out() detects a full disk, and changes wait for room there
        room_until_.store(UINT64_MAX, std::memory_order_release);
    } else {
        no_room_.store(errno, std::memory_order_relaxed);
    }
}

// A write without room has written nothing, or a part, and continues there when there is room. Any other failure cannot
// be repaired: the content of the disk is then unknown.
bool StoreJournal::write_out(Notes &notes) noexcept {
    iovec parts[max_parts];
    while (!notes.empty()) {
        size_t count = 0;
        for (StoreNote *one = notes.first(); one != nullptr && count < max_parts; one = Notes::after(*one))
            parts[count++] = {one->bytes.data(), one->bytes.size()};
        for (iovec *left = parts; left != parts + count;) {
            const ssize_t n = writev(log_.get(), left, static_cast<int>(parts + count - left));
            if (n < 0 && (errno == EINTR || (is_full(errno) && wait_for_room(errno)))) continue;
            if (n < 0) return false;
            stuck_.store(0, std::memory_order_relaxed);
            written_ += static_cast<uint64_t>(n);
            size_t done = static_cast<size_t>(n);
            for (; left != parts + count && done >= left->iov_len; left++) done -= left->iov_len;
            if (left == parts + count) break;
            left->iov_base = static_cast<char *>(left->iov_base) + done;
            left->iov_len -= done;
        }
        for (; count != 0; count--) notes.pop();
    }
    if (!sync_) return true;
    const int64_t begun_ns = now_ns();
    if (fdatasync(log_.get()) != 0) return false;
    if (sync_time_ != nullptr) sync_time_->observe(now_ns() - begun_ns);
    return true;
}

// Changes are refused meanwhile; the next refused one, or the end of a pause, makes it try again. False: the journal
// has to end. Leaves errno at `why`.
bool StoreJournal::wait_for_room(int why) noexcept {
    std::unique_lock hold(lock_);
    stuck_.store(why, std::memory_order_relaxed);
    looked_.notify_one();
    wake_.wait_for(hold, pause_when_full, [&] { return stop_ || std::exchange(look_for_room_, false); });
    errno = why;
    return !stop_;
}

void StoreJournal::write_all() noexcept {
    Notes notes;
    for (;;) {
        bool stop = false;
        Fd next;
        {
            std::unique_lock hold(lock_);
            wake_.wait(hold, [&] { return stop_ || look_for_room_ || !gathered_.empty() || next_log_; });
            look_for_room_ = false;
            stop = stop_;
            notes.swap(gathered_);
            if (next_log_) { // records collected before the change belong to the old log
                next = std::move(next_log_);
                gathered_.swap(gathered_next_);
                stop = stop && gathered_.empty();
            }
        }
        if (!notes.empty() && failed_.load(std::memory_order_relaxed) == 0 && !write_out(notes))
            failed_.store(errno, std::memory_order_release);
        notes.clear(); // after a failure they are lost; none was acknowledged
        if (failed_.load(std::memory_order_relaxed) == 0) durable_.store(written_, std::memory_order_release);
        if (next) {
            log_ = std::move(next);
            log_written_from_ = written_;
            file_begin_ = 0;
            if (room_until_.load(std::memory_order_relaxed) != UINT64_MAX)
                room_until_.store(0, std::memory_order_release);
        }
        make_room();
        {
            const std::lock_guard hold(lock_);
            looks_++;
            looked_at_ = written_;
        }
        looked_.notify_one();
        if (progress_) progress_();
        if (stop) return;
    }
}

// ---- snapshots ------------------------------------------------------------------------------------------------------

// A gap in the numbers keeps the logs before it from being read on into the new one.
bool StoreJournal::begin_snapshot(std::function<bool(std::string &record)> next, bool apart) {
    const uint64_t generation = generation_ + (apart ? 2 : 1);
    auto log = open_log(generation, 0);
    if (!log) {
        no_room_.store(log.error().os_errno, std::memory_order_relaxed);
        return false;
    }
    if (snapshot_writer_.joinable()) snapshot_writer_.join(); // it has ended
    writing_snapshot_.store(true, std::memory_order_relaxed);
    try {
        const SignalsBlocked blocked;
        snapshot_writer_ =
            std::thread([this, generation, next = std::move(next)] { write_snapshot(generation, next); });
    } catch (...) {
        writing_snapshot_.store(false, std::memory_order_relaxed);
        unlink(path(generation, "log").c_str());
        return false;
    }
    generation_ = generation;
    log_begin_ = appended_;
    log_offset_ = 0;
    {
        const std::lock_guard hold(lock_);
        next_log_ = std::move(*log);
    }
    wake_.notify_one();
    return true;
}

// Until it has its name the logs before it are valid.
void StoreJournal::write_snapshot(uint64_t generation, const std::function<bool(std::string &record)> &next) noexcept {
    const std::string name = path(generation, "snapshot"), draft = name + ".draft";
    try {
        FILE *const file = fopen(draft.c_str(), "we");
        bool fine = file != nullptr;
        std::string record, out;
        uint64_t bytes = 0;
        for (bool more = true; fine && more;) {
            record.clear();
            more = next(record);
            out.assign(head_bytes, '\0');
            out.append(more ? std::string_view(record) : std::string_view(end_of_snapshot));
            put_head(out, 0);
            fine = fwrite(out.data(), 1, out.size(), file) == out.size();
            bytes += out.size();
        }
        if (file != nullptr) {
            fine = fflush(file) == 0 && fine;
            if (sync_) fine = fsync(fileno(file)) == 0 && fine;
            fine = fclose(file) == 0 && fine;
        }
        if (fine && rename(draft.c_str(), name.c_str()) == 0 && (!sync_ || fsync(folder_fd_.get()) == 0)) {
            snapshot_bytes_.store(bytes, std::memory_order_relaxed);
            for (uint64_t old = oldest_; old < generation; old++) {
                unlink(path(old, "snapshot").c_str());
                unlink(path(old, "log").c_str());
            }
            oldest_ = generation;
            complete_.store(generation, std::memory_order_release);
        } else {
            unlink(draft.c_str());
        }
    } catch (const std::bad_alloc &) {
        unlink(draft.c_str());
    }
    writing_snapshot_.store(false, std::memory_order_release);
    if (progress_) progress_();
}

} // namespace muster
