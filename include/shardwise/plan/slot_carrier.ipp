// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/plan/slot_carrier.hpp"

namespace shardwise::inline SHARDWISE_ABI {

SHARDWISE_INLINE std::span<std::byte> SlotCarrier::room(int to, std::int64_t bytes, std::int64_t) {
    const std::span<std::byte> slot = rounds_->slots.room(rounds_->rounds[segment_].at(to, flight_));
    if (bytes > std::ssize(slot))
        throw BadInput{concat({"a message of ", bytes, " bytes to rank ", to, ", and its slot has ", slot.size(),
                               ": declare more samples or ids in LayerOptions::bound"})};
    out_.push_back({.peer = to, .bytes = bytes});
    return slot.first(static_cast<std::size_t>(bytes));
}

SHARDWISE_INLINE void SlotCarrier::post(const Label& label) {
    wait_.label = label;
    wait_.begun = false;
    for (const Message& message : out_)
        rounds_->slots.put(rounds_->rounds[segment_].at(message.peer, flight_), flight_, message.bytes);
    if (!out_.empty()) rounds_->slots.flush();
}

SHARDWISE_INLINE bool SlotCarrier::test() {
    wait_.peers.clear();
    for (const Message& message : in_)
        if (!rounds_->has(segment_, message.peer, flight_)) wait_.peers.push_back(message.peer);
    if (!wait_.peers.empty()) return false;
    arrive();
    return true;
}

SHARDWISE_INLINE void SlotCarrier::wait() {
    while (true) {
        rounds_->slots.progress(wait_);
        if (test()) return;
        rounds_->slots.pause(wait_);
    }
}

/// All is here.
SHARDWISE_INLINE void SlotCarrier::arrive() {
    for (const Message& expected : in_) {
        const auto bytes = rounds_->slots.message(rounds_->rounds[segment_].at(expected.peer, flight_));
        if (expected.bytes != InMessage::any_size && std::ssize(bytes) != expected.bytes)
            throw Mismatch{concat({"rank ", rounds_->slots.rank(), ", ", describe_with_place(wait_.label), ": rank ",
                                   expected.peer, " sent ", bytes.size(), " bytes, and ", expected.bytes,
                                   " are expected: give all ranks the same layers, and batches that fit"})};
        if (segment_ >= kept_.size()) continue;
        std::byte* const to = at(kept_[segment_], expected.peer).resize(bytes.size()).data();
        if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
    }
}

}  // namespace shardwise::inline SHARDWISE_ABI
