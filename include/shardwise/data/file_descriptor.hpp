// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"

/// \file
/// A file open for reading.

namespace shardwise::inline SHARDWISE_ABI {

/// Checks that a file exists, is no directory and may be read, without opening it. \throws BadInput naming it and why
inline void require_readable(const std::string& path) {
    struct stat about {};
    if (::stat(path.c_str(), &about) != 0 || ::access(path.c_str(), R_OK) != 0)
        throw BadInput{concat({path, ": cannot be read: ", std::strerror(errno)})};
    if (S_ISDIR(about.st_mode)) throw BadInput{concat({path, ": cannot be read: it is a directory"})};
}

/// A file open for reading, closed at the end.
class FileDescriptor {
  public:
    /// \throws BadInput as require_readable()
    explicit FileDescriptor(const std::string& path) {
        require_readable(path);
        number_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
        if (number_ < 0) throw BadInput{concat({path, ": cannot be read: ", std::strerror(errno)})};
    }
    FileDescriptor(const FileDescriptor&) = delete;
    FileDescriptor& operator=(const FileDescriptor&) = delete;
    ~FileDescriptor() { ::close(number_); }

    [[nodiscard]] int number() const noexcept { return number_; }

  private:
    int number_ = -1;
};

}  // namespace shardwise::inline SHARDWISE_ABI
