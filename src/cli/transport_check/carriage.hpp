// SPDX-License-Identifier: MIT
#pragma once
// served:///path - a transport that this program serves itself, through serve.h: bytes travel over Unix sockets, pumped
// by two threads for each connection. With it the suite checks host-served transports.
#include <muster/serve.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace check {

class Carriage {
  public:
    Carriage(muster_context *context, bool pulled);
    ~Carriage();
    Carriage(const Carriage &) = delete;
    Carriage &operator=(const Carriage &) = delete;
    void await_listeners(unsigned count); // until so many requests to listen were answered, ever

  private:
    struct Door {
        int socket = -1;
        std::string path;
        std::thread thread;
    };
    muster_status register_callbacks(muster_context *context, muster_error &error);
    void serve_pulled();
    void serve_dispatched();
    void open(uint64_t request, const std::string &address);
    void listen(uint64_t request, const std::string &address);
    void do_listen(uint64_t request, const std::string &address);
    void closed(uint64_t request);
    void accept_all(uint64_t request, int socket);
    void pump(muster_stream *end, int socket);
    std::string address_of(uint64_t request) const;

    muster_queue *queue_ = nullptr;
    std::thread server_;
    std::mutex lock_;
    std::condition_variable answered_;
    unsigned listens_ = 0;
    std::map<uint64_t, Door> doors_;
    std::vector<std::thread> pumps_;
};

} // namespace check
