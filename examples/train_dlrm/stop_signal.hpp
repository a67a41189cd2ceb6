// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// SIGINT and SIGTERM: a run ends behind a step, with what it has learnt.

namespace train_dlrm {

/// From here to the end of the program the first SIGINT or SIGTERM is noted, and the second ends the program at once.
void catch_stop_signals();
/// The signal that came; 0: none.
[[nodiscard]] int stop_signal() noexcept;
/// "SIGINT" or "SIGTERM"
[[nodiscard]] const char* signal_name(int signal) noexcept;

}  // namespace train_dlrm
