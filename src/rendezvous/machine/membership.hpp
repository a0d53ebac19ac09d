// SPDX-License-Identifier: MIT
#pragma once
// The state file of a member, for runs whose store can be lost with the member that serves it.
//
// A process that is killed and restarted by the same command learns from the file that the run is not new: it searches
// for the run at the former members, and does not serve an empty store in its place. It inherits the vote of the former
// process in the next round (promises.hpp), so each promise is in the file before it is sent.
//
// A state directory holds the files of all runs and members of a host. A member holds a lock on its file during its
// life; so an unlocked file belongs to a process that has ended. A write keeps the previous record: a file has two
// slots, written in turn, each with a counter and a checksum.
#include "base/fd.hpp"
#include "rendezvous/machine/records.hpp"

#include <atomic>
#include <memory>

namespace muster {

struct Membership {
    enum Say : uint8_t {
        undecided, // the member may promise the end of the round to a store
        promised,  // it has
        left       // it has left the run in order
    };
    RunConfig config; // with the identity of the run
    RoundPlace place; // in the latest round the member was in
    Say say = undecided;
    std::string home;               // host:port of the store where the round was made
    std::string promised_to;        // host:port of the store that has the promise; empty: none has
    std::string own_host;           // where the member's own store listened
    std::vector<std::string> peers; // of the first ranks, as in the store
    std::string write() const;
    static std::optional<Membership> read(std::string_view bytes);
};

// One thread at a time.
class MembershipFile {
  public:
    // With the record of a former member of the run on this host, if there is one. Waits for the file of a member of
    // this process that the host has released and that has not ended so far.
    static Result<MembershipFile> open(const std::string &directory, std::string_view run, std::string_view origin,
                                       Deadline &deadline);
    // Set once the host has released the member: another one of this process may wait for the file.
    using Released = std::shared_ptr<std::atomic<bool>>;
    const Released &released() const noexcept { return released_; }
    const std::optional<Membership> &former() const noexcept { return former_; }
    // Set if former() is not: the record of a living process of this host that is a member of the run, and its file.
    const std::optional<Membership> &living() const noexcept { return living_; }
    const std::string &living_path() const noexcept { return living_path_; }
    const std::string &path() const noexcept { return path_; }
    Result<void> save(const Membership &membership); // it is on the disk when this returns
    void discard() noexcept;                         // save() makes the file again

    MembershipFile(MembershipFile &&) noexcept = default;
    MembershipFile &operator=(MembershipFile &&other) noexcept;
    ~MembershipFile() { close(); }

  private:
    MembershipFile() = default;
    void close() noexcept;
    Result<bool> lock(uint32_t index); // false: another process has that file
    void see_living();
    std::optional<Membership> load();
    Result<void> make();

    // first_: the common prefix of all paths of the run; name_: of the run, which each record repeats.
    std::string directory_, first_, path_, name_;
    Released released_ = std::make_shared<std::atomic<bool>>(false);
    Fd file_;
    uint64_t count_ = 0;   // of writes
    bool damaged_ = false; // a record exists, and cannot be read
    std::optional<Membership> former_, living_;
    std::string living_path_;
};

} // namespace muster
