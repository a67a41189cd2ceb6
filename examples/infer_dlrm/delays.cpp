// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "delays.hpp"

#include <charconv>
#include <chrono>
#include <cmath>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "shardwise/core/error.hpp"

namespace infer_dlrm {

namespace {

/// "10ms" in milliseconds; nothing where it is none. A zero needs no unit.
std::optional<double> milliseconds(std::string_view text) {
    double number = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
    const std::string_view unit{end, static_cast<std::size_t>(text.data() + text.size() - end)};
    constexpr double longest = 3.6e6;  // an hour
    if (status != std::errc{} || !std::isfinite(number) || number < 0) return std::nullopt;
    if (unit == "us" && number <= 1e3 * longest) return number / 1e3;
    if (unit == "ms" && number <= longest) return number;
    if (unit == "s" && number <= longest / 1e3) return number * 1e3;
    if (unit.empty() && number == 0) return 0.0;
    return std::nullopt;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t end = std::min(text.find(separator, at), text.size());
        parts.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    return parts;
}

}  // namespace

double Delay::expected() const noexcept {
    return law == Law::uniform ? (low + high) / 2 : mean;
}

Delay parse_delay(const std::string& text) {
    const auto wrong = [&] {
        return shardwise::BadInput{
            fmt::format("--delay '{}': give uniform:0:10ms, exponential:2ms or constant:5ms, an hour at most, for one "
                        "rank with @ and "
                        "its number",
                        text)};
    };
    Delay delay;
    std::string_view law = text;
    if (const std::size_t at = law.find('@'); at != std::string_view::npos) {
        const std::string_view rank = law.substr(at + 1);
        const auto [end, status] = std::from_chars(rank.data(), rank.data() + rank.size(), delay.rank);
        if (status != std::errc{} || end != rank.data() + rank.size() || delay.rank < 0) throw wrong();
        law = law.substr(0, at);
    }
    const auto parts = split(law, ':');
    std::vector<double> times;
    for (std::size_t i = 1; i < parts.size(); ++i) {
        const auto time = milliseconds(parts[i]);
        if (!time) throw wrong();
        times.push_back(*time);
    }
    if (parts[0] == "uniform" && times.size() == 2 && times[0] <= times[1]) {
        delay.law = Delay::Law::uniform;
        delay.low = times[0];
        delay.high = times[1];
    } else if ((parts[0] == "exponential" || parts[0] == "constant") && times.size() == 1) {
        delay.law = parts[0] == "constant" ? Delay::Law::constant : Delay::Law::exponential;
        delay.mean = times[0];
    } else {
        throw wrong();
    }
    return delay;
}

Delays::Delays(const Delay& delay, std::uint64_t seed, int rank)
    : delay_{delay}, dice_{seed * 1'000'003 + static_cast<std::uint64_t>(rank)} {
    if (delay_.rank >= 0 && delay_.rank != rank) delay_.law = Delay::Law::none;
}

double Delays::wait() {
    using Clock = std::chrono::steady_clock;
    if (delay_.law == Delay::Law::none) return 0;
    double time = delay_.mean;
    if (delay_.law == Delay::Law::uniform) time = std::uniform_real_distribution{delay_.low, delay_.high}(dice_);
    if (delay_.law == Delay::Law::exponential && delay_.mean > 0)
        time = std::exponential_distribution{1 / delay_.mean}(dice_);
    const auto begin = Clock::now();
    const auto end = begin + std::chrono::nanoseconds{static_cast<std::int64_t>(1e6 * time)};
    constexpr std::chrono::microseconds oversleeps{150};
    if (end - begin > 2 * oversleeps) std::this_thread::sleep_until(end - oversleeps);
    while (Clock::now() < end)
        std::this_thread::yield();
    return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

}  // namespace infer_dlrm
