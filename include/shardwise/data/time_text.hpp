// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"

/// \file
/// Times in text, and the small numbers that models are given of them.

namespace shardwise::inline SHARDWISE_ABI {

/// What a model is given of a time.
enum class TimePart : std::uint8_t {
    minute,   ///< 0 to 59
    hour,     ///< 0 to 23
    weekday,  ///< 0 (Monday) to 6
    day,      ///< 1 to 31
    month     ///< 1 to 12
};
/// What a schema calls the parts of a time, in the order of TimePart.
inline constexpr std::array<const char*, 5> time_part_names{"minute", "hour", "weekday", "day", "month"};
/// Rows of a table that has every value of a part: one more than the largest.
[[nodiscard]] constexpr std::int64_t time_part_rows(TimePart part) noexcept {
    constexpr std::array<std::int64_t, 5> rows{60, 24, 7, 32, 13};
    return rows[static_cast<std::size_t>(part)];
}

/// Checks a form as parse_time() takes it. \throws BadInput naming the form
inline void check_time_form(std::string_view form) {
    constexpr std::string_view known = "YymdHMSfs%";
    bool any = false;
    for (std::size_t i = 0; i < form.size(); ++i) {
        if (form[i] != '%') continue;
        if (++i == form.size() || known.find(form[i]) == std::string_view::npos)
            throw BadInput{
                concat({"a time of the form '", form, "': give %Y %y %m %d %H %M %S %f or %s, and %% for a percent"})};
        any |= form[i] != '%';
    }
    if (!any) throw BadInput{concat({"a time of the form '", form, "': it has no part, such as %Y-%m-%d %H:%M:%S"})};
}

/// Reads a time. A form has %Y (four digits), %y (two: 69 to 99 are of the last century), %m %d %H %M %S (two digits
/// each), %f (digits of a fraction of a second, passed over), %s (seconds since 1970, a whole number) and characters
/// that stand for themselves. What the form leaves out is that of 1970-01-01 00:00:00. There are no zones of time.
/// \returns seconds since 1970; nothing where the text has another form, or names no time
[[nodiscard]] inline std::optional<std::int64_t> parse_time(std::string_view text, std::string_view form) noexcept {
    int year = 1970;
    int month = 1;
    int day = 1;
    int hour = 0;
    int minute = 0;
    int second = 0;
    std::optional<std::int64_t> whole;
    const char* at = text.data();
    const char* const end = at + text.size();
    const auto digits = [&](int count, int& number) {
        if (end - at < count) return false;
        number = 0;
        for (int i = 0; i < count; ++i, ++at) {
            if (*at < '0' || *at > '9') return false;
            number = 10 * number + (*at - '0');
        }
        return true;
    };
    for (std::size_t i = 0; i < form.size(); ++i) {
        if (form[i] != '%' || form[++i] == '%') {
            if (at == end || *at++ != form[i]) return std::nullopt;
            continue;
        }
        bool good = false;
        switch (form[i]) {
            case 'Y':
                good = digits(4, year);
                break;
            case 'y':
                good = digits(2, year);
                year += year < 69 ? 2000 : 1900;
                break;
            case 'm':
                good = digits(2, month);
                break;
            case 'd':
                good = digits(2, day);
                break;
            case 'H':
                good = digits(2, hour);
                break;
            case 'M':
                good = digits(2, minute);
                break;
            case 'S':
                good = digits(2, second);
                break;
            case 'f':
                while (at != end && *at >= '0' && *at <= '9')
                    ++at, good = true;
                break;
            default: {
                std::int64_t number = 0;
                const auto [stop, status] = std::from_chars(at, end, number);
                good = status == std::errc{};
                whole = number;
                at = stop;
            }
        }
        if (!good) return std::nullopt;
    }
    const std::chrono::year_month_day date{std::chrono::year{year}, std::chrono::month{static_cast<unsigned>(month)},
                                           std::chrono::day{static_cast<unsigned>(day)}};
    if (at != end || !date.ok() || hour > 23 || minute > 59 || second > 59) return std::nullopt;
    if (whole) return whole;
    const std::int64_t days = std::chrono::sys_days{date}.time_since_epoch().count();
    return ((days * 24 + hour) * 60 + minute) * 60 + second;
}

/// A part of a time. \param seconds  since 1970
[[nodiscard]] inline std::int64_t time_part(std::int64_t seconds, TimePart part) noexcept {
    constexpr std::int64_t a_day = std::int64_t{24} * 60 * 60;
    const std::int64_t of_day = ((seconds % a_day) + a_day) % a_day;
    const std::int64_t days = seconds / a_day - (seconds % a_day < 0 ? 1 : 0);  // seconds - of_day overflows
    if (part == TimePart::minute) return of_day / 60 % 60;
    if (part == TimePart::hour) return of_day / (60 * 60);
    if (part == TimePart::weekday) return ((days + 3) % 7 + 7) % 7;  // 1970 began on a Thursday
    constexpr std::int64_t era = 146'097;                            // days of 400 years, after which dates repeat
    const std::chrono::year_month_day date{std::chrono::sys_days{std::chrono::days{(days % era + era) % era}}};
    return part == TimePart::day ? static_cast<unsigned>(date.day()) : static_cast<unsigned>(date.month());
}

}  // namespace shardwise::inline SHARDWISE_ABI
