// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "options.hpp"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "output_files.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/topology/topology.hpp"

namespace infer_dlrm {

namespace {

int environment_number(const char* name) {
    const char* text = std::getenv(name);
    return text == nullptr ? 0 : std::atoi(text);
}

void require(bool good, const char* flag, const std::string& given, const std::string& what) {
    if (!good) throw sw::BadInput{fmt::format("{} {}: give {}", flag, given, what)};
}
template <class T>
void at_least(const char* flag, T value, T least) {
    require(value >= least, flag, fmt::format("{}", value), fmt::format("at least {}", least));
}
void one_of(const char* flag, const std::string& value, const std::vector<std::string>& known) {
    require(std::find(known.begin(), known.end(), value) != known.end(), flag, "'" + value + "'",
            fmt::format("{}", fmt::join(known, " or ")));
}

/// What the command line says of the model.
struct ShapeFlags {
    std::vector<std::int64_t> rows{5000};
    int dim = 16;
    std::vector<std::int64_t> bottom;
    std::vector<std::int64_t> top{128, 64, 1};
};

void add_where(CLI::App& app, Options& o, int& ranks, std::string& transport) {
    const char* where = "Where";
    app.add_option("--ranks", ranks, "Number of ranks; 4 unless given; under mpirun that of the job")
        ->default_str("4")
        ->group(where);
    app.add_option(
           "--hosts", o.hosts,
           "Number of hosts, of which the ranks pretend to be; divides the ranks. Under mpirun unless given: the "
           "real ones")
        ->group(where);
    app.add_option("--transport", transport,
                   "slots (one-sided: stores into shared memory, and across hosts puts of MPI), messages (slots over "
                   "messages) or rounds (ranks in step, Collective<Flat>)")
        ->group(where);
    app.add_option("--deadline", o.deadline_seconds, "Seconds that a rank waits for another before the run fails")
        ->group(where);
}
void add_lag(CLI::App& app, Options& o, std::string& delay) {
    const char* lag = "How far ranks may be apart";
    app.add_option("--bound", o.bound, "Batches k that ranks may be apart")->group(lag);
    app.add_option(
           "--ids", o.ids,
           "sample (a rank has its own samples' ids, and asks) or owner (a rank is given all ranks' ids of its own "
           "tables)")
        ->group(lag);
    app.add_option("--serve", o.serve, "With --ids sample: together or each")->group(lag);
    app.add_option("--progress", o.progress, "With --ids sample, who answers: calls or thread")->group(lag);
    app.add_option(
           "--delay", delay,
           "Before each start of a batch: none, uniform:0:10ms, exponential:2ms or constant:5ms, of all ranks, or "
           "behind @ of one")
        ->default_str("none")
        ->group(lag);
}
void add_amount(CLI::App& app, Options& o) {
    const char* amount = "How much";
    app.add_option("--batch", o.batch, "Samples a rank")->group(amount);
    app.add_option("--batches", o.batches, "Batches of each rank in a run. Unless given: 50, or all of --data")
        ->default_str("")
        ->group(amount);
    app.add_option("--warmup", o.warmup, "Batches before each run that are not timed")->group(amount);
    app.add_option("--runs", o.runs, "How often all batches are looked up")->group(amount);
}
void add_data(CLI::App& app, Options& o, std::int64_t& bag) {
    const char* data = "Data";
    app.add_option("--data", o.data.data,
                   "Files of Criteo's form, plain or gzip, or numpy files, as train_dlrm reads them. Unless given, "
                   "samples are generated")
        ->type_name("FILE")
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->group(data);
    app.add_option("--schema", o.data.schema,
                   "What the columns of --data are, where they are CSV or TSV files of one's own, as train_dlrm reads "
                   "them")
        ->type_name("FILE")
        ->default_str("")
        ->group(data);
    app.add_option("--zipf", o.data.zipf, "Exponent of the power law of generated ids")->group(data);
    app.add_option("--bag", bag, "Ids of a generated bag: from 1 up to so many, drawn for each bag")->group(data);
    app.add_option("--skew", o.skew,
                   "Ids of a generated bag: from 1 up to so many, drawn for each table, rank and batch, so that "
                   "messages and look-ups differ")
        ->group(data);
    app.add_option("--seed", o.seed, "Of generated data, of delays, and of the model unless --load is given")
        ->group(data);
}
void add_model(CLI::App& app, Options& o, ShapeFlags& shape) {
    const char* model = "Model";
    app.add_option("--load", o.load,
                   "Checkpoint of train_dlrm, of any sharding and optimizer; every process reads its header. Without "
                   "it weights "
                   "are random")
        ->type_name("FILE")
        ->default_str("")
        ->group(model);
    app.add_option("--rows", shape.rows,
                   "Rows a feature: one number for all, or 26 with commas between them. With --load that of the file")
        ->delimiter(',')
        ->default_str("5000")
        ->group(model);
    app.add_option("--dim", shape.dim, "Columns of every table. With --load that of the file")->group(model);
    app.add_option("--bottom", shape.bottom, "Widths of the bottom MLP; the last is --dim. Unless given: 64-<that>")
        ->delimiter('-')
        ->default_str("")
        ->group(model);
    app.add_option("--top", shape.top, "Widths of the top MLP; the last is 1")
        ->delimiter('-')
        ->default_str("128-64-1")
        ->group(model);
    app.add_option("--sharding", o.sharding, "Where tables lie: table, row or col")->group(model);
    app.add_option("--pooling", o.pooling,
                   "sum, mean, or none: the row of each id comes home, and the rank of the sample takes their mean")
        ->group(model);
    app.add_option("--wire", o.wire, "Precision of vectors on the wire: fp32 or bf16")->group(model);
}
void add_output(CLI::App& app, Options& o) {
    const char* output = "Output";
    app.add_flag("--explain", o.explain, "Print the plan, what a batch moves, and the memory of slots; look nothing up")
        ->group(output);
    app.add_option("--out", o.out,
                   "File for the predictions: number of the sample and probability, a line each, in order")
        ->type_name("FILE")
        ->default_str("")
        ->group(output);
    app.add_option("--trace", o.trace, "File for a trace of the last run that Perfetto and chrome://tracing show")
        ->type_name("FILE")
        ->default_str("")
        ->group(output);
    app.add_option("--json", o.json, "File for the report")->type_name("FILE")->default_str("")->group(output);
}

/// The tables of Criteo's columns; the flags say their sizes.
std::vector<sw::TableConfig> criteo_tables(const ShapeFlags& flags) {
    require(flags.rows.size() == 1 || flags.rows.size() == train_dlrm::categories, "--rows",
            fmt::format("{}", fmt::join(flags.rows, ",")), "one number, or 26 with commas between them");
    std::vector<sw::TableConfig> tables;
    for (int f = 0; f < train_dlrm::categories; ++f)
        tables.push_back({.name = fmt::format("C{}", f + 1),
                          .rows = flags.rows[flags.rows.size() == 1 ? 0 : static_cast<std::size_t>(f)],
                          .dim = flags.dim});
    return tables;
}

/// Has the schema hash into tables as large as the checkpoint's. \throws BadInput where it says another number itself
void take_rows(train_dlrm::Options& data, const std::vector<sw::TableConfig>& tables, const std::string& file) {
    sw::CsvSchema schema = *data.csv;
    for (sw::CsvCategory& feature : schema.categorical)
        for (const sw::TableConfig& table : tables) {
            if (table.name != feature.table_name()) continue;
            if (feature.rows != 0 && feature.rows != table.rows)
                throw sw::BadInput{
                    fmt::format("{}: table '{}' has {} rows, and {} rows in {}: give the schema that it "
                                "was trained with",
                                data.schema, table.name, feature.rows, table.rows, file)};
            feature.rows = table.rows;
        }
    schema.validate();
    data.csv = std::make_shared<const sw::CsvSchema>(std::move(schema));
}

/// The model of the flags; of the file where there is one, which flags may say once more.
ModelShape shape_of(const CLI::App& app, Options& o, const ShapeFlags& flags) {
    const auto given = [&](const char* flag) { return app.get_option(flag)->count() != 0; };
    for (const std::int64_t rows : flags.rows)
        at_least<std::int64_t>("--rows", rows, 1);
    at_least("--dim", flags.dim, 1);
    ModelShape shape;
    shape.dense = train_dlrm::dense_features;
    std::string whose = fmt::format("Criteo's columns, C1 to C{}", train_dlrm::categories);
    if (!o.data.schema.empty()) {
        if (given("--rows") && !o.load.empty())
            throw sw::BadInput{fmt::format("--rows has no effect: {} says the rows; leave it out", o.load)};
        o.data.csv =
            std::make_shared<const sw::CsvSchema>(train_dlrm::read_schema(o.data.schema, flags.rows, given("--rows")));
        shape.dense = std::ssize(o.data.csv->dense);
        if (shape.dense == 0 && given("--bottom"))
            throw sw::BadInput{
                fmt::format("--bottom has no effect: {} has no dense columns; leave it out", o.data.schema)};
        whose = o.data.schema;
    }
    shape.tables = o.data.csv != nullptr ? o.data.csv->tables(flags.dim) : criteo_tables(flags);
    if (!o.load.empty()) {
        shape = shape_in(o.load, shape.tables, shape.dense, whose);
        const auto same = [&](const char* flag, const auto& said, const auto& is, const auto& text) {
            if (given(flag) && said != is)
                throw sw::BadInput{fmt::format("{} {}, and {} has {}: leave it out, or load another file", flag,
                                               text(said), o.load, text(is))};
        };
        const auto comma = [](const auto& all) { return fmt::format("{}", fmt::join(all, ",")); };
        const auto dash = [](const auto& all) { return fmt::format("{}", fmt::join(all, "-")); };
        const std::vector<std::int64_t> rows = shape.rows();
        same("--rows", flags.rows.size() == 1 ? std::vector<std::int64_t>(rows.size(), flags.rows[0]) : flags.rows,
             rows, comma);
        same("--dim", flags.dim, shape.dim(), [](int dim) { return std::to_string(dim); });
        same("--bottom", flags.bottom, shape.bottom, dash);
        same("--top", flags.top, shape.top, dash);
        if (o.data.csv != nullptr) take_rows(o.data, shape.tables, o.load);
        return shape;
    }
    if (shape.dense != 0) shape.bottom = given("--bottom") ? flags.bottom : std::vector<std::int64_t>{64, flags.dim};
    shape.top = flags.top;
    return shape;
}

void check(const CLI::App& app, Options& o) {
    const auto given = [&](const char* flag) { return app.get_option(flag)->count() != 0; };
    at_least("--bound", o.bound, 0);
    at_least<std::int64_t>("--batch", o.batch, 1);
    if (given("--batches")) at_least<std::int64_t>("--batches", o.batches, 1);
    at_least<std::int64_t>("--warmup", o.warmup, 0);
    at_least("--runs", o.runs, 1);
    at_least<std::int64_t>("--skew", o.skew, 1);
    require(o.deadline_seconds > 0 && o.deadline_seconds <= 3e7, "--deadline", fmt::format("{}", o.deadline_seconds),
            "a number above 0, and at most 3e7");
    require(o.batch <= 1'000'000'000 / o.ranks, "--batch", std::to_string(o.batch),
            fmt::format("at most {}", 1'000'000'000 / o.ranks));
    require(o.batches <= 1'000'000'000, "--batches", std::to_string(o.batches), "at most 1000000000");
    one_of("--ids", o.ids, {"sample", "owner"});
    one_of("--serve", o.serve, {"together", "each"});
    one_of("--progress", o.progress, {"calls", "thread"});
    one_of("--pooling", o.pooling, {"sum", "mean", "none"});
    one_of("--sharding", o.sharding, {"table", "row", "col"});
    one_of("--wire", o.wire, {"fp32", "bf16"});
    if (!o.data.schema.empty() && o.data.data.empty())
        throw sw::BadInput{fmt::format("--schema {} without --data: it is of files; give them, too", o.data.schema)};
    if (o.delay.rank >= o.ranks)
        throw sw::BadInput{fmt::format("--delay {}: there are ranks 0 to {}", o.delay_text, o.ranks - 1)};
    const auto no_effect = [&](const char* flag, bool none, const char* why) {
        if (none && given(flag)) throw sw::BadInput{fmt::format("{} has no effect {}: leave it out", flag, why)};
    };
    const bool rounds = o.transport == Transport::rounds;
    if (rounds && o.bound > 0)
        throw sw::BadInput{
            fmt::format("--bound {} with --transport rounds, where ranks go step by step: give 0, or slots", o.bound)};
    for (const char* flag : {"--serve", "--progress"}) {
        no_effect(flag, rounds, "with --transport rounds, where ranks go step by step");
        no_effect(flag, o.ids == "owner", "with --ids owner, where nobody asks");
    }
    for (const char* flag : {"--zipf", "--bag", "--skew"})
        no_effect(flag, !o.data.data.empty(), "with --data");
    if (o.pooling == "none" && o.ids == "owner")
        throw sw::BadInput{
            "--pooling none with --ids owner, which sums at the owner: give --ids sample, or --pooling mean"};
    if (o.progress == "thread" && o.transport == Transport::messages)
        throw sw::BadInput{
            "--progress thread with --transport messages, whose slots are of one thread: give calls, or slots"};
    if (given("--bag") && given("--skew")) throw sw::BadInput{"--bag and --skew: give one of the two"};
}

}  // namespace

std::string name_of(Transport transport) {
    switch (transport) {
        case Transport::slots:
            return "slots";
        case Transport::messages:
            return "messages";
        default:
            return "rounds";
    }
}

sw::LayerNames names_of(const Options& o) {
    return {.shardings = {o.sharding},
            .collective = o.transport == Transport::rounds ? "flat" : "bounded_lag",
            .optimizer = "frozen",
            .pooling = o.pooling,
            .ids = "at_" + o.ids,
            .forward_wire = o.wire};
}

std::optional<Options> parse_options(int argc, const char* const* argv, std::string& text) {
    Options o;
    ShapeFlags shape;
    int ranks = 0;
    std::string transport = "slots";
    std::string delay = "none";
    std::int64_t bag = 1;
    CLI::App app{
        "Predicts clicks with a frozen DLRM whose ranks may be k batches apart (bounded lag): each has k + 1 lookups "
        "under "
        "way, and\nwaits for the oldest alone. Samples are read before the clock starts. Prints what a batch takes, of "
        "which "
        "ranks wait how\nlong, and what it moves.\nRanks are threads of this process, or, under mpirun, the processes "
        "of the job.\n"
        "Exit status: 0 done; 2 bad usage or bad input; 3 a peer failed or a deadline passed.",
        "infer_dlrm"};
    app.option_defaults()->always_capture_default()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    add_where(app, o, ranks, transport);
    add_lag(app, o, delay);
    add_amount(app, o);
    add_data(app, o, bag);
    add_model(app, o, shape);
    add_output(app, o);
    for (const char* list : {"--rows", "--bottom", "--top"})
        app.get_option(list)
            ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
            ->allow_extra_args(false)
            ->expected(1, 26);
    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        text = app.help();
        return std::nullopt;
    } catch (const CLI::ParseError& error) {
        throw sw::BadInput{std::string{error.what()} + " (infer_dlrm --help shows all options)"};
    }
    const auto given = [&](const char* flag) { return app.get_option(flag)->count() != 0; };
    const int job = std::max(environment_number("OMPI_COMM_WORLD_SIZE"), environment_number("PMI_SIZE"));
    o.mpi = job != 0;
    if (o.mpi && given("--ranks") && ranks != job)
        throw sw::BadInput{fmt::format("--ranks {} in a job of {} processes: leave it out under mpirun", ranks, job)};
    if (o.mpi || given("--ranks")) o.ranks = o.mpi ? job : ranks;
    if (o.mpi && !given("--hosts")) o.hosts = 0;
    if (o.hosts != 0) static_cast<void>(sw::Topology::of(o.ranks, o.hosts));
    one_of("--transport", transport, {"slots", "messages", "rounds"});
    o.transport = transport == "slots"      ? Transport::slots
                  : transport == "messages" ? Transport::messages
                                            : Transport::rounds;
    if (delay != "none") o.delay = parse_delay(delay);
    o.delay_text = delay;
    check(app, o);
    at_least<std::int64_t>("--bag", bag, 1);
    o.shape = shape_of(app, o, shape);
    if (o.batches == 0 && o.data.data.empty()) o.batches = 50;
    o.data.batch = o.batch * o.ranks;
    o.data.rows = o.shape.rows();
    o.data.seed = o.seed;
    o.data.samples = o.data.batch * o.batches;
    const std::int64_t most_ids = std::max(bag, o.skew);
    require(most_ids <= 1'000'000, "--bag", std::to_string(most_ids), "at most 1000000");
    if (bag > 1) o.data.bags = {sw::BagSizes::up_to(static_cast<std::int32_t>(bag))};
    if (o.skew > 1) o.data.bags = {sw::BagSizes::fixed(static_cast<std::int32_t>(o.skew))};
    for (const std::string* path : {&o.out, &o.trace, &o.json})
        if (!path->empty()) output_files::check_writable(*path, false);
    return o;
}

}  // namespace infer_dlrm
