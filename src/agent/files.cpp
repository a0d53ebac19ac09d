// SPDX-License-Identifier: MIT
#include "agent/files.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sys/stat.h>

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
    } catch (const std::bad_alloc &) { // then it stays
    }
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
        name = "muster-agent";
    } else if (auto made = make_folders(root); !made) {
        return made.error();
    }
    root += '/' + name + "_XXXXXX";
    if (mkdtemp(root.data()) == nullptr)
        return Error::from_errno(errno, MUSTER_OK, "make a directory %s", root.c_str());
    // Workers may have another working directory.
    if (char *const whole = realpath(root.c_str(), nullptr)) {
        root = whole;
        free(whole);
    }
    return WorkerFiles(std::move(root), temporary);
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
