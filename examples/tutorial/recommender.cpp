// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "shardwise/checkpoint/checkpoint_folder.hpp"
#include "shardwise/checkpoint/dense_tensors.hpp"
#include "shardwise/checkpoint/layer_checkpoint.hpp"
#include "shardwise/comm/mpi.hpp"
#include "shardwise/comm/thread_world.hpp"
#include "shardwise/data/slice_of.hpp"
#include "shardwise/dense/data_parallel.hpp"
#include "shardwise/dense/loss.hpp"
#include "shardwise/dense/mlp.hpp"
#include "shardwise/plan/chrome_trace.hpp"
#include "shardwise/shardwise.hpp"

namespace sw = shardwise;

struct Ratings {
    std::vector<float> labels;          // (samples): 1 for four stars or five, else 0
    sw::JaggedBatch<std::int32_t> ids;  // (3 features, samples): the user, the film, the genres of the film
};

/// Of u.data every tenth line, for testing, or all others.
Ratings read_ratings(bool testing) {
    std::ifstream u_item{"u.item"}, u_data{"u.data"};
    if (!u_item || !u_data) throw sw::BadInput{"u.item or u.data is not there: run this where they are"};
    std::vector<std::vector<std::int32_t>> genres(1);  // (film): films count from 1
    for (std::string line; std::getline(u_item, line);) {
        genres.emplace_back();
        const std::string flags = line.substr(line.size() - 37);  // "0|1|...|0"
        for (std::int32_t genre = 0; genre < 19; ++genre)
            if (flags.at(2 * genre) == '1') genres.back().push_back(genre);
    }
    Ratings ratings{.labels = {}, .ids = {.features = 3}};
    std::vector<std::int32_t> users, films, genre_ids, genre_counts;
    int user = 0, film = 0, stars = 0, time = 0;
    for (int line = 0; u_data >> user >> film >> stars >> time; ++line) {
        if ((line % 10 == 0) != testing) continue;
        ++ratings.ids.samples;
        ratings.labels.push_back(stars >= 4 ? 1.0F : 0.0F);
        users.push_back(user);
        films.push_back(film);
        genre_ids.insert(genre_ids.end(), genres.at(film).begin(), genres.at(film).end());
        genre_counts.push_back(static_cast<std::int32_t>(genres.at(film).size()));
    }
    for (const auto& feature : {users, films, genre_ids})  // one feature behind the other
        ratings.ids.values.insert(ratings.ids.values.end(), feature.begin(), feature.end());
    ratings.ids.lengths.assign(2 * users.size(), 1);  // one user and one film for each sample
    ratings.ids.lengths.insert(ratings.ids.lengths.end(), genre_counts.begin(), genre_counts.end());
    return ratings;
}

using Layer = sw::EmbeddingLayer<sw::Sharding<sw::Row>, sw::Pooling<sw::Mean>, sw::Optimizer<sw::Adagrad>>;

void train(sw::CommunicatorRef comm, std::int64_t epochs) {
    const Ratings training = read_ratings(false), testing = read_ratings(true);
    const sw::Slice slice{.batch = 512 / comm.size(), .rank = comm.rank(), .ranks = comm.size()};
    sw::MemoryAccount memory;
    sw::Tracer tracer;
    tracer.record(true);
    Layer layer{comm,
                {{.name = "user", .rows = 944, .dim = 16},  // row 0 is unused, as users and films count from 1
                 {.name = "film", .rows = 1683, .dim = 16},
                 {.name = "genre", .rows = 19, .dim = 16}},
                {.learning_rate = {.base = 0.02F}, .memory = &memory, .tracer = &tracer}};
    sw::ParameterSet parameters{memory.tables()};
    sw::Mlp<> mlp{parameters, "mlp", std::vector<std::int64_t>{3 * 16, 32, 1}, memory.work()};
    parameters.allocate();
    mlp.initialize(1);
    sw::DataParallel<sw::DenseAdagrad> dense{
        parameters, {parameters.values().size(), memory.tables()}, comm, memory.work()};

    const auto predict = [&](const Ratings& ratings, std::int64_t batch) {
        const auto vectors = layer.forward(sw::slice_of(ratings.ids, slice, batch));  // (samples, 48)
        const auto logits = mlp.forward(vectors);                                     // (samples, 1)
        return std::span{logits.data(), static_cast<std::size_t>(logits.rows())};
    };
    const auto report = [&](std::int64_t epoch) {
        std::vector<float> logits, labels;
        for (std::int64_t batch = 0; batch < slice.batches(testing.ids.samples); ++batch) {
            const auto predicted = predict(testing, batch);
            const auto mine = sw::slice_of(testing.labels, slice, batch);
            logits.insert(logits.end(), predicted.begin(), predicted.end());
            labels.insert(labels.end(), mine.begin(), mine.end());
        }
        const sw::BinaryQuality quality = sw::evaluate(comm, logits, labels);  // of all ranks
        if (comm.rank() != 0) return;
        std::printf("epoch %d   test loss %.3f   AUC %.3f\n", int(epoch), quality.log_loss, quality.auc);
    };
    std::int64_t epoch = 0;

    sw::Checkpoint state{.layer = sw::shards_of(layer), .numbers = {{"epoch", 0}}};
    sw::append_tensors(state, dense);  // the MLP, and the moments of its optimizer
    sw::CheckpointFolder folder{comm, "checkpoints"};
    if (folder.newest() >= 0) sw::load_checkpoint(comm, "checkpoints", state);
    epoch = state.numbers.at("epoch");

    report(epoch);
    std::vector<float> gradient, to_layer;
    while (epoch < epochs) {
        for (std::int64_t batch = 0; batch < slice.batches(training.ids.samples); ++batch) {
            const auto logits = predict(training, batch);
            const auto labels = sw::slice_of(training.labels, slice, batch);
            const auto samples = static_cast<std::int64_t>(labels.size());
            gradient.resize(labels.size());
            to_layer.resize(48 * labels.size());
            sw::binary_cross_entropy(logits, labels, slice.global_samples(batch, training.ids.samples), gradient);
            mlp.backward({gradient.data(), samples, 1}, {to_layer.data(), samples, 48});
            dense.start();                                   // gradients of the MLP travel
            layer.backward({to_layer.data(), samples, 48});  // meanwhile rows learn
            dense.finish();
            dense.step(0.02);
        }
        report(++epoch);
    }

    state.numbers.at("epoch") = epoch;
    folder.save(state);

    sw::write_chrome_trace(comm, "trace.json", tracer);
}

int main(int argc, char** argv) {
    const std::int64_t epochs = argc > 1 ? std::atoi(argv[1]) : 3;
    if (sw::under_mpirun()) return sw::run_mpi({}, [&](sw::MpiCommunicator& comm) { train(comm, epochs); });
    try {
        sw::ThreadWorld world{sw::Topology{.hosts = 1, .ranks_per_host = 2}};
        world.run([&](sw::ThreadCommunicator& comm) { train(comm, epochs); });
    } catch (const sw::Error& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return error.exit_status();
    }
}
