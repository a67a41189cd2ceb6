// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/checkpoint/safetensors.hpp"

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "checkpoint/support.hpp"

namespace {

namespace sw = shardwise;
using checkpoint_test::TemporaryFile;

std::string file_of(const std::string& header, const std::string& data) {
    const std::uint64_t length = header.size();
    std::string bytes(8, '\0');
    std::memcpy(bytes.data(), &length, 8);
    return bytes + header + data;
}

std::string reason_for(const std::string& bytes) {
    const TemporaryFile file{"malformed"};
    file.write(bytes);
    try {
        const sw::SafetensorsReader reader{file.path()};
    } catch (const sw::BadInput& error) {
        const std::string what = error.what();
        EXPECT_EQ(what.rfind(file.path() + ": ", 0), 0U) << what;
        return what.substr(file.path().size() + 2);
    }
    return "";
}

TEST(Safetensors, RoundTrip) {
    const TemporaryFile file{"round_trip"};
    const std::vector<float> a{1.0F, -0.0F, 3.5F, 1e-40F, 5.0F, 6.0F};
    const std::vector<std::int64_t> n{-7};
    {
        sw::SafetensorsWriter writer{file.path()};
        writer.metadata("made by", "a \"test\"");
        writer.declare("a", sw::TensorType::f32, {2, 3});
        writer.declare("nothing", sw::TensorType::f32, {0, 3});
        writer.declare("n", sw::TensorType::i64, {});
        writer.begin();
        writer.append(std::span<const float>{a}.first(4));  // in pieces
        writer.append(std::span<const float>{a}.last(2));
        writer.append(std::span<const std::int64_t>{n});
        writer.end();
    }
    EXPECT_FALSE(std::ifstream{file.path() + ".partial"});
    sw::SafetensorsReader reader{file.path()};
    EXPECT_EQ(reader.metadata().at("made by"), "a \"test\"");
    EXPECT_EQ(reader.tensors().size(), 3U);
    std::vector<float> b(2);
    reader.read(reader.require("a", sw::TensorType::f32, {2, 3}), 3, std::span{b});
    EXPECT_EQ(b, (std::vector<float>{1e-40F, 5.0F}));
    std::int64_t m = 0;
    reader.read(reader.require("n", sw::TensorType::i64, {}), 0, std::span{&m, 1});
    EXPECT_EQ(m, -7);
    EXPECT_THROW(static_cast<void>(reader.require("b", sw::TensorType::f32, {2, 3})), sw::BadInput);
    EXPECT_THROW(static_cast<void>(reader.require("a", sw::TensorType::f32, {3, 2})), sw::BadInput);
    EXPECT_THROW(static_cast<void>(reader.require("a", sw::TensorType::i64, {2, 3})), sw::BadInput);
}

TEST(Safetensors, DataBeginsAtAMultipleOfEight) {
    const TemporaryFile file{"aligned"};
    for (const char* name : {"a", "ab", "abc", "abcd", "abcde", "abcdef", "abcdefg", "abcdefgh"}) {
        sw::SafetensorsWriter writer{file.path()};
        writer.declare(name, sw::TensorType::f32, {1});
        writer.begin();
        const float one = 1.0F;
        writer.append(std::span{&one, 1});
        writer.end();
        EXPECT_EQ((file.read().size() - 4) % 8, 0U);
    }
}

TEST(Safetensors, AnUnfinishedFileLeavesTheOldOne) {
    const TemporaryFile file{"unfinished"};
    file.write("old");
    {
        sw::SafetensorsWriter writer{file.path()};
        writer.declare("a", sw::TensorType::f32, {1000});
        writer.begin();
        EXPECT_THROW(writer.end(), sw::BadInput);  // nothing appended
    }
    EXPECT_EQ(file.read(), "old");
    EXPECT_FALSE(std::ifstream{file.path() + ".partial"});
}

TEST(Safetensors, WhereItCannotBeWritten) {
    sw::SafetensorsWriter writer{"/nonexistent/folder/file"};
    writer.declare("a", sw::TensorType::f32, {});
    EXPECT_THROW(writer.declare("a", sw::TensorType::f32, {}), sw::BadInput);
    EXPECT_THROW(writer.declare("b", sw::TensorType::f32, {-1}), sw::BadInput);
    EXPECT_THROW(writer.begin(), sw::BadInput);
}

TEST(Safetensors, AFileThatCannotTakeItsNameLeavesNothingBehind) {
    const std::string folder = "shardwise_" + std::to_string(::getpid()) + "_folder";
    ASSERT_TRUE(std::filesystem::create_directory(folder));
    {
        sw::SafetensorsWriter writer{folder};
        writer.begin();
        EXPECT_TRUE(std::filesystem::exists(folder + ".partial"));
        EXPECT_THROW(writer.end(), sw::BadInput);
    }
    EXPECT_FALSE(std::filesystem::exists(folder + ".partial"));
    std::filesystem::remove(folder);
}

TEST(Safetensors, NamesAreUtf8) {
    const TemporaryFile file{"utf8"};
    sw::SafetensorsWriter writer{file.path()};
    const auto refused = [&](auto call) {
        try {
            call();
        } catch (const sw::BadInput& error) {
            return std::string{error.what()}.find("is no UTF-8") != std::string::npos;
        }
        return false;
    };
    EXPECT_TRUE(refused([&] { writer.declare("caf\xe9", sw::TensorType::f32, {}); }));
    EXPECT_TRUE(refused([&] { writer.metadata("key", "caf\xe9"); }));
    EXPECT_TRUE(refused([&] { writer.metadata("caf\xe9", "value"); }));
    EXPECT_FALSE(refused([&] { writer.declare("caf\xc3\xa9", sw::TensorType::f32, {}); }));
}

TEST(Safetensors, EveryMalformedFileIsBadInputWithAReason) {
    const auto tensor = [](const std::string& description) {
        return file_of("{\"a\":" + description + "}", "12345678");
    };
    const auto valid = R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
    EXPECT_EQ(reason_for(tensor(valid)), "");
    const std::vector<std::pair<std::string, std::string>> cases = {
        {"", "has 0 bytes"},
        {"1234567", "has 7 bytes"},
        {file_of("{}", "").substr(0, 9), "ends inside its header"},
        {std::string(8, '\xff') + "{}", "header of 18446744073709551615 bytes"},
        {file_of("{", ""), "no JSON"},
        {file_of("{\"\xff\xfe", ""), "the header is no JSON from its byte 3 on"},
        {file_of("[1e999]", ""), "a number in it is out of range"},
        {file_of("[]", ""), "no JSON object"},
        {file_of("", ""), "no JSON"},
        {file_of(std::string(200, '['), ""), "nested too deeply"},
        {file_of("{\"a\":" + std::string{valid} + ",\"a\":" + valid + "}", "12345678"), "two tensors are named 'a'"},
        {file_of("{}", "1"), "the tensors have 0 bytes, and the data 1"},
        {file_of(R"({"__metadata__":3})", ""), "__metadata__ is no JSON object"},
        {file_of(R"({"__metadata__":{"x":3}})", ""), "'x' is no string"},
        {tensor("3"), "no JSON object"},
        {tensor(R"({"shape":[2],"data_offsets":[0,8]})"), "no dtype"},
        {tensor(R"({"dtype":"F32","data_offsets":[0,8]})"), "no shape"},
        {tensor(R"({"dtype":"F32","shape":[2]})"), "no data_offsets"},
        {tensor(R"({"dtype":"F16","shape":[3],"data_offsets":[0,8]})"),
         "8 bytes of data for F16 of shape (3,), which takes 6"},
        {tensor(R"({"dtype":7,"shape":[4],"data_offsets":[0,8]})"), "its dtype is no string"},
        {tensor(R"({"dtype":"F32","shape":2,"data_offsets":[0,8]})"), "shape is no list"},
        {tensor(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})"), "is -2, expected a whole number"},
        {tensor(R"({"dtype":"F32","shape":[2.0],"data_offsets":[0,8]})"), "expected a whole number"},
        {tensor(R"({"dtype":"F32","shape":["2"],"data_offsets":[0,8]})"), "expected a whole number"},
        {tensor(R"({"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,8]})"), "expected a whole number"},
        {tensor(R"({"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,8]})"), "larger than any file"},
        {tensor(R"({"dtype":"F32","shape":[2],"data_offsets":8})"), "no list of two"},
        {tensor(R"({"dtype":"F32","shape":[2],"data_offsets":[0,4,8]})"), "no list of two"},
        {tensor(R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})"), "its data is [8, 0) of 8"},
        {tensor(R"({"dtype":"F32","shape":[3],"data_offsets":[0,12]})"),
         "its data is [0, 12) of 8 bytes: the file has been cut off"},
        {tensor(R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})"), "8 bytes of data for F32 of shape (3,)"},
        {tensor(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})"), "the tensors have 4 bytes, and the data 8"},
        {tensor(R"({"dtype":"F32","shape":[1],"data_offsets":[4,8]})"), "a hole at byte 0"},
        {file_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[2],)"
                 R"("data_offsets":[0,8]}})",
                 "12345678"),
         "overlap at byte 0"},
    };
    for (const auto& [bytes, expected] : cases) {
        const std::string reason = reason_for(bytes);
        EXPECT_NE(reason.find(expected), std::string::npos) << "expected '" << expected << "', got '" << reason << "'";
    }
}

TEST(Safetensors, EveryTruncationIsBadInput) {
    const std::string whole = file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "12345678");
    for (std::size_t size = 0; size < whole.size(); ++size)
        EXPECT_NE(reason_for(whole.substr(0, size)), "") << size;
}

TEST(Safetensors, NoFileAndAFolder) {
    EXPECT_THROW(sw::SafetensorsReader{"/nonexistent"}, sw::BadInput);
    EXPECT_THROW(sw::SafetensorsReader{"/"}, sw::BadInput);
}

}  // namespace
