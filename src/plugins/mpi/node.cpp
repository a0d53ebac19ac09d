// SPDX-License-Identifier: MIT
#include "node.hpp"

#include "endpoint.hpp"
#include "error.hpp"
#include "exit.hpp"
#include "vendor.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <new>
#include <pthread.h>
#include <sched.h>
#include <thread>
#include <unistd.h>

namespace mpi {

namespace {
std::mutex making;
Node *the_node; // guarded by `making`; never destroyed: MPI may use its memory to the last moment
} // namespace

muster_status Node::open(const muster_host *host, Node *&out_node, muster_error *error) {
    const std::lock_guard hold(making);
    if (the_node == nullptr) {
        Node *made = new Node;
        const muster_status status = made->begin(host, error);
        if (status != MUSTER_OK) {
            if (!made->ours_) delete made; // otherwise MPI is initialised, and has to be finalised
            return status;
        }
        the_node = made;
        made->wait_for_ranks();
    }
    if (const std::string why = the_node->failure(); !why.empty())
        return refuse(error, MUSTER_E_CLOSED, "%s", why.c_str());
    if (the_node->level_ < MPI_THREAD_MULTIPLE && !(host->flags & MUSTER_HOST_EXTERNAL))
        return refuse(error, MUSTER_E_UNSUPPORTED,
                      "MPI was initialised without MPI_THREAD_MULTIPLE: make the context with MUSTER_CONTEXT_EXTERNAL "
                      "and drive it with the thread that calls MPI");
    out_node = the_node;
    return MUSTER_OK;
}

// Ranks that all load the plug-in at their beginning are ready in a moment. If others load it later, a thread has to
// call MPI for this rank meanwhile, even if the program never uses mpi://. A thread of the plug-in may do that if any
// thread may call MPI; otherwise the thread that drives a context which listens or has dialled does it.
void Node::wait_for_ranks() {
    constexpr auto moment = std::chrono::milliseconds(250);
    const auto until = std::chrono::steady_clock::now() + moment;
    do {
        const Hold mpi(*this);
        if (!mpi || advance()) return;
        sched_yield();
    } while (std::chrono::steady_clock::now() < until);
    if (level_ < MPI_THREAD_MULTIPLE) return;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); // the thread inherits it
    try {
        std::thread([this] {
            for (auto wait = std::chrono::milliseconds(1);; wait = std::min(2 * wait, std::chrono::milliseconds(10))) {
                std::this_thread::sleep_for(wait);
                const Hold mpi(*this);
                if (!mpi || advance()) return;
            }
        }).detach();
    } catch (const std::exception &) { // no thread: it happens at the first dial or listen
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

muster_status Node::begin(const muster_host *host, muster_error *error) {
    bool initialised = false;
    if (const muster_status status = check_mpi(initialised, error); status != MUSTER_OK) return status;
    if (!initialised) {
        if (const muster_status status = initialise(level_, error); status != MUSTER_OK) return status;
        ours_ = true;
        // The default ends the process, also for calls without a communicator, and while the duplicate is being made. A
        // program that initialises MPI decides by itself.
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
        ExitBarrier::begin(*this); // from here on the plug-in finalises what it has initialised
    } else {
        MPI_Query_thread(&level_);
    }
    if (level_ < MPI_THREAD_MULTIPLE && !(host->flags & MUSTER_HOST_EXTERNAL))
        return refuse(error, MUSTER_E_UNSUPPORTED,
                      "MPI was initialised without MPI_THREAD_MULTIPLE: make the context with MUSTER_CONTEXT_EXTERNAL "
                      "and drive it with the thread that calls MPI");
    int is_main = 1;
    if (level_ < MPI_THREAD_SERIALIZED) MPI_Is_thread_main(&is_main);
    main_ = pthread_self();
    if (!is_main)
        return refuse(error, MUSTER_E_UNSUPPORTED,
                      "MPI was initialised with MPI_THREAD_FUNNELED: only the thread that did so can load mpi:// and "
                      "drive its context");
    std::fill(std::begin(port_sockets_), std::end(port_sockets_), -1);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    rank_infos_.resize(static_cast<size_t>(size_));
    make_info();
    ExitBarrier::open(*this);
    // When the host finalises MPI, this is called first of all; the plug-in calls MPI no more afterwards.
    int key = MPI_KEYVAL_INVALID;
    if (MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, host_finalises, &key, nullptr) == MPI_SUCCESS)
        MPI_Comm_set_attr(MPI_COMM_SELF, key, this);
    const int code = MPI_Comm_idup(MPI_COMM_WORLD, &comm_, &request_);
    if (code != MPI_SUCCESS)
        return refuse(error, MUSTER_E_SYSTEM, "MPI_Comm_idup failed: %.150s", mpi_text(code).c_str());
    return MUSTER_OK;
}

Node::Hold::Hold(Node &node)
    // acquire: pairs with fail(). The host's finalise and that of the plug-in take the lock first, so no call begins
    // meanwhile.
    : lock_(node.lock_), usable_(!node.broken_.load(std::memory_order_acquire) && node.usable_here()) {}

// Communicator, cards, ports: one after the other, none waited for.
bool Node::advance() {
    while (step_ != Step::ready) {
        int done = 0;
        const int code = MPI_Test(&request_, &done, MPI_STATUS_IGNORE);
        if (code != MPI_SUCCESS) return fail("mpi: beginning failed: " + mpi_text(code)), false;
        if (!done) return false;
        const auto gather = [&](const void *from, void *to, size_t bytes) {
            const int size = static_cast<int>(bytes);
            return MPI_Iallgather(from, size, MPI_BYTE, to, size, MPI_BYTE, comm_, &request_);
        };
        int begun = MPI_SUCCESS;
        switch (step_) {
        case Step::dup:
            MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
            begun = gather(&own_info_, rank_infos_.data(), sizeof own_info_);
            step_ = Step::infos;
            break;
        case Step::infos:
            if (!check_infos()) return false;
            if (many_hosts_) {
                make_ports();
                all_ports_.resize(static_cast<size_t>(size_));
                begun = gather(&ports_, all_ports_.data(), sizeof ports_);
                step_ = Step::ports;
                break;
            }
            [[fallthrough]];
        default:
            step_ = Step::ready;
            if (ours_) ExitBarrier::ranks_known(*this);
            ready_.store(true, std::memory_order_release); // publishes cards and ports; pairs with ready()
        }
        if (begun != MPI_SUCCESS) return fail("mpi: beginning failed: " + mpi_text(begun)), false;
    }
    return true;
}

bool Node::ready() const {
    return ready_.load(std::memory_order_acquire); // pairs with advance()
}

bool Node::needs_polls() const {
    return ours_ && copies_through_pages();
}

std::string Node::failure() const {
    if (!broken_.load(std::memory_order_acquire)) return {}; // pairs with fail()
    const std::lock_guard hold(numbers_);
    return failure_;
}

void Node::fail(const std::string &why) {
    const std::lock_guard hold(numbers_);
    if (broken_.load(std::memory_order_relaxed)) return;
    failure_ = why;
    broken_.store(true, std::memory_order_release); // publishes the text; pairs with failure() and Hold
    for (Endpoint *endpoint : slots_)
        if (endpoint != nullptr) endpoint->post_wake();
}

// The thread of the host, inside its MPI_Finalize; also the plug-in's own, at the end.
int Node::host_finalises(MPI_Comm, int, void *self, void *) {
    Node &node = *static_cast<Node *>(self);
    const std::lock_guard hold(node.lock_);
    node.fail("MPI is finalised in this process");
    return MPI_SUCCESS;
}

// ---- numbers --------------------------------------------------------------------------------------------------------

int Node::acquire_slot(Endpoint *endpoint) {
    const std::lock_guard hold(numbers_);
    const auto free = std::find(std::begin(slots_), std::end(slots_), nullptr);
    if (free == std::end(slots_)) return -1;
    *free = endpoint;
    return static_cast<int>(free - std::begin(slots_));
}

void Node::release_slot(int slot) {
    const std::lock_guard hold(numbers_);
    slots_[slot] = nullptr;
}

int Node::acquire_listener(int wanted) {
    const std::lock_guard hold(numbers_);
    for (int listener = 0; listener < max_listeners; listener++) {
        if (used_listeners_[listener] || (wanted >= 0 && listener != wanted)) continue;
        used_listeners_[listener] = true;
        return listener;
    }
    return -1;
}

void Node::release_listener(int listener) {
    const std::lock_guard hold(numbers_);
    used_listeners_[listener] = false;
}

// ---- state that outlives a context ----------------------------------------------------------------------------------

void Node::adopt(MPI_Request request, void *buffer) {
    orphans_.push_back({request, buffer});
}

void Node::keep_forever(void *buffer) {
    kept_forever_.push_back(buffer);
}

void Node::test_orphans() {
    for (size_t i = 0; i < orphans_.size();) {
        int done = 0;
        if (MPI_Test(&orphans_[i].request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || !done) {
            i++;
            continue;
        }
        std::free(orphans_[i].buffer);
        orphans_[i] = orphans_.back();
        orphans_.pop_back();
    }
}

// Goodbyes to contexts that were gone. All ranks have sent everything.
bool Node::receive_rest() {
    for (int there = 1; there != 0;) {
        MPI_Message message;
        MPI_Status status;
        int size = 0;
        if (MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &there, &message, &status) != MPI_SUCCESS || !there) break;
        if (MPI_Get_count(&status, MPI_BYTE, &size) != MPI_SUCCESS) break;
        auto *to = static_cast<unsigned char *>(std::malloc(static_cast<size_t>(size) + 1)); // MPI's from here on
        MPI_Request request;
        if (to == nullptr || MPI_Imrecv(to, size, MPI_BYTE, &message, &request) != MPI_SUCCESS) break;
        orphans_.push_back({request, to});
    }
    test_orphans();
    return orphans_.empty();
}

} // namespace mpi
