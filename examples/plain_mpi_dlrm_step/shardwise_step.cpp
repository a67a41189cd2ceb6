// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <string>

#include "shardwise/embedding/layer.hpp"
#include "shardwise/optimizer/sgd.hpp"
#include "step.hpp"

namespace plain_mpi_dlrm_step {

namespace sw = shardwise;

std::vector<float> train_shardwise(const Problem& problem, sw::MpiCommunicator& comm) {
    std::vector<sw::TableConfig> tables;
    for (std::size_t f = 0; f < problem.rows.size(); ++f)
        tables.push_back({.name = "feature " + std::to_string(f),
                          .rows = problem.rows[f],
                          .dim = problem.dim,
                          .features = {},
                          .sharding = {}});
    sw::EmbeddingLayer<sw::Sharding<sw::Row>, sw::Optimizer<sw::Sgd>, sw::Order<sw::Sample>> embedding{
        comm, tables, {.learning_rate = {.base = problem.learning_rate}, .seed = problem.seed}};

    const auto features = static_cast<std::int64_t>(problem.rows.size());
    std::vector<float> last;
    std::vector<float> gradient;
    for (int step = 0; step < problem.steps; ++step) {
        const std::vector<std::int64_t> ids = ids_of(problem, step, comm.rank());
        const sw::JaggedView<std::int64_t> batch{.samples = problem.batch,
                                                 .features = features,
                                                 .values = ids,
                                                 .lengths = {},  // one id a feature and sample
                                                 .offsets = {},
                                                 .weights = {},
                                                 .keys = {}};
        const sw::MatrixView<const float> out = embedding.forward(batch);
        last.assign(out.data(), out.data() + out.rows() * out.columns());
        gradient.resize(last.size());
        for (std::size_t i = 0; i < last.size(); ++i)
            gradient[i] = gradient_of(last[i], static_cast<std::int64_t>(i) / out.columns());
        embedding.backward(sw::MatrixView<const float>{gradient.data(), out.rows(), out.columns()});
    }
    return last;
}

}  // namespace plain_mpi_dlrm_step
