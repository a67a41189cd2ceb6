// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// BoundedAllToAllV (comm/bounded_all_to_all.hpp): one exchange, all to all, between ranks that may be K calls apart;
// nobody acknowledges. What can happen is all orders of the steps below. A put arrives at once: one that arrives later
// only delays who reads it, who may be late anyway; and bytes may land from the put on.
//
// Two things are wrong, and looked for: a put into a slot that was not read, and a state in which nobody can go on.
//
//   P      ranks, 2 or 3
//   K      how far they may be apart
//   N      exchanges that each starts
//   SLOTS  of an ordered pair of ranks
//   COPIES_LATE  1: `start`, whose blocks may lie in what `wait` gave last, copies each as it puts it; 0: all before
//                the first put
#ifndef COPIES_LATE
#define COPIES_LATE 0
#endif

#define RING(to, from, j) [((to) * P + (from)) * SLOTS + (j) % SLOTS]
#define HAS(me, peer, j) (peer == me || slot RING(me, peer, j) == (j))

byte slot[P * P * SLOTS];  // (receiver, sender, slot): number of the exchange that lies there, from 1; 0: free
bool overwritten;

inline put(to, from, j) {
    overwritten = slot RING(to, from, j) != 0;
    assert(!overwritten);
    slot RING(to, from, j) = j
}

// What wait gave last is read until the next call.
inline free_last() {
    if
    :: held -> for (i : 0 .. P - 1) { slot RING(me, i, waited) = 0 } held = false
    :: else
    fi
}

proctype rank(byte me) {
    byte started, waited, peer, i;
    bool held;
    do
    :: started < N && started - waited < K + 1 ->  // start
        atomic {
            if :: !COPIES_LATE -> free_last() :: else fi;  // all copies are made
            started++;
            peer = 0
        }
        do
        :: atomic { peer < P && peer != me ->
            if :: peer + 1 == P || (peer + 2 == P && me + 1 == P) -> free_last() :: else fi;  // the last copy is made
            put(peer, me, started);
            peer++
        }
        :: atomic { peer == me -> peer++ }
        :: peer >= P -> break
        od
    :: atomic { waited < started && HAS(me, 0, waited + 1) && HAS(me, 1, waited + 1) && HAS(me, P - 1, waited + 1) ->
        free_last();  // wait
        waited++;
        held = true
    }
    :: waited == N -> break
    od
}

init {
    byte r;
    atomic {
        for (r : 0 .. P - 1) { run rank(r) }
    }
}
