// SPDX-License-Identifier: MIT
// plugin.h and broker.h: the star, whose plug-in is loaded from the build tree.
#include "connect.hpp"

#include <cstdlib>
#include <cstring>
#include <unistd.h>

using namespace faults;

static std::string plugin_file() {
    const char *const folder = getenv("MUSTER_PLUGIN_PATH");
    return std::string(folder != nullptr ? folder : "") + "/muster-zmq.so";
}

SCENARIO(plugin, load) {
    const std::string file = plugin_file();
    if (access(file.c_str(), R_OK) != 0) return;
    Context context, other;
    create(context);
    create(other);
    OK(muster_plugin_load, context, file.data(), file.size(), &error);
    OK(muster_plugin_find, other, "zmq", 3, &error);
}

SCENARIO(broker, star) {
    if (access(plugin_file().c_str(), R_OK) != 0) return;
    Context broker_context, context;
    create(broker_context);
    create(context);
    Queue queue;
    {
        const Paused guard;
        OK(muster_queue_create, context, nullptr, queue.out(), &error);
    }
    Broker broker;
    const char *const at = "zmq://127.0.0.1:0/";
    OK(muster_broker_open, broker_context, at, strlen(at), nullptr, broker.out(), &error);
    char address[256];
    size_t bytes = 0;
    OK(muster_broker_address, broker, address, sizeof address, &bytes);
    {
        Link link;
        connect(context, queue, "zmq://one@" + std::string(address + 6, bytes - 6) + "service?upgrade=no", link);
        exchange(link.dialled, link.accepted);
    }
    muster_broker_stats stats{};
    OK(muster_broker_get_stats, broker, &stats);
    OK(muster_broker_close, broker, second);
}

SCENARIO(broker, closed_by_begin) {
    if (access(plugin_file().c_str(), R_OK) != 0) return;
    Context context;
    create(context);
    Queue queue;
    OK(muster_queue_create, context, nullptr, queue.out(), &error);
    Broker broker;
    const char *const at = "zmq://127.0.0.1:0/";
    OK(muster_broker_open, context, at, strlen(at), nullptr, broker.out(), &error);
    OK(muster_broker_close_begin, broker, second, queue, 4, &error);
    take_ok(queue, MUSTER_DONE_CALL, 4, "muster_broker_close");
}
