// SPDX-License-Identifier: MIT
#include "cluster/worker/fetch_ticket.hpp"

#include "cluster/member/cluster.hpp"

#include <algorithm>
#include <cerrno>

namespace muster {

namespace {

constexpr int64_t fetch_ns = 60'000'000'000, pause_ns = 20'000'000;

struct ReleaseStream {
    void operator()(muster_stream *stream) const noexcept { muster_stream_release(stream); }
};
struct ReleaseContext {
    void operator()(muster_context *context) const noexcept { muster_context_release(context); }
};

// Reads everything that the master sends, up to the end of the stream.
Result<std::string> read_all(muster_stream *stream, Deadline &deadline) {
    std::string all;
    for (;;) {
        char piece[4096];
        size_t moved = 0;
        const int64_t left = deadline.left();
        if (left <= 0) return Error::make(MUSTER_TIMEOUT, "the master did not answer in time");
        const Status status = muster_stream_read(stream, piece, sizeof piece, left, &moved);
        all.append(piece, moved);
        if (status == MUSTER_E_END) return all;
        if (status < 0) return Error::make(status, "the connection broke before the ticket was whole");
        if (all.size() > ticket_max_bytes) return Error::make(MUSTER_E_PROTOCOL, "an answer that is too long");
    }
}

Result<Ticket> read_answer(std::string_view answer) {
    if (answer.empty()) return Error::make(MUSTER_E_PEER, "the master hung up");
    if (answer[0] == '\0') return Ticket::parse(answer.substr(1, answer.find('\n') - 1));
    return decode_refusal(answer);
}

} // namespace

// Of many workers that dial at once the master refuses some for the moment: these dial again.
Result<Ticket> fetch_ticket(const Ticket &with_key) {
    Deadline deadline(fetch_ns);
    muster_context_config config{};
    config.struct_size = sizeof config;
    config.secret = with_key.key.data();
    config.secret_bytes = with_key.key.size();
    Error why;
    muster_context *made = nullptr;
    if (muster_context_create(&config, &made, &why) != MUSTER_OK) return why;
    const std::unique_ptr<muster_context, ReleaseContext> context(made);
    const ClusterHello hello{ClusterHello::ticket, with_key.cluster, with_key.member, MUSTER_CLUSTER_MASTER, 0, {}};
    const std::string encoded = encode(hello);
    std::string address = with_key.master;
    if (address.find("seal=yes") == std::string::npos)
        address += (address.find('?') == std::string::npos ? "?" : "&") + std::string("seal=yes");
    muster_transport_config how{};
    how.struct_size = sizeof how;
    how.hello = encoded.data();
    how.hello_bytes = encoded.size();
    for (;;) {
        muster_stream *stream = nullptr;
        const int64_t left = std::max<int64_t>(deadline.left(), 1);
        const Status status = muster_transport_dial(made, address.data(), address.size(), &how, left, &stream, &why);
        const std::unique_ptr<muster_stream, ReleaseStream> held(stream);
        if (status == MUSTER_OK) {
            auto answer = read_all(stream, deadline);
            if (!answer)
                return Error::make(answer.error().status, "fetch the ticket of worker %u from %s: %s", with_key.member,
                                   with_key.master.c_str(), answer.error().message);
            auto ticket = read_answer(*answer);
            if (!ticket)
                return Error::make(ticket.error().status, "fetch the ticket of worker %u from %s: %s", with_key.member,
                                   with_key.master.c_str(), ticket.error().message);
            return ticket;
        }
        const bool again =
            (status == MUSTER_E_LIMIT && why.os_errno == 0) || (status == MUSTER_E_PEER && why.os_errno == ECONNRESET);
        if (!again || deadline.left() <= pause_ns)
            return Error::make(why.status, "fetch the ticket of worker %u: %s", with_key.member, why.message);
        (void)unwrap(made)->pause(pause_ns);
    }
}

} // namespace muster
