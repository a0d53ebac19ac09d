/* SPDX-License-Identifier: MIT */
/* Model of external contexts for spin: Loop::post(), begin_wait() and show_tasks() of src/context/loop.cpp, and await() and
 * notify() of src/context/external.cpp. Two threads wait in calls, each for a task that a third thread posts: one of them
 * drives, the other sleeps until the baton is passed on. In some runs the host has the descriptor from some moment on, and waits for
 * it until a task of its own has run; it would serve what others have missed, so there are runs without it.
 *
 * Steps of threads are in any order; each is sequentially consistent, as the operations on these variables are. The
 * descriptor is readable from a write until the loop is served. A thread that sleeps on the futex wakes by a wake alone.
 *
 * Checked: each thread ends, so no post and no notification is lost.
 * -DMUTANT=n breaks one rule, and must be caught:
 *   1  a thread that is about to wait for the descriptor does not check for tasks
 *   2  it checks before it sets its mark
 *   3  a post does not check the mark
 *   4  a post does not check whether the host has the descriptor
 *   5  the descriptor is given to the host without showing earlier tasks
 *   6  a thread that leaves does not notify the others
 *   7  a sleeper announces itself after the check of the futex word
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define N 2 /* threads that wait in calls; number N is the host */

byte mailbox = 0;  /* tasks, a bit each */
byte done = 0;     /* tasks that have run */
bool edge = false; /* the descriptor is readable */
bool waited = false, shown = false;
bool driving = false;
byte word = 0, word_waiters = 0;
bool sleeping[N] = false;

inline post(task) {
    atomic { first = (mailbox == 0); mailbox = mailbox | (1 << task) }
    if
    :: !first
    :: first ->
        if
        :: shown && MUTANT != 4 -> edge = true
        :: else ->
            if
            :: waited && MUTANT != 3 -> edge = true
            :: else
            fi
        fi
    fi
}

inline notify() {
    word = (word + 1) % 16;
    if
    :: word_waiters != 0 -> atomic { sleeping[0] = false; sleeping[1] = false }
    :: else
    fi;
    if
    :: waited -> edge = true
    :: else
    fi
}

/* The driver serves the loop: each task may end a wait. */
inline serve() {
    edge = false;
    atomic { taken = mailbox; mailbox = 0 }
    if
    :: taken != 0 -> done = done | taken; notify()
    :: else
    fi
}

inline take_baton() {
    atomic {
        if
        :: !driving -> driving = true; has_baton = true
        :: else -> has_baton = false
        fi
    }
}

inline pass_baton() {
    driving = false;
    if
    :: MUTANT != 6 -> notify()
    :: else
    fi
}

proctype caller(byte me) {
    byte seen, taken;
    bool has_baton, is_idle;
    do
    :: seen = word;
        if
        :: done & (1 << me) -> break
        :: else
        fi;
        take_baton();
        if
        :: has_baton ->
            do
            :: done & (1 << me) -> break
            :: else ->
                if
                :: MUTANT == 2 -> is_idle = (mailbox == 0); waited = true
                :: else -> waited = true; is_idle = (mailbox == 0 || MUTANT == 1)
                fi;
                if
                :: done & (1 << me)
                :: else ->
                    if
                    :: is_idle -> (edge)
                    :: else
                    fi
                fi;
                waited = false;
                serve()
            od;
            pass_baton()
        :: else ->
            if
            :: MUTANT != 7 -> word_waiters++
            :: else
            fi;
            atomic {
                if
                :: word == seen -> sleeping[me] = true
                :: else
                fi
            }
            if
            :: MUTANT == 7 -> word_waiters++
            :: else
            fi;
            (!sleeping[me]);
            word_waiters--
        fi
    od
}

proctype host() {
    byte taken;
    bool has_baton;
    shown = true;
    if
    :: mailbox != 0 && MUTANT != 5 -> edge = true
    :: else
    fi;
    do
    :: done & (1 << N) -> break
    :: edge ->
        take_baton();
        if
        :: has_baton -> serve(); pass_baton()
        :: else
        fi
    od
}

proctype poster(byte tasks) {
    bool first;
    byte next = 0;
    do
    :: next < tasks -> post(next); next++
    :: else -> break
    od
}

init {
    if
    :: atomic { run caller(0); run caller(1); run poster(N) }
    :: atomic { run caller(0); run caller(1); run poster(N + 1); run host() }
    fi
}
