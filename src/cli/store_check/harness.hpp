// SPDX-License-Identifier: MIT
#pragma once
// The functions with which the cases of the suite for stores are written. Only the public headers.
#include "transport_check/harness.hpp"

#include <muster/store_serve.h>

#include <string_view>

namespace store_check {

using check::fail;
using check::ms;
using check::second;
using check::time_limit;

// ---- operations
// ------------------------------------------------------------------------------------------------------

struct Op : muster_store_op {
    Op(uint32_t what, std::string_view name) : muster_store_op{} {
        kind = what;
        muster_store_op::key = name.data();
        key_bytes = name.size();
    }
    Op &with(std::string_view bytes) {
        value = bytes.data();
        value_bytes = bytes.size();
        return *this;
    }
    Op &count(int64_t n) {
        number = n;
        return *this;
    }
    Op &behind(uint64_t revision) {
        version = revision;
        return *this;
    }
    Op &at_barrier(uint32_t own_rank, uint32_t members) {
        rank = own_rank;
        muster_store_op::count = members;
        return *this;
    }
    Op &under(uint32_t what) {
        condition = what;
        return *this;
    }
    Op &if_value(std::string_view bytes) {
        expected = bytes.data();
        expected_bytes = bytes.size();
        return under(MUSTER_STORE_IF_VALUE);
    }
    Op &if_version(uint64_t number_of_it) {
        version = number_of_it;
        return under(MUSTER_STORE_IF_VERSION);
    }
    Op &on(const muster_lease *of) {
        lease = muster_lease_id(of);
        return *this;
    }
};
inline Op set(std::string_view key, std::string_view value) {
    return Op(MUSTER_STORE_SET, key).with(value);
}
inline Op read(std::string_view key) {
    return Op(MUSTER_STORE_READ, key);
}
inline Op get(std::string_view key) {
    return Op(MUSTER_STORE_GET, key);
}
inline Op wait(std::string_view key) {
    return Op(MUSTER_STORE_WAIT, key);
}
inline Op add(std::string_view key, int64_t n) {
    return Op(MUSTER_STORE_ADD, key).count(n);
}
inline Op append(std::string_view key, std::string_view value) {
    return Op(MUSTER_STORE_APPEND, key).with(value);
}
inline Op remove(std::string_view key) {
    return Op(MUSTER_STORE_DELETE, key);
}
inline Op push(std::string_view name, std::string_view value) {
    return Op(MUSTER_STORE_PUSH, name).with(value);
}
inline Op pop(std::string_view name) {
    return Op(MUSTER_STORE_POP, name);
}
inline Op watch(std::string_view prefix, uint64_t revision) {
    return Op(MUSTER_STORE_WATCH, prefix).behind(revision);
}
inline Op barrier(std::string_view name, uint32_t rank, uint32_t members) {
    return Op(MUSTER_STORE_BARRIER, name).at_barrier(rank, members);
}

// ---- results
// ---------------------------------------------------------------------------------------------------------

class Answer {
  public:
    Answer(muster_status status, const muster_error &error, muster_store_result *result)
        : status_(status), error_(error), result_(result) {}
    Answer(Answer &&other) noexcept
        : status_(other.status_), error_(other.error_), result_(std::exchange(other.result_, nullptr)) {}
    Answer &operator=(Answer &&other) noexcept {
        status_ = other.status_;
        error_ = other.error_;
        std::swap(result_, other.result_);
        return *this;
    }
    ~Answer() { muster_store_result_release(result_); }

    muster_status status() const { return status_; }
    std::string text() const { return error_.message; }
    uint64_t count() const { return muster_store_result_count(result_); }
    uint64_t revision() const { return muster_store_result_revision(result_); }
    muster_store_entry entry(uint64_t index) const;
    std::string key(uint64_t index) const;
    std::string value(uint64_t index) const;                   // of a key that is present
    void expect_holds(uint64_t index, std::string_view) const; // the key is present, with this value
    void expect_absent(uint64_t index) const;
    void expect_text(std::string_view part) const; // of the error

  private:
    muster_status status_;
    muster_error error_;
    muster_store_result *result_;
};

// ---- the store
// -------------------------------------------------------------------------------------------------------

// A view of the store that no other case sees.
class Place {
  public:
    Place(muster_context *context, muster_store *store, const std::string &prefix);
    ~Place();
    Place(const Place &) = delete;
    Place &operator=(const Place &) = delete;

    muster_context *context() const { return context_; }
    muster_store *store() const { return store_; }
    bool can(uint32_t capability) const { return (muster_store_capabilities(store_) & capability) == capability; }
    void need(uint32_t capability) const; // or the case is skipped
    // Performs a request and expects this status.
    Answer run(std::vector<Op> ops, muster_status wanted = MUSTER_OK, int64_t timeout = time_limit) const;
    Answer once(std::vector<Op> ops, muster_status wanted = MUSTER_OK) const { return run(std::move(ops), wanted, 0); }
    Answer try_run(const std::vector<Op> &ops, int64_t timeout = time_limit) const;
    // Requests that were begun, whose completions arrive in any order.
    uint64_t begin(const std::vector<Op> &ops, uint64_t tag, int64_t timeout = -1) const;
    Answer take(uint64_t *out_tag, muster_status wanted = MUSTER_OK) const;
    void expect_none() const; // no completion so far
    muster_queue *queue() const { return queue_; }

  private:
    muster_context *context_;
    muster_store *store_ = nullptr;
    muster_queue *queue_ = nullptr;
};

class Lease {
  public:
    Lease(const Place &place, int64_t ttl, uint32_t flags = 0);
    ~Lease() { release(); }
    Lease(const Lease &) = delete;
    Lease &operator=(const Lease &) = delete;
    muster_lease *get() const { return lease_; }
    void release() { muster_lease_release(std::exchange(lease_, nullptr)); }

  private:
    muster_lease *lease_ = nullptr;
};
int64_t least_lease(const Place &place); // that the store has

struct Case {
    const char *name;
    void (*run)(const Place &place);
};
extern const std::vector<Case> key_cases, transaction_cases, wait_cases, queue_cases, watch_cases, lease_cases,
    meet_cases;

// ---- a store that this program serves itself
// -------------------------------------------------------------------------

// relay:<url of another store> - forwards its requests to the other store.
class Relay {
  public:
    Relay(muster_context *context, bool pulled);
    ~Relay();
    Relay(const Relay &) = delete;
    Relay &operator=(const Relay &) = delete;

  private:
    struct Self;
    std::unique_ptr<Self> self_;
};

} // namespace store_check
