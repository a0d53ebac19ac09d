// SPDX-License-Identifier: MIT
// muster check: tries what Muster stands on, and says which package brings what is missing.
#include "commands.hpp"

#include <muster/plugin.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <set>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

int trouble = 0;

void row(const char *state, const std::string &what, const std::string &detail) {
    printf("%-8s %-22s %s\n", state, what.c_str(), detail.c_str());
}

void good(const std::string &what, const std::string &detail) {
    row("ok", what, detail);
}
void missing(const std::string &what, const std::string &detail) {
    row("missing", what, detail);
}
void broken(const std::string &what, const std::string &detail) {
    row("BROKEN", what, detail);
    trouble = 1;
}

// A stream from this process to itself.
void try_transport(muster_context *context, const std::string &scheme, const std::string &address) {
    muster_error error{};
    muster_listener *listener = nullptr;
    muster_stream *near = nullptr, *far = nullptr;
    char where[4200];
    size_t bytes = 0;
    muster_status status = muster_transport_listen(context, address.data(), address.size(), nullptr, &listener, &error);
    if (status == MUSTER_OK) status = muster_listener_address(listener, where, sizeof where, &bytes);
    if (status == MUSTER_OK)
        status = muster_transport_dial(context, where, bytes, nullptr, INT64_C(5000000000), &near, &error);
    if (status == MUSTER_OK) status = muster_listener_accept(listener, INT64_C(5000000000), &far, &error);
    char answer[2] = {};
    size_t moved = 0;
    if (status == MUSTER_OK) status = muster_stream_write(near, "hi", 2, INT64_C(5000000000), &moved);
    if (status == MUSTER_OK) status = muster_stream_read_into(far, answer, 2, 0, INT64_C(5000000000), &moved);
    if (status == MUSTER_OK && memcmp(answer, "hi", 2) == 0)
        good(scheme, "carries bytes");
    else
        broken(scheme, error.message[0] != '\0' ? error.message : muster_status_text(status));
    muster_stream_release(near);
    muster_stream_release(far);
    muster_listener_release(listener);
}

void check_system() {
    rlimit files{};
    getrlimit(RLIMIT_NOFILE, &files);
    const std::string limit = std::to_string(files.rlim_cur);
    if (files.rlim_cur < 1024)
        broken("descriptors", limit + " may be open; raise the limit with ulimit -n");
    else
        good("descriptors", limit + " may be open");
    const int memory = memfd_create("muster-check", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (memory >= 0)
        good("shared memory", "memfd with seals");
    else
        broken("shared memory", std::string("memfd_create: ") + strerror(errno));
    if (memory >= 0) close(memory);
    const auto pidfd = static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0));
    if (pidfd >= 0)
        good("child processes", "watched by pidfd");
    else
        broken("child processes", std::string("pidfd_open: ") + strerror(errno));
    if (pidfd >= 0) close(pidfd);
}

void check_secret() {
    const char *file = getenv("MUSTER_SECRET_FILE");
    const char *text = getenv("MUSTER_SECRET");
    if (file != nullptr)
        good("secret", std::string("from the file ") + file);
    else if (text != nullptr)
        good("secret", "from MUSTER_SECRET");
    else
        good("secret", "a random one for each context: set MUSTER_SECRET_FILE for processes that start apart");
}

// Schemes that have a plug-in in one of the folders that the library searches.
std::set<std::string> installed_plugins() {
    std::set<std::string> schemes;
    std::vector<std::string> folders;
    if (const char *path = getenv("MUSTER_PLUGIN_PATH")) {
        const std::string text = path;
        for (size_t at = 0; at <= text.size();) {
            const size_t colon = std::min(text.find(':', at), text.size());
            folders.push_back(text.substr(at, colon - at));
            at = colon + 1;
        }
    }
    folders.push_back(MUSTER_PLUGIN_DIR);
    for (const std::string &folder : folders) {
        DIR *entries = opendir(folder.c_str());
        if (entries == nullptr) continue;
        while (const dirent *entry = readdir(entries)) {
            const std::string name = entry->d_name;
            if (name.starts_with("muster-") && name.ends_with(".so")) schemes.insert(name.substr(7, name.size() - 10));
        }
        closedir(entries);
    }
    return schemes;
}

void check_plugins(muster_context *context) {
    std::set<std::string> schemes = installed_plugins();
    const std::set<std::string> known = {"zmq", "mpi", "etcd"};
    schemes.insert(known.begin(), known.end());
    for (const std::string &scheme : schemes) {
        muster_error error{};
        const muster_status status = muster_plugin_find(context, scheme.data(), scheme.size(), &error);
        if (status == MUSTER_OK)
            good(scheme + "://", "plug-in loaded");
        else if (known.count(scheme) != 0)
            missing(scheme + "://", error.message);
        else
            broken(scheme + "://", error.message);
    }
}

} // namespace

int check_command(const Arguments &arguments) {
    if (!arguments.empty()) {
        fputs("usage: muster check\n", arguments[0] == "--help" ? stdout : stderr);
        return arguments[0] == "--help" ? 0 : 2;
    }
    good("library", std::string("version ") + muster_version(nullptr, nullptr, nullptr));
    check_system();
    muster_context *context = nullptr;
    muster_error error{};
    if (muster_context_create(nullptr, &context, &error) != MUSTER_OK) {
        broken("context", error.message);
        return 1;
    }
    check_secret();
    const std::string id = "muster-check-" + std::to_string(getpid());
    try_transport(context, "inproc://", "inproc://" + id);
    try_transport(context, "tcp://", "tcp://127.0.0.1:0");
    try_transport(context, "unix://", std::string("unix://@") + id);
    try_transport(context, "shm://", "shm://" + id);
    check_plugins(context);
    muster_context_close(context, INT64_C(1000000000));
    muster_context_release(context);
    return trouble;
}
