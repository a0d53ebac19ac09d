/* SPDX-License-Identifier: MIT */
/* Compare-and-exchange by rank 0 on a word of rank 1 of the same host: nanoseconds per operation.
 * Built twice: with OpenSHMEM (oshcc -DBENCH_SHMEM; oshrun -n 2), and with MPI's one-sided operations (mpirun -n 2,
 * whose
 * --mca osc selects a component; its default one crashes in this operation in Open MPI 4.1.4). */
#include "bench.h"

#ifdef BENCH_SHMEM
#include <shmem.h>
#else
#include <mpi.h>
#endif

int main(int argc, char **argv) {
    long count = 200000;
    for (int i = 1; i + 1 < argc; i += 2)
        if (!strcmp(argv[i], "--scale")) count = count * atol(argv[i + 1]) / 100;
    if (count < 1) count = 1;
#ifdef BENCH_SHMEM
    shmem_init();
    unsigned long *const word = shmem_malloc(sizeof *word);
    *word = 0;
    shmem_barrier_all();
    const double begun = now_us();
    unsigned long seen = 0;
    for (long i = 0; shmem_my_pe() == 0 && i < count; i++)
        seen = shmem_ulong_atomic_compare_swap(word, seen, (unsigned long)i, 1);
    if (shmem_my_pe() == 0) printf("ns\t%.6g\n", (now_us() - begun) * 1e3 / (double)count);
    fflush(stdout);
    shmem_barrier_all();
    shmem_global_exit(0); /* shmem_finalize() crashes in Debian 12 */
#else
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Win window;
    uint64_t *word, seen = 0;
    MPI_Win_allocate(4096, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &word, &window);
    *word = 0;
    MPI_Win_lock_all(MPI_MODE_NOCHECK, window);
    MPI_Barrier(MPI_COMM_WORLD);
    const double begun = now_us();
    for (long i = 0; rank == 0 && i < count; i++) {
        const uint64_t desired = (uint64_t)i, expected = seen;
        MPI_Compare_and_swap(&desired, &expected, &seen, MPI_UINT64_T, 1, 0, window);
        MPI_Win_flush(1, window);
    }
    if (rank == 0) printf("ns\t%.6g\n", (now_us() - begun) * 1e3 / (double)count);
    fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    MPI_Finalize();
#endif
    return 0;
}
