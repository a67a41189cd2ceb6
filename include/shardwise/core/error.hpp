// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <stdexcept>
#include <string>

#include "shardwise/core/config.hpp"
#include "shardwise/core/text.hpp"

/// \file
/// The exceptions of the library. Each carries the exit status that a command line program ends with.

namespace shardwise::inline SHARDWISE_ABI {

/// Base of all errors that the library throws.
class Error : public std::runtime_error {
  public:
    Error(const std::string& what, int exit_status) : std::runtime_error{what}, exit_status_{exit_status} {}
    /// 2: bad usage or bad input; 3: a peer failed, a deadline passed or ranks disagreed.
    [[nodiscard]] int exit_status() const noexcept { return exit_status_; }

  private:
    int exit_status_;
};

/// The caller's input is wrong: says what, where, which value and what to do. No table has changed.
class BadInput : public Error {
  public:
    explicit BadInput(const std::string& what) : Error{what, 2} {}
};

/// Another rank threw or died, so that this rank's collective operations cannot complete.
class PeerFailed : public Error {
  public:
    PeerFailed(int rank, const std::string& reason)
        : Error{concat({"rank ", rank, " failed: ", reason}), 3}, rank_{rank} {}
    [[nodiscard]] int rank() const noexcept { return rank_; }

  private:
    int rank_;
};

/// A wait lasted longer than the communicator's deadline; the text says who waits for whom.
class DeadlinePassed : public Error {
  public:
    explicit DeadlinePassed(const std::string& what) : Error{what, 3} {}
};

/// Ranks disagree about what they are doing: another collective, flight, step or size.
class Mismatch : public Error {
  public:
    explicit Mismatch(const std::string& what) : Error{what, 3} {}
};

}  // namespace shardwise::inline SHARDWISE_ABI
