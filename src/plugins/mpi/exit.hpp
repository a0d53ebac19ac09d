// SPDX-License-Identifier: MIT
#pragma once
// Finalises an MPI that the plug-in has initialised. A process that exits without MPI_Finalize makes mpirun end the
// whole job, and MPI_Finalize waits for all ranks, forever if one has died. So at exit the ranks first meet at a
// barrier on sockets: each running rank has a connection to rank 0, which the kernel closes when the rank dies. If all
// ranks arrive, all finalise; if one is gone, none does, and mpirun handles that as it handles a dead rank.
//
// Between the two each rank receives all remaining messages: MPI_Finalize may wait until a message is received (MPICH's
// does) whose context is gone.
//
// Used by the thread of the host in exit(); before that, by the thread that has a Node::Hold.
namespace mpi {

class Node;

class ExitBarrier {
  public:
    static void begin(Node &node);       // after MPI_Init: registers the exit handler
    static void open(Node &node);        // rank 0: before its RankInfo is sent
    static void ranks_known(Node &node); // the others: connect to rank 0

  private:
    static void at_exit();
    static bool meet(Node &node);
    static bool gather(Node &node);
    static bool settle(Node &node);
};

} // namespace mpi
