// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <xxhash.h>

#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/data/batch.hpp"
#include "shardwise/data/criteo_line.hpp"
#include "shardwise/data/criteo_tables.hpp"
#include "shardwise/data/lines.hpp"
#include "shardwise/data/slice.hpp"

/// \file
/// Batches from Criteo click logs (Kaggle and Terabyte), plain or gzip, streamed.

namespace shardwise::inline SHARDWISE_ABI {

/// The hash of a value of category `feature` (0 to 25): XXH64 of its four bytes, lowest first, with the feature as
/// seed. The same on every platform.
[[nodiscard]] inline std::uint64_t criteo_hash(std::uint32_t value, int feature) noexcept {
    const std::array<unsigned char, 4> bytes = {
        static_cast<unsigned char>(value), static_cast<unsigned char>(value >> 8),
        static_cast<unsigned char>(value >> 16), static_cast<unsigned char>(value >> 24)};
    return XXH64(bytes.data(), bytes.size(), static_cast<XXH64_hash_t>(feature));
}
/// The hash of a missing value of category `feature`: XXH64 of no bytes, with the feature as seed.
[[nodiscard]] inline std::uint64_t criteo_missing_hash(int feature) noexcept {
    return XXH64("", 0, static_cast<XXH64_hash_t>(feature));
}
/// What becomes of an integer column: log(1 + max(x, 0)).
[[nodiscard]] inline float criteo_dense(std::int64_t integer) noexcept {
    return static_cast<float>(std::log1p(static_cast<double>(std::max<std::int64_t>(integer, 0))));
}

/// What a CriteoReader reads.
struct CriteoOptions {
    std::vector<std::string> files = {};  ///< read one after the other; plain or gzip, by their content
    std::vector<std::int64_t> rows = {};  ///< rows of each of the 26 tables, or one number for all
    Slice slice = {};                     ///< the batch size, and which rank's batches
    std::size_t block_bytes = 256 << 10;  ///< bytes read at once
};

/// A source of batches from Criteo click logs: lines of 40 columns separated by tabs, a label (0 or 1), 13 integers
/// (possibly negative or missing) and 26 hexadecimal categories of 1 to 8 digits (possibly missing).
///
/// dense: log(1 + max(x, 0)), 0 where missing. ids: criteo_hash() (where missing, criteo_missing_hash()) modulo the
/// table's rows. Ranks share the files as Slice says; each reads all of them, but parses only its own lines, and
/// reports only errors in these. Not collective, not thread safe.
///
/// Memory: one block, one line, the batch. Cost: reads or skips batch * ranks lines a batch.
class CriteoReader {
  public:
    /// \throws BadInput when there is no file or one that cannot be read, the number of rows is neither 1 nor 26 or
    /// not positive, or the slice is not valid
    explicit CriteoReader(CriteoOptions options)
        : slice_{options.slice}, lines_{std::move(options.files), options.block_bytes} {
        slice_.validate();
        const auto rows = criteo_table_rows(options.rows);
        for (std::size_t f = 0; f != criteo_categories; ++f) {
            rows_[f] = static_cast<std::uint64_t>(rows[f]);
            missing_[f] = static_cast<std::int64_t>(criteo_missing_hash(static_cast<int>(f)) % rows_[f]);
        }
        for (std::size_t x = 0; x != small_dense_.size(); ++x)
            small_dense_[x] = shardwise::criteo_dense(static_cast<std::int64_t>(x));
    }

    /// Reads this rank's next batch; it may be empty. \returns false at the end, on every rank after as many batches
    /// \throws BadInput naming file, line, column and value. Afterwards next() throws the same until rewind()
    bool next(ClickBatch& batch) {
        if (failure_) std::rethrow_exception(failure_);
        try {
            return read(batch);
        } catch (...) {
            failure_ = std::current_exception();
            throw;
        }
    }

    /// Back to the first sample.
    void rewind() {
        lines_.rewind();
        failure_ = nullptr;
        pending_ = 0;
        any_ = false;
    }

  private:
    bool read(ClickBatch& batch) {
        lines_.skip(pending_);
        pending_ = slice_.after();
        const std::int64_t before = lines_.skip(slice_.before());
        const std::int64_t size = slice_.batch;
        batch.resize_single(size, criteo_integers, criteo_categories);
        std::int64_t samples = 0;
        LineReader::Line line;
        while (samples < size && lines_.next(line))
            store(batch, samples++, line);
        if (samples < size) shrink(batch, samples);
        const bool found = before + samples != 0;
        if (!found && !any_) throw BadInput{concat({lines_.file(), ": no samples: every file is empty"})};
        any_ = true;
        return found;
    }

    void store(ClickBatch& batch, std::int64_t sample, LineReader::Line text) {
        CriteoLine line;
        if (const int column = parse_criteo_line(text.begin, text.end, line); column != 0) [[unlikely]]
            throw BadInput{
                concat({lines_.file(), ", line ", lines_.line(), ": ",
                        criteo_line_error({text.begin, static_cast<std::size_t>(text.end - text.begin)}, column)})};
        batch.labels[static_cast<std::size_t>(sample)] = line.label;
        float* dense = batch.dense.data() + sample * criteo_integers;
        for (std::size_t i = 0; i != criteo_integers; ++i) {
            const auto x = static_cast<std::uint64_t>(std::max<std::int64_t>(line.integers[i], 0));
            dense[i] = x < small_dense_.size() ? small_dense_[x] : shardwise::criteo_dense(line.integers[i]);
        }
        std::int64_t* id = batch.ids.values.data() + sample;
        for (std::size_t f = 0; f != criteo_categories; ++f, id += slice_.batch) {
            const std::uint64_t hash = criteo_hash(line.values[f], static_cast<int>(f));
            *id = (line.missing >> f & 1) != 0 ? missing_[f] : static_cast<std::int64_t>(hash % rows_[f]);
        }
    }

    // The ids of feature f stand at f * batch: moves them to f * samples.
    void shrink(ClickBatch& batch, std::int64_t samples) const {
        std::int64_t* ids = batch.ids.values.data();
        for (std::int64_t f = 1; f != criteo_categories; ++f)
            std::copy_n(ids + f * slice_.batch, samples, ids + f * samples);
        batch.resize_single(samples, criteo_integers, criteo_categories);
    }

    Slice slice_;
    LineReader lines_;
    std::array<std::uint64_t, criteo_categories> rows_{};
    std::array<std::int64_t, criteo_categories> missing_{};  // ids of missing values
    std::array<float, 1024> small_dense_{};                  // criteo_dense() of the integers that are most frequent
    std::int64_t pending_ = 0;                               // lines of higher ranks that are not skipped yet
    bool any_ = false;                                       // there was a sample
    std::exception_ptr failure_;
};

}  // namespace shardwise::inline SHARDWISE_ABI
