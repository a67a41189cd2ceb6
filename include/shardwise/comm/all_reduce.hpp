// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory_resource>
#include <span>
#include <type_traits>
#include <vector>

#include "shardwise/comm/collectives.hpp"
#include "shardwise/comm/communicator_ref.hpp"
#include "shardwise/comm/traffic.hpp"
#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/topology/groups.hpp"
#include "shardwise/topology/replica_groups.hpp"

/// \file
/// The sum of a vector over all ranks, or those of a group, along the topology's tree.

namespace shardwise::inline SHARDWISE_ABI {

/// Sums a span over all ranks of a group, in place: ranks in order inside a host, hosts in order, each sum from +0.0,
/// so that every communicator gives the same bits. Scatter inside the host, scatter across hosts, gather back: four
/// rounds, and of n elements each rank sends 2 n (L - 1) / L inside its host and 2 n / L (H - 1) / H across, for a
/// group of H hosts with L ranks each. `start` sends the first part and returns, so that other work can go on until
/// `finish`. Collective over all ranks, and members of one group give spans of one size; one sum at a time.
/// \tparam T  float or double \tparam G  who adds up: World, or OneTower
template <class T, Group G = World>
class BasicTreeAllReduce {
    static_assert(std::is_floating_point_v<T>, "BasicTreeAllReduce<> sums float or double");

  public:
    explicit BasicTreeAllReduce(
        CommunicatorRef comm,
        std::pmr::memory_resource& memory = *std::pmr::new_delete_resource()) requires std::is_same_v<G, World>
        : BasicTreeAllReduce{comm, comm.topology(), memory} {}
    /// \param topology  the communicator's, with the towers that G sees: LayerBase::topology()
    BasicTreeAllReduce(CommunicatorRef comm, const Topology& topology,
                       std::pmr::memory_resource& memory = *std::pmr::new_delete_resource())
        : BasicTreeAllReduce{comm, topology, ReplicaGroups::one(topology), memory} {}
    /// In each of several groups of ranks by itself.
    /// \param topology  a group's: LayerBase::topology() \param groups  LayerBase::groups()
    /// \throws BadInput for a topology of another number of ranks than a group has
    BasicTreeAllReduce(CommunicatorRef comm, const Topology& topology, const ReplicaGroups& groups,
                       std::pmr::memory_resource& memory = *std::pmr::new_delete_resource())
        : comm_{comm},
          on_host_{groups.in_world(OnHost::of(topology))},
          over_hosts_{groups.in_world(OverHosts::of(topology))},
          buffers_{memory},
          sum_{memory} {
        if (topology.ranks() != groups.group.size)
            throw BadInput{concat({"sums in groups of ", groups.group.size, " ranks over a topology of ",
                                   topology.ranks(), ": give that of a group, such as LayerBase::topology()"})};
    }
    BasicTreeAllReduce(const BasicTreeAllReduce&) = delete;
    BasicTreeAllReduce& operator=(const BasicTreeAllReduce&) = delete;
    ~BasicTreeAllReduce() {
        if (started_) comm_.abandon(ticket_);
    }

    void operator()(std::span<T> values) {
        start(values);
        finish();
    }
    /// `values` must stay where they are, unchanged, until `finish`.
    void start(std::span<T> values) {
        values_ = values;
        host_part_ =
            part(Part{0, static_cast<std::int64_t>(values.size())}, on_host_.index(comm_.rank()), on_host_.size);
        post(on_host_, "all_reduce: scatter inside hosts", Part{0, static_cast<std::int64_t>(values.size())},
             values_.data(), true);
        started_ = true;
    }
    void finish() {
        wait();
        fold(on_host_, host_part_, values_.data());
        const Part mine = part(host_part_, over_hosts_.index(comm_.rank()), over_hosts_.size);
        std::copy_n(sum_.data(), host_part_.count, values_.data() + host_part_.first);
        post(over_hosts_, "all_reduce: scatter across hosts", host_part_, values_.data(), true);
        wait();
        fold(over_hosts_, mine, values_.data());
        std::copy_n(sum_.data(), mine.count, values_.data() + mine.first);
        post(over_hosts_, "all_reduce: gather across hosts", host_part_, values_.data(), false);
        wait();
        take(over_hosts_, host_part_, values_.data());
        post(on_host_, "all_reduce: gather inside hosts", Part{0, static_cast<std::int64_t>(values_.size())},
             values_.data(), false);
        wait();
        take(on_host_, Part{0, static_cast<std::int64_t>(values_.size())}, values_.data());
    }

  private:
    using OnHost = Within<OneHost, G>;
    using OverHosts = Within<Peers, G>;
    struct Part {
        std::int64_t first;
        std::int64_t count;
    };
    /// The share of member `index` of `members` in `whole`.
    static Part part(Part whole, int index, int members) {
        const std::int64_t first = whole.count * index / members;
        return {whole.first + first, whole.count * (index + 1) / members - first};
    }

    /// Scatter: to each member of the group its share of `whole`; gather: my share to all.
    void post(const Members& group, const char* step, Part whole, const T* values, bool scatter) {
        const int me = group.index(comm_.rank());
        buffers_.out.clear();
        buffers_.in.clear();
        for (int peer = 0; peer < comm_.size(); ++peer)
            static_cast<void>(buffers_.of(peer));
        for (int index = 0; index < group.size; ++index) {
            if (index == me) continue;
            const int peer = group.member(comm_.rank(), index);
            const Part theirs = part(whole, index, group.size);
            const Part mine = part(whole, me, group.size);
            const Part send = scatter ? theirs : mine;
            const Part receive = scatter ? mine : theirs;
            const std::span<const T> out{values + send.first, static_cast<std::size_t>(send.count)};
            buffers_.out.push_back(
                {.to = peer, .bytes = std::as_bytes(out), .payload = static_cast<std::int64_t>(out.size_bytes())});
            buffers_.in.push_back({.from = peer,
                                   .into = &buffers_.of(peer),
                                   .expected = receive.count * static_cast<std::int64_t>(sizeof(T))});
        }
        ticket_ = comm_.post({.step = step, .flight = 0}, buffers_.out, buffers_.in);
        started_ = true;
    }
    void wait() {
        comm_.wait(ticket_);
        started_ = false;
    }
    /// sum_ = the members' values of `mine`, in their order, from +0.0.
    void fold(const Members& group, Part mine, const T* values) {
        std::span<T> sum = sum_.assign_zero(static_cast<std::size_t>(mine.count));
        for (int index = 0; index < group.size; ++index) {
            const int peer = group.member(comm_.rank(), index);
            const T* __restrict term =
                peer == comm_.rank() ? values + mine.first : reinterpret_cast<const T*>(buffers_.of(peer).data());
            for (std::size_t i = 0; i < sum.size(); ++i)
                sum[i] += term[i];
        }
    }
    void take(const Members& group, Part whole, T* values) {
        for (int index = 0; index < group.size; ++index) {
            const int peer = group.member(comm_.rank(), index);
            const Part theirs = part(whole, index, group.size);
            if (peer != comm_.rank() && theirs.count != 0)
                std::memcpy(values + theirs.first, buffers_.of(peer).data(),
                            static_cast<std::size_t>(theirs.count) * sizeof(T));
        }
    }

    CommunicatorRef comm_;
    Members on_host_;
    Members over_hosts_;
    CollectiveBuffers buffers_;
    Buffer<T> sum_;
    std::span<T> values_;
    Part host_part_{0, 0};
    Ticket ticket_;
    bool started_ = false;
};
/// Sums of floats.
using TreeAllReduce = BasicTreeAllReduce<float>;

/// What one BasicTreeAllReduce<T, G> moves. Not collective: a pure function, the same on all ranks.
/// \param elements_of  elements_of(rank): of the spans that are summed, equal inside a group
template <class T, Group G, class Elements>
[[nodiscard]] TrafficMatrix predict_group_all_reduce(const Topology& topology, Elements elements_of) {
    TrafficMatrix moved{topology};
    const Members group = G::of(topology);
    const Topology inside = shardwise::inside(topology, group);
    const auto first = [](std::int64_t count, int index, int members) { return count * index / members; };
    const auto send = [&](int from, int to, std::int64_t count) {
        moved.at(from, to) += {.payload = count * static_cast<std::int64_t>(sizeof(T)), .control = 0, .messages = 1};
    };
    const int hosts = inside.hosts;
    const int locals = inside.ranks_per_host;
    for (int from = 0; from < topology.ranks(); ++from) {
        const std::int64_t elements = elements_of(from);
        const int mine = inside.local_of(group.index(from));
        const int my_host = inside.host_of(group.index(from));
        for (int to = 0; to < topology.ranks(); ++to) {
            if (to == from || !group.together(to, from)) continue;
            const int theirs = inside.local_of(group.index(to));
            const int their_host = inside.host_of(group.index(to));
            if (their_host == my_host) {  // their share out, and mine back
                send(from, to, first(elements, theirs + 1, locals) - first(elements, theirs, locals));
                send(from, to, first(elements, mine + 1, locals) - first(elements, mine, locals));
            } else if (theirs == mine) {  // the same with the share of our index
                const std::int64_t part = first(elements, mine + 1, locals) - first(elements, mine, locals);
                for (const int host : {their_host, my_host})
                    send(from, to, first(part, host + 1, hosts) - first(part, host, hosts));
            }
        }
    }
    return moved;
}
/// The same in each of several groups. \param topology  a group's \param elements_of  of ranks of the world
template <class T, Group G, class Elements>
[[nodiscard]] TrafficMatrix predict_group_all_reduce(const Topology& topology, const ReplicaGroups& groups,
                                                     Elements elements_of) {
    TrafficMatrix moved{groups.world};
    for (int first = 0; first < groups.world.ranks(); ++first) {
        if (groups.index_of(first) != 0) continue;
        const auto rank = [&](int index) { return groups.group.member(first, index); };
        const TrafficMatrix inside =
            predict_group_all_reduce<T, G>(topology, [&](int index) { return elements_of(rank(index)); });
        for (int from = 0; from < topology.ranks(); ++from)
            for (int to = 0; to < topology.ranks(); ++to)
                moved.at(rank(from), rank(to)) += inside.at(from, to);
    }
    return moved;
}
/// What one BasicTreeAllReduce<T> of `elements` elements over all ranks moves.
template <class T = float>
[[nodiscard]] TrafficMatrix predict_all_reduce(const Topology& topology, std::int64_t elements) {
    return predict_group_all_reduce<T, World>(topology, [&](int) { return elements; });
}

}  // namespace shardwise::inline SHARDWISE_ABI
