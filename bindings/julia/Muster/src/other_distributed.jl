# SPDX-License-Identifier: MIT
# Managers for another package in place of Distributed: an extension has them, which Julia 1.9 and later load with that package.

"""
    MusterManager(DistributedNext, count; transport = "shm", ...)
    MusterManager(DistributedNext, machines; transport = "tcp", ...)

The same for the package DistributedNext: `DistributedNext.addprocs(MusterManager(DistributedNext, 4))`. Ranks of MPI jobs,
elastic workers and shared arrays work with Distributed alone. Load this package before the first `addprocs`.
"""
MusterManager(distributed::Module, given...; options...) =
    nameof(distributed) === :Distributed ? MusterManager(given...; options...) :
    Base.invokelatest(manager_type(Val(nameof(distributed))), given...; options...)

const extensions = Dict(:DistributedNext => "MusterDistributedNextExt")

manager_type(name::Val) = extension(name).MusterManager
serve(name::Val) = Base.invokelatest(extension(name).serve)

function extension(::Val{name}) where {name}
    file = get(extensions, name, nothing)
    file === nothing && throw(ArgumentError("there is no MusterManager for $name; for $(join(keys(extensions), ", ")) there is"))
    if isdefined(Base, :get_extension)
        found = Base.get_extension(@__MODULE__, Symbol(file))
        found === nothing && throw(ArgumentError("the extension for $name is not loaded: `import $name` first"))
        return found
    end
    return get!(() -> Base.include(Main, joinpath(@__DIR__, "..", "ext", file * ".jl")), included, name)
end
const included = Dict{Symbol, Any}() # before Julia 1.9, which has no extensions
