// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// load_checkpoint of a small layer, a dense tensor, its moment and a number from a damaged file: BadInput that names
/// the file, and not a bit has changed; or all that was asked for is what stands in the file; or it has weights alone,
/// and nothing else has changed.

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "fuzz/fuzz.hpp"
#include "fuzz/kernel_file.hpp"
#include "fuzz/safetensors_text.hpp"
#include "shardwise/checkpoint/layer_checkpoint.hpp"
#include "shardwise/comm/thread_world.hpp"
#include "shardwise/embedding/layer.hpp"
#include "shardwise/optimizer/adagrad.hpp"

namespace {

using fuzz::require;
namespace sw = shardwise;

/// One rank with a model, which every input is loaded into.
class Model {
  public:
    Model() : layer_{comm_, {{.name = "a", .rows = 3, .dim = 2}, {.name = "b", .rows = 2, .dim = 1}}} {
        checkpoint_.layer = sw::shards_of(layer_);
        checkpoint_.dense = {{.name = "w", .shape = {1, 4}, .values = dense_},
                             {.name = "dense_state/w/0", .shape = {1, 4}, .values = moment_, .moment = true}};
        checkpoint_.numbers = {{"samples", 7}};
        checkpoint_.chunk_bytes = 16;  // two rows of `a`
        layer_.set_steps(5);
        float next = 0.5F;
        for (const Part& part : parts())
            if (part.is_float)
                for (std::size_t i = 0; i != part.bytes / sizeof(float); ++i)
                    static_cast<float*>(part.memory)[i] = next++;
        remember();
    }

    [[nodiscard]] std::string saved() {
        char folder[] = "/tmp/shardwise_fuzz_XXXXXX";
        require(::mkdtemp(folder) != nullptr, "no temporary folder");
        const std::string path = std::string{folder} + "/file";
        sw::save_checkpoint(comm_, path, checkpoint_);
        std::ifstream file{path, std::ios::binary};
        std::string bytes{std::istreambuf_iterator<char>{file}, {}};
        std::remove(path.c_str());
        std::remove(folder);
        return bytes;
    }

    void load(const std::string& path, std::string_view bytes) {
        const std::int64_t steps = bytes.size() % 2 == 0 ? 0 : 5;
        layer_.set_steps(steps);
        sw::Loaded what{};
        try {
            what = sw::load_checkpoint(comm_, path, checkpoint_);
        } catch (const sw::BadInput& error) {
            require(std::string_view{error.what()}.find(path + ": ") != std::string_view::npos,
                    "an error without the file:", error.what());
            require(layer_.steps() == steps, "steps have changed");
            check_unchanged(true);
            return;
        }
        if (what == sw::Loaded::weights) {
            require(steps == 0 && layer_.steps() == 0, "moments of other weights");
            check_unchanged(false);
        }
        check_loaded(bytes, what == sw::Loaded::everything);
        restore();
    }

  private:
    struct Part {
        std::string name;
        void* memory;
        std::size_t bytes;
        std::vector<std::int64_t> shape;
        bool is_float = true;
        bool is_weight = true;
    };
    void check_unchanged(bool weights) {
        std::size_t at = 0;
        for (const Part& part : parts()) {
            if (weights || !part.is_weight)
                require(std::memcmp(part.memory, before_.data() + at, part.bytes) == 0, "changed:", part.name);
            at += part.bytes;
        }
    }
    [[nodiscard]] std::vector<Part> parts() {
        std::vector<Part> all;
        for (const sw::TableShard& shard : checkpoint_.layer.shards) {
            const std::string prefix = shard.view.table == 0 ? "tables/a/" : "tables/b/";
            const std::vector<std::int64_t> shape = {shard.view.rows, shard.view.dim};
            const auto bytes = static_cast<std::size_t>(shard.view.rows * shard.view.dim) * sizeof(float);
            all.push_back({prefix + "weight", shard.view.weights, bytes, shape});
            all.push_back({prefix + "element_state.0", shard.view.element_state, bytes, shape, true, false});
        }
        all.push_back({"w", dense_, sizeof dense_, {1, 4}});
        all.push_back({"dense_state/w/0", moment_, sizeof moment_, {1, 4}, true, false});
        all.push_back({"samples", &checkpoint_.numbers.at("samples"), sizeof(std::int64_t), {}, false, false});
        return all;
    }
    void remember() {
        for (const Part& part : parts())
            before_.append(static_cast<const char*>(part.memory), part.bytes);
    }
    void restore() {
        std::size_t at = 0;
        for (const Part& part : parts()) {
            std::memcpy(part.memory, before_.data() + at, part.bytes);
            at += part.bytes;
        }
        layer_.set_steps(5);
    }
    // One rank has whole tables, so that its memory is what stands in the file.
    void check_loaded(std::string_view bytes, bool everything) {
        std::uint64_t length = 0;
        std::memcpy(&length, bytes.data(), 8);
        const auto header = nlohmann::json::parse(bytes.substr(8, length));
        const std::string_view data = bytes.substr(8 + length);
        const auto place = [&](const std::string& name) {
            return data.data() + header.at(name).at("data_offsets").at(0).get<std::size_t>();
        };
        for (const Part& part : parts()) {
            if (!everything && !part.is_weight) continue;
            const std::string type = header[part.name]["dtype"];
            const bool vector = part.shape == std::vector<std::int64_t>{1, 4} &&
                                header[part.name]["shape"] == std::vector<std::int64_t>{4};
            require(vector || header[part.name]["shape"] == part.shape, "another shape:", part.name);
            if (type == "F16" || type == "BF16") {
                require(part.is_float, "another type:", part.name);
                std::vector<float> wide(part.bytes / sizeof(float));
                std::memcpy(std::as_writable_bytes(std::span{wide}).data() + part.bytes / 2, place(part.name),
                            part.bytes / 2);
                sw::widen_in_place(type == "F16" ? sw::TensorType::f16 : sw::TensorType::bf16, wide);
                require(std::memcmp(part.memory, wide.data(), part.bytes) == 0, "other values:", part.name);
            } else {
                require(type == (part.is_float ? "F32" : "I64"), "another type:", part.name);
                require(std::memcmp(part.memory, place(part.name), part.bytes) == 0, "other values:", part.name);
            }
            for (std::size_t i = 0; part.is_float && part.is_weight && i != part.bytes / sizeof(float); ++i)
                require(std::isfinite(static_cast<const float*>(part.memory)[i]), "not finite:", part.name);
        }
        if (!everything) {
            require(!header.contains("steps") && !header.contains("dense_state/w/0") &&
                        !header.contains("tables/a/element_state.0") && !header.contains("tables/b/element_state.0"),
                    "a moment was missed");
            require(!header.contains("__metadata__") || !header["__metadata__"].contains("optimizer"),
                    "an optimizer was missed");
            return;
        }
        const std::int64_t steps = layer_.steps();
        require(std::memcmp(&steps, place("steps"), sizeof steps) == 0, "other steps");
        require(steps >= 0, "negative steps");
        const sw::LearningRate rate{.decay = sw::LearningRate::Decay::step};
        require(rate.at(steps + 1) >= 0, "no learning rate for the next step");
        if (header.contains("__metadata__") && header["__metadata__"].contains("optimizer"))
            require(header["__metadata__"]["optimizer"] == "adagrad", "the state of another optimizer");
    }

    sw::detail::ThreadWorldState world_{{.topology = {.hosts = 1, .ranks_per_host = 1}}};
    sw::ThreadCommunicator comm_{world_, 0};
    sw::EmbeddingLayer<sw::Sharding<sw::Row>, sw::Optimizer<sw::Adagrad>> layer_;
    float dense_[4] = {};
    float moment_[4] = {};
    sw::Checkpoint checkpoint_;
    std::string before_;
};

Model& model() {
    static Model one;
    return one;
}

/// A valid file with the tensors of the model in any order, where one in a few has another type or shape, or is
/// missing.
std::string random_file(fuzz::Random& random) {
    struct Tensor {
        const char* name;
        const char* type;
        std::vector<std::size_t> shape;
    };
    std::vector<Tensor> tensors = {{"tables/a/weight", "F32", {3, 2}},
                                   {"tables/a/element_state.0", "F32", {3, 2}},
                                   {"tables/b/weight", "F32", {2, 1}},
                                   {"tables/b/element_state.0", "F32", {2, 1}},
                                   {"w", "F32", {1, 4}},
                                   {"dense_state/w/0", "F32", {1, 4}},
                                   {"samples", "I64", {}},
                                   {"steps", "I64", {}}};
    std::swap(tensors[random.below(8)], tensors[random.below(8)]);
    const bool alone = random.one_in(3);
    if (alone)
        std::erase_if(tensors, [](const Tensor& one) {
            const std::string_view name{one.name};
            return name == "steps" || name == "samples" || name.find("_state") != std::string_view::npos;
        });
    std::string header = alone || random.one_in(2) ? "{" : R"({"__metadata__":{"optimizer":"adagrad"})";
    std::string data;
    for (Tensor& tensor : tensors) {
        switch (random.below(30)) {
            case 0:
                continue;
            case 1:
                tensor.type = tensor.type[0] == 'F' ? "I64" : "F32";
                break;
            case 5:
            case 6:
                if (tensor.type[0] == 'F') tensor.type = "F16";
                break;
            case 7:
            case 8:
                if (tensor.type[0] == 'F') tensor.type = "BF16";
                break;
            case 9:
            case 10:
            case 11:
                if (tensor.shape.size() == 2 && tensor.shape[0] == 1) tensor.shape.erase(tensor.shape.begin());
                break;
            case 2:
                tensor.shape.push_back(random.below(3));
                break;
            case 3:
                if (!tensor.shape.empty()) tensor.shape.pop_back();
                break;
            case 4:
                if (!tensor.shape.empty()) tensor.shape[random.below(tensor.shape.size())] = random.below(5);
                break;
            default:
                break;
        }
        std::size_t bytes = tensor.type[0] == 'I' ? 8 : tensor.type == std::string_view{"F32"} ? 4 : 2;
        std::string shape;
        for (const std::size_t size : tensor.shape) {
            bytes *= size;
            shape += (shape.empty() ? "" : ",") + std::to_string(size);
        }
        header += (header.size() == 1 ? "\"" : ",\"") + std::string{tensor.name} + R"(":{"dtype":")" + tensor.type +
                  R"(","shape":[)" + shape + R"(],"data_offsets":[)" + std::to_string(data.size()) + "," +
                  std::to_string(data.size() + bytes) + "]}";
        for (; bytes != 0; --bytes)
            data += static_cast<char>(random.below(256) * random.below(2));
    }
    return fuzz::safetensors(header + "}", data);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static fuzz::KernelFile file;
    const std::string_view bytes{reinterpret_cast<const char*>(data), size};
    file.write(bytes);
    model().load(file.path(), bytes);
    return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
    fuzz::Random random{seed};
    static const std::string saved = model().saved();
    if (random.one_in(8)) return fuzz::become(random_file(random), data, most);
    if (size < 8 || random.one_in(8)) size = fuzz::become(saved, data, most);
    return fuzz::mutate_safetensors(random, data, size, most);
}
