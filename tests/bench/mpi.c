/* SPDX-License-Identifier: MIT */
/* Open MPI between the two ranks of mpirun -n 2. One way: windows of up to 64 messages or 4 MiB. --mode probe:
 * the reader does not know the size of the next message, and receives by matched probes that do not wait. */
#include "bench.h"

#include <mpi.h>
#include <sys/resource.h>

struct channel {
    int peer, probes;
};
static inline void channel_write(struct channel *c, const void *data, size_t size) {
    MPI_Send(data, (int)size, MPI_BYTE, c->peer, 0, MPI_COMM_WORLD);
}
static void receive_by_probe(void *data) {
    int found = 0, size;
    MPI_Message message;
    MPI_Status status;
    while (!found) MPI_Improbe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &found, &message, &status);
    MPI_Get_count(&status, MPI_BYTE, &size);
    MPI_Mrecv(data, size, MPI_BYTE, &message, MPI_STATUS_IGNORE);
}
static inline void channel_read(struct channel *c, void *data, size_t size) {
    if (c->probes)
        receive_by_probe(data);
    else
        MPI_Recv(data, (int)size, MPI_BYTE, c->peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
static inline size_t channel_read_some(struct channel *c, void *data, size_t most) {
    channel_read(c, data, most);
    return most;
}

#include "patterns.h"

static void one_way(const struct options *o, int rank, struct channel *c) {
    enum { most = 64 };
    MPI_Request requests[most];
    /* Few large ones: the fragments of many would take turns in the same pages, and measure the cache. */
    const long fit = (4 << 20) / (long)o->size, window = fit > most ? most : fit > 1 ? fit : 1;
    unsigned char *data = buffer(o->size);
    double times[rounds + 1];
    MPI_Barrier(MPI_COMM_WORLD);
    for (int round = 0; round <= rounds; round++) {
        const double begun = now_us();
        for (long i = 0; i < per_round(o); i += window) {
            const int k = (int)(per_round(o) - i < window ? per_round(o) - i : window);
            for (int j = 0; j < k; j++)
                if (rank == 0)
                    MPI_Isend(data, (int)o->size, MPI_BYTE, c->peer, 0, MPI_COMM_WORLD, &requests[j]);
                else
                    MPI_Irecv(data, (int)o->size, MPI_BYTE, c->peer, 0, MPI_COMM_WORLD, &requests[j]);
            MPI_Waitall(k, requests, MPI_STATUSES_IGNORE);
        }
        if (rank == 0)
            channel_read(c, data, 1);
        else
            channel_write(c, data, 1);
        times[round] = now_us() - begun;
    }
    if (rank == 0) print_rate(o->size, per_round(o), median(times + 1, rounds));
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    const struct options o = read_options(argc, argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    take_core(o.cores, rank);
    struct channel c = {1 - rank, !strcmp(o.mode, "probe")};
    if (o.what == WHAT_ONEWAY)
        one_way(&o, rank, &c);
    else if (rank == 0)
        first_end(&o, &c, &c);
    else
        second_end(&o, &c, &c);
    if (!strcmp(o.mode, "idle")) { /* what it costs to wait for a second */
        char byte = 0;
        struct rusage before, after;
        const double begun = now_us();
        getrusage(RUSAGE_SELF, &before);
        if (rank == 0) {
            channel_read(&c, &byte, 1);
            getrusage(RUSAGE_SELF, &after);
            const double used = (double)(after.ru_utime.tv_sec - before.ru_utime.tv_sec + after.ru_stime.tv_sec -
                                         before.ru_stime.tv_sec) *
                                    1e6 +
                                (double)(after.ru_utime.tv_usec - before.ru_utime.tv_usec + after.ru_stime.tv_usec -
                                         before.ru_stime.tv_usec);
            printf("idle\t%.6g\n", used / (now_us() - begun) * 100);
        } else {
            sleep(1);
            channel_write(&c, &byte, 1);
        }
    }
    MPI_Finalize();
    return 0;
}
