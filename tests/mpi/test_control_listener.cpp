// SPDX-License-Identifier: MIT
// The listener of control sockets, without MPI: what it does when descriptors run out.
#include "control_socket.hpp"

#include <csetjmp>
#include <cstdarg>
#include <cstring>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

extern "C" {
#include <cmocka.h>
}

namespace {

struct Loop { // the library's, as far as a listener needs it
    void (*ready)(void *, uint32_t) = nullptr;
    void (*due)(void *) = nullptr;
    void *listener = nullptr;
    uint32_t events = 0;
    int accepted = 0;
} loop;

muster_status watch_fd(const muster_host *, int32_t, uint32_t events, void (*ready)(void *, uint32_t), void *user,
                       muster_watch **out) {
    loop.ready = ready;
    loop.listener = user;
    loop.events = events;
    *out = reinterpret_cast<muster_watch *>(&loop);
    return MUSTER_OK;
}
void change_fd(muster_watch *, uint32_t events) {
    loop.events = events;
}
void unwatch_fd(muster_watch *) {}
muster_status start_timer(const muster_host *, int64_t, int64_t, void (*due)(void *), void *, muster_timer **out) {
    loop.due = due;
    *out = reinterpret_cast<muster_timer *>(&loop);
    return MUSTER_OK;
}
void stop_timer(muster_timer *timer) {
    if (timer != nullptr) loop.due = nullptr;
}

void test_without_descriptors_it_pauses(void **) {
    muster_host host{};
    host.watch_fd = watch_fd;
    host.change_fd = change_fd;
    host.unwatch_fd = unwatch_fd;
    host.start_timer = start_timer;
    host.stop_timer = stop_timer;
    const auto on_accept = [](void *, int fd) {
        loop.accepted++;
        close(fd);
    };
    mpi::SocketName name{};
    name.bytes = sizeof(sa_family_t); // the kernel chooses an abstract name
    name.any.sa_family = AF_UNIX;
    const int bound = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(bound, &name.any, name.bytes), 0);
    name.bytes = sizeof name;
    assert_int_equal(getsockname(bound, &name.any, &name.bytes), 0);
    mpi::ControlListener listener(&host, on_accept, nullptr);
    assert_int_equal(listener.open(bound, nullptr), MUSTER_OK);
    const int caller = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(caller, &name.any, name.bytes), 0);

    rlimit before{}, none{};
    getrlimit(RLIMIT_NOFILE, &before);
    none = {3, before.rlim_max}; // the next one would be higher
    setrlimit(RLIMIT_NOFILE, &none);
    loop.ready(loop.listener, MUSTER_PLUGIN_READABLE);
    setrlimit(RLIMIT_NOFILE, &before);
    assert_int_equal(loop.accepted, 0);
    assert_int_equal(loop.events, 0); // not asked again at once
    assert_non_null(loop.due);

    loop.due(loop.listener);
    assert_null(loop.due);
    assert_int_equal(loop.events, MUSTER_PLUGIN_READABLE);
    loop.ready(loop.listener, MUSTER_PLUGIN_READABLE);
    assert_int_equal(loop.accepted, 1);
    close(caller);
}

} // namespace

int main() {
    const CMUnitTest tests[] = {cmocka_unit_test(test_without_descriptors_it_pauses)};
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
