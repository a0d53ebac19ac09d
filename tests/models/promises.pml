/* SPDX-License-Identifier: MIT */
/* Model of src/rendezvous/machine/promises.hpp for spin: the members of a round, the store where it was made, which lives in the
 * process of member 0, and stores of other members where the next round may be made instead. Members lose the first
 * store, promise (as a member that leaves does, too), die and are restarted, at any time and in any order; what they have
 * sent arrives later or never, also when they are dead. Where they go to promise is not in the model: any store they
 * could have found will do.
 *
 * A member that has promised where the round was made, and has lost that store, promises once more at others, in a way
 * that counts together with the promise of member 0 alone.
 *
 * A member that is restarted is an heir: it has a state file, in which its promise was written before it was sent. The
 * stores of a process end with it; store HEIRS is that of the heir of member 0.
 *
 * Time is in the model at one place: a member that has lost the first store without knowing that its process is gone
 * promises nothing elsewhere before it can no longer count as dead there. Its way to that store is `ended` while it can.
 *
 * Checked: the next round is made at one store at most, by three members; -DN=4 checks four, which takes hours.
 * -DMUTANT=n breaks one rule, and must be caught:
 *   1  half of the round suffices elsewhere, too
 *   2  a member promises again at another store
 *   3  where the round was made no promises are needed
 *   4  a member that has lost the store promises elsewhere without waiting
 *   5  the dead count elsewhere, too
 *   6  a refused dial proves a death at any time
 *   7  an heir does not know what its former process has promised
 *   8  heirs count elsewhere also without the promise of member 0 or its heir
 *   9  where the round was made the promise of member 0 is not needed
 *   10 member 0 promises elsewhere, too, what it has promised where the round was made
 *   11 a member that has promised elsewhere promises once more
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#ifndef N
#define N 3
#endif
#define HOME 0 /* the store where the round was made, and its host; stores 1 and 2 are those of members 1 and 2 */
#define HEIRS 3
#define STORES 4
#define NOWHERE STORES

mtype = { linked, ended, closed }; /* the way of a member to the first store, as that has seen it */
mtype way[N] = linked;
bool dead[N];
mtype = { nothing, own, of_heir };
mtype sent[N] = nothing; /* a promise that has not arrived so far, of the first process or of its heir */
bool heir[N];            /* it was restarted */
bool provable[N];        /* its former process ended while its way to the first store was not closed */
bool lost[STORES];       /* the process that had this store has ended */
byte promised[N] = NOWHERE;
byte given[STORES];     /* whose promise is there; a bit each */
byte inherited[STORES]; /* the same, of heirs */
byte gone = 0;          /* who counts as dead at the first store */
byte made_at = NOWHERE; /* the next round */
byte k = 0, s = 0;

#define bit(k) (1 << k)
#define one(b, k) ((b >> k) & 1)
#define size(b) (one(b, 0) + one(b, 1) + one(b, 2) + one(b, 3))
#if N == 4
#define the_dead (bit(0) * dead[0] | bit(1) * dead[1] | bit(2) * dead[2] | bit(3) * dead[3])
#else
#define the_dead (bit(0) * dead[0] | bit(1) * dead[1] | bit(2) * dead[2])
#endif
#define by_host(s) (one(given[s], HOME) || one(inherited[s], HOME))
#define of_heirs(s) ((by_host(s) || MUTANT == 8) -> inherited[s] : 0)
#define at_home (given[HOME] | inherited[HOME] | gone)
#define elsewhere(s) (given[s] | of_heirs(s) | (MUTANT == 5 -> the_dead : 0))
#define counted(s) (s == HOME -> at_home : elsewhere(s))
#define needed(s) (s == HOME -> (MUTANT == 3 -> 0 : (N + 1) / 2) : (MUTANT == 1 -> N / 2 : N / 2 + 1))
#define host_agrees(s) (s != HOME || by_host(HOME) || MUTANT == 9 || MUTANT == 3)
#define may_promise(k, s) (promised[k] == NOWHERE || (MUTANT == 2 && sent[k] == nothing && promised[k] != s))
#define may_leave_home(k) (lost[HOME] || way[k] == closed || (MUTANT == 4 && way[k] == ended))
#define may_be_at(k, s) (!lost[s] && (s == HOME || (may_leave_home(k) && (s != HEIRS || heir[HOME]))))

init {
    do
    :: atomic {
        select(k : 0 .. N - 1);
        select(s : 0 .. STORES - 1);
        if
        :: !dead[k] -> /* it dies, and its stores with it */
            dead[k] = true;
            provable[k] = provable[k] || way[k] != closed;
            if
            :: way[k] == linked -> way[k] = ended
            :: else -> skip
            fi;
            if
            :: k != HOME && k < HEIRS -> lost[k] = true
            :: k == HOME && !heir[k] -> lost[HOME] = true
            :: k == HOME && heir[k] -> lost[HEIRS] = true
            :: else -> skip
            fi
        :: dead[k] && !heir[k] -> /* it is restarted */
            dead[k] = false;
            heir[k] = true;
            way[k] = closed;
            if
            :: promised[k] != NOWHERE && sent[k] == nothing && !lost[promised[k]] -> sent[k] = of_heir /* once more */
            :: else -> skip
            fi;
            if
            :: MUTANT == 7 -> promised[k] = NOWHERE; sent[k] = nothing
            :: else -> skip
            fi
        :: !dead[k] && k != HOME && way[k] == linked -> /* it hears nothing, or a dial there is refused */
            way[k] = ended
        :: !dead[k] && may_promise(k, s) && may_be_at(k, s) ->
            promised[k] = s;
            sent[k] = (heir[k] -> of_heir : own)
        :: promised[k] != NOWHERE && (promised[k] == HOME || MUTANT == 11) && (k != HOME || MUTANT == 10) &&
           s != HOME && !lost[s] && (dead[k] || may_be_at(k, s)) -> /* once more, with member 0 */
            if
            :: MUTANT == 11 -> given[s] = given[s] | bit(k)
            :: else -> inherited[s] = inherited[s] | bit(k)
            fi
        :: sent[k] != nothing && !lost[promised[k]] ->
            if
            :: sent[k] == of_heir -> inherited[promised[k]] = inherited[promised[k]] | bit(k)
            :: else -> given[promised[k]] = given[promised[k]] | bit(k)
            fi;
            sent[k] = nothing
        :: way[k] == ended -> /* its lease there would be over by now */
            way[k] = closed
        :: !lost[HOME] && ((dead[k] && (way[k] == ended || MUTANT == 6)) || (heir[k] && provable[k])) ->
            gone = gone | bit(k) /* its former store refuses */
        :: !lost[s] && size(counted(s)) >= needed(s) && host_agrees(s) ->
            assert(made_at == NOWHERE || made_at == s);
            made_at = s
        :: else -> skip
        fi;
        k = 0;
        s = 0
    }
    od
}
