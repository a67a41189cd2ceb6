// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include <unistd.h>

namespace checkpoint_test {

/// A file of this process that goes away with its object.
class TemporaryFile {
  public:
    explicit TemporaryFile(const std::string& name) : path_{"shardwise_" + std::to_string(::getpid()) + "_" + name} {}
    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;
    ~TemporaryFile() { std::remove(path_.c_str()); }
    [[nodiscard]] const std::string& path() const { return path_; }
    [[nodiscard]] std::string read() const {
        std::ifstream file{path_, std::ios::binary};
        return {std::istreambuf_iterator<char>{file}, {}};
    }
    void write(const std::string& bytes) const {
        std::ofstream file{path_, std::ios::binary};
        file << bytes;
    }

  private:
    std::string path_;
};

}  // namespace checkpoint_test
