// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/data/batch.hpp"
#include "shardwise/data/criteo_line.hpp"
#include "shardwise/data/criteo_tables.hpp"
#include "shardwise/data/npy.hpp"
#include "shardwise/data/slice.hpp"

/// \file
/// Batches from the numpy files that TorchRec's Criteo preprocessing writes.

namespace shardwise::inline SHARDWISE_ABI {

/// The three files of a day of clicks, of as many rows each.
struct NumpyCriteoDay {
    std::string dense;   ///< float32 (samples, 13)
    std::string sparse;  ///< int32 (samples, 26)
    std::string labels;  ///< int32 (samples, 1)
};

/// Finds the days among files named as TorchRec names them: `day_0_dense.npy`, `day_0_sparse.npy` and
/// `day_0_labels.npy` belong together; `day_0_sparse_contig_freq.npy` is a sparse file, too.
/// \param files  in any order \returns the days, in the order of their first files
/// \throws BadInput when a name is none of these, or a day has not one file of each kind
[[nodiscard]] inline std::vector<NumpyCriteoDay> numpy_criteo_days(const std::vector<std::string>& files) {
    static constexpr std::array<std::string_view, 3> kinds = {"_dense", "_sparse", "_labels"};
    std::vector<std::string> names;  // what stands before the kind
    std::vector<std::array<std::string, 3>> found;
    for (const std::string& file : files) {
        std::size_t kind = kinds.size();
        std::size_t at = 0;
        for (std::size_t k = 0; k != kinds.size(); ++k) {
            const std::size_t here = file.rfind(kinds[k]);
            if (here == std::string::npos || file.find('/', here) != std::string::npos) continue;
            const char next = here + kinds[k].size() < file.size() ? file[here + kinds[k].size()] : '\0';
            if ((next == '.' || next == '_') && here >= at) {
                kind = k;
                at = here;
            }
        }
        if (kind == kinds.size() || !file.ends_with(".npy"))
            throw BadInput{
                concat({file, ": expected a name such as day_0_dense.npy, day_0_sparse.npy or day_0_labels.npy"})};
        const std::string name = file.substr(0, at);
        const auto day = static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
        if (day == names.size()) {
            names.push_back(name);
            found.emplace_back();
        }
        if (!found[day][kind].empty())
            throw BadInput{
                concat({file, " and ", found[day][kind], " are files of one kind and day: give one of them"})};
        found[day][kind] = file;
    }
    std::vector<NumpyCriteoDay> days;
    for (std::size_t day = 0; day != names.size(); ++day) {
        for (std::size_t k = 0; k != kinds.size(); ++k)
            if (found[day][k].empty())
                throw BadInput{concat(
                    {names[day], ": ", names[day], kinds[k], ".npy is not among the files: give all three of a day"})};
        days.push_back({.dense = found[day][0], .sparse = found[day][1], .labels = found[day][2]});
    }
    return days;
}

/// What a NumpyCriteoReader reads.
struct NumpyCriteoOptions {
    std::vector<NumpyCriteoDay> days = {};  ///< read one after the other
    std::vector<std::int64_t> rows = {};    ///< rows of each of the 26 tables, or one number for all
    Slice slice = {};                       ///< the batch size, and which rank's batches
};

/// A source of batches from the numpy files that TorchRec's `npy_preproc_criteo.py` and the scripts after it write.
///
/// dense: taken as it is; TorchRec has made it log(x + 3). ids: the number in the file modulo the table's rows, as
/// TorchRec's `hashes` and numpy's `%` do it: rounded down, so that -1 is the last row. Categories above 7fffffff are
/// negative in these files. Ranks share the samples as Slice says; each reads its own rows and nothing else, and
/// reports only errors in these. Not collective, not thread safe.
///
/// Memory: 104 KiB, and the batch. Cost: three reads a 1024 samples; the three files of one day are open.
class NumpyCriteoReader {
  public:
    /// Reads the headers of all files. \throws BadInput when a file is not what NumpyCriteoDay says, those of a day
    /// have different numbers of rows, there is no sample, the number of rows of tables is neither 1 nor 26 or not
    /// positive, or the slice is not valid
    explicit NumpyCriteoReader(NumpyCriteoOptions options) : slice_{options.slice}, days_{std::move(options.days)} {
        slice_.validate();
        rows_ = criteo_table_rows(options.rows);
        if (days_.empty()) throw BadInput{"no file to read: give the three of a day at least"};
        for (const NumpyCriteoDay& day : days_)
            ends_.push_back(samples() + Files{day}.labels.rows());
        if (samples() == 0) throw BadInput{concat({days_.back().labels, ": no samples: every file is empty"})};
    }

    /// The number of samples of all days and ranks.
    [[nodiscard]] std::int64_t samples() const noexcept { return ends_.empty() ? 0 : ends_.back(); }

    /// Reads this rank's next batch; it may be empty. \returns false at the end, on every rank after as many batches
    /// \throws BadInput naming file, row, column and value. Afterwards next() throws the same until rewind()
    bool next(ClickBatch& batch) {
        const std::int64_t left = samples() - position_;
        const std::int64_t size = slice_.share(left);
        batch.resize_single(size, criteo_integers, criteo_categories);
        const std::int64_t first = position_ + slice_.before();
        for (std::int64_t done = 0; done != size;) {
            const auto day =
                static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), first + done) - ends_.begin());
            open(day);
            const std::int64_t row = first + done - (day == 0 ? 0 : ends_[day - 1]);
            const std::int64_t count = std::min({chunk, size - done, ends_[day] - first - done});
            read_dense(row, count, batch.dense.data() + done * criteo_integers);
            read_ids(row, count, batch.ids.values.data() + done, size);
            read_labels(row, count, batch.labels.data() + done);
            done += count;
        }
        position_ += std::min(slice_.global_batch(), left);
        return left != 0;
    }

    /// Back to the first sample.
    void rewind() noexcept { position_ = 0; }

  private:
    static constexpr std::int64_t chunk = 1024;  // samples read at once

    // The files of a day, open.
    struct Files {
        explicit Files(const NumpyCriteoDay& day)
            : dense{day.dense, criteo_integers}, sparse{day.sparse, criteo_categories}, labels{day.labels, 1} {
            if (dense.rows() != sparse.rows() || dense.rows() != labels.rows())
                throw BadInput{concat({day.dense, " has ", dense.rows(), " rows, ", day.sparse, " ", sparse.rows(),
                                       " and ", day.labels, " ", labels.rows(), ": give the three files of one day"})};
        }
        NpyMatrix<float> dense;
        NpyMatrix<std::int32_t> sparse;
        NpyMatrix<std::int32_t> labels;
    };

    void open(std::size_t day) {
        if (files_ && open_ == day) return;
        files_.reset();
        files_ = std::make_unique<Files>(days_[day]);
        open_ = day;
    }

    void read_dense(std::int64_t row, std::int64_t count, float* to) const {
        files_->dense.read(row, count, to);
        // Zero times what is finite is zero; times infinity, or what is not a number, it is not.
        const std::int64_t values = count * criteo_integers;
        bool finite = true;
        for (std::int64_t i = 0; i != values; ++i)
            finite = finite & (to[i] * 0 == 0);
        if (finite) [[likely]]
            return;
        const auto i = std::find_if_not(to, to + values, [](float x) { return std::isfinite(x); }) - to;
        throw BadInput{concat({files_->dense.path(), ", row ", row + i / criteo_integers, " (from 0), ",
                               criteo_column_name(static_cast<int>(i % criteo_integers) + 2), ": ", to[i],
                               ", expected a finite number: log(x + 3) needs integers x above -3"})};
    }

    // The ids of feature f go to `to + f * stride`.
    void read_ids(std::int64_t row, std::int64_t count, std::int64_t* to, std::int64_t stride) {
        buffer_.resize(static_cast<std::size_t>(chunk * criteo_categories));
        files_->sparse.read(row, count, buffer_.data());
        for (std::size_t f = 0; f != criteo_categories; ++f, to += stride) {
            const std::int64_t rows = rows_[f];
            const bool wide = rows > std::numeric_limits<std::int32_t>::max();
            const std::int32_t divisor = wide ? 1 : static_cast<std::int32_t>(rows);  // of 32 bits: much faster
            const std::int32_t* value = buffer_.data() + f;
            for (std::int64_t s = 0; s != count; ++s, value += criteo_categories) {
                const std::int64_t rest = wide ? *value : *value % divisor;
                to[s] = rest < 0 ? rest + rows : rest;
            }
        }
    }

    void read_labels(std::int64_t row, std::int64_t count, float* to) {
        files_->labels.read(row, count, buffer_.data());
        for (std::int64_t s = 0; s != count; ++s) {
            const std::int32_t label = buffer_[static_cast<std::size_t>(s)];
            if (label != 0 && label != 1) [[unlikely]]
                throw BadInput{concat(
                    {files_->labels.path(), ", row ", row + s, " (from 0): ", label, ", expected a label of 0 or 1"})};
            to[s] = static_cast<float>(label);
        }
    }

    Slice slice_;
    std::vector<NumpyCriteoDay> days_;
    std::vector<std::int64_t> ends_;  // (days) samples of a day and those before it
    std::array<std::int64_t, criteo_categories> rows_{};
    std::vector<std::int32_t> buffer_;
    std::unique_ptr<Files> files_;
    std::size_t open_ = 0;       // the day of files_
    std::int64_t position_ = 0;  // first sample of the next global batch; stays where a sample is wrong
};

}  // namespace shardwise::inline SHARDWISE_ABI
