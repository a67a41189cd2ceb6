// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cmath>

#include "trained.hpp"

/// FTRL-Proximal, by which click models of one weight a feature learn (McMahan et al., Ad click prediction, 2013).
struct Ftrl {
    static constexpr const char* name = "ftrl";
    static constexpr int row_slots = 0;      // floats of state for each row
    static constexpr int element_slots = 2;  // and for each element: n and z, zero at first
    static constexpr bool needs_row_norm = false;
    struct Row {
        float learning_rate = 0;
    };

    float l1 = 0.0F;  // weights of rows that say little become exactly 0
    float beta = 1.0F;

    void check() const {
        if (!(l1 >= 0 && beta >= 0))
            throw sw::BadInput{"optimizer 'ftrl': l1 or beta is negative: give numbers from 0 on"};
    }
    void add_to(sw::Digest& digest) const { digest.add(l1).add(beta); }

    Row row(const sw::UpdateStep& step, float* /*row_state*/, double /*sum_of_squares*/, int /*dim*/) const {
        return {.learning_rate = step.learning_rate};
    }
    void element(const Row& row, float& weight, float gradient, float& n, float& z) const {
        const float before = std::sqrt(n);
        n = std::fma(gradient, gradient, n);
        const float after = std::sqrt(n);
        z = std::fma(-(after - before) / row.learning_rate, weight, z + gradient);
        weight = std::fabs(z) <= l1 ? 0.0F : (std::copysign(l1, z) - z) * row.learning_rate / (beta + after);
    }
};
static_assert(sw::SparseOptimizer<Ftrl>);

int main() {
    using InOrder = sw::Order<sw::Sample>;  // sums of gradients do not depend on the number of ranks
    const Ftrl rule{.l1 = 0.01F};
    const auto expected = trained<sw::Sharding<sw::Row>, sw::Optimizer<Ftrl>, InOrder>(1, rule);
    for (const int ranks : {2, 4}) {
        require(trained<sw::Sharding<sw::Row>, sw::Optimizer<Ftrl>, InOrder>(ranks, rule) == expected, "rows");
        require(trained<sw::Sharding<sw::Table>, sw::Optimizer<Ftrl>, InOrder>(ranks, rule) == expected, "tables");
        require(trained<sw::Sharding<sw::Col<>>, sw::Optimizer<Ftrl>, InOrder>(ranks, rule) == expected, "columns");
    }

    float weight = 0.25F, n = 9.0F, z = 2.0F;
    const Ftrl sparse{.l1 = 0.5F};
    const Ftrl::Row row = sparse.row({.learning_rate = 0.1F}, nullptr, 0.0, 1);
    sparse.element(row, weight, 4.0F, n, z);  // the root of n grows from 3 to 5
    require(n == 25.0F && std::fabs(z - 1.0F) < 1e-6F && std::fabs(weight + 0.5F * 0.1F / 6) < 1e-6F, "the formula");
    z = -0.4F;
    sparse.element(row, weight, 0.0F, n, z);
    require(weight == 0.0F, "little evidence gives a weight of 0");
}
