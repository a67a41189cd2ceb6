// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory_resource>

#include "shardwise/core/buffer.hpp"
#include "shardwise/core/digest.hpp"
#include "shardwise/core/matrix.hpp"
#include "shardwise/embedding/lanes/tower_module.hpp"
#include "shardwise/plan/memory.hpp"

/// \file
/// A tower's module of plain loops: its bits do not depend on how many rows a relay has.

namespace laws {

namespace sw = shardwise;

/// out = W in, with W (1 + width / 2, width).
class Mix {
  public:
    static constexpr const char* name = "mix";
    struct Config {
        std::int64_t salt = 3;
        void add_to(sw::Digest& digest) const { digest.add(salt); }
    };
    struct Work {
        sw::Buffer<float> in;
        std::int64_t rows = 0;
    };

    Mix(const Config& config, const sw::TowerShape& shape, std::uint64_t seed, sw::MemoryAccount& memory)
        : inputs_{shape.width()},
          outputs_{outputs(config, shape)},
          weights_{memory.tables(), size()},
          gradient_{memory.tables(), size()} {
        for (std::int64_t i = 0; i < inputs_ * outputs_; ++i)
            weights_[static_cast<std::size_t>(i)] = initial(config.salt, shape.tower, seed, i);
    }
    /// The i-th weight.
    static float initial(std::int64_t salt, int tower, std::uint64_t seed, std::int64_t i) {
        const auto mixed = static_cast<std::uint64_t>(i * 7919 + tower * 31 + salt) + seed;
        return static_cast<float>(static_cast<std::int64_t>(mixed % 23) - 11) / 16.0F;
    }

    static int outputs(const Config&, const sw::TowerShape& shape) { return 1 + shape.width() / 2; }
    static std::int64_t static_bytes(const Config& config, const sw::TowerShape& shape) {
        const auto bytes = static_cast<std::size_t>(shape.width() * outputs(config, shape)) * sizeof(float);
        return static_cast<std::int64_t>(2 * sw::buffer_capacity(bytes));
    }
    static void work_bytes(const Config&, const sw::TowerShape& shape, std::int64_t rows, sw::MemoryTally& tally) {
        tally.need(4 * rows * shape.width());
    }

    [[nodiscard]] sw::Buffer<float>& weights() { return weights_; }
    [[nodiscard]] sw::Buffer<float>& gradient() { return gradient_; }

    void forward(sw::MatrixView<const float> in, Work& work, sw::MatrixView<float> out,
                 std::pmr::memory_resource& memory) const {
        work.rows = in.rows();
        work.in.on(memory).resize(static_cast<std::size_t>(in.rows() * inputs_));
        for (std::int64_t r = 0; r < in.rows(); ++r) {
            for (std::int64_t i = 0; i < inputs_; ++i)
                work.in[static_cast<std::size_t>(r * inputs_ + i)] = in(r, i);
            for (std::int64_t o = 0; o < outputs_; ++o) {
                float sum = 0.0F;
                for (std::int64_t i = 0; i < inputs_; ++i)
                    sum = std::fma(weight(o, i), in(r, i), sum);
                out(r, o) = sum;
            }
        }
    }
    void backward(Work& work, sw::MatrixView<const float> gradient, sw::MatrixView<float> through,
                  std::pmr::memory_resource&) {
        gradient_.assign_zero(size());
        for (std::int64_t r = 0; r < work.rows; ++r) {
            for (std::int64_t i = 0; i < inputs_; ++i) {
                float sum = 0.0F;
                for (std::int64_t o = 0; o < outputs_; ++o)
                    sum = std::fma(weight(o, i), gradient(r, o), sum);
                through(r, i) = sum;
            }
            for (std::int64_t o = 0; o < outputs_; ++o)
                for (std::int64_t i = 0; i < inputs_; ++i) {
                    float& term = gradient_[static_cast<std::size_t>(o * inputs_ + i)];
                    term = std::fma(gradient(r, o), work.in[static_cast<std::size_t>(r * inputs_ + i)], term);
                }
        }
    }

  private:
    [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(inputs_ * outputs_); }
    [[nodiscard]] float weight(std::int64_t o, std::int64_t i) const {
        return weights_[static_cast<std::size_t>(o * inputs_ + i)];
    }

    std::int64_t inputs_;
    std::int64_t outputs_;
    sw::Buffer<float> weights_;
    sw::Buffer<float> gradient_;
};

}  // namespace laws
