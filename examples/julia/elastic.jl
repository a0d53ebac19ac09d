# SPDX-License-Identifier: MIT
# Workers join a running master and leave it: two at first, one of them is killed in the middle of its work, a third joins late.
#
#   julia elastic.jl                   examples/run julia sets everything up
#
# The workers are processes that know the master's address and the secret, nothing else; they could run anywhere. The counts
# must be correct, whichever worker computes them.
using Distributed, Muster

const batches = [i:i+9_999 for i in 0:10_000:590_000]
const code = quote
    is_prime(n) = n > 1 && all(d -> n % d != 0, 2:isqrt(n))
    function count_primes(batch, progress)
        counted = count(is_prime, batch)
        put!(progress, myid())
        return counted
    end
end
Core.eval(Main, code)

Muster.configure!(secret = rand(UInt8, 32))
const manager = Muster.ElasticManager()

# A worker takes the secret from MUSTER_SECRET_FILE, from MUSTER_SECRET, or as here from its standard input.
function start_worker(name)
    program = """
        using Muster
        Muster.configure!(secret = hex2bytes(readline()))
        Muster.start_elastic_worker($(repr(Muster.address(manager))); name = $(repr(name)))
        """
    worker = open(`$(Base.julia_cmd()) --startup-file=no -e $program`, "w", stdout)
    println(worker.in, bytes2hex(Muster.secret()))
    return worker
end

# Returns the next event, which has to be of this kind.
function await_event(kind)
    event = Muster.next_event(manager; timeout = 120)
    event !== nothing && event.kind === kind || error("not $kind, but $event")
    println("worker $(event.id), called $(event.name): $kind", isempty(event.text) ? "" : " ($(event.text))")
    kind === :joined && remotecall_wait(Core.eval, event.id, Main, code)
    return event.id
end

# Counts on the workers that are present. Another worker repeats what a worker had begun when it died.
function count_all(progress)
    counts = pmap(batch -> count_primes(batch, progress), batches;
        retry_delays = zeros(5), retry_check = (_, problem) -> problem isa ProcessExitedException)
    return sum(counts)
end

new_progress() = RemoteChannel(() -> Channel{Int}(2 * length(batches)))
expected = sum(batch -> count(is_prime, batch), batches)

processes = Dict(name => start_worker(name) for name in ("one", "two"))
ids = [await_event(:joined), await_event(:joined)]

progress = new_progress()
counting = @async count_all(progress)
foreach(_ -> take!(progress), 1:10)
kill(processes["one"], 9)
await_event(:died)
println(fetch(counting), " primes, counted by ", workers(), " in the end")

processes["late"] = start_worker("late")
late = await_event(:joined)
progress = new_progress()
again = count_all(progress)
by = [take!(progress) for _ in batches]
println(again, " primes; ", join(["$(count(isequal(id), by)) batches by worker $id" for id in workers()], ", "))

rmprocs(workers())
await_event(:left)
await_event(:left)
close(manager)
right = fetch(counting) == again == expected && late in by
println(right ? "the counts are right, and all ended well" : "not as it should be: $expected primes")
exit(right ? 0 : 1)
