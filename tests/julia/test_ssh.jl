# SPDX-License-Identifier: MIT
# Workers launched by ssh, with a real OpenSSH server: one of our own on a loopback port, with keys made here, for the
# current user, in a folder that is removed. The rest of what the ssh manager does is in test_cluster.jl, case ssh.
using Test, Distributed, Sockets, Muster
include("helpers.jl")

const flags = `--startup-file=no`
ENV["JULIA_WORKER_TIMEOUT"] = "180" # a login, and a Julia that starts on a machine with other work
quoted(path) = "\"$path\"" # as the configuration files of ssh want it

function free_port()
    port, server = listenany(IPv4("127.0.0.1"), rand(20_000:50_000))
    close(server)
    return Int(port)
end

# The server, answering; or nothing where it cannot be run at all.
function start_server(folder)
    sshd = "/usr/sbin/sshd" # it wants to be called by its full name
    ccall(:geteuid, Cuint, ()) == 0 && mkpath("/run/sshd") # where it locks up its unprivileged half
    for key in ("host", "user")
        run(pipeline(`ssh-keygen -q -t ed25519 -N "" -C muster-test -f $(joinpath(folder, key))`, devnull))
    end
    cp(joinpath(folder, "user.pub"), joinpath(folder, "authorized_keys"))
    for _ in 1:5 # the port may be gone again
        port = free_port()
        write(joinpath(folder, "sshd_config"), """
            ListenAddress 127.0.0.1
            Port $port
            HostKey $(quoted(joinpath(folder, "host")))
            AuthorizedKeysFile $(quoted(joinpath(folder, "authorized_keys")))
            PidFile none
            UsePAM no
            StrictModes no
            PasswordAuthentication no
            PermitRootLogin prohibit-password
            AllowTcpForwarding yes
            """)
        log = joinpath(folder, "sshd.log")
        command = `$sshd -D -e -f $(joinpath(folder, "sshd_config"))`
        server = run(pipeline(command, stdin = devnull, stdout = log, stderr = log), wait = false)
        answers() = try close(connect(IPv4("127.0.0.1"), port)); true catch; false end
        within(() -> !process_running(server) || answers(), 10)
        process_running(server) && return server, port
        println(read(log, String))
    end
    return nothing
end

function write_client_config(path, folder, port)
    host_key = join(split(read(joinpath(folder, "host.pub"), String))[1:2], ' ')
    write(joinpath(folder, "known_hosts"), "[127.0.0.1]:$port $host_key\n")
    write(path, """
        Host node1 node2
            HostName 127.0.0.1
            Port $port
            IdentityFile $(quoted(joinpath(folder, "user")))
            IdentitiesOnly yes
            BatchMode yes
            StrictHostKeyChecking yes
            UserKnownHostsFile $(quoted(joinpath(folder, "known_hosts")))
            GlobalKnownHostsFile /dev/null
            LogLevel ERROR
        """)
    return path
end

# Command line and environment of each process of this host that may be read, by its id.
function public_texts()
    texts = Dict{Int, String}()
    for name in readdir("/proc")
        all(isdigit, name) || continue
        try
            texts[parse(Int, name)] = read("/proc/$name/cmdline", String) * read("/proc/$name/environ", String)
        catch
            # it has ended, or belongs to somebody else
        end
    end
    return texts
end

command_line(pid) = try replace(read("/proc/$pid/cmdline", String), '\0' => ' ') catch; "" end
# Processes of the ssh client that were started with this configuration.
function connections(config)
    pids = parse.(Int, filter(name -> all(isdigit, name), readdir("/proc")))
    return filter(pid -> startswith(command_line(pid), "ssh ") && occursin(config, command_line(pid)), pids)
end

function watched(f, secrets) # what f returns, and what was seen of others meanwhile
    seen, leaks, over = Set{String}(), Set{String}(), Ref(false)
    watch = @async while !over[]
        for (pid, text) in public_texts()
            pid == getpid() && continue
            push!(seen, text)
            any(s -> occursin(s, text), secrets) && push!(leaks, text)
        end
        sleep(0.1)
    end
    result = try f() finally
        over[] = true
        wait(watch)
    end
    return result, seen, leaks
end

function workers_by_ssh(folder, config)
    inside = mkpath(joinpath(folder, "it's a \$HOME \"folder\""))
    m = MusterManager(["node1 127.0.0.1", "node2 127.0.0.1"]; transport = "tcp", upgrade = false)
    secrets = [String(strip(Distributed.cluster_cookie())), bytes2hex(Muster.secret())]
    w, seen, leaks = watched(secrets) do
        addprocs(m; exeflags = flags, dir = inside, sshflags = `-F $config`, env = ["MUSTER_TEST" => "it's \$HOME"])
    end
    @test length(w) == 2
    @test any(text -> occursin(config, text) && occursin("node1", text), seen) # so the watch did see ssh's command line
    @test isempty(leaks)
    @test all(p -> remotecall_fetch(pwd, p) == realpath(inside), w)
    @test remotecall_fetch(() -> ENV["MUSTER_TEST"], w[1]) == "it's \$HOME"
    @test all(p -> remotecall_fetch(() -> haskey(ENV, "SSH_CONNECTION"), p), w)
    @test remotecall_fetch(q -> remotecall_fetch(myid, q), w[1], w[2]) == w[2]
    data = rand(10^6)
    @test remotecall_fetch(identity, w[2], data) == data
    return w
end

function interrupt_and_remove(w, config)
    ospids = process_of.(w)
    computing = occupy(() -> (x = 0.0; while true; x += sum(rand(100)); end), w[1])
    interrupt(w[1])
    @test within(() -> istaskdone(computing), 20)
    # The connection that started a worker carries its output, no more than that.
    starters = filter(pid -> occursin(" node2 ", command_line(pid)), connections(config))
    @test length(starters) == 1
    run(`kill -9 $starters`)
    @test remotecall_fetch(+, w[2], 1, 2) == 3
    rmprocs(intersect(w, workers()))
    @test within(() -> !any(alive, ospids), 20)
    @test within(() -> isempty(connections(config)), 20)
end

function tunnelled(config)
    p = addprocs(MusterManager(["node1"]; transport = "tcp"); exeflags = flags, sshflags = `-F $config`, tunnel = true)[1]
    ospid = process_of(p)
    @test remotecall_fetch(+, p, 1, 2) == 3
    @test Distributed.worker_from_id(p).config.forward !== nothing
    # Who carries the link is killed: the worker has lost its master, and the master its worker.
    waiting = @async remotecall_fetch(() -> (while true; end), p)
    carriers = filter(pid -> occursin(" -L ", command_line(pid)), connections(config))
    @test length(carriers) == 1
    run(`kill -9 $carriers`)
    @test within(() -> istaskdone(waiting), 10)
    @test within(() -> !(p in workers()), 10)
    @test within(() -> !alive(ospid), 10)
    @test within(() -> isempty(connections(config)), 10)
end

function run_all()
    mktempdir() do folder
        started = start_server(folder)
        if started === nothing
            println("sshd does not start here")
            exit(77)
        end
        server, port = started
        config = write_client_config(joinpath(mkpath(joinpath(folder, "a folder")), "config"), folder, port)
        try
            w = workers_by_ssh(folder, config)
            interrupt_and_remove(w, config)
            tunnelled(config)
        catch
            println(read(joinpath(folder, "sshd.log"), String))
            rethrow()
        finally
            kill(server)
            wait(server)
        end
    end
end

@testset "workers launched by a real ssh" begin
    run_all()
end
