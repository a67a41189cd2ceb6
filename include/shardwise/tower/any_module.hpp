// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <memory_resource>
#include <utility>
#include <variant>

#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/digest.hpp"
#include "shardwise/core/matrix.hpp"
#include "shardwise/dense/parameter.hpp"
#include "shardwise/embedding/lanes/tower_module.hpp"
#include "shardwise/plan/memory.hpp"
#include "shardwise/tower/cross.hpp"
#include "shardwise/tower/dot.hpp"

/// \file
/// A tower's module that is chosen at run time.

namespace shardwise::inline SHARDWISE_ABI {

/// Dot or Cross, by its Config: one TowerModule for both, so that a program which picks among them at run time compiles
/// each composition of `Tower<AnyModule>` once. Computes what the chosen module does, bit for bit; nothing is
/// collective. Members are those of TowerModule, of Dot and of Cross.
class AnyModule {
  public:
    static constexpr const char* name = "module";

    /// Which module, and its constants.
    struct Config {
        std::variant<Dot::Config, Cross::Config> of;

        void add_to(Digest& digest) const {
            digest.add(static_cast<std::int64_t>(of.index()));
            std::visit([&](const auto& config) { config.add_to(digest); }, of);
        }
    };

  private:
    template <class M>
    struct Type {
        using type = M;
    };
    /// Calls use(Type<module>{}, its config).
    template <class Use>
    static auto with(const Config& config, Use use) {
        if (const auto* dot = std::get_if<Dot::Config>(&config.of)) return use(Type<Dot>{}, *dot);
        return use(Type<Cross>{}, std::get<Cross::Config>(config.of));
    }

  public:
    /// That of the chosen module is used.
    struct Work {
        Dot::Work dot;
        Cross::Work cross;
    };

    AnyModule(const Config& config, const TowerShape& shape, std::uint64_t seed, MemoryAccount& memory)
        : module_{make(config, shape, seed, memory)} {}

    /// Values and gradients of the chosen module.
    [[nodiscard]] ParameterSet& parameters() noexcept {
        return std::visit([](auto& module) -> ParameterSet& { return module.parameters(); }, module_);
    }

    /// Columns of the result. \throws BadInput for a config that does not fit
    static int outputs(const Config& config, const TowerShape& shape) {
        return with(config, [&](auto type, const auto& c) { return decltype(type)::type::outputs(c, shape); });
    }
    static std::int64_t static_bytes(const Config& config, const TowerShape& shape) {
        return with(config, [&](auto type, const auto& c) { return decltype(type)::type::static_bytes(c, shape); });
    }
    /// Weights and biases of a tower.
    static std::int64_t parameter_count(const Config& config, const TowerShape& shape) {
        return with(config, [&](auto type, const auto& c) { return decltype(type)::type::parameter_count(c, shape); });
    }
    /// Of parameters().values(): what the ranks of a tower add up.
    static std::int64_t span_elements(const Config& config, const TowerShape& shape) {
        return with(config, [&](auto type, const auto& c) { return decltype(type)::type::span_elements(c, shape); });
    }
    /// Of forward and backward together, a sample.
    static std::int64_t flops(const Config& config, const TowerShape& shape) {
        return with(config, [&](auto type, const auto& c) { return decltype(type)::type::flops(c, shape); });
    }
    static void work_bytes(const Config& config, const TowerShape& shape, std::int64_t rows, MemoryTally& tally) {
        with(config, [&](auto type, const auto& c) { decltype(type)::type::work_bytes(c, shape, rows, tally); });
    }

    void forward(MatrixView<const float> in, Work& work, MatrixView<float> out, std::pmr::memory_resource& memory) {
        std::visit([&](auto& module) { module.forward(in, of(work, module), out, memory); }, module_);
    }
    void backward(Work& work, MatrixView<const float> gradient, MatrixView<float> in_gradient,
                  std::pmr::memory_resource& memory) {
        std::visit([&](auto& module) { module.backward(of(work, module), gradient, in_gradient, memory); }, module_);
    }

  private:
    using Module = std::variant<Dot, Cross>;
    static Module make(const Config& config, const TowerShape& shape, std::uint64_t seed, MemoryAccount& memory) {
        return with(config, [&](auto type, const auto& c) {
            return Module{std::in_place_type<typename decltype(type)::type>, c, shape, seed, memory};
        });
    }
    static Dot::Work& of(Work& work, const Dot&) { return work.dot; }
    static Cross::Work& of(Work& work, const Cross&) { return work.cross; }

    Module module_;
};

}  // namespace shardwise::inline SHARDWISE_ABI
