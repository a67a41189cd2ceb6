// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// InputFile over any bytes, with gzip's magic ones before most of them, read in pieces of any size, against zlib given
/// the whole file at once.

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include <zlib.h>

#include "fuzz/fuzz.hpp"
#include "fuzz/memory_file.hpp"
#include "shardwise/data/input_file.hpp"

namespace {

using fuzz::require;
namespace sw = shardwise;

constexpr std::size_t settings_bytes = 3;
constexpr std::size_t most_output = 1 << 16;

/// What is in a file, and what is wrong with it: a part of the message.
struct Unpacked {
    std::string_view bytes;
    const char* error = "";
    bool too_much = false;
};

/// All members one after the other, each with one call of inflate.
Unpacked unpack(std::string_view file) {
    static char output[most_output];
    static z_stream stream = [] {
        z_stream fresh{};
        require(inflateInit2(&fresh, 15 + 16) == Z_OK, "no zlib");
        return fresh;
    }();
    std::size_t done = 0;
    while (true) {
        inflateReset(&stream);
        stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(file.data()));
        stream.avail_in = static_cast<uInt>(file.size());
        stream.next_out = reinterpret_cast<Bytef*>(output) + done;
        stream.avail_out = static_cast<uInt>(most_output - done);
        const int code = inflate(&stream, Z_FINISH);
        file.remove_prefix(file.size() - stream.avail_in);
        done = most_output - stream.avail_out;
        const std::string_view bytes{output, done};
        if (stream.avail_out == 0) return {.bytes = bytes, .error = "", .too_much = true};
        if (code == Z_BUF_ERROR) return {.bytes = bytes, .error = "truncated"};
        if (code != Z_STREAM_END) return {.bytes = bytes, .error = "damaged"};
        while (file.starts_with('\0'))
            file.remove_prefix(1);
        if (file.empty()) return {.bytes = bytes};
        if (!file.starts_with('\x1f')) return {.bytes = bytes, .error = "no gzip"};
    }
}

std::string pack(fuzz::Random& random, const std::string& text) {
    z_stream stream{};
    const int level = static_cast<int>(random.below(10));
    const int window = 9 + static_cast<int>(random.below(7));
    const int strategy = random.one_in(2) ? Z_FIXED : Z_DEFAULT_STRATEGY;
    require(deflateInit2(&stream, level, Z_DEFLATED, window + 16, 1, strategy) == Z_OK, "no zlib");
    gz_header header{};
    Bytef name[] = "name";
    if (random.one_in(4)) {
        header.name = name;
        header.extra = random.one_in(2) ? name : nullptr;
        header.extra_len = 4;
        header.hcrc = static_cast<int>(random.below(2));
        deflateSetHeader(&stream, &header);
    }
    std::string packed(deflateBound(&stream, text.size()) + 64, '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream.avail_in = static_cast<uInt>(text.size());
    stream.next_out = reinterpret_cast<Bytef*>(packed.data());
    stream.avail_out = static_cast<uInt>(packed.size());
    require(deflate(&stream, Z_FINISH) == Z_STREAM_END, "deflate");
    packed.resize(stream.total_out);
    deflateEnd(&stream);
    return packed;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Choices choices{data, size};
    fuzz::MemoryFile& memory = fuzz::memory_files[0];
    const std::size_t block = 1 + 17 * choices.below(256);
    memory.most = 1 + choices.below(256);
    if (memory.most > 128) memory.most = 4096;
    const auto how = choices.number();
    memory.interrupted = (how & 1) != 0;
    std::string content{choices.text()};
    if ((how & 6) != 0 && content.size() >= 2) content.replace(0, 2, "\x1f\x8b");
    memory.content = content;
    const bool gzip = content.starts_with("\x1f\x8b");
    const Unpacked expected = gzip ? unpack(content) : Unpacked{.bytes = content};
    if (expected.too_much) return -1;

    sw::InputFile file{fuzz::MemoryFile::path(0)};
    static char output[most_output + 5000];
    std::size_t done = 0;
    std::string error;
    try {
        while (const std::size_t count = file.read(output + done, block, 12)) {
            require(count <= block, "more bytes than asked for");
            done += count;
            require(done <= expected.bytes.size(), "more bytes than there are");
        }
        require(file.read(output, block, 12) == 0, "an end that is none");
    } catch (const sw::BadInput& refused) {
        error = refused.what();
        require(error.starts_with("memory:0, line 12: "), "an error without a place:", error);
    }
    require(error.empty() == (*expected.error == '\0'), "accepted or refused otherwise:", error + expected.error);
    require(error.find(expected.error) != std::string::npos, "another error:", error + ", expected " + expected.error);
    require(std::string_view(output, done) == expected.bytes,
            "other bytes:", std::to_string(done) + " of " + std::to_string(expected.bytes.size()) + ", " + error);
    return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
    fuzz::Random random{seed};
    if (size < settings_bytes || random.one_in(32)) {
        std::string file;
        for (std::size_t i = 0; i != settings_bytes; ++i)
            file += static_cast<char>(random.below(256));
        for (std::size_t member = 1 + random.below(3); member != 0; --member) {
            std::string text;
            for (std::size_t n = random.below(random.one_in(8) ? 2000 : 40); n != 0; --n)
                text += "ab\t\n"[random.below(4)];
            file += pack(random, text);
            if (random.one_in(4)) file.append(random.below(3), '\0');
        }
        if (random.one_in(8)) file += "\x1f";
        return fuzz::become(file, data, most);
    }
    if (random.one_in(4)) {  // a setting
        data[random.below(settings_bytes)] = static_cast<std::uint8_t>(random.below(256));
        return size;
    }
    return LLVMFuzzerMutate(data, size, most);
}
