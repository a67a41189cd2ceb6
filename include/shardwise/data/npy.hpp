// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/data/file_descriptor.hpp"

/// \file
/// Matrices in numpy's .npy files, read by rows.

namespace shardwise::inline SHARDWISE_ABI {

/// What the header of a .npy file says about its array.
struct NpyHeader {
    std::string dtype;                ///< as numpy writes it: "<f4" is float32 with the lowest byte first
    bool fortran_order = false;       ///< column by column
    std::vector<std::int64_t> shape;  ///< of any number of dimensions
};

/// How numpy calls T, in the byte order of this machine: "<f4", "<i4".
template <class T>
    requires std::is_arithmetic_v<T>
[[nodiscard]] inline std::string npy_dtype() {
    return {std::endian::native == std::endian::little ? '<' : '>',
            std::is_floating_point_v<T> ? 'f' : (std::is_signed_v<T> ? 'i' : 'u'), static_cast<char>('0' + sizeof(T))};
}

namespace detail {

// Reads the Python literals that headers are made of. Everything returns false where the text is something else.
struct NpyText {
    std::string_view left;

    void skip_spaces() noexcept { left.remove_prefix(std::min(left.find_first_not_of(" \t\n"), left.size())); }
    bool take(std::string_view token) noexcept {
        skip_spaces();
        if (!left.starts_with(token)) return false;
        left.remove_prefix(token.size());
        return true;
    }
    bool string(std::string& value) {
        skip_spaces();
        if (left.empty() || (left[0] != '\'' && left[0] != '"')) return false;
        const std::size_t end = left.find(left[0], 1);
        if (end == std::string_view::npos) return false;
        value = left.substr(1, end - 1);
        left.remove_prefix(end + 1);
        return true;
    }
    bool boolean(bool& value) noexcept {
        value = take("True");
        return value || take("False");
    }
    bool shape(std::vector<std::int64_t>& value) {
        if (!take("(")) return false;
        bool comma = true;
        while (!take(")")) {
            std::int64_t size = 0;
            skip_spaces();
            const auto [stop, status] = std::from_chars(left.data(), left.data() + left.size(), size);
            if (!comma || status != std::errc{} || size < 0) return false;
            left.remove_prefix(static_cast<std::size_t>(stop - left.data()));
            value.push_back(size);
            comma = take(",");
        }
        return true;
    }
    bool header(NpyHeader& value) {
        int fields = 0;  // bits
        bool comma = true;
        if (!take("{")) return false;
        while (!take("}")) {
            std::string key;
            if (!comma || !string(key) || !take(":")) return false;
            const int field = key == "descr" ? 1 : key == "fortran_order" ? 2 : key == "shape" ? 4 : 0;
            const bool read = field == 1   ? string(value.dtype)
                              : field == 2 ? boolean(value.fortran_order)
                                           : field == 4 && shape(value.shape);
            if (!read || (fields & field) != 0) return false;
            fields |= field;
            comma = take(",");
        }
        skip_spaces();
        return fields == 7 && left.empty();
    }
};

inline std::string shape_text(const std::vector<std::int64_t>& shape) {
    std::string text = "(";
    for (std::size_t i = 0; i != shape.size(); ++i)
        text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
    return text + (shape.size() == 1 ? ",)" : ")");
}

}  // namespace detail

/// Reads the text of a header, a Python dictionary with the keys descr, fortran_order and shape in any order.
/// \returns false where it is something else
[[nodiscard]] inline bool parse_npy_header(std::string_view text, NpyHeader& header) {
    header = {};
    return detail::NpyText{text}.header(header);
}

/// A matrix of T in a .npy file, in C order and this machine's byte order: rows are read, wherever they are, when they
/// are asked for. Format versions 1.0, 2.0 and 3.0.
///
/// Memory: nothing but the header. Not collective; const members may be called from several threads.
template <class T>
class NpyMatrix {
  public:
    /// Reads the header and compares the size of the file with it. \param columns  that the matrix must have
    /// \throws BadInput naming the file, what is wrong, the value, and what to do
    NpyMatrix(std::string path, std::int64_t columns) : path_{std::move(path)}, file_{path_}, columns_{columns} {
        struct stat about {};
        if (::fstat(file_.number(), &about) != 0 || !S_ISREG(about.st_mode))
            fail("it is no regular file: give one that numpy.save has written");
        const NpyHeader header = read_header();
        if (const std::string dtype = npy_dtype<T>(); header.dtype != dtype)
            fail("an array of dtype '" + header.dtype + "', expected '" + dtype + "': convert it with numpy's astype");
        const std::string shape = detail::shape_text(header.shape);
        if (header.shape.size() != 2 || header.shape[1] != columns_)
            fail("an array of shape " + shape + ", expected (samples, " + std::to_string(columns_) + ")");
        if (header.fortran_order)
            fail("an array in Fortran order, column by column, expected C order: save numpy.ascontiguousarray of it");
        rows_ = header.shape[0];
        const std::int64_t bytes = about.st_size - data_;
        if (bytes % row_bytes() != 0 || bytes / row_bytes() != rows_)
            fail(std::to_string(bytes) + " bytes of data, which are not the " + std::to_string(rows_) + " rows of " +
                 std::to_string(row_bytes()) + " bytes of its shape " + shape + ": the file is " +
                 (bytes / row_bytes() < rows_ ? "truncated" : "longer than its array") + ", write it again");
    }

    [[nodiscard]] const std::string& path() const noexcept { return path_; }
    [[nodiscard]] std::int64_t rows() const noexcept { return rows_; }
    [[nodiscard]] std::int64_t columns() const noexcept { return columns_; }

    /// Reads rows [first, first + count), which the matrix has. \param to  (count, columns)
    /// \throws BadInput when the file cannot be read or has become shorter
    void read(std::int64_t first, std::int64_t count, T* to) const {
        const auto size = static_cast<std::size_t>(count * row_bytes());
        if (read_bytes(data_ + first * row_bytes(), size, to) != size)
            fail("row " + std::to_string(first + count - 1) + " is gone: the file has become shorter while it is read");
    }

  private:
    static constexpr std::int64_t longest_header = std::int64_t{1} << 20;

    [[noreturn]] void fail(const std::string& reason) const { throw BadInput{concat({path_, ": ", reason})}; }
    [[nodiscard]] std::int64_t row_bytes() const noexcept { return columns_ * static_cast<std::int64_t>(sizeof(T)); }

    // Reads the header and sets data_.
    NpyHeader read_header() {
        unsigned char start[12] = {};
        const std::size_t count = read_bytes(0, sizeof start, start);
        if (count < 6 || std::memcmp(start, "\x93NUMPY", 6) != 0)
            fail("it does not start with the bytes 93 'NUMPY' of a .npy file: give one that numpy.save has written");
        const int version = start[6];
        if (count >= 8 && (version < 1 || version > 3 || start[7] != 0))
            fail("version " + std::to_string(version) + "." + std::to_string(int{start[7]}) +
                 " of the .npy format, expected 1.0, 2.0 or 3.0: save it with another version of numpy");
        std::int64_t length = start[8] | start[9] << 8;
        if (version != 1)
            length |= static_cast<std::int64_t>(start[10]) << 16 | static_cast<std::int64_t>(start[11]) << 24;
        data_ = (version == 1 ? 10 : 12) + length;
        std::string text(static_cast<std::size_t>(std::min(length, longest_header)), '\0');
        const bool whole = read_bytes(data_ - length, text.size(), text.data()) == text.size();
        if (count < sizeof start || !whole) fail("the file ends within its header: it is truncated, write it again");
        NpyHeader header;
        if (!parse_npy_header(text, header))
            fail("the header '" + text.substr(0, std::min(text.find_last_not_of(" \n") + 1, std::size_t{200})) +
                 "', expected such as {'descr': '" + npy_dtype<T>() + "', 'fortran_order': False, 'shape': (10, " +
                 std::to_string(columns_) + "), }");
        return header;
    }

    // Reads up to `size` bytes; returns their number, smaller at the end of the file only.
    std::size_t read_bytes(std::int64_t offset, std::size_t size, void* to) const {
        std::size_t done = 0;
        while (done != size) {
            const ::ssize_t count = ::pread(file_.number(), static_cast<char*>(to) + done, size - done,
                                            offset + static_cast<std::int64_t>(done));
            if (count == 0) break;
            if (count > 0) done += static_cast<std::size_t>(count);
            if (count < 0 && errno != EINTR) fail(std::string{"cannot be read: "} + std::strerror(errno));
        }
        return done;
    }

    std::string path_;
    FileDescriptor file_;
    std::int64_t columns_;
    std::int64_t rows_ = 0;
    std::int64_t data_ = 0;  // bytes before the first row
};

}  // namespace shardwise::inline SHARDWISE_ABI
