# SPDX-License-Identifier: MIT
# Finding and opening libmuster: MUSTER_LIBRARY, then an artifact of this package, then beside it, then the system's own
# search path.

const SONAME = "libmuster.so.0.1"

# Beside the package: an installed tree puts the library into lib/; in a checkout of Muster it lies in a build folder.
function beside_package()
    package = dirname(@__DIR__)
    checkout = normpath(joinpath(package, "..", "..", ".."))
    places = [joinpath(package, "lib", SONAME), joinpath(package, "lib", "libmuster.so")]
    if isfile(joinpath(checkout, "include", "muster", "base.h"))
        append!(places, [joinpath(checkout, "build", preset, "libmuster.so") for preset in ("release", "minimal", "dev")])
    end
    return filter(isfile, places)
end

# In the artifact for this machine that Artifacts.toml names, if the package has that file and Pkg has installed it. The
# file is written by bindings/julia/artifact; the package Artifacts, which would read any, is not in every Julia.
function in_artifacts(file = joinpath(dirname(@__DIR__), "Artifacts.toml"))
    isfile(file) || return String[]
    places = String[]
    for entry in split(read(file, String), "[[muster]]")[2:end]
        value(key) = (found = match(Regex("^\\s*$key *= *\"([^\"]*)\"", "m"), entry); found === nothing ? "" : found[1])
        value("os") == "linux" && value("arch") == String(Sys.ARCH) || continue
        tree = value("git-tree-sha1")
        append!(places, [joinpath(depot, "artifacts", tree, "lib", SONAME) for depot in DEPOT_PATH])
    end
    return filter(isfile, places)
end

const library_path = Ref{String}("")

"""
    Muster.library() -> String

The path of the loaded libmuster.
"""
library() = library_path[]

function load_library()
    named = get(ENV, "MUSTER_LIBRARY", "")
    places = isempty(named) ? vcat(in_artifacts(), beside_package(), [SONAME, "libmuster.so"]) : [named]
    # Not Julia's default flags: with RTLD_DEEPBIND a library built with AddressSanitizer ends the process.
    flags = Libdl.RTLD_NOW | Libdl.RTLD_LOCAL
    reasons = String[]
    for place in places
        handle = C_NULL
        try
            handle = Libdl.dlopen(place, flags)
        catch e
            push!(reasons, sprint(showerror, e))
            continue
        end
        LowLevel.load!(handle)
        library_path[] = Libdl.dlpath(handle)
        return nothing
    end
    error("libmuster was not found; name it in MUSTER_LIBRARY, or install it. Tried:\n  ", join(reasons, "\n  "))
end
