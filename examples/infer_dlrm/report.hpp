// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "pipeline.hpp"

/// \file
/// What the runs of all ranks took.

namespace infer_dlrm {

/// A mean, and how far from it the interval reaches that has it with 95 % (Student's t).
struct Mean {
    double mean = 0;
    double interval = 0;
};
[[nodiscard]] Mean mean_of(const std::vector<double>& values);

/// Gathers the runs of all ranks. Collective. \returns on rank 0 the report, null on others
[[nodiscard]] nlohmann::json make_report(const Options& options, sw::CommunicatorRef comm, const Pipeline& pipeline,
                                         const std::vector<Run>& runs);
/// As tables on standard output.
void print(const nlohmann::json& report);
/// The predictions of all ranks. Collective. \throws BadInput where the file cannot be written
void write_predictions(const Options& options, sw::CommunicatorRef comm, const Pipeline& pipeline,
                       const Samples& samples);
/// The plan, what the first batch moves, and what slots take.
void explain(const Options& options, const Pipeline& pipeline, const Samples& samples);

}  // namespace infer_dlrm
