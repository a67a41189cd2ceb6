// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// CsvReader over one or two files of any bytes, with blocks, reads and slices of any size, against records, fields and
/// values taken apart one character after the other: which batches a rank gets, and which error, where.

#include "shardwise/data/csv_reader.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/fuzz.hpp"
#include "fuzz/memory_file.hpp"

namespace {

using fuzz::require;
namespace sw = shardwise;

constexpr std::size_t settings_bytes = 6;
constexpr std::size_t columns = 6;

/// How an input is read: its first bytes.
struct Settings {
    std::size_t block = 1;
    sw::Slice slice = {};
    std::size_t files = 1;
    std::size_t cut = 0;  ///< where the second file begins, in 256ths
    bool quotes = true;
    bool header = true;
    bool others = false;  ///< columns that the schema does not know are ignored
    bool again = false;   ///< a second pass, behind a rewind
    char separator = ',';

    explicit Settings(fuzz::Choices& choices) {
        block = 1 + choices.below(100);
        if (block > 50) block = 4096;
        slice.batch = 1 + static_cast<std::int64_t>(choices.below(3));
        const auto who = choices.number();
        slice.ranks = 1 + who % 2;
        slice.rank = who / 2 % slice.ranks;
        const auto how = choices.number();
        quotes = (how & 3) != 0;
        header = (how & 4) != 0;
        others = (how & 8) != 0;
        again = (how & 48) == 0;
        separator = (how & 64) != 0 ? ',' : '\t';
        files = (how & 128) != 0 ? 2 : 1;
        cut = choices.number();
        const std::size_t most = 1 + choices.below(255);
        for (std::size_t f = 0; f != files; ++f) {
            fuzz::memory_files[f].most = most > 64 ? 4096 : most;
            fuzz::memory_files[f].interrupted = most % 2 == 0;
        }
    }
};

sw::CsvSchema schema_of(const Settings& s) {
    const auto column = [&](int number) {
        return s.header ? sw::CsvColumn{.name = std::string{"abcdef"[number - 1]}} : sw::CsvColumn{.number = number};
    };
    return {.format = {.separator = s.separator,
                       .quotes = s.quotes,
                       .header = s.header,
                       .missing_values = {"", "N"},
                       .ignore_others = s.others},
            .label = {.column = column(1)},
            .dense = {{.column = column(2), .log1p = true, .missing = 0.5F}},
            .categorical = {{.column = column(3)},
                            {.column = column(4), .rows = 7, .ids = sw::CsvIds::modulo, .split = '|'},
                            {.column = column(5), .time = {.form = "%H:%M", .part = sw::TimePart::hour}},
                            {.column = column(6),
                             .rows = 10,
                             .ids = sw::CsvIds::row,
                             .missing = sw::CsvMissing::row,
                             .missing_row = 4}},
            .rows = 1000,
            .seed = 5};
}

/// What comes of a record: a sample, or what is wrong with it.
struct Outcome {
    std::string error = {};  ///< the beginning of the message; empty: a sample
    bool of_all = false;     ///< every rank that gets so far has the error
    float label = 0;
    float dense = 0;
    std::array<std::vector<std::int64_t>, 4> bags = {};
};

struct Record {
    std::string_view text;  ///< without its end
    std::int64_t line = 1;
    bool open = false;  ///< a quote is not closed
};

/// Ends a record at each line break behind an even number of quotes.
std::vector<Record> records_of(std::string_view text, bool quotes) {
    std::vector<Record> all;
    std::int64_t line = 1;
    std::int64_t first = 1;
    std::size_t begin = 0;
    bool inside = false;
    bool several = false;
    const auto end = [&](std::size_t at) {
        std::string_view record = text.substr(begin, at - begin);
        if (record.ends_with('\r')) record.remove_suffix(1);
        if (first == 1 && record.starts_with("\xEF\xBB\xBF")) record.remove_prefix(3);
        if (!record.empty() || several) all.push_back({record, first, inside});
        begin = at + 1;
        several = false;
    };
    for (std::size_t i = 0; i != text.size(); ++i) {
        if (text[i] == '"' && quotes) inside = !inside;
        if (text[i] != '\n') continue;
        ++line;
        several = inside;
        if (inside) continue;
        end(i);
        first = line;
    }
    if (begin != text.size()) end(text.size());
    return all;
}

struct Field {
    std::string text;
    std::int64_t line = 0;
};

/// \returns the number of the column whose quotes are wrong, or 0
std::size_t fields_of(const Record& record, const Settings& s, std::vector<Field>& fields) {
    enum class State { start, plain, quoted, behind };
    State state = State::start;
    std::int64_t line = record.line;
    fields.assign(1, {{}, line});
    for (const char c : record.text) {
        if (state != State::quoted && c == s.separator) {
            fields.push_back({{}, line});
            state = State::start;
        } else if (c == '"' && s.quotes) {
            if (state == State::plain) return fields.size();
            if (state == State::behind) fields.back().text += c;
            state = state == State::quoted ? State::behind : State::quoted;
        } else {
            if (state == State::behind) return fields.size();
            if (state == State::start) state = State::plain;
            fields.back().text += c;
            // Lines of later fields count breaks of this one's value.
            line += c == '\n' ? 1 : 0;
        }
    }
    return 0;
}

bool is_missing(const std::string& text) {
    return text.empty() || text == "N";
}

std::optional<double> number_of(const std::string& text) {
    if (text.empty() || text[0] == '+' || text.find_first_not_of("0123456789.eE+-") != std::string::npos) return {};
    char* end = nullptr;
    const double x = std::strtod(text.c_str(), &end);
    if (*end != '\0' || end == text.c_str() || std::isinf(x)) return {};
    return x;
}

std::optional<std::int64_t> whole_of(std::string_view text) {
    const bool negative = text.starts_with('-');
    if (negative) text.remove_prefix(1);
    if (text.empty()) return {};
    __extension__ __int128 x = 0;
    for (const char c : text) {
        if (c < '0' || c > '9') return {};
        x = 10 * x + (c - '0');
        if (x > (static_cast<__int128>(1) << 64)) return {};
    }
    if (negative) x = -x;
    if (x > INT64_MAX || x < INT64_MIN) return {};
    return static_cast<std::int64_t>(x);
}

std::int64_t hash_of(const std::string& text) {
    return static_cast<std::int64_t>(XXH64(text.data(), text.size(), 5) % 1000);
}

/// \param fields  label, number, text, bag, time, row
Outcome sample_of(const std::array<const Field*, columns>& fields, const std::array<std::size_t, columns>& places) {
    Outcome all;
    const auto wrong = [&](std::size_t c) {
        all.error = ", line " + std::to_string(fields[c]->line) + ": column " + std::to_string(places[c] + 1);
        return all;
    };
    const auto label = number_of(fields[0]->text);
    if (is_missing(fields[0]->text) || !label || (*label != 0 && *label != 1)) return wrong(0);
    all.label = static_cast<float>(*label);
    if (is_missing(fields[1]->text)) {
        all.dense = 0.5F;
    } else {
        const auto x = number_of(fields[1]->text);
        if (!x) return wrong(1);
        all.dense = *x < 0 ? 0 : static_cast<float>(std::log1p(*x));
    }
    all.bags[0] = {hash_of(is_missing(fields[2]->text) ? "" : fields[2]->text)};
    std::string piece;
    for (const char c : fields[3]->text + "|") {
        if (c != '|') {
            piece += c;
            continue;
        }
        if (!is_missing(piece)) {
            const auto id = whole_of(piece);
            if (!id) return wrong(3);
            all.bags[1].push_back(*id % 7 < 0 ? *id % 7 + 7 : *id % 7);
        }
        piece.clear();
    }
    const std::string& time = fields[4]->text;
    if (time.size() != 5 || time[2] != ':') return wrong(4);
    for (const std::size_t i : {0, 1, 3, 4})
        if (time[i] < '0' || time[i] > '9') return wrong(4);
    if (time > "23:59" || time[3] > '5') return wrong(4);
    all.bags[2] = {10 * (time[0] - '0') + time[1] - '0'};
    const auto row = is_missing(fields[5]->text) ? 4 : whole_of(fields[5]->text);
    if (!row || *row < 0 || *row > 9) return wrong(5);
    all.bags[3] = {*row};
    return all;
}

/// What all files come to, up to the first error that every rank has.
std::vector<Outcome> outcomes_of(const Settings& s, const std::vector<std::string_view>& texts) {
    std::vector<Outcome> all;
    std::vector<Field> fields;
    std::array<std::size_t, columns> places{0, 1, 2, 3, 4, 5};
    std::size_t width = 0;
    for (std::size_t f = 0; f != texts.size(); ++f) {
        const std::string file = fuzz::MemoryFile::path(static_cast<int>(f));
        bool header = s.header;
        for (const Record& record : records_of(texts[f], s.quotes)) {
            const std::string line = file + ", line " + std::to_string(record.line) + ": ";
            const auto end = [&](const std::string& error) {
                all.push_back({.error = error, .of_all = true});
                return all;
            };
            if (record.open) return end(line + "a quote that is not closed");
            const std::size_t wrong = fields_of(record, s, fields);
            const std::string quotes = line + "column " + std::to_string(wrong);
            if (header || width == 0) {
                if (wrong != 0) return end(quotes);
                width = fields.size();
                std::array<int, columns> seen{};
                for (std::size_t i = 0; i != width; ++i) {
                    const std::size_t c = !s.header ? i
                                          : fields[i].text.size() == 1
                                              ? static_cast<std::size_t>(fields[i].text[0] - 'a')
                                              : columns;
                    if (c < columns) {
                        ++seen[c];
                        places[c] = i;
                    } else if (!s.others) {
                        seen[0] = -9;
                    }
                }
                for (const int times : seen)
                    if (times != 1) return end(line);
                if (header) {
                    header = false;
                    continue;
                }
            }
            if (wrong != 0) {
                all.push_back({.error = quotes});
            } else if (fields.size() != width) {
                all.push_back({.error = line + std::to_string(fields.size()) + " column"});
            } else {
                std::array<const Field*, columns> known{};
                for (std::size_t c = 0; c != columns; ++c)
                    known[c] = &fields[places[c]];
                all.push_back(sample_of(known, places));
                if (!all.back().error.empty()) all.back().error.insert(0, file);
            }
        }
    }
    return all;
}

void check_batch(const sw::ClickBatch& batch, const Outcome* expected) {
    batch.ids.view().validate();
    const auto samples = static_cast<std::size_t>(batch.samples());
    require(batch.labels.size() == samples && batch.dense.size() == samples && batch.dense_columns == 1,
            "another size");
    std::size_t id = 0;
    for (std::size_t s = 0; s != samples; ++s) {
        require(batch.labels[s] == expected[s].label, "another label");
        require(batch.dense[s] == expected[s].dense, "another dense value");
    }
    for (std::size_t f = 0; f != 4; ++f)
        for (std::size_t s = 0; s != samples; ++s) {
            const auto& bag = expected[s].bags[f];
            require(batch.ids.lengths[f * samples + s] == static_cast<std::int32_t>(bag.size()), "another length");
            for (const std::int64_t row : bag)
                require(batch.ids.values[id++] == row, "another id");
        }
}

/// One pass. All that the rank must see is known from the outcomes.
void read_all(sw::CsvReader& reader, const std::vector<Outcome>& all, const sw::Slice& slice) {
    const auto known = static_cast<std::int64_t>(all.size());
    const bool broken = known != 0 && all.back().of_all;
    const std::int64_t samples = broken ? INT64_MAX : known;  // nobody reads beyond what is broken
    sw::ClickBatch batch;
    for (std::int64_t start = 0;; start += slice.global_batch()) {
        const std::int64_t first = std::min(samples, start + slice.before());
        const std::int64_t last = std::min(samples, first + slice.batch);
        std::string expected;
        if (broken && known - 1 < first) expected = all.back().error;
        for (std::int64_t i = first; i != std::min(last, known) && i < last && expected.empty(); ++i)
            expected = all[static_cast<std::size_t>(i)].error;
        if (samples == 0) expected = "memory:";
        std::string error;
        bool more = false;
        try {
            more = reader.next(batch);
        } catch (const sw::BadInput& refused) {
            error = refused.what();
        }
        require(error.empty() == expected.empty() && error.starts_with(expected),
                "another error:", error + ", expected " + expected);
        if (!error.empty()) {
            if (samples == 0) require(error.ends_with(": no samples: every file is empty"), "another error:", error);
            try {
                static_cast<void>(reader.next(batch));
                require(false, "an error only once");
            } catch (const sw::BadInput& refused) {
                require(error == refused.what(), "another error at the second time");
            }
            return;
        }
        require(more == (start < samples), "another number of batches");
        if (!more) return;
        require(batch.samples() == last - first, "another number of samples");
        check_batch(batch, all.data() + first);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Choices choices{data, size};
    const Settings settings{choices};
    const std::string_view text = choices.text();
    const std::size_t cut = settings.files == 1 ? text.size() : text.size() * settings.cut / 256;
    std::vector<std::string_view> texts{text.substr(0, cut)};
    if (settings.files == 2) texts.push_back(text.substr(cut));
    std::vector<std::string> files;
    for (std::size_t f = 0; f != texts.size(); ++f) {
        if (texts[f].starts_with("\x1f\x8b")) return -1;  // gzip.cpp looks at these
        fuzz::memory_files[f].content = texts[f];
        files.push_back(fuzz::MemoryFile::path(static_cast<int>(f)));
    }
    const std::vector<Outcome> all = outcomes_of(settings, texts);
    sw::CsvReader reader{
        {.files = files, .schema = schema_of(settings), .slice = settings.slice, .block_bytes = settings.block}};
    read_all(reader, all, settings.slice);
    if (!settings.again) return 0;
    reader.rewind();
    read_all(reader, all, settings.slice);
    return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
    fuzz::Random random{seed};
    if (size >= settings_bytes && random.one_in(4)) {  // a setting
        data[random.below(settings_bytes)] = static_cast<std::uint8_t>(random.below(256));
        return size;
    }
    if (size >= settings_bytes && !random.one_in(8)) return LLVMFuzzerMutate(data, size, most);
    static constexpr std::array<std::array<std::string_view, 6>, columns> values{
        {{"0", "1", "1.0", "1e0", "-0", "2"},
         {"", "2.5", "-7", "1e400", "1e-400", "nan"},
         {"", "x", "\r\n", "N", "\"\"", "\n"},
         {"", "1|2|-3", "|N|", "9223372036854775807", "9223372036854775808", "1"},
         {"00:00", "23:59", "12:30", "24:00", "1:30", ""},
         {"", "0", "9", "10", "-1", "00003"}}};
    std::string text;
    for (std::size_t i = 0; i != settings_bytes; ++i)
        text += static_cast<char>(random.below(256));
    const auto how = static_cast<unsigned char>(text[3]);
    const char separator = (how & 64) != 0 ? ',' : '\t';
    const bool quotes = (how & 3) != 0;
    if (random.one_in(6)) text += "\xEF\xBB\xBF";
    if ((how & 4) != 0) text += (how & 64) != 0 ? "a,b,c,d,e,f\n" : "a\tb\tc\td\te\tf\n";
    for (std::size_t line = random.below(7); line != 0; --line) {
        for (std::size_t c = 0; c != columns; ++c) {
            if (c != 0) text += separator;
            const std::string_view value = values[c][random.below(random.one_in(8) ? 6 : 3)];
            const bool inside = quotes && (random.one_in(3) || (c == 2 && !random.one_in(9)));
            text += (inside ? "\"" : "") + std::string{value} + (inside ? "\"" : "");
        }
        text += random.one_in(4) ? "\r\n" : random.one_in(8) ? "\n\n" : "\n";
    }
    if (random.one_in(3)) text.pop_back();
    return fuzz::become(text, data, most);
}
