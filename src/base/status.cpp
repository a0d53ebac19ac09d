// SPDX-License-Identifier: MIT
#include "base/status.hpp"

namespace muster {

namespace {

struct Row {
    Status status;
    const char *name;
    const char *text;
};

constexpr Row rows[] = {
    {MUSTER_OK, "MUSTER_OK", "done"},
    {MUSTER_AGAIN, "MUSTER_AGAIN", "nothing more can be done now"},
    {MUSTER_TIMEOUT, "MUSTER_TIMEOUT", "the deadline passed"},
    {MUSTER_E_ARG, "MUSTER_E_ARG", "an argument is wrong"},
    {MUSTER_E_ABI, "MUSTER_E_ABI", "a struct is newer than this library, or of a size never released"},
    {MUSTER_E_NOMEM, "MUSTER_E_NOMEM", "memory, threads or address space ran out"},
    {MUSTER_E_LIMIT, "MUSTER_E_LIMIT", "a limit was met"},
    {MUSTER_E_CLOSED, "MUSTER_E_CLOSED", "this side closed the object"},
    {MUSTER_E_CANCELED, "MUSTER_E_CANCELED", "cancelled from another thread"},
    {MUSTER_E_FORKED, "MUSTER_E_FORKED", "the handle belongs to the parent of this process"},
    {MUSTER_E_WOULD_DEADLOCK, "MUSTER_E_WOULD_DEADLOCK", "the wait could end only by what this same thread must do"},
    {MUSTER_E_UNSUPPORTED, "MUSTER_E_UNSUPPORTED", "this object or build cannot do that"},
    {MUSTER_E_EXISTS, "MUSTER_E_EXISTS", "the name is taken"},
    {MUSTER_E_NOT_FOUND, "MUSTER_E_NOT_FOUND", "no such thing"},
    {MUSTER_E_STALE, "MUSTER_E_STALE", "the id named something that is over"},
    {MUSTER_E_BUSY, "MUSTER_E_BUSY", "someone else holds it"},
    {MUSTER_E_PERMISSION, "MUSTER_E_PERMISSION", "the operating system refuses this user"},
    {MUSTER_E_AUTH, "MUSTER_E_AUTH", "the proof of the shared secret failed"},
    {MUSTER_E_PROTOCOL, "MUSTER_E_PROTOCOL", "the peer broke the protocol, or speaks no common version"},
    {MUSTER_E_ADDRESS, "MUSTER_E_ADDRESS", "the address cannot be understood"},
    {MUSTER_E_UNREACHABLE, "MUSTER_E_UNREACHABLE", "no process answers at the address"},
    {MUSTER_E_PEER, "MUSTER_E_PEER", "the peer died or the way to it broke"},
    {MUSTER_E_ABORTED, "MUSTER_E_ABORTED", "the stream was aborted"},
    {MUSTER_E_END, "MUSTER_E_END", "the peer finished writing, and everything was read"},
    {MUSTER_E_SYSTEM, "MUSTER_E_SYSTEM", "a system call failed"},
    {MUSTER_E_PLUGIN, "MUSTER_E_PLUGIN", "a plug-in is missing, refused to start, or broke its contract"},
    {MUSTER_E_INTERNAL, "MUSTER_E_INTERNAL", "a defect of the library"},
    {MUSTER_E_CHANGED, "MUSTER_E_CHANGED", "a condition does not hold"},
    {MUSTER_E_STORE_LOST, "MUSTER_E_STORE_LOST", "the store is lost"},
    {MUSTER_E_QUORUM, "MUSTER_E_QUORUM", "too few of the last round are in reach"},
    {MUSTER_E_MISMATCH, "MUSTER_E_MISMATCH", "the members of the group perform different operations"},
};

const Row *find(Status status) noexcept {
    for (const Row &row : rows)
        if (row.status == status) return &row;
    return nullptr;
}

} // namespace

const char *status_name(Status status) noexcept {
    const Row *row = find(status);
    return row ? row->name : "MUSTER_E_?";
}

const char *status_text(Status status) noexcept {
    const Row *row = find(status);
    return row ? row->text : "a status this library does not know";
}

} // namespace muster
