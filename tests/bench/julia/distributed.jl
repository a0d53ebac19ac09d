# SPDX-License-Identifier: MIT
# One repeat of one transport: prints "figure<TAB>value" lines.
#   julia distributed.jl <builtin|shm|unix|tcp|tcp-upgrade|star|star-through> <workers> [smoke]
#   mpiexec -n <workers + 1> julia distributed.jl <mpi|mpi-only> <workers> [smoke]
# builtin is Distributed's own TCP. tcp and unix keep Muster on its sockets; tcp-upgrade is Muster's default, which moves
# links between processes of one host to shared memory. star is zmq://, with the broker in the master; star-through takes
# every byte through that broker. With mpi the ranks of a job are master and workers, from the start; mpi-only keeps every
# byte in MPI, where mpi may move links to shared memory.
using Distributed, Statistics

const kind, count_, smoke = ARGS[1], parse(Int, ARGS[2]), length(ARGS) > 2
empty!(ARGS)
kind == "builtin" || @eval using Muster

const flags = `--startup-file=no`
const among_ranks = kind in ("mpi", "mpi-only")
start() = kind == "builtin" ? addprocs(count_; exeflags = flags) :
          kind in ("tcp", "unix") ?
          addprocs(MusterManager(count_; transport = kind, upgrade = false); exeflags = flags) :
          kind == "tcp-upgrade" ? addprocs(MusterManager(count_; transport = "tcp"); exeflags = flags) :
          kind in ("star", "star-through") ?
          addprocs(MusterManager(count_; transport = "zmq", upgrade = kind == "star"); exeflags = flags) :
          addprocs(MusterManager(count_; transport = kind); exeflags = flags)

say(figure, value) = (println(figure, '\t', value); flush(stdout))
quick(n, m) = smoke ? m : n

if among_ranks
    Muster.start_mpi_main(workers = count_, upgrade = kind == "mpi") # only rank 0 goes on
else
    start() # compiles the master's side of it
    rmprocs(workers())
    say("addprocs", @elapsed(start()))
end
const w = workers()

@everywhere nop(x) = nothing
@everywhere make(n) = ones(n)
@everywhere len(a) = length(a)
const N = 10^7 # Float64s: 80 MB

function small_calls(p, n)
    v = zeros(n)
    for i in 1:n
        v[i] = @elapsed remotecall_fetch(nop, p, 1)
    end
    return median(v)
end
small_calls(w[1], quick(500, 20))
say("small", small_calls(w[1], quick(3000, 50)) * 1e6)

# As a program calls that does something between two calls: everybody is asleep when the next one starts.
function spaced_calls(p, n)
    v = zeros(n)
    for i in 1:n
        sleep(0.002)
        v[i] = @elapsed remotecall_fetch(nop, p, 1)
    end
    return median(v)
end
say("spaced", spaced_calls(w[1], quick(300, 10)) * 1e6)

many() = @elapsed pmap(nop, 1:quick(10^4, 100))
many()
say("pmap", median([many() for _ in 1:quick(3, 1)]) * 1e3)

one() = (GC.gc(); @elapsed remotecall_fetch(make, w[1], N))
all_() = (GC.gc(); @elapsed @sync for p in w; @async remotecall_fetch(make, p, N); end)
const payload = ones(N)
send() = (GC.gc(); @elapsed @sync for p in w; @async remotecall_fetch(len, p, payload); end)
for (name, f) in (("fetch_one", one), ("fetch_all", all_), ("send_all", send))
    f()
    say(name, median([f() for _ in 1:quick(5, 1)]) * 1e3)
end

# The least that any transport leaves: the array is filled in one place and copied to fresh memory in another.
if kind == "builtin"
    for (name, f) in (("made_copied", () -> copy(make(N))), ("copied", () -> copy(payload)))
        f()
        say(name, median([(GC.gc(); @elapsed f()) for _ in 1:quick(5, 1)]) * 1e3)
    end
end

relay(p, q, n) = remotecall_fetch((q, n) -> begin
        t = time_ns()
        for _ in 1:n
            remotecall_fetch(nop, q, 1)
        end
        (time_ns() - t) / 1e3 / n
    end, p, q, n)
if count_ > 1
    relay(w[1], w[2], quick(500, 20))
    say("between", median([relay(w[1], w[2], quick(500, 20)) for _ in 1:quick(5, 1)]))
end

# Processor time of everybody while nothing is asked of them: of all threads, in ns. (The clock of /proc/PID/stat counts
# in steps of 10 ms.)
processor_ns(pid, thread) = parse(Int, split(read("/proc/$pid/task/$thread/schedstat", String))[1])
const everybody = [getpid(); [remotecall_fetch(getpid, p) for p in w]]
const threads = [(pid, thread) for pid in everybody for thread in readdir("/proc/$pid/task")]
all_ns() = sum(processor_ns(pid, thread) for (pid, thread) in threads)
GC.gc(); sleep(1)
all_ns() # compiled
const before = all_ns()
sleep(quick(3, 1))
say("idle", (all_ns() - before) / 1e6 / quick(3, 1) / length(everybody))
rmprocs(w)
