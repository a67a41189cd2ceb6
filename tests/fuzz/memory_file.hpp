// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fuzz/fuzz.hpp"

/// \file
/// Files without the kernel, for InputFile: this program's own stat, access, open, read and close know the paths
/// "memory:0" to "memory:9", and hand all others on. A system call takes microseconds; and a read may be interrupted,
/// or give fewer bytes than asked for, as the input says. Include in one source file of a program.

namespace fuzz {

/// What a path stands for.
struct MemoryFile {
    static constexpr std::string_view prefix = "memory:";
    static constexpr int first_descriptor = 1 << 20;

    std::string_view content;
    std::size_t most = 4096;   ///< bytes that one read gives
    bool interrupted = false;  ///< every other read
    std::size_t position = 0;
    std::size_t reads = 0;
    bool open = false;

    static std::string path(int number) { return std::string{prefix} + std::to_string(number); }
};

inline MemoryFile memory_files[10];

inline MemoryFile* memory_file(const char* path) {
    const std::string_view name{path};
    return name.starts_with(MemoryFile::prefix) ? &memory_files[name.back() - '0'] : nullptr;
}
inline MemoryFile* memory_file(int descriptor) {
    return descriptor >= MemoryFile::first_descriptor ? &memory_files[descriptor - MemoryFile::first_descriptor]
                                                      : nullptr;
}

}  // namespace fuzz

extern "C" {

int stat(const char* path, struct ::stat* about) noexcept {
    if (fuzz::memory_file(path) == nullptr)
        return static_cast<int>(::syscall(SYS_newfstatat, AT_FDCWD, path, about, 0));
    std::memset(about, 0, sizeof *about);
    about->st_mode = S_IFREG | 0600;
    return 0;
}

int access(const char* path, int mode) noexcept {
    return fuzz::memory_file(path) != nullptr ? 0 : static_cast<int>(::syscall(SYS_access, path, mode));
}

int open(const char* path, int flags, ...) {
    fuzz::MemoryFile* file = fuzz::memory_file(path);
    if (file == nullptr) {
        va_list more;
        va_start(more, flags);
        const int mode = (flags & O_CREAT) != 0 ? va_arg(more, int) : 0;
        va_end(more);
        return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, mode));
    }
    fuzz::require(!file->open, "two readers of one file");
    file->open = true;
    file->position = file->reads = 0;
    return fuzz::MemoryFile::first_descriptor + static_cast<int>(file - fuzz::memory_files);
}

ssize_t read(int descriptor, void* to, std::size_t size) {
    fuzz::MemoryFile* file = fuzz::memory_file(descriptor);
    if (file == nullptr) return ::syscall(SYS_read, descriptor, to, size);
    fuzz::require(file->open, "a read of a file that is not open");
    if (file->interrupted && file->reads++ % 2 == 0) {
        errno = EINTR;
        return -1;
    }
    const std::size_t count = std::min({size, file->most, file->content.size() - file->position});
    if (count != 0) std::memcpy(to, file->content.data() + file->position, count);
    file->position += count;
    return static_cast<ssize_t>(count);
}

int close(int descriptor) {
    fuzz::MemoryFile* file = fuzz::memory_file(descriptor);
    if (file == nullptr) return static_cast<int>(::syscall(SYS_close, descriptor));
    fuzz::require(file->open, "a file is closed that is not open");
    file->open = false;
    return 0;
}
}
