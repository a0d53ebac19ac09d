# SPDX-License-Identifier: MIT
# A member of examples/world.
using Muster

const own = 2.0 # each member adds another power of two, so the sum shows which members take part

function sum_is_right(group, expected)
    numbers = fill(own, 1000)
    Muster.allreduce!(+, group, numbers)
    return all(==(expected), numbers)
end

function take_part(run)
    round = Muster.join_round(run; timeout = 60)
    group = Muster.Group(round; listen = "tcp://127.0.0.1:0")
    try
        members = [own]
        Muster.allreduce!(+, group, members)
        good = sum_is_right(group, members[1])
        println("$(round.world) members in round $(round.number), the sum is $(good ? "right" : "wrong")")
        flush(stdout)
        count = 1
        while round.world == 5 || count < 20 # with five, until one of them dies
            sum_is_right(group, members[1]) || error("wrong")
            count += 1
        end
        close(group)
    catch problem
        problem isa Muster.MusterError || rethrow()
        println(sprint(showerror, problem))
        flush(stdout)
    end
    return round.world
end

function main(url)
    store = Muster.Store(url)
    metrics = Muster.Metrics(store; name = "julia", interval = 0.5)
    run = Muster.rendezvous(url, "world"; min = 4, max = 5, last_call = 2)
    println("ready ", getpid())
    flush(stdout)
    Muster.transact(store, Muster.op(:get, "start"))
    while take_part(run) == 5
    end
    Muster.exit_round(run; timeout = 60)
    close(metrics)
end

Muster.configure!(secret = Vector{UInt8}(ENV["MUSTER_SECRET"]))
main(ARGS[1])
