// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/data/next_items.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "shardwise/core/error.hpp"
#include "shardwise/data/loader.hpp"

namespace {
using shardwise::ClickBatch;
using shardwise::Histories;
using shardwise::NextItemOptions;
using shardwise::NextItems;
using Part = NextItemOptions::Part;

struct Sample {
    std::vector<std::int64_t> history;
    std::vector<std::int64_t> candidates;
    bool operator==(const Sample&) const = default;
    bool operator<(const Sample& other) const {
        return std::tie(history, candidates) < std::tie(other.history, other.candidates);
    }
};

/// Of a batch, whose parts have to fit together.
void append_samples(const ClickBatch& batch, std::int64_t negatives, std::vector<Sample>& all) {
    const auto ids = batch.ids.view();
    ids.validate();
    ASSERT_EQ(ids.features, 2);
    ASSERT_EQ(std::ssize(batch.labels), ids.samples * (1 + negatives));
    std::size_t history = 0;
    std::size_t candidate = batch.ids.values.size() - batch.labels.size();
    for (std::int64_t s = 0; s < ids.samples; ++s) {
        Sample& sample = all.emplace_back();
        for (std::int64_t i = 0; i < ids.length(s); ++i)
            sample.history.push_back(batch.ids.values[history++]);
        ASSERT_EQ(ids.length(ids.samples + s), 1 + negatives);
        for (std::int64_t i = 0; i <= negatives; ++i) {
            ASSERT_EQ(batch.labels[static_cast<std::size_t>(s * (1 + negatives) + i)], i == 0 ? 1.0F : 0.0F);
            sample.candidates.push_back(batch.ids.values[candidate++]);
        }
    }
}

/// The rest of a pass of all ranks, global batch by global batch, rank by rank.
std::vector<Sample> pass_of(std::vector<NextItems>& ranks, std::int64_t negatives) {
    std::vector<Sample> all;
    ClickBatch batch;
    for (bool more = true; more;) {
        int ended = 0;
        for (NextItems& source : ranks) {
            more = source.next(batch);
            ended += more ? 0 : 1;
            if (more) append_samples(batch, negatives, all);
        }
        EXPECT_TRUE(ended == 0 || ended == static_cast<int>(ranks.size()));
    }
    return all;
}

std::vector<NextItems> ranks_of(NextItemOptions options, int ranks, std::int64_t batch) {
    std::vector<NextItems> all;
    for (int rank = 0; rank < ranks; ++rank) {
        options.slice = {.batch = batch, .rank = rank, .ranks = ranks};
        all.emplace_back(options);
    }
    return all;
}

/// Users with 1 to 8 of 40 items, and a last one that makes all 40 known.
std::shared_ptr<const Histories> some_histories() {
    auto all = std::make_shared<Histories>();
    const auto users = *rc::gen::inRange<std::int64_t>(1, 12);
    for (std::int64_t user = 0; user < users; ++user) {
        const auto items = *rc::gen::resize(
            8, rc::gen::nonEmpty(rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange(0, 40))));
        all->users.push_back(100 + user);
        all->items.insert(all->items.end(), items.begin(), items.end());
        all->offsets.push_back(std::ssize(all->items));
    }
    for (std::int64_t half = 0; half < 2; ++half) {
        all->users.push_back(7 + half);
        for (std::int64_t i = 0; i < 20; ++i)
            all->items.push_back(20 * half + i);
        all->offsets.push_back(std::ssize(all->items));
    }
    all->rows = 40;
    return all;
}

/// What the samples of a part are, but for their order and negatives: history, next item and who it is.
std::vector<std::pair<Sample, std::int64_t>> expected(const Histories& all, Part part, std::int64_t history) {
    std::vector<std::pair<Sample, std::int64_t>> samples;
    for (std::int64_t user = 0; user < all.size(); ++user) {
        const auto items = all.of(user);
        for (std::int64_t i = part == Part::test ? std::ssize(items) - 1 : 0;
             i < std::ssize(items) - (part == Part::test ? 0 : 1); ++i) {
            const auto first = items.begin() + std::max<std::int64_t>(0, i - history);
            samples.push_back({{{first, items.begin() + i}, {items[static_cast<std::size_t>(i)]}}, user});
        }
    }
    return samples;
}

RC_GTEST_PROP(NextItems, AreWhatCameNextAndWhatTheUserHasNot, ()) {
    const auto histories = some_histories();
    const NextItemOptions options{.histories = histories,
                                  .part = *rc::gen::element(Part::train, Part::test),
                                  .history = *rc::gen::inRange<std::int64_t>(1, 10),
                                  .negatives = *rc::gen::inRange<std::int64_t>(1, 4),
                                  .seed = *rc::gen::arbitrary<std::uint64_t>()};
    auto one = ranks_of(options, 1, *rc::gen::inRange<std::int64_t>(1, 9));
    const auto found = pass_of(one, options.negatives);
    const auto wanted = expected(*histories, options.part, options.history);
    RC_ASSERT(one[0].samples() == std::ssize(wanted));
    RC_ASSERT(one[0].catalog() == 40);
    std::multiset<Sample> bare;
    for (const Sample& sample : found) {
        RC_ASSERT(std::ssize(sample.candidates) == 1 + options.negatives);
        bare.insert({sample.history, {sample.candidates[0]}});
        bool somebodys = false;  // no negative is an item of this user, whoever of those it may be
        for (const auto& [other, user] : wanted) {
            if (other.history != sample.history || other.candidates[0] != sample.candidates[0]) continue;
            auto known = histories->of(user);
            if (options.part == Part::train) known = known.first(known.size() - 1);
            somebodys |= std::none_of(sample.candidates.begin() + 1, sample.candidates.end(), [&](std::int64_t item) {
                return std::find(known.begin(), known.end(), item) != known.end();
            });
        }
        RC_ASSERT(somebodys);
    }
    std::multiset<Sample> all;
    for (const auto& [sample, user] : wanted)
        all.insert(sample);
    RC_ASSERT(bare == all);
}

RC_GTEST_PROP(NextItems, AreTheSameHoweverManyRanksShareThem, ()) {
    const auto histories = some_histories();
    NextItemOptions options{.histories = histories,
                            .part = *rc::gen::element(Part::train, Part::test),
                            .history = 5,
                            .negatives = 2,
                            .seed = *rc::gen::arbitrary<std::uint64_t>()};
    auto alone = ranks_of(options, 1, 6);
    auto three = ranks_of(options, 3, 2);
    for (int pass = 0; pass < 3; ++pass) {
        RC_ASSERT(pass_of(alone, 2) == pass_of(three, 2));
        for (auto* sources : {&alone, &three})
            for (NextItems& source : *sources)
                source.rewind();
    }
}

TEST(NextItems, TrainingPassesDifferAndTestsDoNot) {
    auto histories = std::make_shared<Histories>();
    for (std::int64_t user = 0; user < 20; ++user) {
        histories->users.push_back(user);
        for (std::int64_t i = 0; i < 30; ++i)
            histories->items.push_back((7 * user + 11 * i) % 200);
        histories->offsets.push_back(std::ssize(histories->items));
    }
    histories->rows = 200;
    for (const Part part : {Part::train, Part::test}) {
        auto source = ranks_of({.histories = histories, .part = part, .seed = 4}, 1, 64);
        const auto first = pass_of(source, 4);
        source[0].rewind();
        auto second = pass_of(source, 4);
        EXPECT_EQ(first == second, part == Part::test);
        std::map<std::vector<std::int64_t>, std::int64_t> negatives;  // others in another pass
        if (part == Part::train) {
            auto sorted = [](std::vector<Sample> samples) {
                for (Sample& s : samples)
                    s.candidates.resize(1);
                std::sort(samples.begin(), samples.end());
                return samples;
            };
            EXPECT_EQ(sorted(first), sorted(second));
            std::sort(second.begin(), second.end());
            auto again = first;
            std::sort(again.begin(), again.end());
            EXPECT_NE(again, second);
        }
        auto other = ranks_of({.histories = histories, .part = part, .seed = 5}, 1, 64);
        EXPECT_NE(pass_of(other, 4), first);
    }
}

TEST(NextItems, TheItemThatIsHeldOutIsNothingThatTrainingKnows) {
    auto histories = std::make_shared<Histories>();
    histories->users = {17, 4};
    histories->items = {1, 2, 3, 1};
    histories->offsets = {0, 3, 4};
    histories->rows = 4;
    auto source = ranks_of({.histories = histories}, 1, 8);  // to user 17 only item 3 did not come next
    const auto samples = pass_of(source, 4);
    ASSERT_EQ(samples.size(), 2U);
    for (const Sample& sample : samples)
        EXPECT_EQ((std::vector<std::int64_t>{sample.candidates.begin() + 1, sample.candidates.end()}),
                  (std::vector<std::int64_t>{3, 3, 3, 3}));
    EXPECT_THROW((NextItems{{.histories = histories, .part = Part::test}}), shardwise::BadInput);
}

TEST(NextItems, ReadAheadIsTheSame) {
    auto histories = std::make_shared<Histories>();
    histories->users = {1, 2};
    histories->items = {1, 2, 3, 4, 5, 6, 7, 8};
    histories->offsets = {0, 5, 8};
    histories->rows = 9;
    const NextItemOptions options{.histories = histories, .negatives = 1, .slice = {.batch = 2}};
    NextItems plain{options};
    shardwise::PrefetchingLoader loader{NextItems{options}};
    for (int pass = 0; pass < 3; ++pass) {
        ClickBatch batch;
        while (plain.next(batch)) {
            const ClickBatch* ahead = loader.next();
            ASSERT_NE(ahead, nullptr);
            EXPECT_EQ(ahead->ids.values, batch.ids.values);
        }
        EXPECT_EQ(loader.next(), nullptr);
        plain.rewind();
        loader.rewind();
    }
}

TEST(NextItems, RefusesWhatMakesNoSamples) {
    auto histories = std::make_shared<Histories>();
    const auto says = [&](const NextItemOptions& options) -> std::string {
        try {
            const NextItems source{options};
        } catch (const shardwise::BadInput& error) {
            return error.what();
        }
        return "";
    };
    EXPECT_NE(says({}).find("without a history"), std::string::npos);
    EXPECT_NE(says({.histories = histories}).find("without a history"), std::string::npos);
    histories->users = {17, 4};
    histories->items = {1, 2, 1, 2, 3};
    histories->offsets = {0, 4, 5};
    histories->rows = 4;
    EXPECT_EQ(says({.histories = histories}), "");
    EXPECT_NE(says({.histories = histories, .history = 0}).find("histories of 0 items"), std::string::npos);
    EXPECT_NE(says({.histories = histories, .negatives = 0}).find("0 negatives"), std::string::npos);
    histories->items = {1, 2, 3, 2, 3};
    EXPECT_NE(says({.histories = histories}).find("user 17 has all 3 items"), std::string::npos);
    histories->users = {17, 4};
    histories->items = {1, 2};
    histories->offsets = {0, 1, 2};
    EXPECT_NE(says({.histories = histories}).find("no user has two items"), std::string::npos);
    EXPECT_EQ(says({.histories = histories, .part = Part::test}), "");
}

}  // namespace
