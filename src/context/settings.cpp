// SPDX-License-Identifier: MIT
#include "context/settings.hpp"

#include "base/config.hpp"
#include "base/fd.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sys/random.h>
#include <sys/stat.h>

namespace muster {

namespace {

constexpr size_t min_secret = 16, max_secret = 1024, made_secret = 32;
constexpr int64_t max_ns = INT64_MAX / 8; // 36 years; sums with it do not overflow
constexpr uint32_t all_flags =
    MUSTER_CONTEXT_EXTERNAL | MUSTER_CONTEXT_NO_SEAL | MUSTER_CONTEXT_SEAL_ALWAYS | MUSTER_CONTEXT_NO_UPGRADE;

using Secret = std::vector<unsigned char>;

Result<void> check_length(size_t bytes, const char *where) noexcept {
    if (bytes >= min_secret && bytes <= max_secret) return {};
    return Error::make(MUSTER_E_ARG, "the secret in %s has %s%zu bytes, not %zu to %zu", where,
                       bytes > max_secret ? "at least " : "", bytes, min_secret, max_secret);
}

// Reads to the end, or to one byte more than a secret may have.
Result<void> read_secret(int fd, const char *where, Secret &secret) {
    secret.resize(max_secret + 1); // once, so that growth leaves no copy behind
    size_t used = 0;
    while (used < secret.size()) {
        const ssize_t n = read(fd, secret.data() + used, secret.size() - used);
        if (n == 0) break;
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return Error::from_errno(errno, MUSTER_E_SYSTEM, "read the secret from %s", where);
        used += static_cast<size_t>(n);
    }
    explicit_bzero(secret.data() + used, secret.size() - used);
    secret.resize(used);
    return {};
}

// A text file ends with a newline that is not part of the secret; random bytes are kept unchanged.
void drop_final_newline(Secret &secret) noexcept {
    if (secret.empty() || secret.back() != '\n') return;
    for (size_t i = 0; i + 1 < secret.size(); i++)
        if (secret[i] < 0x20 || secret[i] > 0x7e) return;
    secret.pop_back();
}

Result<void> read_secret_file(const char *variable, const char *path, Secret &secret) {
    const Fd fd(open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    struct stat about {};
    if (!fd || fstat(fd.get(), &about) != 0)
        return Error::from_errno(errno, MUSTER_E_SYSTEM, "open %s %s", variable, path);
    if (!S_ISREG(about.st_mode)) return Error::make(MUSTER_E_SYSTEM, "%s %s is not a regular file", variable, path);
    if (about.st_mode & 077)
        return Error::make(MUSTER_E_PERMISSION, "%s %s may be used by others (mode %03o, wanted 600)", variable, path,
                           about.st_mode & 0777);
    if (Result<void> done = read_secret(fd.get(), path, secret); !done) return done;
    drop_final_newline(secret);
    return check_length(secret.size(), path);
}

// The secret that the variables name or hold; an empty `secret`: neither is set. secure_: the caller of a set-uid
// program must not choose it.
Result<void> secret_of_environment(const char *file_variable, const char *variable, Secret &secret) {
    if (const char *path = secure_getenv(file_variable); path && *path)
        return read_secret_file(file_variable, path, secret);
    if (const char *text = secure_getenv(variable); text && *text) {
        const size_t bytes = strlen(text);
        if (Result<void> right = check_length(bytes, variable); !right) return right;
        secret.assign(text, text + bytes);
    }
    return {};
}

Result<void> find_secret(const muster_context_config &config, Secret &secret) {
    const auto *given = static_cast<const unsigned char *>(config.secret);
    if (given != nullptr) {
        if (Result<void> right = check_length(config.secret_bytes, "the configuration"); !right) return right;
        secret.assign(given, given + config.secret_bytes);
        return {};
    }
    if (config.secret_bytes != 0) return Error::make(MUSTER_E_ARG, "secret_bytes is set, but there is no secret");
    if (config.secret_fd_plus_one < 0)
        return Error::make(MUSTER_E_ARG, "secret_fd_plus_one is %d", config.secret_fd_plus_one);
    if (config.secret_fd_plus_one > 0) {
        if (Result<void> done = read_secret(config.secret_fd_plus_one - 1, "secret_fd", secret); !done) return done;
        return check_length(secret.size(), "secret_fd");
    }
    if (Result<void> found = secret_of_environment("MUSTER_SECRET_FILE", "MUSTER_SECRET", secret); !found) return found;
    if (!secret.empty()) return {};
    secret.resize(made_secret);
    if (getrandom(secret.data(), secret.size(), 0) != static_cast<ssize_t>(secret.size()))
        return Error::from_errno(errno, MUSTER_E_SYSTEM, "make a random secret");
    return {};
}

Result<void> check_values(const muster_context_config &config) noexcept {
    if (config.flags & ~all_flags)
        return Error::make(MUSTER_E_ARG, "flags has unknown bits: 0x%x", config.flags & ~all_flags);
    if ((config.flags & MUSTER_CONTEXT_NO_SEAL) && (config.flags & MUSTER_CONTEXT_SEAL_ALWAYS))
        return Error::make(MUSTER_E_ARG, "flags ask for NO_SEAL and SEAL_ALWAYS at once");
    const struct {
        const char *name;
        int64_t ns;
    } times[] = {{"handshake_timeout_ns", config.handshake_timeout_ns},
                 {"heartbeat_ns", config.heartbeat_ns},
                 {"silent_ns", config.silent_ns}};
    for (const auto &time : times)
        if (time.ns < 0) return Error::make(MUSTER_E_ARG, "%s is %lld", time.name, static_cast<long long>(time.ns));
    const uint64_t window = config.window_bytes;
    if (window != 0 && (window < 4096 || window > (1ull << 30) || (window & (window - 1)) != 0))
        return Error::make(MUSTER_E_ARG, "window_bytes is %llu, not a power of two from 4096 to 1073741824",
                           static_cast<unsigned long long>(window));
    return {};
}

} // namespace

Result<void> read_broker_secret(const void *given, uint64_t bytes, std::vector<unsigned char> &secret) {
    if (given == nullptr && bytes != 0)
        return Error::make(MUSTER_E_ARG, "broker_secret_bytes is set, but there is no broker_secret");
    if (given == nullptr) return secret_of_environment("MUSTER_BROKER_SECRET_FILE", "MUSTER_BROKER_SECRET", secret);
    if (Result<void> right = check_length(bytes, "broker_secret"); !right) return right;
    const auto *text = static_cast<const unsigned char *>(given);
    secret.assign(text, text + bytes);
    return {};
}

WipeAtEnd::~WipeAtEnd() {
    if (!secret_.empty()) explicit_bzero(secret_.data(), secret_.size());
}

Result<void> read_settings(const muster_context_config *given, ContextSettings &settings) {
    muster_context_config config;
    Result<void> done = read_config(given, config, "muster_context_config");
    if (!done) return done;
    const Fd secret_fd(config.secret_fd_plus_one > 0 ? config.secret_fd_plus_one - 1 : -1);
    if (done = check_values(config); !done) return done;

    settings.flags = config.flags;
    if (config.max_unauthenticated) settings.max_unauthenticated = config.max_unauthenticated;
    const auto limited = [](int64_t ns) { return std::min(ns, max_ns); };
    if (config.handshake_timeout_ns) settings.handshake_timeout_ns = limited(config.handshake_timeout_ns);
    if (config.heartbeat_ns) settings.heartbeat_ns = limited(config.heartbeat_ns);
    if (config.silent_ns) settings.silent_ns = limited(config.silent_ns);
    if (config.dead_ns) settings.dead_ns = limited(config.dead_ns);
    if (config.window_bytes) settings.window_bytes = config.window_bytes;
    return find_secret(config, settings.secret);
}

} // namespace muster
