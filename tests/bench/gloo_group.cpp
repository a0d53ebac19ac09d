// SPDX-License-Identifier: MIT
// Collective operations of Gloo over its tcp transport, between processes of one host; see collective.h.
#include "collective.h"

#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/reduce_scatter.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <memory>
#include <string>

static std::shared_ptr<gloo::rendezvous::Context> context;

static void op_barrier(void) {
    gloo::BarrierOptions options(context);
    gloo::barrier(options);
}
static void op_broadcast(float *data, size_t count) {
    gloo::BroadcastOptions options(context);
    options.setOutput(data, count);
    options.setRoot(0);
    gloo::broadcast(options);
}
static void op_all_reduce(const float *input, float *output, size_t count) {
    gloo::AllreduceOptions options(context);
    options.setInput(const_cast<float *>(input), count);
    options.setOutput(output, count);
    options.setReduceFunction(static_cast<void (*)(void *, const void *, const void *, size_t)>(&gloo::sum<float>));
    gloo::allreduce(options);
}
static void op_reduce_scatter(const float *input, float *output, size_t count) {
    const std::vector<int> counts(static_cast<size_t>(context->size), static_cast<int>(count));
    memcpy(output, input, count * static_cast<size_t>(context->size) * sizeof *input); // it works in place
    gloo::ReduceScatterHalvingDoubling<float> once(context, {output}, static_cast<int>(count) * context->size, counts);
    once.run();
}

struct member {
    const struct collective *collective;
    int rank;
    const char *folder;
};

static void run_member(void *argument) {
    const auto *me = static_cast<const member *>(argument);
    gloo::transport::tcp::attr attributes;
    attributes.hostname = "127.0.0.1";
    auto device = gloo::transport::tcp::CreateDevice(attributes);
    gloo::rendezvous::FileStore store(me->folder);
    context = std::make_shared<gloo::rendezvous::Context>(me->rank, me->collective->ranks);
    context->connectFullMesh(store, device);
    run_collective(me->collective, me->rank);
    op_barrier();
}

int main(int argc, char **argv) {
    const struct collective c = read_collective(argc, argv);
    const char *const tmp = getenv("TMPDIR");
    std::string folder = std::string(tmp != nullptr ? tmp : "/tmp") + "/muster-gloo-XXXXXX";
    if (mkdtemp(folder.data()) == nullptr) die_errno("mkdtemp");
    pid_t children[256];
    member me = {&c, 0, folder.c_str()};
    for (int r = 0; r < c.ranks; r++) {
        me.rank = r;
        children[r] = start_process(run_member, &me);
    }
    for (int r = 0; r < c.ranks; r++) join_process(children[r]);
    const std::string remove = "rm -rf '" + folder + "'";
    return system(remove.c_str()) == 0 ? 0 : 1;
}
