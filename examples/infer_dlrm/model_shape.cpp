// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "model_shape.hpp"

#include <fmt/format.h>

#include "../train_dlrm/options.hpp"
#include "shardwise/checkpoint/safetensors.hpp"
#include "shardwise/core/error.hpp"

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

ModelShape shape_in(const std::string& path) {
    const sw::SafetensorsReader file{path};
    const auto refuse = [&](const std::string& why) { return sw::BadInput{fmt::format("{}: {}", path, why)}; };
    ModelShape shape;
    std::size_t tables = 0;
    for (const auto& [name, tensor] : file.tensors()) {
        tables += name.starts_with("tables/") && name.ends_with("/weight") ? 1 : 0;
        if (name.starts_with("cross.") || name.starts_with("tower"))
            throw refuse(
                fmt::format("has '{}', so its model is no DLRM without modules of towers: that is what "
                            "infer_dlrm runs",
                            name));
    }
    for (int f = 1; f <= train_dlrm::categories; ++f) {
        const auto found = file.tensors().find(fmt::format("tables/C{}/weight", f));
        if (found == file.tensors().end() || found->second.shape.size() != 2)
            throw refuse(
                fmt::format("has no table 'C{}': it is a checkpoint of other tables than those of Criteo's "
                            "columns, C1 to C{}",
                            f, train_dlrm::categories));
        const std::vector<std::int64_t>& size = found->second.shape;
        shape.tables.push_back({.name = fmt::format("C{}", f), .rows = size[0], .dim = static_cast<int>(size[1])});
        if (shape.tables.back().dim != shape.dim())
            throw refuse(
                fmt::format("table 'C{}' has dimension {}, and 'C1' {}: a DLRM's are equal", f, size[1], shape.dim()));
    }
    if (tables != shape.tables.size())
        throw refuse(fmt::format("has {} tables, and Criteo has {} columns of ids: it is a checkpoint of other tables",
                                 tables, shape.tables.size()));
    shape.bottom = widths_in(file, "bottom", train_dlrm::dense_features);
    const std::int64_t vectors = train_dlrm::categories + 1;
    shape.top = widths_in(file, "top", shape.dim() + vectors * (vectors - 1) / 2);
    return shape;
}

}  // namespace infer_dlrm
