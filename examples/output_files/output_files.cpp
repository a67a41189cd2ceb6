// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "output_files.hpp"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

#include <unistd.h>

#include "shardwise/core/error.hpp"

namespace output_files {

void check_writable(const std::string& path, bool replaced) {
    namespace fs = std::filesystem;
    std::error_code ignored;
    const fs::path folder = fs::path{path}.parent_path();
    const bool may_make = access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) == 0;
    const bool there = access(path.c_str(), F_OK) == 0;
    const bool may_write = there ? access(path.c_str(), W_OK) == 0 : errno == ENOENT && may_make;
    if (!may_write || fs::is_directory(path, ignored) || (replaced && !may_make))
        throw shardwise::BadInput{path + ": cannot be written"};
    if (replaced && there && !fs::is_regular_file(path, ignored))
        throw shardwise::BadInput{path + ": cannot be replaced, it is no regular file"};
}

void write_text(const std::string& path, const std::string& text) {
    std::ofstream file{path};
    file << text;
    if (!file.flush()) throw shardwise::BadInput{path + ": cannot be written"};
}

}  // namespace output_files
