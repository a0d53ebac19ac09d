# SPDX-License-Identifier: MIT
# The managers distributed_suite.jl asks for, over the transport named in MUSTER_TRANSPORT: shm, unix, tcp, zmq,
# zmq-upgrade, mpi, mpi-upgrade.
# (tcp, unix, zmq and mpi do without upgrades: with them they would nearly be the shm suite again.)
using Muster

const suite_transport = get(ENV, "MUSTER_TRANSPORT", "shm")
suite_options() = suite_transport == "zmq-upgrade" ? (transport = "zmq", upgrade = true) :
                  (transport = suite_transport, upgrade = suite_transport == "shm")

# With mpi the suite is rank 0 of a job, and takes its workers from the others as it needs them.
const among_ranks = startswith(suite_transport, "mpi")
among_ranks && Muster.start_mpi_main(workers = 0, upgrade = suite_transport == "mpi-upgrade")
suite_workers(np; options...) = among_ranks ? MPIManager(np; options...) : MusterManager(np; suite_options()..., options...)

make_manager(np::Int) = suite_workers(np)

# As topology.jl's own manager numbers its workers.
function make_topology_manager(np::Int)
    first = Ref(0) # the manager counts its workers through the life of the process
    place(number) = (first[] == 0 && (first[] = number); number - first[] + 1)
    return suite_workers(np; ident = place, connect_idents = n -> place(n)+2:2:np)
end
