// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "shardwise/checkpoint/asked_tensors.hpp"
#include "shardwise/checkpoint/checkpoint.hpp"
#include "shardwise/checkpoint/layer_shards.hpp"
#include "shardwise/checkpoint/manifest.hpp"
#include "shardwise/checkpoint/part_file.hpp"
#include "shardwise/checkpoint/safetensors.hpp"
#include "shardwise/checkpoint/shard_rows.hpp"
#include "shardwise/comm/collectives.hpp"
#include "shardwise/comm/communicator_ref.hpp"
#include "shardwise/core/at.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"

/// \file
/// Reads a sharded checkpoint into any sharding on any number of ranks: each rank reads what it needs.

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

/// \returns what of `checkpoint` a manifest does not have, or nothing
[[nodiscard]] inline std::string lacks(const std::string& path, const Manifest& manifest,
                                       const Checkpoint& checkpoint) {
    const LayerShards& layer = checkpoint.layer;
    if (layer.learns && !layer.tables.empty()) {
        if (manifest.optimizer != layer.optimizer)
            return concat({path, ": holds the state of optimizer '", manifest.optimizer, "', and this layer has '",
                           layer.optimizer, "'"});
        if (manifest.element_slots != layer.element_slots || manifest.row_slots != layer.row_slots)
            return concat({path, ": has ", manifest.element_slots, " moments an element and ", manifest.row_slots,
                           " a row, and this layer ", layer.element_slots, " and ", layer.row_slots});
    }
    for (const TableConfig& table : layer.tables) {
        const auto found = manifest.tables.find(table.name);
        if (found == manifest.tables.end()) return concat({path, ": has no table '", table.name, "'"});
        if (found->second != ManifestTable{.rows = table.rows, .dim = table.dim})
            return concat({path, ": table '", table.name, "' has ", found->second.rows, " rows of dimension ",
                           found->second.dim, ", expected ", table.rows, " of dimension ", table.dim});
        std::int64_t values = 0;
        std::int64_t whole = 0;  // rows that begin at column 0, where their moments are
        for (const PartInfo& part : manifest.parts)
            for (const PartShard& shard : part.shards) {
                if (shard.table != table.name) continue;
                values += shard.rows * shard.columns;
                whole += shard.first_column == 0 ? shard.rows : 0;
            }
        if (values != table.rows * table.dim || whole != table.rows)
            return concat({path, ": its parts have ", values, " weights of table '", table.name, "', which has ",
                           table.rows * table.dim});
    }
    return {};
}

/// Rows of a part's shard that this rank holds: their places in a chunk, and in a shard here.
struct RowMatch {
    std::int64_t from;
    std::int64_t local;
};

/// Reads the rows of one shard of a part that this rank's shards of the same table hold.
class PartShardReader {
  public:
    PartShardReader(SafetensorsReader& file, const PartShard& shard, std::size_t number, const LayerShards& layer,
                    std::int64_t chunk_bytes)
        : file_{&file}, shard_{&shard}, layer_{&layer}, chunk_bytes_{chunk_bytes} {
        const auto tensor = [&](const char* what, TensorType type, const std::vector<std::int64_t>& shape) {
            return &file.require(part_tensor(shard, number, what), type, shape);
        };
        weight_ = tensor("weight", TensorType::f32, {shard.rows, shard.columns});
        if (shard.stride == 0) rows_ = tensor("rows", TensorType::i64, {shard.rows});
        if (!layer.learns) return;
        if (layer.element_slots != 0)
            element_state_ = tensor("element_state", TensorType::f32, {shard.rows, layer.element_slots, shard.columns});
        if (layer.row_slots != 0 && shard.first_column == 0)
            row_state_ = tensor("row_state", TensorType::f32, {shard.rows, layer.row_slots});
    }

    /// \param into  (shard of this rank) \param read  (the same): weights that came, added up
    void read(const std::vector<std::pair<const ShardView*, const ShardRows*>>& into, std::vector<std::int64_t>& read) {
        const std::int64_t width = std::int64_t{shard_->columns} * (1 + layer_->element_slots) + layer_->row_slots +
                                   (rows_ == nullptr ? 0 : 2);
        const std::int64_t many = std::max<std::int64_t>(1, chunk_bytes_ / 4 / width);
        for (std::int64_t first = 0; first < shard_->rows; first += many) {
            const std::int64_t count = std::min(many, shard_->rows - first);
            find_rows(first, count);
            matches_.resize(into.size());
            bool any = false;
            for (std::size_t i = 0; i < into.size(); ++i) {
                match(*into[i].second, count, matches_[i]);
                any |= !matches_[i].empty();
            }
            if (!any) continue;
            const std::span<const float> weights = floats(weight_, first, count, shard_->columns, weights_);
            const std::span<const float> elements =
                floats(element_state_, first, count, std::int64_t{shard_->columns} * layer_->element_slots, elements_);
            const std::span<const float> moments = floats(row_state_, first, count, layer_->row_slots, moments_);
            for (std::size_t i = 0; i < into.size(); ++i)
                read[i] += copy(*into[i].first, matches_[i], weights, elements, moments);
        }
    }

  private:
    [[nodiscard]] std::int64_t row(std::int64_t i) const {
        return numbers_.empty() ? first_ + i * shard_->stride : at(numbers_, i);
    }
    void find_rows(std::int64_t first, std::int64_t count) {
        first_ = shard_->first + first * shard_->stride;
        if (rows_ == nullptr) return;
        numbers_.resize(static_cast<std::size_t>(count));
        file_->read(*rows_, first, std::span{numbers_});
        for (std::size_t i = 1; i < numbers_.size(); ++i)
            if (numbers_[i] <= numbers_[i - 1])
                throw BadInput{concat({file_->path(), ": rows of table '", shard_->table, "' are not in order"})};
    }
    void match(const ShardRows& rows, std::int64_t count, std::vector<RowMatch>& matches) const {
        matches.clear();
        std::int64_t next = 0;
        rows.visit(row(0), row(count - 1) + 1, [&](std::int64_t number, std::int64_t local) {
            if (numbers_.empty()) {
                if ((number - first_) % shard_->stride != 0) return;
                next = (number - first_) / shard_->stride;
            } else {
                while (next < count && row(next) < number)
                    ++next;
                if (next == count || row(next) != number) return;
            }
            matches.push_back({next, local});
        });
    }
    [[nodiscard]] std::span<const float> floats(const TensorInfo* tensor, std::int64_t first, std::int64_t count,
                                                std::int64_t width, std::vector<float>& buffer) const {
        if (tensor == nullptr) return {};
        buffer.resize(static_cast<std::size_t>(count * width));
        file_->read(*tensor, first * width, std::span{buffer});
        return buffer;
    }
    /// \returns how many weights
    [[nodiscard]] std::int64_t copy(const ShardView& to, const std::vector<RowMatch>& matches,
                                    std::span<const float> weights, std::span<const float> elements,
                                    std::span<const float> moments) const {
        const int begin = std::max(to.first_column, shard_->first_column);
        const int end = std::min(to.first_column + to.dim, shard_->first_column + shard_->columns);
        const int columns = std::max(0, end - begin);
        const int slots = elements.empty() ? 0 : layer_->element_slots;
        for (const RowMatch& m : matches) {
            const auto copy_columns = [&](const float* from, float* into) {
                std::copy_n(from + (begin - shard_->first_column), columns, into + (begin - to.first_column));
            };
            if (columns > 0) copy_columns(weights.data() + m.from * shard_->columns, to.weights + m.local * to.dim);
            for (int slot = 0; slot < slots && columns > 0; ++slot)
                copy_columns(elements.data() + (m.from * slots + slot) * shard_->columns,
                             to.element_state + (m.local * slots + slot) * to.dim);
            if (!moments.empty())
                std::copy_n(moments.data() + m.from * layer_->row_slots, layer_->row_slots,
                            to.row_state + m.local * layer_->row_slots);
        }
        return std::ssize(matches) * columns;
    }

    SafetensorsReader* file_;
    const PartShard* shard_;
    const LayerShards* layer_;
    std::int64_t chunk_bytes_;
    const TensorInfo* weight_ = nullptr;
    const TensorInfo* rows_ = nullptr;
    const TensorInfo* element_state_ = nullptr;
    const TensorInfo* row_state_ = nullptr;
    std::int64_t first_ = 0;
    std::vector<std::int64_t> numbers_;
    std::vector<std::vector<RowMatch>> matches_;
    std::vector<float> weights_;
    std::vector<float> elements_;
    std::vector<float> moments_;
};

/// Fills this rank's shards. Not collective. \throws BadInput naming the file
inline void read_tables(const std::string& folder, const Manifest& manifest, const LayerShards& layer,
                        std::int64_t chunk_bytes) {
    std::vector<ShardRows> rows;
    rows.reserve(layer.shards.size());
    for (const TableShard& shard : layer.shards)
        rows.emplace_back(shard);
    std::vector<std::int64_t> read(layer.shards.size());
    for (const PartInfo& info : manifest.parts) {
        std::optional<SafetensorsReader> file;
        for (std::size_t number = 0; number < info.shards.size(); ++number) {
            const PartShard& shard = info.shards[number];
            std::vector<std::pair<const ShardView*, const ShardRows*>> into;
            std::vector<std::size_t> which;
            for (std::size_t i = 0; i < layer.shards.size(); ++i) {
                const ShardView& view = layer.shards[i].view;
                if (view.dim == 0 || at(layer.tables, view.table).name != shard.table) continue;
                into.emplace_back(&view, &rows[i]);
                which.push_back(i);
            }
            if (into.empty()) continue;
            if (!file) {
                file.emplace(folder + info.file);
                if (file->file_bytes() != info.bytes)
                    throw BadInput{concat({folder, info.file, ": has changed while it is loaded"})};
            }
            std::vector<std::int64_t> came(into.size());
            PartShardReader{*file, shard, number, layer, chunk_bytes}.read(into, came);
            for (std::size_t i = 0; i < which.size(); ++i)
                read[which[i]] += came[i];
        }
    }
    for (std::size_t i = 0; i < layer.shards.size(); ++i) {
        const ShardView& view = layer.shards[i].view;
        if (read[i] != view.rows * view.dim)
            throw BadInput{concat({folder, manifest.parts.front().file, " and the other parts have ", read[i],
                                   " of the ", view.rows * view.dim, " weights that this rank needs of table '",
                                   at(layer.tables, view.table).name, "'"})};
    }
}

/// Rank 0's text on every rank.
[[nodiscard]] inline std::string broadcast_text(CommunicatorRef comm, const std::string& text) {
    std::int64_t size = std::ssize(text);
    broadcast(comm, 0, std::span{&size, 1});
    std::string all = text;
    all.resize(static_cast<std::size_t>(size));
    broadcast(comm, 0, std::span{all});
    return all;
}

/// What `work` throws as the caller's or the machine's fault, as a text; nothing when it returns. Failures of other
/// ranks go on. \param what  it is about, where the text does not say so
template <class Work>
[[nodiscard]] std::string wrong_with(const std::string& what, Work work) {
    try {
        work();
    } catch (const BadInput& error) {
        return error.what();
    } catch (const Error&) {
        throw;
    } catch (const std::exception& error) {  // no memory, a file system that fails
        return concat({what, ": ", error.what()});
    }
    return {};
}
/// Runs `work` on every rank; what is wrong on one of them is a BadInput on all. Collective.
template <class Work>
void all_or_none(CommunicatorRef comm, const std::string& what, Work work) {
    agree_on_input(comm, wrong_with(what, work));
}

}  // namespace detail

/// The newest whole checkpoint in a folder, as the path of its manifest. Not collective.
/// \throws BadInput for a folder that cannot be read, or has none
[[nodiscard]] inline std::string newest_checkpoint(const std::string& folder) {
    const auto all = manifests_in(folder);
    if (all.empty()) throw BadInput{concat({folder, ": has no checkpoint"})};
    return all.rbegin()->second;
}

/// Fills the tables, dense tensors and numbers of `checkpoint` from parts. Collective; every rank reads the files.
///
/// Memory on each rank: a few times `chunk_bytes`. Cost: all parts are read once, to be compared with their
/// checksums, each by one rank; then every rank reads those that have rows of its shards. \param path  of a manifest,
/// or of a folder: the newest in it \throws BadInput on every rank, before anything has changed: for a damaged file,
/// tables, tensors or numbers that are
///         missing or have another shape, weights that are NaN or infinite, or the state of another optimizer, which a
///         frozen layer does not mind. When reading itself fails, later, some values have changed
inline void load_parts(CommunicatorRef comm, const std::string& path, Checkpoint& checkpoint) {
    if (checkpoint.layer.layer != nullptr) static_cast<void>(checkpoint.layer.layer->sync());
    std::string name;
    std::string text;  // of one rank: it may be replaced meanwhile
    detail::all_or_none(comm, path, [&] {
        if (const std::string wrong = detail::wrong_tensor(path, checkpoint); !wrong.empty()) throw BadInput{wrong};
        if (comm.rank() != 0) return;
        name = std::filesystem::is_directory(path) ? newest_checkpoint(path) : path;
        text = text_of(name);
    });
    name = detail::broadcast_text(comm, name);
    text = detail::broadcast_text(comm, text);
    const std::string folder = folder_of(name);
    Manifest manifest;
    std::optional<SafetensorsReader> first;
    detail::all_or_none(comm, name, [&] {
        manifest = parse_manifest(name, text);
        if (const std::string wrong = detail::lacks(name, manifest, checkpoint); !wrong.empty()) throw BadInput{wrong};
        for (std::size_t part = static_cast<std::size_t>(comm.rank()); part < manifest.parts.size();
             part += static_cast<std::size_t>(comm.size()))
            detail::verify_part(folder + manifest.parts[part].file, manifest.parts[part],
                                detail::asked_weights(manifest.parts[part], checkpoint));
        first.emplace(folder + manifest.parts[0].file);
        detail::require_asked(*first, checkpoint, "a manifest");
    });
    detail::all_or_none(comm, name, [&] {
        detail::fill_asked(name, checkpoint, Loaded::everything, [&](const std::string& tensor, auto to) {
            first->read(first->tensors().at(tensor), 0, to);
        });
        detail::read_tables(folder, manifest, checkpoint.layer, checkpoint.chunk_bytes);
    });
}

}  // namespace shardwise::inline SHARDWISE_ABI
