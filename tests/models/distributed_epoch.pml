/* SPDX-License-Identifier: MIT
 * Epochs of several locales (docs/adr/0020-*.md): a reader on locale 0, a remover on locale 1 that defers one object and
 * frees it, and two electors that advance the epoch at the same time, since a lease may end while its holder still runs.
 * Each elector may die between any two of its messages; a successor goes on.
 *
 * A locale has copies of the epoch, which lag: P, with which its tokens are pinned, and S, with which its objects are
 * stamped. Advancing from e, the P of the elector's locale, to e + 1: every locale has acknowledged P >= e and S >= e + 1;
 * then no token is found that is pinned before e; then P follows everywhere. So no reader anywhere is pinned later than
 * any stamp. Nothing else decides what the epoch is, so no locale is needed for that. Copies only grow. Within a locale the order of memory is that of epoch.pml; here each step is whole.
 *
 * Holds: no object is freed while the reader may use it; it is freed in the end, whichever of them has died.
 *
 * Mutants:
 *   1  objects are stamped with P, a copy that lags
 *   2  P follows before each locale has acknowledged S
 *   3  objects are freed when the epoch is one higher
 *   4  tokens pinned before e are overlooked
 *   5  the stamp is read before the object is unlinked
 *   6  an elector that was overtaken sets copies back
 *   7  S follows after P
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define LOCALES 2
#define GRACE (MUTANT == 3 -> 1 : 2)

byte P[LOCALES] = 1;
byte S[LOCALES] = 1;
byte pinned[LOCALES]; /* 0 or the epoch; the tokens of a locale as one */
bool linked = true, deferred, freed;
byte stamp;
byte running = 4;

#if MUTANT == 6
#define GROW(copy, to) copy = to
#else
#define GROW(copy, to) copy = (copy > to -> copy : to)
#endif

proctype reader() {
    byte e, turns;
    bool has;
    do
    :: turns < 2 ->
       turns++;
       e = P[0];
       pinned[0] = e;
       has = linked;
       if
       :: has -> assert(!freed); assert(!freed)
       :: else
       fi;
       d_step { pinned[0] = 0; e = 0; has = false }
    :: break
    od;
    running--
}

proctype remover() {
#if MUTANT == 5
    stamp = S[1];
#endif
    linked = false;
#if MUTANT == 1
    stamp = P[1];
#elif MUTANT != 5
    stamp = S[1];
#endif
    deferred = true;
    if
    :: P[1] >= stamp + GRACE -> freed = true
    :: running == 1 -> skip /* all others have ended */
    fi;
    running--
}

/* DIES: the elector may stop here. */
#define DIES if :: may_die -> goto ended :: true fi

/* Each message to a locale and its acknowledgement are one step. */
#define ACKNOWLEDGE \
    l = 0; \
    do \
    :: l < LOCALES -> \
       DIES; \
       d_step { \
           GROW(P[l], e); /* what a dead predecessor had sent to some */ \
           if :: MUTANT != 2 || l == 0 -> GROW(S[l], e + 1) :: else fi; \
           l++ \
       } \
    :: else -> break \
    od

proctype elector(byte at; bool may_die; byte attempts) {
    byte e, l;
again:
    if
    :: attempts == 0 -> goto ended
    :: else -> attempts--
    fi;
    e = P[at];
#if MUTANT != 7
    ACKNOWLEDGE;
#endif
    l = 0;
    do
    :: l < LOCALES ->
       if
       :: pinned[l] == 0 || pinned[l] >= e || (MUTANT == 4 && pinned[l] + 1 == e) -> l++
       :: else -> goto again /* blocked */
       fi
    :: else -> break
    od;
    DIES;
    l = 0;
    do
    :: l < LOCALES -> DIES; d_step { GROW(P[l], e + 1); l++ }
    :: else -> break
    od;
#if MUTANT == 7
    ACKNOWLEDGE;
#endif
    goto again;
ended:
    skip;
    running--
}

init {
    atomic {
        run reader();
        run remover();
        run elector(0, true, 3);
        run elector(1, true, 1)
    };
    running == 0;
    running = 1;
    run elector(1, false, 3); /* whichever of them has died */
    running == 0;
    assert(freed || P[1] >= stamp + GRACE)
}
