// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "shardwise/core/at.hpp"
#include "shardwise/core/config.hpp"

/// \file
/// Windows of slots that a thread may add to while others use those that are there.

namespace shardwise::inline SHARDWISE_ABI::detail {

/// Owns windows, which stay where they are. One thread adds, others look them up meanwhile. Memory: a pointer for each
/// window and each one behind it.
template <class Window>
class WindowList {
  public:
    WindowList() { publish(); }
    WindowList(const WindowList&) = delete;
    WindowList& operator=(const WindowList&) = delete;

    /// \returns its number
    int add(std::unique_ptr<Window> window) {
        windows_.push_back(std::move(window));
        publish();
        return static_cast<int>(windows_.size()) - 1;
    }
    [[nodiscard]] Window& operator[](int number) const { return *at(all(), number); }
    [[nodiscard]] const std::vector<Window*>& all() const noexcept { return *now_.load(std::memory_order_acquire); }

  private:
    void publish() {
        auto list = std::make_unique<std::vector<Window*>>();
        for (const auto& window : windows_)
            list->push_back(window.get());
        now_.store(list.get(), std::memory_order_release);
        lists_.push_back(std::move(list));  // those before may still be read
    }

    std::vector<std::unique_ptr<Window>> windows_;
    std::vector<std::unique_ptr<std::vector<Window*>>> lists_;
    std::atomic<const std::vector<Window*>*> now_{nullptr};
};

}  // namespace shardwise::inline SHARDWISE_ABI::detail
