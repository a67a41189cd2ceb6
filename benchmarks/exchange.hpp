// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory_resource>
#include <vector>

#include <benchmark/benchmark.h>

#include "shardwise/comm/communicator.hpp"
#include "shardwise/core/buffer.hpp"

/// \file
/// The all-to-all that communicators are measured on: every rank sends every other one a message of one size.

namespace shardwise_bench {

/// One rank's messages, in memory that stays the same from run to run: one piece for all that is sent, one for all that
/// is received.
class AllToAll {
  public:
    AllToAll(int rank, int ranks, std::int64_t bytes)
        : bytes_{bytes},
          send_{memory_, static_cast<std::size_t>(ranks * bytes)},
          room_{memory_, static_cast<std::size_t>(ranks) * shardwise::buffer_capacity(static_cast<std::size_t>(bytes))},
          slices_{room_.data(), room_.size(), std::pmr::null_memory_resource()} {
        std::memset(send_.data(), rank + 1, send_.size());
        for (int peer = 0; peer < ranks; ++peer)
            receive_.emplace_back(slices_, static_cast<std::size_t>(bytes));
        for (int peer = 0; peer < ranks; ++peer) {
            std::memset(received(peer), 0, static_cast<std::size_t>(bytes));
            if (peer == rank) continue;
            out_.push_back({.to = peer, .bytes = {sent(peer), static_cast<std::size_t>(bytes)}, .payload = bytes});
            in_.push_back({.from = peer, .into = &receive_[static_cast<std::size_t>(peer)], .expected = bytes});
        }
    }
    AllToAll(const AllToAll&) = delete;
    AllToAll& operator=(const AllToAll&) = delete;

    template <shardwise::Communicator C>
    void run(C& comm) const {
        comm.wait(comm.post({.step = "exchange", .flight = 0}, out_, in_));
    }
    [[nodiscard]] const std::byte* sent(int peer) const { return send_.data() + peer * bytes_; }
    [[nodiscard]] std::byte* received(int peer) { return receive_[static_cast<std::size_t>(peer)].data(); }
    /// Whether what every peer sent last is here; forgets it.
    [[nodiscard]] bool take() {
        bool right = true;
        for (const shardwise::InMessage& message : in_) {
            std::byte* bytes = received(message.from);
            const auto last = static_cast<std::size_t>(bytes_ - 1);
            right = right && bytes[0] == std::byte(message.from + 1) && bytes[last] == std::byte(message.from + 1);
            bytes[0] = bytes[last] = std::byte{0};
        }
        return right;
    }

  private:
    std::int64_t bytes_;
    shardwise::HugePageResource memory_;
    shardwise::Buffer<std::byte> send_;  // (peer, bytes)
    shardwise::Buffer<std::byte> room_;  // for what is received: raw MPI wants it in one piece
    std::pmr::monotonic_buffer_resource slices_;
    std::vector<shardwise::Buffer<std::byte>> receive_;  // (peer)
    std::vector<shardwise::OutMessage> out_;
    std::vector<shardwise::InMessage> in_;
};

/// Exchanges that one time is measured over: enough to hide the barriers around them.
inline int repetitions_of(std::int64_t bytes) {
    return static_cast<int>(std::clamp<std::int64_t>((16 << 20) / bytes, 2, 512));
}

/// The sizes of messages, for each number of ranks; two runs where `quick`, and no message above 64 KiB.
template <class Run>
void register_exchanges(const char* name, Run run, const std::vector<int>& ranks, bool quick) {
    for (const int count : ranks)
        for (const std::int64_t bytes :
             {8LL, 64LL, 512LL, 4LL << 10, 32LL << 10, 64LL << 10, 256LL << 10, 2LL << 20, 16LL << 20, 64LL << 20}) {
            if (quick && bytes > 64 << 10) continue;
            benchmark::RegisterBenchmark(name, run)
                ->ArgNames({"ranks", "bytes"})
                ->Args({count, bytes})
                ->Iterations(quick             ? 2
                             : bytes > 2 << 20 ? 11
                                               : 41)
                ->UseManualTime()
                ->Unit(benchmark::kMillisecond);
        }
}

}  // namespace shardwise_bench
