// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory_resource>
#include <span>
#include <string>
#include <vector>

#include "shardwise/comm/communicator_ref.hpp"
#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"

/// \file
/// Collective operations on any communicator, composed of rounds: with its deadlines, its failures and its meters.
/// All of them are collective: every rank calls them in one order.

namespace shardwise::inline SHARDWISE_ABI {

/// Buffers that collectives use again and again.
class CollectiveBuffers {
  public:
    explicit CollectiveBuffers(std::pmr::memory_resource& memory = *std::pmr::new_delete_resource())
        : memory_{&memory} {}
    /// The receive buffer of a peer.
    [[nodiscard]] Buffer<std::byte>& of(int peer) {
        while (buffers_.size() <= static_cast<std::size_t>(peer))
            buffers_.emplace_back(*memory_);
        return buffers_[static_cast<std::size_t>(peer)];
    }
    std::vector<OutMessage> out;
    std::vector<InMessage> in;

  private:
    std::pmr::memory_resource* memory_;
    std::vector<Buffer<std::byte>> buffers_;
};

/// Sends send[r] to each rank r and receives receive[r] from it; sizes are agreed on beforehand, and another size that
/// arrives is a Mismatch. What a rank sends to itself is copied. One message a peer, also an empty one.
template <class T>
void all_to_all_v(CommunicatorRef comm, std::span<const std::span<const T>> send, std::span<const std::span<T>> receive,
                  CollectiveBuffers& buffers, const SourceLocation& where = SourceLocation::current()) {
    buffers.out.clear();
    buffers.in.clear();
    for (int peer = 0; peer < comm.size(); ++peer)
        static_cast<void>(buffers.of(peer));
    const auto me = static_cast<std::size_t>(comm.rank());
    if (send[me].size() != receive[me].size())
        throw Mismatch{concat({"all_to_all_v on rank ", comm.rank(), ": it sends itself ", send[me].size(),
                               " elements and expects ", receive[me].size()})};
    for (int peer = 0; peer < comm.size(); ++peer) {
        if (peer == comm.rank()) continue;
        const auto p = static_cast<std::size_t>(peer);
        buffers.out.push_back(
            {.to = peer, .bytes = std::as_bytes(send[p]), .payload = static_cast<std::int64_t>(send[p].size_bytes())});
        buffers.in.push_back(
            {.from = peer, .into = &buffers.of(peer), .expected = static_cast<std::int64_t>(receive[p].size_bytes())});
    }
    const Ticket ticket = comm.post({.step = "all_to_all_v", .flight = 0, .where = where}, buffers.out, buffers.in);
    std::copy(send[me].begin(), send[me].end(), receive[me].begin());
    wait_or_abandon(comm, ticket);
    for (int peer = 0; peer < comm.size(); ++peer) {
        const auto p = static_cast<std::size_t>(peer);
        if (peer != comm.rank() && !receive[p].empty())
            std::memcpy(receive[p].data(), buffers.of(peer).data(), receive[p].size_bytes());
    }
}

/// Every rank's `mine` on every rank, in the order of ranks; sizes may differ. One message a peer.
/// \returns (rank), with its own
template <class T>
[[nodiscard]] std::vector<std::vector<T>> all_gather_v(CommunicatorRef comm, std::span<const T> mine,
                                                       const SourceLocation& where = SourceLocation::current()) {
    CollectiveBuffers buffers;
    for (int peer = 0; peer < comm.size(); ++peer)
        static_cast<void>(buffers.of(peer));
    for (int peer = 0; peer < comm.size(); ++peer) {
        if (peer == comm.rank()) continue;
        buffers.out.push_back(
            {.to = peer, .bytes = std::as_bytes(mine), .payload = static_cast<std::int64_t>(mine.size_bytes())});
        buffers.in.push_back({.from = peer, .into = &buffers.of(peer), .expected = InMessage::any_size});
    }
    wait_or_abandon(comm, comm.post({.step = "all_gather_v", .flight = 0, .where = where}, buffers.out, buffers.in));
    std::vector<std::vector<T>> all(static_cast<std::size_t>(comm.size()));
    for (int peer = 0; peer < comm.size(); ++peer) {
        auto& theirs = all[static_cast<std::size_t>(peer)];
        if (peer == comm.rank()) {
            theirs.assign(mine.begin(), mine.end());
            continue;
        }
        const auto& bytes = buffers.of(peer);
        if (bytes.size() % sizeof(T) != 0)
            throw Mismatch{
                concat({"all_gather_v: rank ", peer, " sent ", bytes.size(), " bytes, no multiple of ", sizeof(T)})};
        theirs.resize(bytes.size() / sizeof(T));
        if (!theirs.empty()) std::memcpy(theirs.data(), bytes.data(), bytes.size());
    }
    return all;
}

/// Every rank's `mine` on rank `root`, in the order of ranks; sizes may differ. Empty on the others, which do not wait
/// for each other. One message from each peer to root.
/// \param root  the rank that receives \param mine  of any size, also empty \param where  the call, for reports
/// \returns (rank) on root, with its own; nothing on the others
/// \throws Mismatch on root when a rank sent another type's bytes; PeerFailed when another rank fails
template <class T>
[[nodiscard]] std::vector<std::vector<T>> gather_v(CommunicatorRef comm, int root, std::span<const T> mine,
                                                   const SourceLocation& where = SourceLocation::current()) {
    CollectiveBuffers buffers;
    if (comm.rank() == root) {
        for (int peer = 0; peer < comm.size(); ++peer)
            static_cast<void>(buffers.of(peer));
        for (int peer = 0; peer < comm.size(); ++peer)
            if (peer != root)
                buffers.in.push_back({.from = peer, .into = &buffers.of(peer), .expected = InMessage::any_size});
    } else {
        buffers.out.push_back(
            {.to = root, .bytes = std::as_bytes(mine), .payload = static_cast<std::int64_t>(mine.size_bytes())});
    }
    wait_or_abandon(comm, comm.post({.step = "gather_v", .flight = 0, .where = where}, buffers.out, buffers.in));
    std::vector<std::vector<T>> all;
    for (int peer = 0; comm.rank() == root && peer < comm.size(); ++peer) {
        auto& theirs = all.emplace_back(mine.begin(), mine.end());
        if (peer == root) continue;
        const auto& bytes = buffers.of(peer);
        if (bytes.size() % sizeof(T) != 0)
            throw Mismatch{
                concat({"gather_v: rank ", peer, " sent ", bytes.size(), " bytes, no multiple of ", sizeof(T)})};
        theirs.resize(bytes.size() / sizeof(T));
        if (!theirs.empty()) std::memcpy(theirs.data(), bytes.data(), bytes.size());
    }
    return all;
}

/// The values of rank `root` on every rank; all ranks give spans of one size. One message from root to each peer.
template <class T>
void broadcast(CommunicatorRef comm, int root, std::span<T> values,
               const SourceLocation& where = SourceLocation::current()) {
    CollectiveBuffers buffers;
    const auto bytes = static_cast<std::int64_t>(values.size_bytes());
    if (comm.rank() == root) {
        for (int peer = 0; peer < comm.size(); ++peer)
            if (peer != root) buffers.out.push_back({.to = peer, .bytes = std::as_bytes(values), .payload = bytes});
    } else {
        buffers.in.push_back({.from = root, .into = &buffers.of(0), .expected = bytes});
    }
    wait_or_abandon(comm, comm.post({.step = "broadcast", .flight = 0, .where = where}, buffers.out, buffers.in));
    if (comm.rank() != root && !values.empty()) std::memcpy(values.data(), buffers.of(0).data(), values.size_bytes());
}

/// Returns once every rank has called it. One empty message a peer.
inline void barrier(CommunicatorRef comm, const SourceLocation& where = SourceLocation::current()) {
    CollectiveBuffers buffers;
    for (int peer = 0; peer < comm.size(); ++peer)
        static_cast<void>(buffers.of(peer));
    for (int peer = 0; peer < comm.size(); ++peer) {
        if (peer == comm.rank()) continue;
        buffers.out.push_back({.to = peer, .bytes = {}, .payload = 0});
        buffers.in.push_back({.from = peer, .into = &buffers.of(peer), .expected = 0});
    }
    wait_or_abandon(comm, comm.post({.step = "barrier", .flight = 0, .where = where}, buffers.out, buffers.in));
}

/// Makes one rank's bad input everybody's: each rank says what is wrong with its own, or nothing. One message a peer.
/// \throws BadInput on every rank when any rank says something: the lowest such rank's text
inline void agree_on_input(CommunicatorRef comm, const std::string& wrong,
                           const SourceLocation& where = SourceLocation::current()) {
    for (const std::vector<char>& text : all_gather_v<char>(comm, wrong, where))
        if (!text.empty()) throw BadInput{std::string{text.begin(), text.end()}};
}

}  // namespace shardwise::inline SHARDWISE_ABI
