/* SPDX-License-Identifier: MIT */
/* Model of the shared memory of a group for spin: src/group/board.cpp, and the small broadcasts of src/group/board_path.cpp.
 * Members perform OPS operations, each a barrier or a small broadcast by some root, and then close, which is a barrier.
 * One member may perform another operation than the others at some place. A member has one or two places for
 * announcements; with one, the second of two small broadcasts that follow each other is performed as a barrier.
 *
 * Steps of members are in any order; each is sequentially consistent, as the operations on the turn and on the mark of
 * sleepers are. A member sleeps if the turn has not changed since it read it, and wakes by a wake alone.
 *
 * Checked: each member ends, so no wake-up is lost, and none waits for ever because another performs something else.
 * If all perform the same, none fails and each reads what the root has announced for this operation; otherwise all
 * fail.
 * -DMUTANT=n breaks one rule, and must be caught:
 *   1  the mark of sleepers is taken away after the turn has changed
 *   2  an announcement is counted before it has its number
 *   3  a member does not register before it sleeps
 *   4  a sleeper sets its mark after it has found the turn unchanged
 *   5  a root does not wait until the announcement before its own is counted
 *   6  a member at the barrier does not compare the number of announcements
 *   7  a place is used again without a barrier
 *   8  a reader does not compare the fingerprint
 */
#ifndef MUTANT
#define MUTANT 0
#endif
#define N 3   /* members */
#define OPS 2 /* and the close */
#define BARRIER 0 /* a fingerprint; 1 + r: small broadcast of rank r; 5 + r: of another size */
#define CLOSE 9

byte turn_sense = 0, turn_count = 0;
bool failed = false;
byte arrived = 0;
bool mark = false; /* Head::sleepers */
bool sleeping[N] = false;
byte registered_number = 0, registered_print = 0;
byte places = 1; /* of each member */
byte place_number[6] = 0, place_print[6] = 0, place_operation[6] = 0; /* 2 * rank + number % places */
byte published[6] = 0; /* fingerprint of the barrier, by rank and parity of the step: 10 * operation + fingerprint */

byte plan[OPS];                  /* what all perform */
byte deviant = N, at = 0, instead = 0; /* but for this member, there */
byte ended = 0, mismatches = 0;

inline wake_all() { d_step { sleeping[0] = false; sleeping[1] = false; sleeping[2] = false } }
inline fail() { failed = true; wake_all() }

/* Before it sleeps; result 2 if another member performs something else. */
inline register() {
    if
    :: MUTANT == 3
    :: MUTANT != 3 && registered_number == operation && registered_print != print -> result = 2
    :: MUTANT != 3 && registered_number < operation -> registered_number = operation; registered_print = print
    :: else
    fi
}
inline sleep_or_go_on() {
    if
    :: MUTANT != 4 -> mark = true
    :: else
    fi;
    atomic {
        if
        :: turn_sense == now_sense && turn_count == now_count && !failed -> sleeping[me] = true
        :: else
        fi
    }
    if
    :: MUTANT == 4 -> mark = true
    :: else
    fi;
    !sleeping[me]
}
inline change_begins() {
    atomic { had = (MUTANT != 1 && mark); if :: had -> mark = false :: else fi }
}
inline change_ends() { /* a later wake-up would only wake more */
    if
    :: MUTANT == 1 ->
        if
        :: mark -> mark = false; wake_all()
        :: else
        fi
    :: else -> atomic { if :: had || mark -> wake_all() :: else fi; had = false }
    fi
}
#define MORE(count) ((count) > announced)

inline meet() {
    atomic {
        published[2 * me + step % 2] = 10 * operation + print;
        now_sense = turn_sense; now_count = turn_count; before = turn_sense;
        if
        :: failed -> result = 1
        :: !failed && MUTANT != 6 && MORE(now_count) -> result = 2
        :: else -> arrived++; is_last = (arrived == N)
        fi
    }
    if
    :: result != 0
    :: result == 0 && is_last ->
        atomic { arrived = 0; is_last = false }
        change_begins();
        turn_sense = 1 - turn_sense;
        change_ends()
    :: else ->
        do
        :: atomic {
                now_sense = turn_sense; now_count = turn_count;
                if
                :: now_sense != before -> break
                :: now_sense == before && failed -> result = 1; break
                :: now_sense == before && !failed && MUTANT != 6 && MORE(now_count) -> result = 2; break
                :: else
                fi
            }
            atomic {
                register();
                if
                :: result == 2 -> break
                :: else
                fi
            }
            sleep_or_go_on()
        od
    fi;
    atomic {
        if
        :: result == 0 -> /* compare() */
            step++; met_after = announced; k = 0;
            do
            :: k == N -> k = 0; break
            :: k < N ->
                if
                :: published[2 * k + (step - 1) % 2] != 10 * operation + print -> result = 2
                :: else
                fi;
                k++
            od
        :: else
        fi;
        now_sense = 0; now_count = 0; before = 0
    }
}

inline write_announcement() {
    d_step {
        place_print[2 * me + announced % places] = print;
        place_operation[2 * me + announced % places] = operation;
        place_number[2 * me + announced % places] = announced + 1
    }
}

inline announce() {
    if
    :: MUTANT != 2 -> write_announcement()
    :: else
    fi;
    do
    :: atomic {
            now_sense = turn_sense; now_count = turn_count;
            if
            :: MUTANT == 5 || now_count >= announced -> break
            :: MUTANT != 5 && now_count < announced && failed -> result = 1; break
            :: else
            fi
        }
        atomic {
            register();
            if
            :: result == 2 -> break
            :: else
            fi
        }
        sleep_or_go_on()
    od;
    if
    :: result == 0 ->
        change_begins();
        atomic {
            if
            :: failed -> result = 1
            :: !failed && turn_count != announced -> result = 2
            :: else -> turn_count++
            fi
        }
        if
        :: result == 0 ->
            if
            :: MUTANT == 2 -> write_announcement()
            :: else
            fi;
            announced++;
            change_ends()
        :: else
        fi
    :: else
    fi
}

inline receive() {
    k = (print - 1) % 4;
    do
    :: atomic { now_sense = turn_sense; now_count = turn_count }
        atomic {
            if
            :: place_number[2 * k + announced % places] == announced + 1 -> break
            :: place_number[2 * k + announced % places] != announced + 1 && failed -> result = 1; break
            :: place_number[2 * k + announced % places] != announced + 1 && !failed && MORE(now_count) -> result = 2; break
            :: else
            fi
        }
        atomic {
            register();
            if
            :: result == 2 -> break
            :: else
            fi
        }
        sleep_or_go_on()
    od;
    atomic {
        if
        :: result == 0 && place_print[2 * k + announced % places] != print && MUTANT != 8 -> result = 2
        :: result == 0 && (place_print[2 * k + announced % places] == print || MUTANT == 8) ->
            assert(place_operation[2 * k + announced % places] == operation && place_print[2 * k + announced % places] == print);
            announced++
        :: else
        fi;
        k = 0; now_sense = 0; now_count = 0
    }
}

proctype member(byte me) {
    byte operation = 1, print = 0, announced = 0, met_after = 0, step = 1, k = 0;
    byte now_sense = 0, now_count = 0, before = 0, result = 0; /* 1: aborted, 2: mismatch */
    bool is_last = false, had = false;
    do
    :: result == 0 && operation <= OPS + 1 ->
        atomic {
            if
            :: operation > OPS -> print = CLOSE
            :: operation <= OPS && me == deviant && at == operation - 1 -> print = instead
            :: else -> print = plan[operation - 1]
            fi
        }
        if
        :: print == BARRIER || print == CLOSE || (announced - met_after == places && MUTANT != 7) -> meet()
        :: else ->
            if
            :: (print - 1) % 4 == me -> announce()
            :: else -> receive()
            fi
        fi;
        operation++
    :: else -> break
    od;
    if
    :: result == 2 -> atomic { mismatches++; failed = true }; wake_all()
    :: else
    fi;
    atomic {
        assert(deviant != N || result == 0);
        assert(deviant == N || result != 0);
        ended++;
        assert(ended != N || deviant == N || mismatches != 0)
    }
}

init {
    byte i = 0;
    atomic {
        if :: MUTANT != 7 -> places = 2 :: places = 1 fi;
        do
        :: i == OPS -> break
        :: i < OPS ->
            if
            :: i != 0 -> plan[i] = 2 /* that of rank 1 as the first one is the same with other ranks */
            :: plan[i] = 1
            :: plan[i] = BARRIER
            fi;
            i++
        od;
        if
        :: true /* all perform the same */
        :: true ->
            if :: deviant = 0 :: deviant = 1 :: deviant = 2 fi;
            if :: at = 0 :: at = 1 fi;
            if :: instead = BARRIER :: instead = 1 :: instead = 2 :: instead = 3 :: instead = 5 fi;
            if
            :: instead != plan[at]
            :: else -> deviant = N
            fi
        fi;
        run member(0); run member(1); run member(2)
    }
}
