/* SPDX-License-Identifier: MIT */
/* Model of src/stream/direction_lock.hpp for spin: two threads that lock and unlock, and one that releases the stream.
 *
 * The machine is x86-like (TSO): a plain store of `inside` goes into the thread's store buffer and reaches memory any
 * time later; locked instructions and process_barrier() empty it. The other variables are only written by locked
 * instructions, or by whoever holds the word, and are kept in memory. C++ orders weaker than TSO are excluded by the
 * barrier itself, which is a full one on every thread.
 *
 * Checked: never two holders; nobody touches the stream after it was freed; it is freed exactly once; nobody waits for
 * ever (spin's end states). -DMUTANT=n breaks the protocol in one place, and must be caught; 2, 3, 5 and 6 were versions
 * of the code once, and this model found them:
 *   1  no barrier
 *   2  the transfer does not say whose it is: a slow thread takes another one's
 *   3  all owners share one `inside`: a late store of a former owner hides the new one
 *   4  settle() leaves before it has the word
 *   6  settle() leaves the clearing of the owner to the other thread
 *   5  a slow thread clears an owner that came after the one it saw
 *   7  settle() keeps the owner: a thread that sleeps by driving the engine comes in a second time
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define FREE 0
#define HELD 1
#define WAITED 2
#define ORPHANED 3

byte word = FREE, owner = 0, transfer = 0, changes = 0;
#define owner_of(o) ((o) & 3)   /* the owner is a thread and the number of the change that made it the owner */
#define slot_of(o) ((o) >> 2)
byte inside[3] = 0;                  /* in memory; one per change, so that a late store of a former owner hits nobody */
chan store[3] = [2] of {byte, byte}; /* store buffers of threads 1 and 2; 0 is never used */
byte holders = 0, frees = 0, entering = 0, finished = 0;
byte references = 1; /* the host's */
bool released = false;

#define touch assert(frees == 0)

inline drop_reference() {
    atomic {
        touch;
        references--;
        if
        :: references == 0 -> frees++
        :: else
        fi
    }
}

/* One store leaves a buffer. */
active proctype machine() {
    byte v, at;
    do
    :: atomic { store[1]?at,v -> inside[at] = v }
    :: atomic { store[2]?at,v -> inside[at] = v }
    :: finished == 3 && empty(store[1]) && empty(store[2]) -> break
    od
}

inline drain(t) {
    do
    :: store[t]?at,v -> inside[at] = v
    :: empty(store[t]) -> break
    od
}

/* The word is ours: take the bias away. got: whether we hold the lock now. */
inline take_bias_away(me) {
    touch;
    if
    :: atomic { owner == 0 || owner_of(owner) == me -> got = true }
    :: atomic { owner != 0 && owner_of(owner) != me -> changes++; taken = owner }
       transfer = me; touch;
#if MUTANT == 5
       owner = 0;
#else
       atomic { /* unless it was accepted by settle() already, and somebody is the owner anew */
           if
           :: owner == taken -> owner = 0
           :: else
           fi
       }
#endif
#if MUTANT != 1
       atomic { drain(1); drain(2) } /* process_barrier() */
#endif
       (inside[slot_of(taken)] == 0 || transfer != me);
       touch;
#if MUTANT == 2
       atomic { got = (transfer != 0); transfer = 0 }
#else
       atomic {
           got = (transfer == me);
           if
           :: got -> transfer = 0
           :: else
           fi
       }
#endif
    fi
}

inline unlock_word(me) {
    touch;
    if
#if MUTANT == 3
    :: atomic { changes < 2 && word == HELD -> owner = me }
#else
    :: atomic { changes < 2 && word == HELD -> owner = me + 4 * changes }
#endif
    :: true /* it has not held the lock often enough in a row */
    fi;
    touch;
    atomic {
        drain(me);
        if
        :: word == ORPHANED -> orphan = true
        :: else -> word = FREE
        fi
    }
    if
    :: orphan -> drop_reference() /* the host's share of the stream was left to us */
    :: else
    fi
}

inline critical() {
    atomic { holders++; assert(holders == 1); touch }
    atomic { holders--; touch }
}

proctype user(byte me) {
    byte v, at, turn = 0, seen, taken;
    bool got, orphan = false;
    do
    :: turn == 3 -> break
    :: released -> break
    :: atomic { turn < 3 && !released -> turn++; entering++ }
       /* enter_by_bias */
       seen = owner;
       if
       :: owner_of(seen) == me ->
          store[me]!slot_of(seen),1;
          if
          :: owner == seen ->
             entering--;
             if
             :: critical(); touch; store[me]!slot_of(seen),0
             :: touch; /* settle */
#if MUTANT == 4
                store[me]!slot_of(seen),0;
#endif
                got = false;
                atomic {
                    drain(me);
                    if
                    :: word == FREE -> word = HELD; got = true
                    :: else
                    fi
                }
                if
                :: got
#if MUTANT != 7
                   -> touch; owner = 0
#endif
                :: else -> /* accept_transfer: the word is ours; he may not have cleared the owner yet */
                   atomic { transfer != 0 -> drain(me); transfer = 0 }
#if MUTANT != 6
                   touch;
                   owner = 0
#endif
                fi;
                touch;
                assert(owner_of(owner) != me); /* it may sleep by driving the engine, and must not come in again there */
                store[me]!slot_of(seen),0;
                critical();
                unlock_word(me)
             fi
          :: else ->
             atomic { drain(me); got = (transfer != 0); transfer = 0 }
             store[me]!slot_of(seen),0;
             entering--;
             if
             :: got -> critical(); unlock_word(me)
             :: else
             fi
          fi
       :: else -> /* try_lock by the word, with a reference of our own */
          atomic { touch; references++ }
          got = false;
          atomic {
              drain(me);
              if
              :: word == FREE -> word = HELD; got = true
              :: else
              fi
          }
          entering--;
          if
          :: got ->
             take_bias_away(me);
             if
             :: got -> critical(); unlock_word(me)
             :: else
             fi
          :: else
          fi;
          drop_reference()
       fi
    od;
    finished++
}

proctype releaser() {
    byte v, at, before, taken;
    bool got;
    atomic { entering == 0 -> released = true } /* a thread about to enter is not inside yet: the host's business */
    references++; /* the share of this direction */
    atomic { touch; before = word; word = ORPHANED }
    if
    :: before == FREE ->
       take_bias_away(3);
       if
       :: got -> drop_reference()
       :: else
       fi
    :: else
    fi;
    drop_reference();
    finished++
}

init {
    atomic { run user(1); run user(2); run releaser() }
    (finished == 3 && empty(store[1]) && empty(store[2]));
    assert(frees == 1 && references == 0)
}
