// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <system_error>

#include "shardwise/core/facts.hpp"
#include "shardwise/core/text.hpp"

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

inline constexpr std::string_view facts_begin = "shardwise facts 1\n";

/// Takes "5:texts" off the front. \returns false where it does not stand there
SHARDWISE_INLINE bool take_text(std::string_view& from, std::string& text) {
    std::size_t size = 0;
    const auto [end, status] = std::from_chars(from.data(), from.data() + from.size(), size);
    const auto digits = static_cast<std::size_t>(end - from.data());
    if (status != std::errc{} || digits == from.size() || *end != ':' || size > from.size() - digits - 1) return false;
    text = from.substr(digits + 1, size);
    from.remove_prefix(digits + 1 + size);
    return true;
}

SHARDWISE_INLINE bool is_number(std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789.-") == std::string_view::npos;
}

/// A fact on which two ranks differ.
SHARDWISE_INLINE std::string difference_of(const Fact& mine, const Fact& theirs, int rank) {
    const std::string subject = mine.what.empty()       ? mine.of
                                : is_number(mine.value) ? mine.of
                                                        : mine.of + ", " + mine.what;
    if (mine.value == theirs.value)
        return concat({mine.of, mine.what.empty() ? "" : ", ", mine.what, ": other here than on rank ", rank});
    const bool unit = !mine.what.empty() && is_number(mine.value);
    const auto said = [](const std::string& value) { return value.empty() ? std::string{"none"} : value; };
    return concat({subject, ": ", said(mine.value), unit ? " " + mine.what : std::string{}, " here, ",
                   said(theirs.value), " on rank ", rank});
}

}  // namespace detail

SHARDWISE_INLINE std::string pack_facts(const std::vector<Fact>& facts) {
    std::string text{detail::facts_begin};
    for (const Fact& fact : facts)
        for (const std::string& part : {fact.of, fact.what, fact.value, std::to_string(fact.digest)})
            text += concat({part.size(), ":", part});
    return text;
}

SHARDWISE_INLINE std::vector<Fact> unpack_facts(std::string_view text) {
    if (!text.starts_with(detail::facts_begin)) return {};
    text.remove_prefix(detail::facts_begin.size());
    std::vector<Fact> facts;
    while (!text.empty()) {
        Fact& fact = facts.emplace_back();
        std::string digest;
        if (!detail::take_text(text, fact.of) || !detail::take_text(text, fact.what) ||
            !detail::take_text(text, fact.value) || !detail::take_text(text, digest))
            return {};
        if (std::from_chars(digest.data(), digest.data() + digest.size(), fact.digest).ec != std::errc{}) return {};
    }
    return facts;
}

SHARDWISE_INLINE std::string difference(const std::vector<Fact>& mine, const std::vector<Fact>& theirs, int rank) {
    constexpr int most = 3;
    std::string text;
    int found = 0;
    for (const bool follows : {false, true}) {
        for (const Fact& fact : mine) {
            if (fact.follows != follows) continue;
            const auto other = std::find_if(theirs.begin(), theirs.end(), [&](const Fact& one) {
                return one.of == fact.of && one.what == fact.what;
            });
            if (other == theirs.end()) continue;  // another list of tables is a fact of its own
            if (other->value == fact.value && other->digest == fact.digest) continue;
            if (++found > most) continue;
            text += (found > 1 ? "; " : "") + detail::difference_of(fact, *other, rank);
        }
        if (found != 0) break;
    }
    if (found > most) text += concat({"; and ", found - most, " more"});
    return text;
}

}  // namespace shardwise::inline SHARDWISE_ABI
