// SPDX-License-Identifier: MIT
#pragma once
// A client of a store that another process serves: a connection, made again whenever it breaks, and its requests.
//
// A thread that waits for an answer receives the answers of all waiting threads (transport/receiver.hpp).
#include "base/back_off.hpp"
#include "store/backend/store.hpp"
#include "store/client/pending.hpp"
#include "store/wire/record_socket.hpp"
#include "transport/receiver.hpp"

#include <atomic>
#include <condition_variable>
#include <map>
#include <set>

namespace muster {

// Any thread unless a member says otherwise.
class StoreClient final : public Object, private ReceiverOwner, private SocketTaker, private RecordReader::Taker {
  public:
    // `once_ns`: the maximum time of the first connection, which is then tried once; 0: tried until it is established.
    StoreClient(Context &context, std::string shown, std::vector<Address> addresses, int64_t lost_after_ns,
                int64_t once_ns = 0);
    Result<void> connect(Deadline &deadline);         // until the first connection, or the deadline
    void begin() noexcept { enter_.post(*context_); } // without waiting for it
    void watch_closely(int64_t silent_ns, int64_t lost_after_ns) noexcept;
    bool hosted() const noexcept { return hosted_.load(std::memory_order_relaxed); }
    std::string local_host() noexcept; // of the connection; empty: there is none
    void leave_soon() noexcept { leave_.post(*context_); }
    const std::string &shown() const noexcept { return shown_; }
    uint32_t capabilities() const noexcept { return capabilities_.load(std::memory_order_relaxed); }

    // See StoreBackend.
    bool submit(StoreOperation &operation) noexcept;
    Withdrawn withdraw(StoreOperation &operation, std::string &missing) noexcept;
    bool forget(StoreOperation &operation) noexcept;
    Status sleep(StoreOperation &operation, Signal &signal, uint32_t seen, Deadline &deadline) noexcept;
    Status keep(uint64_t lease) noexcept;
    void abandon(uint64_t lease) noexcept;
    void wake_reader() noexcept { receiver_.wake(); } // a thread asleep on the socket checks its signal, within deaf_ns

    static constexpr int64_t deaf_ns =
        20'000'000; // a receiving thread notices other events after this time at the latest

  private:
    static constexpr int64_t max_host_check_ns = 320'000'000;
    enum class State { apart, hello_sent, open, lost };
    // The reason to give up the connection. A later value replaces an earlier one.
    enum class Breakage : uint8_t {
        none,
        lost,    // the session continues on the next connection
        moved,   // another server keeps the store
        invalid, // the server breaks the protocol
        stopped  // the server has stopped, and the store with it
    };
    class Dialing;

    ~StoreClient() override = default;

    // --- client.cpp: requests. With the lock
    bool has_room() const noexcept;
    void send_ask(StoreOperation &operation);
    void send_more();
    Ref<StoreOperation> remove(StoreOperation &operation) noexcept;
    void send_record(StoreRecord type, uint8_t flags, uint64_t number) noexcept;
    void claim_socket() noexcept;
    size_t unsent() const noexcept;
    void flush() noexcept;
    void flush(std::unique_lock<std::mutex> &hold) noexcept;
    void sent(int why) noexcept;
    void send_gathered() noexcept; // without the lock
    std::string apart_text() const;
    int64_t beat_ns() const noexcept;
    void finish_all(const Error &why) noexcept; // without the lock

    // --- connection.cpp. Loop thread
    void enter() noexcept;
    void dial() noexcept;
    void dial_failed(const Error &why) noexcept;
    void take(ProvedSocket socket) noexcept override;
    Object &socket_taker() noexcept override { return *this; }
    void on_events(uint32_t epoll_events) noexcept override;
    Object &watch_owner() noexcept override { return *this; }
    void hello_too_late() noexcept { broke("it has not answered the hello"); }
    void part() noexcept;                                                // the connection is no more
    void broke(const char *why, Breakage how = Breakage::lost) noexcept; // any thread; static text
    bool is_broken() const noexcept { return breakage_.load(std::memory_order_seq_cst) != Breakage::none; }
    void close_socket() noexcept; // rx lock held
    bool welcome(std::string_view body);
    void session_is_new();
    void lose(const Error &why) noexcept;
    void start_ticks() noexcept;
    void tick() noexcept;  // pings while a request waits or a lease is renewed
    void leave() noexcept; // the host has released the store, or the context closes

    // --- receive.cpp: answers. The rx lock held
    // 1: bytes were received, 0: none, -1: broken.
    int receive_once(unsigned char *staging, size_t size, int flags) noexcept;
    bool take_record(const StoreHead &head, std::string_view body) override;
    bool take_answer(const StoreHead &head, std::string_view body);
    struct Answered {
        uint64_t number;
        StoreAnswer answer;
        Ref<StoreOperation> operation;
    };
    void end_answered() noexcept;
    static bool ends_as_withdrawn(Answered &one) noexcept;
    Ref<StoreOperation> take_answered(Answered &one);
    Status sleep_on_socket(Signal &signal, uint32_t seen, Deadline &deadline) noexcept;
    void leave_rx(bool host) noexcept;
    void host_stopped_receiving() noexcept override { leave_rx(false); } // loop thread

    const Ref<Context> context_;
    Hub &hub_;
    const std::string shown_;
    const std::vector<Address> addresses_;
    const int64_t once_ns_;
    std::atomic<int64_t> lost_after_ns_, silent_ns_{-1}; // relaxed; silent: negative: as the context has it
    StoreId session_{};
    std::atomic<uint32_t> capabilities_{0};
    std::atomic<bool> hosted_{false}; // relaxed

    std::mutex lock_; // guards the members below, up to the next group
    State state_ = State::apart;
    Fd fd_; // changed under the rx lock, too
    RecordWriter writer_;
    bool sends_ = false; // a thread sends without the lock: it alone uses fd_ to send, and all of writer_ but plain()
    std::condition_variable has_sent_;
    PendingOperations pending_;
    size_t under_way_ = 0; // of these, sent on this connection
    uint64_t next_number_ = 1;
    StoreOperation *next_to_send_ = nullptr; // of these, on this connection; all before it are sent
    std::map<uint64_t, int64_t> kept_;       // leases that the library keeps, and for how long each lasts
    std::set<uint64_t> ended_;               // leases that are known to be over, and were not to be
    std::vector<StoreOperation *> sleepers_; // whose threads sleep elsewhere
    Error why_apart_, why_lost_;
    int64_t apart_since_ns_ = 0;
    Ref<Attempt> attempt_;

    Receiver receiver_{hub_, *this, max_host_check_ns}; // and the rx lock
    RecordReader reader_;                               // under rx
    std::vector<Answered> answered_;                    // under rx: in the order of their arrival

    std::atomic<Breakage> breakage_{Breakage::none}; // seq_cst: pairs with a thread about to sleep on the socket
    std::atomic<const char *> broke_why_{""};        // relaxed: of the first breakage
    std::atomic<int> invalid_count_{0};              // relaxed: connections that ended so since the last valid answer
    std::atomic<bool> ticking_{false};               // acq_rel: a timer of the loop runs, or was requested
    std::atomic<int64_t> heard_ns_{0}, said_ns_{0};  // relaxed

    // loop thread
    size_t next_address_ = 0, tried_ = 0; // of the addresses, in this round
    bool dialling_ = false;
    BackOff back_off_{10'000'000, 500'000'000}; // between two attempts
    StoreId instance_{};
    int64_t ticked_ns_ = 0, opened_ns_ = 0;
    bool was_open_ = false, volatile_ = false, nobody_listens_ = true, left_ = false;
    PostedTask<StoreClient, &StoreClient::enter> enter_{*this};
    PostedTask<StoreClient, &StoreClient::leave> leave_{*this};
    PostedTask<StoreClient, &StoreClient::part> part_{*this};
    PostedTask<StoreClient, &StoreClient::send_gathered> flush_soon_{*this};
    PostedTask<StoreClient, &StoreClient::start_ticks> start_ticks_{*this};
    Timer<StoreClient, &StoreClient::dial> dial_timer_{*this};
    Timer<StoreClient, &StoreClient::tick> tick_timer_{*this};
    Timer<StoreClient, &StoreClient::hello_too_late> hello_timer_{*this};
    Closing<StoreClient, &StoreClient::leave> closing_{*this};

    Signal opened_;
};

} // namespace muster
