// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "shardwise/comm/communicator.hpp"
#include "shardwise/core/config.hpp"

/// \file
/// What moves the messages of a flight. A flight packs and reads them; where they lie, and how they get there, its
/// carrier knows alone.

namespace shardwise::inline SHARDWISE_ABI {

/// The messages of one flight, round by round: `begin`, then `room` for each that leaves and `expect` for each that
/// comes, `post`, and `test` or `wait` until all have come; then `message`. Ranks are those of the world.
class Carrier {
  public:
    virtual ~Carrier() = default;
    Carrier(const Carrier&) = delete;
    Carrier& operator=(const Carrier&) = delete;

    /// \param segment  of the program, which ends with the round \param flight  its number
    virtual void begin(std::size_t segment, std::uint64_t flight) = 0;
    /// Memory for a message of so many bytes, to be written before `post`.
    /// \param payload  how many of the bytes are no control
    [[nodiscard]] virtual std::span<std::byte> room(int to, std::int64_t bytes, std::int64_t payload) = 0;
    /// \param bytes  what it has to have, or InMessage::any_size
    virtual void expect(int from, std::int64_t bytes) = 0;
    /// What was packed leaves. Does not wait.
    virtual void post(const Label& label) = 0;
    /// Whether the round is complete; makes progress.
    [[nodiscard]] virtual bool test() = 0;
    /// Until it is. \throws what a communicator's `wait` throws
    virtual void wait() = 0;
    /// A message that has come, of this round or an earlier one of the flight.
    [[nodiscard]] virtual std::span<const std::byte> message(std::size_t segment, int from) const = 0;
    /// Leaves a round that is not complete: peers that wait for it fail.
    virtual void abandon() noexcept = 0;

  protected:
    Carrier() = default;
};

}  // namespace shardwise::inline SHARDWISE_ABI
