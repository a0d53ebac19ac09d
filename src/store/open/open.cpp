// SPDX-License-Identifier: MIT
// Which kinds of stores there are.
#include "base/text.hpp"
#include "store/backend/store.hpp"

namespace muster {

namespace {

struct StoreKind {
    std::string_view scheme;
    Result<Ref<StoreBackend>> (*open)(const StoreOpening &opening);
};
constexpr StoreKind kinds[] = {
    {"memory", open_memory_store},
    {"file", open_file_store},
    {"tcp", open_remote_store},
    {"unix", open_remote_store},
};

// A password does not belong in a URL; if there is one it must not appear in a log.
std::string shown(std::string_view url) {
    std::string text(url.substr(0, 200));
    const size_t begin = text.find("//");
    const size_t at = text.find('@');
    if (begin != std::string::npos && at != std::string::npos && at < text.find('/', begin + 2))
        text.replace(begin + 2, at - begin - 2, "...");
    make_printable(text.data(), text.size());
    return text;
}

} // namespace

Result<Ref<Store>> Store::open(Context &context, std::string_view url, const muster_store_config &config,
                               Deadline &deadline) {
    const StoreOpening opening{context, url, shown(url), config, deadline};
    const size_t colon = url.find(':');
    if (colon == std::string_view::npos || colon == 0)
        return Error::make(MUSTER_E_ADDRESS, "store \"%s\": it begins with no scheme, as memory: does",
                           opening.shown.c_str());
    auto open = open_served_store;
    for (const StoreKind &kind : kinds)
        if (url.substr(0, colon) == kind.scheme) open = kind.open;
    auto backend = open(opening);
    if (!backend) return backend.error();
    return make_ref<Store>(std::move(*backend), std::string());
}

bool builtin_store(std::string_view scheme) noexcept {
    for (const StoreKind &kind : kinds)
        if (scheme == kind.scheme) return true;
    return false;
}

} // namespace muster
