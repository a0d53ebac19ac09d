/* SPDX-License-Identifier: MIT */
/* Model of src/rendezvous/promises.hpp for spin: the members of a round, the store where it was made, which lives in the
 * process of member 0, and stores of two others where the next round may be made instead. Members lose the first store,
 * promise (as one who leaves does, too) and die, whenever and in whatever order; what they have sent arrives later or
 * never, also when they are dead. Where they go to promise is not in it: any store they could have found will do.
 *
 * Time is in it at one place: a member that has lost the first store without knowing that its process is gone promises
 * nothing elsewhere before it can no longer count as dead there. Its way to that store is `ended` while it can.
 *
 * Checked: the next round is made at one store at most. -DMUTANT=n breaks one rule, and must be caught:
 *   1  half of the round suffices elsewhere, too
 *   2  a member promises again at another store
 *   3  where the round was made no promises are needed
 *   4  who has lost the store promises elsewhere without waiting
 *   5  the dead count elsewhere, too
 *   6  a refused dial proves a death at any time
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define N 4
#define HOME 0 /* the store where the round was made, and its host; store k is that of member k */
#define STORES 3
#define NOWHERE STORES

mtype = { linked, ended, closed }; /* the way of a member to the first store, as that has seen it */
mtype way[N] = linked;
bool dead[N], sent[N]; /* sent: a promise that has not arrived so far */
byte promised[N] = NOWHERE;
byte given[STORES];     /* whose promise is there; a bit each */
byte gone = 0;          /* who counts as dead at the first store */
byte made_at = NOWHERE; /* the next round */
byte k = 0, s = 0;

#define bit(k) (1 << k)
#define one(b, k) ((b >> k) & 1)
#define size(b) (one(b, 0) + one(b, 1) + one(b, 2) + one(b, 3))
#define the_dead (bit(0) * dead[0] | bit(1) * dead[1] | bit(2) * dead[2] | bit(3) * dead[3])
#define counted(s) (given[s] | (s == HOME -> gone : (MUTANT == 5 -> the_dead : 0)))
#define needed(s) (s == HOME -> (MUTANT == 3 -> 0 : (N + 1) / 2) : (MUTANT == 1 -> N / 2 : N / 2 + 1))
#define may_promise(k, s) (promised[k] == NOWHERE || (MUTANT == 2 && !sent[k] && promised[k] != s))
#define may_be_at(k, s) (s == HOME || (k != 0 && (dead[HOME] || way[k] == closed || (MUTANT == 4 && way[k] == ended))))

init {
    do
    :: atomic {
        select(k : 0 .. N - 1);
        select(s : 0 .. STORES - 1);
        if
        :: !dead[k] -> /* it dies, and its store with it */
            dead[k] = true;
            if
            :: way[k] == linked -> way[k] = ended
            :: else -> skip
            fi
        :: !dead[k] && k != 0 && way[k] == linked -> /* it hears nothing, or is told that nobody listens there */
            way[k] = ended
        :: !dead[k] && may_promise(k, s) && may_be_at(k, s) ->
            promised[k] = s;
            sent[k] = true
        :: sent[k] && !dead[promised[k]] ->
            given[promised[k]] = given[promised[k]] | bit(k);
            sent[k] = false
        :: way[k] == ended -> /* its lease there would be over by now */
            way[k] = closed
        :: dead[k] && !dead[HOME] && (way[k] == ended || MUTANT == 6) -> /* its own store refuses */
            gone = gone | bit(k)
        :: !dead[s] && size(counted(s)) >= needed(s) ->
            assert(made_at == NOWHERE || made_at == s);
            made_at = s
        :: else -> skip
        fi;
        k = 0;
        s = 0
    }
    od
}
