# SPDX-License-Identifier: MIT
# A transport written in Julia: addresses pipe:///path, carried by Julia's own named pipes (on Linux, Unix sockets that
# Julia's libuv opens). The library calls the functions below through C function pointers, on Julia's thread.
#
#   julia transport.jl            two workers over this transport
#
# The workers include this file before they listen.
using Muster, Sockets

path_of(address) = match(r"^pipe://([^?]*)", address).captures[1]

# This process dials pipe:///path.
connect_pipe(address) = connect(String(path_of(address)))

# This process listens at pipe:///path.
function listen_pipe(address, arrived)
    server = listen(String(path_of(address)))
    @async while isopen(server)
        connection = try
            accept(server)
        catch
            break # closed
        end
        arrived(connection, "a pipe")
    end
    return address, () -> close(server)
end

Muster.transport!("pipe"; connect = connect_pipe, listen = listen_pipe, local_only = true)

if abspath(PROGRAM_FILE) == @__FILE__
    using Distributed

    # First without a cluster: one stream, in this process.
    folder = mktempdir()
    listener = Muster.listen("pipe://$folder/hello")
    served = @async begin
        stream = accept(listener)
        write(stream, uppercase(readline(stream)), '\n')
        close(stream)
    end
    stream = Muster.dial("pipe://$folder/hello")
    write(stream, "carried by Julia\n")
    flush(stream)
    println(readline(stream))
    wait(served)
    close(listener)

    # Then Distributed's own machinery over it, worker to worker, too.
    w = addprocs(MusterManager(2; transport = "pipe://$folder/worker{}", setup = "include($(repr(@__FILE__)))");
        exeflags = `--startup-file=no`)
    println("workers ", w, " at ", [Distributed.worker_from_id(p).config.connect_at for p in w])
    println("1 to 10 squared: ", pmap(x -> x^2, 1:10))
    println("from ", w[1], " to ", w[2], ": ", remotecall_fetch(q -> remotecall_fetch(myid, q), w[1], w[2]))
    data = rand(10^6)
    println("8 MB there and back unharmed: ", remotecall_fetch(identity, w[1], data) == data)
    rmprocs(w)
end
