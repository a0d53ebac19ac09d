# SPDX-License-Identifier: MIT
# Waiting awake for a reply that is about to come.
#
# Parking costs a wake-up on each side (tens of microseconds); a reply to a small call often comes sooner. A reader that
# finds nothing therefore looks again for a short while, giving every other task its turn, before it parks. Whether that
# pays is learned per stream, from what the last waits cost; a stream that is quiet, or a machine with more to do than
# processors, learns not to. Nothing is ever awake longer than AWAKE_NS, so an idle process uses no processor time.

const AWAKE_NS = 50_000       # longest wait awake for the next message
const LOOKS = 16              # looks at a stretch, when no other task wants the thread
const STREAMING_NS = 200_000  # longest wait for the next piece of a large transfer
const TRIAL_EVERY = 32        # waits between two trials once waiting awake has not paid

mutable struct SpinBudget
    credit::Int    # above 0: wait awake; otherwise it counts up to the next trial
    hopeless::Bool # what this stream waits for is done by this very thread: it must never wait inside the library
    SpinBudget() = new(1, false)
end

@inline function should_spin(p::SpinBudget)
    p.hopeless && return false
    p.credit > 0 && return true
    p.credit += 1
    return false
end
spin_paid(p::SpinBudget) = (p.credit = min(p.credit + 1, 8); nothing)
spin_failed(p::SpinBudget) = (p.credit = p.credit > 1 ? p.credit >> 1 : -TRIAL_EVERY; nothing)

# May this task keep the thread for a moment, or does another one want it?
@static if isdefined(Base, :workqueue_for)
    @inline nothing_else_to_do() = isempty(Base.workqueue_for(Threads.threadid()))
else
    @inline nothing_else_to_do() = isempty(Base.Workqueue)
end

# The pace of a large transfer. While bytes move, nothing is armed and no task has to be woken. When none do, the only transfer
# of the process waits inside the library for its next piece, for a moment; one of several lets the others have their turn.
# Only when that does not help it parks.
mutable struct Pace
    idle::Int  # looks in a row that moved nothing
    park::Bool # the last look armed the watch
    Pace() = new(0, false)
end

const IDLE_LOOKS = 4
const transfers = Threads.Atomic{Int}(0) # under way in this process, on all its threads

begin_transfer() = (Threads.atomic_add!(transfers, 1); nothing)
end_transfer() = (Threads.atomic_sub!(transfers, 1); nothing)

# How long the next look may wait; 1 ns is a look that arms nothing, 0 one that arms the watch.
function wait_ns(pace::Pace, spin::SpinBudget)::Int
    pace.park = pace.idle >= IDLE_LOOKS || spin.hopeless
    pace.park && return 0
    return transfers[] == 1 && nothing_else_to_do() ? STREAMING_NS : 1
end

function take_turns(pace::Pace, moved::Int, done::Int, turn::Int)::Int
    pace.idle = moved > 0 || pace.park ? 0 : pace.idle + 1
    moved > 0 && done < turn && return turn
    yield()
    return done + TURN_BYTES
end
