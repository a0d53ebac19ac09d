// SPDX-License-Identifier: MIT
// Stores in a file: a thread that waits for the lock of the file, and does then what has come meanwhile.
#include "base/thread.hpp"
#include "store/backend/store.hpp"
#include "store/file/file_log.hpp"

#include <condition_variable>
#include <deque>

namespace muster {

namespace {

constexpr uint64_t default_max_bytes = uint64_t{1} << 30;
constexpr size_t max_at_a_time = 1024, max_bytes_at_a_time = 32 << 20;

// Shared by the store and its thread. The thread may be waiting for a process that holds the lock forever: no call
// waits for it.
class FileKeeper final : public Object {
  public:
    explicit FileKeeper(FileLog log) : log_(std::move(log)) {}
    FileLog &log() noexcept { return log_; } // before the thread has begun

    int begin() noexcept {
        retain();
        const int rc = start_thread(
            [](void *self) -> void * {
                static_cast<FileKeeper *>(self)->run();
                static_cast<FileKeeper *>(self)->release();
                return nullptr;
            },
            this);
        if (rc != 0) release();
        return rc;
    }
    void submit(StoreOperation &operation) {
        const std::lock_guard hold(lock_);
        waiting_.emplace_back(&operation);
        changed_.notify_one();
    }
    Withdrawn withdraw(StoreOperation &operation) noexcept {
        const std::lock_guard hold(lock_);
        for (auto at = waiting_.begin(); at != waiting_.end(); ++at)
            if (at->get() == &operation) {
                waiting_.erase(at);
                return Withdrawn::yes;
            }
        return Withdrawn::asked; // it is being done
    }
    void stop() noexcept {
        const std::lock_guard hold(lock_);
        stopped_ = true;
        changed_.notify_one();
    }

  private:
    struct Done {
        Ref<StoreOperation> operation;
        StoreAnswer answer;
    };

    void run() noexcept {
        pthread_setname_np(pthread_self(), "muster file");
        for (;;) {
            {
                std::unique_lock hold(lock_);
                changed_.wait(hold, [&] { return stopped_ || !waiting_.empty(); });
                if (waiting_.empty()) return;
            }
            const Result<void> locked = guarded([&] { return log_.lock(); });
            std::vector<Done> batch;
            take(batch);
            const Result<void> done = locked ? guarded([&] { return run(batch); }) : locked;
            if (!done) log_.forget();
            log_.unlock();
            for (Done &one : batch) {
                if (!done) one.answer = {failed(done.error(), *one.operation), {}};
                one.operation->finish(std::move(one.answer));
            }
        }
    }
    Error failed(const Error &why, const StoreOperation &operation) const noexcept {
        if (!log_.in_doubt() || !operation.request.has_effect()) return why;
        return Error::make(MUSTER_E_PEER, "%s; it could not be taken back and may have been applied", why.message);
    }
    // Out of memory is a failure like others.
    template <class Body>
    static Result<void> guarded(Body &&body) noexcept {
        try {
            return body();
        } catch (const std::bad_alloc &) {
            return Error::make(MUSTER_E_NOMEM, "out of memory");
        }
    }

    void take(std::vector<Done> &batch) noexcept {
        const std::lock_guard hold(lock_);
        size_t bytes = 0;
        while (!waiting_.empty() && batch.size() < max_at_a_time && bytes < max_bytes_at_a_time) {
            bytes += waiting_.front()->request.bytes();
            const Result<void> taken = guarded([&]() -> Result<void> {
                batch.push_back({waiting_.front(), {}});
                return {};
            });
            if (!taken) return; // the next time
            waiting_.pop_front();
        }
    }

    // All of them, or none.
    Result<void> run(std::vector<Done> &batch) {
        if (auto read = log_.catch_up(); !read) return read;
        StoreTable &table = log_.table();
        for (Done &one : batch) {
            StoreOperation &operation = *one.operation;
            const uint64_t before = table.revision();
            if (table.do_now(operation)) {
                one.answer = std::move(operation.answer);
            } else {
                const std::string names = operation.request.names_of_waits();
                one.answer.error =
                    operation.looks_once()
                        ? Error::make(MUSTER_AGAIN, "%s: absent", names.c_str())
                        : Error::make(MUSTER_E_UNSUPPORTED, "%s: absent, and the store cannot wait", names.c_str());
            }
            if (table.revision() != before) log_.note(operation.request);
        }
        if (auto written = log_.write(); !written) return written;
        // It can be written on without that.
        static_cast<void>(guarded([&] { return log_.tidy(); }));
        return {};
    }

    FileLog log_;     // of the thread
    std::mutex lock_; // guards the rest
    std::condition_variable changed_;
    std::deque<Ref<StoreOperation>> waiting_;
    bool stopped_ = false;
};

class FileStore final : public StoreBackend {
  public:
    FileStore(Context &context, Ref<FileKeeper> keeper, int64_t grace_ns)
        : StoreBackend(context, grace_ns), keeper_(std::move(keeper)) {}
    uint32_t capabilities() const noexcept override { return MUSTER_STORE_CAN_TRANSACT; }
    bool answers_later() const noexcept override { return true; }
    bool submit(StoreOperation &operation) noexcept override {
        try {
            keeper_->submit(operation);
        } catch (const std::bad_alloc &) {
            operation.finish({Error::make(MUSTER_E_NOMEM, "out of memory"), {}});
        }
        return false;
    }
    Withdrawn withdraw(StoreOperation &operation, std::string &missing) noexcept override {
        try {
            missing = operation.request.waits() ? operation.request.names_of_waits() : operation.request.name(0);
        } catch (const std::bad_alloc &) { // then the text does without
        }
        return keeper_->withdraw(operation);
    }
    bool forget(StoreOperation &) noexcept override { return true; } // the thread's answer is dropped
    Status keep(uint64_t, int64_t) noexcept override { return MUSTER_E_STALE; }
    void abandon(uint64_t, int64_t) noexcept override {}

  private:
    ~FileStore() override {
        if (!context().forked()) keeper_->stop();
    }
    const Ref<FileKeeper> keeper_;
};

} // namespace

// file:///path, file:///path?sync=no
Result<Ref<StoreBackend>> open_file_store(const StoreOpening &opening) {
    const auto wrong = [&](const char *why) {
        return Error::make(MUSTER_E_ADDRESS, "store \"%s\": %s", opening.shown.c_str(), why);
    };
    std::string_view rest = opening.behind_scheme();
    if (!rest.starts_with("///") || rest.find('\0') != std::string_view::npos) return wrong("it is file:///path");
    rest.remove_prefix(2);
    bool sync = true;
    if (const size_t question = rest.find('?'); question != std::string_view::npos) {
        const std::string_view options = rest.substr(question + 1);
        if (options != "sync=no" && options != "sync=yes") return wrong("the one option is sync=yes or sync=no");
        sync = options == "sync=yes";
        rest = rest.substr(0, question);
    }
    if (rest.back() == '/') return wrong("it names a folder");
    const uint64_t max_bytes = opening.config.max_bytes == 0 ? default_max_bytes : opening.config.max_bytes;
    FileLog log(std::string(rest), sync, max_bytes);
    if (auto opened = log.open(); !opened) return opened.error();
    const auto keeper = make_ref<FileKeeper>(std::move(log));
    auto store = make_ref<FileStore>(opening.context, keeper, opening.config.grace_ns);
    if (const int rc = keeper->begin(); rc != 0)
        return Error::from_errno(rc, MUSTER_E_NOMEM, "store \"%s\": a thread", opening.shown.c_str());
    return Ref<StoreBackend>(std::move(store));
}

} // namespace muster
