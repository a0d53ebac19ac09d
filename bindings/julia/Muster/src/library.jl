# SPDX-License-Identifier: MIT
# Finding and opening libmuster: MUSTER_LIBRARY, then beside this package, then the system's own search path.

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

const library_path = Ref{String}("")

"""
    Muster.library() -> String

The path of the loaded libmuster.
"""
library() = library_path[]

function load_library()
    named = get(ENV, "MUSTER_LIBRARY", "")
    places = isempty(named) ? vcat(beside_package(), [SONAME, "libmuster.so"]) : [named]
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
