// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/data/batch.hpp"
#include "shardwise/data/keyed_random.hpp"
#include "shardwise/data/sequences.hpp"
#include "shardwise/data/slice.hpp"

/// \file
/// Samples of "which item comes next" from the histories of users.

namespace shardwise::inline SHARDWISE_ABI {

/// What a NextItems makes of histories.
struct NextItemOptions {
    enum class Part : std::uint8_t {
        train,  ///< every item of every user but the last one, in another order in every pass
        test,   ///< the last item of every user, in the order of users
    };
    std::shared_ptr<const Histories> histories = nullptr;  ///< may be shared by the sources of several ranks
    Part part = Part::train;
    std::int64_t history = 50;   ///< items before the next one: the most recent ones, at most so many
    std::int64_t negatives = 4;  ///< items a sample that did not come next
    std::uint64_t seed = 1;      ///< of the order and of the negatives
    Slice slice = {};            ///< the batch size, and which rank's batches
};

/// A source of batches of two features: `history`, the items before, oldest first, and `candidate`, the item that came
/// next (label 1) and then the negatives (label 0). So ids.lengths is (2, samples), and labels has 1 + negatives a
/// sample.
///
/// Negatives are uniform among the items that some user has and this one has not: in the training part none that the
/// user is trained on, in the test part none of the user's at all. The order of a pass and all negatives are functions
/// of seed, pass and item alone, so that global batches are the same however many ranks share them.
///
/// Each source has the items of each user once more, sorted, and the numbers of its samples: 8 bytes an item of the
/// histories and 4 a sample. A sample costs `history` copies and about log2 of a user's items a negative. Not
/// collective, not thread safe.
class NextItems {
  public:
    using Part = NextItemOptions::Part;

    /// \throws BadInput when there are no histories, a number is not valid, or a user has every item
    explicit NextItems(NextItemOptions options) : options_{std::move(options)} {
        const NextItemOptions& o = options_;
        o.slice.validate();
        if (o.histories == nullptr || o.histories->items.empty())
            throw BadInput{"samples of next items without a history: give the histories of at least one user"};
        if (o.history < 1) throw BadInput{concat({"histories of ", o.history, " items: give at least 1"})};
        if (o.negatives < 1) throw BadInput{concat({o.negatives, " negatives a sample: give at least 1"})};
        if (o.histories->items.size() > std::numeric_limits<std::uint32_t>::max())
            throw BadInput{concat({o.histories->items.size(), " items of all histories: give at most 4294967295"})};
        sort_items();
        choose_samples();
        start_pass();
    }

    /// Samples of a pass.
    [[nodiscard]] std::int64_t samples() const noexcept { return std::ssize(samples_); }
    /// Items that some user has: what negatives are drawn from.
    [[nodiscard]] std::int64_t catalog() const noexcept { return std::ssize(catalog_); }

    /// This rank's next batch; it may be empty. \returns false at the end, on every rank after as many batches
    bool next(ClickBatch& batch) {
        const Slice& slice = options_.slice;
        const std::int64_t left = samples() - position_;
        if (left == 0) return false;
        const auto first = static_cast<std::size_t>(std::min(position_ + slice.before(), samples()));
        fill(std::span{samples_}.subspan(first, static_cast<std::size_t>(slice.share(left))), batch);
        position_ += std::min(slice.global_batch(), left);
        return true;
    }
    /// The training part starts its next pass, in another order and with other negatives; the test part starts again.
    void rewind() {
        position_ = 0;
        if (options_.part == Part::test) return;
        ++pass_;
        start_pass();
    }

  private:
    // What random streams are for; a pass has two of its own.
    static constexpr std::uint64_t shuffle = 0;
    static constexpr std::uint64_t negative_items = std::uint64_t{1} << 32;
    static constexpr std::uint64_t test_negative_items = std::uint64_t{2} << 32;

    [[nodiscard]] std::int64_t size_of(std::int64_t user) const { return std::ssize(options_.histories->of(user)); }
    // Of the items of a user, those that negatives must not be: all, or all but the last.
    [[nodiscard]] std::int64_t known(std::int64_t user) const {
        return size_of(user) - (options_.part == Part::train ? 1 : 0);
    }

    void sort_items() {
        const Histories& all = *options_.histories;
        catalog_ = all.items;
        std::sort(catalog_.begin(), catalog_.end());
        catalog_.erase(std::unique(catalog_.begin(), catalog_.end()), catalog_.end());
        sorted_ = all.items;
        for (std::int64_t user = 0; user < all.size(); ++user) {
            const auto first = sorted_.begin() + all.offsets[static_cast<std::size_t>(user)];
            std::sort(first, first + known(user));
            std::int64_t different = 0;
            for (std::int64_t i = 0; i < known(user); ++i)
                different += i == 0 || first[i] != first[i - 1] ? 1 : 0;
            if (different == catalog())
                throw BadInput{concat({"user ", all.users[static_cast<std::size_t>(user)], " has all ", catalog(),
                                       " items: none is left that did not come next"})};
        }
    }
    void choose_samples() {
        const Histories& all = *options_.histories;
        for (std::int64_t user = 0; user < all.size(); ++user) {
            const std::int64_t last = all.offsets[static_cast<std::size_t>(user) + 1] - 1;
            if (options_.part == Part::test) {
                samples_.push_back(static_cast<std::uint32_t>(last));
                continue;
            }
            for (std::int64_t i = all.offsets[static_cast<std::size_t>(user)]; i < last; ++i)
                samples_.push_back(static_cast<std::uint32_t>(i));
        }
        if (samples_.empty())
            throw BadInput{"no user has two items: the last one is held out, and there is nothing to train on"};
    }
    // Fisher and Yates, from the order that the pass before left.
    void start_pass() {
        if (options_.part == Part::test) return;
        KeyedRandom random{options_.seed, shuffle, pass_};
        for (std::size_t i = samples_.size(); i > 1; --i)
            std::swap(samples_[i - 1], samples_[random.bits() % i]);
    }

    void fill(std::span<const std::uint32_t> chosen, ClickBatch& batch) {
        const Histories& all = *options_.histories;
        batch.resize_single(std::ssize(chosen), 0, 2);
        batch.ids.values.clear();
        batch.ids.lengths.resize(2 * chosen.size());
        for (std::size_t s = 0; s < chosen.size(); ++s) {
            const std::int64_t next = chosen[s];
            const std::int64_t user = user_of(next);
            const std::int64_t first = std::max(all.offsets[static_cast<std::size_t>(user)], next - options_.history);
            batch.ids.values.insert(batch.ids.values.end(), all.items.begin() + first, all.items.begin() + next);
            batch.ids.lengths[s] = static_cast<std::int32_t>(next - first);
            batch.ids.lengths[chosen.size() + s] = static_cast<std::int32_t>(1 + options_.negatives);
        }
        batch.labels.assign(chosen.size() * static_cast<std::size_t>(1 + options_.negatives), 0.0F);
        for (std::size_t s = 0; s < chosen.size(); ++s) {
            batch.labels[s * static_cast<std::size_t>(1 + options_.negatives)] = 1.0F;
            batch.ids.values.push_back(all.items[chosen[s]]);
            draw_negatives(chosen[s], batch.ids.values);
        }
    }
    [[nodiscard]] std::int64_t user_of(std::int64_t item) const {
        const auto& offsets = options_.histories->offsets;
        return std::upper_bound(offsets.begin(), offsets.end(), item) - offsets.begin() - 1;
    }
    void draw_negatives(std::int64_t item, std::vector<std::int64_t>& values) const {
        const std::int64_t user = user_of(item);
        const auto first = sorted_.begin() + options_.histories->offsets[static_cast<std::size_t>(user)];
        const std::uint64_t stream = options_.part == Part::test ? test_negative_items : negative_items + pass_;
        KeyedRandom random{options_.seed, stream, static_cast<std::uint64_t>(item)};
        for (std::int64_t drawn = 0; drawn < options_.negatives;) {
            const std::int64_t row = catalog_[random.bits() % catalog_.size()];
            if (std::binary_search(first, first + known(user), row)) continue;
            values.push_back(row);
            ++drawn;
        }
    }

    NextItemOptions options_;
    std::vector<std::int64_t> catalog_;   // items that some user has, ascending
    std::vector<std::int64_t> sorted_;    // those of each user that negatives must not be, ascending
    std::vector<std::uint32_t> samples_;  // places of the next items among all items, in the order of this pass
    std::uint64_t pass_ = 0;
    std::int64_t position_ = 0;  // first sample of the next global batch
};

}  // namespace shardwise::inline SHARDWISE_ABI
