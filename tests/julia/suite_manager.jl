# SPDX-License-Identifier: MIT
# The managers distributed_suite.jl asks for, over the transport named in MUSTER_TRANSPORT: shm, unix, tcp, zmq, zmq-upgrade.
# (tcp, unix and zmq stay on their sockets: with upgrades they would nearly be the shm suite again.)
using Muster

const suite_transport = get(ENV, "MUSTER_TRANSPORT", "shm")
suite_options() = suite_transport == "zmq-upgrade" ? (transport = "zmq", upgrade = true) :
                  (transport = suite_transport, upgrade = suite_transport == "shm")

make_manager(np::Int) = MusterManager(np; suite_options()...)

# As topology.jl's own manager numbers its workers.
function make_topology_manager(np::Int)
    first = Ref(0) # the manager counts its workers through the life of the process
    place(number) = (first[] == 0 && (first[] = number); number - first[] + 1)
    return MusterManager(np; suite_options()..., ident = place, connect_idents = n -> place(n)+2:2:np)
end
