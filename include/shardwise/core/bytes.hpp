// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "shardwise/core/config.hpp"

/// \file
/// Writing and reading trivially copyable values into and out of messages.

namespace shardwise::inline SHARDWISE_ABI {

/// Parts of a message start at multiples of this many bytes; the gaps are zeros, and count as control.
inline constexpr std::int64_t part_alignment = 8;
/// The bytes of a part with the gap behind it.
[[nodiscard]] constexpr std::int64_t padded_part(std::int64_t bytes) noexcept {
    return (bytes + part_alignment - 1) / part_alignment * part_alignment;
}

/// Appends values to a region that the caller sized before.
class ByteWriter {
  public:
    explicit ByteWriter(std::byte* position) : position_{position} {}
    template <class T>
    void put(const T& value) {
        std::memcpy(position_, &value, sizeof(T));
        position_ += sizeof(T);
    }
    template <class T>
    void put(const T* values, std::int64_t count) {
        const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T);
        if (bytes != 0) std::memcpy(position_, values, bytes);
        position_ += bytes;
    }
    /// Room for `bytes` bytes that the caller fills.
    std::byte* skip(std::size_t bytes) {
        std::byte* here = position_;
        position_ += bytes;
        return here;
    }
    /// Fills up the part that began at `begin` with zeros.
    void pad(const std::byte* begin) {
        for (std::int64_t bytes = position_ - begin; bytes < padded_part(bytes); ++bytes)
            *position_++ = std::byte{0};
    }
    [[nodiscard]] std::byte* position() const noexcept { return position_; }

  private:
    std::byte* position_;
};

/// Reads values in the order in which they were put. Reading past the end is remembered and yields zeros and nulls, so
/// that one check at the end of a message suffices.
class ByteReader {
  public:
    explicit ByteReader(std::span<const std::byte> bytes) : rest_{bytes}, size_{bytes.size()} {}
    template <class T>
    [[nodiscard]] T get() {
        T value{};
        if (const std::byte* at = take(sizeof(T))) std::memcpy(&value, at, sizeof(T));
        return value;
    }
    /// `count` values in place; null when there are not so many. The message keeps the alignment of its parts.
    template <class T>
    [[nodiscard]] const T* view(std::int64_t count) {
        return reinterpret_cast<const T*>(take(static_cast<std::size_t>(count) * sizeof(T)));
    }
    /// Skips the zeros behind a part.
    void skip_padding() {
        const auto read = static_cast<std::int64_t>(size_ - rest_.size());
        static_cast<void>(take(static_cast<std::size_t>(padded_part(read) - read)));
    }
    /// True when everything was read, and nothing beyond the end.
    [[nodiscard]] bool complete() const noexcept { return !overrun_ && rest_.empty(); }
    [[nodiscard]] bool overrun() const noexcept { return overrun_; }

  private:
    const std::byte* take(std::size_t bytes) {
        if (bytes > rest_.size()) {
            overrun_ = true;
            rest_ = {};
            return nullptr;
        }
        const std::byte* at = rest_.data();
        rest_ = rest_.subspan(bytes);
        return at;
    }
    std::span<const std::byte> rest_;
    std::size_t size_;
    bool overrun_ = false;
};

}  // namespace shardwise::inline SHARDWISE_ABI
