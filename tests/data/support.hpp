// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <xxhash.h>
#include <zlib.h>

#include "shardwise/core/error.hpp"
#include "shardwise/data/batch.hpp"
#include "shardwise/data/slice.hpp"

/// \file
/// Files, random click logs, and a second, naive way to read them.

namespace shardwise_test {

/// A folder of its own, removed at the end.
class Folder {
  public:
    Folder() {
        std::string pattern = (std::filesystem::temp_directory_path() / "shardwise_data_XXXXXX").string();
        if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error{"no temporary folder"};
        path_ = pattern;
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    ~Folder() { std::filesystem::remove_all(path_); }

    /// Writes a file; returns its path.
    std::string write(const std::string& name, const std::string& content) const {
        auto file = (path_ / name).string();
        std::ofstream{file, std::ios::binary} << content;
        return file;
    }
    [[nodiscard]] std::string path() const { return path_.string(); }

  private:
    std::filesystem::path path_;
};

/// One gzip member.
inline std::string gzip(const std::string& plain) {
    z_stream stream{};
    if (deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) throw std::bad_alloc{};
    std::string packed(deflateBound(&stream, plain.size()) + 64, '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(plain.data()));
    stream.avail_in = static_cast<uInt>(plain.size());
    stream.next_out = reinterpret_cast<Bytef*>(packed.data());
    stream.avail_out = static_cast<uInt>(packed.size());
    EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
    packed.resize(stream.total_out);
    deflateEnd(&stream);
    return packed;
}

/// The bytes of numbers as they lie in memory.
template <class T>
std::string bytes_of(const std::vector<T>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

/// A .npy file, byte for byte as numpy.save writes it; the versions above 1 as numpy.lib.format.write_array does.
inline std::string npy_file(const std::string& dtype, const std::vector<std::int64_t>& shape, const std::string& data,
                            int version = 1, bool fortran = false, std::size_t alignment = 64) {
    std::string sizes;
    for (const std::int64_t size : shape)
        sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
    std::string header = "{'descr': '" + dtype + "', 'fortran_order': " + (fortran ? "True" : "False") +
                         ", 'shape': (" + sizes + (shape.size() == 1 ? ",), }" : "), }");
    const std::size_t start = version == 1 ? 10 : 12;
    while ((start + header.size() + 1) % alignment != 0)
        header += ' ';
    header += '\n';
    std::string file = "\x93NUMPY";
    file += static_cast<char>(version);
    file += '\0';
    for (std::size_t byte = 8; byte != start; ++byte)
        file += static_cast<char>(header.size() >> (8 * (byte - 8)) & 0xff);
    return file + header + data;
}

using Columns = std::vector<std::string>;

inline std::string join(const Columns& columns) {
    std::string line;
    for (std::size_t i = 0; i != columns.size(); ++i)
        line += (i == 0 ? "" : "\t") + columns[i];
    return line;
}

/// A valid line with values of all lengths, missing ones and negative ones.
inline Columns random_columns(std::mt19937_64& random) {
    const auto below = [&](std::uint64_t n) { return random() % n; };
    Columns columns = {below(4) == 0 ? "1" : "0"};
    for (int i = 0; i != 13; ++i) {
        if (below(5) == 0) {
            columns.emplace_back();
            continue;
        }
        std::uint64_t limit = 10;
        for (auto digits = below(18); digits != 0; --digits)
            limit *= 10;
        columns.push_back((below(8) == 0 ? "-" : "") + std::to_string(below(limit)));
    }
    for (int f = 0; f != 26; ++f) {
        std::string text;
        for (auto digits = below(4) == 0 ? below(9) : 8; digits != 0; --digits)
            text += "0123456789abcdefABCDEF"[below(22)];
        columns.push_back(text);
    }
    return columns;
}

inline std::vector<Columns> random_lines(std::size_t count, std::uint64_t seed) {
    std::mt19937_64 random{seed};
    std::vector<Columns> lines;
    for (std::size_t i = 0; i != count; ++i)
        lines.push_back(random_columns(random));
    return lines;
}

inline std::string text_of(const std::vector<Columns>& lines, const std::string& end = "\n") {
    std::string text;
    for (const auto& line : lines)
        text += join(line) + end;
    return text;
}

/// A sample as a batch holds it.
struct Sample {
    float label = 0;
    std::vector<float> dense;
    std::vector<std::int64_t> ids;
    bool operator==(const Sample&) const = default;
};

/// What a line means, read the slow way.
inline Sample naive_sample(const Columns& columns, const std::vector<std::int64_t>& rows) {
    Sample sample{.label = std::stof(columns.at(0)), .dense = {}, .ids = {}};
    for (std::size_t i = 1; i != 14; ++i) {
        const double x = columns.at(i).empty() ? 0 : static_cast<double>(std::stoll(columns.at(i)));
        sample.dense.push_back(static_cast<float>(x < 0 ? 0.0 : std::log1p(x)));
    }
    for (std::size_t f = 0; f != 26; ++f) {
        const std::string& text = columns.at(14 + f);
        std::uint64_t hash = XXH64(nullptr, 0, f);
        if (!text.empty()) {
            const std::uint64_t value = std::stoull(text, nullptr, 16);
            std::string bytes;
            for (int b = 0; b != 4; ++b)
                bytes += static_cast<char>(value >> (8 * b) & 0xff);
            hash = XXH64(bytes.data(), 4, f);
        }
        sample.ids.push_back(
            static_cast<std::int64_t>(hash % static_cast<std::uint64_t>(rows.at(rows.size() == 1 ? 0 : f))));
    }
    return sample;
}

inline std::vector<Sample> naive_samples(const std::vector<Columns>& lines, const std::vector<std::int64_t>& rows) {
    std::vector<Sample> samples;
    for (const auto& line : lines)
        samples.push_back(naive_sample(line, rows));
    return samples;
}

/// The lines of a file, split the slow way.
inline std::vector<Columns> naive_lines(const std::string& path) {
    std::ifstream file{path};
    std::vector<Columns> lines;
    for (std::string line; std::getline(file, line);) {
        Columns columns{""};
        for (const char c : line) {
            if (c == '\t')
                columns.emplace_back();
            else
                columns.back() += c;
        }
        lines.push_back(columns);
    }
    return lines;
}

/// Takes a batch of one id a bag apart, after checking that its parts fit.
inline std::vector<Sample> samples_of(const shardwise::ClickBatch& batch) {
    batch.ids.view().validate();
    EXPECT_TRUE(batch.ids.view().single());
    EXPECT_EQ(batch.labels.size(), static_cast<std::size_t>(batch.samples()));
    EXPECT_EQ(batch.dense.size(), static_cast<std::size_t>(batch.samples() * batch.dense_columns));
    std::vector<Sample> samples;
    const auto dense = batch.dense_view();
    for (std::int64_t s = 0; s != batch.samples(); ++s) {
        Sample sample{.label = batch.labels[static_cast<std::size_t>(s)], .dense = {}, .ids = {}};
        sample.dense.assign(dense.row(s), dense.row(s) + dense.columns());
        for (std::int64_t f = 0; f != batch.ids.features; ++f)
            sample.ids.push_back(batch.ids.values[static_cast<std::size_t>(f * batch.samples() + s)]);
        samples.push_back(sample);
    }
    return samples;
}

/// All batches that a source has left.
template <class Source>
std::vector<std::vector<Sample>> drain(Source& source) {
    std::vector<std::vector<Sample>> batches;
    for (shardwise::ClickBatch batch; source.next(batch);)
        batches.push_back(samples_of(batch));
    return batches;
}

inline std::vector<Sample> concatenate(const std::vector<std::vector<Sample>>& batches) {
    std::vector<Sample> samples;
    for (const auto& batch : batches)
        samples.insert(samples.end(), batch.begin(), batch.end());
    return samples;
}

/// The text of the BadInput that `action` throws; a failure and nothing when it throws none.
template <class Action>
std::string bad_input(Action&& action) {
    try {
        action();
    } catch (const shardwise::BadInput& error) {
        EXPECT_EQ(error.exit_status(), 2);
        return error.what();
    }
    ADD_FAILURE() << "no BadInput";
    return {};
}

/// A reader writes into the batch that it is given: its memory stays, pass after pass.
template <class Reader>
void expect_batches_used_again(Reader& reader) {
    shardwise::ClickBatch batch;
    batch.ids.lengths = {1, 2, 3};  // whatever was there before
    batch.ids.weights = {1};
    ASSERT_TRUE(reader.next(batch));
    samples_of(batch);
    const auto* ids = batch.ids.values.data();
    const auto* dense = batch.dense.data();
    for (int pass = 0; pass != 2; ++pass) {
        while (reader.next(batch)) {
        }
        reader.rewind();
        ASSERT_TRUE(reader.next(batch));
        EXPECT_EQ(batch.ids.values.data(), ids);
        EXPECT_EQ(batch.dense.data(), dense);
    }
}

/// Of 60 samples in batches of 4 on 3 ranks, sample 30 + bad is wrong: its rank says so, again and again, and the
/// others read all of theirs. \param make  makes the reader of a slice
template <class Make>
void expect_owner_names(std::size_t bad, const std::string& expected, const Make& make) {
    const int ranks = 3;
    const std::int64_t batch = 4;
    const std::int64_t wrong = 30 + static_cast<std::int64_t>(bad);
    for (int rank = 0; rank != ranks; ++rank) {
        auto reader = make(shardwise::Slice{.batch = batch, .rank = rank, .ranks = ranks});
        if (rank != wrong / batch % ranks) {
            EXPECT_EQ(drain(reader).size(), 5U);
            continue;
        }
        shardwise::ClickBatch clicks;
        for (std::int64_t step = 0; step != wrong / (batch * ranks); ++step)
            ASSERT_TRUE(reader.next(clicks));
        EXPECT_EQ(bad_input([&] { reader.next(clicks); }), expected);
        EXPECT_EQ(bad_input([&] { reader.next(clicks); }), expected);
        reader.rewind();
        EXPECT_EQ(bad_input([&] { drain(reader); }), expected);
    }
}

}  // namespace shardwise_test
