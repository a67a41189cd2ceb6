// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "model_shape.hpp"

#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "shardwise/checkpoint/safetensors.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/dense/interaction.hpp"

namespace infer_dlrm {

namespace {

namespace sw = shardwise;

/// The outputs of the layers of an MLP, whose first one has so many inputs.
std::vector<std::int64_t> widths_in(const sw::SafetensorsReader& file, const std::string& mlp, std::int64_t inputs) {
    std::vector<std::int64_t> widths;
    for (std::size_t layer = 0;; ++layer) {
        const auto found = file.tensors().find(fmt::format("{}.{}.weight", mlp, layer));
        if (found == file.tensors().end()) break;
        const std::vector<std::int64_t>& shape = found->second.shape;
        if (shape.size() != 2 || shape[1] != inputs)
            throw sw::BadInput{fmt::format("{}: tensor '{}' has shape {}, and its layer has {} inputs", file.path(),
                                           found->first, sw::shape_text(shape), inputs)};
        widths.push_back(shape[0]);
        inputs = shape[0];
    }
    if (widths.empty())
        throw sw::BadInput{
            fmt::format("{}: has no tensor '{}.0.weight', so it is no checkpoint of train_dlrm", file.path(), mlp)};
    return widths;
}

}  // namespace

std::vector<std::int64_t> ModelShape::rows() const {
    std::vector<std::int64_t> all;
    for (const sw::TableConfig& table : tables)
        all.push_back(table.rows);
    return all;
}

std::int64_t ModelShape::features() const {
    std::int64_t all = 0;
    for (const sw::TableConfig& table : tables)
        all += std::ssize(sw::features_of(table));
    return all;
}

ModelShape shape_in(const std::string& path, std::vector<sw::TableConfig> tables, std::int64_t dense,
                    const std::string& whose) {
    const sw::SafetensorsReader file{path};
    const auto refuse = [&](const std::string& why) { return sw::BadInput{fmt::format("{}: {}", path, why)}; };
    ModelShape shape{.tables = std::move(tables), .dense = dense, .bottom = {}, .top = {}};
    std::size_t there = 0;
    for (const auto& [name, tensor] : file.tensors()) {
        there += name.starts_with("tables/") && name.ends_with("/weight") ? 1 : 0;
        if (name.starts_with("cross.") || name.starts_with("tower"))
            throw refuse(
                fmt::format("has '{}', so its model is no DLRM without modules of towers: that is what "
                            "infer_dlrm runs",
                            name));
    }
    for (sw::TableConfig& table : shape.tables) {
        const auto found = file.tensors().find(fmt::format("tables/{}/weight", table.name));
        if (found == file.tensors().end() || found->second.shape.size() != 2)
            throw refuse(fmt::format("has no table '{}': it is a checkpoint of other tables than those of {}",
                                     table.name, whose));
        table.rows = found->second.shape[0];
        table.dim = static_cast<int>(found->second.shape[1]);
        if (table.dim != shape.dim())
            throw refuse(fmt::format("table '{}' has dimension {}, and '{}' {}: a DLRM's are equal", table.name,
                                     table.dim, shape.tables[0].name, shape.dim()));
    }
    if (there != shape.tables.size())
        throw refuse(fmt::format("has {} tables, and those of {} are {}: it is a checkpoint of other tables", there,
                                 whose, shape.tables.size()));
    if (dense != 0) shape.bottom = widths_in(file, "bottom", dense);
    shape.top = widths_in(file, "top", sw::DotInteraction::outputs(shape.dim(), shape.features(), dense != 0));
    return shape;
}

}  // namespace infer_dlrm
