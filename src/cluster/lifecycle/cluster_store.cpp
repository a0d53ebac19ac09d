// SPDX-License-Identifier: MIT
#include "cluster/lifecycle/cluster_store.hpp"

#include "cluster/member/cluster.hpp"
#include "transport/address.hpp"

#include <unistd.h>

namespace muster {

// On the host and in the way in which the workers reach the master: by tcp, or within the host.
Result<std::string> ClusterStore::beside(const std::string &of_cluster) {
    auto address = parse_address(of_cluster);
    if (!address) return address.error();
    if (address->scheme == "tcp") return "tcp://" + format_host_port(address->host, 0);
    if (address->scheme == "unix" || address->scheme == "shm" || address->scheme == "inproc") {
        auto number = random_number();
        if (!number) return number.error();
        return "unix://@muster/" + std::to_string(getuid()) + "/cluster-" + std::to_string(*number);
    }
    return Error::make(MUSTER_E_UNSUPPORTED, "a store beside %.200s: name an address in muster_cluster_config::store",
                       of_cluster.c_str());
}

Result<std::string> ClusterStore::address(const std::string &of_cluster) {
    const std::lock_guard hold(lock_);
    if (is_closed_) return Error::make(MUSTER_E_CLOSED, "the cluster is closed");
    if (server_ == nullptr) {
        auto where = listen_.empty() ? beside(of_cluster) : Result<std::string>(listen_);
        if (!where) return where.error();
        Error why;
        const Status status =
            muster_store_server_open(wrap(&context_), where->data(), where->size(), nullptr, &server_, &why);
        if (status != MUSTER_OK) return why.status != MUSTER_OK ? why : Error::from_status(status);
    }
    std::string text(4200, '\0'); // longer than any address
    size_t bytes = 0;
    const Status status = muster_store_server_address(server_, text.data(), text.size(), &bytes);
    if (status != MUSTER_OK) return Error::from_status(status);
    text.resize(bytes);
    return text;
}

void ClusterStore::close() noexcept {
    muster_store_server *server = nullptr;
    {
        const std::lock_guard hold(lock_);
        is_closed_ = true;
        std::swap(server, server_);
    }
    if (server == nullptr) return;
    muster_store_server_close(server, -1); // open handles fail from now on, or the context is closed
    muster_store_server_release(server);
}

} // namespace muster
