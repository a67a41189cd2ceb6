// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstring>
#include <exception>

#include "shardwise/comm/copy_message.hpp"
#include "shardwise/comm/thread_communicator.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"

namespace shardwise::inline SHARDWISE_ABI {

SHARDWISE_INLINE ThreadCommunicator ThreadCommunicator::duplicate() {
    const auto lock = state_->lock();
    const std::size_t channel = ++state_->duplicates[static_cast<std::size_t>(rank_)];
    while (state_->channels.size() <= channel)
        state_->channels.emplace_back(state_->pairs());
    return {*state_, rank_, channel};
}

SHARDWISE_INLINE Ticket ThreadCommunicator::post(const Label& label, std::span<const OutMessage> out,
                                                 std::span<const InMessage> in) {
    const auto slot = free_operation();
    Operation& op = operations_[slot];
    op.label = label;
    const auto lock = state_->lock();
    throw_if_poisoned();
    for (const OutMessage& message : out) {
        auto& mailbox = box(rank_, message.to);
        op.out.push_back({message.to, mailbox.base + mailbox.parcels.size()});
        mailbox.parcels.emplace_back(message.bytes, label);
        state_->wake[static_cast<std::size_t>(message.to)].ring();
    }
    for (const InMessage& message : in)
        op.in.push_back({message, box(message.from, rank_).expected++, false});
    return Ticket{op.generation << 16U | slot};
}

SHARDWISE_INLINE bool ThreadCommunicator::test(Ticket ticket) {
    Operation* op = find(ticket);
    if (op == nullptr) return true;
    auto lock = state_->lock();
    return progress(*op, lock);
}

SHARDWISE_INLINE void ThreadCommunicator::wait(Ticket ticket) {
    Operation* op = find(ticket);
    if (op == nullptr) return;
    const auto deadline = std::chrono::steady_clock::now() + state_->options.deadline;
    auto lock = state_->lock();
    auto& mine = state_->waits[static_cast<std::size_t>(rank_)];
    const Waiting until_return{mine};
    for (bool late = false; !progress(*op, lock);) {
        if (late) throw_deadline_passed(*op);
        throw_if_a_peer_has_ended(*op);
        note_wait(*op, mine);
        late = !wait_until(lock, deadline);
    }
}

SHARDWISE_INLINE void ThreadCommunicator::abandon(Ticket ticket) noexcept {
    Operation* op = find(ticket);
    if (op == nullptr) return;
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{1};
    auto lock = state_->lock();
    try {
        for (bool late = false; !late && !state_->poisoned;) {
            if (progress(*op, lock)) return;
            late = !wait_until(lock, until);
        }
    } catch (...) {  // it cannot complete: withdraw
    }
    if (!lock.owns_lock()) lock.lock();
    state_->poison(rank_, "rank " + std::to_string(rank_) + " left " + describe(op->label) + " unfinished");
    for (const auto& m : op->out) {
        auto& mailbox = box(rank_, m.to);
        while (true) {
            detail::Parcel* parcel = mailbox.find(m.number);
            if (parcel == nullptr || parcel->taken) break;
            if (!parcel->busy) {
                parcel->taken = true;
                break;
            }
            static_cast<void>(wait_until(lock, std::chrono::steady_clock::now() + std::chrono::seconds{1}));
        }
    }
    retire(*op);
}

SHARDWISE_INLINE void ThreadCommunicator::fail(const std::string& reason) {
    const std::lock_guard lock{state_->mutex};
    state_->poison(rank_, reason);
}

SHARDWISE_INLINE std::size_t ThreadCommunicator::free_operation() {
    auto it = std::find_if(operations_.begin(), operations_.end(), [](const Operation& o) { return !o.active; });
    if (it == operations_.end()) it = operations_.emplace(operations_.end());
    it->active = true;
    it->out.clear();
    it->in.clear();
    return static_cast<std::size_t>(it - operations_.begin());
}

SHARDWISE_INLINE ThreadCommunicator::Operation* ThreadCommunicator::find(Ticket ticket) noexcept {
    const std::uint64_t slot = ticket.value() & 0xffffU;
    if (slot >= operations_.size()) return nullptr;
    Operation& op = operations_[slot];
    return op.active && op.generation == ticket.value() >> 16U ? &op : nullptr;
}

SHARDWISE_INLINE void ThreadCommunicator::retire(Operation& op) noexcept {
    op.active = false;
    ++op.generation;
}

SHARDWISE_INLINE bool ThreadCommunicator::wait_until(std::unique_lock<std::mutex>& lock,
                                                     std::chrono::steady_clock::time_point deadline) {
    return state_->wake[static_cast<std::size_t>(rank_)].wait_until(lock, deadline);
}

SHARDWISE_INLINE void ThreadCommunicator::throw_if_poisoned() const {
    if (state_->poisoned) throw PeerFailed{state_->culprit, state_->reason};
}

SHARDWISE_INLINE bool ThreadCommunicator::is_gone(int peer) const {
    return state_->poisoned && (peer == state_->culprit || state_->ended[static_cast<std::size_t>(peer)]);
}

SHARDWISE_INLINE void ThreadCommunicator::throw_if_hopeless(const Operation& op) const {
    if (std::any_of(op.in.begin(), op.in.end(), [&](const In& m) { return is_gone(m.message.from); }) ||
        std::any_of(op.out.begin(), op.out.end(), [&](const Out& m) { return is_gone(m.to); }))
        throw_if_poisoned();
}

SHARDWISE_INLINE void ThreadCommunicator::throw_if_a_peer_has_ended(const Operation& op) const {
    const auto ended = [&](int peer) {
        if (state_->ended[static_cast<std::size_t>(peer)])
            throw PeerFailed{
                peer, "it has ended, while rank " + std::to_string(rank_) + " waits for it in " + describe(op.label)};
    };
    for (const auto& m : op.in)
        ended(m.message.from);
    for (const auto& m : op.out)
        ended(m.to);
}

SHARDWISE_INLINE bool ThreadCommunicator::progress(Operation& op, std::unique_lock<std::mutex>& lock) {
    for (bool copied = true; copied;) {
        copied = false;
        for (Operation& each : operations_)
            if (each.active && copy_arrived(each, lock)) copied = true;
    }
    std::erase_if(op.out, [&](const Out& m) { return box(rank_, m.to).taken(m.number); });
    if (op.in.empty() && op.out.empty()) {
        retire(op);
        return true;
    }
    if (state_->poisoned) throw_if_hopeless(op);
    return false;
}

SHARDWISE_INLINE bool ThreadCommunicator::copy_arrived(Operation& op, std::unique_lock<std::mutex>& lock) {
    copies_.clear();
    for (In& m : op.in) {
        detail::Parcel* parcel = box(m.message.from, rank_).find(m.number);
        if (parcel == nullptr || parcel->taken || is_gone(m.message.from)) continue;
        if (parcel->label.flight != op.label.flight || std::strcmp(parcel->label.step, op.label.step) != 0)
            throw_other_step(op, m, *parcel);
        if (m.message.expected != InMessage::any_size &&
            m.message.expected != static_cast<std::int64_t>(parcel->bytes.size()))
            throw_mismatch(op, m, *parcel);
        m.copying = true;
        copies_.push_back({m.message.into, parcel->bytes});
    }
    if (copies_.empty()) return false;
    for (const In& m : op.in)
        if (m.copying) box(m.message.from, rank_).find(m.number)->busy = true;
    lock.unlock();
    std::exception_ptr failed;  // no memory: the senders must not wait for a copy that nobody makes
    try {
        for (const auto& [into, bytes] : copies_) {
            detail::copy_message(into->resize(bytes.size()).data(), bytes.data(), bytes.size());
        }
    } catch (...) {
        failed = std::current_exception();
    }
    detail::lock_soon(lock);
    for (In& m : op.in) {
        if (!m.copying) continue;
        auto& mailbox = box(m.message.from, rank_);
        detail::Parcel& parcel = *mailbox.find(m.number);
        parcel.busy = false;
        parcel.taken = !failed;
        m.copying = !failed;
        mailbox.drop_taken();
        state_->wake[static_cast<std::size_t>(m.message.from)].ring();
    }
    if (failed) std::rethrow_exception(failed);
    std::erase_if(op.in, [](const In& m) { return m.copying; });
    return true;
}

SHARDWISE_INLINE void ThreadCommunicator::note_wait(const Operation& op, detail::ThreadWait& mine) {
    mine.active = true;
    mine.label = op.label;
    mine.peers.clear();
    for (const In& m : op.in)
        mine.peers.push_back(m.message.from);
    for (const Out& m : op.out)
        if (std::find(mine.peers.begin(), mine.peers.end(), m.to) == mine.peers.end()) mine.peers.push_back(m.to);
}

SHARDWISE_INLINE void ThreadCommunicator::throw_deadline_passed(const Operation& op) {
    const std::string text = concat({"rank ", rank_, " waited ", state_->options.deadline.count(), " ms in ",
                                     describe(op.label), "\n", state_->report()});
    state_->poison(rank_, text);
    throw DeadlinePassed{text};
}

SHARDWISE_INLINE void ThreadCommunicator::throw_other_step(const Operation& op, const In& m,
                                                           const detail::Parcel& parcel) const {
    throw Mismatch{concat({"rank ", rank_, " is at ", describe_with_place(op.label), ", and rank ", m.message.from,
                           " at ", describe_with_place(parcel.label), ": all ranks make the same calls in one order"})};
}

SHARDWISE_INLINE void ThreadCommunicator::throw_mismatch(const Operation& op, const In& m,
                                                         const detail::Parcel& parcel) const {
    throw Mismatch{
        concat({"rank ", rank_, ", ", describe(op.label), ": ", m.message.expected, " bytes expected from rank ",
                m.message.from, ", which sent ", parcel.bytes.size(), " in ", describe(parcel.label),
                ": give all ranks the same layers, with the same options, and the same calls"})};
}

}  // namespace shardwise::inline SHARDWISE_ABI
