/* SPDX-License-Identifier: MIT */
/* Collective operations of MPI; see collective.h. mpirun starts the ranks. */
#include "collective.h"

#include <mpi.h>

static void op_barrier(void) {
    MPI_Barrier(MPI_COMM_WORLD);
}
static void op_broadcast(float *data, size_t count) {
    MPI_Bcast(data, (int)count, MPI_FLOAT, 0, MPI_COMM_WORLD);
}
static void op_all_reduce(const float *input, float *output, size_t count) {
    MPI_Allreduce(input, output, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}
static void op_reduce_scatter(const float *input, float *output, size_t count) {
    MPI_Reduce_scatter_block(input, output, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    struct collective c = read_collective(argc, argv);
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &c.ranks);
    run_collective(&c, rank);
    MPI_Finalize();
    return 0;
}
