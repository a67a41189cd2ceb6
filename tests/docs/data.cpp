// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// The fragments of docs/data.md: compiled, not run.

#include <cstdint>
#include <span>
#include <utility>

#include "shardwise/comm/communicator_ref.hpp"
#include "shardwise/data/criteo.hpp"
#include "shardwise/data/global_batches.hpp"
#include "shardwise/data/loader.hpp"
#include "shardwise/data/numpy_criteo.hpp"
#include "shardwise/data/row_trace.hpp"
#include "shardwise/data/sequences.hpp"
#include "shardwise/planning/access_counter.hpp"

namespace docs {

namespace sw = shardwise;

void train(const sw::ClickBatch& batch);
void train_on_criteo(const sw::CommunicatorRef& comm, int epochs);
void read_numpy(const sw::CommunicatorRef& comm);
void train(const sw::ClickBatch& batch, std::int64_t global_samples);
void train_in_step(sw::CommunicatorRef comm, sw::PrefetchingLoader<sw::CriteoReader>& loader);
void learn(std::int64_t user, std::span<const std::int64_t> items);
void read_rows(sw::AccessCounter& profile);

void train_on_criteo(const sw::CommunicatorRef& comm, int epochs) {
    // clang-format off
    sw::CriteoReader reader{{.files = {"day_0.gz", "day_1.gz"},
                             .rows = {1'000'000},
                             .slice = {.batch = 2048, .rank = comm.rank(), .ranks = comm.size()}}};
    sw::PrefetchingLoader loader{std::move(reader), 4};
    for (int epoch = 0; epoch != epochs; ++epoch, loader.rewind())
        while (const sw::ClickBatch* batch = loader.next()) train(*batch);
    // clang-format on
}

void read_numpy(const sw::CommunicatorRef& comm) {
    // clang-format off
    sw::NumpyCriteoReader reader{{.days = sw::numpy_criteo_days({"day_0_dense.npy", "day_0_sparse.npy", "day_0_labels.npy"}),
                                  .rows = {1'000'000},
                                  .slice = {.batch = 2048, .rank = comm.rank(), .ranks = comm.size()}}};
    // clang-format on
    reader.rewind();
}

void train_in_step(sw::CommunicatorRef comm, sw::PrefetchingLoader<sw::CriteoReader>& loader) {
    // clang-format off
    sw::GlobalBatches batches{comm, loader, 13, 26};  // columns and features of an empty batch
    sw::ClickBatch current;
    sw::ClickBatch next;
    batches.announce(next);
    for (;;) {
        const std::int64_t global_samples = batches.global_samples();
        if (batches.failed()) batches.fail();  // BadInput on every rank, with the text of the one that could not read
        if (global_samples == 0) break;        // the end, on every rank
        std::swap(current, next);
        batches.announce(next);  // reads ahead; a layer's start(next.ids.view()) belongs here
        train(current, global_samples);
    }
    // clang-format on
}

void read_rows(sw::AccessCounter& profile) {
    // clang-format off
    sw::RowTraceReader trace{{.files = {"rows.txt.gz"}, .slice = {.batch = 4096}}};
    sw::JaggedBatch<std::int64_t> batch;
    while (trace.next(batch)) profile.add(batch.view());

    const sw::Histories histories = sw::read_histories({.files = {"views.txt"}});
    for (std::int64_t user = 0; user != histories.size(); ++user)
        learn(histories.users[static_cast<std::size_t>(user)], histories.of(user));  // the first item first
    // clang-format on
}

}  // namespace docs
