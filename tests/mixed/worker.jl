# SPDX-License-Identifier: MIT
# A worker in Julia, by the C interface alone; worker.c says what it does.
using Muster: LowLevel

const second = 10^9

# What fails has a sentence in the error.
function must(call)
    detail = Ref{LowLevel.muster_error}()
    status = GC.@preserve detail call(Base.unsafe_convert(Ptr{LowLevel.muster_error}, detail))
    status == LowLevel.MUSTER_OK || error(text(detail[].message, detail[].message_bytes))
end

text(field, size) = String(UInt8[reinterpret(UInt8, field[i]) for i in 1:size])

function read_all(stream, size)
    data = Vector{UInt8}(undef, size)
    moved = Ref{Csize_t}(0)
    status = LowLevel.muster_stream_read_into(stream, data, size, 0, 60second, moved)
    status == LowLevel.MUSTER_OK || error("fewer came back: status $status")
    return data
end

function write_all(stream, data)
    moved = Ref{Csize_t}(0)
    status = LowLevel.muster_stream_write(stream, data, sizeof(data), 60second, moved)
    status == LowLevel.MUSTER_OK || error("it was not written: status $status")
end

function ask(cluster, member)
    stream = Ref{Ptr{LowLevel.muster_stream}}(C_NULL)
    must(detail -> LowLevel.muster_cluster_dial(cluster, member, Vector{UInt8}("echo"), 4, 60second, stream, detail))
    own = LowLevel.muster_cluster_self(cluster)
    pattern = UInt8[(i * 31 + own) % 256 for i in 0:2^20-1]
    write_all(stream[], pattern)
    LowLevel.muster_stream_finish(stream[])
    back = read_all(stream[], 2^20)
    LowLevel.muster_stream_close(stream[], second)
    LowLevel.muster_stream_release(stream[])
    back == pattern || error("other bytes came back")
end

function echo(stream)
    piece = Vector{UInt8}(undef, 65536)
    moved = Ref{Csize_t}(0)
    while LowLevel.muster_stream_read(stream, piece, length(piece), 60second, moved) == LowLevel.MUSTER_OK
        write_all(stream, piece[1:moved[]])
    end
end

function main()
    context, cluster = Ref{Ptr{LowLevel.muster_context}}(C_NULL), Ref{Ptr{LowLevel.muster_cluster}}(C_NULL)
    config = Ref(LowLevel.muster_worker_config(flags = LowLevel.MUSTER_WORKER_EXIT_WITH_MASTER))
    must(detail -> LowLevel.muster_worker_context(C_NULL, 0, context, detail))
    must(detail -> LowLevel.muster_worker_start(context[], config, 60second, cluster, detail))
    heard = "nothing\n"
    event = Ref{LowLevel.muster_cluster_event}()
    while LowLevel.muster_cluster_next_event(cluster[], -1, event) == LowLevel.MUSTER_OK
        kind, stream = event[].kind, event[].stream
        if kind == LowLevel.MUSTER_CLUSTER_LEAVE
            LowLevel.muster_cluster_close(cluster[], -1)
        elseif kind == LowLevel.MUSTER_CLUSTER_BROADCAST
            bytes = unsafe_wrap(Array, Ptr{UInt8}(event[].data), event[].size_bytes)
            heard = "$(length(bytes)) $(sum(bytes) % UInt32)\n"
            LowLevel.muster_broadcast_release(event[].broadcast)
        elseif kind == LowLevel.MUSTER_CLUSTER_STREAM
            label = text(event[].label, event[].label_bytes)
            if label == "heard"
                write_all(stream, Vector{UInt8}(heard))
            elseif startswith(label, "pair:")
                line = try ask(cluster[], parse(Int, label[6:end])); "ok\n" catch why; "bad: $why\n" end
                write_all(stream, Vector{UInt8}(line))
            else
                echo(stream)
            end
            LowLevel.muster_stream_finish(stream)
            LowLevel.muster_stream_close(stream, 60second)
            LowLevel.muster_stream_release(stream)
        end
    end
    LowLevel.muster_cluster_release(cluster[])
    LowLevel.muster_context_close(context[], second)
    LowLevel.muster_context_release(context[])
end

main()
