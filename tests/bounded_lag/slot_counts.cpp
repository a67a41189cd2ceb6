// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// slot_counts K: the counts that ship, a name and a number a line.

#include "shardwise/comm/slot_counts.hpp"

#include <cstdlib>
#include <iostream>

int main(int argc, char** argv) {
    if (argc != 2) {
        std::cerr << "slot_counts K\n";
        return 2;
    }
    const int k = std::atoi(argv[1]);
    std::cout << "exchange_slots " << shardwise::exchange_slots(k) << "\nrequest_slots " << shardwise::request_slots(k)
              << "\nanswer_slots " << shardwise::answer_slots(k) << "\ndrain_slots " << shardwise::drain_slots()
              << "\noutstanding_exchanges " << shardwise::outstanding_exchanges(k) << "\n";
}
