/* SPDX-License-Identifier: MIT */
/* Model of src/store/roles for spin: two servers of a store, one of which stands by. Either may die and be started
 * again, the way between them may break, and each hears of that when it likes; what was on its way then comes, or not.
 * A process keeps what its folder has: its data, its epoch and the mark. Of time there is none: who may do something
 * after a time may do it at once.
 *
 * Checked: never two who serve by themselves; whoever begins to has all that was acknowledged. -DMUTANT=n breaks one
 * rule of docs/adr/0004, and must be caught:
 *   1  who is paired acknowledges what the other has not confirmed
 *   2  the mark `paired` is not written down before the standby gets its right
 *   3  who has lost its standby goes on alone
 *   4  the right to take over outlives the process
 *   5  who is still catching up may take over
 *   6  one whose folder says `paired` serves when it is started again
 *   7  of two that meet the one with the older mark serves, also if it was still being fed
 *   8  who has gone, and has said so, keeps its right
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define WRITES 3
#define TROUBLES 5

#define DEAD 0
#define WAITING 1
#define CATCHING 2
#define STANDBY 3
#define ALONE 4
#define PAIRED 5
#define HALTED 6

#define NONE 0
#define BEHIND 1
#define COPY 2
#define IS_PAIRED 3
#define IS_ALONE 4

#define other(i) (1 - i)
#define newer(i) (mark[i] > BEHIND && \
    (epoch[i] > epoch[other(i)] || (epoch[i] == epoch[other(i)] && mark[i] > mark[other(i)])))
#define serves_first(i) (MUTANT == 7 -> newer(other(i)) : newer(i))

byte role[2], epoch[2], mark[2], data[2]; /* the last three are in the folder */
bool right[2], up[2];                     /* up: it has heard of no end of the link */
bool took_over[2];                        /* since it got its right: what the other cannot see */
byte acked = 0, troubles = TROUBLES;

/* on the way to one */
byte new_data[2], confirmed[2], told[2]; /* told: the epoch in which it is in sync; 0: not */
bool gone[2];

inline serve_alone(i) {
    assert(data[i] >= acked);
    assert(role[other(i)] != ALONE);
    epoch[i] = (epoch[i] >= epoch[other(i)] || !up[i] -> epoch[i] + 1 : epoch[other(i)] + 1);
    mark[i] = IS_ALONE;
    role[i] = ALONE;
    right[i] = false;
}

inline empty_link() {
    new_data[0] = 0; new_data[1] = 0;
    confirmed[0] = 0; confirmed[1] = 0;
    told[0] = 0; told[1] = 0;
    gone[0] = false; gone[1] = false;
}

inline link_up() {
    empty_link();
    up[0] = true;
    up[1] = true;
}

/* All there is goes to the other, which gives up what it has. */
inline feed(i) {
    role[other(i)] = CATCHING;
    mark[other(i)] = BEHIND;
    right[other(i)] = false;
    data[other(i)] = 0;
    new_data[other(i)] = data[i];
}

proctype server(byte i) {
end:
    do
    /* ---- clients */
    :: atomic { role[i] == ALONE && data[i] < WRITES ->
        data[i]++;
        acked = data[i];
        if :: up[i] -> new_data[other(i)] = data[i] :: else fi }
    :: atomic { role[i] == PAIRED && data[i] < WRITES ->
        data[i]++;
        if :: MUTANT == 1 && acked < data[i] -> acked = data[i] :: else fi;
        if :: up[i] -> new_data[other(i)] = data[i] :: else fi }

    /* ---- what comes over the link */
    :: atomic { up[i] && (role[i] == CATCHING || role[i] == STANDBY) && new_data[i] > data[i] ->
        data[i] = new_data[i];
        confirmed[other(i)] = data[i] }
    :: atomic { up[i] && role[i] == PAIRED && confirmed[i] > acked -> acked = confirmed[i] }
    :: atomic { up[i] && role[i] == CATCHING && told[i] != 0 && new_data[i] <= data[i] ->
        role[i] = STANDBY;
        right[i] = true;
        took_over[i] = false;
        mark[i] = COPY;
        epoch[i] = told[i];
        told[i] = 0 }
    :: atomic { gone[i] && (role[i] == PAIRED || role[i] == HALTED) ->
        gone[i] = false;
        up[i] = false;
        serve_alone(i) }

    /* ---- pairing: the mark, then the word */
    :: atomic { role[i] == ALONE && up[i] && role[other(i)] == CATCHING && told[other(i)] == 0 ->
        if :: MUTANT != 2 -> mark[i] = IS_PAIRED :: else fi;
        role[i] = PAIRED }
    :: atomic { role[i] == PAIRED && up[i] && role[other(i)] == CATCHING && told[other(i)] == 0 ->
        told[other(i)] = epoch[i] }

    /* ---- the end of the link */
    :: atomic { up[i] && (troubles > 0 || !up[other(i)]) ->
        if :: up[other(i)] -> troubles-- :: else fi;
        up[i] = false;
        if
        :: role[i] == PAIRED && MUTANT != 3 -> role[i] = HALTED
        :: role[i] == PAIRED && MUTANT == 3 -> serve_alone(i)
        :: role[i] == CATCHING && MUTANT != 5 -> role[i] = WAITING
        :: else
        fi }
    :: atomic { !up[i] && right[i] && (role[i] == STANDBY || (MUTANT == 8 && role[i] == WAITING)) ->
        took_over[i] = true;
        serve_alone(i) }
    :: atomic { MUTANT == 5 && !up[i] && role[i] == CATCHING -> took_over[i] = true; serve_alone(i) }
    /* Its process has ended before it can have taken over. */
    :: atomic { role[i] == HALTED && role[other(i)] == DEAD && !took_over[other(i)] -> serve_alone(i) }

    /* ---- processes */
    :: atomic { role[i] != DEAD && troubles > 0 ->
        troubles--;
        role[i] = DEAD;
        if :: MUTANT != 4 -> right[i] = false :: else fi;
        up[i] = false }
    :: atomic { role[i] == STANDBY && up[i] && troubles > 0 -> /* it says so */
        troubles--;
        if :: MUTANT != 8 -> right[i] = false :: else fi;
        gone[other(i)] = true;
        up[i] = false;
        role[i] = WAITING }
    :: atomic { role[i] == DEAD ->
        if
        :: mark[i] == IS_ALONE || (MUTANT == 6 && mark[i] == IS_PAIRED) -> serve_alone(i)
        :: MUTANT == 4 && right[i] -> role[i] = STANDBY
        :: else -> role[i] = WAITING
        fi }

    /* ---- they meet */
    :: atomic { !up[0] && !up[1] && role[i] == ALONE && (role[other(i)] == WAITING || role[other(i)] == HALTED) ->
        link_up();
        feed(i) }
    :: atomic { !up[0] && !up[1] && role[i] == HALTED && role[other(i)] == STANDBY && epoch[i] == epoch[other(i)] ->
        link_up();
        role[i] = PAIRED;
        new_data[other(i)] = data[i];
        confirmed[i] = data[other(i)] }
    :: atomic { !up[0] && !up[1] && (role[i] == WAITING || role[i] == HALTED) &&
                (role[other(i)] == WAITING || role[other(i)] == HALTED) && serves_first(i) ->
        link_up();
        serve_alone(i);
        feed(i) }
    od
}

init {
    atomic {
        role[0] = ALONE;
        epoch[0] = 1;
        mark[0] = IS_ALONE;
        role[1] = WAITING;
        run server(0);
        run server(1)
    }
}
