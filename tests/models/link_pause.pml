/* SPDX-License-Identifier: MIT */
/* Model of the pauses of a link for spin: kick(), pump(), begin_pause() and end_pause() of src/transport/link_send.cpp, over the
 * lock of src/transport/try_lock.hpp and the parking of src/stream/pipe_park.cpp. A thread of the host writes into the pipe, and
 * wakes the loop if the pipe is parked; it may send by itself in between. The loop sends what is in the pipe; then it parks the
 * pipe, or begins a pause, after which its timer lets it look again.
 *
 * Steps of threads are in any order; each is sequentially consistent, as the operations on these variables are.
 *
 * Checked: when neither a task nor the timer is left for the loop, everything is sent.
 * -DMUTANT=n breaks one rule, and must be caught:
 *   1  the end of a pause clears the mark after it has tried to send
 *   2  a thread of the host begins a pause, too, and only the loop can start the timer
 *   3  a thread that unlocks does not look for a request to check again
 *   4  a pipe is parked without a last look at it
 *   5  a thread that does not get the lock has not requested a check
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define WRITES 4

byte unsent = 0;     /* in the pipe */
bool parked = true; /* a write wakes the loop */
bool held = false, recheck = false;
bool pauses = false;
bool task = false, timer = false; /* of the loop */
bool written = false;             /* all of it */

inline try_lock() {
    atomic { gets = !held; held = true }
}

inline pump(is_loop) {
    sent = false;
    do
    :: unsent != 0 -> unsent = 0; sent = true
    :: else ->
        if
        :: pauses -> break
        :: else
        fi;
        if
        :: sent && (is_loop || MUTANT == 2) -> /* small writes follow each other */
            pauses = true;
            if
            :: is_loop -> timer = true
            :: else
            fi;
            break
        :: true
        fi;
        parked = true;
        if
        :: unsent != 0 && MUTANT != 4 -> parked = false
        :: else -> break
        fi
    od
}

inline kick(is_loop) {
    if
    :: MUTANT != 5 -> recheck = true
    :: else
    fi;
    do
    :: try_lock();
        if
        :: !gets -> break
        :: else
        fi;
        recheck = false;
        pump(is_loop);
        held = false;
        if
        :: recheck && MUTANT != 3
        :: else -> break
        fi
    od
}

active proctype host() {
    bool gets, sent, was;
    byte i = 0;
    do
    :: i < WRITES ->
        unsent++;
        if
        :: parked ->
            atomic { was = parked; parked = false }
            if
            :: was -> task = true
            :: else
            fi
        :: else
        fi;
        i++;
        if
        :: kick(false) /* it flushes */
        :: true
        fi
    :: else -> break
    od;
    written = true
}

active proctype loop() {
    bool gets, sent;
    do
    :: task -> task = false; kick(true)
    :: timer ->
        timer = false;
        if
        :: MUTANT != 1 -> pauses = false; kick(true)
        :: else -> kick(true); pauses = false
        fi
    :: written && !task && !timer -> break
    od;
    assert(unsent == 0)
}

