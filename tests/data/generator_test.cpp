// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "shardwise/data/generator.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "data/support.hpp"
#include "shardwise/data/keyed_random.hpp"
#include "shardwise/data/zipf.hpp"
#include "shardwise/metrics/auc.hpp"

namespace shardwise_test {
namespace {

using shardwise::BagSizes;
using shardwise::ClickBatch;
using shardwise::ClickGenerator;
using shardwise::GeneratorOptions;
using shardwise::KeyedRandom;
using shardwise::Zipf;

struct BagSample {
    float label = 0;
    std::vector<float> dense;
    std::vector<std::vector<std::int64_t>> bags;
    std::vector<std::vector<float>> weights;
    bool operator==(const BagSample&) const = default;
};

std::vector<BagSample> bag_samples(const ClickBatch& batch) {
    const auto view = batch.ids.view();
    view.validate();
    std::vector<BagSample> samples(static_cast<std::size_t>(batch.samples()));
    std::size_t at = 0;
    for (std::int64_t bag = 0; bag != view.bags(); ++bag) {
        BagSample& sample = samples[static_cast<std::size_t>(bag % view.samples)];
        const auto end = at + static_cast<std::size_t>(view.length(bag));
        sample.bags.emplace_back();
        sample.weights.emplace_back();
        for (; at != end; ++at) {
            sample.bags.back().push_back(view.values[at]);
            if (!view.weights.empty()) sample.weights.back().push_back(view.weights[at]);
        }
    }
    const auto dense = batch.dense_view();
    for (std::size_t s = 0; s != samples.size(); ++s) {
        samples[s].label = batch.labels[s];
        const float* row = dense.row(static_cast<std::int64_t>(s));
        samples[s].dense.assign(row, row + dense.columns());
    }
    return samples;
}

std::vector<BagSample> generate(ClickGenerator& generator, std::int64_t first, std::int64_t count) {
    ClickBatch batch;
    generator.generate(first, count, batch);
    return bag_samples(batch);
}

GeneratorOptions small() {
    return {.rows = {10, 1000, 1, 50}, .dense_columns = 3, .samples = 100};
}

// Values of the definition, computed elsewhere: the data is the same on every platform.
TEST(KeyedRandom, HasTheValuesOfItsDefinition) {
    constexpr std::uint64_t largest = std::numeric_limits<std::uint64_t>::max();
    KeyedRandom random{1, 2, 3};
    EXPECT_EQ(random.bits(), 0x6b74d08708ed6f5cU);
    EXPECT_EQ(random.bits(), 0x7f950b0e01f0d15fU);
    EXPECT_EQ(random.bits(), 0xd5beddcea041fd96U);
    EXPECT_EQ((KeyedRandom{0, 0, 0}.bits()), 0xc4adcb372d915a98U);
    EXPECT_EQ((KeyedRandom{largest, largest, largest}.bits()), 0x5def9da69242ce08U);
}

TEST(KeyedRandom, KeysMatterInEveryPart) {
    const std::uint64_t base = KeyedRandom{5, 6, 7}.bits();
    EXPECT_NE(base, (KeyedRandom{6, 6, 7}.bits()));
    EXPECT_NE(base, (KeyedRandom{5, 7, 7}.bits()));
    EXPECT_NE(base, (KeyedRandom{5, 6, 8}.bits()));
    EXPECT_NE(base, (KeyedRandom{6, 5, 7}.bits()));
}

TEST(KeyedRandom, HasTheMomentsThatItSays) {
    KeyedRandom random{1, 1, 1};
    const int n = 200000;
    double mean = 0;
    double square = 0;
    double uniform = 0;
    std::vector<int> counts(7);
    for (int i = 0; i != n; ++i) {
        const double bell = random.bell();
        EXPECT_LE(std::abs(bell), 3.5);
        mean += bell / n;
        square += bell * bell / n;
        const double u = random.uniform();
        EXPECT_TRUE(u >= 0 && u < 1);
        uniform += u / n;
        ++counts.at(static_cast<std::size_t>(random.below(7)));
    }
    EXPECT_NEAR(mean, 0, 0.01);
    EXPECT_NEAR(square, 1, 0.015);
    EXPECT_NEAR(uniform, 0.5, 0.004);
    for (const int count : counts)
        EXPECT_NEAR(count, n / 7.0, 800);
    EXPECT_EQ(random.below(1), 0);
}

// Frequencies against the probabilities, by chi-square: its mean is the degrees of freedom d, its deviation sqrt(2 d).
TEST(Zipf, FollowsThePowerLaw) {
    for (const double exponent : {0.3, 0.999999999, 1.0, 1.05, 2.0, 3.5}) {
        for (const std::int64_t rows : {1, 2, 3, 10, 200}) {
            std::vector<double> probability;
            double sum = 0;
            for (std::int64_t k = 1; k <= rows; ++k) {
                probability.push_back(std::pow(static_cast<double>(k), -exponent));
                sum += probability.back();
            }
            const int n = 100000;
            std::vector<int> counts(static_cast<std::size_t>(rows));
            KeyedRandom random{17, static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(exponent * 1000)};
            const Zipf zipf{rows, exponent};
            for (int i = 0; i != n; ++i)
                ++counts.at(static_cast<std::size_t>(zipf(random)));
            double chi_square = 0;
            double rest_expected = 0;  // rows too rare to be counted one by one
            double rest = 0;
            double freedom = -1;
            for (std::size_t k = 0; k != counts.size(); ++k) {
                const double expected = n * probability[k] / sum;
                if (expected < 10) {
                    rest_expected += expected;
                    rest += counts[k];
                    continue;
                }
                chi_square += (counts[k] - expected) * (counts[k] - expected) / expected;
                freedom += 1;
            }
            if (rest_expected > 0) {
                chi_square += (rest - rest_expected) * (rest - rest_expected) / std::max(rest_expected, 1.0);
                freedom += 1;
            }
            EXPECT_LE(chi_square, freedom + 5 * std::sqrt(2 * freedom)) << exponent << ", " << rows;
        }
    }
}

TEST(Zipf, StaysInRangeWhenRowsAreMany) {
    for (const double exponent : {0.01, 1.0, 1.2, 8.0, 300.0}) {
        const std::int64_t rows = std::int64_t{1} << 40;
        KeyedRandom random{1, 2, 3};
        const Zipf zipf{rows, exponent};
        std::int64_t largest = 0;
        for (int i = 0; i != 2000; ++i) {
            const std::int64_t row = zipf(random);
            ASSERT_TRUE(row >= 0 && row < rows);
            largest = std::max(largest, row);
        }
        EXPECT_GT(largest, exponent < 0.1 ? rows / 2 : -1);
        EXPECT_LE(largest, exponent > 100 ? 0 : rows);
    }
    // A generator that gives the ends of its range.
    struct Constant {
        double value;
        double uniform() const { return value; }
    };
    for (const double exponent : {0.5, 1.0, 2.0}) {
        Constant least{0};
        EXPECT_EQ((Zipf{5, exponent}(least)), 4);
        Constant most{1 - 0x1p-53};
        EXPECT_EQ((Zipf{5, exponent}(most)), 0);
    }
}

TEST(Zipf, RefusesWhatIsNoDistribution) {
    EXPECT_EQ(bad_input([] { Zipf(0, 1); }), "a Zipf distribution over 0 rows: give at least 1");
    for (const double exponent : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()})
        EXPECT_TRUE(bad_input([&] { Zipf(1, exponent); }).starts_with("a Zipf exponent of "));
}

TEST(Generator, ASampleIsAFunctionOfItsNumber) {
    for (const BagSizes bags : {BagSizes::single(), BagSizes::fixed(3), BagSizes::up_to(4)}) {
        for (const bool weights : {false, true}) {
            GeneratorOptions options = small();
            options.bags = {bags};
            options.weights = weights;
            ClickGenerator whole{options};
            const auto expected = generate(whole, 0, 100);
            ClickGenerator other{options};
            for (const std::int64_t first : {99, 50, 0, 3}) {
                const auto one = generate(other, first, 1);
                ASSERT_EQ(one.size(), 1U);
                EXPECT_EQ(one[0], expected[static_cast<std::size_t>(first)]);
            }
            // Held-out data: another data set of the same world.
            options.first = 40;
            ClickGenerator later{options};
            EXPECT_EQ(generate(later, 0, 60), (std::vector<BagSample>{expected.begin() + 40, expected.end()}));
        }
    }
}

TEST(Generator, RanksShareTheStream) {
    for (const std::int64_t count : {0, 1, 12, 25, 100}) {
        GeneratorOptions options = small();
        options.samples = count;
        options.bags = {BagSizes::up_to(3)};
        ClickGenerator whole{options};
        const auto expected = generate(whole, 0, count);
        for (const int ranks : {1, 2, 3, 4, 7}) {
            for (const std::int64_t batch : {1, 4, 200}) {
                std::vector<ClickGenerator> parts;
                for (int rank = 0; rank != ranks; ++rank) {
                    options.slice = {.batch = batch, .rank = rank, .ranks = ranks};
                    parts.emplace_back(options);
                }
                for (int pass = 0; pass != 2; ++pass) {
                    std::vector<BagSample> stream;
                    std::int64_t batches = 0;
                    for (bool more = true; more;) {
                        for (auto& part : parts) {
                            ClickBatch clicks;
                            const bool some = part.next(clicks);
                            ASSERT_TRUE(&part == &parts[0] || some == more);
                            more = some;
                            if (!more) continue;
                            const auto samples = bag_samples(clicks);
                            stream.insert(stream.end(), samples.begin(), samples.end());
                            if (static_cast<std::int64_t>(stream.size()) < count) {
                                EXPECT_EQ(clicks.samples(), batch);
                            }
                        }
                        batches += more ? 1 : 0;
                    }
                    EXPECT_EQ(stream, expected);
                    EXPECT_EQ(batches, options.slice.batches(count));
                    for (auto& part : parts)
                        part.rewind();
                }
            }
        }
    }
}

TEST(Generator, IsEndlessUnlessTold) {
    ClickGenerator generator{{.rows = {10}, .slice = {.batch = 2}}};
    ClickBatch batch;
    for (int i = 0; i != 1000; ++i)
        ASSERT_TRUE(generator.next(batch));
}

TEST(Generator, BagsHaveTheSizesAskedFor) {
    GeneratorOptions options = small();
    ClickBatch batch;
    ClickGenerator{options}.generate(0, 100, batch);
    EXPECT_TRUE(batch.ids.view().single());
    EXPECT_TRUE(batch.ids.weights.empty());

    options.bags = {BagSizes::fixed(3)};
    options.weights = true;
    ClickGenerator{options}.generate(0, 100, batch);
    EXPECT_EQ(batch.ids.lengths, std::vector<std::int32_t>(400, 3));
    EXPECT_EQ(batch.ids.weights.size(), 1200U);
    EXPECT_TRUE(std::all_of(batch.ids.weights.begin(), batch.ids.weights.end(),
                            [](float weight) { return weight >= 0.5F && weight <= 1.5F; }));

    options.bags = {BagSizes::fixed(0)};
    ClickGenerator{options}.generate(0, 100, batch);
    EXPECT_EQ(batch.ids.lengths, std::vector<std::int32_t>(400, 0));
    EXPECT_TRUE(batch.ids.values.empty());

    options.bags = {BagSizes::up_to(4)};
    ClickGenerator{options}.generate(0, 10000, batch);
    std::vector<int> sizes(5);
    for (const auto length : batch.ids.lengths)
        ++sizes.at(static_cast<std::size_t>(length));
    for (const int size : sizes)
        EXPECT_NEAR(size, 8000, 400);

    // Of each feature its own; one of one id draws what it draws where all have one.
    ClickBatch single;
    options.weights = false;
    options.bags = {BagSizes::single()};
    ClickGenerator{options}.generate(0, 100, single);
    options.bags = {BagSizes::single(), BagSizes::fixed(3), BagSizes::fixed(0), BagSizes::single()};
    ClickGenerator{options}.generate(0, 100, batch);
    ASSERT_EQ(batch.ids.lengths.size(), 400U);
    const std::int32_t each[] = {1, 3, 0, 1};
    for (std::size_t bag = 0; bag != 400; ++bag)
        EXPECT_EQ(batch.ids.lengths[bag], each[bag / 100]);
    ASSERT_EQ(batch.ids.values.size(), 500U);
    EXPECT_TRUE(std::equal(single.ids.values.begin(), single.ids.values.begin() + 100, batch.ids.values.begin()));
    EXPECT_TRUE(std::equal(single.ids.values.begin() + 300, single.ids.values.end(), batch.ids.values.begin() + 400));

    options.bags.pop_back();
    EXPECT_EQ(bad_input([&] { ClickGenerator{options}; }),
              "3 sizes of bags for 4 features: give one for all, or one each");
}

TEST(Generator, IdsAreRowsOfTheirTable) {
    const GeneratorOptions options = small();
    ClickBatch batch;
    ClickGenerator{options}.generate(0, 2000, batch);
    for (std::size_t f = 0; f != options.rows.size(); ++f) {
        std::vector<int> counts(static_cast<std::size_t>(options.rows[f]));
        for (std::size_t s = 0; s != 2000; ++s)
            ++counts.at(static_cast<std::size_t>(batch.ids.values[f * 2000 + s]));
        EXPECT_EQ(std::max_element(counts.begin(), counts.end()), counts.begin());
    }
}

// The logit is the formula in the documentation, on the numbers that a model sees.
TEST(Generator, TheSignalIsWhatItSays) {
    GeneratorOptions options = small();
    options.bags = {BagSizes::up_to(3)};
    options.weights = true;
    options.bias = 0.25;
    ClickGenerator generator{options};
    ClickBatch batch;
    generator.generate(7, 500, batch);
    const auto samples = bag_samples(batch);
    ASSERT_EQ(generator.logits().size(), samples.size());
    for (std::size_t s = 0; s != samples.size(); ++s) {
        double logit = 0.25;
        for (std::size_t c = 0; c != 3; ++c)
            logit += generator.dense_effects()[c] * static_cast<double>(samples[s].dense[c]);
        for (std::size_t f = 0; f != samples[s].bags.size(); ++f)
            for (std::size_t i = 0; i != samples[s].bags[f].size(); ++i)
                logit += static_cast<double>(samples[s].weights[f][i]) *
                         generator.effect(static_cast<std::int64_t>(f), samples[s].bags[f][i]);
        EXPECT_NEAR(generator.logits()[s], logit, 1e-12);
    }
    EXPECT_NE(generator.effect(0, 1), generator.effect(1, 1));
    EXPECT_NE(generator.effect(0, 1), generator.effect(0, 2));
}

// With groups: products of what two features of a group add up to, and nothing else of them.
TEST(Generator, GroupsMeetInPairs) {
    GeneratorOptions options = small();
    options.rows = {10, 1000, 1, 50, 7, 300, 20};
    options.groups = 3;
    options.bags = {BagSizes::up_to(3)};
    options.weights = true;
    options.bias = 0.25;
    ClickGenerator generator{options};
    ClickBatch batch;
    generator.generate(7, 500, batch);
    const auto samples = bag_samples(batch);
    const auto groups = generator.groups();
    ASSERT_EQ(groups.size(), 7U);
    for (std::size_t s = 0; s != samples.size(); ++s) {
        double logit = 0.25;
        for (std::size_t c = 0; c != 3; ++c)
            logit += generator.dense_effects()[c] * static_cast<double>(samples[s].dense[c]);
        std::vector<double> sums;
        for (std::size_t f = 0; f != samples[s].bags.size(); ++f) {
            sums.push_back(0);
            for (std::size_t i = 0; i != samples[s].bags[f].size(); ++i)
                sums.back() += static_cast<double>(samples[s].weights[f][i]) *
                               generator.effect(static_cast<std::int64_t>(f), samples[s].bags[f][i]);
        }
        for (std::size_t f = 0; f != sums.size(); ++f)
            for (std::size_t other = 0; other != f; ++other)
                if (groups[f] == groups[other]) logit += sums[f] * sums[other];
        EXPECT_NEAR(generator.logits()[s], logit, 1e-12);
    }
}

TEST(Generator, GroupsAreEvenAndOfTheSeed) {
    std::vector<std::vector<int>> seen;
    for (const std::uint64_t seed : {1U, 2U, 3U}) {
        for (const int groups : {1, 4, 13}) {
            const ClickGenerator generator{{.rows = std::vector<std::int64_t>(26, 10), .groups = groups, .seed = seed}};
            std::vector<int> sizes(static_cast<std::size_t>(groups));
            for (const int group : generator.groups())
                ++sizes.at(static_cast<std::size_t>(group));
            const auto [least, most] = std::minmax_element(sizes.begin(), sizes.end());
            EXPECT_LE(*most - *least, 1);
            if (groups == 4) seen.emplace_back(generator.groups().begin(), generator.groups().end());
        }
    }
    EXPECT_NE(seen[0], seen[1]);
    EXPECT_NE(seen[1], seen[2]);
    EXPECT_TRUE(ClickGenerator{small()}.groups().empty());
    for (const int groups : {-1, 3})
        EXPECT_EQ(bad_input([&] {
                      GeneratorOptions options = small();
                      options.groups = groups;
                      ClickGenerator{options};
                  }),
                  std::to_string(groups) + " groups of 4 features: give at most half as many groups as features, or 0");
}

TEST(Generator, AnIdealModelHasAnAucOfAboutFourFifths) {
    for (const std::uint64_t seed : {1U, 2U, 3U}) {
        for (const BagSizes bags : {BagSizes::single(), BagSizes::fixed(5), BagSizes::up_to(6)}) {
            for (const int groups : {0, 4}) {
                ClickGenerator generator{
                    {.rows = std::vector<std::int64_t>(26, 10000), .bags = {bags}, .groups = groups, .seed = seed}};
                ClickBatch batch;
                generator.generate(0, 20000, batch);
                const std::vector<float> logits(generator.logits().begin(), generator.logits().end());
                EXPECT_NEAR(shardwise::auc(logits, batch.labels), 0.8, 0.025);
                double expected = 0;
                double variance = 0;
                double labels = 0;
                for (std::size_t s = 0; s != logits.size(); ++s) {
                    const double p = 1 / (1 + std::exp(-generator.logits()[s]));
                    expected += p;
                    variance += p * (1 - p);
                    labels += static_cast<double>(batch.labels[s]);
                }
                EXPECT_NEAR(labels, expected, 4.5 * std::sqrt(variance));
                EXPECT_NEAR(labels / 20000, 0.3, 0.1);
            }
        }
    }
}

TEST(Generator, WithoutSignalNothingCanBeLearned) {
    ClickGenerator generator{{.rows = {100}, .bias = 0, .signal = 0}};
    ClickBatch batch;
    generator.generate(0, 20000, batch);
    for (const double logit : generator.logits())
        ASSERT_EQ(logit, 0);
    const auto clicks = std::count(batch.labels.begin(), batch.labels.end(), 1.0F);
    EXPECT_TRUE(clicks > 9650 && clicks < 10350) << clicks;
}

TEST(Generator, SeedsNameDataSets) {
    GeneratorOptions options = small();
    ClickGenerator one{options};
    options.seed = 2;
    ClickGenerator two{options};
    EXPECT_NE(generate(one, 0, 10), generate(two, 0, 10));
    EXPECT_NE(one.effect(0, 0), two.effect(0, 0));
}

TEST(Generator, TakesNoFeaturesAndNoDenseColumns) {
    ClickBatch batch;
    ClickGenerator{{.rows = {}, .dense_columns = 0}}.generate(0, 5, batch);
    EXPECT_EQ(batch.samples(), 5);
    EXPECT_TRUE(batch.dense.empty());
    EXPECT_TRUE(batch.ids.values.empty());
}

TEST(Generator, RefusesOptionsThatMakeNoSense) {
    const auto error = [](const GeneratorOptions& options) { return bad_input([&] { ClickGenerator{options}; }); };
    EXPECT_EQ(error({.rows = {5, 0}}), "a Zipf distribution over 0 rows: give at least 1");
    EXPECT_EQ(error({.rows = {5}, .bags = {{-1, 2}}}), "bags of -1 to 2 ids: give 0 <= smallest <= largest");
    EXPECT_EQ(error({.rows = {5}, .bags = {{3, 2}}}), "bags of 3 to 2 ids: give 0 <= smallest <= largest");
    const std::string negative = "a negative number of dense columns or samples";
    EXPECT_EQ(error({.rows = {5}, .dense_columns = -1}), negative);
    EXPECT_EQ(error({.rows = {5}, .samples = -1}), negative);
    EXPECT_EQ(error({.rows = {5}, .first = -1}), negative);
    const std::string finite = "bias and signal: give finite numbers, the signal not negative";
    EXPECT_EQ(error({.rows = {5}, .bias = std::nan("")}), finite);
    EXPECT_EQ(error({.rows = {5}, .signal = -1}), finite);
    EXPECT_EQ(error({.rows = {5}, .signal = std::nan("")}), finite);
    EXPECT_EQ(error({.rows = {5}, .slice = {.batch = 0}}), "a batch of 0 samples: give at least 1");
}

}  // namespace
}  // namespace shardwise_test
