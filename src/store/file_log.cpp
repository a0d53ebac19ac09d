// SPDX-License-Identifier: MIT
#include "store/file_log.hpp"

#include "store/wire.hpp"

#include <sodium.h>

#include <cerrno>
#include <cstring>
#include <sys/stat.h>

namespace muster {

namespace {

// The file: magic (16), most bytes (8), zero (8); records: checksum (8), head (16), body.
constexpr char magic[] = "muster store 1\n";
constexpr size_t magic_bytes = sizeof magic, header_bytes = 32, record_bytes = 8 + store_head_bytes;
static_assert(magic_bytes == 16);
// Types of records beside StoreRecord::ask, of a log that was written anew: a key (version (8), length (4), key,
// value), and the end of them; `number` is the revision.
constexpr auto record_of_key = static_cast<StoreRecord>(100), record_of_revision = static_cast<StoreRecord>(101);
constexpr size_t piece_bytes = 4 << 20;
constexpr uint64_t worth_tidying = 4 << 20;

uint64_t checksum(std::string_view bytes) noexcept {
    static constexpr unsigned char key[crypto_shorthash_KEYBYTES] = {'m', 'u', 's', 't', 'e', 'r'};
    unsigned char hash[crypto_shorthash_BYTES];
    crypto_shorthash(hash, reinterpret_cast<const unsigned char *>(bytes.data()), bytes.size(), key);
    return get_u64(hash);
}

const unsigned char *bytes_at(std::string_view text, size_t at) noexcept {
    return reinterpret_cast<const unsigned char *>(text.data()) + at;
}

// Puts the checksum in front of a record that begins at `at`, behind 8 bytes left for it.
void seal(std::string &to, size_t at) noexcept {
    put_u64(reinterpret_cast<unsigned char *>(to.data()) + at, checksum(std::string_view(to).substr(at + 8)));
}

void add_header(std::string &to, uint64_t most_bytes) {
    unsigned char header[header_bytes] = {};
    memcpy(header, magic, magic_bytes);
    put_u64(header + magic_bytes, most_bytes);
    to.append(reinterpret_cast<const char *>(header), sizeof header);
}

bool only_zeros(std::string_view bytes) noexcept {
    return bytes.find_first_not_of('\0') == std::string_view::npos;
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

Result<void> FileLog::open() {
    Fd file(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600));
    struct stat about {};
    if (!file || fstat(file.get(), &about) != 0)
        return Error::from_errno(errno, errno == ENOENT ? MUSTER_E_NOT_FOUND : MUSTER_OK, "store file://%s",
                                 path_.c_str());
    char begin[magic_bytes];
    const ssize_t got = S_ISREG(about.st_mode) ? pread(file.get(), begin, sizeof begin, 0) : 1;
    // A shorter one is just being made.
    if (!S_ISREG(about.st_mode) || (got == sizeof begin && memcmp(begin, magic, sizeof begin) != 0))
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
    if (size < header_bytes) {
        std::string header;
        add_header(header, most_bytes_);
        if (auto written = write_all(file_.get(), header, 0, path_.c_str()); !written) return written;
    } else {
        unsigned char header[header_bytes];
        if (pread(file_.get(), header, sizeof header, 0) != sizeof header || memcmp(header, magic, magic_bytes) != 0)
            return wrong("that is no store", 0);
        most_bytes_ = get_u64(header + magic_bytes);
    }
    table_ = std::make_unique<StoreTable>(most_bytes_);
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
        auto applied = apply(bytes, last);
        if (!applied) {
            forget(); // half of a record may be in the table
            return applied.error();
        }
        bytes.erase(0, *applied);
        end_ += *applied;
        if (!last) continue;
        if (bytes.empty()) break;
        // Its writer was killed in the middle of it.
        if (ftruncate(file_.get(), static_cast<off_t>(end_)) != 0)
            return Error::from_errno(errno, MUSTER_OK, "store file://%s", path_.c_str());
        break;
    }
    return {};
}

// How many bytes were whole records. What is left at the end of the file is the beginning of one.
Result<size_t> FileLog::apply(std::string_view bytes, bool last) {
    size_t at = 0;
    while (bytes.size() - at >= record_bytes) {
        const StoreHead head = StoreHead::get(bytes_at(bytes, at + 8));
        const std::string_view rest = bytes.substr(at);
        const bool cut = head.bytes > store_record_max || rest.size() < record_bytes + head.bytes;
        if (cut && !last && head.bytes <= store_record_max) return at;
        const std::string_view record = rest.substr(0, cut ? rest.size() : record_bytes + head.bytes);
        if (cut || checksum(record.substr(8)) != get_u64(bytes_at(record, 0))) {
            // A machine that fell may have left zeros behind; anything else in front of more is damage.
            const bool at_the_end = last && (record.size() == rest.size() || only_zeros(rest));
            if (!at_the_end || head.bytes > store_record_max) {
                if (last && only_zeros(rest)) return at;
                return wrong("the file is damaged", end_ + at);
            }
            return at;
        }
        const std::string_view body = record.substr(record_bytes);
        const bool of_image = head.type == record_of_key || head.type == record_of_revision;
        if (of_image && table_->revision() != 0) // it comes first, once
            return wrong("a record that does not follow the others", end_ + at);
        if (head.type == record_of_key) {
            const size_t length = body.size() < 12 ? body.size() : get_u32(bytes_at(body, 8));
            if (body.size() < 12 || length > store_key_max || body.size() - 12 < length)
                return wrong("a record of a key that is none", end_ + at);
            table_->put_back({std::string(body.substr(12, length)), Blob::make(body.substr(12 + length)),
                              get_u64(bytes_at(body, 0)), 0});
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
        // What cannot be taken away is a record like any other, or cut off.
        const int rc = ftruncate(file_.get(), static_cast<off_t>(end_));
        static_cast<void>(rc);
        forget();
        return written;
    }
    end_ += noted_.size();
    noted_.clear();
    return {};
}

Result<void> FileLog::tidy() {
    if (end_ < worth_tidying || end_ / 4 < table_->bytes()) return {};
    const std::string beside = path_ + ".new";
    Fd file(::open(beside.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file) return Error::from_errno(errno, MUSTER_OK, "store file://%s", beside.c_str());
    std::string bytes;
    uint64_t written = 0;
    Result<void> how;
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
    add_header(bytes, most_bytes_);
    const StoreTable::Image image = table_->image();
    for (const StoreTable::Image::Key &one : image.keys) {
        unsigned char front[12];
        put_u64(front, one.version);
        put_u32(front + 8, static_cast<uint32_t>(one.key.size()));
        std::string body(reinterpret_cast<const char *>(front), sizeof front);
        add(record_of_key, 0, body.append(one.key).append(one.value->bytes()));
    }
    add(record_of_revision, table_->revision(), {});
    flush();
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
    // Who waits for the lock of the old file finds that it was replaced.
    file_ = std::move(file);
    end_ = written;
    return {};
}

} // namespace muster
