# SPDX-License-Identifier: MIT
# Workers and the master share a stack in a file of /dev/shm, without a lock, and one of them is killed. Nodes are indices.
# A node that was popped is used again when no process can read it any more.
#   julia shared_stack.jl
using Distributed, Muster
addprocs(MusterManager(3; transport = "shm"))

@everywhere using Muster, Mmap
@everywhere begin
    const NODES, PENDING, PAGE = 1000, 1024, 4096 # all nodes may wait: then retire! always has room
    const EPOCH_AT = 4 * PAGE                     # bytes; before it an ABA cell, words and the nodes
    const FIRST = 16                              # index of the first node

    struct Stack
        words::Vector{UInt64} # a node is the index of the word that has the next one
        top::Muster.AbaCell{Vector{UInt64}}
        token::Muster.EpochToken
    end
    Stack(io, epoch) =
        (words = Mmap.mmap(io, Vector{UInt64}, EPOCH_AT ÷ 8); Stack(words, Muster.AbaCell(words, 1), Muster.register(epoch)))

    function Base.push!(s::Stack, node)
        top = s.top[]
        while true
            s.words[node] = top.value
            top, done = Muster.compare_exchange!(s.top, top, node)
            done && return s
        end
    end

    # nothing if it is empty.
    Base.pop!(s::Stack) = Muster.pinned(s.token) do
        top = s.top[]
        while top.value != 0
            node = top.value
            top, done = Muster.compare_exchange!(s.top, top, s.words[node])
            done && return node
        end
        return nothing
    end

    function use_nodes(s::Stack)
        node = pop!(s)
        node === nothing || Muster.retire!(s.token, node)
        foreach(free -> push!(s, free), Muster.poll!(s.token))
        return node !== nothing
    end

    started_word(s::Stack) = Muster.AtomicWord(s.words, 3)
    stop_word(s::Stack) = Muster.AtomicWord(s.words, 4)

    function use_until_stopped(path)
        io = open(path, "r+")
        stack, used = Stack(io, Muster.open_epoch(io; offset = EPOCH_AT)), 0
        use_nodes(stack) # compiles it
        Muster.fetch!(+, started_word(stack), 1)
        notify(started_word(stack))
        while stop_word(stack)[] == 0
            used += use_nodes(stack)
        end
        close(stack.token)
        return used
    end
end

function main(path, io)
    truncate(io, EPOCH_AT + Muster.epoch_size(8, PENDING))
    epoch = Muster.Epoch(max_tokens = 8, max_pending = PENDING, fd = io, offset = EPOCH_AT)
    stack = Stack(io, epoch)
    foreach(node -> push!(stack, node), FIRST:(FIRST + NODES - 1))
    pids = [remotecall_fetch(getpid, w) for w in workers()]
    uses = [remotecall(use_until_stopped, w, path) for w in workers()]
    Muster.wait_until((started_word(stack), ==, 3); timeout = 60)
    used = 0
    while used < 100_000
        used += use_nodes(stack)
        used == 50_000 && run(`kill -KILL $(pids[1])`)
        used % 1000 == 0 && yield()
    end
    stop_word(stack)[] = 1
    for use in uses[2:end]
        used += fetch(use)
    end
    # Every node is on the stack in the end, except the nodes that the killed process had taken and not returned: one
    # after a pop, or up to 8 after a poll.
    late = time() + 20
    while Muster.stats(epoch).pending > 0 && time() < late
        Muster.synchronize(stack.token; timeout = 1)
        foreach(free -> push!(stack, free), Muster.poll!(stack.token))
    end
    left = 0
    while pop!(stack) !== nothing
        left += 1
    end
    deaths = Muster.stats(epoch).deaths
    println("$NODES nodes were used more than $used times by 4 processes; one was killed, $deaths token was taken over, ",
        "$left nodes are left")
    @assert left >= NODES - 8
end

mktemp(main, "/dev/shm")
rmprocs(filter(w -> w != 2, workers()))
