// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstring>
#include <exception>
#include <thread>
#include <utility>

#include "shardwise/comm/collectives.hpp"
#include "shardwise/comm/message_slots.hpp"
#include "shardwise/core/at.hpp"
#include "shardwise/core/bytes.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

inline constexpr const char* slot_message = "a message for a slot";

}  // namespace detail

SHARDWISE_INLINE MessageSlots::MessageSlots(CommunicatorRef comm, std::chrono::milliseconds deadline,
                                            std::pmr::memory_resource& memory)
    : comm_{comm}, deadline_{deadline}, memory_{&memory}, uncaught_{std::uncaught_exceptions()} {
    for (int peer = 0; peer < size(); ++peer)
        coming_.emplace_back().message.on(memory);
    put_.reserve(coming_.size());
}

SHARDWISE_INLINE MessageSlots::~MessageSlots() {
    try {
        if (std::uncaught_exceptions() == uncaught_) {
            close();
            return;
        }
    } catch (...) {  // whoever has failed says so itself
    }
    withdraw();
}

/// Ranks agree first, over messages that nobody takes for those of slots: none are expected yet, or all that were
/// expected have said that they are the last.
SHARDWISE_INLINE int MessageSlots::open(const SlotLayout& layout) {
    detail::check_layout(layout, size());
    constexpr std::int64_t most = 50'000;  // communicators tell messages under way apart by 16 bits
    std::int64_t all_slots = std::int64_t{layout.slots} * (size() - 1);
    for (const Window& window : windows_)
        all_slots += std::int64_t{window.layout.slots} * (size() - 1);
    if (all_slots > most)
        throw BadInput{concat({"slots over messages for ", all_slots, " messages under way, and they have room for ",
                               most, ": give a smaller lag, or other slots"})};
    close();
    std::vector<std::int64_t> mine{layout.slots};
    mine.insert(mine.end(), layout.from.begin(), layout.from.end());
    mine.insert(mine.end(), layout.to.begin(), layout.to.end());
    const std::vector<std::vector<std::int64_t>> all = all_gather_v<std::int64_t>(comm_, mine);
    for (int peer = 0; peer < size(); ++peer) {
        const std::vector<std::int64_t>& theirs = at(all, peer);
        const SlotLayout other{.slots = static_cast<int>(theirs[0]),
                               .from = {theirs.begin() + 1, theirs.begin() + 1 + size()},
                               .to = {theirs.begin() + 1 + size(), theirs.end()}};
        detail::check_agreement(layout, rank(), other, peer);
    }
    Window& window = windows_.emplace_back();
    window.layout = layout;
    const auto slots = static_cast<std::size_t>(size()) * static_cast<std::size_t>(layout.slots);
    for (std::size_t i = 0; i < slots; ++i) {
        window.arrived.emplace_back().message.on(*memory_);
        window.leaving.emplace_back().message.on(*memory_);
    }
    for (Coming& one : coming_)
        one.last = false;
    return static_cast<int>(windows_.size()) - 1;
}

SHARDWISE_INLINE std::span<std::byte> MessageSlots::room(const SlotId& id) {
    Leaving& slot = leaving(id);
    if (slot.posted) comm_.wait(slot.ticket);  // it was read, or its slot were not free
    slot.posted = false;
    const std::int64_t most = at(windows_[static_cast<std::size_t>(id.window)].layout.to, id.peer);
    return slot.message.resize(sizeof(Header) + static_cast<std::size_t>(most)).subspan(sizeof(Header));
}

SHARDWISE_INLINE void MessageSlots::put(const SlotId& id, std::uint64_t tag, std::int64_t bytes) {
    Leaving& slot = leaving(id);
    if (slot.message.empty()) static_cast<void>(room(id));  // a message of nothing needs no room
    if (slot.posted) comm_.wait(slot.ticket);
    slot.posted = false;
    const std::size_t whole = sizeof(Header) + static_cast<std::size_t>(bytes);
    SHARDWISE_ASSERT(whole <= slot.message.size());
    ByteWriter{slot.message.data()}.put(Header{.window = id.window, .slot = id.slot, .tag = tag, .bytes = bytes});
    slot.bytes = whole;
    put_.push_back(id);
}

SHARDWISE_INLINE void MessageSlots::flush() {
    for (const SlotId& id : put_)
        send(id.peer, leaving(id));
    put_.clear();
    take_all();
}

SHARDWISE_INLINE void MessageSlots::send(int peer, Leaving& slot) {
    const OutMessage out{.to = peer,
                         .bytes = slot.message.span().first(slot.bytes),
                         .payload = static_cast<std::int64_t>(slot.bytes - sizeof(Header))};
    slot.ticket = comm_.post({.step = detail::slot_message}, {&out, 1}, {});
    slot.posted = true;
}

SHARDWISE_INLINE void MessageSlots::expect(int peer) {
    Coming& coming = at(coming_, peer);
    const InMessage in{.from = peer, .into = &coming.message, .expected = InMessage::any_size};
    coming.ticket = comm_.post({.step = detail::slot_message}, {}, {&in, 1});
    coming.posted = true;
}

/// Puts what has come from a peer where it belongs. \returns whether something has
SHARDWISE_INLINE bool MessageSlots::take(int peer) {
    Coming& coming = at(coming_, peer);
    bool any = false;
    while (!coming.last) {
        if (!coming.posted) expect(peer);
        if (!comm_.test(coming.ticket)) break;
        coming.posted = false;
        any = true;
        ByteReader reader{coming.message.span()};
        const auto header = reader.get<Header>();
        if (header.window < 0) {
            coming.last = true;
            break;
        }
        Arrived& slot = arrived({.window = header.window, .peer = peer, .slot = header.slot});
        std::swap(slot.message, coming.message);
        slot.tag = header.tag;
        slot.there = true;
    }
    return any;
}

SHARDWISE_INLINE bool MessageSlots::take_all() {
    bool any = false;
    for (int peer = 0; peer < size() && !windows_.empty(); ++peer)
        if (peer != rank() && take(peer)) any = true;
    if (any) idle_ = 0;
    return any;
}

SHARDWISE_INLINE void MessageSlots::progress(SlotWait&) {
    take_all();
}

SHARDWISE_INLINE void MessageSlots::pause(SlotWait& wait) {
    const auto now = std::chrono::steady_clock::now();
    if (!wait.begun || idle_ == 0) wait.deadline = detail::deadline_from_now(deadline_);
    wait.begun = true;
    ++idle_;
    if (idle_ > 100 && now > wait.deadline) {
        std::string peers;
        for (const int peer : wait.peers)
            peers += (peers.empty() ? "" : ", ") + std::to_string(peer);
        throw DeadlinePassed{concat(
            {"rank ", rank(), " waited ", deadline_.count(), " ms in ", describe(wait.label), ", for ranks ", peers})};
    }
    if (idle_ < 100)
        std::this_thread::yield();
    else
        std::this_thread::sleep_for(std::chrono::microseconds{20});
}

/// Says that nothing more comes, until all have said so.
SHARDWISE_INLINE void MessageSlots::close() {
    if (windows_.empty()) return;
    Header header{.window = -1};
    const OutMessage last{.to = 0, .bytes = std::as_bytes(std::span{&header, 1}), .payload = 0};
    std::vector<OutMessage> out;
    for (int peer = 0; peer < size(); ++peer) {
        if (peer == rank()) continue;
        out.push_back(last);
        out.back().to = peer;
    }
    SlotWait wait{.label = {.step = "close slots"}};
    const Ticket said = comm_.post({.step = detail::slot_message}, out, {});
    while (true) {
        take_all();
        wait.peers.clear();
        for (int peer = 0; peer < size(); ++peer)
            if (peer != rank() && !at(coming_, peer).last) wait.peers.push_back(peer);
        if (wait.peers.empty()) break;
        pause(wait);
    }
    for (Window& window : windows_)
        for (Leaving& slot : window.leaving) {
            if (slot.posted) comm_.wait(slot.ticket);
            slot.posted = false;
        }
    wait_or_abandon(comm_, said);
}

/// Something has failed: the memory of all that is under way goes away.
SHARDWISE_INLINE void MessageSlots::withdraw() noexcept {
    for (Coming& one : coming_)
        if (one.posted) comm_.abandon(one.ticket);
    for (Window& window : windows_)
        for (Leaving& slot : window.leaving)
            if (slot.posted) comm_.abandon(slot.ticket);
}

}  // namespace shardwise::inline SHARDWISE_ABI
