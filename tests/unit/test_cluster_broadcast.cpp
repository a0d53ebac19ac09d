// SPDX-License-Identifier: MIT
// Memory that members of one host hand to each other: what is taken, and what is not.
#include "cluster/broadcast/inbox.hpp"
#include "cluster/broadcast/shared_bytes.hpp"
#include "context/context.hpp"

#include <csetjmp>
#include <cstdarg>
#include <cstring>
#include <string>
#include <sys/mman.h>

extern "C" {
#include <cmocka.h>
}

using namespace muster;

namespace {

constexpr int all_seals = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK;

// Memory of `size` bytes, of which `filled` are there, with these seals.
Fd memory_of(size_t size, size_t filled, int seals) {
    Fd memory(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    const std::string bytes(filled, 'x');
    if (ftruncate(memory.get(), static_cast<off_t>(size)) != 0 ||
        pwrite(memory.get(), bytes.data(), filled, 0) != static_cast<ssize_t>(filled) ||
        fcntl(memory.get(), F_ADD_SEALS, seals) != 0)
        return Fd();
    return memory;
}

Status taken(Fd memory, uint64_t size) {
    return BroadcastBytes::take(std::move(memory), size).error().status;
}

void test_only_whole_and_sealed_memory_is_taken(void **) {
    constexpr size_t size = 100000;
    assert_int_equal(taken(memory_of(size, size, all_seals), size), MUSTER_OK);
    for (const int left_out : {F_SEAL_WRITE, F_SEAL_GROW, F_SEAL_SHRINK})
        assert_int_equal(taken(memory_of(size, size, all_seals & ~left_out), size), MUSTER_E_PROTOCOL);
    assert_int_equal(taken(memory_of(size, size, all_seals), size + 1), MUSTER_E_PROTOCOL);
    assert_int_equal(taken(memory_of(size, size, all_seals), UINT64_MAX), MUSTER_E_PROTOCOL);
    assert_int_equal(taken(memory_of(size, 5000, all_seals), size), MUSTER_E_PROTOCOL); // pages that are not there
    assert_int_equal(taken(Fd(open("/dev/zero", O_RDONLY | O_CLOEXEC)), size), MUSTER_E_PROTOCOL);
    assert_int_equal(taken(Fd(), size), MUSTER_E_PROTOCOL);
    assert_int_equal(taken(memory_of(0, 0, all_seals), 0), MUSTER_OK);
}

// Steps of a test that has objects: the first that went wrong, looked at when they are gone.
class Steps {
  public:
    void expect(bool right) noexcept {
        at_++;
        if (!right && wrong_ == 0) wrong_ = at_;
    }
    int wrong() const noexcept { return wrong_; }

  private:
    int at_ = 0, wrong_ = 0;
};

void test_what_is_filled_is_read_and_cannot_be_changed_once_it_is_sealed(void **) {
    Steps steps;
    {
        const std::string half(5000, 'a'), all = half + std::string(5000, 'b');
        auto made = BroadcastBytes::make(10000, true);
        steps.expect(static_cast<bool>(made));
        BroadcastBytes &bytes = **made;
        steps.expect(static_cast<bool>(bytes.append(all.data(), 5000)));
        steps.expect(memcmp(bytes.data(), half.data(), 5000) == 0);
        steps.expect(static_cast<bool>(bytes.append(all.data() + 5000, 5000)));
        steps.expect(static_cast<bool>(bytes.seal()));
        steps.expect(memcmp(bytes.data(), all.data(), 10000) == 0);
        steps.expect(!bytes.append("c", 1));
        auto shared = BroadcastBytes::take(Fd(fcntl(bytes.descriptor(), F_DUPFD_CLOEXEC, 3)), 10000);
        steps.expect(shared && memcmp((*shared)->data(), all.data(), 10000) == 0);
    }
    assert_int_equal(steps.wrong(), 0);
}

void test_a_shelf_takes_what_is_put_there_with_its_secret(void **) {
    Steps steps;
    muster_context *context = nullptr;
    assert_int_equal(muster_context_create(nullptr, &context, nullptr), MUSTER_OK);
    {
        auto completions = Queue::create(*unwrap(context), 16);
        const HostIdentity host = HostIdentity::own();
        auto made = MemoryInbox::make(host), other = MemoryInbox::make(host);
        steps.expect(completions && made && other);
        MemoryInbox &here = **made, &there = **other;
        steps.expect(static_cast<bool>(here.watch(**completions, 7)));
        steps.expect(here.address().same_host(there.address()));
        const Fd memory = memory_of(10, 10, all_seals);
        ReceivedMemory neighbour;
        steps.expect(!here.take(neighbour));

        InboxAddress wrong = here.address();
        wrong.secret[3] = static_cast<char>(wrong.secret[3] + 1);
        steps.expect(there.put(wrong, "words", memory.get()) == MUSTER_OK);
        steps.expect(!here.take(neighbour));
        steps.expect(there.put(here.address(), std::string(5000, 'x'), memory.get()) == MUSTER_OK);
        steps.expect(!here.take(neighbour)); // longer than words are

        steps.expect(there.put(here.address(), "words", memory.get()) == MUSTER_OK);
        steps.expect(here.take(neighbour) && neighbour.head == "words");
        steps.expect(taken(std::move(neighbour.memory), 10) == MUSTER_OK);

        wrong.name[0] = 'x'; // of no member
        steps.expect(there.put(wrong, "words", memory.get()) == MUSTER_E_UNREACHABLE);
        Status status = MUSTER_OK; // a receiver that takes nothing does not delay the sender
        for (int i = 0; i < 100000 && status == MUSTER_OK; i++)
            status = there.put(here.address(), "words", memory.get());
        steps.expect(status == MUSTER_AGAIN);
        here.leave();
    }
    muster_context_close(context, 1'000'000'000);
    muster_context_release(context);
    assert_int_equal(steps.wrong(), 0);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_only_whole_and_sealed_memory_is_taken),
        cmocka_unit_test(test_what_is_filled_is_read_and_cannot_be_changed_once_it_is_sealed),
        cmocka_unit_test(test_a_shelf_takes_what_is_put_there_with_its_secret),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
