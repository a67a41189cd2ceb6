// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "shardwise/checkpoint/durable_file.hpp"
#include "shardwise/checkpoint/tensor_type.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"

/// \file
/// Files of named tensors in the safetensors format: 8 bytes, little-endian, with the length of a JSON header; the
/// header; the data. Python's `safetensors` package, or `struct` and `json` alone, read them.

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

static_assert(sizeof(float) == 4 && std::numeric_limits<float>::is_iec559);

/// Little-endian machines only: the format is, and data is written as it lies in memory.
inline void require_little_endian() {
    const std::uint16_t one = 1;
    unsigned char first = 0;
    std::memcpy(&first, &one, 1);
    if (first != 1) throw Error{"safetensors files are read and written on little-endian machines only", 2};
}

}  // namespace detail

/// Writes a file: declare all tensors, `begin()`, then append their data in the order of declaration.
///
/// The file appears under its name once it is complete and on the disk: data goes to `path`.partial first. Not
/// collective. Memory: the header. \throws BadInput naming the file when it cannot be written
class SafetensorsWriter {
  public:
    explicit SafetensorsWriter(std::string path) : path_{std::move(path)} { detail::require_little_endian(); }
    SafetensorsWriter(const SafetensorsWriter&) = delete;
    SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;
    ~SafetensorsWriter() = default;

    /// A text of the header's `__metadata__`. \throws BadInput for one that is no UTF-8
    void metadata(const std::string& key, const std::string& value) {
        require_utf8(key);
        require_utf8(value);
        metadata_[key] = value;
    }
    /// Declares a tensor. \throws BadInput for a name that was declared or is no UTF-8, or a shape that makes no sense
    void declare(const std::string& name, TensorType type, std::vector<std::int64_t> shape) {
        require_utf8(name);
        const auto elements = elements_of(shape);
        if (!elements || type == TensorType::other)
            throw BadInput{concat({path_, ": tensor '", name, "' of ", type_name(type), " and shape ",
                                   shape_text(shape), " makes no sense"})};
        const std::int64_t bytes = *elements * element_bytes(type);
        if (header_.contains(name) || name == "__metadata__")
            throw BadInput{concat({path_, ": two tensors are named '", name, "': names are unique"})};
        header_[name] = {{"dtype", type_name(type)}, {"shape", shape}, {"data_offsets", {total_, total_ + bytes}}};
        total_ += bytes;
    }
    /// Opens the file and writes the header. \returns what stands before the data
    std::string begin() {
        if (!metadata_.empty()) header_["__metadata__"] = metadata_;
        std::string text = header_.dump();
        text.append((8 - text.size() % 8) % 8, ' ');  // data is aligned
        const std::uint64_t length = text.size();
        text.insert(0, reinterpret_cast<const char*>(&length), sizeof length);
        file_.emplace(partial());
        file_->write(std::as_bytes(std::span{text}));
        header_bytes_ = file_->written();
        return text;
    }
    /// Appends data: of the tensor that is under way, or of those that follow.
    template <class T>
    void append(std::span<const T> values) {
        file_->write(std::as_bytes(values));
    }
    /// Completes the file. \throws BadInput also when more or less was appended than declared
    void end() {
        const std::int64_t written = file_->written() - header_bytes_;
        if (written != total_)
            throw BadInput{concat({path_, ": ", written, " bytes of data were written, and ", total_, " declared"})};
        file_->complete_as(path_);
    }

  private:
    [[nodiscard]] std::string partial() const { return path_ + ".partial"; }
    void require_utf8(const std::string& text) const {
        try {
            static_cast<void>(nlohmann::json(text).dump());
        } catch (const nlohmann::json::type_error&) {
            const auto kept = nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
            throw BadInput{concat({path_, ": the name ", kept, " is no UTF-8, as names in safetensors files are"})};
        }
    }

    std::string path_;
    nlohmann::ordered_json header_ = nlohmann::ordered_json::object();
    std::map<std::string, std::string> metadata_;
    std::optional<DurableFile> file_;
    std::int64_t header_bytes_ = 0;
    std::int64_t total_ = 0;
};

/// Reads a file, tensor by tensor and piece by piece. Everything in the header is checked when it is opened: after
/// that, `read` fails only when the file changes. Tensors of types that are not read here are left alone.
/// Not collective. Memory: the header, of at most 100 MB.
class SafetensorsReader {
  public:
    static constexpr std::uint64_t largest_header = 100'000'000;

    /// Reads the header of a file.
    /// \throws BadInput naming the file and what is wrong with it
    explicit SafetensorsReader(std::string path) : path_{std::move(path)} {
        detail::require_little_endian();
        errno = 0;
        file_.open(path_, std::ios::binary);
        if (!file_) fail(std::string{"cannot be read: "} + std::strerror(errno));
        file_.seekg(0, std::ios::end);
        const auto size = static_cast<std::int64_t>(file_.tellg());
        file_.seekg(0);
        if (size < 0) fail("cannot be read: it is no regular file");
        if (size < 8)
            fail("is no safetensors file: it has " + std::to_string(size) +
                 " bytes, and the first 8 hold the "
                 "length of the header");
        std::uint64_t length = 0;
        file_.read(reinterpret_cast<char*>(&length), sizeof length);
        if (!file_) fail("cannot be read");
        if (length > largest_header)
            fail("is no safetensors file: a header of " + std::to_string(length) + " bytes is more than " +
                 std::to_string(largest_header));
        if (length > static_cast<std::uint64_t>(size - 8))
            fail("ends inside its header: that has " + std::to_string(length) + " bytes, and " +
                 std::to_string(size - 8) + " follow");
        std::string text(length, '\0');
        file_.read(text.data(), static_cast<std::streamsize>(length));
        if (!file_) fail("cannot be read");
        data_ = 8 + static_cast<std::int64_t>(length);
        file_bytes_ = size;
        parse(text, size - data_);
    }

    [[nodiscard]] const std::string& path() const noexcept { return path_; }
    [[nodiscard]] const std::map<std::string, TensorInfo>& tensors() const noexcept { return tensors_; }
    [[nodiscard]] const std::map<std::string, std::string>& metadata() const noexcept { return metadata_; }
    /// Bytes of the file, and of what stands in it before the data.
    [[nodiscard]] std::int64_t file_bytes() const noexcept { return file_bytes_; }
    [[nodiscard]] std::int64_t header_bytes() const noexcept { return data_; }

    /// The tensor of that name. \param type  f32: F16 and BF16 will do, too
    /// \throws BadInput when there is none, or it has another type or shape
    [[nodiscard]] const TensorInfo& require(const std::string& name, TensorType type,
                                            const std::vector<std::int64_t>& shape) const {
        const auto found = tensors_.find(name);
        if (found == tensors_.end()) fail("has no tensor '" + name + "'");
        const TensorInfo& info = found->second;
        const bool fits = info.type == type || (type == TensorType::f32 && element_bytes(info.type) == 2);
        if (!fits || info.shape != shape)
            fail("tensor '" + name + "' is " + info.dtype + " of shape " + shape_text(info.shape) + ", expected " +
                 (fits || type != TensorType::f32 ? type_name(type) : "F32, F16 or BF16") + " of shape " +
                 shape_text(shape));
        return info;
    }
    /// Bytes [first, first + to.size()) of the file, the header with them. \throws BadInput when they cannot be read
    void read_bytes(std::int64_t first, std::span<std::byte> to) {
        file_.clear();
        file_.seekg(first);
        file_.read(reinterpret_cast<char*>(to.data()), static_cast<std::streamsize>(to.size()));
        if (!file_) fail("cannot be read: it has become shorter, or the disk fails");
    }
    /// Elements [first, first + to.size()) of a tensor of this file, F16 and BF16 as the floats that they are.
    /// \throws BadInput when they cannot be read
    template <class T>
    void read(const TensorInfo& tensor, std::int64_t first, std::span<T> to) {
        constexpr bool whole = std::is_same_v<T, std::int64_t>;
        static_assert(whole || std::is_same_v<T, float>);
        SHARDWISE_ASSERT(tensor.type != TensorType::other && whole == (tensor.type == TensorType::i64));
        SHARDWISE_ASSERT(first >= 0 && first + static_cast<std::int64_t>(to.size()) <= tensor.elements());
        const std::int64_t width = element_bytes(tensor.type);
        const auto stored = std::as_writable_bytes(to).last(to.size() * static_cast<std::size_t>(width));
        read_bytes(data_ + tensor.begin + first * width, stored);
        if constexpr (!whole)
            if (width == 2) widen_in_place(tensor.type, to);
    }

  private:
    using Json = nlohmann::json;

    [[noreturn]] void fail(const std::string& reason) const { throw BadInput{concat({path_, ": ", reason})}; }

    void parse(const std::string& text, std::int64_t data_bytes) {
        bool twice = false;
        std::string name;
        std::map<std::string, int> seen;
        const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
            if (depth > 8) throw BadInput{concat({path_, ": the header is nested too deeply"})};
            if (event == Json::parse_event_t::key && depth == 1 && ++seen[parsed.get<std::string>()] > 1) {
                twice = true;
                name = parsed.get<std::string>();
            }
            return true;
        };
        Json header;
        try {
            header = Json::parse(text, watch);
        } catch (const Json::parse_error& error) {  // whose own text has the file's bytes
            fail("the header is no JSON from its byte " + std::to_string(error.byte) + " on");
        } catch (const Json::exception&) {
            fail("the header is no JSON: a number in it is out of range");
        }
        if (!header.is_object()) fail("the header is no JSON object");
        if (twice) fail("two tensors are named '" + name + "'");
        std::vector<std::pair<std::int64_t, std::int64_t>> places;
        for (const auto& [key, value] : header.items()) {
            if (key == "__metadata__") {
                parse_metadata(value);
                continue;
            }
            TensorInfo info = parse_tensor(key, value, data_bytes);
            if (info.bytes != 0) places.emplace_back(info.begin, info.begin + info.bytes);
            tensors_.emplace(key, std::move(info));
        }
        std::sort(places.begin(), places.end());
        std::int64_t end = 0;
        for (const auto& [first, last] : places) {
            if (first != end)
                fail(first < end ? "two tensors overlap at byte " + std::to_string(first) + " of the data"
                                 : "the data has a hole at byte " + std::to_string(end));
            end = last;
        }
        if (end != data_bytes)
            fail("the tensors have " + std::to_string(end) + " bytes, and the data " + std::to_string(data_bytes));
    }

    void parse_metadata(const Json& value) {
        if (!value.is_object()) fail("__metadata__ is no JSON object");
        for (const auto& [key, text] : value.items()) {
            if (!text.is_string()) fail("__metadata__ '" + key + "' is no string");
            metadata_[key] = text.get<std::string>();
        }
    }

    [[nodiscard]] TensorInfo parse_tensor(const std::string& name, const Json& value, std::int64_t data_bytes) const {
        const auto wrong = [&](const std::string& what) { fail("tensor '" + name + "': " + what); };
        TensorInfo info;
        if (!value.is_object()) wrong("its description is no JSON object");
        for (const char* key : {"dtype", "shape", "data_offsets"})
            if (!value.contains(key)) wrong(std::string{"its description has no "} + key);
        if (!value["dtype"].is_string()) wrong("its dtype is no string");
        value["dtype"].get_to(info.dtype);
        info.type = tensor_type_of(info.dtype);
        if (!value["shape"].is_array()) wrong("its shape is no list");
        for (const Json& size : value["shape"])
            info.shape.push_back(whole_number(size, name, "a size of its shape"));
        const auto elements = elements_of(info.shape);
        if (!elements) wrong("shape " + shape_text(info.shape) + " is larger than any file");
        const Json& offsets = value["data_offsets"];
        if (!offsets.is_array() || offsets.size() != 2) wrong("its data_offsets are no list of two numbers");
        info.begin = whole_number(offsets[0], name, "its begin");
        const std::int64_t end = whole_number(offsets[1], name, "its end");
        if (info.begin > end || end > data_bytes)
            wrong("its data is [" + std::to_string(info.begin) + ", " + std::to_string(end) + ") of " +
                  std::to_string(data_bytes) + " bytes" + (end > data_bytes ? ": the file has been cut off" : ""));
        info.bytes = end - info.begin;
        const std::int64_t bytes = *elements * element_bytes(info.type);
        if (info.type != TensorType::other && info.bytes != bytes)
            wrong(std::to_string(info.bytes) + " bytes of data for " + info.dtype + " of shape " +
                  shape_text(info.shape) + ", which takes " + std::to_string(bytes));
        return info;
    }

    [[nodiscard]] std::int64_t whole_number(const Json& value, const std::string& tensor, const char* what) const {
        const bool whole = value.is_number_unsigned() &&
                           value.get<std::uint64_t>() <= std::uint64_t{std::numeric_limits<std::int64_t>::max()};
        if (!whole)
            fail("tensor '" + tensor + "': " + what + " is " +
                 value.dump(-1, ' ', true, Json::error_handler_t::replace) + ", expected a whole number");
        return value.get<std::int64_t>();
    }

    std::string path_;
    std::ifstream file_;
    std::int64_t data_ = 0;  // where the data begins
    std::int64_t file_bytes_ = 0;
    std::map<std::string, TensorInfo> tensors_;
    std::map<std::string, std::string> metadata_;
};

}  // namespace shardwise::inline SHARDWISE_ABI
