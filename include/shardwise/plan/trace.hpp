// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "shardwise/core/config.hpp"

/// \file
/// Where time and bytes of flights go: a span a step.

namespace shardwise::inline SHARDWISE_ABI {

/// What a span of time was spent on.
enum class SpanKind : std::uint8_t { compute, pack, wait };

/// What a span is part of.
enum class SpanOf : std::uint8_t {
    other,
    lookup,  ///< rows are looked up, as messages are packed or results put together
    sync     ///< copies are made equal
};

/// One step of one flight.
struct Span {
    std::string name;
    SpanKind kind = SpanKind::compute;
    std::uint32_t flight = 0;
    std::int64_t begin_ns = 0;  ///< since the tracer was made
    std::int64_t end_ns = 0;
    std::int64_t bytes = 0;  ///< handed to the communicator in this span
    SpanOf of = SpanOf::other;
};

/// The bytes that each round should send: (flight) -> one number a segment that has a round, in their order (see
/// rounds_of). Syncs have numbers of their own: the step that they follow.
struct PredictedRounds {
    using ByFlight = std::map<std::uint32_t, std::vector<std::int64_t>>;
    ByFlight flights;
    ByFlight syncs;
};

/// Collects the spans of one rank. Costs two clock reads a step, and nothing where no tracer is given. Threads of a
/// rank may add to it at the same time.
class Tracer {
  public:
    using Clock = std::chrono::steady_clock;

    /// Spans are kept only while recording; the sums by kind are always kept.
    void record(bool on) {
        const std::lock_guard lock{mutex_};
        recording_ = on;
    }
    [[nodiscard]] std::int64_t now() const noexcept {
        return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start_).count();
    }
    void add(std::string_view name, SpanKind kind, std::uint32_t flight, std::int64_t begin, std::int64_t bytes = 0,
             SpanOf of = SpanOf::other) {
        const std::int64_t end = now();
        const std::lock_guard lock{mutex_};
        nanoseconds_[static_cast<std::size_t>(of)][static_cast<std::size_t>(kind)] += end - begin;
        if (recording_)
            spans_.push_back({.name = std::string{name},
                              .kind = kind,
                              .flight = flight,
                              .begin_ns = begin,
                              .end_ns = end,
                              .bytes = bytes,
                              .of = of});
    }
    [[nodiscard]] std::vector<Span> spans() const {
        const std::lock_guard lock{mutex_};
        return spans_;
    }
    /// Seconds spent on spans of one kind so far, but for syncs of copies.
    [[nodiscard]] double seconds(SpanKind kind) const {
        return seconds(SpanOf::other, kind) + seconds(SpanOf::lookup, kind);
    }
    /// Of spans that are part of one thing.
    [[nodiscard]] double seconds(SpanOf of) const {
        return seconds(of, SpanKind::compute) + seconds(of, SpanKind::pack) + seconds(of, SpanKind::wait);
    }
    /// Of these, of one kind.
    [[nodiscard]] double seconds(SpanOf of, SpanKind kind) const {
        const std::lock_guard lock{mutex_};
        return 1e-9 * static_cast<double>(nanoseconds_[static_cast<std::size_t>(of)][static_cast<std::size_t>(kind)]);
    }

  private:
    Clock::time_point start_ = Clock::now();
    mutable std::mutex mutex_;
    bool recording_ = false;
    std::int64_t nanoseconds_[3][3] = {};  // (part, kind)
    std::vector<Span> spans_;
};

}  // namespace shardwise::inline SHARDWISE_ABI
