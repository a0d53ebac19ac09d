// SPDX-License-Identifier: MIT
#include "agent/files.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace muster {

namespace {

Result<void> make_folder(const std::string &path) {
    if (mkdir(path.c_str(), 0777) == 0) return {};
    const int why = errno;
    struct stat about {};
    if (why == EEXIST && stat(path.c_str(), &about) == 0 && S_ISDIR(about.st_mode)) return {};
    return Error::from_errno(why, why == EEXIST || why == ENOTDIR ? MUSTER_E_EXISTS : MUSTER_OK,
                             "make the directory %s", path.c_str());
}

Result<void> make_folders(const std::string &path) {
    for (size_t at = path.find('/', 1); at != path.npos; at = path.find('/', at + 1))
        if (auto made = make_folder(path.substr(0, at)); !made) return made;
    return make_folder(path);
}

void remove_folder(const std::string &path) noexcept {
    try {
        std::error_code ignored;
        std::filesystem::remove_all(path, ignored);
    } catch (const std::bad_alloc &) { // then it is not removed
    }
}

constexpr char temporary_name[] = "muster-agent", unlocked_name[] = ".muster-agent";

Fd locked_folder(const std::string &path) noexcept {
    Fd folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (folder && flock(folder.get(), LOCK_EX | LOCK_NB) != 0) folder.reset();
    return folder;
}

// Folders of this user whose agents were killed.
void remove_what_others_left(const std::string &root) {
    const std::unique_ptr<DIR, int (*)(DIR *)> open(opendir(root.c_str()), closedir);
    DIR *const listing = open.get();
    if (listing == nullptr) return;
    const std::string begins = std::string(temporary_name) + '_';
    while (const dirent *const entry = readdir(listing)) {
        struct stat about {};
        if (strncmp(entry->d_name, begins.c_str(), begins.size()) != 0 ||
            fstatat(dirfd(listing), entry->d_name, &about, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(about.st_mode) ||
            about.st_uid != geteuid())
            continue;
        const std::string path = root + '/' + entry->d_name;
        if (const Fd lock = locked_folder(path)) remove_folder(path);
    }
}

// It gets the name under which others search for it when it is locked.
Result<Fd> lock_temporary(std::string &root) {
    Fd lock = locked_folder(root);
    std::string named = root;
    named.erase(named.rfind(unlocked_name), 1);
    if (!lock || rename(root.c_str(), named.c_str()) != 0) {
        const int why = errno;
        remove_folder(root);
        return Error::from_errno(why, MUSTER_OK, "lock the directory %s", root.c_str());
    }
    root = std::move(named);
    return lock;
}

} // namespace

Result<WorkerFiles> WorkerFiles::make(const AgentPlan &plan) {
    const bool temporary = plan.log_dir.empty();
    std::string root = plan.log_dir;
    std::string name = plan.run_id.substr(0, 64);
    std::replace(name.begin(), name.end(), '/', '_');
    if (temporary) {
        const char *const given = secure_getenv("TMPDIR");
        root = given && *given ? given : "/tmp";
        name = unlocked_name;
        remove_what_others_left(root);
    } else if (auto made = make_folders(root); !made) {
        return made.error();
    }
    root += '/' + name + "_XXXXXX";
    if (mkdtemp(root.data()) == nullptr)
        return Error::from_errno(errno, MUSTER_OK, "make a directory %s", root.c_str());
    Fd lock;
    if (temporary) {
        auto locked = lock_temporary(root);
        if (!locked) return locked.error();
        lock = std::move(*locked);
    }
    // Workers may have another working directory.
    if (char *const whole = realpath(root.c_str(), nullptr)) {
        root = whole;
        free(whole);
    }
    return WorkerFiles(std::move(root), temporary, std::move(lock));
}

WorkerFiles::~WorkerFiles() {
    if (temporary_ && !root_.empty()) remove_folder(root_);
}

Result<void> WorkerFiles::begin_attempt(uint64_t number, uint32_t worker_count) {
    if (temporary_) remove_folder(attempt()); // of the last one
    attempt_ = number;
    if (auto made = make_folder(attempt()); !made) return made;
    for (uint32_t local_rank = 0; local_rank < worker_count; local_rank++)
        if (auto made = make_folder(folder(local_rank)); !made) return made;
    return {};
}

std::string WorkerFiles::folder(uint32_t local_rank) const {
    return attempt() + '/' + std::to_string(local_rank);
}

Result<Fd> WorkerFiles::open_output(uint32_t local_rank, bool err) const {
    const std::string path = folder(local_rank) + (err ? "/stderr.log" : "/stdout.log");
    Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666));
    if (!file) return Error::from_errno(errno, MUSTER_OK, "open %s", path.c_str());
    return file;
}

} // namespace muster
