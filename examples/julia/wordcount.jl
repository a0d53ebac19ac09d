# SPDX-License-Identifier: MIT
# Counts the words of this machine's documentation in parallel, over Distributed's own TCP and over Muster's transports.
#
#   julia wordcount.jl [folder]...     folder: default /usr/share; examples/run julia sets everything up
#
# Four workers count the words of batches of files (pmap), then merge their counts among themselves: in each round every
# other worker fetches its neighbour's table, worker to worker, until one holds them all. Every run must give the counts
# that one process alone gets.
using Distributed, Printf
using Muster

# On a machine with little documentation, Julia's own sources and the C headers are counted, too.
const folders = isempty(ARGS) ? ["/usr/share", normpath(joinpath(Sys.BINDIR, "..", "share")), "/usr/include"] : copy(ARGS)
const workers_wanted = 4
const enough = 40 << 20   # bytes of text; stop collecting there
const least = 20_000_000  # below this the next folder is read, too
const batch_bytes = 256 << 10

# Text files by their names: documentation, licences, changelogs, sources, data tables.
const kinds = (".txt", ".md", ".rst", ".html", ".htm", ".xml", ".tex", ".texi", ".pod", ".css", ".js", ".py", ".pl", ".pm",
    ".sh", ".jl", ".h", ".hpp", ".c", ".cpp", ".cmake", ".json", ".yaml", ".yml", ".po", ".conf", ".tcl", ".el", ".vim",
    ".desktop", ".properties", ".cfg", ".csv", ".svg")
is_text(name) = lowercase(splitext(name)[2]) in kinds ||
    lowercase(name) in ("copyright", "readme", "changelog", "news", "authors", "license", "copying", "todo", "thanks")

# Batches of about the same size, so that no worker waits long for the last one.
function collect_batches(folders)
    batches, batch, size, total, files, used = Vector{String}[], String[], 0, 0, 0, String[]
    for folder in folders
        total >= least && break
        isdir(folder) || continue
        push!(used, folder)
        for (root, _, names) in walkdir(folder; onerror = _ -> nothing), name in names
            total >= enough && break
            path = joinpath(root, name)
            is_text(name) && isfile(path) && !islink(path) || continue
            bytes = filesize(path)
            0 < bytes < 8 << 20 || continue
            push!(batch, path)
            size += bytes; total += bytes; files += 1
            if size >= batch_bytes
                push!(batches, batch)
                batch, size = String[], 0
            end
        end
    end
    isempty(batch) || push!(batches, batch)
    return batches, files, total, used
end

# Definitions for every worker. `table` is the worker's own count.
const worker_code = quote
    const table = Dict{String, Int}()

    letter(b) = UInt8('a') <= b <= UInt8('z') || UInt8('A') <= b <= UInt8('Z')

    function count_words!(table, bytes)
        from = 0
        for (i, b) in enumerate(bytes)
            if letter(b)
                from == 0 && (from = i)
            elseif from != 0
                add!(table, bytes, from, i - 1)
                from = 0
            end
        end
        from == 0 || add!(table, bytes, from, length(bytes))
        return nothing
    end

    function add!(table, bytes, from, to)
        word = lowercase(String(bytes[from:to]))
        table[word] = get(table, word, 0) + 1
        return nothing
    end

    # Counts a batch of files; answers with their bytes.
    function count_batch(paths)
        done = 0
        for path in paths
            bytes = read(path)
            count_words!(table, bytes)
            done += length(bytes)
        end
        return done
    end

    give_table() = table

    # Merges what another worker has: it comes straight from there.
    function take_from(other)
        for (word, count) in remotecall_fetch(give_table, other)
            table[word] = get(table, word, 0) + count
        end
        return nothing
    end

    clear_table() = (empty!(table); nothing)
end
Core.eval(Main, worker_code)

function bar(label, done, total, bytes, all_bytes)
    isa(stdout, Base.TTY) || done == total || return nothing
    width = 30
    filled = total == 0 ? width : done * width ÷ total
    @printf("\r%-14s [%s%s] %3d%%  %5.1f of %.1f MB", label, "#"^filled, "."^(width - filled),
        total == 0 ? 100 : done * 100 ÷ total, bytes / 1e6, all_bytes / 1e6)
    done == total && println()
    flush(stdout)
    return nothing
end

function run_once(label, manager, batches, all_bytes)
    starting = @elapsed pids = manager === nothing ? addprocs(workers_wanted; exeflags = `--startup-file=no`) :
                               addprocs(manager; exeflags = `--startup-file=no`)
    try
        for p in pids
            remotecall_wait(Core.eval, p, Main, worker_code)
        end
        pmap(count_batch, batches[1:min(end, 2 * length(pids))]) # compiles; its counts are thrown away
        foreach(p -> remotecall_wait(clear_table, p), pids)

        finished, bytes = 0, 0
        bar(label, 0, length(batches), 0, all_bytes)
        progress = RemoteChannel(() -> Channel{Int}(length(batches)))
        shower = @async for _ in 1:length(batches)
            bytes += take!(progress)
            finished += 1
            bar(label, finished, length(batches), bytes, all_bytes)
        end
        counting = @elapsed begin
            pmap(batches) do batch
                put!(progress, count_batch(batch))
                nothing
            end
            wait(shower)
        end

        merging = @elapsed begin
            step = 1
            while step < length(pids)
                @sync for i in 1:2step:length(pids)-step
                    @async remotecall_wait(take_from, pids[i], pids[i+step])
                end
                step *= 2
            end
        end
        fetching = @elapsed counts = remotecall_fetch(give_table, pids[1])
        return counts, (starting, counting, merging, fetching)
    finally
        rmprocs(pids)
    end
end

function main()
    batches, files, all_bytes, used = collect_batches(folders)
    all_bytes == 0 && error("no text below $(join(folders, ", "))")
    @printf("%d text files below %s, %.1f MB in %d batches, %d workers on %d CPU threads\n", files, join(used, ", "),
        all_bytes / 1e6, length(batches), workers_wanted, Sys.CPU_THREADS)
    all_bytes >= least || println("(less than 20 MB: times say little)")

    foreach(count_batch, batches[1:min(end, 4)])
    clear_table()
    done, bytes = 0, 0
    alone = @elapsed for batch in batches
        bytes += count_batch(batch)
        bar("one process", done += 1, length(batches), bytes, all_bytes)
    end
    expected = copy(table)
    clear_table()

    rows = []
    same = true
    for (label, manager) in (("built-in TCP", nothing),
                             ("Muster tcp", MusterManager(workers_wanted; transport = "tcp", upgrade = false)),
                             ("Muster unix", MusterManager(workers_wanted; transport = "unix", upgrade = false)),
                             ("Muster shm", MusterManager(workers_wanted; transport = "shm")))
        counts, times = run_once(label, manager, batches, all_bytes)
        equal = counts == expected
        same &= equal
        push!(rows, (label, times, equal))
    end

    println("\n                  start     count     merge     fetch     total   (seconds)")
    @printf("%-14s  %7s   %7.2f   %7s   %7s   %7.2f\n", "one process", "", alone, "", "", alone)
    for (label, times, equal) in rows
        @printf("%-14s  %7.2f   %7.2f   %7.2f   %7.2f   %7.2f   %s\n", label, times..., sum(times[2:end]),
            equal ? "same counts" : "DIFFERENT COUNTS")
    end
    println("start: addprocs; merge: worker to worker, in two rounds; fetch: the result comes here; total: without the start")
    top = sort(collect(expected), by = last, rev = true)[1:min(end, 10)]
    @printf("\n%d words, %d different ones; the most frequent: %s\n", sum(values(expected)), length(expected),
        join(["$word $count" for (word, count) in top], ", "))
    return same ? 0 : 1
end

exit(main())
