// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "shardwise/core/config.hpp"

/// \file
/// What ranks have to agree on, by name: where they do not, an error says what differs.

namespace shardwise::inline SHARDWISE_ABI {

/// One thing that all ranks were to be given alike.
struct Fact {
    std::string of;     ///< such as "table 'user'" or "seed"
    std::string what;   ///< of that, such as "rows"; empty: it is one number or text
    std::string value;  ///< as people read it; empty: a digest alone says whether it is the same
    std::uint64_t digest = 0;
    bool follows = false;  ///< from others: told only where none of those differs; does not travel
};

/// All facts as one text, which another rank reads.
[[nodiscard]] std::string pack_facts(const std::vector<Fact>& facts);
/// \returns them; none where the text is not one of pack_facts()
[[nodiscard]] std::vector<Fact> unpack_facts(std::string_view text);

/// What differs, in words: "table 'user': 50 rows here, 51 on rank 1". At most three things, then how many more; empty
/// where nothing does. \param rank  whose facts `theirs` are
[[nodiscard]] std::string difference(const std::vector<Fact>& mine, const std::vector<Fact>& theirs, int rank);

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/core/facts.ipp"
#endif
