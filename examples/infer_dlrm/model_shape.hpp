// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shardwise/sharding/placement.hpp"

/// \file
/// The shapes of a DLRM.

namespace infer_dlrm {

struct ModelShape {
    std::vector<shardwise::TableConfig> tables;
    std::int64_t dense = 0;            ///< dense features
    std::vector<std::int64_t> bottom;  ///< outputs of each layer; the last is the tables' dimension; none without dense
    std::vector<std::int64_t> top;     ///< the last is 1

    [[nodiscard]] int dim() const { return tables.front().dim; }
    /// Embeddings a sample.
    [[nodiscard]] std::int64_t features() const;
    [[nodiscard]] std::vector<std::int64_t> rows() const;
};

/// The shapes of the DLRM in a checkpoint that train_dlrm has written.
/// \param tables  it is to have; the file says their rows and dimension \param whose  they are, for messages
/// \throws BadInput where it is none, or of another model
[[nodiscard]] ModelShape shape_in(const std::string& path, std::vector<shardwise::TableConfig> tables,
                                  std::int64_t dense, const std::string& whose);

}  // namespace infer_dlrm
