// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"

/// \file
/// Files that are on the disk, or are not there at all, whenever a machine stops.

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

[[noreturn]] inline void cannot_write(const std::string& path) {
    throw BadInput{concat({path, ": cannot be written", (errno == 0 ? "" : std::string{": "} + std::strerror(errno))})};
}

}  // namespace detail

/// Waits until the names in a folder are on the disk. \param named  in errors \throws BadInput
inline void sync_folder(const std::string& folder, const std::string& named) {
    const int number = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (number < 0) detail::cannot_write(named);
    const bool good = ::fsync(number) == 0 || errno == EINVAL;  // a file system without
    const int error = errno;
    ::close(number);
    errno = error;
    if (!good) detail::cannot_write(named);
}

/// The folder of a file; empty for the current one.
[[nodiscard]] inline std::string folder_of(const std::string& path) {
    const std::size_t slash = path.find_last_of('/');
    return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

/// Gives a complete file its name, in one step, in place of an older one. \throws BadInput naming `to`
inline void put_in_place(const std::string& from, const std::string& to) {
    if (std::rename(from.c_str(), to.c_str()) != 0) detail::cannot_write(to);
    sync_folder(folder_of(to), to);
}

/// A file that is written from its beginning to its end. It is removed again unless `complete()` returned.
class DurableFile {
  public:
    /// Makes the file, or empties it. \throws BadInput naming it and why
    explicit DurableFile(std::string path) : path_{std::move(path)} {
        number_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        if (number_ < 0) detail::cannot_write(path_);
    }
    DurableFile(const DurableFile&) = delete;
    DurableFile& operator=(const DurableFile&) = delete;
    ~DurableFile() {
        if (number_ >= 0) ::close(number_);
        if (!complete_) ::unlink(path_.c_str());
    }

    [[nodiscard]] const std::string& path() const noexcept { return path_; }
    [[nodiscard]] std::int64_t written() const noexcept { return written_; }

    /// Appends. \throws BadInput naming the file and why, for example a full disk
    void write(std::span<const std::byte> bytes) {
        while (!bytes.empty()) {
            const ::ssize_t done = ::write(number_, bytes.data(), bytes.size());
            if (done < 0 && errno == EINTR) continue;
            if (done <= 0) {
                if (done == 0) errno = ENOSPC;
                detail::cannot_write(path_);
            }
            bytes = bytes.subspan(static_cast<std::size_t>(done));
            written_ += done;
        }
    }
    /// Waits until all of it is on the disk. \throws BadInput naming the file and why
    void complete() {
        if (::fsync(number_) != 0 && errno != EINVAL) detail::cannot_write(path_);
        if (::close(std::exchange(number_, -1)) != 0) detail::cannot_write(path_);
        complete_ = true;
    }

    /// The same, and gives it the name `to`, in place of an older file. \throws BadInput naming the file and why
    void complete_as(const std::string& to) {
        complete();
        complete_ = false;  // until it has its name
        put_in_place(path_, to);
        complete_ = true;
    }

  private:
    std::string path_;
    int number_ = -1;
    std::int64_t written_ = 0;
    bool complete_ = false;
};

}  // namespace shardwise::inline SHARDWISE_ABI
