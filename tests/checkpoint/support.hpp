// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <system_error>

#include <unistd.h>

namespace checkpoint_test {

/// Where a name of this process lies: in memory where there is such a folder, since what is written is awaited (fsync).
inline std::string temporary(const std::string& name) {
    const std::string own = "shardwise_" + std::to_string(::getpid()) + "_" + name;
    return ::access("/dev/shm", W_OK) == 0 ? "/dev/shm/" + own : own;
}

/// A file of this process that goes away with its object.
class TemporaryFile {
  public:
    explicit TemporaryFile(const std::string& name) : path_{temporary(name)} {}
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

/// A folder of this process that goes away with its object.
class TemporaryFolder {
  public:
    explicit TemporaryFolder(const std::string& name) : path_{temporary(name)} { std::filesystem::remove_all(path_); }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    ~TemporaryFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    [[nodiscard]] const std::string& path() const { return path_; }
    /// (path in the folder): bytes, of all files.
    [[nodiscard]] std::map<std::string, std::string> read() const {
        std::map<std::string, std::string> files;
        for (const auto& entry : std::filesystem::recursive_directory_iterator{path_}) {
            if (!entry.is_regular_file()) continue;
            std::ifstream file{entry.path(), std::ios::binary};
            files[std::filesystem::relative(entry.path(), path_).string()] = {std::istreambuf_iterator<char>{file}, {}};
        }
        return files;
    }
    void write(const std::string& file, const std::string& bytes) const {
        std::ofstream{path_ + "/" + file, std::ios::binary} << bytes;
    }

  private:
    std::string path_;
};

}  // namespace checkpoint_test
