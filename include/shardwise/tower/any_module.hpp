// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <memory_resource>
#include <utility>
#include <variant>

#include "shardwise/core/buffer.hpp"
#include "shardwise/core/digest.hpp"
#include "shardwise/core/matrix.hpp"
#include "shardwise/dense/parameter.hpp"
#include "shardwise/embedding/tower_module.hpp"
#include "shardwise/plan/memory.hpp"
#include "shardwise/tower/cross.hpp"
#include "shardwise/tower/dot.hpp"

/// \file
/// A tower's module that is chosen at run time.

namespace train_dlrm {

namespace sw = shardwise;

/// Dot or Cross, by its Config: one TowerModule for both, so that the compositions with modules are compiled once.
class AnyModule {
  public:
    static constexpr const char* name = "module";

    struct Config {
        std::variant<sw::Dot::Config, sw::Cross::Config> of;

        void add_to(sw::Digest& digest) const {
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
        if (const auto* dot = std::get_if<sw::Dot::Config>(&config.of)) return use(Type<sw::Dot>{}, *dot);
        return use(Type<sw::Cross>{}, std::get<sw::Cross::Config>(config.of));
    }

  public:
    struct Work {
        sw::Dot::Work dot;
        sw::Cross::Work cross;
    };

    AnyModule(const Config& config, const sw::TowerShape& shape, std::uint64_t seed, sw::MemoryAccount& memory)
        : module_{make(config, shape, seed, memory)} {}

    [[nodiscard]] sw::ParameterSet& parameters() noexcept {
        return std::visit([](auto& module) -> sw::ParameterSet& { return module.parameters(); }, module_);
    }

    static int outputs(const Config& config, const sw::TowerShape& shape) {
        return with(config, [&](auto type, const auto& c) { return decltype(type)::type::outputs(c, shape); });
    }
    static std::int64_t static_bytes(const Config& config, const sw::TowerShape& shape) {
        return with(config, [&](auto type, const auto& c) { return decltype(type)::type::static_bytes(c, shape); });
    }
    static std::int64_t parameter_count(const Config& config, const sw::TowerShape& shape) {
        return with(config, [&](auto type, const auto& c) { return decltype(type)::type::parameter_count(c, shape); });
    }
    /// Of the spans that the ranks of a tower add up.
    static std::int64_t span_elements(const Config& config, const sw::TowerShape& shape) {
        return with(config, [&](auto type, const auto& c) { return decltype(type)::type::span_elements(c, shape); });
    }
    static std::int64_t flops(const Config& config, const sw::TowerShape& shape) {
        return with(config, [&](auto type, const auto& c) { return decltype(type)::type::flops(c, shape); });
    }
    static void work_bytes(const Config& config, const sw::TowerShape& shape, std::int64_t rows,
                           sw::MemoryTally& tally) {
        with(config, [&](auto type, const auto& c) { decltype(type)::type::work_bytes(c, shape, rows, tally); });
    }

    void forward(sw::MatrixView<const float> in, Work& work, sw::MatrixView<float> out,
                 std::pmr::memory_resource& memory) {
        std::visit([&](auto& module) { module.forward(in, of(work, module), out, memory); }, module_);
    }
    void backward(Work& work, sw::MatrixView<const float> gradient, sw::MatrixView<float> in_gradient,
                  std::pmr::memory_resource& memory) {
        std::visit([&](auto& module) { module.backward(of(work, module), gradient, in_gradient, memory); }, module_);
    }

  private:
    using Module = std::variant<sw::Dot, sw::Cross>;
    static Module make(const Config& config, const sw::TowerShape& shape, std::uint64_t seed,
                       sw::MemoryAccount& memory) {
        return with(config, [&](auto type, const auto& c) {
            return Module{std::in_place_type<typename decltype(type)::type>, c, shape, seed, memory};
        });
    }
    static sw::Dot::Work& of(Work& work, const sw::Dot&) { return work.dot; }
    static sw::Cross::Work& of(Work& work, const sw::Cross&) { return work.cross; }

    Module module_;
};

}  // namespace train_dlrm
