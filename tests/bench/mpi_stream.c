/* SPDX-License-Identifier: MIT */
/* Muster over mpi:// between the two ranks of mpirun -n 2:  --over thread|host --mode moved|through
 * thread: the plug-in initialises MPI, the context's own thread calls it. host: this program has initialised MPI with
 * MPI_THREAD_FUNNELED, and its one thread drives the context. moved: to shared memory, as by
 * default; through: MPI; either with -idle: and then silent for a second. */
#include "muster.h"

#include <mpi.h>
#include <sys/resource.h>

static double processor_time(void) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e6 +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

int main(int argc, char **argv) {
    const struct options o = read_options(argc, argv);
    const int by_host = !strcmp(o.over, "host");
    const char *text = getenv("OMPI_COMM_WORLD_RANK") ? getenv("OMPI_COMM_WORLD_RANK") : getenv("PMI_RANK");
    const int rank = text ? atoi(text) : 0;
    static const char secret[] = "both ends of the benchmark know this";
    muster_context_config config = {.struct_size = sizeof config, .secret = secret, .secret_bytes = sizeof secret - 1};
    muster_context *c = NULL;
    muster_error error;
    take_core(o.cores, rank); /* before there are threads */
    if (by_host) {
        int level;
        MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
        config.flags = MUSTER_CONTEXT_EXTERNAL;
    }
    check("context", muster_context_create(&config, &c, &error), &error);
    check("plug-in", muster_plugin_find(c, "mpi", 3, &error), &error);
    muster_stream *streams[2];
    muster_listener *listener = NULL;
    char address[64];
    const int size = snprintf(address, sizeof address, "mpi://%s/bench%s", rank == 0 ? "" : "0",
                              !strncmp(o.mode, "through", 7) ? "?upgrade=no" : "");
    if (rank == 0) {
        check("listen", muster_transport_listen(c, address, (size_t)size, NULL, &listener, &error), &error);
        for (int i = 0; i < 2; i++)
            check("accept", muster_listener_accept(listener, 10000000000, &streams[i], &error), &error);
    } else {
        const muster_transport_config patient = {.struct_size = sizeof patient, .retry_ns = 10000000000};
        for (int i = 0; i < 2; i++)
            check("dial", muster_transport_dial(c, address, (size_t)size, &patient, 10000000000, &streams[i], &error),
                  &error);
    }
    struct channel first = {streams[0]}, second = {streams[o.what == WHAT_HANDOVER]};
    if (rank == 0)
        first_end(&o, &first, &second);
    else
        second_end(&o, &second, &first);
    if (strstr(o.mode, "idle") == NULL) {
    } else if (rank == 0) { /* and what it costs to be connected and silent */
        const double before = processor_time(), begun = now_us();
        char byte;
        size_t moved;
        muster_stream_read(streams[0], &byte, 1, 1000000000, &moved); /* the other end sleeps as well */
        printf("idle\t%.6g\n", (processor_time() - before) / (now_us() - begun) * 100);
    } else {
        char byte;
        size_t moved;
        muster_stream_read(streams[0], &byte, 1, 1000000000, &moved);
    }
    for (int i = 0; i < 2; i++) muster_stream_close(streams[i], 10000000000), muster_stream_release(streams[i]);
    muster_listener_release(listener);
    check("close", muster_context_close(c, 10000000000), NULL);
    muster_context_release(c);
    if (by_host) MPI_Finalize();
    return 0;
}
