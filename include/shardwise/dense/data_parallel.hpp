// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <memory_resource>
#include <type_traits>
#include <utility>

#include "shardwise/comm/all_reduce.hpp"
#include "shardwise/comm/communicator_ref.hpp"
#include "shardwise/comm/traffic.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/exact_sum.hpp"
#include "shardwise/dense/batch_products.hpp"
#include "shardwise/dense/optimizer.hpp"
#include "shardwise/dense/parameter.hpp"
#include "shardwise/topology/groups.hpp"
#include "shardwise/topology/replica_groups.hpp"
#include "shardwise/topology/topology.hpp"

/// \file
/// Data-parallel training of dense parameters: gradients are summed over ranks, then all of them take the same step.

namespace shardwise::inline SHARDWISE_ABI {

/// What the sum of gradients of a DataParallel moves. Not collective: a pure function, the same on all ranks.
/// \tparam G  the group that sums
/// \param topology     with the towers that G sees; of a replica group, where there are several
/// \param groups       replica groups: each sums by itself, then the copies do
/// \param precision    of the parameters: floats travel in single, doubles in others
/// \param elements_of  elements_of(rank of the world): of its ParameterSet::values(), equal inside a group and on
/// copies
template <Group G = World, class Elements>
[[nodiscard]] TrafficMatrix predict_gradient_sum(const Topology& topology, const ReplicaGroups& groups,
                                                 DensePrecision precision, Elements elements_of) {
    const auto predict = [&]<class T>(T) {
        TrafficMatrix moved = predict_group_all_reduce<T, G>(topology, groups, elements_of);
        if (groups.count() != 1)
            moved += predict_group_all_reduce<T, World>(groups.between_copies(), groups.of_copies(), elements_of);
        return moved;
    };
    return precision == DensePrecision::single ? predict(float{}) : predict(double{});
}
/// The same of one group of all ranks.
template <Group G = World, class Elements>
[[nodiscard]] TrafficMatrix predict_gradient_sum(const Topology& topology, DensePrecision precision,
                                                 Elements elements_of) {
    return predict_gradient_sum<G>(topology, ReplicaGroups::one(topology), precision, elements_of);
}

/// Trains parameters of which every rank of a group has a copy.
///
/// Each rank computes the gradients of its own samples, and of a loss that is a mean over the samples of all ranks;
/// these gradients are summed over the group by BasicTreeAllReduce, so that all ranks have the same bits, and the
/// copies stay equal. Of parameters with wide gradients the sum is taken in double and rounded once, at its end. So
/// goes a step:
///
///     // ... backward: parameters.gradients() are those of this rank's samples ...
///     training.start();   // on their way; other work goes on meanwhile
///     training.finish();  // the group's sum
///     training.step(learning_rate);
///
/// With replica groups the modules of towers are there once a group: sums are over a tower, then over its copies. Each
/// group's gradient is by its own samples then, and counts as much as it has of the world's: start(weight).
///
/// Warm steps allocate nothing. Cost of a sum over H hosts of L ranks: four rounds, 2 (L - 1) messages inside a host
/// and 2 (H - 1) across from each rank, and of n elements it sends 2 n (L - 1) / L inside its host and
/// 2 n / L (H - 1) / H across, of 4 bytes each, 8 with wide gradients; `predict_gradient_sum` says it exactly.
/// Copies cost as much again, with H and L theirs.
/// \tparam Optimizer  DenseSgd, DenseAdagrad, DenseAdam, AnyDenseOptimizer or one's own
/// \tparam G          whose copies are equal: World, or OneTower for the modules of towers
template <DenseOptimizer Optimizer, Group G = World>
class DataParallel {
  public:
    /// Not collective.
    /// \param parameters  allocated, equal on all ranks of the group; outlives this
    /// \param optimizer   made for parameters.values().size() elements
    /// \param topology    the communicator's, with the towers that G sees: LayerBase::topology()
    /// \param work        where the sum's buffers lie: a MemoryAccount's `work()`
    /// \throws BadInput when the parameters are not allocated
    DataParallel(ParameterSet& parameters, Optimizer optimizer, CommunicatorRef comm, const Topology& topology,
                 std::pmr::memory_resource& work)
        : DataParallel{parameters, std::move(optimizer), comm, topology, ReplicaGroups::one(topology), work} {}
    /// The same where a layer has replica groups. \param topology  a group's: LayerBase::topology()
    /// \param groups  LayerBase::groups() \throws BadInput for a topology of another number of ranks, too
    DataParallel(ParameterSet& parameters, Optimizer optimizer, CommunicatorRef comm, const Topology& topology,
                 const ReplicaGroups& groups, std::pmr::memory_resource& work)
        : parameters_{&parameters},
          optimizer_{std::move(optimizer)},
          topology_{topology},
          groups_{groups},
          sum_{comm, topology, groups, work},
          wide_sum_{comm, topology, groups, work},
          copies_sum_{comm, groups.between_copies(), groups.of_copies(), work},
          wide_copies_sum_{comm, groups.between_copies(), groups.of_copies(), work} {
        if (static_cast<std::int64_t>(parameters.values().size()) != parameters.span_elements())
            throw BadInput{"data-parallel training of parameters that are not allocated: allocate the set first"};
    }
    /// Over all ranks.
    DataParallel(ParameterSet& parameters, Optimizer optimizer, CommunicatorRef comm,
                 std::pmr::memory_resource& work) requires std::is_same_v<G, World>
        : DataParallel{parameters, std::move(optimizer), comm, comm.topology(), work} {}

    /// Sends this rank's gradients on their way and returns without waiting; they stay as they are until `finish`.
    /// Collective over all ranks, whatever G; one sum at a time.
    /// \param weight  what this rank's gradients are multiplied with before: SampleCounts::to_world() where they are by
    ///                the samples of a replica group, and the sum is to be by the world's
    void start(double weight = 1) {
        if (weight != 1) scale(weight);
        if (wide()) {
            wide_sum_.start(parameters_->wide_gradients());
        } else {
            sum_.start(parameters_->gradients());
        }
    }
    /// Makes parameters().gradients() the sum over the group and its copies. Collective.
    void finish() {
        const bool copies = groups_.count() != 1;
        if (wide()) {
            wide_sum_.finish();
            if (copies) wide_copies_sum_(parameters_->wide_gradients());
            parameters_->round_gradients();
        } else {
            sum_.finish();
            if (copies) copies_sum_(parameters_->gradients());
        }
    }
    /// Both at once. Collective.
    void sum(double weight = 1) {
        start(weight);
        finish();
    }
    /// One step of the optimizer, by the summed gradients. Not collective; the same on all ranks of the group.
    /// \param learning_rate  of this step
    void step(double learning_rate) { optimizer_.step(parameters_->values(), parameters_->gradients(), learning_rate); }

    /// Of the summed gradients, for clipping by the norm of a whole model (LayerBase::clip_with): the sum of their
    /// squares, and their product with what came of it. Not collective.
    [[nodiscard]] ExactSum squares() const {
        ExactSum sum;
        sum.add_squares(std::as_const(*parameters_).gradients());
        return sum;
    }
    void rescale(float scale) {
        for (float& gradient : parameters_->gradients())
            gradient *= scale;
    }

    [[nodiscard]] ParameterSet& parameters() noexcept { return *parameters_; }
    [[nodiscard]] const ParameterSet& parameters() const noexcept { return *parameters_; }
    /// Its state and steps are what a checkpoint holds.
    [[nodiscard]] Optimizer& optimizer() noexcept { return optimizer_; }
    /// In which gradients are summed: that which the parameters were allocated with.
    [[nodiscard]] DensePrecision precision() const noexcept { return parameters_->precision(); }
    /// What a sum moves. Not collective: a pure function, the same on all ranks.
    [[nodiscard]] TrafficMatrix predict_sum() const requires std::is_same_v<G, World> {
        const std::int64_t elements = parameters_->span_elements();
        return predict_gradient_sum<G>(topology_, groups_, precision(), [&](int) { return elements; });
    }

  private:
    [[nodiscard]] bool wide() const noexcept { return precision() != DensePrecision::single; }
    void scale(double weight) {
        for (double& gradient : parameters_->wide_gradients())
            gradient *= weight;
        if (wide()) return;
        for (float& gradient : parameters_->gradients())
            gradient *= static_cast<float>(weight);
    }

    ParameterSet* parameters_;
    Optimizer optimizer_;
    Topology topology_;
    ReplicaGroups groups_;
    BasicTreeAllReduce<float, G> sum_;
    BasicTreeAllReduce<double, G> wide_sum_;
    BasicTreeAllReduce<float> copies_sum_;
    BasicTreeAllReduce<double> wide_copies_sum_;
};

}  // namespace shardwise::inline SHARDWISE_ABI
