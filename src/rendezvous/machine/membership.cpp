// SPDX-License-Identifier: MIT
#include "rendezvous/machine/membership.hpp"

#include "base/codec.hpp"

#include <sodium.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace muster {

namespace {

constexpr uint8_t membership_version = 2;
constexpr size_t text_max = 65000, max_host_bytes = 300;
constexpr size_t place_bytes = 64 * 1024; // of each of the two in a file: checksum (32), length (4), count (8), record
constexpr size_t digest_bytes = 32, head_bytes = digest_bytes + 12;
constexpr uint32_t max_files = 1024; // of one run on one host

std::string hex_of(std::string_view text, size_t bytes) {
    unsigned char hash[32];
    char hex[65];
    crypto_generichash(hash, sizeof hash, reinterpret_cast<const unsigned char *>(text.data()), text.size(), nullptr,
                       0);
    sodium_bin2hex(hex, sizeof hex, hash, bytes);
    return hex;
}

Digest checksum_of(std::string_view bytes) {
    Digest digest = {};
    crypto_generichash(digest.data(), digest.size(), reinterpret_cast<const unsigned char *>(bytes.data()),
                       bytes.size(), nullptr, 0);
    return digest;
}

Status status_of(int why) noexcept {
    if (why == EACCES || why == EPERM || why == EROFS) return MUSTER_E_PERMISSION;
    return why == ENOSPC || why == EDQUOT || why == EMFILE || why == ENFILE ? MUSTER_E_LIMIT : MUSTER_E_SYSTEM;
}

Result<void> make_directory(const std::string &path) {
    for (size_t at = 1; at != std::string::npos;) { // its parents, too
        at = path.find('/', at + 1);
        const std::string part = path.substr(0, at);
        if (::mkdir(part.c_str(), 0700) != 0 && errno != EEXIST)
            return Error::from_errno(errno, status_of(errno), "state directory %s: make %s", path.c_str(),
                                     part.c_str());
    }
    struct stat there = {};
    if (::stat(path.c_str(), &there) != 0)
        return Error::from_errno(errno, status_of(errno), "state directory %s", path.c_str());
    if (!S_ISDIR(there.st_mode))
        return Error::make(MUSTER_E_ARG, "state directory %s: it is no directory", path.c_str());
    // Another user could make this process believe anything about former members.
    if ((there.st_uid != ::geteuid() && there.st_uid != 0) || (there.st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return Error::make(MUSTER_E_PERMISSION, "state directory %s: other users can write there", path.c_str());
    return {};
}

} // namespace

namespace {

// The files that members of this process have locked. Any thread.
class LockedFiles {
  public:
    static LockedFiles &get() {
        static LockedFiles *const files = new LockedFiles; // never destroyed: threads may be abandoned at exit
        return *files;
    }
    void add(const std::string &path, const MembershipFile::Released &released) {
        const std::lock_guard hold(lock_);
        files_[path] = released;
    }
    void remove(const std::string &path) noexcept {
        const std::lock_guard hold(lock_);
        files_.erase(path);
        changed_.notify_all();
    }
    // False: it is not a file of a released member of this process, or it was not released in time.
    bool wait(const std::string &path, Deadline &deadline) {
        constexpr int64_t longest = 5'000'000'000; // a member ends in milliseconds, unless no thread drives its context
        const auto until = std::chrono::steady_clock::now() +
                           std::chrono::nanoseconds(deadline.endless() ? longest : std::min(longest, deadline.left()));
        std::unique_lock hold(lock_);
        const auto found = files_.find(path);
        if (found == files_.end()) return true;                            // since it was found locked
        if (!found->second->load(std::memory_order_acquire)) return false; // acquire: pairs with the host's release
        return changed_.wait_until(hold, until, [&] { return files_.count(path) == 0; });
    }

  private:
    std::mutex lock_;
    std::condition_variable changed_;
    std::map<std::string, MembershipFile::Released> files_;
};

} // namespace

std::string Membership::write() const {
    std::vector<std::string_view> addresses(peers.begin(), peers.end());
    return ByteWriter()
        .number(membership_version)
        .text(config.write())
        .text(place.write())
        .number(static_cast<uint8_t>(say))
        .text(home)
        .text(promised_to)
        .text(own_host)
        .text(write_page(addresses))
        .take();
}

std::optional<Membership> Membership::read(std::string_view bytes) {
    ByteReader from(bytes);
    from.expect(membership_version);
    Membership membership;
    const auto config = RunConfig::read(from.text(text_max));
    const auto place = RoundPlace::read(from.text(text_max));
    const auto say = from.number<uint8_t>();
    membership.home = from.text(max_host_bytes);
    membership.promised_to = from.text(max_host_bytes);
    membership.own_host = from.text(max_host_bytes);
    const std::string_view page = from.text(text_max);
    from.require(config && place && place->attempt.number != 0 && say <= left);
    if (!from.is_complete()) return std::nullopt;
    membership.config = *config;
    membership.place = *place;
    membership.say = static_cast<Say>(say);
    std::string_view peer;
    while (membership.peers.size() < Round::default_page &&
           read_page(page, static_cast<uint32_t>(membership.peers.size()), peer))
        membership.peers.emplace_back(peer);
    return membership;
}

// ---- the file -------------------------------------------------------------------------------------------------------

// The name holds the host's, since a directory may be shared by hosts, of which each has members of its own.
Result<MembershipFile> MembershipFile::open(const std::string &directory, std::string_view run, std::string_view origin,
                                            Deadline &deadline) {
    if (auto made = make_directory(directory); !made) return made.error();
    char host[HOST_NAME_MAX + 1] = "";
    ::gethostname(host, sizeof host - 1);
    MembershipFile file;
    file.directory_ = directory;
    file.name_ = std::string(run) + "\n" + std::string(origin) + "\n";
    file.first_ = directory + "/run-" + hex_of(file.name_ + host, 12) + "-";
    for (uint32_t i = 0; i < max_files; i++) {
        if (::access((file.first_ + std::to_string(i)).c_str(), F_OK) != 0) continue;
        auto locked = file.lock(i);
        if (locked && !*locked && LockedFiles::get().wait(file.path_, deadline)) locked = file.lock(i);
        if (!locked) return locked.error();
        if (!*locked) {
            file.see_living();
            continue;
        }
        file.former_ = file.load();
        if (file.former_) return file;
        if (file.damaged_)
            return Error::make(MUSTER_E_PROTOCOL,
                               "state file %s: it is damaged; if no member of run \"%.*s\" is left anywhere, delete it",
                               file.path_.c_str(), static_cast<int>(run.size()), run.data());
        file.discard(); // its process ended before it had written
    }
    return file;
}

MembershipFile &MembershipFile::operator=(MembershipFile &&other) noexcept {
    if (this == &other) return *this;
    close();
    this->~MembershipFile();
    return *new (this) MembershipFile(std::move(other));
}

void MembershipFile::close() noexcept {
    if (!file_) return;
    file_.reset();
    LockedFiles::get().remove(path_);
}

// The file is read without its lock. While its process writes one place, the other place is valid.
void MembershipFile::see_living() {
    file_ = Fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!file_) return;
    auto membership = load();
    file_.reset();
    damaged_ = false;
    if (!membership || membership->say == Membership::left) return;
    if (living_ && living_->place.attempt.number >= membership->place.attempt.number) return;
    living_ = std::move(membership);
    living_path_ = path_;
}

Result<bool> MembershipFile::lock(uint32_t index) {
    path_ = first_ + std::to_string(index);
    for (;;) {
        file_ = Fd(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
        if (!file_) return Error::from_errno(errno, status_of(errno), "state file %s", path_.c_str());
        if (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
            const int why = errno;
            file_.reset();
            if (why == EWOULDBLOCK) return false;
            return Error::from_errno(why, status_of(why), "lock the state file %s", path_.c_str());
        }
        struct stat locked = {}, there = {};
        if (::fstat(file_.get(), &locked) != 0 || !S_ISREG(locked.st_mode))
            return Error::make(MUSTER_E_ARG, "state file %s: it is no regular file", path_.c_str());
        // Between open() and flock() its owner may have deleted it.
        if (::stat(path_.c_str(), &there) == 0 && there.st_ino == locked.st_ino && there.st_dev == locked.st_dev) {
            LockedFiles::get().add(path_, released_);
            return true;
        }
    }
}

// An empty file that no other member has.
Result<void> MembershipFile::make() {
    count_ = 0;
    for (uint32_t i = 0; i < max_files; i++) {
        auto locked = lock(i);
        if (!locked) return locked.error();
        if (*locked && !load() && !damaged_) {
            const Fd directory(::open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
            if (directory && ::fsync(directory.get()) == 0) return {};
            return Error::from_errno(errno, status_of(errno), "state directory %s: sync", directory_.c_str());
        }
        close();
    }
    return Error::make(MUSTER_E_LIMIT, "state directory %s: more than %u members of one run", directory_.c_str(),
                       max_files);
}

// A slot: checksum of the rest, length of the record, count, name of the run, record.
std::optional<Membership> MembershipFile::load() {
    std::string latest;
    count_ = 0;
    damaged_ = false;
    for (const off_t at : {off_t{0}, static_cast<off_t>(place_bytes)}) {
        std::string place(place_bytes, '\0');
        const ssize_t size = ::pread(file_.get(), place.data(), place.size(), at);
        if (size < static_cast<ssize_t>(head_bytes)) continue;
        place.resize(static_cast<size_t>(size));
        const auto number = [&](size_t begin, size_t bytes) {
            uint64_t value = 0;
            for (size_t i = bytes; i-- != 0;) value = value << 8 | static_cast<unsigned char>(place[begin + i]);
            return value;
        };
        const uint64_t length = number(digest_bytes, 4), count = number(digest_bytes + 4, 8);
        // The first write, which may have been incomplete, uses the other slot.
        damaged_ = damaged_ || (at == 0 && count != 0);
        if (length > place.size() - head_bytes) continue;
        place.resize(head_bytes + length);
        const Digest digest = checksum_of(std::string_view(place).substr(digest_bytes));
        if (memcmp(digest.data(), place.data(), digest.size()) != 0 || count <= count_) continue;
        count_ = count;
        latest = place.substr(head_bytes);
    }
    if (!latest.starts_with(name_)) return std::nullopt;
    return Membership::read(std::string_view(latest).substr(name_.size()));
}

Result<void> MembershipFile::save(const Membership &membership) {
    if (!file_)
        if (auto made = make(); !made) return made.error();
    const std::string record = name_ + membership.write();
    if (record.size() > place_bytes - head_bytes)
        return Error::make(MUSTER_E_LIMIT, "state file %s: a record of %zu bytes", path_.c_str(), record.size());
    const uint64_t count = count_ + 1;
    std::string place(digest_bytes, '\0');
    for (size_t i = 0; i < 4; i++) place.push_back(static_cast<char>(record.size() >> 8 * i & 0xff));
    for (size_t i = 0; i < 8; i++) place.push_back(static_cast<char>(count >> 8 * i & 0xff));
    place += record;
    const Digest digest = checksum_of(std::string_view(place).substr(digest_bytes));
    memcpy(place.data(), digest.data(), digest.size());
    const auto begin = static_cast<off_t>(count % 2 * place_bytes);
    for (size_t done = 0; done < place.size();) {
        const ssize_t size =
            ::pwrite(file_.get(), place.data() + done, place.size() - done, begin + static_cast<off_t>(done));
        if (size < 0 && errno == EINTR) continue;
        if (size <= 0) return Error::from_errno(errno, status_of(errno), "state file %s: write", path_.c_str());
        done += static_cast<size_t>(size);
    }
    if (::fdatasync(file_.get()) != 0)
        return Error::from_errno(errno, status_of(errno), "state file %s: sync", path_.c_str());
    count_ = count;
    return {};
}

void MembershipFile::discard() noexcept {
    if (file_) ::unlink(path_.c_str());
    close();
    former_.reset();
    living_.reset();
}

} // namespace muster
