// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <string_view>

/// \file
/// What fuzz targets share. A target checks with `require`; its seeds are not files: its mutator makes a valid input
/// now and then, and breaks it.

extern "C" {
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed);
/// libFuzzer's own mutations.
std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);
}

namespace fuzz {

/// Ends the run with a finding.
inline void require(bool is, const char* what, const std::string& details = {}) {
    if (is) [[likely]]
        return;
    std::fprintf(stderr, "FOUND: %s %s\n", what, details.c_str());
    std::abort();
}

/// Takes an input apart, from its front: what is missing counts as 0.
class Choices {
  public:
    Choices(const std::uint8_t* data, std::size_t size) : rest_{data, size} {}

    template <class T = std::uint8_t>
    T number() {
        T value{};
        const std::size_t count = std::min(sizeof value, rest_.size());
        if (count != 0) std::memcpy(&value, rest_.data(), count);
        rest_ = rest_.subspan(count);
        return value;
    }
    /// A number from 0 to `end` - 1; `end` is at most 256.
    std::size_t below(std::size_t end) { return number() % end; }
    /// All that is left.
    [[nodiscard]] std::string_view text() const { return {reinterpret_cast<const char*>(rest_.data()), rest_.size()}; }

  private:
    std::span<const std::uint8_t> rest_;
};

/// What mutators draw from.
class Random {
  public:
    explicit Random(unsigned seed) : engine_{seed} {}
    /// A number from 0 to `end` - 1.
    std::size_t below(std::size_t end) { return engine_() / 64 % end; }
    bool one_in(std::size_t n) { return below(n) == 0; }
    template <class List>
    const auto& one_of(const List& list) {
        return list[below(std::size(list))];
    }

  private:
    std::minstd_rand engine_;
};

/// Makes `text` the input; a longer one than `most` is cut off.
inline std::size_t become(std::string_view text, std::uint8_t* data, std::size_t most) {
    const std::size_t size = std::min(text.size(), most);
    if (size != 0) std::memcpy(data, text.data(), size);
    return size;
}

/// libFuzzer's mutation of a text, which may grow by 64 bytes.
inline void mutate(std::string& text) {
    const std::size_t size = text.size();
    text.resize(size + 64);
    text.resize(LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(text.data()), size, text.size()));
}

}  // namespace fuzz

/// Memory that was freed is kept apart for less long than by default, and allocations have no stacks: a third faster.
/// Not inline, which would be as weak as the default: a program is one source file.
extern "C" const char* __asan_default_options() {  // NOLINT(bugprone-reserved-identifier)
    return "malloc_context_size=0:quarantine_size_mb=1:thread_local_quarantine_size_kb=64";
}
