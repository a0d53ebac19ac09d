// SPDX-License-Identifier: MIT
// What a session makes of memory that is passed to it, or lent.
// ctest: quick timeout=120
#include "session_world.hpp"

#include <dirent.h>
#include <sys/socket.h>
#include <sys/un.h>

using namespace muster;
using namespace muster::test;

namespace {

// ---- memory that is passed ------------------------------------------------------------------------------------------

constexpr size_t shared_bytes = 8192;
constexpr int all_seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

Fd make_memory(int seals, bool filled = true) {
    Fd memory(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (ftruncate(memory.get(), shared_bytes) != 0) abort();
    if (filled && posix_fallocate(memory.get(), 0, shared_bytes) != 0) abort();
    if (seals != 0 && fcntl(memory.get(), F_ADD_SEALS, seals) != 0) abort();
    return memory;
}

Fd make_bell(int flags = EFD_NONBLOCK, unsigned count = 0) {
    return Fd(eventfd(count, EFD_CLOEXEC | flags));
}

Fd make_file() {
    FILE *file = tmpfile();
    Fd fd(dup(fileno(file)));
    fclose(file);
    if (ftruncate(fd.get(), shared_bytes) != 0 || posix_fallocate(fd.get(), 0, shared_bytes) != 0) abort();
    return fd;
}

void test_memory_that_is_passed_is_looked_at(void **) {
    run([](Findings &f) {
        f.expect(static_cast<bool>(check_shared_memory(make_memory(all_seals).get(), shared_bytes)), "good memory");
        f.expect(!check_shared_memory(make_memory(F_SEAL_SHRINK).get(), shared_bytes), "sealed in part");
        f.expect(!check_shared_memory(make_memory(all_seals).get(), 2 * shared_bytes), "too little");
        f.expect(!check_shared_memory(make_memory(all_seals, false).get(), shared_bytes), "no pages");
        f.expect(!check_shared_memory(make_file().get(), shared_bytes), "a file");
        f.expect(!check_shared_memory(-1, shared_bytes), "nothing");
        const Fd good = make_bell();
        const auto refused = [&](const Fd &bell) {
            return !check_events(good.get(), bell.get()) && !check_events(bell.get(), good.get());
        };
        {
            const Fd one = make_bell(0), other = make_bell();
            uint64_t count = 0;
            f.expect(static_cast<bool>(check_events(one.get(), other.get())), "good doorbells");
            f.expect(read(one.get(), &count, sizeof count) < 0 && errno == EAGAIN, "not rung, and they cannot block");
        }
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) != 0) abort();
        const Fd left(pair[0]), right(pair[1]);
        f.expect(refused(left), "a socket");
        if (pipe2(pair, O_NONBLOCK | O_CLOEXEC) != 0) abort();
        const Fd from(pair[0]), to(pair[1]);
        f.expect(refused(from) && refused(to), "a pipe");
        const auto fresh_refused = [](Fd bell) { return !check_events(make_bell().get(), bell.get()); };
        f.expect(fresh_refused(make_bell(EFD_NONBLOCK | EFD_SEMAPHORE)), "a semaphore");
        f.expect(fresh_refused(make_bell(EFD_NONBLOCK, 1)), "one that was rung");
        f.expect(fresh_refused(make_file()), "a file as a doorbell");
        f.expect(fresh_refused(Fd(epoll_create1(EPOLL_CLOEXEC))), "another thing without a name");
        const Fd twice = make_bell();
        f.expect(!check_events(twice.get(), twice.get()), "one for both");
    });
}

// Offers memory to the session, and passes these descriptors: what it answers.
Status offer(World &w, const std::vector<int> &fds) {
    const std::string name = "muster-test-" + number(static_cast<uint64_t>(now_ns())) + std::string(12, 'x');
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    memcpy(address.sun_path + 1, name.data(), name.size());
    const Fd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    if (bind(listener.get(), reinterpret_cast<sockaddr *>(&address), length) != 0 || listen(listener.get(), 1) != 0)
        return MUSTER_E_SYSTEM;
    const HostIdentity &host = Hub::of(*w.context).host;
    unsigned char payload[68];
    put_u64(payload, shared_bytes);
    memcpy(payload + 8, host.boot.data(), 16);
    put_u64(payload + 24, host.net_namespace);
    put_u32(payload + 32, host.user);
    memset(payload + 36, 5, 32); // the token
    w.on_loop([&] {
        w.channel->out.clear();
        w.deliver(frame(FrameType::pair_offer, 0, std::string(reinterpret_cast<char *>(payload), 68) + "@" + name));
    });
    const Fd connection = [&] {
        timeval limit{0, 200'000};
        setsockopt(listener.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        return Fd(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    }();
    if (connection) {
        char mark = 'M';
        iovec span{&mark, 1};
        alignas(cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))] = {};
        msghdr message{};
        message.msg_iov = &span;
        message.msg_iovlen = 1;
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
        cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
        memcpy(CMSG_DATA(head), fds.data(), fds.size() * sizeof(int));
        if (sendmsg(connection.get(), &message, MSG_NOSIGNAL) != 1) return MUSTER_E_SYSTEM;
    }
    Frame answer{};
    if (!w.heard(FrameType::pair_answer, 0, &answer) || answer.payload.size() != 4) return MUSTER_TIMEOUT;
    return static_cast<int32_t>(get_u32(reinterpret_cast<const unsigned char *>(answer.payload.data())));
}

int open_descriptors() {
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;
    while (readdir(folder) != nullptr) count++;
    closedir(folder);
    return count;
}

void test_offers_of_memory(void **) {
    run([](Findings &f) {
        World w({});
        if (!f.expect(w.ready.load(), "proved")) return;
        const Fd memory = make_memory(all_seals), file = make_file();
        // Set up once, so that what is made at the first use is there when descriptors are counted.
        f.expect_status(offer(w, {file.get(), make_bell().get(), make_bell().get()}), MUSTER_E_PROTOCOL, "a file");
        const Fd one = make_bell(), other = make_bell();
        const int before = open_descriptors();
        f.expect_status(offer(w, {memory.get(), one.get(), other.get(), file.get()}), MUSTER_E_PROTOCOL, "four");
        f.expect_status(offer(w, {memory.get(), one.get(), other.get(), file.get(), file.get(), file.get()}),
                        MUSTER_E_PROTOCOL, "six");
        f.expect_status(offer(w, {memory.get(), one.get()}), MUSTER_E_PROTOCOL, "two");
        f.expect(w.soon([&] { return open_descriptors() == before; }), "none is kept");
        f.expect_status(offer(w, {memory.get(), one.get(), other.get()}), MUSTER_OK, "three");
        f.expect(w.soon([&] { return w.channel->pairings == 1 && w.channel->segment; }), "paired");
        f.expect_status(offer(w, {memory.get(), one.get(), other.get()}), MUSTER_E_BUSY, "a second time");
        w.settle();
        f.expect(w.soon([&] { return w.channel->pairings == 1 && w.channel->segment && !w.over; }), "the first stays");
    });
}

// ---- memory that is lent --------------------------------------------------------------------------------------------

struct Memory {
    std::string bytes;
    std::atomic<int> releases{0};
};

void release_memory(void *memory, void *hint) {
    static_cast<Memory *>(memory)->bytes.assign(static_cast<size_t>(reinterpret_cast<uintptr_t>(hint)), '#');
    static_cast<Memory *>(memory)->releases++;
}

// As a fabric does it.
void lend(World &w, Memory &memory, uint64_t size_bytes) {
    const muster_loan terms{size_bytes, release_memory, &memory, reinterpret_cast<void *>(memory.bytes.size())};
    w.on_loop([&] {
        const auto loan = make_ref<Loan>(terms, *w.pool);
        w.session->deliver(memory.bytes.data(), memory.bytes.size(), true, loan.get());
    });
}

std::string pattern(size_t size, int seed) {
    std::string bytes(size, '\0');
    for (size_t i = 0; i < size; i++) bytes[i] = static_cast<char>(i * 7 + i / 251 + static_cast<size_t>(seed));
    return bytes;
}

std::string read_all(World &w, size_t size) {
    std::string got(size, '\0');
    Deadline deadline(5 * second);
    size_t moved = 0;
    w.stream->read(got.data(), size, size, deadline, moved);
    got.resize(moved);
    return got;
}

void test_lent_memory_comes_back_once_when_it_was_read(void **) {
    run([](Findings &f) {
        World w({});
        if (!f.expect(w.ready.load(), "proved") || !w.open_stream(f)) return;
        const std::string one = pattern(20'000, 1), two = pattern(1000, 2), three = pattern(20'000, 3);
        Memory kept, small, mostly_idle;
        kept.bytes = frame(FrameType::data, 1, one);
        small.bytes = frame(FrameType::data, 1, two);
        mostly_idle.bytes = frame(FrameType::data, 1, three);
        lend(w, kept, 30'000);
        lend(w, small, 1100);
        f.expect(kept.releases == 0 && small.releases == 1, "little is copied");
        lend(w, mostly_idle, 41'000);
        f.expect(mostly_idle.releases == 1, "much memory is not kept for little");
        f.expect(read_all(w, 19'999) == one.substr(0, 19'999) && kept.releases == 0, "a byte is left");
        f.expect(read_all(w, 21'001) == one.substr(19'999) + two + three, "in order");
        f.expect(kept.releases == 1 && small.releases == 1 && mostly_idle.releases == 1, "each once");
    });
}

void test_a_segment_that_was_lent_goes_back_to_the_pool(void **) {
    run([](Findings &f) {
        World w({});
        if (!f.expect(w.ready.load(), "proved") || !w.open_stream(f, 1)) return;
        const std::string bytes = pattern(60'000, 4), said = frame(FrameType::data, 1, bytes);
        void *const segment = w.pool->take();
        memcpy(segment, said.data(), said.size());
        const muster_loan terms{said.size(), nullptr, segment, nullptr};
        w.on_loop([&] {
            const auto loan = make_ref<Loan>(terms, *w.pool);
            w.session->deliver(segment, said.size(), true, loan.get());
        });
        f.expect(read_all(w, bytes.size()) == bytes, "read");
        void *const next = w.pool->take();
        f.expect(next == segment, "it is the next one");
        w.pool->give(next);
    });
}

void test_what_was_lent_before_an_abort_comes_back(void **) {
    run([](Findings &f) {
        Memory read_first, unread;
        {
            World w({});
            if (!f.expect(w.ready.load(), "proved") || !w.open_stream(f)) return;
            const std::string bytes = pattern(20'000, 5);
            read_first.bytes = unread.bytes = frame(FrameType::data, 1, bytes);
            lend(w, read_first, 20'000);
            lend(w, unread, 20'000);
            f.expect(read_all(w, 5000) == bytes.substr(0, 5000), "begun");
            w.say(frame(FrameType::abort, 1, number(3) + "enough"));
            w.settle();
            f.expect(read_all(w, 35'000) == bytes.substr(5000) + bytes, "what had come is still there");
            f.expect(read_first.releases == 1 && unread.releases == 1, "back");
            f.expect_status(w.stream->duplex().ended_status(), MUSTER_E_ABORTED, "the stream");
        }
        Memory left;
        {
            World w({});
            if (!f.expect(w.ready.load(), "proved") || !w.open_stream(f)) return;
            left.bytes = frame(FrameType::data, 1, pattern(30'000, 6));
            lend(w, left, 30'000);
        }
        f.expect(left.releases == 1, "also where nobody reads");
    });
}

} // namespace

int main(int argc, char **argv) {
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_that_is_passed_is_looked_at),
        cmocka_unit_test(test_offers_of_memory),
        cmocka_unit_test(test_lent_memory_comes_back_once_when_it_was_read),
        cmocka_unit_test(test_a_segment_that_was_lent_goes_back_to_the_pool),
        cmocka_unit_test(test_what_was_lent_before_an_abort_comes_back),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
