// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// LagSchedule and FlightServer (plan/lag_schedule.ipp, plan/flight_server.ipp): flights of two exchanges, ids to the
// ranks that own rows, and rows back. What can happen is all orders of the steps below. A put arrives at once: one that
// arrives later only delays who reads it, who may be late anyway; and bytes may land from the put on.
//
// Three things are wrong, and looked for: a put into a slot that was not read, a state in which nobody can go on, and
// with TOGETHER a rank that is more than K + 1 flights ahead of another.
//
//   P       ranks, 2 or 3
//   K       how far they may be apart
//   N       flights that a rank starts before a drain
//   DRAINS  how many drains there are, with N flights before each
//   ID_SLOTS, ROW_SLOTS, DONE_SLOTS  of an ordered pair of ranks
//   TOGETHER      1: all are answered at once, and after the own start of that flight; 0: each as it comes
//   FEWER         rank 0 starts so many flights less before the first drain
//   OWNERS        ranks below this own rows
//   THREAD        1: a thread of each rank answers, at any time
//   WAITS_SERVE   0: only a start answers others, and a drain
//   DRAIN_SERVES  0: a rank that drains does not answer
//   DRAIN_OWN     0: with TOGETHER, a drain does not wait until all flights that this rank started are answered
#ifndef DRAINS
#define DRAINS 1
#endif
#ifndef FEWER
#define FEWER 0
#endif
#ifndef OWNERS
#define OWNERS P
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

// Flights and drains have numbers from 1; 0 in a slot: it is free.
byte ids[P * P * ID_SLOTS];     // (receiver, sender, slot)
byte rows[P * P * ROW_SLOTS];
byte done[P * P * DONE_SLOTS];
byte started[P];
byte answered[P * P];           // (owner, who asks): its last flight that was answered
byte taken[P];                  // the last flight whose rows a rank has taken
bool overwritten, too_far;

#define RING(to, from, j, n) [((to) * P + (from)) * (n) + (j) % (n)]
#define ASKS(r, o) ((o) < OWNERS && (o) != (r))
#define ALL_OF(f) (f(0) && f(1) && f(P - 1))  // P is 2 or 3
#define ANY_OF(f) (f(0) || f(1) || f(P - 1))

inline put(slots, to, from, j, n) {
    overwritten = slots RING(to, from, j, n) != 0;
    assert(!overwritten);
    slots RING(to, from, j, n) = j
}

#define NEXT_ASKED(r) (!ASKS(r, me) || ids RING(me, r, answered[me * P + r] + 1, ID_SLOTS) == answered[me * P + r] + 1)
#define OTHER_ASKS(r) (ASKS(r, me) && ids RING(me, r, started[me] + 1, ID_SLOTS) == started[me] + 1)
#define ROWS_HERE(o) (!ASKS(me, o) || rows RING(me, o, taken[me] + 1, ROW_SLOTS) == taken[me] + 1)
#define DONE_HERE(r) (r == me || done RING(me, r, drain, DONE_SLOTS) == drain)
#define ALL_ANSWERED(r) (!ASKS(r, me) || answered[me * P + r] == started[me])
#define ASKED_BY_SOME(r) ASKS(r, me)

#if TOGETHER
// All have asked, and this rank has started that flight, too. Who does not ask counts like the others.
#define FIRST (me == 0)  // a rank other than this one
#define CAN_ANSWER (answered[me * P + FIRST] < started[me] && ANY_OF(ASKED_BY_SOME) && ALL_OF(NEXT_ASKED))
#else
#define EACH_ASKS(r) (ASKS(r, me) && NEXT_ASKED(r))
#define CAN_ANSWER ANY_OF(EACH_ASKS)
#endif

// Reads ids and leaves their slots, and only then puts rows.
inline answer() {
#if TOGETHER
    atomic { CAN_ANSWER -> for (i : 0 .. P - 1) {
        if :: ASKS(i, me) -> ids RING(me, i, answered[me * P + i] + 1, ID_SLOTS) = 0 :: else fi }
        i = 0
    }
    do
    :: atomic { i < P && ASKS(i, me) ->
        put(rows, i, me, answered[me * P + i] + 1, ROW_SLOTS);
        answered[me * P + i]++;
        i++
    }
    :: atomic { i < P && !ASKS(i, me) -> i++ }
    :: atomic { i == P -> i = 0; break }
    od
#else
    atomic { CAN_ANSWER -> if
        :: EACH_ASKS(0) -> i = 0
        :: EACH_ASKS(1) -> i = 1
        :: EACH_ASKS(P - 1) -> i = P - 1
        fi;
        ids RING(me, i, answered[me * P + i] + 1, ID_SLOTS) = 0
    }
    atomic {
        put(rows, i, me, answered[me * P + i] + 1, ROW_SLOTS);
        answered[me * P + i]++;
        i = 0
    }
#endif
}

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
    byte i, drain = 1, todo = (me == 0 -> N - FEWER : N);
    mtype phase = running;
    bool fresh;  // it has just started, and answers
    do
    // start: what the batches of this rank need; or, in a drain, what others have started
    :: atomic { !FULL && (phase == running && todo > 0 || TOGETHER && phase == draining && ANY_OF(OTHER_ASKS)) ->
        if :: phase == running -> todo-- :: else fi;
        i = 0
    }
        do
        :: atomic { i < P && ASKS(me, i) -> put(ids, i, me, started[me] + 1, ID_SLOTS); i++ }
        :: atomic { i < P && !ASKS(me, i) -> i++ }
        :: atomic { i == P ->
            started[me]++;
#if TOGETHER && OWNERS == P && FEWER == 0 && DRAINS == 1
            for (i : 0 .. P - 1) {
                too_far = started[me] > started[i] + K + 1;
                assert(!too_far)
            }
#endif
            i = 0;
            fresh = !WAITS_SERVE;
            break
        }
        od
    // wait: takes the rows of the oldest flight; a drain does so only where it has to
    :: atomic { taken[me] < started[me] && (phase != draining || FULL && ANY_OF(OTHER_ASKS)) && ALL_OF(ROWS_HERE) ->
        for (i : 0 .. P - 1) {
            if :: ASKS(me, i) -> rows RING(me, i, taken[me] + 1, ROW_SLOTS) = 0 :: else fi
        }
        i = 0;
        taken[me]++
    }
    :: SERVES && CAN_ANSWER -> answer()
    :: fresh -> fresh = false
    // drain: tells all that there is no more, and stays until all have said so
    :: atomic { phase == running && todo == 0 && taken[me] == started[me] -> phase = draining; i = 0 }
        do
        :: atomic { i < P && i != me -> put(done, i, me, drain, DONE_SLOTS); i++ }
        :: atomic { i == me -> i++ }
        :: atomic { i >= P -> i = 0; break }
        od
    :: atomic { phase == draining && ALL_OF(DONE_HERE) && (!TOGETHER || !DRAIN_OWN || ALL_OF(ALL_ANSWERED)) ->
        for (i : 0 .. P - 1) {
            if :: i != me -> done RING(me, i, drain, DONE_SLOTS) = 0 :: else fi
        }
        i = 0;
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
