// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <unistd.h>
#include <zlib.h>

#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/data/file_descriptor.hpp"

/// \file
/// The bytes of a file, plain or gzip.

namespace shardwise::inline SHARDWISE_ABI {

/// A file open for reading from its beginning to its end, unpacked on the way when it starts with gzip's magic bytes,
/// whatever its name. A gzip file may have several members; zero bytes after the last one are padding.
///
/// Memory: 64 KiB, and zlib's window. Not thread safe.
class InputFile {
  public:
    /// \throws BadInput when the file cannot be read, or when it is named .gz and is no gzip
    explicit InputFile(std::string path) : path_{std::move(path)}, descriptor_{path_}, input_(input_bytes) {
        while (available_ < 2 && fill(0)) {
        }
        gzip_ = available_ >= 2 && input_[0] == magic[0] && input_[1] == magic[1];
        if (!gzip_ && path_.ends_with(".gz"))
            throw BadInput{concat({path_, ": named .gz, but it does not start with the bytes 1f 8b of a gzip file"})};
        if (gzip_) inflater_.start();
    }
    InputFile(const InputFile&) = delete;
    InputFile& operator=(const InputFile&) = delete;

    [[nodiscard]] const std::string& path() const noexcept { return path_; }

    /// Reads at most `size` bytes. \param line where the reader stands, for messages
    /// \returns the number of bytes; 0 at the end only \throws BadInput when reading fails or gzip data is damaged
    std::size_t read(char* to, std::size_t size, std::int64_t line) {
        if (size == 0) return 0;
        if (gzip_) return unpack(to, size, line);
        if (available_ == 0) return read_file(to, size, line);
        const std::size_t count = std::min(size, available_);
        std::memcpy(to, input_.data() + position_, count);
        position_ += count;
        available_ -= count;
        return count;
    }

  private:
    static constexpr std::size_t input_bytes = std::size_t{64} << 10;
    static constexpr unsigned char magic[2] = {0x1f, 0x8b};

    struct Inflater {
        Inflater() = default;
        Inflater(const Inflater&) = delete;
        Inflater& operator=(const Inflater&) = delete;
        ~Inflater() {
            if (started) ::inflateEnd(&stream);
        }
        void start() {
            if (::inflateInit2(&stream, 15 + 16) != Z_OK) throw Error{"zlib: out of memory", 3};
            started = true;
        }
        ::z_stream stream{};
        bool started = false;
    };

    [[noreturn]] void fail(std::int64_t line, const std::string& reason) const {
        throw BadInput{concat({path_, ", line ", line, ": ", reason})};
    }

    std::size_t read_file(void* to, std::size_t size, std::int64_t line) const {
        for (;;) {
            const ::ssize_t count = ::read(descriptor_.number(), to, size);
            if (count >= 0) return static_cast<std::size_t>(count);
            if (errno != EINTR) fail(line, std::string{"cannot be read: "} + std::strerror(errno));
        }
    }

    // Appends bytes of the file to those not used yet; false at its end.
    bool fill(std::int64_t line) {
        if (available_ == 0) position_ = 0;
        const std::size_t end = position_ + available_;
        const std::size_t count = read_file(input_.data() + end, input_.size() - end, line);
        available_ += count;
        return count != 0;
    }

    std::size_t unpack(char* to, std::size_t size, std::int64_t line) {
        size = std::min(size, std::size_t{1} << 30);
        std::size_t done = 0;
        while (done == 0) {
            if (!damage_.empty()) fail(line, damage_);
            const bool ended = available_ == 0 && !fill(line);
            if (between_members_) {
                if (ended) return 0;
                if (input_[position_] == 0) {
                    ++position_;
                    --available_;
                    continue;
                }
                if (input_[position_] != magic[0]) fail(line, "bytes that are no gzip follow the gzip data");
                ::inflateReset(&inflater_.stream);
                between_members_ = false;
            }
            auto& stream = inflater_.stream;
            stream.next_in = input_.data() + position_;
            stream.avail_in = static_cast<uInt>(available_);
            stream.next_out = reinterpret_cast<Bytef*>(to);
            stream.avail_out = static_cast<uInt>(size);
            const int code = ::inflate(&stream, Z_NO_FLUSH);
            if (code == Z_BUF_ERROR && ended)  // only now: zlib may have had bytes left for which there was no room
                damage_ = "the gzip data ends too early: the file is truncated";
            else if (code != Z_OK && code != Z_STREAM_END)
                damage_ = std::string{"the gzip data is damaged: "} + (stream.msg != nullptr ? stream.msg : "zlib");
            position_ += available_ - stream.avail_in;
            available_ = stream.avail_in;
            done = size - stream.avail_out;
            between_members_ = code == Z_STREAM_END;
        }
        return done;
    }

    std::string path_;
    FileDescriptor descriptor_;
    Inflater inflater_;
    std::vector<unsigned char> input_;
    std::size_t position_ = 0;   // of the bytes in input_ that are not used yet
    std::size_t available_ = 0;  // their number
    std::string damage_;         // what is wrong behind the bytes unpacked so far
    bool gzip_ = false;
    bool between_members_ = false;
};

}  // namespace shardwise::inline SHARDWISE_ABI
