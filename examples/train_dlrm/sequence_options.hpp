// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json_fwd.hpp>

#include "options.hpp"

/// \file
/// The options that only train_sequence has.

namespace train_dlrm {

/// Makes `options` those of a sequence model, before the command line says otherwise.
void set_sequence_defaults(Options& options);

/// Adds the groups "Data" and "Model" of train_sequence; what they name lives in `options`.
void add_sequence_data(CLI::App& app, Options& options);
void add_sequence_model(CLI::App& app, SequenceOptions& options);

/// Checks what the command line says of sequences, and reads or makes their histories. \throws BadInput
void read_sequences(const CLI::App& app, Options& options);

/// As they are written into a report. \param generated  whether the histories are
[[nodiscard]] nlohmann::json to_json(const SequenceOptions& options, bool generated);

}  // namespace train_dlrm
