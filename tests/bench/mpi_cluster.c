/* SPDX-License-Identifier: MIT */
/* What mpirun starts beside a cluster:  --what start | broadcast | broadcast-read [--size BYTES]
 * start: rank 0 tells when all are there. broadcast: the time of an MPI_Bcast until every rank has all of it, or has
 * read it, too. */
#include "bench.h"

#include <mpi.h>

static volatile uint64_t sum; /* so that it is not left out */

static void add_up(const unsigned char *data, int size) {
    const uint64_t *words = (const uint64_t *)data;
    uint64_t all = 0;
    for (size_t i = 0; i < (size_t)size / sizeof *words; i++) all += words[i];
    sum = all;
}

static void broadcast(int rank, int size, int reads, long rounds) {
    unsigned char *data = buffer((size_t)size);
    double *times = (double *)calloc((size_t)rounds + 1, sizeof *times);
    if (times == NULL) die_errno("calloc");
    for (long round = 0; round <= rounds; round++) { /* the first one makes the connections */
        MPI_Barrier(MPI_COMM_WORLD);
        const double begun = now_us();
        MPI_Bcast(data, size, MPI_BYTE, 0, MPI_COMM_WORLD);
        if (reads && rank != 0) add_up(data, size);
        MPI_Barrier(MPI_COMM_WORLD);
        times[round] = now_us() - begun;
    }
    if (rank == 0) printf("ms\t%.6g\n", median(times + 1, rounds) * 1e-3);
    free(times);
}

int main(int argc, char **argv) {
    const char *what = "start";
    int size = 80000000, rank;
    long scale = 100;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--what"))
            what = argv[i + 1];
        else if (!strcmp(argv[i], "--size"))
            size = atoi(argv[i + 1]);
        else if (!strcmp(argv[i], "--scale"))
            scale = atol(argv[i + 1]);
        else
            die(argv[i], "unknown option");
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const int reads = !strcmp(what, "broadcast-read");
    if (reads || !strcmp(what, "broadcast")) {
        broadcast(rank, size, reads, scale < 100 ? 1 : 3);
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) printf("at_us\t%.1f\n", now_us());
    }
    MPI_Finalize();
    return 0;
}
