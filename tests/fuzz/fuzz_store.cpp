// SPDX-License-Identifier: MIT
// What clients of a store and its server say to each other: cut into pieces in any way it means the same, what was
// understood can be said again, and a table that does it keeps its books.
#include "input.hpp"

#include "store/table/table.hpp"
#include "store/wire/record_socket.hpp"

#include <list>
#include <string>
#include <vector>

using namespace muster;

namespace {

struct Asked final : StoreWaiter {
    explicit Asked(StoreRequest what) noexcept : StoreWaiter(std::move(what)) {}
};

// A server without sockets, or a client: writes down what it has understood.
class Notes final : public RecordReader::Taker {
  public:
    explicit Notes(bool server) noexcept : server_(server) {}
    std::string events;

    bool take_record(const StoreHead &head, std::string_view body) override {
        FUZZ_CHECK(body.size() == head.bytes && body.size() <= store_record_max);
        // A copy of its own size, so that reading past it is seen.
        const std::vector<char> copy(body.begin(), body.end());
        const std::string_view exact(copy.data(), copy.size());
        events += std::to_string(static_cast<int>(head.type)) + " " + std::to_string(head.number) + "\n";
        StoreId id;
        bool resume = false;
        StoreWelcome welcome;
        switch (head.type) {
        case StoreRecord::hello:
            return get_hello(exact, id, resume);
        case StoreRecord::welcome:
            return get_welcome(exact, welcome);
        case StoreRecord::ask:
            return server_ && ask(head, exact);
        case StoreRecord::answer:
            return !server_ && answer(head, exact);
        default:
            return body.empty();
        }
    }

  private:
    bool ask(const StoreHead &head, std::string_view body) {
        uint64_t floor = 0;
        uint32_t prefix = 0;
        std::vector<muster_store_op> ops;
        if (!get_ask(body, floor, prefix, ops)) return false;
        FUZZ_CHECK(!ops.empty() && ops.size() <= store_ops_max);
        auto what = StoreRequest::read(ops.data(), ops.size(), {});
        if (!what) {
            events += what.error().message;
            return true;
        }
        what->hide_prefix(prefix);
        std::string again;
        put_ask(again, head.number, floor, false, *what);
        uint64_t floor_again = 0;
        std::vector<muster_store_op> ops_again;
        FUZZ_CHECK(get_ask(std::string_view(again).substr(store_head_bytes), floor_again, prefix, ops_again));
        FUZZ_CHECK(floor_again == floor && ops_again.size() == ops.size());
        Asked &asked = asked_.emplace_back(std::move(*what));
        List<StoreWaiter> over;
        table_.submit(asked, over);
        if (asked.hangs()) events += table_.missing(asked.request);
        while (StoreWaiter *const one = over.pop_front()) {
            std::string record;
            put_answer(record, head.number, one->answer);
            StoreAnswer read;
            FUZZ_CHECK(get_answer(std::string_view(record).substr(store_head_bytes), read));
            FUZZ_CHECK(read.error.status == one->answer.error.status);
            FUZZ_CHECK(static_cast<bool>(read.result) == static_cast<bool>(one->answer.result));
            events += record;
        }
        return true;
    }

    bool answer(const StoreHead &head, std::string_view body) {
        StoreAnswer read;
        if (!get_answer(body, read)) return false;
        std::string again;
        put_answer(again, head.number, read);
        StoreAnswer second;
        FUZZ_CHECK(get_answer(std::string_view(again).substr(store_head_bytes), second));
        events += again;
        return true;
    }

    const bool server_;
    StoreTable table_{1 << 20};
    std::list<Asked> asked_;
};

bool read_in_pieces(const uint8_t *data, size_t size, size_t piece, Notes &notes) {
    RecordReader reader;
    reader.start({});
    for (size_t at = 0; at < size; at += piece) {
        const std::vector<unsigned char> copy(data + at, data + std::min(size, at + piece));
        if (!reader.feed(copy.data(), copy.size(), notes)) return false;
        FUZZ_CHECK(reader.held() <= 2 * (size + store_head_bytes)); // no more than has come
    }
    return true;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Input in(data, size);
    const bool server = (in.byte() & 1) == 0;
    const size_t piece = 1 + in.byte();
    size_t left;
    const uint8_t *bytes = in.take(in.left(), left);
    Notes whole(server), pieces(server);
    const bool one = read_in_pieces(bytes, left, left + 1, whole);
    const bool other = read_in_pieces(bytes, left, piece, pieces);
    FUZZ_CHECK(one == other && whole.events == pieces.events);
    return 0;
}
