// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/source_location.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// What the library needs from a communicator: one small concept a capability.
///
/// The one primitive is the *round*: a set of messages that leave and a set of messages that are expected, posted
/// together, at most one a peer and direction, never to oneself. Everything else (all-to-all, gathers, reductions, the
/// exchanges of a plan) is composed of rounds. Matching is at post: on each ordered pair of ranks the n-th message
/// sent is the n-th one expected, whatever the order in which either side completes them. All ranks therefore post in
/// one order.

namespace shardwise::inline SHARDWISE_ABI {

/// Says which operation a round belongs to, in errors and reports. `step` outlives the round.
struct Label {
    const char* step = "";
    std::uint32_t flight = 0;
    SourceLocation where = SourceLocation::current();
};

/// "step 'Exchange' of flight 3"
[[nodiscard]] std::string describe(const Label& label);
/// The same, and the place in the source from which it is called.
[[nodiscard]] std::string describe_with_place(const Label& label);

/// A message that leaves. `bytes` stays valid and unchanged until the round is complete.
struct OutMessage {
    int to = 0;
    std::span<const std::byte> bytes;
    std::int64_t payload = 0;  ///< how many of the bytes are ids, weights, vectors or rows; the others are control
};

/// A message that is expected. `into` is resized to what arrives; untouched by the caller until the round is complete.
struct InMessage {
    static constexpr std::int64_t any_size = -1;
    int from = 0;
    Buffer<std::byte>* into = nullptr;
    std::int64_t expected = any_size;  ///< bytes; another size that arrives is a Mismatch
};

/// Names a posted round until it is complete.
class [[nodiscard]] Ticket {
  public:
    constexpr Ticket() = default;
    constexpr explicit Ticket(std::uint64_t value) : value_{value} {}
    [[nodiscard]] constexpr std::uint64_t value() const noexcept { return value_; }
    friend constexpr bool operator==(Ticket, Ticket) = default;

  private:
    std::uint64_t value_ = 0;
};

/// Knows its place among the ranks.
template <class C>
concept Ranked = requires(const C& comm) {
    { comm.rank() } -> std::same_as<int>;
    { comm.size() } -> std::same_as<int>;
    { comm.topology() } -> std::convertible_to<Topology>;
};

/// Posts rounds and completes them.
///
/// `post` copies the two lists, never blocks and starts nothing that another rank could wait for twice.
/// `test` makes progress and says whether the round is complete; `wait` blocks until it is. Either one retires the
/// ticket when it reports completion. All three throw PeerFailed once a peer is known to have failed, `test` and `wait`
/// throw Mismatch when a message has another size than expected, `wait` throws DeadlinePassed.
template <class C>
concept Exchanging = requires(C& comm, const Label& label, std::span<const OutMessage> out,
                              std::span<const InMessage> in, Ticket ticket) {
    { comm.post(label, out, in) } -> std::same_as<Ticket>;
    { comm.test(ticket) } -> std::same_as<bool>;
    { comm.wait(ticket) } -> std::same_as<void>;
    { comm.abandon(ticket) }
    noexcept->std::same_as<void>;
};

/// Tells all ranks that this one cannot go on; their waits end with PeerFailed (or the job ends with the reason).
template <class C>
concept Failing = requires(C& comm, const std::string& reason) {
    { comm.fail(reason) } -> std::same_as<void>;
};

/// Counts those who use it, layers as a rule: `enroll()` is 0, 1, ... on every rank, when ranks make their layers in
/// one order. Layers of one configuration are told apart by it. Optional.
template <class C>
concept Enrolling = requires(C& comm) {
    { comm.enroll() }
    noexcept->std::same_as<int>;
};

/// What the plans of the library run on.
template <class C>
concept Communicator = Ranked<C> && Exchanging<C> && Failing<C>;

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/comm/communicator.ipp"
#endif
