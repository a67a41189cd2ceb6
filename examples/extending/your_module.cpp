// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cmath>
#include <memory_resource>
#include <span>

#include "trained.hpp"

/// One vector for each sample: a weighted sum of the vectors of the tower's features, then a leaky ReLU.
class Blend {
  public:
    static constexpr const char* name = "blend";
    struct Config {
        float slope = 0.1F;  // for sums below 0
        void add_to(sw::Digest& digest) const { digest.add(slope); }
    };
    struct Work {  // what a batch leaves from forward to backward
        sw::MatrixView<const float> in;
        sw::Buffer<float> sums;  // (rows, dim)
    };

    Blend(const Config& config, const sw::TowerShape& shape, std::uint64_t seed, sw::MemoryAccount& memory)
        : slope_{config.slope},
          features_{std::ssize(shape.dims)},
          dim_{outputs(config, shape)},
          weights_{memory.tables(), shape.dims.size()},
          gradient_{memory.tables(), shape.dims.size()} {
        for (std::size_t f = 0; f < weights_.size(); ++f)  // a function of seed, tower and feature
            weights_[f] = 1.0F + static_cast<float>((seed + 7 * f + 3 * static_cast<std::size_t>(shape.tower)) % 5) / 8;
    }

    static int outputs(const Config&, const sw::TowerShape& shape) {
        for (const int dim : shape.dims)
            if (dim != shape.dims[0]) throw sw::BadInput{"Tower<Blend>: give all features of a tower one dimension"};
        return shape.dims[0];
    }
    static std::int64_t static_bytes(const Config&, const sw::TowerShape& shape) {
        return static_cast<std::int64_t>(2 * sw::buffer_capacity(shape.dims.size() * sizeof(float)));
    }
    static void work_bytes(const Config&, const sw::TowerShape& shape, std::int64_t rows, sw::MemoryTally& tally) {
        tally.need(rows * shape.dims[0] * std::int64_t{sizeof(float)});  // sums
    }

    void forward(sw::MatrixView<const float> in, Work& work, sw::MatrixView<float> out,
                 std::pmr::memory_resource& memory) const {
        work.in = in;
        work.sums.on(memory).resize(static_cast<std::size_t>(in.rows() * dim_));
        for (std::int64_t r = 0; r < in.rows(); ++r)
            for (std::int64_t j = 0; j < dim_; ++j) {
                float sum = 0;
                for (std::int64_t f = 0; f < features_; ++f)
                    sum = std::fma(weights_[static_cast<std::size_t>(f)], in(r, f * dim_ + j), sum);
                work.sums[static_cast<std::size_t>(r * dim_ + j)] = sum;
                out(r, j) = sum > 0 ? sum : slope_ * sum;
            }
    }
    void backward(Work& work, sw::MatrixView<const float> gradient, sw::MatrixView<float> in_gradient,
                  std::pmr::memory_resource&) {
        gradient_.assign_zero(gradient_.size());
        for (std::int64_t r = 0; r < gradient.rows(); ++r)
            for (std::int64_t j = 0; j < dim_; ++j) {
                const float to_sum =
                    gradient(r, j) * (work.sums[static_cast<std::size_t>(r * dim_ + j)] > 0 ? 1 : slope_);
                for (std::int64_t f = 0; f < features_; ++f) {
                    float& of_weight = gradient_[static_cast<std::size_t>(f)];
                    of_weight = std::fma(to_sum, work.in(r, f * dim_ + j), of_weight);
                    in_gradient(r, f * dim_ + j) = to_sum * weights_[static_cast<std::size_t>(f)];
                }
            }
    }

    std::span<float> weights() { return weights_.span(); }
    std::span<float> gradient() { return gradient_.span(); }

  private:
    float slope_;
    std::int64_t features_;
    int dim_;
    sw::Buffer<float> weights_;
    sw::Buffer<float> gradient_;
};
static_assert(sw::TowerModule<Blend>);

/// Outputs of four samples, two towers side by side, after some steps on two hosts.
std::vector<float> outputs_after(int steps, int ranks_per_host) {
    const std::vector<sw::TableConfig> tables{{.name = "user", .rows = 20, .dim = 4},
                                              {.name = "item", .rows = 30, .dim = 4},
                                              {.name = "shop", .rows = 5, .dim = 4}};
    std::vector<float> all(4 * 8);
    sw::ThreadWorld world{sw::Topology{.hosts = 2, .ranks_per_host = ranks_per_host}};
    world.run([&](sw::ThreadCommunicator& comm) {
        using Layer = sw::EmbeddingLayer<sw::Sharding<sw::Table>, sw::Collective<sw::Hierarchical>, sw::Tower<Blend>>;
        sw::MemoryAccount memory;
        Layer layer{comm, tables, {.towers = {{"user", "item"}, {"shop"}}, .memory = &memory}, {}, {.slope = 0.25F}};
        sw::BasicTreeAllReduce<float, sw::OneTower> sum_over_tower{comm, layer.topology()};
        const std::int64_t mine = 4 / comm.size(), first = comm.rank() * mine;
        const auto batch_of = [&](std::int64_t rank) {
            sw::JaggedBatch<std::int64_t> batch{.samples = mine, .features = 3};
            for (const std::int64_t factor : {3, 7, 1})
                for (std::int64_t sample = rank * mine; sample < (rank + 1) * mine; ++sample)
                    batch.values.push_back(sample * factor);
            return batch;
        };
        for (int step = 0; step < steps; ++step) {
            const auto out = layer.forward(batch_of(comm.rank()));
            std::vector<float> gradient(out.data(), out.data() + mine * 8);  // of the mean of squares, halved
            for (float& g : gradient)
                g /= 4;
            layer.backward({gradient.data(), mine, 8});
            sum_over_tower(layer.module().gradient());
            for (std::size_t i = 0; i < layer.module().weights().size(); ++i)
                layer.module().weights()[i] -= 0.1F * layer.module().gradient()[i];
        }
        const auto out = layer.forward(batch_of(comm.rank()));
        std::copy_n(out.data(), mine * 8, all.data() + first * 8);

        std::vector<sw::JaggedBatch<std::int64_t>> batches;
        for (int rank = 0; rank < comm.size(); ++rank)
            batches.push_back(batch_of(rank));
        std::vector<sw::JaggedView<std::int64_t>> views;
        for (const auto& batch : batches)
            views.push_back(batch.view());
        sw::MemoryTally tally;
        static_cast<void>(layer.predict_cost(views, &tally));
        if (memory.static_bytes() != layer.predict_static_bytes(comm.rank()))
            require(false, "static bytes as predicted");
        if (steps > 0 && memory.dynamic_bytes() != tally.bytes()) require(false, "bytes of work as predicted");
    });
    return all;
}

int main() {
    require(outputs_after(0, 1) == outputs_after(0, 2), "the same bits before the first step");
    const auto one = outputs_after(20, 1), two = outputs_after(20, 2);
    float apart = 0, size = 0;
    for (std::size_t i = 0; i < one.size(); ++i) {
        apart = std::max(apart, std::fabs(one[i] - two[i]));
        size = std::max(size, std::fabs(one[i]));
    }
    require(apart < 1e-5F, "nearly the same behind twenty steps");
    float before = 0;
    for (const float value : outputs_after(0, 1))
        before = std::max(before, std::fabs(value));
    require(size < before, "it learns to say less");
}
