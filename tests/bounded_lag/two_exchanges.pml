// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// LagSchedule and FlightServer (plan/lag_schedule.ipp, plan/flight_server.ipp): flights of two exchanges, ids to the
// ranks that own rows, which all do, and rows back. What can happen is all orders of the steps below. A put arrives at
// once: one that arrives later only delays who reads it, who may be late anyway; and bytes may land from the put on.
//
// Four things are wrong, and looked for: a put into a slot that was not read, a state in which nobody can go on, and
// with TOGETHER a rank that is more than K + 1 flights ahead of another, or takes part in more flights than there are.
//
//   P       ranks, 2 or 3
//   K       how far they may be apart
//   N       flights that a rank starts before each drain
//   DRAINS  how many drains there are
//   ID_SLOTS, ROW_SLOTS, DONE_SLOTS  of an ordered pair of ranks
//   TOGETHER      1: all are answered at once, and after the own start of that flight; 0: each as it comes
//   FEWER         so many flights less does rank 0 start before the first drain
//   THREAD        1: a thread of each rank answers, at any time
//   WAITS_SERVE   0: a wait does not answer, only a start and a drain do
//   DRAIN_SERVES  0: a drain does not answer
//   DRAIN_OWN     0: with TOGETHER, a drain does not wait until all flights that this rank started are answered
//   READS_LATE    1: ids are read after the rows were put
#ifndef DRAINS
#define DRAINS 1
#endif
#ifndef FEWER
#define FEWER 0
#endif
#ifndef THREAD
#define THREAD 0
#endif
#ifndef WAITS_SERVE
#define WAITS_SERVE 1
#endif
#ifndef DRAIN_SERVES
#define DRAIN_SERVES 1
#endif
#ifndef DRAIN_OWN
#define DRAIN_OWN 1
#endif
#ifndef READS_LATE
#define READS_LATE 0
#endif

// (receiver, sender, slot): the number of the flight or drain that lies there, from 1; 0: it is free.
byte ids[P * P * ID_SLOTS];
byte rows[P * P * ROW_SLOTS];
byte done[P * P * DONE_SLOTS];
byte started[P];       // the last flight that a rank has started
byte taken[P];         // and the last whose rows it has taken
byte answered[P * P];  // (owner, who asks): the last flight that was answered
bool overwritten, too_far, too_many;

#define RING(to, from, j, n) [((to) * P + (from)) * (n) + (j) % (n)]
#define ID(to, from, j) ids RING(to, from, j, ID_SLOTS)
#define ROW(to, from, j) rows RING(to, from, j, ROW_SLOTS)
#define DONE(to, from, j) done RING(to, from, j, DONE_SLOTS)
#define ANSWERED(r) answered[me * P + (r)]

#define PUT(slot, j) overwritten = slot != 0; assert(!overwritten); slot = j
// A loop over the other ranks, as one step of the model; and one whose rounds are steps each.
#define AT_ONCE(body) for (i : 0 .. P - 1) { if :: i != me -> body :: else fi } i = 0
#define ONE_BY_ONE(body) \
    do \
    :: atomic { i < P && i != me -> body; i++ } \
    :: atomic { i == me -> i++ } \
    :: atomic { i == P -> i = 0; break } \
    od

#define ALL_OTHERS(f) ((me == 0 || f(0)) && (me == 1 || f(1)) && (me == P - 1 || f(P - 1)))  // P is 2 or 3
#define ANY_OTHER(f) ((me != 0 && f(0)) || (me != 1 && f(1)) || (me != P - 1 && f(P - 1)))
#define HAS_ASKED(r) (ID(me, r, ANSWERED(r) + 1) == ANSWERED(r) + 1)
#define IS_DONE(r) (DONE(me, r, drain) == drain)
#define IS_AHEAD(r) (ID(me, r, started[me] + 1) == started[me] + 1 && !IS_DONE(r))
#define HAS_ANSWERED(r) (ROW(me, r, taken[me] + 1) == taken[me] + 1)
#define IS_ANSWERED(r) (ANSWERED(r) == started[me])

#if TOGETHER
#define STARTED_TOO(r) (ANSWERED(r) < started[me])
#define CAN_ANSWER (ALL_OTHERS(HAS_ASKED) && ALL_OTHERS(STARTED_TOO))
inline answer() {
    atomic { CAN_ANSWER -> if :: !READS_LATE -> AT_ONCE(ID(me, i, ANSWERED(i) + 1) = 0) :: else fi }
    ONE_BY_ONE(PUT(ROW(i, me, ANSWERED(i) + 1), ANSWERED(i) + 1); ANSWERED(i)++);
    atomic { if :: READS_LATE -> AT_ONCE(ID(me, i, ANSWERED(i)) = 0) :: else fi }
}
#else
#define CAN_ANSWER ANY_OTHER(HAS_ASKED)
inline answer() {
    atomic {
        if
        :: me != 0 && HAS_ASKED(0) -> i = 0
        :: me != 1 && HAS_ASKED(1) -> i = 1
        :: P == 3 && me != 2 && HAS_ASKED(P - 1) -> i = P - 1
        fi;
        if :: !READS_LATE -> ID(me, i, ANSWERED(i) + 1) = 0 :: else fi
    }
    atomic { PUT(ROW(i, me, ANSWERED(i) + 1), ANSWERED(i) + 1); ANSWERED(i)++ }
    atomic { if :: READS_LATE -> ID(me, i, ANSWERED(i)) = 0 :: else fi; i = 0 }
}
#endif

#if THREAD
proctype server(byte me) {
    byte i;
end:
    do
    :: answer()
    od
}
#endif

#define FULL (started[me] - taken[me] == K + 1)
#define SERVES (!THREAD && (phase == draining -> DRAIN_SERVES : (WAITS_SERVE || fresh)))

mtype = {running, draining, leaving};

proctype rank(byte me) {
    byte i;
    byte drain = 1;
    byte todo = (me == 0 -> N - FEWER : N);
    mtype phase = running;
    bool fresh;  // a start is answering
    do
    // start; in a drain, of what others have started
    :: atomic { !FULL && (phase == running && todo > 0 || TOGETHER && phase == draining && ANY_OTHER(IS_AHEAD)) ->
        if :: phase == running -> todo-- :: else fi
    }
        ONE_BY_ONE(PUT(ID(i, me, started[me] + 1), started[me] + 1));
        atomic {
            started[me]++;
#if TOGETHER
            AT_ONCE(too_far = started[me] > started[i] + K + 1; assert(!too_far));
            too_many = started[me] > N * drain;
            assert(!too_many);
#endif
            fresh = !WAITS_SERVE
        }
    :: fresh -> fresh = false
    // wait: takes the rows of the oldest flight; a drain does so only to make room
    :: atomic { taken[me] < started[me] && (phase != draining || FULL && ANY_OTHER(IS_AHEAD)) &&
                ALL_OTHERS(HAS_ANSWERED) ->
        AT_ONCE(ROW(me, i, taken[me] + 1) = 0);
        taken[me]++
    }
    :: SERVES && CAN_ANSWER -> answer()
    // drain: tells all others that there is no more, and stays until they have said so
    :: atomic { phase == running && todo == 0 && taken[me] == started[me] -> phase = draining }
        ONE_BY_ONE(PUT(DONE(i, me, drain), drain))
    :: atomic { phase == draining && ALL_OTHERS(IS_DONE) && (!TOGETHER || !DRAIN_OWN || ALL_OTHERS(IS_ANSWERED)) ->
        AT_ONCE(DONE(me, i, drain) = 0);
        phase = leaving
    }
    :: atomic { phase == leaving && taken[me] == started[me] ->
        if
        :: drain < DRAINS -> drain++; todo = N; phase = running
        :: else -> break
        fi
    }
    od
}

init {
    byte r;
    atomic {
        for (r : 0 .. P - 1) {
            run rank(r);
#if THREAD
            run server(r)
#endif
        }
    }
}
