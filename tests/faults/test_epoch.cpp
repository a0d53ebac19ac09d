// SPDX-License-Identifier: MIT
// epoch.h and atomic.h.
#include "scenario.hpp"

#include <muster/inline/atomic.h>

#include <sys/mman.h>
#include <unistd.h>

using namespace faults;

namespace {

HANDLE(Epoch, muster_epoch, muster_epoch_release)

void unregister(muster_epoch_token *token) {
    EXPECT(CALL(muster_epoch_unregister, token) == MUSTER_OK);
}
using Token = Handle<muster_epoch_token, unregister>;

void count(void *user, void *object) {
    (void)object;
    ++*static_cast<int *>(user);
}

} // namespace

SCENARIO(epoch, process) {
    Epoch epoch;
    OK(muster_epoch_create, nullptr, epoch.out(), &error);
    Token token, other;
    OK(muster_epoch_register, epoch, token.out(), &error);
    OK(muster_epoch_register, epoch, other.out(), &error);
    int freed = 0, object = 0;
    OK(muster_epoch_online, other);
    OK(muster_epoch_quiescent, other);
    OK(muster_epoch_offline, other);
    OK(muster_epoch_pin, token);
    OK(muster_epoch_repin, token);
    OK(muster_epoch_protect, token, 0, uint64_t{1});
    OK(muster_epoch_protect, token, 0, uint64_t{0});
    OK(muster_epoch_unpin, token);
    OK(muster_epoch_defer, token, count, &freed, &object);
    OK(muster_epoch_retire, token, uint64_t{1});
    muster_epoch_attempt attempt{};
    OK(muster_epoch_try_reclaim, token, &attempt);
    OK(muster_epoch_advance, epoch, &attempt);
    uint64_t back = 0;
    uint32_t backs = 0;
    OK(muster_epoch_poll, token, 10, 0, &back, 1, &backs, nullptr);
    EXPECT(freed == 1 && back == 1 && backs == 1);
    OK(muster_epoch_synchronize, token, second, &attempt);
    OK(muster_epoch_defer, token, count, &freed, &object);
    OK(muster_epoch_barrier, token, second);
    OK(muster_epoch_defer, token, count, &freed, &object);
    uint64_t cleared = 0;
    OK(muster_epoch_clear, epoch, &cleared);
    muster_epoch_stats stats{};
    OK(muster_epoch_get_stats, epoch, &stats);
    EXPECT(freed == 3 && cleared == 1 && stats.freed == 4 && stats.pending == 0);
    muster_epoch_token *ends = nullptr;
    OK(muster_epoch_register, epoch, &ends, &error);
    OK(muster_epoch_unregister, ends);
    muster_epoch *second_one = nullptr;
    OK(muster_epoch_create, nullptr, &second_one, &error);
    DO(muster_epoch_release, second_one);
}

SCENARIO(epoch, shared) {
    const uint64_t bytes = DO(muster_epoch_size, 4, 64);
    const int fd = ::memfd_create("faults", MFD_CLOEXEC);
    EXPECT(fd >= 0 && ::ftruncate(fd, static_cast<off_t>(bytes)) == 0);
    muster_epoch_config config{};
    config.struct_size = sizeof config;
    config.flags = MUSTER_EPOCH_SHARED;
    config.max_tokens = 4;
    config.max_pending = 64;
    config.fd = fd;
    Epoch creator, opener;
    OK(muster_epoch_create, &config, creator.out(), &error);
    config.max_tokens = config.max_pending = 0;
    OK(muster_epoch_open, &config, opener.out(), &error);
    ::close(fd);
    Token token;
    OK(muster_epoch_register, opener, token.out(), &error);
    OK(muster_epoch_retire, token, uint64_t{5});
    OK(muster_epoch_synchronize, token, second, nullptr);
}

SCENARIO(atomic, all) {
    uint64_t wide = 0, got = 0;
    uint32_t narrow = 0, seen = 0;
    OK(muster_atomic_write64, &wide, uint64_t{1}, 0);
    OK(muster_atomic_read64, &wide, 0, &got);
    OK(muster_atomic_exchange64, &wide, uint64_t{2}, 0, &got);
    got = 2;
    OK(muster_atomic_compare_exchange64, &wide, &got, uint64_t{3}, 0);
    OK(muster_atomic_fetch64, &wide, MUSTER_ATOMIC_ADD, uint64_t{1}, 0, &got);
    OK(muster_atomic_write32, &narrow, 1U, 0);
    OK(muster_atomic_read32, &narrow, 0, &seen);
    OK(muster_atomic_exchange32, &narrow, 2U, 0, &seen);
    seen = 2;
    OK(muster_atomic_compare_exchange32, &narrow, &seen, 3U, 0);
    OK(muster_atomic_fetch32, &narrow, MUSTER_ATOMIC_ADD, 1U, 0, &seen);
    OK(muster_atomic_clear, &narrow, 0);
    OK(muster_atomic_test_and_set, &narrow, 0);
    muster_atomic_condition condition{};
    condition.cell = &narrow;
    condition.value = 1;
    condition.size_bytes = 4;
    OK(muster_atomic_wait, &condition, 1, 1, second);
    OK(muster_atomic_notify, &narrow, 4);
    EXPECT(DO(muster_aba_size) == 16 && DO(muster_aba_alignment) == 16);
    muster_aba_cell cell{};
    muster_aba pair{};
    OK(muster_aba_write, &cell.now, uint64_t{1});
    OK(muster_aba_read, &cell.now, &pair);
    OK(muster_aba_compare_exchange, &cell.now, &pair, uint64_t{2});
    OK(muster_aba_exchange, &cell.now, uint64_t{3}, &pair);
    uint64_t value = 3;
    OK(muster_aba_compare_exchange_value, &cell.now, &value, uint64_t{4});
    EXPECT(pair.value == 2 && pair.count == 2 && narrow == 1 && wide == 4);
}
