// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "shardwise/checkpoint/checkpoint.hpp"
#include "shardwise/checkpoint/part_file.hpp"
#include "shardwise/checkpoint/safetensors.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"

/// \file
/// What a load asks of a file besides tables: steps, numbers and dense tensors.

namespace shardwise::inline SHARDWISE_ABI::detail {

/// What shows that a file is a checkpoint of training: an optimizer in its metadata, steps or a moment. Nothing: it has
/// weights alone.
[[nodiscard]] inline std::string sign_of_training(const SafetensorsReader& file, const Checkpoint& checkpoint) {
    const auto is_moment = [&](const std::string& name) {
        const bool of_table = name.starts_with("tables/") && (name.find("/element_state.") != std::string::npos ||
                                                              name.find("/row_state.") != std::string::npos);
        const auto asked = [&](const DenseTensor& tensor) { return tensor.moment && tensor.name == name; };
        return of_table || name.starts_with("dense_state/") || std::ranges::any_of(checkpoint.dense, asked);
    };
    if (file.metadata().contains("optimizer")) return "an optimizer in its metadata";
    if (file.tensors().contains(steps_name)) return concat({"a tensor '", steps_name, "'"});
    for (const auto& [name, tensor] : file.tensors())
        if (is_moment(name)) return concat({"the moment '", name, "'"});
    return {};
}

/// The tensor of that name, of the shape that is asked for; a vector will do for a matrix of one row.
inline const TensorInfo& require_dense(const SafetensorsReader& file, const DenseTensor& asked) {
    const auto found = file.tensors().find(asked.name);
    const bool vector = found != file.tensors().end() && found->second.shape.size() == 1 && asked.shape.size() == 2 &&
                        asked.shape[0] == 1 && found->second.shape[0] == asked.shape[1];
    return file.require(asked.name, TensorType::f32, vector ? found->second.shape : asked.shape);
}

/// A moment of a checkpoint is not missed in silence. \param sign  that it is one \throws BadInput
inline void require_moment(const SafetensorsReader& file, const std::string& name, const std::string& sign) {
    if (!file.tensors().contains(name))
        throw BadInput{concat({file.path(), ": has no tensor '", name, "', a moment, and is no file of weights alone, ",
                               "since it has ", sign})};
}

/// Looks for all that is asked for besides tables. \param sign  of training; empty: weights are asked for alone
/// \throws BadInput for what is missing or has another type or shape
inline void require_asked(const SafetensorsReader& file, const Checkpoint& checkpoint, const std::string& sign) {
    if (!sign.empty()) {
        if (checkpoint.layer.layer != nullptr) static_cast<void>(file.require(steps_name, TensorType::i64, {}));
        for (const auto& [name, value] : checkpoint.numbers)
            static_cast<void>(file.require(name, TensorType::i64, {}));
    }
    for (const DenseTensor& tensor : checkpoint.dense) {
        if (tensor.moment && sign.empty()) continue;
        if (tensor.moment) require_moment(file, tensor.name, sign);
        static_cast<void>(require_dense(file, tensor));
    }
}

/// Fills in the layer's steps, the numbers and the dense tensors.
/// \param path  in errors \param read  called as read(name, values); collective where that is
template <class Read>
void fill_asked(const std::string& path, Checkpoint& checkpoint, Loaded what, Read read) {
    if (what == Loaded::everything) {
        if (checkpoint.layer.layer != nullptr) {
            std::int64_t steps = 0;
            read(steps_name, std::span{&steps, 1});
            try {
                checkpoint.layer.layer->set_steps(steps);
            } catch (const BadInput& error) {  // on every rank: all have read the same number
                throw BadInput{concat({path, ": ", error.what()})};
            }
        }
        for (auto& [name, value] : checkpoint.numbers)
            read(name, std::span{&value, 1});
    }
    for (const DenseTensor& tensor : checkpoint.dense)
        if (what == Loaded::everything || !tensor.moment) read(tensor.name, tensor.values);
}

}  // namespace shardwise::inline SHARDWISE_ABI::detail
