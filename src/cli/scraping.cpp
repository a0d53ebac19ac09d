// SPDX-License-Identifier: MIT
#include "scraping.hpp"

#include <arpa/inet.h>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <netinet/in.h>
#include <new>
#include <string_view>
#include <sys/stat.h>
#include <utility>

#ifdef MUSTER_HAS_MICROHTTPD
#include <dlfcn.h>
#include <microhttpd.h>
#endif

namespace serving {

namespace {

constexpr size_t longest_token = 4096;

// The first line of a file that other users cannot read. Returns an error text, empty: none.
std::string read_token(const std::string &file, std::string &token) {
    FILE *const from = fopen(file.c_str(), "re");
    if (from == nullptr) return file + ": " + strerror(errno);
    struct stat about {};
    char text[longest_token + 2];
    const bool is_open = fstat(fileno(from), &about) != 0 || (about.st_mode & 077) != 0;
    const size_t got = fread(text, 1, sizeof text, from);
    fclose(from);
    if (is_open) return file + " can be read by other users: chmod 600 " + file;
    token.assign(text, got);
    token.erase(std::min(token.find_first_of("\r\n"), token.size()));
    if (token.empty()) return file + " is empty: the token is its first line";
    if (token.size() > longest_token) return file + ": a token has 4096 bytes at most";
    return {};
}

// host:port, of the loopback interface.
std::optional<sockaddr_storage> loopback_address(const std::string &text) {
    const size_t colon = text.rfind(':');
    if (colon == text.npos) return {};
    const auto port = cli::number_of(text.substr(colon + 1), 0, 65535);
    std::string host = text.substr(0, colon);
    if (!port) return {};
    sockaddr_storage address{};
    auto &v4 = reinterpret_cast<sockaddr_in &>(address);
    auto &v6 = reinterpret_cast<sockaddr_in6 &>(address);
    if (host == "localhost") host = "127.0.0.1";
    if (host == "[::1]") {
        v6.sin6_family = AF_INET6;
        v6.sin6_addr = in6addr_loopback;
        v6.sin6_port = htons(static_cast<uint16_t>(*port));
        return address;
    }
    v4.sin_family = AF_INET;
    v4.sin_port = htons(static_cast<uint16_t>(*port));
    if (inet_pton(AF_INET, host.c_str(), &v4.sin_addr) != 1 || ntohl(v4.sin_addr.s_addr) >> 24 != 127) return {};
    return address;
}

} // namespace

std::vector<cli::Option> Scraping::options(std::vector<cli::Option> known) {
    known.push_back(cli::text("metrics-listen", listen_));
    known.push_back(cli::text("metrics-token-file", token_file_));
    return known;
}

std::string Scraping::check() {
    if (listen_.empty()) return token_file_.empty() ? "" : "--metrics-token-file: where? --metrics-listen is missing";
#ifndef MUSTER_HAS_MICROHTTPD
    return "--metrics-listen: this program was built without libmicrohttpd; python3 -m muster.exporter needs none";
#endif
    if (!loopback_address(listen_))
        return "--metrics-listen " + listen_ +
               ": it is an address of the loopback interface, since nothing is encrypted, as in 127.0.0.1:9464";
    if (token_file_.empty()) return "--metrics-listen: which token do requests have? --metrics-token-file is missing";
    return read_token(token_file_, token_);
}

#ifdef MUSTER_HAS_MICROHTTPD

namespace {

// Loaded when it is needed: the command runs where the library is not installed.
struct Microhttpd {
    decltype(&MHD_start_daemon) start = nullptr;
    decltype(&MHD_stop_daemon) stop = nullptr;
    decltype(&MHD_get_daemon_info) info = nullptr;
    decltype(&MHD_lookup_connection_value) header = nullptr;
    decltype(&MHD_create_response_from_buffer) response = nullptr;
    decltype(&MHD_add_response_header) add_header = nullptr;
    decltype(&MHD_queue_response) queue = nullptr;
    decltype(&MHD_destroy_response) destroy = nullptr;

    // An error text, empty: none.
    std::string load() {
        void *const library = dlopen("libmicrohttpd.so.12", RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr)
            return std::string("--metrics-listen needs libmicrohttpd (Debian: libmicrohttpd12): ") + dlerror();
        const auto find = [library](auto &function, const char *name) {
            function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
            return function != nullptr;
        };
        const bool is_whole = find(start, "MHD_start_daemon") && find(stop, "MHD_stop_daemon") &&
                              find(info, "MHD_get_daemon_info") && find(header, "MHD_lookup_connection_value") &&
                              find(response, "MHD_create_response_from_buffer") &&
                              find(add_header, "MHD_add_response_header") && find(queue, "MHD_queue_response") &&
                              find(destroy, "MHD_destroy_response");
        return is_whole ? std::string() : "--metrics-listen: libmicrohttpd.so.12 lacks a function";
    }
};
Microhttpd http;

} // namespace

struct ScrapingAnswers {
    // The time does not depend on the place of the first difference.
    static bool is_token(const Scraping &own, const char *header) noexcept {
        const std::string_view given = header != nullptr ? header : "", prefix = "Bearer ";
        if (given.substr(0, prefix.size()) != prefix || given.size() != prefix.size() + own.token_.size()) return false;
        unsigned difference = 0;
        for (size_t i = 0; i < own.token_.size(); i++)
            difference |=
                static_cast<unsigned char>(given[prefix.size() + i]) ^ static_cast<unsigned char>(own.token_[i]);
        return difference == 0;
    }

    static MHD_Result send(MHD_Connection *to, unsigned status, const std::string &text) {
        MHD_Response *const response =
            http.response(text.size(), const_cast<char *>(text.data()), MHD_RESPMEM_MUST_COPY);
        if (response == nullptr) return MHD_NO;
        http.add_header(response, "Content-Type", "text/plain; version=0.0.4; charset=utf-8");
        if (status == MHD_HTTP_UNAUTHORIZED) http.add_header(response, "WWW-Authenticate", "Bearer");
        const MHD_Result queued = http.queue(to, status, response);
        http.destroy(response);
        return queued;
    }

    static MHD_Result answer(void *self, MHD_Connection *to, const char *url, const char *method, const char *,
                             const char *, size_t *upload_bytes, void **) noexcept {
        *upload_bytes = 0; // a body is not read
        try {
            return answer(*static_cast<const Scraping *>(self), to, url, method);
        } catch (const std::bad_alloc &) {
            return MHD_NO; // the connection is closed
        }
    }

    static MHD_Result answer(const Scraping &own, MHD_Connection *to, const char *url, const char *method) {
        if (!is_token(own, http.header(to, MHD_HEADER_KIND, "Authorization")))
            return send(to, MHD_HTTP_UNAUTHORIZED, "the token is missing or another one\n");
        if (strcmp(url, "/metrics") != 0) return send(to, MHD_HTTP_NOT_FOUND, "metrics are at /metrics\n");
        if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
            return send(to, MHD_HTTP_METHOD_NOT_ALLOWED, "GET it\n");
        std::string text;
        size_t bytes = 0;
        muster_status status = muster_metrics_write(own.context_, nullptr, 0, &bytes);
        do { // it may have grown meanwhile
            if (status == MUSTER_OK || status == MUSTER_E_LIMIT) text.resize(bytes + 1024);
            status = muster_metrics_write(own.context_, text.data(), text.size(), &bytes);
        } while (status == MUSTER_E_LIMIT);
        if (status != MUSTER_OK)
            return send(to, MHD_HTTP_SERVICE_UNAVAILABLE, std::string(muster_status_text(status)) + "\n");
        text.resize(bytes);
        return send(to, MHD_HTTP_OK, text);
    }
};

std::string Scraping::begin(const char *program, muster_context *context) {
    if (listen_.empty()) return {};
    constexpr unsigned connections = 16, patience_s = 10;
    constexpr size_t memory = 32 * 1024; // of a connection
    sockaddr_storage address = *loopback_address(listen_);
    const unsigned flags =
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_EPOLL | (address.ss_family == AF_INET6 ? unsigned{MHD_USE_IPv6} : 0U);
    if (std::string wrong = http.load(); !wrong.empty()) return wrong;
    context_ = context;
    errno = 0;
    daemon_ = http.start(flags, 0, nullptr, nullptr, &ScrapingAnswers::answer, this, MHD_OPTION_SOCK_ADDR, &address,
                         MHD_OPTION_CONNECTION_LIMIT, connections, MHD_OPTION_CONNECTION_TIMEOUT, patience_s,
                         MHD_OPTION_CONNECTION_MEMORY_LIMIT, memory, MHD_OPTION_END);
    if (daemon_ == nullptr) return "--metrics-listen " + listen_ + ": " + strerror(errno != 0 ? errno : EADDRNOTAVAIL);
    const MHD_DaemonInfo *const about = http.info(daemon_, MHD_DAEMON_INFO_BIND_PORT);
    fprintf(stderr, "%s: metrics are at http://%s:%u/metrics\n", program, listen_.substr(0, listen_.rfind(':')).c_str(),
            about != nullptr ? unsigned{about->port} : 0U);
    return {};
}

void Scraping::end() {
    if (daemon_ != nullptr) http.stop(std::exchange(daemon_, nullptr));
}

#else

std::string Scraping::begin(const char *, muster_context *) {
    return {};
}

void Scraping::end() {}

#endif

} // namespace serving
