// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "shardwise/core/config.hpp"

/// \file
/// Texts put together from words and numbers, in one call: sentences of errors and descriptions are a good part of the
/// code of a program, and `+` on strings is compiled anew at every place.

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {
template <class T>
concept WholeNumber = std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char>;
}  // namespace detail

/// A piece of a text: a view of characters, or a number that is written as std::to_string does. Lives as long as what
/// it was made of.
class Word {
  public:
    // NOLINTBEGIN(google-explicit-constructor,cppcoreguidelines-pro-type-member-init): what concat is given
    Word(const char* text) : Word{std::string_view{text}} {}
    Word(std::string_view text) : kind_{Kind::text}, view{text} {}
    Word(const std::string& text) : Word{std::string_view{text}} {}
    template <detail::WholeNumber T>
    Word(T number)
        : kind_{std::signed_integral<T> ? Kind::whole : Kind::natural}, integer{static_cast<std::int64_t>(number)} {}
    template <std::floating_point T>
    Word(T number) : kind_{Kind::real}, real{static_cast<double>(number)} {}
    // NOLINTEND(google-explicit-constructor,cppcoreguidelines-pro-type-member-init)

    void append_to(std::string& text) const;

  private:
    enum class Kind { text, whole, natural, real };
    Kind kind_;
    union {
        std::string_view view;
        std::int64_t integer;
        double real;
    };
};

/// All words, one behind the other.
[[nodiscard]] std::string concat(std::initializer_list<Word> words);

}  // namespace shardwise::inline SHARDWISE_ABI

#if !defined(SHARDWISE_COMPILED)
#include "shardwise/core/text.ipp"
#endif
