/* SPDX-License-Identifier: MIT */
/* Model of src/rendezvous for spin: members that join, join again, abort, die, or sleep while their lease runs out; the
 * one of them that leads makes a round in parts, and may be replaced between any two steps without knowing. What the
 * store does at once is one atomic step; a member's steps happen at any time, or never once it has died, but for what it
 * had sent already.
 *
 * Checked: one world for each round; no round begins while somebody is in the last one; ranks are different; nobody who
 * is known to be dead gets a place; when nothing more happens nobody waits who could be in a round. -DMUTANT=n breaks
 * one rule, and must be caught:
 *   1  the record of the round is not tied to the version of the leader's key
 *   2  places are not tied to the leases of their members
 *   3  a round begins though somebody is in the last one
 *   4  a place counts before the record of its round is there
 *   5  places are tied neither to the leader's key nor to the version of the round: late ones count
 *   6  who finds its place in an aborted round does not ask anew
 *   7  nobody leads after the leader
 *   8  an aborted round is still waited for
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define N 3
#define MIN 2
#define joins_of(k) (k == 2 -> 1 : 2)
#define TROUBLES 2
#define all(k) k = 0; do :: k < N ->
#define next(k) k++ :: else -> break od; k = 0

/* the store */
byte leader = 0, leader_version = 0; /* id + 1 */
byte round = 0, attempt = 0, round_version = 0;
bool aborted = false;
byte record[N]; /* ticket; 0: not there */
byte lease[N];  /* number; 0: none */
byte place_attempt[N], place_ticket[N], place_rank[N];

/* to check */
byte attempt_of[8];
byte in[N];   /* attempt of the round a member is in */
byte rank[N];
bool seeks[N], dead[N];
byte attempts = 0, leases = 0, troubles = TROUBLES; /* leases that run out, deaths and aborts */

#define is_in(k) (place_attempt[k] == attempt && attempt != 0 && !aborted && place_ticket[k] == record[k] && record[k] != 0)
#define is_void(k) (place_attempt[k] == attempt && attempt != 0 && aborted && place_ticket[k] == record[k])
#define stays(k) (is_in(k) || (MUTANT == 8 && is_void(k)))
#define may_seek(k) (record[k] != 0 && !is_in(k) && !is_void(k))

inline rest() { /* one value for what does not matter */
    stage = 0;
    mine = 0;
    seen_round = 0;
    count = 0;
    all(k)
        seen[k] = 0;
        seen_lease[k] = 0;
    next(k)
}

inline forget(k) { /* its lease is over */
    lease[k] = 0;
    record[k] = 0;
    place_attempt[k] = 0;
    place_ticket[k] = 0;
    if
    :: leader == k + 1 -> leader = 0
    :: else
    fi
}

proctype member(byte i) {
    byte ticket = 0, joins = 0, term = 0, k = 0, count = 0, mine = 0, stage = 0, seen_round = 0;
    byte seen[N], seen_lease[N]; /* tickets and leases of those who are to get a place */
end:
    do
    :: atomic { !dead[i] && joins < joins_of(i) && !seeks[i] -> /* joins, or joins again */
            joins++;
            ticket++;
            in[i] = 0;
            seeks[i] = true;
            if
            :: lease[i] == 0 -> leases++; lease[i] = leases
            :: else
            fi;
            record[i] = ticket }
    :: atomic { !dead[i] && seeks[i] && lease[i] == 0 -> /* sees that it was taken for dead */
            ticket++;
            leases++;
            lease[i] = leases;
            record[i] = ticket }
    :: atomic { !dead[i] && seeks[i] && lease[i] != 0 && place_ticket[i] == ticket && place_attempt[i] != 0 &&
                ((place_attempt[i] == attempt && !aborted) || MUTANT == 4) -> /* is in */
            assert(place_attempt[i] == attempt_of[round]);
            seeks[i] = false;
            in[i] = place_attempt[i];
            rank[i] = place_rank[i];
            all(k)
                assert(k == i || in[k] != in[i] || rank[k] != rank[i]);
            next(k) }
    :: atomic { !dead[i] && seeks[i] && lease[i] != 0 && is_void(i) && place_ticket[i] == ticket && MUTANT != 6 ->
            ticket++;
            record[i] = ticket }
    :: atomic { !dead[i] && in[i] != 0 && in[i] == attempt && !aborted && troubles > 0 ->
            troubles--;
            aborted = true;
            round_version++;
            in[i] = 0 }
    :: atomic { !dead[i] && term == 0 && leader == 0 && record[i] != 0 && !(MUTANT == 7 && leader_version > 0) ->
            leader = i + 1;
            leader_version++;
            term = leader_version }
    :: atomic { !dead[i] && term != 0 && (leader != i + 1 || leader_version != term) -> /* sees that it was replaced */
            term = 0;
            rest() }
    :: atomic { !dead[i] && term != 0 && stage == 0 && may_seek(0) + may_seek(1) + may_seek(2) >= MIN &&
                (!stays(0) && !stays(1) && !stays(2) || MUTANT == 3) -> /* sees who is there */
            all(k)
                seen[k] = 0;
                if
                :: may_seek(k) -> seen[k] = record[k]; seen_lease[k] = lease[k]
                :: else
                fi;
            next(k);
            seen_round = round_version;
            stage = 1 }
    :: atomic { stage == 1 -> /* the places; sent, so done or not also if it has died */
            stage = 2;
            if
            :: MUTANT != 5 && (leader_version != term || leader == 0 || round_version != seen_round) -> stage = 0
            :: else
            fi;
            all(k)
                if
                :: seen[k] != 0 && lease[k] != seen_lease[k] && MUTANT != 2 -> stage = 0
                :: else
                fi;
            next(k);
            if
            :: stage == 2 ->
                attempts++;
                mine = attempts;
                all(k)
                    if
                    :: seen[k] != 0 ->
                        assert(lease[k] != 0);
                        place_attempt[k] = mine;
                        place_ticket[k] = seen[k];
                        place_rank[k] = count;
                        count++
                    :: else
                    fi;
                next(k);
                count = 0
            :: else -> rest()
            fi }
    :: atomic { stage == 2 -> /* the record of the round */
            if
            :: (leader_version == term && leader != 0 || MUTANT == 1) && round_version == seen_round ->
                all(k) /* whoever was in has gone, and whoever gets a place has it */
                    assert(!(is_in(k) && in[k] == attempt && !dead[k]));
                    assert(seen[k] == 0 || lease[k] != seen_lease[k] || place_attempt[k] == mine);
                next(k);
                assert(round == 0 || attempt_of[round] == attempt);
                round++;
                attempt = mine;
                attempt_of[round] = mine;
                aborted = false;
                round_version++
            :: else
            fi;
            rest() }
    od
}

/* What befalls a member. */
proctype fate(byte i) {
end:
    do
    :: atomic { troubles > 0 && lease[i] != 0 && !dead[i] -> troubles--; forget(i) }
    :: atomic { troubles > 0 && lease[i] != 0 && !dead[i] -> troubles--; dead[i] = true }
    :: atomic { dead[i] && lease[i] != 0 -> forget(i) }
    od
}

init {
    atomic {
        run member(0);
        run member(1);
        run member(2);
        run fate(0);
        run fate(1);
        run fate(2)
    }
    byte k = 0, waiting = 0, present = 0;
    timeout -> /* nothing more happens */
    d_step {
        all(k)
            if
            :: seeks[k] && !dead[k] -> waiting++
            :: else
            fi;
            if
            :: is_in(k) && !dead[k] -> present++
            :: else
            fi;
        next(k)
    }
    assert(waiting < MIN || present != 0);
    assert(!(waiting != 0 && leader == 0))
}
