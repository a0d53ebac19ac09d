/* SPDX-License-Identifier: MIT
 * Epoch-based reclamation (src/epoch): a reader, a remover that defers one object, and two threads that advance the epoch
 * at the same time, one of which frees it. The asymmetric fence is modelled: the reader's pin goes into a store buffer of one entry,
 * and reaches memory at any time, or when a thread that advances calls the heavy fence.
 *
 * Holds: no object is freed while the reader may use it.
 *
 * Mutants:
 *   1  the stamp is the epoch of the token, as published
 *   2  objects are freed when the epoch is one higher
 *   3  the heavy fence is missing
 *   4  the stamp is read before the object is unlinked
 *   5  a protected object is not looked for
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define LAST 4
#define GRACE (MUTANT == 2 -> 1 : 2)

byte epoch = 1;
byte pinned[2];      /* in memory: 0 or the epoch; reader, remover */
byte buffered = 0;   /* the reader's pin that has not reached memory; 0: none */
bool hazard = false; /* the object is protected; published by the unpin */
bool linked = true, deferred, freed;
byte stamp;

active proctype reader() {
    byte e, turns = 0;
    bool has;
    do
    :: turns < 2 ->
       turns++;
       e = epoch;
       buffered = e; /* the store; the loads below may come before it reaches memory */
       has = linked;
       if
       :: has ->
          assert(!freed);
          assert(!freed);
          if
          :: /* protect it, unpin, and go on using it: the stores reach memory in order */
             atomic { pinned[0] = e; buffered = 0 }
             hazard = true;
             pinned[0] = 0;
             assert(!freed);
             assert(!freed);
             hazard = false
          :: skip
          fi
       :: else
       fi;
       d_step { buffered = 0; pinned[0] = 0; e = 0; has = false }
    :: break
    od
}

/* The store buffer drains. */
active proctype memory() {
    do
    :: atomic { buffered != 0 -> pinned[0] = buffered; buffered = 0 }
    :: timeout -> break
    od
}

active proctype remover() {
    byte e;
    e = epoch;
    pinned[1] = e;
#if MUTANT == 4
    stamp = epoch;
#endif
    linked = false;
#if MUTANT == 1
    stamp = e;
#elif MUTANT != 4
    stamp = epoch;
#endif
    deferred = true;
    pinned[1] = 0
}

proctype reclaimer(bool frees) {
    byte e, seen;
    bool passed;
    do
    :: epoch < LAST ->
       e = epoch;
#if MUTANT != 3
       atomic { if :: buffered != 0 -> pinned[0] = buffered; buffered = 0 :: else fi }
#endif
       seen = pinned[0];
       passed = seen == 0 || seen == e;
       d_step { seen = pinned[1]; passed = passed && (seen == 0 || seen == e); seen = 0 }
       d_step { if :: passed && epoch == e -> epoch = e + 1 :: else fi; e = 0; passed = false }
       if
       :: frees && deferred && !freed && epoch >= stamp + GRACE ->
          if
#if MUTANT != 5
          :: hazard -> skip
#endif
          :: MUTANT == 5 || !hazard -> freed = true
          fi
       :: else
       fi
    :: break
    od
}

init {
    atomic { run reclaimer(true); run reclaimer(false) }
}
