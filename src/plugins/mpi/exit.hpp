// SPDX-License-Identifier: MIT
#pragma once
// The end of an MPI that we began. A process that exits without MPI_Finalize makes mpirun end the whole job, and
// MPI_Finalize waits for all ranks, for ever if one has died. So at exit the ranks first come together on sockets of
// their own: each that still runs holds a line to rank 0, which the kernel cuts when it dies. When all have come,
// everybody finalises; when one is gone, nobody does, and how mpirun takes that is what it does with a dead rank.
//
// Before that everybody takes in what nobody has asked for: MPI_Finalize may wait for a message to be received (MPICH's
// does), and the context it was for may be gone.
//
// Host's thread in exit(), and whoever holds MPI before that.
namespace mpi {

class Node;

class ExitBarrier {
  public:
    static void begin(Node &node);              // MPI is initialised: ask to be called at exit
    static void open(Node &node);               // rank 0: before its card goes round
    static void everybody_is_known(Node &node); // the others: take up the line

  private:
    static void at_exit();
    static bool meet(Node &node);
    static bool gather(Node &node);
    static bool settle(Node &node);
};

} // namespace mpi
