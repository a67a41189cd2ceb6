// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <numeric>
#include <string>
#include <type_traits>
#include <vector>

#include "shardwise/core/buffer.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/digest.hpp"
#include "shardwise/core/matrix.hpp"
#include "shardwise/plan/memory.hpp"

/// \file
/// What a tower does with its features' vectors before they travel home (Disaggregated Multi-Tower, section 3.2).

namespace shardwise::inline SHARDWISE_ABI {

/// The features of one tower.
struct TowerShape {
    int tower = 0;          ///< its number
    std::vector<int> dims;  ///< (feature of the tower, in the layer's order): elements of its vector

    /// Columns of a tower's vectors, side by side.
    [[nodiscard]] int width() const { return std::accumulate(dims.begin(), dims.end(), 0); }
};

/// A module: what is trained in each tower, on the vectors of all samples that a rank of the tower relays.
/// - `name`, in lower case;
/// - `Config`: run-time constants, the same on all ranks; `add_to(Digest&)` adds them to what ranks have to agree on;
/// - `outputs(config, shape)`: columns of a tower's result. \throws BadInput for a config that does not fit
/// - a constructor from (config, shape, seed, MemoryAccount&): parameters are a function of the first three and lie in
///   the account's `tables()`; `static_bytes(config, shape)`: how many bytes they take there, gradients included;
/// - `Work`: what a batch leaves from forward to backward, a default-constructed one for each batch under way, its
///   buffers on the memory that forward and backward are given; `work_bytes(config, shape, rows, tally)`: one
///   `tally.need(bytes)` for each of them, in a fixed order;
/// - `forward(in, work, out, memory)`, with `in` (rows, width) and `out` (rows, outputs) contiguous, `in` as it is
/// until
///   backward;
/// - `backward(work, gradient, in_gradient, memory)`: overwrites the gradients of the parameters, summed over the rows
/// in
///   their order, and writes that of `in`.
/// There may be no rows.
template <class M>
concept TowerModule =
    std::constructible_from<M, const typename M::Config&, const TowerShape&, std::uint64_t, MemoryAccount&> &&
    std::default_initializable<typename M::Work> &&
    requires(M& tower, const typename M::Config& config, const TowerShape& shape, std::int64_t rows,
             typename M::Work& work, MatrixView<const float> in, MatrixView<float> out,
             std::pmr::memory_resource& memory, Digest& digest, MemoryTally& tally) {
    { M::name } -> std::convertible_to<std::string>;
    { M::outputs(config, shape) } -> std::same_as<int>;
    { M::static_bytes(config, shape) } -> std::same_as<std::int64_t>;
    M::work_bytes(config, shape, rows, tally);
    tower.forward(in, work, out, memory);
    tower.backward(work, in, out, memory);
    config.add_to(digest);
};

/// No module: towers pass their features' vectors on as they are.
struct PassThrough {
    static constexpr const char* name = "pass";
    /// There is nothing to choose.
    struct Config {};
};

/// What a batch leaves from a module's forward to its backward pass, its type forgotten.
class ModuleWork {
  public:
    virtual ~ModuleWork() = default;
};

/// A tower's module, its type forgotten.
class AnyTowerModule {
  public:
    virtual ~AnyTowerModule() = default;
    [[nodiscard]] virtual std::unique_ptr<ModuleWork> make_work() const = 0;
    virtual void forward(MatrixView<const float> in, ModuleWork& work, MatrixView<float> out,
                         std::pmr::memory_resource& memory) = 0;
    virtual void backward(ModuleWork& work, MatrixView<const float> gradient, MatrixView<float> in_gradient,
                          std::pmr::memory_resource& memory) = 0;
};

/// A TowerModule with its constants, its type forgotten.
class ModulePolicy {
  public:
    virtual ~ModulePolicy() = default;
    [[nodiscard]] virtual std::string name() const = 0;
    [[nodiscard]] virtual std::int64_t digest() const = 0;
    [[nodiscard]] virtual int outputs(const TowerShape& shape) const = 0;
    [[nodiscard]] virtual std::int64_t static_bytes(const TowerShape& shape) const = 0;
    virtual void work_bytes(const TowerShape& shape, std::int64_t rows, MemoryTally& tally) const = 0;
    [[nodiscard]] virtual std::unique_ptr<AnyTowerModule> make(const TowerShape& shape, std::uint64_t seed,
                                                               MemoryAccount& memory) const = 0;
};

namespace detail {

template <TowerModule M>
struct ModuleWorkOf final : ModuleWork {
    typename M::Work work;
};
template <TowerModule M>
class TowerModuleOf final : public AnyTowerModule {
  public:
    TowerModuleOf(const typename M::Config& config, const TowerShape& shape, std::uint64_t seed, MemoryAccount& memory)
        : held{config, shape, seed, memory} {}
    [[nodiscard]] std::unique_ptr<ModuleWork> make_work() const override { return std::make_unique<ModuleWorkOf<M>>(); }
    void forward(MatrixView<const float> in, ModuleWork& work, MatrixView<float> out,
                 std::pmr::memory_resource& memory) override {
        held.forward(in, static_cast<ModuleWorkOf<M>&>(work).work, out, memory);
    }
    void backward(ModuleWork& work, MatrixView<const float> gradient, MatrixView<float> in_gradient,
                  std::pmr::memory_resource& memory) override {
        held.backward(static_cast<ModuleWorkOf<M>&>(work).work, gradient, in_gradient, memory);
    }

    M held;
};
template <TowerModule M>
class ModulePolicyOf final : public ModulePolicy {
  public:
    explicit ModulePolicyOf(const typename M::Config& config) : config_{config} {}
    [[nodiscard]] const typename M::Config& config() const noexcept { return config_; }
    [[nodiscard]] std::string name() const override { return M::name; }
    [[nodiscard]] std::int64_t digest() const override {
        Digest digest;
        config_.add_to(digest.add(std::string{M::name}));
        return digest.bits16();
    }
    [[nodiscard]] int outputs(const TowerShape& shape) const override { return M::outputs(config_, shape); }
    [[nodiscard]] std::int64_t static_bytes(const TowerShape& shape) const override {
        return M::static_bytes(config_, shape);
    }
    void work_bytes(const TowerShape& shape, std::int64_t rows, MemoryTally& tally) const override {
        M::work_bytes(config_, shape, rows, tally);
    }
    [[nodiscard]] std::unique_ptr<AnyTowerModule> make(const TowerShape& shape, std::uint64_t seed,
                                                       MemoryAccount& memory) const override {
        return std::make_unique<TowerModuleOf<M>>(config_, shape, seed, memory);
    }

  private:
    typename M::Config config_;
};

}  // namespace detail

/// The module M with these constants; none for PassThrough.
template <class M>
[[nodiscard]] std::shared_ptr<const ModulePolicy> module_policy(const typename M::Config& config) {
    if constexpr (std::is_same_v<M, PassThrough>) {
        return nullptr;
    } else {
        return std::make_shared<const detail::ModulePolicyOf<M>>(config);
    }
}

}  // namespace shardwise::inline SHARDWISE_ABI
