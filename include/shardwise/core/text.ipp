// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "shardwise/core/text.hpp"

namespace shardwise::inline SHARDWISE_ABI {

SHARDWISE_INLINE void Word::append_to(std::string& text) const {
    switch (kind_) {
        case Kind::text:
            text += view;
            return;
        case Kind::whole:
            text += std::to_string(integer);
            return;
        case Kind::natural:
            text += std::to_string(static_cast<std::uint64_t>(integer));
            return;
        case Kind::real:
            text += std::to_string(real);
            return;
    }
}

SHARDWISE_INLINE std::string concat(std::initializer_list<Word> words) {
    std::string text;
    for (const Word& word : words)
        word.append_to(text);
    return text;
}

}  // namespace shardwise::inline SHARDWISE_ABI
