# SPDX-License-Identifier: MIT
# Stars: brokers run by this process, and the addresses of workers that meet around one.

"""
    Muster.Broker

A broker made by [`Muster.broker`](@ref). `Muster.address(broker)` is the address for members, `Muster.stats(broker)` has its
counters, `close(broker)` ends it.
"""
mutable struct Broker
    handle::Ptr{LowLevel.muster_broker}
    open::Bool
    function Broker(handle)
        b = new(handle, true)
        finalizer(b -> LowLevel.muster_broker_release(b.handle), b) # the last reference stops it
        return b
    end
end

"""
    Muster.broker(address = "zmq://127.0.0.1:0/"; parent = "", curve = true, open = false, window = 0, members = 0,
                  curve_file = "", broker_secret = "") -> Broker

Runs a broker, the centre of a star, in this process, on threads of its own. Port 0: any port. Members prove the secret of the
context of this process; see `secret` of [`Muster.configure!`](@ref) and `MUSTER_SECRET_FILE`.

- `parent`: address of the broker above this one.
- `curve = false`: no encryption; members use `?curve=no`. `open = true`: no proof of the secret, either.
- `curve_file`: file with CURVE keys, in place of those derived from the secret; see the guide on the star. Members name
  theirs by `MUSTER_CURVE_FILE`.
- `broker_secret`: text that brokers alone have, at least 16 bytes; left out: `MUSTER_BROKER_SECRET_FILE`,
  `MUSTER_BROKER_SECRET`, or none. `Muster.address(broker)` then contains the broker's public key, and members that use this
  address accept no other process as their broker. A broker with a `parent` needs it.
- `window`: maximum bytes in transit from one member to another. `members`: maximum number of members.
"""
function broker(address::AbstractString = "zmq://127.0.0.1:0/"; parent::AbstractString = "", curve::Bool = true,
                open::Bool = false, window::Integer = 0, members::Integer = 0, curve_file::AbstractString = "",
                broker_secret::AbstractString = "")
    e = running()
    text, above, keys, role = String(address), String(parent), String(curve_file), String(broker_secret)
    flags = (open ? LowLevel.MUSTER_BROKER_OPEN : UInt32(0)) | (curve ? UInt32(0) : LowLevel.MUSTER_BROKER_NO_CURVE)
    detail = blank_error()
    handle = Ref{Ptr{LowLevel.muster_broker}}(C_NULL)
    GC.@preserve above keys role begin
        config = LowLevel.muster_broker_config(sizeof(LowLevel.muster_broker_config), flags,
            isempty(above) ? C_NULL : pointer(above), sizeof(above), window, members, 0,
            isempty(keys) ? C_NULL : pointer(keys), sizeof(keys), isempty(role) ? C_NULL : pointer(role), sizeof(role))
        check(LowLevel.muster_broker_open(e.context, text, sizeof(text), Ref(config), handle, detail), detail,
            "run a broker at $text")
    end
    return Broker(handle[])
end

address(b::Broker) = text_of((p, n, size) -> LowLevel.muster_broker_address(b.handle, p, n, size), "name a broker")

function stats(b::Broker)
    out = Ref{LowLevel.muster_broker_stats}()
    check(LowLevel.muster_broker_get_stats(b.handle, out), "read a broker's figures")
    return out[]
end

Base.isopen(b::Broker) = b.open
Base.show(io::IO, b::Broker) = print(io, "Muster.Broker(", address(b), b.open ? "" : ", closed", ")")

"""
    close(broker::Muster.Broker; timeout = 0)

Stops the broker. Its members lose their connections; bytes in transit to them are delivered for up to `timeout` seconds.
"""
function Base.close(b::Broker; timeout::Real = 0)
    b.open || return nothing
    b.open = false
    LowLevel.muster_broker_close(b.handle, seconds_ns(timeout))
    return nothing
end

## What a MusterManager makes of its transport: zmq, or zmq://[name@]host:port/[service][?options]

struct StarAddress
    name::String  # of a worker, with {} for its number; empty: one is made up
    place::String # host:port
    service::String
    options::Vector{String}
end

is_star(transport) = transport == "zmq" || startswith(transport, "zmq://")

function parse_star(transport)::StarAddress
    transport == "zmq" && return StarAddress("", "127.0.0.1:0", "", [])
    found = match(r"^zmq://(?:([^@/?]*)@)?([^@/?]+)(?:/([^?]*))?(?:\?(.*))?$", transport)
    found === nothing && throw(ArgumentError("transport $(repr(transport)) is not zmq://[name@]host:port/[service][?options]"))
    name, place, service, options = something.(found.captures, "")
    isempty(name) || occursin("{}", name) ||
        throw(ArgumentError("transport $(repr(transport)): each worker has a name of its own, put {} into it for the number"))
    return StarAddress(name, place, service, split(options, '&'; keepempty = false))
end

star_text(s::StarAddress, name, place) =
    string("zmq://", name, '@', place, '/', s.service, isempty(s.options) ? "" : "?" * join(s.options, '&'))

# Brokers that managers had started here, by what was asked for; they live as long as this process's context.
const own_brokers = Dict{Tuple{String, Bool}, Broker}()

function broker_place(s::StarAddress)
    endswith(s.place, ":0") || return s.place
    curve = !("curve=no" in s.options)
    b = get(own_brokers, (s.place, curve), nothing)
    if b === nothing || !b.open
        b = own_brokers[(s.place, curve)] = broker("zmq://$(s.place)/"; curve = curve)
    end
    role = match(r"[?&](broker=[0-9a-f]+)", address(b)) # MUSTER_BROKER_SECRET: members need the key
    role === nothing || role.captures[1] in s.options || push!(s.options, role.captures[1])
    return String(match(r"^zmq://([^/]*)/", address(b)).captures[1])
end

# Before workers are started: connects to the broker, and waits until it runs.
# (A name is claimed, and given back.)
function meet_broker(m)
    is_star(m.transport) || return nothing
    s = parse_star(m.transport)
    close(listen_at(star_text(s, "master-$(Random.randstring(12))", broker_place(s)), 0, Distributed.worker_timeout()))
    return nothing
end

function star_address(m, number)
    s = parse_star(m.transport)
    m.upgrade || any(startswith("upgrade="), s.options) || push!(s.options, "upgrade=no")
    name = isempty(s.name) ? "w$number-$(Random.randstring(12))" : replace(s.name, "{}" => number)
    return star_text(s, name, broker_place(s))
end

# What peers dial: the listener's address, with those options that both sides have to write.
function dialled_at(dialled::String, asked::String)
    occursin('?', asked) || return dialled
    for option in split(split(asked, '?'; limit = 2)[2], '&')
        startswith(option, "auth=") || startswith(option, "seal=") || continue
        occursin(option, dialled) || (dialled *= (occursin('?', dialled) ? "&" : "?") * option)
    end
    return dialled
end
