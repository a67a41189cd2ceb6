// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "data.hpp"

#include <algorithm>
#include <fstream>
#include <string>

#include "shardwise/data/criteo.hpp"
#include "shardwise/data/csv_reader.hpp"
#include "shardwise/data/generator.hpp"
#include "shardwise/data/next_items.hpp"
#include "shardwise/data/numpy_criteo.hpp"

namespace train_dlrm {

namespace {

constexpr std::int64_t held_out = std::int64_t{1} << 40;  // generated test data starts here

/// Numpy files are known by their names. \throws BadInput when only some of the names are theirs
bool are_numpy(const std::vector<std::string>& names) {
    const auto npy = [](const std::string& name) { return name.ends_with(".npy"); };
    const auto other = std::find_if_not(names.begin(), names.end(), npy);
    const auto first = std::find_if(names.begin(), names.end(), npy);
    if (first != names.end() && other != names.end())
        throw sw::BadInput{*first + " is a numpy file and " + *other + " is none: give files of one kind"};
    return first != names.end();
}

std::unique_ptr<Loader> files(const std::vector<std::string>& names, const Options& o, const sw::Slice& slice) {
    if (o.csv != nullptr)
        return std::make_unique<Loader>(Source{std::make_unique<sw::CsvReader>(
            sw::CsvOptions{.files = names, .schema = *o.csv, .slice = slice, .block_bytes = std::size_t{256} << 10})});
    if (are_numpy(names))
        return std::make_unique<Loader>(Source{std::make_unique<sw::NumpyCriteoReader>(
            sw::NumpyCriteoOptions{.days = sw::numpy_criteo_days(names), .rows = o.rows, .slice = slice})});
    return std::make_unique<Loader>(Source{std::make_unique<sw::CriteoReader>(
        sw::CriteoOptions{.files = names, .rows = o.rows, .slice = slice, .block_bytes = std::size_t{256} << 10})});
}

std::unique_ptr<Loader> generated(const Options& o, std::int64_t first, std::int64_t samples, const sw::Slice& slice) {
    sw::GeneratorOptions g;
    g.rows = o.rows.size() == 1 ? std::vector<std::int64_t>(categories, o.rows[0]) : o.rows;
    g.exponent = o.zipf;
    g.bags = o.bags;
    g.dense_columns = dense_features;
    g.seed = o.data_seed.value_or(o.seed);
    g.groups = o.feature_groups;
    g.first = first;
    g.samples = samples;
    g.slice = slice;
    return std::make_unique<Loader>(Source{std::make_unique<sw::ClickGenerator>(std::move(g))});
}

std::unique_ptr<Loader> sequences(const Options& o, sw::NextItemOptions::Part part, const sw::Slice& slice) {
    return std::make_unique<Loader>(
        Source{std::make_unique<sw::NextItems>(next_items(*o.sequences, part, o.data_seed.value_or(o.seed), slice))});
}

}  // namespace

std::unique_ptr<Loader> training_data(const Options& o, int rank, int ranks) {
    const sw::Slice slice{.batch = o.batch, .rank = rank, .ranks = ranks};
    if (o.sequences) return sequences(o, sw::NextItemOptions::Part::train, slice);
    return o.data.empty() ? generated(o, 0, o.samples, slice) : files(o.data, o, slice);
}

std::unique_ptr<Loader> test_data(const Options& o, int rank, int ranks) {
    if (o.sequences) return sequences(o, sw::NextItemOptions::Part::test, {.batch = 64, .rank = rank, .ranks = ranks});
    const sw::Slice slice{.batch = std::max<std::int64_t>(o.batch, 256), .rank = rank, .ranks = ranks};
    if (!o.test.empty()) {
        if (o.csv == nullptr && are_numpy(o.test) != are_numpy(o.data))
            throw sw::BadInput{
                "--data and --test: numpy files and click logs have other dense values and ids; give files of one "
                "kind"};
        return files(o.test, o, slice);
    }
    if (!o.data.empty() || o.test_samples == 0) return nullptr;
    return generated(o, held_out, o.test_samples, slice);
}

double estimate_samples(const Options& o) {
    if (o.sequences)
        return static_cast<double>(std::ssize(o.sequences->histories->items) - o.sequences->histories->size());
    if (o.data.empty()) return static_cast<double>(o.samples);
    if (o.csv == nullptr && are_numpy(o.data))
        return static_cast<double>(
            sw::NumpyCriteoReader{{.days = sw::numpy_criteo_days(o.data), .rows = o.rows, .slice = {}}}.samples());
    double bytes = 0;
    double bytes_a_line = 0;
    std::string block(std::size_t{1} << 20, '\0');
    for (const std::string& name : o.data) {
        std::ifstream file{name, std::ios::binary};
        file.read(block.data(), static_cast<std::streamsize>(block.size()));
        const std::string_view head{block.data(), static_cast<std::size_t>(file.gcount())};
        if (head.starts_with("\x1f\x8b")) return 0;
        const auto lines = std::count(head.begin(), head.end(), '\n');
        if (lines == 0) return 0;
        bytes_a_line = static_cast<double>(head.size()) / static_cast<double>(lines);
        file.clear();
        file.seekg(0, std::ios::end);
        bytes += static_cast<double>(file.tellg());
    }
    return bytes / bytes_a_line;
}

}  // namespace train_dlrm
