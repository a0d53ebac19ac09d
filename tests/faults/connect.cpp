// SPDX-License-Identifier: MIT
#include "connect.hpp"

#include <cstring>
#include <unistd.h>

namespace faults {

std::string address_of(const char *scheme) {
    static int count;
    const std::string name = "muster-fault-" + std::to_string(getpid()) + "-" + std::to_string(count++);
    if (strcmp(scheme, "tcp") == 0) return "tcp://127.0.0.1:0";
    if (strcmp(scheme, "unix") == 0) return "unix:///tmp/" + name + "/socket";
    return std::string(scheme) + "://" + name;
}

void connect(muster_context *context, muster_queue *queue, const std::string &address, Link &out) {
    connect(context, address, out, {context, queue, {}});
}

void connect(muster_context *context, const std::string &address, Link &out, const Dialler &dialler) {
    OK(muster_transport_listen, context, address.data(), address.size(), nullptr, out.listener.out(), &error);
    char real[512];
    size_t bytes = 0;
    OK(muster_listener_address, out.listener, real, sizeof real, &bytes);
    const auto options = address.find('?');
    if (options != std::string::npos && strchr(real, '?') == nullptr) {
        strcat(real, address.c_str() + options);
        bytes = strlen(real);
    }
    const bool is_elsewhere = !dialler.address.empty();
    if (is_elsewhere) bytes = dialler.address.copy(real, sizeof real);
    const size_t real_bytes = bytes;
    for (int attempt = 0;; attempt++) {
        // After the fault a member of a star has to claim its name again; dials wait for that if they are asked to.
        muster_transport_config retrying{};
        retrying.struct_size = sizeof retrying;
        retrying.retry_ns = attempt == 0 && !is_elsewhere ? 0 : patience / 2;
        OK(muster_transport_dial_begin, dialler.context, real, real_bytes, &retrying, patience / 2, dialler.queue, 77,
           &error);
        const muster_completion dialled = take(dialler.queue, MUSTER_DONE_DIAL, 77, "muster_transport_dial");
        if (dialled.status == MUSTER_OK) {
            out.dialled = Stream(dialled.object);
            const muster_status status = CALL(muster_listener_accept, out.listener, has_fired() ? second / 2 : patience,
                                              out.accepted.out(), &error);
            if (status == MUSTER_OK) return;
            if (!has_fired()) expect_fault("muster_listener_accept", status);
            // The accepting side has failed after the handshake; the dialling side must learn of it.
            char byte;
            const muster_status end = CALL(muster_stream_read, out.dialled, &byte, 1, patience, &bytes);
            expect_fault("muster_stream_read", end);
        } else {
            expect_fault("muster_transport_dial", dialled.status);
        }
        if (attempt != 0) wrong("a second dial fails too: %s: %s", muster_status_name(dialled.status), error.message);
    }
}

void exchange(muster_stream *one, muster_stream *other) {
    static char sent[400'000], got[sizeof sent];
    for (size_t i = 0; i < sizeof sent; i++) sent[i] = static_cast<char>(i * 7 + i / 251);
    for (const size_t size : {size_t{100}, sizeof sent})
        for (int way = 0; way < 2; way++) {
            muster_stream *const from = way ? other : one, *const to = way ? one : other;
            size_t bytes = 0;
            memset(got, 0, size);
            OR_END(muster_stream_write, from, sent, size, patience, &bytes);
            EXPECT(bytes == size);
            OR_END(muster_stream_read_into, to, got, size, 0, patience, &bytes);
            EXPECT(bytes == size && memcmp(sent, got, size) == 0);
        }
}

} // namespace faults
