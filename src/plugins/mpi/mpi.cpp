// SPDX-License-Identifier: MIT
// mpi://rank/service - a fabric of the ranks of one MPI job.
//
// MPI moves the bytes. Control sockets add what MPI lacks: a descriptor to sleep on, and the notice of a death. No call
// here blocks inside MPI.
//
//   node.hpp            this process as a rank: initialisation, a communicator of our own, the RankInfos
//   exit.hpp            finalising an MPI that the plug-in has initialised
//   endpoint.hpp        one per context: links, transfers, polling and sleep
//   control_socket.hpp  the control connection of two endpoints
//
// This file has the C functions; no exception leaves them.
#include "endpoint.hpp"
#include "error.hpp"

#include <algorithm>
#include <cstring>
#include <new>

namespace {

using mpi::Endpoint;
using mpi::Node;
using mpi::refuse;

Endpoint &of(void *self) {
    return *static_cast<Endpoint *>(self);
}

template <class F>
muster_status guarded(muster_error *error, const F &body) {
    try {
        return body();
    } catch (const std::exception &) {
        return refuse(error, MUSTER_E_NOMEM, "out of memory");
    }
}

muster_status start(void *self, muster_endpoint *endpoint, muster_error *error) {
    return guarded(error, [&] { return of(self).start(endpoint, error); });
}

void stop(void *self) {
    guarded(nullptr, [&] {
        of(self).stop();
        return MUSTER_OK;
    });
    delete static_cast<Endpoint *>(self);
}

muster_status publish(void *self, const char *authority, uint64_t authority_bytes, uint64_t, char *out_authority,
                      uint64_t *out_authority_bytes, muster_error *error) {
    return guarded(error, [&] {
        std::string text;
        const muster_status status = of(self).publish({authority, authority_bytes}, text, error);
        if (status != MUSTER_OK) return status;
        std::copy(text.begin(), text.end(), out_authority);
        *out_authority_bytes = text.size();
        return status;
    });
}

void withdraw(void *self, const char *, uint64_t) {
    of(self).withdraw();
}

muster_status resolve(void *self, const char *authority, uint64_t authority_bytes, uint64_t request, uint64_t *out_peer,
                      muster_error *error) {
    return guarded(error, [&] { return of(self).resolve({authority, authority_bytes}, request, *out_peer, error); });
}

muster_status send(void *self, uint64_t peer, const muster_span *spans, uint32_t span_count) {
    return guarded(nullptr, [&] { return of(self).send(peer, spans, span_count); });
}

muster_status send_buffer(void *self, uint64_t peer, void *segment, uint64_t offset_bytes, uint64_t size_bytes) {
    return guarded(nullptr, [&] { return of(self).send_buffer(peer, segment, offset_bytes, size_bytes); });
}

muster_status poll(void *self) {
    return of(self).poll_once();
}

void forget(void *self, uint64_t peer) {
    of(self).forget(peer);
}

const muster_fabric_ops table = {
    .struct_size = sizeof table,
    .flags = MUSTER_PLUGIN_UPGRADES,
    .message_bytes = mpi::message_bytes,
    .credit_bytes = mpi::credit_bytes,
    .start = start,
    .stop = stop,
    .publish = publish,
    .withdraw = withdraw,
    .resolve = resolve,
    .send = send,
    .authenticated = nullptr,
    .segment_shared = nullptr,
    .forget = forget,
    .headroom_bytes = mpi::head_bytes,
    .send_buffer = send_buffer,
    .broker = nullptr,
    .send_multicast = nullptr,
    .poll = poll,
};

} // namespace

extern "C" MUSTER_API muster_status muster_plugin_v1(const muster_host *host, muster_error *error);

extern "C" muster_status muster_plugin_v1(const muster_host *host, muster_error *error) {
    if (host->struct_size < sizeof *host)
        return refuse(error, MUSTER_E_ABI, "this library's host table has %u bytes, muster-mpi.so needs %zu",
                      host->struct_size, sizeof *host);
    return guarded(error, [&]() -> muster_status {
        Node *node = nullptr;
        if (const muster_status status = Node::open(host, node, error); status != MUSTER_OK) return status;
        auto *endpoint = new Endpoint(host, *node);
        muster_fabric_ops ops = table;
        if (node->needs_polls()) ops.flags |= MUSTER_PLUGIN_NEEDS_POLLS;
        const muster_status status = host->add_fabric(host, "mpi", 3, &ops, endpoint, error);
        if (status != MUSTER_OK) delete endpoint; // stop() is not called then
        return status;
    });
}
