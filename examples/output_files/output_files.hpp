// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

/// \file
/// Files that the example programs write.

namespace output_files {

/// Asks, before the work begins, whether `path` can be written when it ends, and makes no file. All ranks of a job ask
/// at once.
/// \param replaced  the file is written beside an older one, which it then replaces
/// \throws shardwise::BadInput when it cannot
void check_writable(const std::string& path, bool replaced);

/// \throws shardwise::BadInput when the file cannot be written
void write_text(const std::string& path, const std::string& text);

}  // namespace output_files
