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

// A broker below another one, and a member at each.
SCENARIO(broker, tree) {
    if (access(plugin_file().c_str(), R_OK) != 0) return;
    Context brokers, above, below;
    create(brokers);
    create(above);
    create(below);
    Queue queue;
    {
        const Paused guard;
        OK(muster_queue_create, above, nullptr, queue.out(), &error);
    }
    const char *const at = "zmq://127.0.0.1:0/";
    muster_broker_config config = {};
    config.struct_size = sizeof config;
    config.broker_secret = "the secret of the brokers";
    config.broker_secret_bytes = 25;
    Broker root, child;
    OK(muster_broker_open, brokers, at, strlen(at), &config, root.out(), &error);
    char addresses[2][256];
    size_t bytes[2] = {};
    OK(muster_broker_address, root, addresses[0], sizeof addresses[0], &bytes[0]);
    config.parent = addresses[0];
    config.parent_bytes = bytes[0];
    OK(muster_broker_open, brokers, at, strlen(at), &config, child.out(), &error);
    OK(muster_broker_address, child, addresses[1], sizeof addresses[1], &bytes[1]);
    const auto named = [&](int broker) {
        std::string address(addresses[broker] + 6, bytes[broker]);
        address.resize(bytes[broker] - 6);
        const size_t options = address.find('?');
        address.insert(options == std::string::npos ? address.size() : options, "service");
        return "zmq://one@" + address + (options == std::string::npos ? "?" : "&") + "upgrade=no";
    };
    Link link;
    connect(below, named(1), link, {above, queue, named(0)});
    exchange(link.dialled, link.accepted);
    link = {};
    OK(muster_broker_close, child, second);
    OK(muster_broker_close, root, second);
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
