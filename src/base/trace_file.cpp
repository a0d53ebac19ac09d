// SPDX-License-Identifier: MIT
// A trace as Perfetto reads it: packets of protocol buffers. The numbers of the fields are those of perfetto's
// trace_packet.proto, track_descriptor.proto and track_event.proto.
#include "base/hash.hpp"
#include "base/trace_rings.hpp"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace muster {

namespace {

class Message {
  public:
    Message &number(uint32_t field, uint64_t value) {
        varint(uint64_t{field} << 3);
        varint(value);
        return *this;
    }
    Message &fixed(uint32_t field, uint64_t value) {
        varint(uint64_t{field} << 3 | 1);
        for (int i = 0; i < 8; i++) bytes_.push_back(static_cast<char>(value >> 8 * i));
        return *this;
    }
    Message &bytes(uint32_t field, std::string_view text) {
        varint(uint64_t{field} << 3 | 2);
        varint(text.size());
        bytes_.append(text);
        return *this;
    }
    Message &message(uint32_t field, const Message &other) { return bytes(field, other.bytes_); }
    const std::string &text() const noexcept { return bytes_; }

  private:
    void varint(uint64_t value) {
        for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<char>(value | 0x80));
        bytes_.push_back(static_cast<char>(value));
    }
    std::string bytes_;
};

enum : uint32_t { // TracePacket
    packet_timestamp = 8,
    packet_sequence = 10,
    packet_event = 11,
    packet_flags = 13,
    packet_descriptor = 60,
    state_cleared = 1,
    // TrackDescriptor
    track_uuid = 1,
    track_process = 3,
    track_thread = 4,
    track_parent = 5,
    // ProcessDescriptor, ThreadDescriptor
    process_pid = 1,
    process_name = 6,
    thread_pid = 1,
    thread_tid = 2,
    thread_name = 5,
    // TrackEvent, DebugAnnotation
    event_annotation = 4,
    event_type = 9,
    event_track = 11,
    event_category = 22,
    event_name = 23,
    event_flow = 47,
    annotation_text = 6,
    annotation_name = 10
};

void add_packet(std::string &to, const Message &packet) {
    to += Message().message(1, packet).text();
}

// `type`: as Kind, without `span`.
void add_event(std::string &to, const TraceEvent &one, uint64_t type, int64_t at_ns, uint64_t track,
               uint32_t sequence) {
    Message event;
    event.number(event_type, type).number(event_track, track);
    if (type != static_cast<uint64_t>(Trace::Kind::end)) {
        event.bytes(event_category, one.category).bytes(event_name, one.name != nullptr ? one.name : one.text);
        if (one.name != nullptr && !one.text.empty())
            event.message(event_annotation, Message().bytes(annotation_name, "text").bytes(annotation_text, one.text));
        if (one.flow != 0) event.fixed(event_flow, one.flow);
    }
    add_packet(to, Message()
                       .number(packet_timestamp, static_cast<uint64_t>(at_ns))
                       .number(packet_sequence, sequence)
                       .message(packet_event, event));
}

void add_events(std::string &to, const std::vector<TraceEvent> &events, uint64_t track, uint32_t sequence,
                int64_t offset_ns) {
    constexpr auto begin = static_cast<uint64_t>(Trace::Kind::begin), end = static_cast<uint64_t>(Trace::Kind::end);
    size_t depth = 0;
    for (const TraceEvent &one : events) {
        if (one.kind == Trace::Kind::end && depth == 0) continue; // its begin was overwritten
        depth += one.kind == Trace::Kind::begin;
        depth -= one.kind == Trace::Kind::end;
        const int64_t at_ns = one.at_ns + offset_ns;
        const bool is_whole = one.kind == Trace::Kind::span;
        add_event(to, one, is_whole ? begin : static_cast<uint64_t>(one.kind), at_ns, track, sequence);
        if (is_whole) add_event(to, one, end, at_ns + one.for_ns, track, sequence);
    }
}

Error why_not(const char *what, const std::string &path) {
    const int number = errno;
    const Status status =
        number == EACCES || number == EPERM || number == EROFS ? MUSTER_E_PERMISSION : MUSTER_E_SYSTEM;
    return Error::from_errno(number, status, "%s %s", what, path.c_str());
}

uint32_t sequence_of(uint64_t track) noexcept {
    return static_cast<uint32_t>(track ^ track >> 32) | 1;
}

// The whole file, in one string: a ring has 512 KiB by default.
Result<std::string> make_trace_file() {
    TraceRings &rings = TraceRings::get();
    const std::lock_guard hold(rings.lock);
    const uint64_t generation = rings.generation.load(std::memory_order_relaxed);
    if (generation == 0 || rings.process.forked())
        return Error::make(MUSTER_E_NOT_FOUND, "no trace was begun in this process");
    // The same in no other process of any host.
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    char host[256] = {};
    gethostname(host, sizeof host - 1);
    const std::string place = std::string(host) + ' ' + std::to_string(getpid()) + ' ' + std::to_string(now.tv_sec) +
                              ' ' + std::to_string(now.tv_nsec);
    const uint64_t process = fnv1a(place);
    std::string file;
    const auto pid = static_cast<uint64_t>(getpid());
    Message described;
    described.number(track_uuid, process)
        .message(track_process, Message().number(process_pid, pid).bytes(process_name, rings.name));
    uint64_t next = process;
    add_packet(file, Message().number(packet_sequence, sequence_of(next)).message(packet_descriptor, described));
    for (const TraceRing *ring = rings.first; ring != nullptr; ring = ring->next) {
        if (ring->generation.load(std::memory_order_relaxed) != generation) continue;
        const uint64_t track = ++next;
        Message thread;
        thread.number(thread_pid, pid).number(thread_tid, static_cast<uint64_t>(ring->tid));
        thread.bytes(thread_name, ring->thread_name);
        add_packet(
            file,
            Message()
                .number(packet_sequence, sequence_of(track))
                .number(packet_flags, state_cleared)
                .message(
                    packet_descriptor,
                    Message().number(track_uuid, track).number(track_parent, process).message(track_thread, thread)));
        add_events(file, ring->read(), track, sequence_of(track), rings.offset_ns);
    }
    return file;
}

} // namespace

Result<void> Trace::save(const std::string &path) {
    auto file = make_trace_file();
    if (!file) return file.error();
    const std::string part = path + ".part";
    const int fd = open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) return why_not("cannot write", part);
    std::string_view left = *file;
    while (!left.empty()) {
        const ssize_t written = ::write(fd, left.data(), left.size());
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) {
            const Error why = why_not("cannot write", part);
            close(fd);
            unlink(part.c_str());
            return why;
        }
        left.remove_prefix(static_cast<size_t>(written));
    }
    if (close(fd) == 0 && rename(part.c_str(), path.c_str()) == 0) return {};
    const Error why = why_not("cannot write", path);
    unlink(part.c_str());
    return why;
}

} // namespace muster
