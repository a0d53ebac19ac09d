// SPDX-License-Identifier: MIT
// Address text.
#include "input.hpp"

#include "transport/address.hpp"

#include <string>

using namespace muster;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const std::string_view text(reinterpret_cast<const char *>(data), size);
    auto address = parse_address(text);
    if (!address) {
        FUZZ_CHECK(address.error().status == MUSTER_E_ADDRESS);
        FUZZ_CHECK(address.error().message_bytes != 0 &&
                   address.error().message_bytes < sizeof address.error().message);
        return 0;
    }
    FUZZ_CHECK(size <= 4096);
    FUZZ_CHECK(!address->scheme.empty() && address->scheme.size() <= 31);
    FUZZ_CHECK(address->port >= -1 && address->port <= 65535);
    FUZZ_CHECK((address->port == -1) == (address->scheme != "tcp"));
    FUZZ_CHECK(address->path.find('\0') == std::string::npos && address->host.find('\0') == std::string::npos);
    if (address->scheme == "unix") FUZZ_CHECK(address->path.size() >= 2 && address->path.size() <= 107);
    for (const auto &[key, value] : address->options) {
        FUZZ_CHECK(!key.empty() && value.size() <= size);
        FUZZ_CHECK(value.find('\0') == std::string::npos);
    }
    [[maybe_unused]] const bool known = static_cast<bool>(check_options(*address, {"auth", "seal", "upgrade"}));
    // The address for peers must be valid again.
    if (address->scheme == "tcp") {
        const std::string told = "tcp://" + format_host_port(address->host, address->port);
        auto again = parse_address(told);
        FUZZ_CHECK(again && again->host == address->host && again->port == address->port);
    }
    return 0;
}
