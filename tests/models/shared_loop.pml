/* SPDX-License-Identifier: MIT */
/* Model of shared contexts for spin: the thread of the context (run_shared(), nap_until_left()) and two threads of the host
 * that drive (Context::drive(), Driver::wait()) of src/context/shared.cpp, with Loop::post() and begin_wait() of
 * src/context/loop.cpp. Each driver waits in the loop for a task that is posted, or until it is interrupted; a driver that
 * does not get the baton sleeps until its task has run. At last the context closes, which the thread has to notice.
 *
 * Steps of threads are in any order; each is sequentially consistent, as the operations on these variables are. The
 * descriptor is readable from a write until the loop is served. A nap may end at any time, a thread that is parked wakes by
 * a wake alone.
 *
 * Checked: each thread ends, so no post, interrupt or close is lost, and no two threads drive at once.
 * -DMUTANT=n breaks one rule, and must be caught:
 *   1  a thread that is about to wait for the descriptor does not check for tasks
 *   2  it checks before it announces itself
 *   3  the end of one wait removes the announcements of all
 *   4  a driver that has waited does not look whether the thread is parked
 *   5  the thread parks without a second look at the driver
 *   6  a driver does not check for its interrupt after it has announced itself
 *   7  an interrupt does not wake the loop
 *   8  a driver does not check whether the context closes
 *   9  the end of a context does not wake the loop
 *  10  a driver that has served the loop does not pass on that the context closes
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define N 2

byte mailbox = 0;   /* tasks, a bit each */
byte done = 0;      /* tasks that have run */
bool edge = false;  /* the descriptor is readable */
byte waiters = 0;
bool driving = true /* the thread's, at first */, closing = false, interrupted = false;
byte drives = 0, left = 0;
bool napping = false, parked = false, asleep = false, host_waits = false;
byte ended = 0; /* drivers */
byte loops = 1; /* threads that are the loop thread */

inline begin_wait(is_idle) {
    if
    :: MUTANT == 2 -> is_idle = (mailbox == 0); waiters++
    :: else -> waiters++; is_idle = (mailbox == 0 || MUTANT == 1)
    fi
}

inline end_wait() {
    if
    :: MUTANT == 3 -> waiters = 0
    :: else -> waiters--
    fi
}

inline serve() {
    edge = false;
    atomic { done = done | mailbox; mailbox = 0 }
}

inline take_baton(has_baton) {
    atomic {
        has_baton = !driving;
        if
        :: has_baton -> driving = true; loops++; assert(loops == 1)
        :: else
        fi
    }
}

inline pass_baton() {
    atomic { loops--; driving = false }
}

inline leave_to_thread() {
    left = (left + 1) % 8;
    if
    :: napping -> asleep = false
    :: else
    fi
}

active proctype thread() {
    byte seen_drives = 0, seen_left = 0, left_now, drives_now;
    bool is_idle, is_left, has_baton, parks;
    do
    :: serve();
        if
        :: closing -> break /* with the baton */
        :: else
        fi;
        pass_baton();
        begin_wait(is_idle);
        if
        :: is_idle -> (edge)
        :: else
        fi;
        end_wait();
        is_idle = false;
        do
        :: left_now = left;
            drives_now = drives;
            d_step {
                is_left = (drives_now == seen_drives || left_now != seen_left);
                seen_drives = drives_now;
                seen_left = left_now;
                drives_now = 0;
                has_baton = false
            }
            if
            :: is_left -> take_baton(has_baton)
            :: else
            fi;
            if
            :: has_baton -> break
            :: else
            fi;
            parks = host_waits;
            parked = parks;
            napping = true;
            if
            :: !parks || host_waits || MUTANT == 5 ->
                atomic {
                    if
                    :: left == left_now -> asleep = true
                    :: else
                    fi
                }
                if
                :: !asleep
                :: !parks -> asleep = false /* the nap is over */
                fi
            :: else
            fi;
            atomic { napping = false; parked = false; left_now = 0; parks = false } /* relaxed, of one thread */
        od
    od
}

proctype driver(byte me) {
    bool is_idle, has_baton, leaves = false;
    do
    :: (done & (1 << me)) || (me == 0 && interrupted) -> break
    :: else ->
        has_baton = false;
        if
        :: !closing || MUTANT == 8 -> take_baton(has_baton)
        :: else
        fi;
        if
        :: !has_baton -> (done & (1 << me)) || (me == 0 && interrupted) || !driving || closing;
            if
            :: closing -> break /* it sleeps until its stream ends with the context */
            :: else
            fi
        :: else ->
            host_waits = true;
            begin_wait(is_idle);
            if
            :: (done & (1 << me)) || (me == 0 && interrupted && MUTANT != 6)
            :: else ->
                if
                :: is_idle && (!closing || MUTANT == 8) -> (edge)
                :: else
                fi
            fi;
            end_wait();
            host_waits = false;
            if
            :: parked && MUTANT != 4 -> leave_to_thread()
            :: else
            fi;
            if
            :: !closing || MUTANT == 8 ->
                serve();
                if
                :: closing && MUTANT != 10 -> edge = true
                :: else
                fi
            :: else
            fi;
            drives = (drives + 1) % 2;
            is_idle = false;
            pass_baton()
        fi
    od;
    ended++
}

proctype others() {
    bool first, has_posted = false, has_interrupted = false;
    do
    :: !has_interrupted -> /* the first driver, whose task is never posted */
        interrupted = true;
        if
        :: waiters != 0 && MUTANT != 7 -> edge = true
        :: else
        fi;
        has_interrupted = true
    :: !has_posted -> /* the task of the second one */
        atomic { first = (mailbox == 0); mailbox = mailbox | (1 << 1) }
        if
        :: first && waiters != 0 -> edge = true
        :: else
        fi;
        has_posted = true
    :: has_interrupted && has_posted -> (ended == 2); break
    :: break /* the context closes before */
    od;
    closing = true;
    if
    :: MUTANT != 9 -> edge = true
    :: else
    fi
}

init {
    atomic { run driver(0); run driver(1); run others() }
}
