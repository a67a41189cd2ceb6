// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "shardwise/data/npy.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "data/support.hpp"

namespace shardwise_test {
namespace {

using shardwise::NpyHeader;
using shardwise::NpyMatrix;

template <class T>
std::string npy(const std::vector<T>& values, std::int64_t rows, std::int64_t columns, int version = 1) {
    return npy_file(shardwise::npy_dtype<T>(), {rows, columns}, bytes_of(values), version);
}

template <class T>
std::vector<T> read(const std::string& path, std::int64_t columns) {
    const NpyMatrix<T> matrix{path, columns};
    std::vector<T> values(static_cast<std::size_t>(matrix.rows() * columns));
    matrix.read(0, matrix.rows(), values.data());
    return values;
}

// What numpy 2.4 writes for an int32 array of shape (2, 3): the test's own writer is held against it.
TEST(Npy, ReadsAFileOfNumpy) {
    const std::string file = std::string{"\x93NUMPY\x01\0v\0", 10} +
                             "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }" + std::string(58, ' ') +
                             "\n" + bytes_of(std::vector<std::int32_t>{1, 2, 3, -4, 5, 6});
    EXPECT_EQ(npy(std::vector<std::int32_t>{1, 2, 3, -4, 5, 6}, 2, 3), file);
    const Folder folder;
    EXPECT_EQ(read<std::int32_t>(folder.write("a.npy", file), 3), (std::vector<std::int32_t>{1, 2, 3, -4, 5, 6}));
}

TEST(Npy, HeadersMayBeLong) {
    const Folder folder;
    const std::vector<float> values = {1, 2, 3, 4, 5, 6};
    for (const int version : {1, 2, 3})
        for (const std::size_t alignment : {1024U, 32768U, 262144U}) {
            if (version == 1 && alignment > 65535) continue;
            const auto file =
                folder.write("a.npy", npy_file("<f4", {2, 3}, bytes_of(values), version, false, alignment));
            EXPECT_EQ(std::filesystem::file_size(file), alignment + 24);
            EXPECT_EQ(read<float>(file, 3), values);
        }
}

TEST(Npy, HeadersArePythonDictionaries) {
    NpyHeader h;
    for (const std::string text : {"{'descr': '<f4', 'fortran_order': True, 'shape': (3, 13), }    \n",
                                   "{'shape':(3,13),\"fortran_order\":True,'descr':\"<f4\"}",
                                   " { 'fortran_order' : True , 'shape' : ( 3 , 13 , ) , 'descr' : '<f4' } "}) {
        ASSERT_TRUE(shardwise::parse_npy_header(text, h)) << text;
        EXPECT_EQ(h.dtype, "<f4");
        EXPECT_TRUE(h.fortran_order);
        EXPECT_EQ(h.shape, (std::vector<std::int64_t>{3, 13}));
    }
    const std::pair<std::string, std::vector<std::int64_t>> shapes[] = {
        {"()", {}}, {"(7,)", {7}}, {"(1, 2, 3)", {1, 2, 3}}, {"(0, 9223372036854775807)", {0, INT64_MAX}}};
    for (const auto& [text, shape] : shapes) {
        ASSERT_TRUE(shardwise::parse_npy_header("{'descr': '|b1', 'fortran_order': False, 'shape': " + text + "}", h));
        EXPECT_FALSE(h.fortran_order);
        EXPECT_EQ(h.shape, shape);
    }
    for (const std::string text :
         {"", "{", "{}", "[]", "{'descr': '<f4', 'fortran_order': False}",
          "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 13)", "{'descr': '<f4' 'fortran_order': False}",
          "{'descr': '<f4', 'fortran_order': 0, 'shape': (3, 13)}",
          "{'descr': '<f4', 'fortran_order': False, 'shape': (3 13)}",
          "{'descr': '<f4', 'fortran_order': False, 'shape': (3, -13)}",
          "{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,)}",
          "{'descr': '<f4', 'fortran_order': False, 'shape': (,)}",
          "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 13)} x",
          "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (3, 13)}",
          "{'descr': '<f4, 'fortran_order': False, 'shape': (3, 13)}",
          "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,)}",
          "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 13), 'more': 1}"})
        EXPECT_FALSE(shardwise::parse_npy_header(text, h)) << text;
}

RC_GTEST_PROP(Npy, AnyRowsOfAnyMatrix, (std::uint64_t seed)) {
    std::mt19937_64 random{seed};
    const auto rows = static_cast<std::int64_t>(random() % 20);
    const auto columns = static_cast<std::int64_t>(1 + random() % 5);
    std::vector<std::int32_t> values(static_cast<std::size_t>(rows * columns));
    for (auto& value : values)
        value = static_cast<std::int32_t>(random());
    const Folder folder;
    const auto file = folder.write("a.npy", npy(values, rows, columns, 1 + static_cast<int>(random() % 3)));
    const NpyMatrix<std::int32_t> matrix{file, columns};
    RC_ASSERT(matrix.rows() == rows);
    for (std::int64_t first = 0; first <= rows; ++first)
        for (std::int64_t count = 0; first + count <= rows; ++count) {
            std::vector<std::int32_t> part(static_cast<std::size_t>(count * columns));
            matrix.read(first, count, part.data());
            RC_ASSERT(part == std::vector<std::int32_t>(values.begin() + first * columns,
                                                        values.begin() + (first + count) * columns));
        }
}

TEST(Npy, RefusesWhatIsNoMatrixOfThisKind) {
    const Folder folder;
    const std::vector<float> values(6);
    const std::string good = npy(values, 2, 3);
    const auto error = [&](const std::string& content) {
        const auto file = folder.write("a.npy", content);
        const std::string text = bad_input([&] { read<float>(file, 3); });
        EXPECT_TRUE(text.starts_with(file + ": ")) << text;
        return text.substr(std::min(text.size(), file.size() + 2));
    };
    const auto of = [&](const std::string& dtype, const std::vector<std::int64_t>& shape, bool fortran = false) {
        return error(npy_file(dtype, shape, bytes_of(values), 1, fortran));
    };
    const std::string magic =
        "it does not start with the bytes 93 'NUMPY' of a .npy file: give one that numpy.save has written";
    EXPECT_EQ(error(""), magic);
    EXPECT_EQ(error("\x93NUMP"), magic);
    EXPECT_EQ(error("1\t2\t3\n" + good), magic);
    const std::string version = " of the .npy format, expected 1.0, 2.0 or 3.0: save it with another version of numpy";
    for (const auto& [major, minor] : {std::pair{0, 0}, {4, 0}, {1, 1}}) {
        std::string other = good;
        other[6] = static_cast<char>(major);
        other[7] = static_cast<char>(minor);
        EXPECT_EQ(error(other), "version " + std::to_string(major) + "." + std::to_string(minor) + version);
    }
    for (const int v : {1, 2, 3}) {
        const std::string whole = npy(values, 2, 3, v);
        for (std::size_t size = 6; size != 128; ++size)
            EXPECT_EQ(error(whole.substr(0, size)), "the file ends within its header: it is truncated, write it again");
        for (std::size_t size = 128; size != whole.size(); ++size)
            EXPECT_EQ(error(whole.substr(0, size)),
                      std::to_string(size - 128) +
                          " bytes of data, which are not the 2 rows of 12 bytes of its shape (2, 3): the file is "
                          "truncated, write it again");
    }
    for (const std::size_t more : {1U, 12U})
        EXPECT_EQ(error(good + std::string(more, 'x')),
                  std::to_string(24 + more) +
                      " bytes of data, which are not the 2 rows of 12 bytes of its shape (2, 3): the file is longer "
                      "than its array, write it again");
    EXPECT_EQ(of("<f8", {2, 3}), "an array of dtype '<f8', expected '<f4': convert it with numpy's astype");
    EXPECT_EQ(of(">f4", {2, 3}), "an array of dtype '>f4', expected '<f4': convert it with numpy's astype");
    EXPECT_EQ(of("<i4", {2, 3}), "an array of dtype '<i4', expected '<f4': convert it with numpy's astype");
    EXPECT_EQ(of("<f4", {3, 2}), "an array of shape (3, 2), expected (samples, 3)");
    EXPECT_EQ(of("<f4", {6}), "an array of shape (6,), expected (samples, 3)");
    EXPECT_EQ(of("<f4", {2, 3, 1}), "an array of shape (2, 3, 1), expected (samples, 3)");
    EXPECT_EQ(of("<f4", {}), "an array of shape (), expected (samples, 3)");
    EXPECT_EQ(of("<f4", {2, 3}, true),
              "an array in Fortran order, column by column, expected C order: save numpy.ascontiguousarray of it");
    EXPECT_TRUE(of("<f4", {INT64_MAX, 3}).ends_with("truncated, write it again"));
    std::string other = good;
    other[10] = '[';
    EXPECT_EQ(error(other),
              "the header '['descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }', expected such as {'descr': "
              "'<f4', 'fortran_order': False, 'shape': (10, 3), }");
    EXPECT_EQ(bad_input([&] { read<float>(folder.path() + "/none.npy", 3); }),
              folder.path() + "/none.npy: cannot be read: No such file or directory");
    EXPECT_EQ(bad_input([&] { read<float>(folder.path(), 3); }), folder.path() + ": cannot be read: it is a directory");
}

TEST(Npy, AFileThatShrinksIsAnError) {
    const Folder folder;
    const auto file = folder.write("a.npy", npy(std::vector<float>(6), 2, 3));
    const NpyMatrix<float> matrix{file, 3};
    std::vector<float> values(6);
    std::filesystem::resize_file(file, 128 + 13);
    matrix.read(0, 1, values.data());
    EXPECT_EQ(bad_input([&] { matrix.read(0, 2, values.data()); }),
              file + ": row 1 is gone: the file has become shorter while it is read");
}

}  // namespace
}  // namespace shardwise_test
