/* SPDX-License-Identifier: MIT */
/* What mpirun starts beside a cluster:  --what start | broadcast [--size BYTES]
 * start: rank 0 tells when all are there. broadcast: the time of an MPI_Bcast until every rank has all of it. */
#include "bench.h"

#include <mpi.h>

static void broadcast(int rank, int size, long rounds) {
    unsigned char *data = buffer((size_t)size);
    double *times = (double *)calloc((size_t)rounds + 1, sizeof *times);
    if (times == NULL) die_errno("calloc");
    for (long round = 0; round <= rounds; round++) { /* the first one makes the connections */
        MPI_Barrier(MPI_COMM_WORLD);
        const double begun = now_us();
        MPI_Bcast(data, size, MPI_BYTE, 0, MPI_COMM_WORLD);
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
    if (!strcmp(what, "broadcast")) {
        broadcast(rank, size, scale < 100 ? 1 : 3);
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) printf("at_us\t%.1f\n", now_us());
    }
    MPI_Finalize();
    return 0;
}
