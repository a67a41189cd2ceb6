// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "shardwise/checkpoint/checkpoint.hpp"
#include "shardwise/checkpoint/checksum.hpp"
#include "shardwise/checkpoint/finite_weights.hpp"
#include "shardwise/checkpoint/layer_shards.hpp"
#include "shardwise/checkpoint/safetensors.hpp"
#include "shardwise/checkpoint/shard_rows.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"

/// \file
/// One rank's part of a sharded checkpoint: a safetensors file of its shards as they lie.
///
/// Tensors of shard i, of a table t: `tables/<t>/<i>/weight` (rows, columns), `.../element_state` (rows, slots,
/// columns),
/// `.../row_state` (rows, slots) where the shard begins at column 0, and `.../rows` (rows,), the numbers of its rows,
/// unless these are a sequence first, first + stride, ... In rank 0's part also `steps`, the numbers and the dense
/// tensors.

namespace shardwise::inline SHARDWISE_ABI {

/// A shard as a part holds it, rows in ascending order.
struct PartShard {
    std::string table;
    int first_column = 0;
    int columns = 0;
    std::int64_t rows = 0;
    std::int64_t first = 0;   ///< number of the first row
    std::int64_t stride = 0;  ///< from a row to the next; 0: the part lists the numbers

    friend bool operator==(const PartShard&, const PartShard&) = default;
};

/// What a manifest says of a part.
struct PartInfo {
    std::string file;  ///< relative to the manifest
    std::int64_t bytes = 0;
    std::string header;                            ///< checksum of what stands before the data
    std::map<std::string, std::string> checksums;  ///< (tensor)
    std::vector<PartShard> shards;
};

namespace detail {

inline constexpr const char* steps_name = "steps";
inline constexpr std::size_t sum_chunk = std::size_t{1} << 20;  // bytes: what is summed at once

[[nodiscard]] inline std::string part_tensor(const PartShard& shard, std::size_t number, const char* what) {
    return concat({"tables/", shard.table, "/", number, "/", what});
}

/// Writes the tensors of a part one by one, and sums them.
class PartWriter {
  public:
    PartWriter(const std::string& path, const std::string& file) : writer_{path} { info_.file = file; }

    void declare(const std::string& name, TensorType type, std::vector<std::int64_t> shape) {
        writer_.declare(name, type, std::move(shape));
        names_.push_back(name);
    }
    void begin() {
        const std::string header = writer_.begin();
        info_.header = Checksum{}.add(std::as_bytes(std::span{header})).text();
        info_.bytes = static_cast<std::int64_t>(header.size());
    }
    /// The next tensor, in the order of declaration. \param fill  called with `put(span)`, which it gives the data
    template <class Fill>
    void tensor(Fill fill) {
        Checksum sum;
        fill([&](auto values) {
            const auto bytes = std::as_bytes(values);
            for (std::size_t at = 0; at < bytes.size(); at += sum_chunk) {  // summed while it is in the cache
                const auto piece = bytes.subspan(at, std::min(sum_chunk, bytes.size() - at));
                sum.add(piece);
                writer_.append(piece);
            }
            info_.bytes += static_cast<std::int64_t>(bytes.size());
        });
        info_.checksums[names_.at(info_.checksums.size())] = sum.text();
    }
    PartInfo end(std::vector<PartShard> shards) {
        writer_.end();
        info_.shards = std::move(shards);
        return std::move(info_);
    }

  private:
    SafetensorsWriter writer_;
    std::vector<std::string> names_;
    PartInfo info_;
};

/// \returns what is wrong with the dense tensors, or nothing
[[nodiscard]] inline std::string wrong_tensor(const std::string& path, const Checkpoint& checkpoint) {
    for (const DenseTensor& tensor : checkpoint.dense) {
        if (elements_of(tensor.shape) != std::ssize(tensor.values))
            return concat({path, ": tensor '", tensor.name, "' has shape ", shape_text(tensor.shape), " and ",
                           tensor.values.size(), " values: give as many as its shape says"});
    }
    return {};
}

/// A shard that a rank writes, and its rows in ascending order.
struct SavedShard {
    const TableShard* from;
    ShardRows rows;
    PartShard part;
};

/// What `layer` has here that no other rank has: of copies the first one.
[[nodiscard]] inline std::vector<SavedShard> saved_shards(const LayerShards& layer) {
    std::vector<SavedShard> all;
    for (const TableShard& shard : layer.shards) {
        const ShardView& view = shard.view;
        if (view.copy != 0 || view.dim == 0 || view.rows == 0) continue;
        SavedShard one{.from = &shard,
                       .rows = ShardRows{shard},
                       .part = {.table = layer.tables[static_cast<std::size_t>(view.table)].name,
                                .first_column = view.first_column,
                                .columns = view.dim,
                                .rows = view.rows}};
        one.part.first = one.rows.row(0);
        one.part.stride = view.rows > 1 ? one.rows.row(1) - one.part.first : 1;
        for (std::int64_t i = 2; one.part.stride != 0 && i < view.rows; ++i)
            if (one.rows.row(i) != one.part.first + i * one.part.stride) one.part.stride = 0;
        all.push_back(std::move(one));
    }
    return all;
}

/// Gives `put` the rows of an array in ascending order. \param width  floats a row
template <class Put>
void put_rows(const SavedShard& shard, const float* values, std::int64_t width, std::int64_t chunk_bytes, Put put) {
    const std::int64_t rows = shard.part.rows;
    if (shard.rows.ascending()) return put(std::span{values, static_cast<std::size_t>(rows * width)});
    const std::int64_t many = std::max<std::int64_t>(1, chunk_bytes / static_cast<std::int64_t>(sizeof(float)) / width);
    std::vector<float> chunk;
    for (std::int64_t first = 0; first < rows; first += many) {
        chunk.clear();
        for (std::int64_t i = first; i < std::min(rows, first + many); ++i) {
            const float* row = values + shard.rows.local(i) * width;
            chunk.insert(chunk.end(), row, row + width);
        }
        put(std::span<const float>{chunk});
    }
}
template <class Put>
void put_row_numbers(const SavedShard& shard, std::int64_t chunk_bytes, Put put) {
    std::vector<std::int64_t> chunk;
    const std::size_t many = std::max<std::size_t>(1, static_cast<std::size_t>(chunk_bytes) / sizeof(std::int64_t));
    for (std::int64_t first = 0; first < shard.part.rows;) {
        chunk.clear();
        for (; first < shard.part.rows && chunk.size() < many; ++first)
            chunk.push_back(shard.rows.row(first));
        put(std::span<const std::int64_t>{chunk});
    }
}

/// What a rank writes.
struct PartSource {
    const Checkpoint* checkpoint;
    std::optional<std::int64_t> steps;  ///< of the layer, where there is one
    bool first;                         ///< rank 0, which writes what all ranks have, too
};

/// Calls use(tensor name, type, shape, fill) for every tensor of a rank's part, in order.
template <class Use>
void for_each_part_tensor(const PartSource& source, const std::vector<SavedShard>& shards, Use use) {
    const Checkpoint& checkpoint = *source.checkpoint;
    const LayerShards& layer = checkpoint.layer;
    if (source.first) {
        const auto number = [&](const std::string& name, std::int64_t value) {
            use(name, TensorType::i64, std::vector<std::int64_t>{}, [value](auto put) {
                put(std::span<const std::int64_t>{&value, 1});
            });
        };
        if (source.steps) number(steps_name, *source.steps);
        for (const auto& [name, value] : checkpoint.numbers)
            number(name, value);
        for (const DenseTensor& tensor : checkpoint.dense)
            use(tensor.name, TensorType::f32, tensor.shape,
                [&](auto put) { put(std::span<const float>{tensor.values}); });
    }
    for (std::size_t i = 0; i < shards.size(); ++i) {
        const SavedShard& shard = shards[i];
        const ShardView& view = shard.from->view;
        const PartShard& part = shard.part;
        const auto name = [&](const char* what) { return part_tensor(part, i, what); };
        if (part.stride == 0)
            use(name("rows"), TensorType::i64, std::vector<std::int64_t>{part.rows},
                [&](auto put) { put_row_numbers(shard, checkpoint.chunk_bytes, put); });
        use(name("weight"), TensorType::f32, std::vector<std::int64_t>{part.rows, part.columns},
            [&](auto put) { put_rows(shard, view.weights, part.columns, checkpoint.chunk_bytes, put); });
        if (layer.element_slots != 0)
            use(name("element_state"), TensorType::f32,
                std::vector<std::int64_t>{part.rows, layer.element_slots, part.columns}, [&](auto put) {
                    put_rows(shard, view.element_state, std::int64_t{part.columns} * layer.element_slots,
                             checkpoint.chunk_bytes, put);
                });
        if (layer.row_slots != 0 && part.first_column == 0)
            use(name("row_state"), TensorType::f32, std::vector<std::int64_t>{part.rows, layer.row_slots},
                [&](auto put) { put_rows(shard, view.row_state, layer.row_slots, checkpoint.chunk_bytes, put); });
    }
}

/// Writes a rank's part. Not collective. Memory: a chunk, where rows do not lie in ascending order.
/// \param folder  of the manifest \param file  relative to it
/// \returns what the manifest says of it; without a file where there is nothing to write
/// \throws BadInput naming the file
[[nodiscard]] inline PartInfo write_part(const std::string& folder, const std::string& file, const PartSource& source) {
    const std::vector<SavedShard> shards = saved_shards(source.checkpoint->layer);
    if (!source.first && shards.empty()) return {};
    PartWriter writer{folder + "/" + file, file};
    for_each_part_tensor(source, shards, [&](const std::string& name, TensorType type, auto shape, auto&&) {
        writer.declare(name, type, std::move(shape));
    });
    writer.begin();
    for_each_part_tensor(source, shards,
                         [&](const std::string&, TensorType, auto&&, auto fill) { writer.tensor(fill); });
    std::vector<PartShard> parts;
    for (const SavedShard& shard : shards)
        parts.push_back(shard.part);
    return writer.end(std::move(parts));
}

/// The tensors of weights in a part that a load asks for.
[[nodiscard]] inline std::set<std::string> asked_weights(const PartInfo& info, const Checkpoint& checkpoint) {
    std::set<std::string> names;
    for (const DenseTensor& tensor : checkpoint.dense)
        if (!tensor.moment) names.insert(tensor.name);
    const auto& tables = checkpoint.layer.tables;
    for (std::size_t i = 0; i < info.shards.size(); ++i) {
        const PartShard& shard = info.shards[i];
        if (std::ranges::any_of(tables, [&](const TableConfig& table) { return table.name == shard.table; }))
            names.insert(part_tensor(shard, i, "weight"));
    }
    return names;
}

/// Reads all of a part, and compares it with what the manifest says. Not collective. Memory: 1 MiB.
/// \param weights  names of tensors, all of them finite
/// \throws BadInput naming the file and the tensor
inline void verify_part(const std::string& path, const PartInfo& info, const std::set<std::string>& weights) {
    SafetensorsReader reader{path};
    const auto damaged = [&](const std::string& what) {
        throw BadInput{concat({path, ": ", what, ": the file is damaged, or of another checkpoint"})};
    };
    if (reader.file_bytes() != info.bytes)
        damaged(concat({"it has ", reader.file_bytes(), " bytes, and its manifest says ", info.bytes}));
    std::vector<std::byte> chunk(sum_chunk);
    std::optional<NotFinite> bad;
    const auto sum_of = [&](std::int64_t first, std::int64_t bytes, bool finite) {
        Checksum sum;
        for (std::int64_t at = 0; at < bytes; at += std::ssize(chunk)) {
            const std::span piece{chunk.data(), static_cast<std::size_t>(std::min(std::ssize(chunk), bytes - at))};
            reader.read_bytes(first + at, piece);
            sum.add(piece);
            if (finite && !bad) bad = first_not_finite(piece, at / static_cast<std::int64_t>(sizeof(float)));
        }
        return sum.text();
    };
    if (sum_of(0, reader.header_bytes(), false) != info.header)
        damaged("its header has another checksum than its manifest says");
    for (const auto& [name, tensor] : reader.tensors()) {
        const auto expected = info.checksums.find(name);
        if (expected == info.checksums.end()) damaged(concat({"its manifest knows no tensor '", name, "'"}));
        const bool finite = tensor.type == TensorType::f32 && weights.contains(name);
        if (sum_of(reader.header_bytes() + tensor.begin, tensor.bytes, finite) != expected->second)
            damaged(concat({"tensor '", name, "' has another checksum than its manifest says"}));
        if (bad) refuse_weight(path, name, tensor.shape, *bad);
    }
    if (reader.tensors().size() != info.checksums.size()) damaged("it has fewer tensors than its manifest says");
}

}  // namespace detail

}  // namespace shardwise::inline SHARDWISE_ABI
