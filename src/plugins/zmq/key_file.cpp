// SPDX-License-Identifier: MIT
#include "key_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

namespace star {

namespace {

constexpr size_t max_file_bytes = 1 << 24; // a quarter of a million members
constexpr size_t key_text = 40, key_bytes = 32;

// The text of the file, overwritten after use.
class Secret {
  public:
    Secret() = default;
    ~Secret() { explicit_bzero(text_.data(), text_.size()); }
    Secret(const Secret &) = delete;
    Secret &operator=(const Secret &) = delete;
    muster_status read(const std::string &path, std::string &why);
    std::string_view text() const noexcept { return text_; }

  private:
    muster_status fill(int fd, const std::string &path, std::string &why);
    std::string text_;
};

muster_status Secret::read(const std::string &path, std::string &why) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) {
        why = "open " + path + ": " + strerror(errno);
        return errno == ENOENT ? MUSTER_E_NOT_FOUND : errno == EACCES ? MUSTER_E_PERMISSION : MUSTER_E_SYSTEM;
    }
    const muster_status status = fill(fd, path, why);
    close(fd);
    return status;
}

muster_status Secret::fill(int fd, const std::string &path, std::string &why) {
    struct stat about {};
    if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode))
        return why = path + " is not a regular file", MUSTER_E_SYSTEM;
    if ((about.st_mode & 077) != 0) return why = path + " may be used by others, wanted: mode 600", MUSTER_E_PERMISSION;
    const auto size = static_cast<size_t>(about.st_size);
    if (size > max_file_bytes) return why = path + " is too long for keys", MUSTER_E_LIMIT;
    text_.resize(size); // once: growth would leave copies in memory
    size_t used = 0;
    while (used < size) {
        const ssize_t got = ::read(fd, text_.data() + used, size - used);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return why = "read " + path + ": " + strerror(errno), MUSTER_E_SYSTEM;
        if (got == 0) break;
        used += static_cast<size_t>(got);
    }
    text_.resize(used);
    return MUSTER_OK;
}

// libzmq does not check the characters.
bool decode(const std::string &text, std::string &out) {
    constexpr std::string_view known =
        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
    if (text.size() != key_text || text.find_first_not_of(known) != std::string::npos) return false;
    uint8_t bytes[key_bytes];
    if (zmq_z85_decode(bytes, text.c_str()) == nullptr) return false;
    out.assign(reinterpret_cast<char *>(bytes), sizeof bytes);
    explicit_bzero(bytes, sizeof bytes);
    return true;
}

// Computes the public key of a secret key. Returns false if `claimed` is another one.
bool complete(const std::string &secret, std::string &claimed) {
    char found[key_text + 1];
    if (zmq_curve_public(found, secret.c_str()) != 0 || (!claimed.empty() && claimed != found)) return false;
    claimed = found;
    return true;
}

struct Lines { // a value
    std::string broker_public, broker_secret, member_secret;
    std::vector<std::string> member_public;
};

bool take(std::string_view line, Lines &out) {
    const size_t end = line.find_first_of(" \t");
    if (end == std::string_view::npos) return false;
    const std::string_view word = line.substr(0, end);
    line.remove_prefix(std::min(line.size(), line.find_first_not_of(" \t", end)));
    std::string key(line), bytes;
    if (!decode(key, bytes)) return false;
    explicit_bzero(bytes.data(), bytes.size());
    if (word == "member-public") return out.member_public.push_back(std::move(key)), true;
    std::string *const place = word == "broker-public"   ? &out.broker_public
                               : word == "broker-secret" ? &out.broker_secret
                               : word == "member-secret" ? &out.member_secret
                                                         : nullptr;
    if (place == nullptr || !place->empty()) return false;
    *place = std::move(key);
    return true;
}

} // namespace

std::string key_file(const std::string &given) {
    const char *const named = given.empty() ? secure_getenv("MUSTER_CURVE_FILE") : nullptr;
    return named != nullptr ? named : given;
}

muster_status read_key_file(const std::string &path, KeyUser user, GivenKeys &out, std::string &why) {
    Secret file;
    if (const muster_status status = file.read(path, why); status != MUSTER_OK) return status;
    const auto wrong = [&](const std::string &what) {
        why = path + ": " + what;
        return MUSTER_E_AUTH;
    };
    Lines lines;
    int number = 0;
    for (std::string_view text = file.text(); !text.empty();) {
        std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(text.size(), line.size() + 1));
        number++;
        while (!line.empty() && (line.back() == ' ' || line.back() == '\t' || line.back() == '\r'))
            line.remove_suffix(1);
        if (!line.empty() && line[0] != '#' && !take(line, lines))
            return wrong("line " + std::to_string(number) + " is no word and key, or a duplicate");
    }
    const bool broker = user != KeyUser::member, member = user != KeyUser::broker;
    if (broker && lines.broker_secret.empty()) return wrong("a broker needs broker-secret");
    if (broker && lines.member_public.empty()) return wrong("a broker needs member-public of each member");
    if (!lines.broker_secret.empty() && !complete(lines.broker_secret, lines.broker_public))
        return wrong("broker-public and broker-secret are no pair");
    if (member && lines.broker_public.empty()) return wrong("a member needs broker-public");
    if (member && lines.member_secret.empty()) return wrong("a member needs member-secret");
    std::string own;
    if (member && !complete(lines.member_secret, own)) return wrong("member-secret is no key");
    if (member && !lines.member_public.empty() &&
        std::find(lines.member_public.begin(), lines.member_public.end(), own) == lines.member_public.end())
        return wrong("member-public and member-secret are no pair");
    out.curve = {lines.broker_public, broker ? lines.broker_secret : "", own, member ? lines.member_secret : "", false};
    for (const std::string &key : lines.member_public) decode(key, out.members.emplace_back());
    return MUSTER_OK;
}

} // namespace star
