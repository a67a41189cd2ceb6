// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <optional>
#include <string>
#include <vector>

#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/digest.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/matrix.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/dense/batch_products.hpp"
#include "shardwise/dense/linear.hpp"
#include "shardwise/dense/parameter.hpp"
#include "shardwise/embedding/lanes/tower_module.hpp"
#include "shardwise/plan/memory.hpp"
#include "shardwise/tower/parameters.hpp"

/// \file
/// The module of a DLRM's towers (Disaggregated Multi-Tower, section 4).

namespace shardwise::inline SHARDWISE_ABI {

/// A module of linear maps: c vectors of each feature of the tower, then p of the tower as a whole, each of D elements.
///
/// Of the vectors of F features with N elements each it makes c F + p of D, so that 1 / (the compression
/// F N / ((c F + p) D)) as much travels on. Maps have a bias, as torch.nn.Linear; each feature has maps of its own. A
/// tower of one feature whose result is as large as its input passes it on. Parameters are named
/// `tower.<t>.feature.<f>.weight` (c D, N) and `.bias`, `tower.<t>.all.weight` (p D, F N) and `.bias`.
class Dot {
  public:
    static constexpr const char* name = "dot";

    /// Run-time constants, the same on all ranks.
    struct Config {
        int per_feature = 1;                                ///< c, vectors of each feature
        int per_tower = 0;                                  ///< p, vectors of the whole tower
        int dimension = 0;                                  ///< D, elements of each
        DensePrecision precision = DensePrecision::single;  ///< of sums of products, and of gradients

        void add_to(Digest& digest) const {
            digest.add(std::int64_t{per_feature}).add(std::int64_t{per_tower}).add(std::int64_t{dimension});
            digest.add(static_cast<std::int64_t>(precision));
        }
    };
    /// What a flight keeps from forward to backward.
    struct Work {
        MatrixView<const float> in = {};
        Buffer<float> through;  // (rows, elements of a feature): by way of the feature's own maps, with both kinds
        BatchProducts products;
    };

    Dot(const Config& config, const TowerShape& shape, std::uint64_t seed, MemoryAccount& memory)
        : parameters_{memory.tables()}, maps_{parameters_, config, shape}, precision_{config.precision} {
        parameters_.allocate(config.precision);
        for (const Linear& map : maps_.features)
            map.initialize(detail::tower_seed(seed, shape));
        if (maps_.all) maps_.all->initialize(detail::tower_seed(seed, shape));
    }

    /// Values and gradients of the maps.
    [[nodiscard]] ParameterSet& parameters() noexcept { return parameters_; }

    /// Columns of the result: (c F + p) D. \throws BadInput when c, p and D do not fit
    static int outputs(const Config& config, const TowerShape& shape) {
        const auto text = [&] {
            return concat({"Tower<Dot> with c = ", config.per_feature, ", p = ", config.per_tower,
                           " and D = ", config.dimension});
        };
        if (config.per_feature < 0 || config.per_tower < 0 || (config.per_feature == 0 && config.per_tower == 0))
            throw BadInput{concat({text(), ": neither c nor p is negative, and one of them is at least 1"})};
        if (config.dimension < 1) throw BadInput{concat({text(), ": D is at least 1"})};
        return detail::tower_columns(
            text(), shape,
            std::int64_t{config.per_feature} * static_cast<std::int64_t>(shape.dims.size()) + config.per_tower,
            config.dimension);
    }
    static std::int64_t static_bytes(const Config& config, const TowerShape& shape) {
        return detail::with_parameters<Maps>(
            config, shape, [&](const ParameterSet& set, const Maps&) { return set.bytes(config.precision); });
    }
    /// Weights and biases of a tower.
    static std::int64_t parameter_count(const Config& config, const TowerShape& shape) {
        return detail::with_parameters<Maps>(config, shape,
                                             [](const ParameterSet& set, const Maps&) { return set.elements(); });
    }
    /// Of parameters().values(): what the ranks of a tower add up.
    static std::int64_t span_elements(const Config& config, const TowerShape& shape) {
        return detail::with_parameters<Maps>(config, shape,
                                             [](const ParameterSet& set, const Maps&) { return set.span_elements(); });
    }
    /// Of forward and backward together, a sample: 6 a multiplication of a weight.
    static std::int64_t flops(const Config& config, const TowerShape& shape) {
        return detail::with_parameters<Maps>(config, shape, [](const ParameterSet&, const Maps& maps) {
            std::int64_t products = maps.all ? maps.all->inputs() * maps.all->outputs() : 0;
            for (const Linear& map : maps.features)
                products += map.inputs() * map.outputs();
            return 6 * products;
        });
    }
    static void work_bytes(const Config& config, const TowerShape& shape, std::int64_t rows, MemoryTally& tally) {
        detail::with_parameters<Maps>(config, shape, [&](const ParameterSet&, const Maps& maps) {
            tally.need(4 * maps.through_columns() * rows);
            BatchProducts::Needs needs{.precision = config.precision};
            for (const Linear& map : maps.features)
                needs.add(rows, map.inputs(), map.outputs());
            if (maps.all) needs.add(rows, maps.all->inputs(), maps.all->outputs());
            for (const std::int64_t bytes : needs.bytes)
                tally.need(bytes);
            return 0;
        });
    }

    void forward(MatrixView<const float> in, Work& work, MatrixView<float> out, std::pmr::memory_resource& memory) {
        work.in = in;
        work.through.on(memory);
        work.products.on(memory);
        if (maps_.passes_on()) {
            std::copy_n(in.data(), in.rows() * in.columns(), out.data());
            return;
        }
        maps_.for_features([&](const Linear& map, std::int64_t input, std::int64_t output) {
            map.forward(in.columns_from(input, map.inputs()), out.columns_from(output, map.outputs()), products(work));
        });
        if (maps_.all) maps_.all->forward(in, out.columns_from(maps_.all_output, maps_.all->outputs()), products(work));
    }
    void backward(Work& work, MatrixView<const float> gradient, MatrixView<float> in_gradient,
                  std::pmr::memory_resource&) {
        if (maps_.passes_on()) {
            std::copy_n(gradient.data(), gradient.rows() * gradient.columns(), in_gradient.data());
            return;
        }
        if (maps_.all) {
            const MatrixView<const float> mine = gradient.columns_from(maps_.all_output, maps_.all->outputs());
            maps_.all->backward(work.in, mine, products(work));
            maps_.all->backward_input(mine, in_gradient, products(work));
        }
        work.through.resize(static_cast<std::size_t>(maps_.through_columns() * gradient.rows()));
        maps_.for_features([&](const Linear& map, std::int64_t input, std::int64_t output) {
            const MatrixView<const float> mine = gradient.columns_from(output, map.outputs());
            const MatrixView<float> to = in_gradient.columns_from(input, map.inputs());
            map.backward(work.in.columns_from(input, map.inputs()), mine, products(work));
            if (!maps_.all) return map.backward_input(mine, to, products(work));
            const MatrixView<float> through{work.through.data(), gradient.rows(), map.inputs()};
            map.backward_input(mine, through, products(work));
            for (std::int64_t i = 0; i < to.rows(); ++i)
                for (std::int64_t j = 0; j < to.columns(); ++j)
                    to(i, j) += through(i, j);
        });
    }

  private:
    struct Maps {
        std::vector<Linear> features;  // (feature of the tower)
        std::optional<Linear> all;
        std::int64_t all_output = 0;  // column where its result begins

        Maps(ParameterSet& set, const Config& config, const TowerShape& shape) {
            const std::string prefix = "tower." + std::to_string(shape.tower) + ".";
            if (shape.dims.size() == 1 && outputs(config, shape) == shape.width()) return;
            for (std::size_t f = 0; f < shape.dims.size() && config.per_feature > 0; ++f)
                features.emplace_back(set, prefix + "feature." + std::to_string(f), shape.dims[f],
                                      std::int64_t{config.per_feature} * config.dimension);
            for (const Linear& map : features)
                all_output += map.outputs();
            if (config.per_tower > 0)
                all.emplace(set, prefix + "all", shape.width(), std::int64_t{config.per_tower} * config.dimension);
        }
        [[nodiscard]] bool passes_on() const { return features.empty() && !all; }
        /// Calls use(map, its first input column, its first output column).
        template <class Use>
        void for_features(Use use) const {
            std::int64_t input = 0;
            std::int64_t output = 0;
            for (const Linear& map : features) {
                use(map, input, output);
                input += map.inputs();
                output += map.outputs();
            }
        }
        [[nodiscard]] std::int64_t through_columns() const {
            std::int64_t most = 0;
            for (const Linear& map : features)
                most = std::max(most, all ? map.inputs() : 0);
            return most;
        }
    };

    [[nodiscard]] BatchProducts* products(Work& work) const noexcept { return work.products.in(precision_); }

    ParameterSet parameters_;
    Maps maps_;
    DensePrecision precision_;
};

}  // namespace shardwise::inline SHARDWISE_ABI
