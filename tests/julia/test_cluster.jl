# SPDX-License-Identifier: MIT
# What Distributed's own suite does not ask of a transport, over the one named in MUSTER_TRANSPORT: shm (default), unix, tcp,
# zmq, and zmq-upgrade, where links of the star may move to shared memory.
#   julia test_cluster.jl [case]...         without a name, all of them
# cases: launch ssh served topology busy dropped killed interrupted secret upgrade guest large many
using Test, Distributed, Muster
include("helpers.jl")

const transport = get(ENV, "MUSTER_TRANSPORT", "shm")
const scheme = replace(transport, "-upgrade" => "")
manager(n; options...) = MusterManager(n; transport = scheme, upgrade = transport in ("shm", "zmq-upgrade"), options...)
const flags = `--startup-file=no`
add(n; transport_options = (), options...) = addprocs(manager(n; transport_options...); exeflags = flags, options...)
const chosen = isempty(ARGS) ? split("launch ssh served topology busy dropped killed interrupted secret upgrade guest large many") : copy(ARGS)
empty!(ARGS)
# (invokelatest: a case that was not chosen is not compiled either.)
case(f, name, text) = name in chosen ? (@testset "$text ($transport)" begin Base.invokelatest(f) end) : nothing

case("launch", "workers get what addprocs was told, and failures say why") do
    mktempdir() do folder
        p = add(1; dir = folder, enable_threaded_blas = true, env = ["MUSTER_TEST" => "a b"])[1]
        @test remotecall_fetch(pwd, p) == realpath(folder)
        @test remotecall_fetch(() -> ENV["MUSTER_TEST"], p) == "a b"
        @test remotecall_fetch(() -> Base.JLOptions().startupfile, p) == 2
        @test procs(p) == [1, p]               # the same host as the master
        @test Distributed.check_same_host([1, p])
        # Neither the cookie nor the secret can be seen by other users.
        seen = read("/proc/$(process_of(p))/cmdline", String) * read("/proc/$(process_of(p))/environ", String)
        @test !occursin(strip(Distributed.cluster_cookie()), seen)
        @test !occursin(bytes2hex(Muster.secret()), seen)
        ospid = process_of(p)
        stream = Distributed.worker_from_id(p).r_stream
        rmprocs(p)
        @test within(() -> !alive(ospid), 10)
        @test within(() -> !isopen(stream) && stream.handle == C_NULL, 10)
        @test Muster.find(Muster.running(), stream.tag) === nothing
    end
    for (options, text) in (((exename = "/no/such/julia",), "/no/such/julia cannot be started"),
                            ((exeflags = `--no-such-flag`,), "no-such-flag"),
                            ((dir = "/no/such/folder",), "cannot be started"))
        e = try addprocs(manager(1); options...); nothing catch e; cause(e) end
        @test e isa Distributed.LaunchWorkerError
        @test occursin(text, sprint(showerror, e))
        @test nprocs() == 1
    end
    withenv("JULIA_WORKER_TIMEOUT" => "2") do # a program that never becomes ready
        started = time()
        mktempdir() do folder
            slow = joinpath(folder, "slow")
            write(slow, "#!/bin/sh\nexec sleep 1000\n")
            chmod(slow, 0o700)
            e = try addprocs(manager(1); exename = slow); nothing catch e; cause(e) end
            @test e isa Distributed.LaunchWorkerError
            @test occursin("not ready after 2.0 s", sprint(showerror, e))
        end
        @test time() - started < 20
    end
end

# A stand-in for ssh that runs the command on this host, as sshd would: through a shell, its words joined by blanks.
const stand_in = """
    #!/bin/sh
    echo "\$@" >>"\$FAKE_SSH_LOG"
    while [ \$# -gt 0 ]; do
        case \$1 in -o | -p | -i | -O | -L) shift 2 ;; -*) shift ;; *) break ;; esac
    done
    [ "\$1" != nobody@nowhere ] || { echo "ssh: could not resolve nowhere" >&2; exit 255; }
    shift
    [ \$# -gt 0 ] || exit 0
    exec sh -c "\$*"
    """

case("ssh", "workers on other machines, by ssh (a stand-in that stays here)") do
    transport == "tcp" || transport == "shm" || return
    mktempdir() do folder
        write(joinpath(folder, "ssh"), stand_in)
        chmod(joinpath(folder, "ssh"), 0o700)
        log = joinpath(folder, "log")
        inside = mkpath(joinpath(folder, "it's a \$HOME \"folder\""))
        withenv("PATH" => folder * ":" * ENV["PATH"], "FAKE_SSH_LOG" => log) do
            m = MusterManager([("somebody@node1:2222", 2), "node2 127.0.0.1"]; transport = "tcp", upgrade = false)
            w = addprocs(m; exeflags = flags, dir = inside, sshflags = `-i key`, env = ["MUSTER_TEST" => "it's \$HOME"],
                         shell_command = `sh -c`)
            @test length(w) == 3
            @test all(p -> remotecall_fetch(pwd, p) == realpath(inside), w)
            @test remotecall_fetch(() -> ENV["MUSTER_TEST"], w[1]) == "it's \$HOME"
            @test remotecall_fetch(q -> remotecall_fetch(myid, q), w[1], w[3]) == w[3]
            seen = read(log, String)
            @test count("somebody@node1", seen) == 2 && count("-p 2222", seen) == 2 && count("-i key", seen) == 3
            @test !occursin(bytes2hex(Muster.secret()), seen) && !occursin(strip(Distributed.cluster_cookie()), seen)
            hosts = Dict(p => Distributed.worker_from_id(p).config.host for p in w)
            @test sort(collect(values(hosts))) == ["node2", "somebody@node1", "somebody@node1"]
            busy = first(p for p in w if hosts[p] != "node2")
            computing = occupy(() -> (x = 0.0; while true; x += sum(rand(100)); end), busy)
            interrupt(busy)
            @test within(() -> istaskdone(computing), 10)
            @test occursin("kill -INT", read(log, String))
            rmprocs(intersect(w, workers()))

            w = addprocs(MusterManager([("node3", :auto)]); exeflags = flags, shell_command = `sh -c`)
            @test length(w) == Sys.CPU_THREADS
            rmprocs(w)

            if isfile(joinpath(get(ENV, "MUSTER_PLUGIN_PATH", ""), "muster-zmq.so")) # in a star they all dial out
                star = "zmq://127.0.0.1:0/?upgrade=no"
                w = addprocs(MusterManager([("node4", 2)]; transport = star); exeflags = flags, shell_command = `sh -c`)
                @test remotecall_fetch(q -> remotecall_fetch(myid, q), w[1], w[2]) == w[2]
                @test all(p -> Distributed.worker_from_id(p).config.bind_addr == "node4", w)
                @test occursin("MUSTER_PLUGIN_PATH", read(log, String))
                rmprocs(w)
                e = try addprocs(MusterManager(["node4"]; transport = star); tunnel = true); nothing catch e; cause(e) end
                @test occursin("no tunnel for a star", sprint(showerror, e))
            end

            e = try addprocs(MusterManager(["nobody@nowhere"])); nothing catch e; cause(e) end
            @test e isa Distributed.LaunchWorkerError
            @test occursin("could not resolve nowhere", sprint(showerror, e)) && occursin("nobody@nowhere", sprint(showerror, e))
        end
    end
    @test Muster.parse_machine("user@[::1]:22 10.0.0.1:9000") == (target = "user@::1", port = 22, bind = "10.0.0.1:9000")
    for bad in ("", "a b c", "host:99999", "host:x")
        @test_throws ArgumentError Muster.parse_machine(bad)
    end
end

case("served", "a transport written in Julia carries a cluster") do
    example = normpath(joinpath(@__DIR__, "..", "..", "examples", "julia", "transport.jl"))
    said = read(`$(Base.julia_cmd()) --startup-file=no $example`, String)
    @test occursin("CARRIED BY JULIA", said)
    @test occursin("8 MB there and back unharmed: true", said)
end

case("topology", "all three topologies, lazily or not") do
    for lazy in (true, false)
        w = add(3; lazy = lazy)
        @test remotecall_fetch(q -> remotecall_fetch(myid, q), w[1], w[3]) == w[3]
        @test remotecall_fetch(q -> remotecall_fetch(myid, q), w[3], w[1]) == w[1]
        @test sort(remotecall_fetch(procs, w[2])) == [1; w]
        rmprocs(w)
    end
    w = add(2; topology = :master_worker)
    @test remotecall_fetch(() -> myid(), w[1]) == w[1]
    @test_throws RemoteException remotecall_fetch(q -> remotecall_fetch(myid, q), w[1], w[2])
    rmprocs(w)
    first_number = Muster.launches[]
    place(number) = number - first_number
    w = add(3; topology = :custom,
            transport_options = (ident = place, connect_idents = n -> place(n) == 3 ? [1] : Int[]))
    @test remotecall_fetch(q -> remotecall_fetch(myid, q), w[3], w[1]) == w[1]
    @test_throws RemoteException remotecall_fetch(q -> remotecall_fetch(myid, q), w[3], w[2])
    rmprocs(w)
end

case("busy", "no call is lost while the worker computes for 5 s") do
    p = add(1)[1]
    @everywhere counted = Ref(0)
    @everywhere bump() = (counted[] += 1; nothing)
    @everywhere seen() = counted[] # a closure would bring this process's own `counted` along
    @everywhere compute(s) = (t = time(); while time() - t < s; end; nothing)
    remotecall_fetch(compute, p, 0.01)
    computing = remotecall(compute, p, 5.0)
    sleep(0.2)
    sent = @async for _ in 1:50_000
        remote_do(bump, p)
        yield() # one message each
    end
    wait(computing)
    wait(sent)
    @test remotecall_fetch(seen, p) == 50_000
    rmprocs(p)
end

case("dropped", "a worker hears of dropped references, also if Distributed was in use before Muster was loaded") do
    program = """
        using Distributed
        yield() # what Distributed has in the background begins, and knows no method of what is loaded from here on
        using Muster
        p = addprocs(MusterManager(1; transport = $(repr(scheme)), upgrade = false); exeflags = `--startup-file=no`)[1]
        held(id) = remotecall_fetch(id -> haskey(Distributed.PGRP.refs, id), p, id)
        future = remotecall(() -> 1, p)
        id = Distributed.remoteref_id(future)
        wait(remotecall(() -> 1, p))
        print(held(id), ' ')
        finalize(future)
        timedwait(() -> isempty(Distributed.worker_from_id(p).del_msgs), 10.0; pollint = 0.01)
        print(held(id))
        rmprocs(p)
        """
    said = Pipe()
    run(pipeline(`$(Base.julia_cmd()) --startup-file=no -e $program`, stdout = said, stderr = said))
    close(said.in)
    @test read(said, String) == "true false"
end

case("killed", "a dead worker is noticed at once, and removed") do
    w = add(4)
    ospids = process_of.(w)
    # (A worker that cannot connect to a peer ends, so says Distributed: this link is made before its far end dies.)
    @test remotecall_fetch(q -> remotecall_fetch(myid, q), w[2], w[1]) == w[1]
    waiting = @async remotecall_fetch(() -> sleep(1000), w[1])
    future = remotecall(() -> sleep(1000), w[1])
    arrived = RemoteChannel(() -> Channel{Int}(1))
    between = @async remotecall_fetch((q, c) -> remotecall_fetch(c -> (put!(c, 1); sleep(1000)), q, c), w[2], w[1], arrived)
    @test take!(arrived) == 1 # the call is there, and waits for its answer
    sleep(1)
    run(`kill -9 $(ospids[1])`)
    @test within(() -> istaskdone(waiting), 3)
    @test cause(try fetch(waiting) catch e; e end) isa ProcessExitedException
    @test cause(try fetch(future) catch e; e end) isa ProcessExitedException
    @test within(() -> istaskdone(between), 3)
    @test cause(try fetch(between) catch e; e end) isa ProcessExitedException
    @test within(() -> !(w[1] in workers()), 3)
    @test remotecall_fetch(myid, w[2]) == w[2]
    # A call before Distributed has noticed the death fails with the same exception as a call after that.
    link = Distributed.worker_from_id(w[4]).w_stream
    run(`kill -9 $(ospids[4])`, wait = false)
    while isempty(Muster.reason(link)) # without a turn for the tasks of Distributed
        Libc.systemsleep(0.01)
    end
    @test w[4] in workers()
    e = try remote_do(identity, w[4], zeros(2^20)); catch e; e end
    @test e isa ProcessExitedException && e.worker_id == w[4]
    @test within(() -> !(w[4] in workers()), 3)
    # pmap goes on with the others if told to
    @test pmap(x -> 2x, 1:20; retry_delays = zeros(3)) == 2:2:40
    # killed in the middle of being removed, and while it computes
    computing = occupy(() -> (while true; end), w[2])
    removing = @async rmprocs(w[2])
    sleep(0.2)
    run(`kill -9 $(ospids[2])`)
    @test within(() -> istaskdone(removing), 5)
    # one that never listens again is killed by the manager
    occupy(() -> (while true; end), w[3])
    removing = @async rmprocs(w[3])
    @test within(() -> istaskdone(removing), 15)
    @test within(() -> !any(alive, ospids), 5)
    @test nprocs() == 1
end

case("interrupted", "interrupts reach workers, and tasks here in the middle of a transfer") do
    w = add(2)
    ospids = process_of.(w)
    computing = occupy(() -> (x = 0.0; while true; x += sum(rand(100)); end), w[1])
    interrupt(w[1])
    @test within(() -> istaskdone(computing), 10)
    @test computing.exception !== nothing
    idle = w[2]
    # A call with a large argument, interrupted at different moments: the worker and its stream stay usable.
    for delay in (0.0, 0.002, 0.01, 0.03)
        call = let data = rand(10^7)
            @async remotecall_fetch(sum, idle, data)
        end
        yield()
        delay > 0 && sleep(delay)
        istaskdone(call) || schedule(call, InterruptException(); error = true)
        @test within(() -> istaskdone(call), 10)
        call = nothing
        GC.gc()
        again = @async remotecall_fetch(+, idle, 1, 2)
        @test within(() -> istaskdone(again), 20) && fetch(again) == 3
    end
    rmprocs(idle)
    w[1] in workers() && rmprocs(w[1])
    @test within(() -> !any(alive, ospids), 10)
end

case("secret", "a stranger without the secret gets nowhere") do
    p = add(1)[1]
    address = Distributed.worker_from_id(p).config.connect_at
    program = """
        using Muster
        Muster.configure!(secret = "not the one, but long enough")
        try
            Muster.dial($(repr(address)); timeout = 10)
            println("let in")
        catch e
            println(e isa MusterError ? Muster.status_name(e.status) : repr(e))
        end"""
    @test readchomp(`$(Base.julia_cmd()) --startup-file=no -e $program`) == "MUSTER_E_AUTH"
    # Somebody who speaks something else, or nothing at all, harms nobody.
    if transport == "tcp"
        host, port = match(r"^tcp://(.*):(\d+)", address).captures
        for bytes in (UInt8[], rand(UInt8, 32), zeros(UInt8, 100_000))
            s = Muster.Sockets.connect(String(host), parse(Int, port))
            try write(s, bytes) catch end
            close(s)
        end
    end
    @test remotecall_fetch(+, p, 1, 2) == 3
    rmprocs(p)
end

case("upgrade", "a tcp link within one host may move to shared memory") do
    p = addprocs(MusterManager(1; transport = "tcp"); exeflags = flags)[1]
    @test remotecall_fetch(sum, p, ones(10^6)) == 10^6
    rmprocs(p)
end

case("guest", "the host's own processes, signals and libuv are left alone") do
    p = add(1)[1]
    @test success(`true`) && !success(`false`)
    @test readchomp(`echo here`) == "here"
    sleeper = run(`sleep 0.3`, wait = false)
    @test remotecall_fetch(() -> readchomp(`echo there`), p) == "there"
    wait(sleeper)
    @test success(sleeper)
    # Julia's own uv_* and Muster's private copy do not meet.
    exported = readlines(pipeline(`nm -D --defined-only $(Muster.library())`, `awk '{print $3}'`))
    @test !any(startswith("uv_"), exported)
    @test all(name -> startswith(name, "muster_") || startswith(name, "MUSTER_"), exported)
    # A timer of Julia's loop is not held up by transfers.
    late = Ref(0.0); last = Ref(time())
    timer = Timer(0.01; interval = 0.01) do _
        now = time(); late[] = max(late[], now - last[]); last[] = now
    end
    for _ in 1:10
        remotecall_fetch(sum, p, ones(10^6))
    end
    close(timer)
    @test late[] < 1.0
    # SIGINT's handler is still Julia's: an interrupt is an exception.
    task = @async sleep(100)
    yield()
    schedule(task, InterruptException(); error = true)
    @test within(() -> istaskdone(task), 5)
    rmprocs(p)
end

case("large", "an array over 2 GiB goes there and back") do
    p = add(1)[1]
    bytes = (1 << 31) + 12_345
    data = zeros(UInt8, bytes)
    for i in 1:4096:bytes
        data[i] = (i >> 12) % UInt8
    end
    data[end] = 0x77
    check(d) = (length(d), d[end], sum(view(d, 1:4096:length(d))))
    @everywhere [p] check_large(d) = (length(d), d[end], sum(view(d, 1:4096:length(d))))
    @test remotecall_fetch(d -> Main.check_large(d), p, data) == check(data)
    back = remotecall_fetch(n -> (d = zeros(UInt8, n); d[end] = 0x66; d), p, bytes)
    @test length(back) == bytes && back[end] == 0x66
    rmprocs(p)
end

case("many", "32 workers come, talk to each other and go") do
    w = withenv("JULIA_WORKER_TIMEOUT" => "240") do
        add(32)
    end
    @test length(w) == 32
    ospids = process_of.(w)
    @test sort(pmap(_ -> myid(), 1:320)) ⊆ w
    sums = asyncmap(p -> remotecall_fetch(q -> remotecall_fetch(myid, q), p, w[mod1(p + 7, 32)]), w; ntasks = 32)
    @test all(in(w), sums)
    rmprocs(w)
    @test within(() -> !any(alive, ospids), 30)
end
