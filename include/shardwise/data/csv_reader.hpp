// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <xxhash.h>

#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/data/batch.hpp"
#include "shardwise/data/csv_fields.hpp"
#include "shardwise/data/csv_schema.hpp"
#include "shardwise/data/slice.hpp"
#include "shardwise/data/time_text.hpp"

/// \file
/// Batches from CSV and TSV files that a schema describes.

namespace shardwise::inline SHARDWISE_ABI {

/// What a CsvReader reads.
struct CsvOptions {
    std::vector<std::string> files = {};  ///< read one after the other; plain or gzip, by their content
    CsvSchema schema = {};
    Slice slice = {};                                  ///< the batch size, and which rank's batches
    std::size_t block_bytes = std::size_t{256} << 10;  ///< bytes read at once
};

/// A source of batches from CSV and TSV files. A record is a sample; its features are in the order of
/// CsvSchema::tables(). Batches have lengths where the schema has bags.
///
/// Ranks share the files as Slice says; each reads all of them, but takes only its own records apart, and reports only
/// errors in these. Not collective, not thread safe. Memory: one block, one record, the batch and its ids once more.
class CsvReader {
  public:
    /// \throws BadInput when there is no file or one that cannot be read, or the schema or the slice is not valid
    explicit CsvReader(CsvOptions options)
        : schema_{validated(std::move(options.schema))},
          slice_{options.slice},
          fields_{std::move(options.files), schema_.format, schema_.columns(), options.block_bytes},
          bags_{schema_.has_bags()} {
        slice_.validate();
        for (const std::size_t f : schema_.order()) {
            const CsvCategory& category = schema_.categorical[f];
            Feature feature{.what = &category, .field = 1 + schema_.dense.size() + f};
            feature.rows = static_cast<std::uint64_t>(schema_.rows_of(category));
            if (category.when_missing() == CsvMissing::own_id) feature.missing = hashed({}, feature.rows);
            if (category.when_missing() == CsvMissing::row) feature.missing = category.missing_row;
            features_.push_back(std::move(feature));
        }
    }

    [[nodiscard]] const CsvSchema& schema() const noexcept { return schema_; }

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
        fields_.rewind();
        failure_ = nullptr;
        pending_ = 0;
        any_ = false;
    }

  private:
    struct Feature {
        const CsvCategory* what = nullptr;  // in schema_, whose list stays where it is when this is moved
        std::size_t field = 0;
        std::uint64_t rows = 0;
        std::int64_t missing = 0;                // row of a missing value, where it is one
        std::vector<std::int64_t> ids = {};      // of the batch
        std::vector<std::int32_t> lengths = {};  // of its bags, where batches have lengths
    };

    static CsvSchema validated(CsvSchema schema) {
        schema.validate();
        return schema;
    }

    bool read(ClickBatch& batch) {
        fields_.skip(pending_);
        pending_ = slice_.after();
        const std::int64_t before = fields_.skip(slice_.before());
        batch.labels.clear();
        batch.dense.clear();
        for (Feature& feature : features_) {
            feature.ids.clear();
            feature.lengths.clear();
        }
        while (std::ssize(batch.labels) < slice_.batch && fields_.next())
            store(batch);
        gather(batch);
        const bool found = before + batch.samples() != 0;
        if (!found && !any_) throw BadInput{concat({fields_.file(), ": no samples: every file is empty"})};
        any_ = true;
        return found;
    }

    void store(ClickBatch& batch) {
        batch.labels.push_back(label());
        for (std::size_t d = 0; d != schema_.dense.size(); ++d)
            batch.dense.push_back(dense(schema_.dense[d], 1 + d));
        for (Feature& feature : features_) {
            const auto before = feature.ids.size();
            add_ids(feature);
            if (bags_) feature.lengths.push_back(static_cast<std::int32_t>(feature.ids.size() - before));
        }
    }

    /// The ids of all features, one feature's behind the other's.
    void gather(ClickBatch& batch) const {
        batch.dense_columns = std::ssize(schema_.dense);
        JaggedBatch<std::int64_t>& ids = batch.ids;
        ids.samples = std::ssize(batch.labels);
        ids.features = std::ssize(features_);
        ids.values.clear();
        ids.lengths.clear();
        ids.weights.clear();
        for (const Feature& feature : features_) {
            ids.values.insert(ids.values.end(), feature.ids.begin(), feature.ids.end());
            ids.lengths.insert(ids.lengths.end(), feature.lengths.begin(), feature.lengths.end());
        }
    }

    /// A finite number. \returns nothing where the text is none
    [[nodiscard]] static std::optional<double> number(std::string_view text) {
        double x = 0;
        const auto [stop, status] = std::from_chars(text.data(), text.data() + text.size(), x);
        if (stop != text.data() + text.size() || status == std::errc::invalid_argument) return std::nullopt;
        if (status != std::errc{}) x = std::strtod(std::string{text}.c_str(), nullptr);  // too large, or too near 0
        if (!std::isfinite(x)) return std::nullopt;
        return x;
    }

    [[nodiscard]] float label() const {
        const CsvLabel& what = schema_.label;
        const std::string_view text = fields_[0];
        if (fields_.is_missing(text)) fields_.fail(0, text, "a missing value: every sample has a label");
        if (!what.positive.empty()) {
            const auto is_in = [&](const auto& values) {
                return std::find(values.begin(), values.end(), text) != values.end();
            };
            if (is_in(what.positive)) return 1;
            if (!what.negative.empty() && !is_in(what.negative))
                fields_.fail(0, text, "expected one of the label's positive or negative values");
            return 0;
        }
        const std::optional<double> x = number(text);
        if (what.at_least) {
            if (!x) fields_.fail(0, text, "expected a number");
            return *x >= *what.at_least ? 1.0F : 0.0F;
        }
        if (!x || (*x != 0 && *x != 1)) fields_.fail(0, text, "expected a label of 0 or 1");
        return static_cast<float>(*x);
    }

    [[nodiscard]] float dense(const CsvDense& what, std::size_t field) const {
        const std::string_view text = fields_[field];
        if (fields_.is_missing(text)) {
            if (!what.missing) fields_.fail(field, text, "a missing value, which the schema says is an error");
            return *what.missing;
        }
        if (!what.time.form.empty()) return static_cast<float>(part_of(what.time, field));
        const std::optional<double> x = number(text);
        const auto value = static_cast<float>(what.log1p ? std::log1p(std::max(x.value_or(0), 0.0)) : x.value_or(0));
        if (!x || !std::isfinite(value)) fields_.fail(field, text, "expected a number");
        return value;
    }

    [[nodiscard]] std::int64_t part_of(const CsvTime& time, std::size_t field) const {
        const std::optional<std::int64_t> seconds = parse_time(fields_[field], time.form);
        if (!seconds) fields_.fail(field, fields_[field], concat({"expected a time of the form ", time.form}));
        return time_part(*seconds, time.part);
    }

    [[nodiscard]] std::int64_t hashed(std::string_view value, std::uint64_t rows) const noexcept {
        return static_cast<std::int64_t>(XXH64(value.data(), value.size(), schema_.seed) % rows);
    }

    /// The ids of the feature's bag in this record.
    void add_ids(Feature& feature) const {
        const CsvCategory& what = *feature.what;
        std::string_view text = fields_[feature.field];
        if (!fields_.is_missing(text)) {
            if (what.split == '\0') {
                feature.ids.push_back(what.time.form.empty() ? id_of(feature, text)
                                                             : part_of(what.time, feature.field));
                return;
            }
            const auto before = feature.ids.size();
            for (bool more = true; more;) {
                const std::size_t stop = text.find(what.split);
                more = stop != std::string_view::npos;
                if (const std::string_view piece = text.substr(0, stop); !piece.empty() && !fields_.is_missing(piece))
                    feature.ids.push_back(id_of(feature, piece));
                if (more) text.remove_prefix(stop + 1);
            }
            if (feature.ids.size() != before) return;
        }
        switch (what.when_missing()) {
            case CsvMissing::empty:
                return;
            case CsvMissing::error:
                fields_.fail(feature.field, fields_[feature.field],
                             "a missing value, which is an error unless the schema says what it becomes (\"missing\")");
            default:
                feature.ids.push_back(feature.missing);
        }
    }

    [[nodiscard]] std::int64_t id_of(const Feature& feature, std::string_view value) const {
        if (feature.what->ids == CsvIds::hash) return hashed(value, feature.rows);
        const auto rows = static_cast<std::int64_t>(feature.rows);
        std::int64_t id = 0;
        const auto [stop, status] = std::from_chars(value.data(), value.data() + value.size(), id);
        const bool whole = status == std::errc{} && stop == value.data() + value.size();
        if (feature.what->ids == CsvIds::modulo) {
            if (!whole) fields_.fail(feature.field, value, "expected a whole number of 64 bits");
            return (id % rows + rows) % rows;
        }
        if (!whole || id < 0 || id >= rows)
            fields_.fail(feature.field, value,
                         concat({"expected a row of table ", shardwise::quoted(feature.what->table_name()),
                                 ", a whole number from 0 to ", rows - 1}));
        return id;
    }

    CsvSchema schema_;
    Slice slice_;
    CsvFields fields_;
    bool bags_;
    std::vector<Feature> features_;
    std::int64_t pending_ = 0;  // records of higher ranks that are not skipped yet
    bool any_ = false;          // there was a sample
    std::exception_ptr failure_;
};

}  // namespace shardwise::inline SHARDWISE_ABI
