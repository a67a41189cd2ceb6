// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dense/naive.hpp"
#include "dense/support.hpp"
#include "shardwise/tower/cross.hpp"
#include "shardwise/tower/dot.hpp"

namespace dense_test {
namespace {
using shardwise::BadInput;
using shardwise::Cross;
using shardwise::DensePrecision;
using shardwise::Dot;
using shardwise::MemoryAccount;
using shardwise::MemoryTally;
using shardwise::TowerShape;

/// Rows of in times weight, plus bias.
void append_map(const std::vector<double>& in, const NaiveParameter& weight, const NaiveParameter& bias,
                std::vector<double>& out) {
    for (std::size_t o = 0; o < bias.values.size(); ++o) {
        double y = bias.values[o];
        for (std::size_t i = 0; i < in.size(); ++i)
            y += weight.values[o * in.size() + i] * in[i];
        out.push_back(y);
    }
}

Rows naive(const Dot::Config& config, const TowerShape& shape, std::span<const NaiveParameter> parameters,
           const Rows& input) {
    Rows result;
    for (const auto& row : input) {
        if (parameters.empty()) {
            result.push_back(row);
            continue;
        }
        std::vector<double>& out = result.emplace_back();
        std::size_t first = 0;
        std::size_t parameter = 0;
        for (std::size_t f = 0; config.per_feature > 0 && f < shape.dims.size(); ++f) {
            const auto dim = static_cast<std::size_t>(shape.dims[f]);
            const std::vector<double> feature(row.begin() + static_cast<std::ptrdiff_t>(first),
                                              row.begin() + static_cast<std::ptrdiff_t>(first + dim));
            append_map(feature, parameters[parameter], parameters[parameter + 1], out);
            first += dim;
            parameter += 2;
        }
        if (config.per_tower > 0) append_map(row, parameters[parameter], parameters[parameter + 1], out);
    }
    return result;
}

Rows naive(const Cross::Config& config, const TowerShape& shape, std::span<const NaiveParameter> parameters,
           const Rows& input) {
    const auto crossing = static_cast<std::size_t>(config.layers) * (config.rank == 0 ? 2 : 3);
    const Rows crossed = naive_cross_net(input, parameters.first(crossing),
                                         {.width = shape.width(), .layers = config.layers, .rank = config.rank});
    if (parameters.size() == crossing) return crossed;
    Rows result;
    for (const auto& row : crossed)
        append_map(row, parameters[crossing], parameters[crossing + 1], result.emplace_back());
    return result;
}

template <class M>
void check_module(typename M::Config config, const TowerShape& shape, std::int64_t rows, DensePrecision precision) {
    SCOPED_TRACE(testing::Message() << M::name << ", " << shape.dims.size() << " features, " << rows << " rows, D "
                                    << config.dimension);
    config.precision = precision;
    MemoryAccount memory;
    M module{config, shape, 5, memory};
    EXPECT_EQ(memory.static_bytes(), M::static_bytes(config, shape));
    EXPECT_EQ(M::parameter_count(config, shape), module.parameters().elements());
    Random random{11};
    for (const auto& parameter : module.parameters())
        if (parameter.rows == 1) random.fill(parameter.values());
    random.fill(module.parameters().gradients());  // what stood there before does not matter
    for (double& wide : module.parameters().wide_gradients())
        wide = 7.0;

    // two batches under way at once, as two flights of a layer
    const Matrix x{rows, shape.width(), random};
    const Matrix other{2 * rows + 1, shape.width(), random};
    const int columns = M::outputs(config, shape);
    Matrix y{rows, columns, random};
    Matrix ignored{other.rows, columns, random};
    const Matrix gradient{rows, columns, random};
    Matrix x_gradient{rows, shape.width(), random};
    typename M::Work work;
    typename M::Work of_other;
    module.forward(x.view(), work, y.view(), memory.work());
    module.forward(other.view(), of_other, ignored.view(), memory.work());
    module.backward(work, gradient.view(), x_gradient.view(), memory.work());
    if (precision != DensePrecision::single) module.parameters().round_gradients();

    auto parameters = naive_parameters(module.parameters());
    auto inputs = as_double(x.elements.span());
    const auto expected = [&] { return naive(config, shape, parameters, as_rows(inputs, rows, shape.width())); };
    const Rows out = expected();
    for (std::int64_t i = 0; i < rows; ++i)
        expect_all_close(std::span{y.view().row(i), static_cast<std::size_t>(columns)},
                         out[static_cast<std::size_t>(i)], 1e-5);
    const auto loss = [&] {
        double sum = 0.0;
        const Rows result = expected();
        for (std::int64_t i = 0; i < rows; ++i)
            for (std::int64_t j = 0; j < columns; ++j)
                sum += result[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] *
                       static_cast<double>(gradient.view()(i, j));
        return sum;
    };
    expect_slopes(module.parameters(), parameters, loss);
    for (std::size_t i = 0; i < inputs.size(); i += 1 + inputs.size() / 40)
        expect_close(x_gradient.elements[i], slope(inputs, i, loss), 1e-4);
}

/// What a batch of `rows` takes is what the module said.
template <class M>
void check_memory(typename M::Config config, const TowerShape& shape, DensePrecision precision) {
    config.precision = precision;
    MemoryAccount memory;
    M module{config, shape, 5, memory};
    typename M::Work work;
    MemoryTally tally;
    Random random{3};
    for (const std::int64_t rows : {4, 0, 9}) {
        const Matrix x{rows, shape.width(), random};
        Matrix y{rows, M::outputs(config, shape), random};
        Matrix through{rows, shape.width(), random};
        module.forward(x.view(), work, y.view(), memory.work());
        module.backward(work, y.view(), through.view(), memory.work());
        tally.begin_batch();
        M::work_bytes(config, shape, rows, tally);
    }
    EXPECT_EQ(memory.dynamic_bytes(), tally.bytes()) << M::name << " of " << shape.dims.size();
}

const std::vector<TowerShape> shapes{{.tower = 0, .dims = {4}},
                                     {.tower = 1, .dims = {6}},
                                     {.tower = 2, .dims = {4, 4, 4}},
                                     {.tower = 3, .dims = {3, 8}}};
const std::vector<Dot::Config> dots{{.per_feature = 1, .per_tower = 0, .dimension = 4},
                                    {.per_feature = 0, .per_tower = 1, .dimension = 4},
                                    {.per_feature = 2, .per_tower = 3, .dimension = 2}};
const std::vector<Cross::Config> crosses{{.layers = 1, .rank = 0, .per_tower = 1, .dimension = 4},
                                         {.layers = 2, .rank = 3, .per_tower = 2, .dimension = 3}};

TEST(modules, equal_the_definition_and_its_slopes) {
    for (const DensePrecision precision : {DensePrecision::single, DensePrecision::blocks, DensePrecision::wide})
        for (const TowerShape& shape : shapes)
            for (const std::int64_t rows : {0, 1, 5}) {
                for (const Dot::Config& config : dots)
                    check_module<Dot>(config, shape, rows, precision);
                for (const Cross::Config& config : crosses)
                    check_module<Cross>(config, shape, rows, precision);
            }
}

TEST(modules, say_what_memory_they_take) {
    for (const DensePrecision precision : {DensePrecision::single, DensePrecision::blocks, DensePrecision::wide})
        for (const TowerShape& shape : shapes) {
            for (const Dot::Config& config : dots)
                check_memory<Dot>(config, shape, precision);
            for (const Cross::Config& config : crosses)
                check_memory<Cross>(config, shape, precision);
        }
}

TEST(modules, of_one_feature_that_would_not_shrink_map_nothing) {
    EXPECT_EQ(Dot::parameter_count(dots[0], shapes[0]), 0);
    EXPECT_EQ(Dot::parameter_count(dots[0], shapes[1]), 4 * 6 + 4);
    EXPECT_EQ(Cross::parameter_count(crosses[0], shapes[0]), 4 * 4 + 4);
    EXPECT_EQ(Cross::parameter_count(crosses[0], shapes[1]), 6 * 6 + 6 + 4 * 6 + 4);
}

TEST(modules, of_towers_with_one_shape_start_apart) {
    MemoryAccount memory;
    TowerShape other = shapes[2];
    other.tower = 7;
    Dot one{dots[2], shapes[2], 5, memory};
    Dot two{dots[2], other, 5, memory};
    Dot again{dots[2], shapes[2], 5, memory};
    EXPECT_NE(one.parameters().values()[0], two.parameters().values()[0]);
    EXPECT_EQ(one.parameters().values()[0], again.parameters().values()[0]);
    EXPECT_NE(two.parameters().find("tower.7.feature.2.weight"), nullptr);
    EXPECT_NE(two.parameters().find("tower.7.all.bias"), nullptr);
}

template <class M>
std::string refused(const typename M::Config& config) {
    try {
        M::outputs(config, shapes[2]);
    } catch (const BadInput& error) {
        return error.what();
    }
    return "";
}

TEST(modules, refuse_numbers_that_do_not_fit) {
    EXPECT_EQ(refused<Dot>({.per_feature = 0, .per_tower = 0, .dimension = 4}),
              "Tower<Dot> with c = 0, p = 0 and D = 4: neither c nor p is negative, and one of them is at least 1");
    EXPECT_NE(refused<Dot>({.per_feature = -1, .per_tower = 2, .dimension = 4}), "");
    EXPECT_EQ(refused<Dot>({}), "Tower<Dot> with c = 1, p = 0 and D = 0: D is at least 1");
    EXPECT_NE(refused<Dot>({.per_feature = 2000000000, .per_tower = 0, .dimension = 2}), "");
    EXPECT_NE(refused<Cross>({.layers = 0, .rank = 0, .per_tower = 1, .dimension = 4}), "");
    EXPECT_NE(refused<Cross>({.layers = 1, .rank = -1, .per_tower = 1, .dimension = 4}), "");
    EXPECT_EQ(refused<Cross>({.layers = 1, .rank = 0, .per_tower = 0, .dimension = 4}),
              "Tower<Cross> with 1 layers of rank 0, p = 0 and D = 4: p and D are at least 1");
}

}  // namespace
}  // namespace dense_test
