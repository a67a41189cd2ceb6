// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "shardwise/checkpoint/asked_tensors.hpp"
#include "shardwise/checkpoint/checkpoint.hpp"
#include "shardwise/checkpoint/finite_weights.hpp"
#include "shardwise/checkpoint/layer_shards.hpp"
#include "shardwise/checkpoint/load_parts.hpp"
#include "shardwise/checkpoint/safetensors.hpp"
#include "shardwise/checkpoint/shard_rows.hpp"
#include "shardwise/comm/collectives.hpp"
#include "shardwise/comm/communicator_ref.hpp"
#include "shardwise/core/bytes.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"

/// \file
/// A model in one safetensors file, whatever its sharding and the number of ranks: every table reassembled. For runs
/// that save often: checkpoint/checkpoint_folder.hpp.
///
/// Tensors: `tables/<name>/weight` (rows, dim); the optimizer's state `tables/<name>/element_state.<i>` (rows, dim) and
/// `tables/<name>/row_state.<i>` (rows,); dense tensors under their own names; `steps` and other numbers as I64 of
/// shape (). The metadata `optimizer` names the rule. Rank 0 reads and writes; tables pass through it in chunks of
/// rows.

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

/// One tensor of a table: how to find its part of a local row in a shard.
struct TablePart {
    enum class Kind : std::uint8_t { weight, element_state, row_state };

    int table = 0;
    Kind kind = Kind::weight;
    int slot = 0;
    std::string name;
    std::int64_t rows = 0;
    int width = 0;  ///< columns of the whole table's tensor

    [[nodiscard]] std::vector<std::int64_t> shape() const {
        return kind == Kind::row_state ? std::vector<std::int64_t>{rows} : std::vector<std::int64_t>{rows, width};
    }
    /// How many columns of it a shard has, and where they begin. Every column shard has the whole row's state.
    [[nodiscard]] int columns(const ShardView& shard) const { return kind == Kind::row_state ? 1 : shard.dim; }
    [[nodiscard]] int first_column(const ShardView& shard) const {
        return kind == Kind::row_state ? 0 : shard.first_column;
    }
    [[nodiscard]] float* at(const ShardView& shard, std::int64_t local, int element_slots, int row_slots) const {
        if (kind == Kind::weight) return shard.weights + local * shard.dim;
        if (kind == Kind::row_state) return shard.row_state + local * row_slots + slot;
        return shard.element_state + (local * element_slots + slot) * shard.dim;
    }
};

[[nodiscard]] inline std::vector<TablePart> table_parts(const LayerShards& layer, Loaded what = Loaded::everything) {
    using Kind = TablePart::Kind;
    std::vector<TablePart> parts;
    for (int t = 0; t < static_cast<int>(layer.tables.size()); ++t) {
        const TableConfig& table = layer.tables[static_cast<std::size_t>(t)];
        const std::string prefix = "tables/" + table.name + "/";
        const auto add = [&](Kind kind, int slot, const std::string& name) {
            parts.push_back({.table = t,
                             .kind = kind,
                             .slot = slot,
                             .name = prefix + name,
                             .rows = table.rows,
                             .width = kind == Kind::row_state ? 1 : table.dim});
        };
        add(Kind::weight, 0, "weight");
        if (what == Loaded::weights) continue;
        for (int i = 0; i < layer.element_slots; ++i)
            add(Kind::element_state, i, "element_state." + std::to_string(i));
        for (int i = 0; i < layer.row_slots; ++i)
            add(Kind::row_state, i, "row_state." + std::to_string(i));
    }
    return parts;
}

[[nodiscard]] inline std::int64_t rows_a_chunk(const TablePart& part, std::int64_t chunk_bytes) {
    return std::max<std::int64_t>(1, chunk_bytes / (part.width * static_cast<std::int64_t>(sizeof(float))));
}

/// The shards of one table on this rank, ready to be walked in the order of the table.
struct TableRows {
    const TableShard* shard;
    ShardRows rows;
};
[[nodiscard]] inline std::vector<TableRows> rows_of_table(const LayerShards& layer, int table) {
    std::vector<TableRows> all;
    for (const TableShard& shard : layer.shards)
        if (shard.view.table == table) all.push_back({&shard, ShardRows{shard}});
    return all;
}

/// This rank's rows [first, last) of a part: for each shard, its columns, the number of rows, the rows, their values.
inline void pack_rows(const LayerShards& layer, const TablePart& part, const std::vector<TableRows>& rows,
                      std::int64_t first, std::int64_t last, std::vector<std::byte>& to) {
    to.clear();
    const auto put = [&](const void* from, std::size_t bytes) {
        const auto* begin = static_cast<const std::byte*>(from);
        to.insert(to.end(), begin, begin + bytes);
    };
    std::vector<std::int64_t> locals;
    std::vector<std::int64_t> numbers;
    for (const TableRows& one : rows) {
        const ShardView& shard = one.shard->view;
        if (shard.copy != 0) continue;
        if (shard.dim == 0 || (part.kind == TablePart::Kind::row_state && shard.first_column != 0)) continue;
        locals.clear();
        numbers.clear();
        one.rows.visit(first, last, [&](std::int64_t row, std::int64_t local) {
            numbers.push_back(row);
            locals.push_back(local);
        });
        const std::int64_t head[] = {part.first_column(shard), part.columns(shard),
                                     static_cast<std::int64_t>(numbers.size())};
        put(head, sizeof head);
        put(numbers.data(), numbers.size() * sizeof(std::int64_t));
        for (const std::int64_t local : locals)
            put(part.at(shard, local, layer.element_slots, layer.row_slots),
                static_cast<std::size_t>(part.columns(shard)) * sizeof(float));
        if (to.size() % alignof(std::int64_t) != 0) to.resize(to.size() + 4);
    }
}

/// Puts a rank's rows in their places of `chunk`, rows from `first` on. \returns the number of values
[[nodiscard]] inline std::int64_t unpack_rows(const TablePart& part, std::int64_t first,
                                              std::span<const std::byte> from, std::span<float> chunk) {
    std::int64_t values = 0;
    ByteReader reader{from};
    for (std::size_t used = 0; used < from.size();) {
        const auto first_column = reader.get<std::int64_t>();
        const auto columns = reader.get<std::int64_t>();
        const auto count = reader.get<std::int64_t>();
        const auto* rows = reader.view<std::int64_t>(count);
        const auto* data = reader.view<float>(count * columns);
        reader.skip_padding();
        if (reader.overrun()) throw Mismatch{"checkpoint: a rank sent rows that end too early"};
        const auto many = static_cast<std::int64_t>(chunk.size()) / part.width;
        const bool columns_fit = first_column >= 0 && columns >= 0 && first_column + columns <= part.width;
        if (!columns_fit ||
            std::any_of(rows, rows + count, [&](std::int64_t row) { return row < first || row >= first + many; }))
            throw Mismatch{
                concat({"checkpoint: '", part.name, "': a rank sent other rows or columns than those of rows ", first,
                        " to ", first + many, ": give every rank the same tables and chunk_bytes"})};
        for (std::int64_t i = 0; i < count; ++i)
            std::copy_n(data + i * columns, columns, chunk.data() + (rows[i] - first) * part.width + first_column);
        values += count * columns;
        used += static_cast<std::size_t>(padded_part(24 + count * 8 + count * columns * 4));
    }
    return values;
}

inline void declare_all(SafetensorsWriter& writer, const Checkpoint& checkpoint) {
    writer.metadata("format", "shardwise 1");
    writer.metadata("optimizer", checkpoint.layer.optimizer);
    if (checkpoint.layer.layer != nullptr) writer.declare(steps_name, TensorType::i64, {});
    for (const auto& [name, value] : checkpoint.numbers)
        writer.declare(name, TensorType::i64, {});
    for (const DenseTensor& tensor : checkpoint.dense)
        writer.declare(tensor.name, TensorType::f32, tensor.shape);
    for (const TablePart& part : table_parts(checkpoint.layer))
        writer.declare(part.name, TensorType::f32, part.shape());
}

/// Looks for all that is asked of a file, and whether it can be taken. Not collective. \throws BadInput
[[nodiscard]] inline Loaded require_all(SafetensorsReader& file, const Checkpoint& checkpoint) {
    const LayerShards& layer = checkpoint.layer;
    const auto rule = file.metadata().find("optimizer");
    if (layer.learns && !layer.tables.empty() && rule != file.metadata().end() && rule->second != layer.optimizer)
        throw BadInput{concat({file.path(), ": holds the state of optimizer '", rule->second, "', and this layer has '",
                               layer.optimizer, "'"})};
    const std::string sign = sign_of_training(file, checkpoint);
    const Loaded what = sign.empty() ? Loaded::weights : Loaded::everything;
    if (what == Loaded::weights && layer.layer != nullptr && layer.learns && layer.layer->steps() != 0)
        throw BadInput{
            concat({file.path(), ": has weights alone, and this layer's moments are of other weights, after ",
                    layer.layer->steps(), " steps: load into a new layer"})};
    require_asked(file, checkpoint, sign);
    for (const TablePart& part : table_parts(layer, what)) {
        if (part.kind != TablePart::Kind::weight) require_moment(file, part.name, sign);
        static_cast<void>(file.require(part.name, TensorType::f32, part.shape()));
    }
    for (const DenseTensor& tensor : checkpoint.dense)
        if (!tensor.moment) require_finite(file, tensor.name, checkpoint.chunk_bytes);
    for (const TablePart& part : table_parts(layer, Loaded::weights))
        require_finite(file, part.name, checkpoint.chunk_bytes);
    return what;
}

}  // namespace detail

/// Writes a checkpoint. Collective; all ranks give the same path, tables, dense tensors, numbers and chunk_bytes.
///
/// Under replica groups a checkpoint is of one model, in which each row stands once: a save first syncs the layer's
/// copies (LayerBase::sync). Between two syncs that is one more than the run would have had.
///
/// Memory on rank 0: a few times `chunk_bytes`. Cost: every table crosses to rank 0 once, with its row numbers.
/// \throws BadInput on every rank when a dense tensor has more or fewer values than its shape, a name is no UTF-8, or
///         the file cannot be written; an older file of that name is still there then
inline void save_checkpoint(CommunicatorRef comm, const std::string& path, const Checkpoint& checkpoint) {
    if (checkpoint.layer.layer != nullptr) static_cast<void>(checkpoint.layer.layer->sync());
    std::unique_ptr<SafetensorsWriter> writer;
    std::string wrong = detail::wrong_tensor(path, checkpoint);
    const auto on_root = [&](auto work) {  // an error is kept until all ranks can hear of it
        if (comm.rank() != 0 || !wrong.empty()) return;
        try {
            work();
        } catch (const BadInput& error) {
            wrong = error.what();
        }
    };
    on_root([&] {
        writer = std::make_unique<SafetensorsWriter>(path);
        detail::declare_all(*writer, checkpoint);
        writer->begin();
        if (checkpoint.layer.layer != nullptr) {
            const std::int64_t steps = checkpoint.layer.layer->steps();
            writer->append(std::span<const std::int64_t>{&steps, 1});
        }
        for (const auto& [name, value] : checkpoint.numbers)
            writer->append(std::span<const std::int64_t>{&value, 1});
        for (const DenseTensor& tensor : checkpoint.dense)
            writer->append(std::span<const float>{tensor.values});
    });
    agree_on_input(comm, wrong);

    std::vector<std::byte> mine;
    std::vector<float> chunk;
    std::vector<detail::TableRows> rows;
    int table = -1;
    for (const detail::TablePart& part : detail::table_parts(checkpoint.layer)) {
        if (part.table != table) rows = detail::rows_of_table(checkpoint.layer, table = part.table);
        const std::int64_t step = detail::rows_a_chunk(part, checkpoint.chunk_bytes);
        for (std::int64_t first = 0; first < part.rows; first += step) {
            const std::int64_t last = std::min(part.rows, first + step);
            detail::pack_rows(checkpoint.layer, part, rows, first, last, mine);
            const auto all = gather_v<std::byte>(comm, 0, mine);
            if (comm.rank() != 0) continue;
            chunk.resize(static_cast<std::size_t>((last - first) * part.width));
            std::int64_t values = 0;
            for (const auto& theirs : all)
                values += detail::unpack_rows(part, first, theirs, chunk);
            if (values != static_cast<std::int64_t>(chunk.size()))
                throw Mismatch{concat({"checkpoint: '", part.name, "', rows ", first, " to ", last, ": the ranks have ",
                                       values, " of ", chunk.size(), " values"})};
            on_root([&] { writer->append(std::span<const float>{chunk}); });
        }
    }
    on_root([&] { writer->end(); });
    agree_on_input(comm, wrong);
}

/// Fills the tables, dense tensors and numbers of `checkpoint` from what any sharding on any number of ranks has
/// written: a file of save_checkpoint, the folder of a CheckpointFolder (its newest checkpoint), or one of the
/// manifests in it (see load_parts); or from a safetensors file of weights alone, such as other programs write: one
/// without moments, steps and an optimizer in its metadata. Collective. Tensors that nobody asks for are left alone.
/// F16 and BF16 become float. Under replica groups all copies of a row are filled; a sync that is due is done before.
///
/// Memory on each rank: a few times `chunk_bytes`. Cost: rank 0 reads every weight twice, since it first looks whether
/// all are finite, and sends every table to every rank.
/// \returns what was filled in, the same on all ranks
/// \throws BadInput on every rank, before anything has changed: for a damaged file, a tensor that is missing or has
///         another type or shape, a weight that is NaN or infinite, weights alone for a layer that has made steps, or
///         the state of another optimizer, which a frozen layer does not mind. When reading itself fails, later, some
///         values have changed
inline Loaded load_checkpoint(CommunicatorRef comm, const std::string& path, Checkpoint& checkpoint) {
    std::error_code ignored;
    std::int64_t in_parts =
        comm.rank() == 0 && (path.ends_with(".json") || std::filesystem::is_directory(path, ignored)) ? 1 : 0;
    broadcast(comm, 0, std::span{&in_parts, 1});
    if (in_parts != 0) {
        load_parts(comm, path, checkpoint);
        return Loaded::everything;
    }
    if (checkpoint.layer.layer != nullptr) static_cast<void>(checkpoint.layer.layer->sync());
    std::unique_ptr<SafetensorsReader> reader;
    std::int64_t weights_alone = 0;
    std::string wrong = detail::wrong_tensor(path, checkpoint);
    if (comm.rank() == 0 && wrong.empty()) {
        try {
            reader = std::make_unique<SafetensorsReader>(path);
            weights_alone = detail::require_all(*reader, checkpoint) == Loaded::weights ? 1 : 0;
        } catch (const BadInput& error) {
            wrong = error.what();
        }
    }
    agree_on_input(comm, wrong);
    broadcast(comm, 0, std::span{&weights_alone, 1});
    const Loaded what = weights_alone != 0 ? Loaded::weights : Loaded::everything;

    /// Elements [first, first + to.size()) of a tensor on every rank.
    const auto read = [&](const std::string& name, std::int64_t first, auto to) {
        std::int64_t failed = 0;
        if (comm.rank() == 0) {
            try {
                reader->read(reader->tensors().at(name), first, to);
            } catch (const BadInput& error) {
                wrong = error.what();
                failed = 1;
            }
        }
        broadcast(comm, 0, std::span{&failed, 1});
        if (failed != 0) agree_on_input(comm, wrong);
        broadcast(comm, 0, to);
    };
    detail::fill_asked(path, checkpoint, what, [&](const std::string& name, auto to) { read(name, 0, to); });
    std::vector<float> chunk;
    std::vector<detail::TableRows> rows;
    int table = -1;
    for (const detail::TablePart& part : detail::table_parts(checkpoint.layer, what)) {
        if (part.table != table) rows = detail::rows_of_table(checkpoint.layer, table = part.table);
        const std::int64_t step = detail::rows_a_chunk(part, checkpoint.chunk_bytes);
        for (std::int64_t first = 0; first < part.rows; first += step) {
            const std::int64_t last = std::min(part.rows, first + step);
            chunk.resize(static_cast<std::size_t>((last - first) * part.width));
            read(part.name, first * part.width, std::span{chunk});
            for (const detail::TableRows& one : rows) {
                const ShardView& shard = one.shard->view;
                const int columns = part.columns(shard);
                const float* from = chunk.data() + part.first_column(shard);
                one.rows.visit(first, last, [&](std::int64_t row, std::int64_t local) {
                    std::copy_n(from + (row - first) * part.width, columns,
                                part.at(shard, local, checkpoint.layer.element_slots, checkpoint.layer.row_slots));
                });
            }
        }
    }
    return what;
}

/// Writes a layer alone: its tables, its optimizer's state and its steps. Collective; see save_checkpoint.
inline void save_layer(CommunicatorRef comm, const std::string& path, LayerBase& layer) {
    save_checkpoint(comm, path, {.layer = shards_of(layer), .dense = {}, .numbers = {}});
}
/// Reads a layer alone. Collective; see load_checkpoint.
inline Loaded load_layer(CommunicatorRef comm, const std::string& path, LayerBase& layer) {
    Checkpoint checkpoint{.layer = shards_of(layer), .dense = {}, .numbers = {}};
    return load_checkpoint(comm, path, checkpoint);
}

}  // namespace shardwise::inline SHARDWISE_ABI
