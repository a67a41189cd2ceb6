// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string>

#include <xxhash.h>

#include "shardwise/core/config.hpp"

/// \file
/// What tells a file from a damaged one.

namespace shardwise::inline SHARDWISE_ABI {

/// XXH3 of 64 bits over what it is fed, in order.
class Checksum {
  public:
    Checksum() {
        if (!state_) throw std::bad_alloc{};
        XXH3_64bits_reset(state_.get());
    }
    Checksum& add(std::span<const std::byte> bytes) {
        XXH3_64bits_update(state_.get(), bytes.data(), bytes.size());
        return *this;
    }
    /// 16 hexadecimal digits.
    [[nodiscard]] std::string text() const {
        std::uint64_t value = XXH3_64bits_digest(state_.get());
        std::string digits(16, '0');
        for (std::size_t i = digits.size(); i-- > 0; value >>= 4U)
            digits[i] = "0123456789abcdef"[value & 15U];
        return digits;
    }

  private:
    struct Free {
        void operator()(XXH3_state_t* state) const noexcept { XXH3_freeState(state); }
    };
    std::unique_ptr<XXH3_state_t, Free> state_{XXH3_createState()};
};

}  // namespace shardwise::inline SHARDWISE_ABI
