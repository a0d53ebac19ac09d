# SPDX-License-Identifier: MIT
# Structs and constants of the generated low level are those of the C compiler.
#   julia test_layout.jl <include folder>
using Test, Muster

const LL = Muster.LowLevel
const include_folder = abspath(ARGS[1])
const compiler = get(ENV, "CC", "cc")

structs = [name for name in names(LL; all = true) if startswith(string(name), "muster_") &&
           getfield(LL, name) isa DataType && fieldcount(getfield(LL, name)) > 0]
constants = [name for name in names(LL; all = true) if startswith(string(name), "MUSTER_")]

# Reserved words of Julia carry an underscore there.
c_name(field) = rstrip(string(field), '_')

program = IOBuffer()
println(program, "#include <stdio.h>\n#include <stddef.h>\n#include <muster/muster.h>\nint main(void) {")
for name in structs
    println(program, "printf(\"$name %zu\\n\", sizeof($name));")
    for field in fieldnames(getfield(LL, name))
        println(program, "printf(\"$name.$field %zu\\n\", offsetof($name, $(c_name(field))));")
    end
end
for name in constants
    println(program, "printf(\"$name %lld\\n\", (long long)$name);")
end
println(program, "return 0;\n}")

measured = mktempdir() do folder
    source = joinpath(folder, "layout.c")
    write(source, take!(program))
    run(`$compiler -std=c99 -I$include_folder -o $folder/layout $source`)
    Dict(String(k) => parse(Int, v) for (k, v) in split.(readlines(`$folder/layout`)))
end

@testset "$(length(structs)) structs" begin
    @test length(structs) >= 12
    for name in structs
        T = getfield(LL, name)
        @test isbitstype(T)
        @test sizeof(T) == measured[string(name)]
        for (i, field) in enumerate(fieldnames(T))
            @test fieldoffset(T, i) == measured["$name.$field"]
        end
    end
end

@testset "$(length(constants)) constants" begin
    @test length(constants) >= 60
    for name in constants
        @test getfield(LL, name) == measured[string(name)]
    end
end

@testset "every growing struct writes its own size" begin
    for name in structs
        T = getfield(LL, name)
        fieldnames(T)[1] === :struct_size || continue
        @test T().struct_size == sizeof(T)
    end
end
