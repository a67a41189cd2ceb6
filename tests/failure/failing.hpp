// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "shardwise/comm/checking.hpp"
#include "shardwise/comm/communicator.hpp"
#include "shardwise/core/buffer.hpp"
#include "shardwise/core/error.hpp"

/// \file
/// Rounds of an all-to-all in which, in one of them, something goes wrong on rank 2 or on all ranks.

namespace failing {

using namespace shardwise;

/// One exchange of everybody with everybody; lets go of it when it is left unfinished.
template <class C>
class Round {
  public:
    Round(C& comm, int number, std::size_t sent = 100'000)
        : comm_{comm}, out_(sent), in_(static_cast<std::size_t>(comm.size())) {
        std::vector<OutMessage> outs;
        std::vector<InMessage> ins;
        for (int peer = 0; peer < comm.size(); ++peer) {
            if (peer == comm.rank()) continue;
            outs.push_back({.to = peer, .bytes = out_, .payload = 0});
            ins.push_back({.from = peer, .into = &in_[static_cast<std::size_t>(peer)], .expected = 100'000});
        }
        ticket_ = comm.post({.step = "round", .flight = static_cast<std::uint32_t>(number)}, outs, ins);
    }
    Round(const Round&) = delete;
    Round& operator=(const Round&) = delete;
    ~Round() { comm_.abandon(ticket_); }
    void wait() { comm_.wait(ticket_); }

  private:
    C& comm_;
    std::vector<std::byte> out_;
    std::vector<Buffer<std::byte>> in_;
    Ticket ticket_;
};

template <Communicator C>
void run(C& comm, const std::string& scenario) {
    for (int number = 0; number < 10; ++number) {
        const bool now = number == 3;
        const bool mine = now && comm.rank() == 2;
        if (mine && scenario == "killed") std::raise(SIGKILL);
        if (mine && scenario == "exits") std::_Exit(0);
        if (mine && scenario == "throws") throw std::runtime_error{"the disk is full"};
        if (mine && scenario == "throws_int") throw 42;
        if (mine && scenario == "fails") comm.fail("the disk is full");
        if (mine && scenario == "returns") return;
        if (mine && scenario == "late") std::this_thread::sleep_for(std::chrono::seconds{3});
        if (mine && scenario == "never") std::this_thread::sleep_for(std::chrono::seconds{60});
        if (mine && scenario == "bad_input_one") throw BadInput{"file 'clicks': 7 columns instead of 40"};
        if (now && scenario == "bad_input_all") throw BadInput{"file 'clicks': 7 columns instead of 40"};
        const bool wrong_size = mine && scenario.starts_with("wrong_size");
        Round<C> round{comm, mine && scenario == "other_flight" ? 33 : number, wrong_size ? 2'000U : 100'000U};
        if (mine && scenario == "throws_in_flight") throw std::runtime_error{"the disk is full"};
        if (mine && scenario == "bad_input_one_in_flight") throw BadInput{"file 'clicks': 7 columns instead of 40"};
        if (now && scenario == "bad_input_all_in_flight") throw BadInput{"file 'clicks': 7 columns instead of 40"};
        round.wait();
    }
    if (scenario == "bad_input_at_the_end" && comm.rank() == 2)
        throw BadInput{"file 'clicks': 7 columns instead of 40"};
}

/// With the checking decorator where the scenario says so.
template <Communicator C>
void act(C& comm, const std::string& scenario) {
    if (scenario.ends_with("_checked")) {
        CheckingCommunicator<C> checking{comm};
        run(checking, scenario.substr(0, scenario.size() - std::string{"_checked"}.size()));
    } else {
        run(comm, scenario);
    }
}

/// The longest that a wait may last.
inline std::chrono::milliseconds deadline(const std::string& scenario) {
    const bool hangs = scenario == "late" || scenario == "never" || scenario == "returns";
    return hangs ? std::chrono::seconds{2} : std::chrono::seconds{60};
}

}  // namespace failing
