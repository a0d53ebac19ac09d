// SPDX-License-Identifier: MIT
#include "store/file/file_log.hpp"

#include "store/wire/wire.hpp"

#include <sodium.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <sys/stat.h>

namespace muster {

namespace {

// The file: magic (16), maximum bytes (8), end of the records that are acknowledged and on the disk (8; zero: not
// stored); records: checksum (8), head (16), body.
constexpr char magic[] = "muster store 1\n";
constexpr size_t magic_bytes = sizeof magic, header_bytes = 32, acknowledged_at = 24,
                 record_bytes = 8 + store_head_bytes;
static_assert(magic_bytes == 16);
// Types of records besides StoreRecord::ask, of a log that was rewritten: a key (version (8), length (4), key, value),
// and the end of the keys; `number` is the revision.
constexpr auto record_of_key = static_cast<StoreRecord>(100), record_of_revision = static_cast<StoreRecord>(101);
constexpr size_t piece_bytes = 4 << 20;
constexpr uint64_t worth_tidying = 4 << 20;

uint64_t checksum(std::string_view bytes) noexcept {
    static constexpr unsigned char key[crypto_shorthash_KEYBYTES] = {'m', 'u', 's', 't', 'e', 'r'};
    unsigned char hash[crypto_shorthash_BYTES];
    crypto_shorthash(hash, reinterpret_cast<const unsigned char *>(bytes.data()), bytes.size(), key);
    return get_u64(hash);
}

// Fills the 8 bytes at `at` with the checksum of the record after them.
void seal(std::string &to, size_t at) noexcept {
    put_u64(as_bytes(to) + at, checksum(std::string_view(to).substr(at + 8)));
}

// The magic of a header that is being written, or whose writer was killed, or whose disk failed: it is written last,
// and until then there are zeros in its place. Short files of others have none.
bool is_begun(const char *magic_there) noexcept {
    const size_t same = static_cast<size_t>(std::mismatch(magic, magic + magic_bytes, magic_there).first - magic);
    const auto is_zero = [](char c) { return c == 0; };
    return same < magic_bytes && std::all_of(magic_there + same, magic_there + magic_bytes, is_zero);
}

void add_header(std::string &to, uint64_t max_bytes) {
    ByteWriter(to).bytes({magic, magic_bytes}).number(max_bytes).number(uint64_t{0});
}

Result<void> write_all(int file, std::string_view bytes, uint64_t at, const char *path) {
    while (!bytes.empty()) {
        const ssize_t written = pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(at));
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) {
            const bool full = errno == ENOSPC || errno == EDQUOT || errno == EFBIG;
            return Error::from_errno(errno, full ? MUSTER_E_LIMIT : MUSTER_OK, "store file://%s", path);
        }
        bytes.remove_prefix(static_cast<size_t>(written));
        at += static_cast<uint64_t>(written);
    }
    return {};
}

} // namespace

Error FileLog::wrong(const char *what, uint64_t at) const noexcept {
    return Error::make(MUSTER_E_PROTOCOL, "store file://%s: %s at byte %llu", path_.c_str(), what,
                       static_cast<unsigned long long>(at));
}

// The path of the file itself, so that a rewritten log replaces it and not a symbolic link to it. The target of the
// link is determined when the store is opened.
Result<void> FileLog::open() {
    Fd file;
    do file = Fd(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600));
    while (!file && errno == EINTR);
    char real[PATH_MAX];
    if (file && realpath(path_.c_str(), real) != nullptr) path_ = real;
    struct stat about {};
    if (!file || fstat(file.get(), &about) != 0)
        return Error::from_errno(errno, errno == ENOENT ? MUSTER_E_NOT_FOUND : MUSTER_OK, "store file://%s",
                                 path_.c_str());
    char begin[magic_bytes];
    const ssize_t got = S_ISREG(about.st_mode) ? pread(file.get(), begin, sizeof begin, 0) : 1;
    // An empty one becomes a store. Another process may be writing the header: begin_file() knows, which has the lock.
    const bool has_magic = got == ssize_t{magic_bytes} && (memcmp(begin, magic, magic_bytes) == 0 || is_begun(begin));
    if (!S_ISREG(about.st_mode) || (got > 0 && !has_magic))
        return Error::make(MUSTER_E_PROTOCOL, "store file://%s: that is no store", path_.c_str());
    file_ = std::move(file);
    forget();
    return {};
}

void FileLog::forget() noexcept {
    end_ = 0;
    noted_.clear();
}

// The file may have been replaced while this waited for the lock of the old one.
Result<void> FileLog::lock() {
    in_doubt_ = false;
    for (;;) {
        if (!file_)
            if (auto opened = open(); !opened) return opened;
        struct flock whole {};
        whole.l_type = F_WRLCK;
        whole.l_whence = SEEK_SET;
        int rc;
        do rc = fcntl(file_.get(), F_OFD_SETLKW, &whole);
        while (rc != 0 && errno == EINTR);
        if (rc != 0) return Error::from_errno(errno, MUSTER_OK, "store file://%s: lock", path_.c_str());
        struct stat here {
        }, there{};
        if (fstat(file_.get(), &here) == 0 && stat(path_.c_str(), &there) == 0 && here.st_ino == there.st_ino &&
            here.st_dev == there.st_dev)
            return {};
        file_.reset();
    }
}

void FileLog::unlock() noexcept {
    if (!file_) return;
    struct flock whole {};
    whole.l_type = F_UNLCK;
    whole.l_whence = SEEK_SET;
    fcntl(file_.get(), F_OFD_SETLK, &whole);
}

Result<void> FileLog::begin_file(uint64_t size) {
    acknowledged_ = 0;
    char header[header_bytes] = {};
    const ssize_t got = size == 0 ? 0 : pread(file_.get(), header, sizeof header, 0);
    if (got < 0) return Error::from_errno(errno, MUSTER_OK, "store file://%s: read its header", path_.c_str());
    if (size == 0 || (size > magic_bytes && size <= header_bytes && is_begun(header))) {
        std::string whole;
        add_header(whole, max_bytes_);
        const std::string_view bytes(whole);
        auto written = write_all(file_.get(), bytes.substr(magic_bytes), magic_bytes, path_.c_str());
        if (written) written = write_all(file_.get(), bytes.substr(0, magic_bytes), 0, path_.c_str());
        if (!written) {
            const int rc = ftruncate(file_.get(), 0); // if that fails too, the next writer begins again
            static_cast<void>(rc);
            return written;
        }
    } else {
        if (got != ssize_t{header_bytes} || memcmp(header, magic, magic_bytes) != 0)
            return wrong("that is no store", 0);
        max_bytes_ = get_u64(reinterpret_cast<unsigned char *>(header) + magic_bytes);
        acknowledged_ = get_u64(reinterpret_cast<unsigned char *>(header) + acknowledged_at);
        if (acknowledged_ > size)
            return Error::make(
                MUSTER_E_PROTOCOL, "store file://%s: the file is damaged: %llu bytes were acknowledged, it has %llu",
                path_.c_str(), static_cast<unsigned long long>(acknowledged_), static_cast<unsigned long long>(size));
    }
    table_ = std::make_unique<StoreTable>(max_bytes_);
    end_ = header_bytes;
    return {};
}

Result<void> FileLog::catch_up() {
    struct stat about {};
    if (fstat(file_.get(), &about) != 0) return Error::from_errno(errno, MUSTER_OK, "store file://%s", path_.c_str());
    auto size = static_cast<uint64_t>(about.st_size);
    if (size < end_) forget();
    if (end_ == 0) {
        if (auto begun = begin_file(size); !begun) return begun;
        size = std::max<uint64_t>(size, header_bytes);
    } else if (end_ < size) { // records that others have written were acknowledged meanwhile
        unsigned char place[8];
        if (pread(file_.get(), place, sizeof place, acknowledged_at) == sizeof place) acknowledged_ = get_u64(place);
    }
    std::string bytes;
    while (end_ < size) {
        const size_t had = bytes.size();
        const auto want = static_cast<size_t>(std::min<uint64_t>(piece_bytes, size - end_ - had));
        bytes.resize(had + want);
        const ssize_t got = pread(file_.get(), bytes.data() + had, want, static_cast<off_t>(end_ + had));
        if (got < 0 && errno == EINTR) {
            bytes.resize(had);
            continue;
        }
        if (got <= 0) return Error::from_errno(got < 0 ? errno : EIO, MUSTER_OK, "store file://%s", path_.c_str());
        bytes.resize(had + static_cast<size_t>(got));
        const bool last = end_ + bytes.size() == size;
        bool torn = false;
        auto applied = apply(bytes, last, torn);
        if (!applied) {
            forget(); // half of a record may be in the table
            return applied.error();
        }
        bytes.erase(0, *applied);
        end_ += *applied;
        if (torn || (last && !bytes.empty())) return cut(size);
    }
    return {};
}

// The file does not end with a complete record: its writer was killed in the middle, or the file is damaged. The rest
// is removed if it cannot have been acknowledged.
Result<void> FileLog::cut(uint64_t size) {
    const uint64_t at = end_;
    if (at < acknowledged_ || (acknowledged_ == 0 && record_behind(size))) {
        forget();
        return wrong("the file is damaged", at);
    }
    if (ftruncate(file_.get(), static_cast<off_t>(at)) != 0)
        return Error::from_errno(errno, MUSTER_OK, "store file://%s", path_.c_str());
    return {};
}

// Is there a complete record anywhere after the end? It was written after the incomplete one.
bool FileLog::record_behind(uint64_t size) const {
    const auto starts_record = [&](const unsigned char *at, uint64_t place) {
        const StoreHead head = StoreHead::get(at + 8);
        const bool known =
            head.type == StoreRecord::ask || head.type == record_of_key || head.type == record_of_revision;
        if (!known || head.bytes > store_record_max || size - place < record_bytes + head.bytes) return false;
        std::string record(record_bytes + head.bytes, '\0');
        return pread(file_.get(), record.data(), record.size(), static_cast<off_t>(place)) ==
                   static_cast<ssize_t>(record.size()) &&
               checksum(std::string_view(record).substr(8)) == get_u64(as_bytes(record));
    };
    std::string bytes(piece_bytes, '\0');
    for (uint64_t from = end_ + 1; from + record_bytes <= size;) {
        const ssize_t got = pread(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(from));
        if (got < static_cast<ssize_t>(record_bytes)) return false;
        const uint64_t places = static_cast<uint64_t>(got) - record_bytes + 1;
        for (uint64_t i = 0; i < places; i++)
            if (starts_record(as_bytes(bytes) + i, from + i)) return true;
        from += places;
    }
    return false;
}

// The records are on the disk, and their writers are about to be notified. Without that the header does not contain the
// end: after a loss of power the header might be on the disk and the records not.
void FileLog::acknowledge() noexcept {
    const uint64_t place = sync_ ? end_ : 0;
    if (place == acknowledged_) return;
    unsigned char bytes[8];
    put_u64(bytes, place);
    if (pwrite(file_.get(), bytes, sizeof bytes, acknowledged_at) == sizeof bytes) acknowledged_ = place;
}

// Returns the number of bytes of complete records. `torn`: the rest is not a record; otherwise it is the beginning of
// one, if anything.
Result<size_t> FileLog::apply(std::string_view bytes, bool last, bool &torn) {
    size_t at = 0;
    while (bytes.size() - at >= record_bytes) {
        const StoreHead head = StoreHead::get(as_bytes(bytes) + at + 8);
        const std::string_view rest = bytes.substr(at);
        const bool cut = head.bytes > store_record_max || rest.size() < record_bytes + head.bytes;
        if (cut && !last && head.bytes <= store_record_max) return at;
        const std::string_view record = rest.substr(0, cut ? rest.size() : record_bytes + head.bytes);
        if (cut || checksum(record.substr(8)) != get_u64(as_bytes(record))) {
            torn = true;
            return at;
        }
        const std::string_view body = record.substr(record_bytes);
        const bool of_image = head.type == record_of_key || head.type == record_of_revision;
        if (of_image && table_->revision() != 0) // it is the first record, once
            return wrong("a record that does not follow the others", end_ + at);
        if (head.type == record_of_key) {
            ByteReader from(body);
            const auto version = from.number<uint64_t>();
            const std::string_view key = from.bytes(from.number<uint32_t>());
            if (!from.is_valid() || key.size() > store_key_max)
                return wrong("a record of a key that is none", end_ + at);
            table_->put_back({std::string(key), Blob::make(from.rest()), version, 0});
        } else if (head.type == record_of_revision) {
            table_->put_back(head.number, 0);
        } else {
            uint64_t floor = 0;
            uint32_t prefix = 0;
            std::vector<muster_store_op> ops;
            if (head.type != StoreRecord::ask || !get_ask(body, floor, prefix, ops))
                return wrong("an unknown record", end_ + at);
            auto request = StoreRequest::read(ops.data(), ops.size(), {});
            if (!request) return request.error();
            struct Replayed final : StoreWaiter {
                using StoreWaiter::StoreWaiter;
            } replayed(std::move(*request));
            table_->do_now(replayed);
            if (table_->revision() != head.number) return wrong("a record that does not follow the others", end_ + at);
        }
        at += record.size();
    }
    return at;
}

void FileLog::note(const StoreRequest &request) {
    const size_t at = noted_.size();
    noted_.append(8, '\0');
    try {
        put_ask(noted_, table_->revision(), 0, false, request);
    } catch (...) {
        noted_.resize(at);
        throw;
    }
    seal(noted_, at);
}

Result<void> FileLog::write() {
    if (noted_.empty()) return {};
    Result<void> written = write_all(file_.get(), noted_, end_, path_.c_str());
    if (written && sync_ && fdatasync(file_.get()) != 0)
        written = Error::from_errno(errno, MUSTER_OK, "store file://%s", path_.c_str());
    if (!written) {
        // A record that cannot be removed counts as any other, if it is whole.
        in_doubt_ = ftruncate(file_.get(), static_cast<off_t>(end_)) != 0 || (sync_ && fdatasync(file_.get()) != 0);
        forget();
        return written;
    }
    end_ += noted_.size();
    noted_.clear();
    acknowledge();
    return {};
}

// A file beside the log that no other process has. An existing file of that name belongs to another process, unless it
// is the draft of a writer that was killed.
Result<Fd> FileLog::draft(std::string &name) const {
    constexpr int max_names = 8;
    for (int i = 0;; i++) {
        name.assign(path_).append(".new");
        if (i != 0) name.append(".").append(std::to_string(i));
        Fd file(::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
        if (file) return file;
        if (errno != EEXIST) return Error::from_errno(errno, MUSTER_OK, "store file://%s", name.c_str());
        const Fd old(::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
        struct stat about {};
        char begin[magic_bytes];
        const bool ours = old && fstat(old.get(), &about) == 0 && S_ISREG(about.st_mode) && about.st_nlink == 1 &&
                          pread(old.get(), begin, sizeof begin, 0) == sizeof begin &&
                          memcmp(begin, magic, sizeof begin) == 0;
        if (ours && unlink(name.c_str()) == 0) {
            i--;
            continue;
        }
        if (i + 1 == max_names)
            return Error::make(MUSTER_E_EXISTS, "store file://%s: %s and others are in the way", path_.c_str(),
                               name.c_str());
    }
}

Result<void> FileLog::tidy() {
    if (end_ < worth_tidying || end_ / 4 < table_->bytes()) return {};
    struct stat about {};
    if (fstat(file_.get(), &about) != 0) return Error::from_errno(errno, MUSTER_OK, "store file://%s", path_.c_str());
    if (about.st_nlink != 1) return {}; // under its other name it would stay as it is
    std::string beside;
    auto made = draft(beside);
    if (!made) return made.error();
    Fd file = std::move(*made);
    std::string bytes;
    uint64_t written = 0;
    Result<void> how;
    struct stat own {};
    const mode_t mode = about.st_mode & 07777;
    if (fstat(file.get(), &own) != 0 ||
        ((own.st_uid != about.st_uid || own.st_gid != about.st_gid) &&
         fchown(file.get(), about.st_uid, about.st_gid) != 0) ||
        fchmod(file.get(), mode) != 0)
        how = Error::from_errno(errno, MUSTER_OK, "store file://%s", beside.c_str());
    const auto flush = [&] {
        if (how) how = write_all(file.get(), bytes, written, beside.c_str());
        written += bytes.size();
        bytes.clear();
    };
    const auto add = [&](StoreRecord type, uint64_t number, std::string_view body) {
        const size_t at = bytes.size();
        bytes.append(8, '\0');
        put_record(bytes, {0, type, 0, number}, body);
        seal(bytes, at);
        if (bytes.size() > piece_bytes) flush();
    };
    add_header(bytes, max_bytes_);
    const StoreTable::Image image = table_->image();
    for (const StoreTable::Image::Key &one : image.keys) {
        ByteWriter body;
        body.number(one.version).number(static_cast<uint32_t>(one.key.size())).bytes(one.key).bytes(one.value->bytes());
        add(record_of_key, 0, body.take());
    }
    add(record_of_revision, table_->revision(), {});
    flush();
    if (sync_) {
        unsigned char place[8];
        put_u64(place, written);
        const std::string_view all(reinterpret_cast<const char *>(place), sizeof place);
        if (how) how = write_all(file.get(), all, acknowledged_at, beside.c_str());
    }
    if (how && fsync(file.get()) != 0) how = Error::from_errno(errno, MUSTER_OK, "store file://%s", beside.c_str());
    if (how && rename(beside.c_str(), path_.c_str()) != 0)
        how = Error::from_errno(errno, MUSTER_OK, "store file://%s", beside.c_str());
    if (!how) {
        unlink(beside.c_str());
        return how;
    }
    const std::string folder = path_.substr(0, path_.rfind('/') + 1);
    const Fd directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (directory) fsync(directory.get());
    // A process that waits for the lock of the old file finds that it was replaced.
    file_ = std::move(file);
    end_ = written;
    acknowledged_ = sync_ ? written : 0;
    return {};
}

} // namespace muster
