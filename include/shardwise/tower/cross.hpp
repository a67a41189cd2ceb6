// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <optional>
#include <string>

#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/digest.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/matrix.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/dense/batch_products.hpp"
#include "shardwise/dense/cross_net.hpp"
#include "shardwise/dense/linear.hpp"
#include "shardwise/dense/parameter.hpp"
#include "shardwise/embedding/lanes/tower_module.hpp"
#include "shardwise/plan/memory.hpp"
#include "shardwise/tower/parameters.hpp"

/// \file
/// The module of a DCN's towers (Disaggregated Multi-Tower, section 4).

namespace shardwise::inline SHARDWISE_ABI {

/// A module that crosses the features of its tower: a CrossNet over their vectors side by side, then a linear map to p
/// vectors of D elements.
///
/// 1 / (the compression F N / (p D)) as much travels on. A tower of one feature whose result is as large as its input
/// is crossed and not mapped. Parameters are named `tower.<t>.cross.<layer>...` (see CrossNet),
/// `tower.<t>.all.weight` (p D, F N) and `.bias`.
class Cross {
  public:
    static constexpr const char* name = "cross";

    /// Run-time constants, the same on all ranks.
    struct Config {
        int layers = 1;                                     ///< of the CrossNet
        int rank = 0;                                       ///< of its weights; 0: full
        int per_tower = 1;                                  ///< p, vectors of the tower
        int dimension = 0;                                  ///< D, elements of each
        DensePrecision precision = DensePrecision::single;  ///< of sums of products, and of gradients

        void add_to(Digest& digest) const {
            for (const int number : {layers, rank, per_tower, dimension})
                digest.add(std::int64_t{number});
            digest.add(static_cast<std::int64_t>(precision));
        }
    };
    /// What a flight keeps from forward to backward.
    struct Work {
        CrossNet::Work net;
        Buffer<float> through;  // (rows, width): the gradient of the CrossNet's output, where it is mapped
    };

    Cross(const Config& config, const TowerShape& shape, std::uint64_t seed, MemoryAccount& memory)
        : parameters_{memory.tables()}, parts_{parameters_, config, shape}, precision_{config.precision} {
        parameters_.allocate(config.precision);
        parts_.net.initialize(detail::tower_seed(seed, shape));
        if (parts_.map) parts_.map->initialize(detail::tower_seed(seed, shape));
    }

    /// Values and gradients of the CrossNet and the map.
    [[nodiscard]] ParameterSet& parameters() noexcept { return parameters_; }

    /// Columns of the result: p D. \throws BadInput when the numbers do not fit
    static int outputs(const Config& config, const TowerShape& shape) {
        const std::string text = concat({"Tower<Cross> with ", config.layers, " layers of rank ", config.rank,
                                         ", p = ", config.per_tower, " and D = ", config.dimension});
        if (config.layers < 1 || config.rank < 0)
            throw BadInput{
                concat({text, ": there is at least one layer, and the rank is at least 1, or 0 for full weights"})};
        if (config.per_tower < 1 || config.dimension < 1) throw BadInput{concat({text, ": p and D are at least 1"})};
        return detail::tower_columns(text, shape, config.per_tower, config.dimension);
    }
    static std::int64_t static_bytes(const Config& config, const TowerShape& shape) {
        return detail::with_parameters<Parts>(
            config, shape, [&](const ParameterSet& set, const Parts&) { return set.bytes(config.precision); });
    }
    /// Weights and biases of a tower.
    static std::int64_t parameter_count(const Config& config, const TowerShape& shape) {
        return detail::with_parameters<Parts>(config, shape,
                                              [](const ParameterSet& set, const Parts&) { return set.elements(); });
    }
    /// Of parameters().values(): what the ranks of a tower add up.
    static std::int64_t span_elements(const Config& config, const TowerShape& shape) {
        return detail::with_parameters<Parts>(
            config, shape, [](const ParameterSet& set, const Parts&) { return set.span_elements(); });
    }
    /// Of forward and backward together, a sample: 6 a multiplication of a weight, 6 an element and layer.
    static std::int64_t flops(const Config& config, const TowerShape& shape) {
        return detail::with_parameters<Parts>(config, shape, [](const ParameterSet&, const Parts& parts) {
            return parts.net.flops() + (parts.map ? 6 * parts.map->inputs() * parts.map->outputs() : 0);
        });
    }
    static void work_bytes(const Config& config, const TowerShape& shape, std::int64_t rows, MemoryTally& tally) {
        detail::with_parameters<Parts>(config, shape, [&](const ParameterSet&, const Parts& parts) {
            for (const std::int64_t floats : CrossNet::work_floats(parts.net.config(), rows))
                tally.need(4 * floats);
            BatchProducts::Needs needs{.precision = config.precision};
            CrossNet::add_needs(parts.net.config(), rows, needs);
            if (parts.map) needs.add(rows, parts.map->inputs(), parts.map->outputs());
            for (const std::int64_t bytes : needs.bytes)
                tally.need(bytes);
            tally.need(parts.map ? 4 * rows * parts.map->inputs() : 0);
            return 0;
        });
    }

    void forward(MatrixView<const float> in, Work& work, MatrixView<float> out, std::pmr::memory_resource& memory) {
        work.through.on(memory);
        const MatrixView<const float> crossed = parts_.net.forward(in, work.net.on(memory));
        if (parts_.map)
            parts_.map->forward(crossed, out, products(work));
        else
            std::copy_n(crossed.data(), crossed.rows() * crossed.columns(), out.data());
    }
    void backward(Work& work, MatrixView<const float> gradient, MatrixView<float> in_gradient,
                  std::pmr::memory_resource&) {
        if (!parts_.map) return parts_.net.backward(work.net, gradient, in_gradient);
        const MatrixView<const float> crossed = parts_.net.last_output(work.net);
        const MatrixView<float> through{
            work.through.resize(static_cast<std::size_t>(crossed.rows() * crossed.columns())).data(), crossed.rows(),
            crossed.columns()};
        parts_.map->backward(crossed, gradient, products(work));
        parts_.map->backward_input(gradient, through, products(work));
        parts_.net.backward(work.net, through, in_gradient);
    }

  private:
    struct Parts {
        CrossNet net;
        std::optional<Linear> map;

        Parts(ParameterSet& set, const Config& config, const TowerShape& shape)
            : net{set, prefix(shape) + "cross",
                  CrossNetConfig{.width = shape.width(), .layers = config.layers, .rank = config.rank},
                  config.precision} {
            if (shape.dims.size() == 1 && outputs(config, shape) == shape.width()) return;
            map.emplace(set, prefix(shape) + "all", shape.width(), outputs(config, shape));
        }
        static std::string prefix(const TowerShape& shape) { return concat({"tower.", shape.tower, "."}); }
    };

    [[nodiscard]] BatchProducts* products(Work& work) const noexcept { return work.net.products.in(precision_); }

    ParameterSet parameters_;
    Parts parts_;
    DensePrecision precision_;
};

}  // namespace shardwise::inline SHARDWISE_ABI
