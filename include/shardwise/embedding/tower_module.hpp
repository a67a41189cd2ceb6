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
///   backward; `backward(work, gradient, in_gradient, memory)` overwrites the gradients of the parameters, summed over
///   the rows in their order, and writes that of `in`. There may be no rows.
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
    struct Config {};
};

/// A module's policy as values, its type forgotten.
struct ModuleTraits {
    std::shared_ptr<const void> config;
    std::int64_t digest = 0;
    int (*outputs)(const void* config, const TowerShape&) = nullptr;
    std::int64_t (*static_bytes)(const void* config, const TowerShape&) = nullptr;
    std::shared_ptr<void> (*make)(const void* config, const TowerShape&, std::uint64_t seed,
                                  MemoryAccount&) = nullptr;  ///< null: towers pass their vectors on
};

namespace detail {

template <class M>
ModuleTraits module_traits(const typename M::Config& config) {
    if constexpr (std::is_same_v<M, PassThrough>) {
        return {};
    } else {
        using Config = typename M::Config;
        Digest digest;
        config.add_to(digest.add(std::string{M::name}));
        return {.config = std::make_shared<const Config>(config),
                .digest = digest.bits16(),
                .outputs = [](const void* c,
                              const TowerShape& shape) { return M::outputs(*static_cast<const Config*>(c), shape); },
                .static_bytes =
                    [](const void* c, const TowerShape& shape) {
                        return M::static_bytes(*static_cast<const Config*>(c), shape);
                    },
                .make = [](const void* c, const TowerShape& shape, std::uint64_t seed,
                           MemoryAccount& memory) -> std::shared_ptr<void> {
                    return std::make_shared<M>(*static_cast<const Config*>(c), shape, seed, memory);
                }};
    }
}

}  // namespace detail

}  // namespace shardwise::inline SHARDWISE_ABI
