// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <string_view>

#include <sys/mman.h>
#include <unistd.h>

#include "fuzz/fuzz.hpp"

/// \file
/// Files for readers that open them by name.

namespace fuzz {

/// A file in memory, for readers that open one by its name.
class KernelFile {
  public:
    KernelFile() : descriptor_{::memfd_create("fuzz", MFD_CLOEXEC)} {
        require(descriptor_ >= 0, "no file in memory");
        path_ = "/proc/self/fd/" + std::to_string(descriptor_);
    }
    KernelFile(const KernelFile&) = delete;
    KernelFile& operator=(const KernelFile&) = delete;
    ~KernelFile() { ::close(descriptor_); }

    [[nodiscard]] const std::string& path() const { return path_; }
    void write(std::string_view bytes) {
        if (bytes.size() != size_)
            require(::ftruncate(descriptor_, static_cast<off_t>(bytes.size())) == 0, "no memory");
        size_ = bytes.size();
        require(::pwrite(descriptor_, bytes.data(), size_, 0) == static_cast<ssize_t>(size_), "no memory");
    }

  private:
    int descriptor_;
    std::size_t size_ = 0;
    std::string path_;
};

}  // namespace fuzz
