// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// CriteoReader and LineReader over one or two files of any bytes, with blocks and reads of any size, against the lines
/// and the slice worked out in advance: which batches a rank gets, and which line is the first that it refuses. So the
/// batches of all ranks together are those of one.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/criteo_text.hpp"
#include "fuzz/fuzz.hpp"
#include "fuzz/memory_file.hpp"
#include "shardwise/data/criteo.hpp"

namespace {

using fuzz::require;
namespace sw = shardwise;

constexpr std::size_t settings_bytes = 8;

/// How an input is read: its first bytes.
struct Settings {
    std::size_t block = 1;
    std::int64_t batch = 1;
    int ranks = 1;
    int rank = 0;
    std::size_t files = 1;
    std::size_t cut = 0;  ///< where the second file begins, in 256ths
    bool lines_alone = false;
    std::size_t after = 0;  ///< batches before the rewind, or lines skipped

    explicit Settings(fuzz::Choices& choices) {
        block = 1 + choices.below(255);
        if (block > 200) block = 4096;
        batch = 1 + static_cast<std::int64_t>(choices.below(5));
        ranks = 1 + static_cast<int>(choices.below(3));
        rank = static_cast<int>(choices.below(static_cast<std::size_t>(ranks)));
        const auto how = choices.number();
        files = 1 + (how & 1);
        lines_alone = (how & 6) == 0;
        fuzz::memory_files[0].interrupted = fuzz::memory_files[1].interrupted = (how & 8) != 0;
        const std::size_t most = 1 + choices.below(255);
        fuzz::memory_files[0].most = fuzz::memory_files[1].most = most > 128 ? 4096 : most;
        cut = choices.number();
        after = choices.below(5);
    }
};

struct Line {
    std::string_view text;
    std::size_t file = 0;
    std::int64_t number = 0;
};

// A line ends with LF, CR LF or its file.
void split(std::string_view text, std::size_t file, std::vector<Line>& lines) {
    std::int64_t number = 0;
    for (std::size_t start = 0; start < text.size();) {
        const std::size_t end = std::min(text.find('\n', start), text.size());
        std::string_view line = text.substr(start, end - start);
        if (line.ends_with('\r')) line.remove_suffix(1);
        lines.push_back({line, file, ++number});
        start = end + 1;
    }
}

void read_lines(sw::LineReader& reader, const std::vector<Line>& lines, std::size_t skip) {
    std::size_t at = 0;
    for (bool more = true; more;) {
        const std::size_t skipped = std::min(skip, lines.size() - at);
        require(reader.skip(static_cast<std::int64_t>(skip)) == static_cast<std::int64_t>(skipped),
                "skipped another number of lines");
        at += skipped;
        sw::LineReader::Line line;
        more = reader.next(line);
        require(more == (at != lines.size()), "another number of lines");
        if (!more) break;
        require(std::string_view{line.begin, static_cast<std::size_t>(line.end - line.begin)} == lines[at].text,
                "another line");
        require(reader.file() == fuzz::MemoryFile::path(static_cast<int>(lines[at].file)), "another file");
        require(reader.line() == lines[at].number, "another number of a line");
        std::fill_n(line.end, 1, '\t');  // as the contract allows
        ++at;
    }
}

bool parse(std::string_view text, sw::CriteoLine& line) {
    static char memory[1 << 16];
    if (!text.empty()) std::memcpy(memory, text.data(), text.size());
    return sw::parse_criteo_line(memory, memory + text.size(), line) == 0;
}

void check_sample(const sw::ClickBatch& batch, std::int64_t sample, const sw::CriteoLine& line,
                  const std::vector<std::int64_t>& rows) {
    require(batch.labels[static_cast<std::size_t>(sample)] == line.label, "another label");
    for (std::size_t i = 0; i != line.integers.size(); ++i)
        require(batch.dense_view().row(sample)[i] == sw::criteo_dense(line.integers[i]), "another dense value");
    for (std::size_t f = 0; f != line.values.size(); ++f) {
        const std::uint64_t hash = (line.missing >> f & 1) != 0 ? sw::criteo_missing_hash(static_cast<int>(f))
                                                                : sw::criteo_hash(line.values[f], static_cast<int>(f));
        const auto bag = f * static_cast<std::size_t>(batch.samples()) + static_cast<std::size_t>(sample);
        require(batch.ids.values[bag] ==
                    static_cast<std::int64_t>(hash % static_cast<std::uint64_t>(rows[rows.size() == 1 ? 0 : f])),
                "another id");
    }
}

/// Reads at most `most` batches. All that the rank must see is known from the lines.
void read_batches(sw::CriteoReader& reader, const std::vector<Line>& lines, const sw::Slice& slice,
                  const std::vector<std::int64_t>& rows, std::size_t most) {
    sw::ClickBatch batch;
    const auto samples = static_cast<std::int64_t>(lines.size());
    for (std::size_t b = 0; b != most; ++b) {
        const std::int64_t start = static_cast<std::int64_t>(b) * slice.global_batch();
        const std::int64_t first = std::min(samples, start + slice.before());
        const std::int64_t last = std::min(samples, first + slice.batch);
        const Line* wrong = nullptr;
        std::vector<sw::CriteoLine> expected;
        for (std::int64_t i = first; i != last && wrong == nullptr; ++i) {
            const Line& line = lines[static_cast<std::size_t>(i)];
            if (!parse(line.text, expected.emplace_back())) wrong = &line;
        }
        std::string error;
        bool more = false;
        try {
            more = reader.next(batch);
        } catch (const sw::BadInput& refused) {
            error = refused.what();
            require(!error.empty(), "an error without words");
        }
        if (wrong != nullptr || samples == 0) {
            const std::string expected_error =
                wrong == nullptr ? "no samples" : ", line " + std::to_string(wrong->number) + ": column";
            const std::string other =
                wrong == nullptr ? expected_error : ", line " + std::to_string(wrong->number) + ": ";
            require(error.find(other) != std::string::npos, "another error:", error + ", expected " + other);
            if (wrong != nullptr)
                require(error.starts_with(fuzz::MemoryFile::path(static_cast<int>(wrong->file))), "another file",
                        error);
            try {
                static_cast<void>(reader.next(batch));
                require(false, "an error only once");
            } catch (const sw::BadInput& again) {
                require(error == again.what(), "another error at the second time");
            }
            return;
        }
        require(error.empty(), "refused without a reason:", error);
        require(more == (start < samples), "another number of batches");
        if (!more) return;
        batch.ids.view().validate();
        require(batch.samples() == last - first, "another number of samples");
        require(batch.labels.size() == expected.size() && batch.dense.size() == expected.size() * 13, "another size");
        for (std::int64_t i = 0; i != batch.samples(); ++i)
            check_sample(batch, i, expected[static_cast<std::size_t>(i)], rows);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Choices choices{data, size};
    const Settings settings{choices};
    const std::string_view text = choices.text();
    const std::size_t cut = settings.files == 1 ? text.size() : text.size() * settings.cut / 256;
    const std::string_view parts[] = {text.substr(0, cut), text.substr(cut)};
    std::vector<Line> lines;
    std::vector<std::string> files;
    for (std::size_t f = 0; f != settings.files; ++f) {
        if (parts[f].starts_with("\x1f\x8b")) return -1;  // gzip.cpp looks at these
        fuzz::memory_files[f].content = parts[f];
        files.push_back(fuzz::MemoryFile::path(static_cast<int>(f)));
        split(parts[f], f, lines);
    }
    if (settings.lines_alone) {
        sw::LineReader reader{files, settings.block};
        for (int pass = 0; pass != 2; ++pass, reader.rewind())
            read_lines(reader, lines, settings.after);
        return 0;
    }
    static const std::vector<std::int64_t> rows = {1, 2, 3, 1000, 1 << 30, 7, 7, 7, 7, 7, 7, 7, 7,
                                                   7, 7, 7, 7,    7,       7, 7, 7, 7, 7, 7, 7, 7};
    const sw::Slice slice{.batch = settings.batch, .rank = settings.rank, .ranks = settings.ranks};
    sw::CriteoReader reader{{.files = files, .rows = rows, .slice = slice, .block_bytes = settings.block}};
    read_batches(reader, lines, slice, rows, settings.after);
    reader.rewind();
    read_batches(reader, lines, slice, rows, lines.size() + 2);
    return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
    fuzz::Random random{seed};
    if (size < settings_bytes || random.one_in(16)) {
        std::string text;
        for (std::size_t i = 0; i != settings_bytes; ++i)
            text += static_cast<char>(random.below(256));
        for (std::size_t line = random.below(9); line != 0; --line)
            text += fuzz::random_line(random) + (random.one_in(4) ? "\r\n" : "\n");
        if (random.one_in(2) && text.size() > settings_bytes) text.pop_back();
        return fuzz::become(text, data, most);
    }
    if (random.one_in(4)) {  // a setting
        data[random.below(settings_bytes)] = static_cast<std::uint8_t>(random.below(256));
        return size;
    }
    return LLVMFuzzerMutate(data, size, most);
}
