// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cmath>
#include <map>

#include "shardwise/embedding/tables/initial_weight.hpp"
#include "step.hpp"

namespace plain_mpi_dlrm_step {

namespace {

/// Where each rank's part of a message buffer begins.
std::vector<int> begins_of(const std::vector<int>& counts) {
    std::vector<int> begins(counts.size(), 0);
    for (std::size_t rank = 1; rank < counts.size(); ++rank)
        begins[rank] = begins[rank - 1] + counts[rank - 1];
    return begins;
}

int total_of(const std::vector<int>& counts) {
    int sum = 0;
    for (const int count : counts)
        sum += count;
    return sum;
}

std::vector<int> times(std::vector<int> counts, int factor) {
    for (int& count : counts)
        count *= factor;
    return counts;
}

/// A request for one row. Travels as two numbers.
struct Request {
    std::int64_t feature;
    std::int64_t row;
};

}  // namespace

std::vector<float> train_plain(const Problem& problem, MPI_Comm comm) {
    int rank = 0;
    int ranks = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    const auto features = static_cast<std::int64_t>(problem.rows.size());
    const int dim = problem.dim;

    // My rows of every table: row r lives on rank r % ranks, as its row r / ranks.
    std::vector<std::vector<float>> tables;
    for (std::int64_t f = 0; f < features; ++f) {
        const std::int64_t rows = problem.rows[static_cast<std::size_t>(f)];
        const float bound = 1.0F / std::sqrt(static_cast<float>(rows));
        auto& table = tables.emplace_back();
        for (std::int64_t row = rank; row < rows; row += ranks)
            for (int d = 0; d < dim; ++d)
                table.push_back(shardwise::initial_weight(problem.seed, static_cast<int>(f), row, d, bound));
    }
    const auto weights = [&](const Request& request) {
        return tables[static_cast<std::size_t>(request.feature)].data() + request.row / ranks * dim;
    };

    std::vector<float> out(static_cast<std::size_t>(problem.batch * features * dim));
    for (int step = 0; step < problem.steps; ++step) {
        const std::vector<std::int64_t> ids = ids_of(problem, step, rank);

        // Sort my requests by owner. Sample by sample, so that owners sum in the order of samples.
        std::vector<std::vector<Request>> requests_to(static_cast<std::size_t>(ranks));
        std::vector<std::vector<std::int64_t>> places_of(static_cast<std::size_t>(ranks));  // where each vector goes
        for (std::int64_t sample = 0; sample < problem.batch; ++sample) {
            for (std::int64_t f = 0; f < features; ++f) {
                const std::int64_t row = ids[static_cast<std::size_t>(f * problem.batch + sample)];
                const auto owner = static_cast<std::size_t>(row % ranks);
                requests_to[owner].push_back({f, row});
                places_of[owner].push_back((sample * features + f) * dim);
            }
        }
        std::vector<Request> requests;
        std::vector<std::int64_t> places;
        std::vector<int> asked;
        for (std::size_t owner = 0; owner < requests_to.size(); ++owner) {
            requests.insert(requests.end(), requests_to[owner].begin(), requests_to[owner].end());
            places.insert(places.end(), places_of[owner].begin(), places_of[owner].end());
            asked.push_back(static_cast<int>(requests_to[owner].size()));
        }

        // Tell every owner how many requests come, then send them.
        std::vector<int> answered(static_cast<std::size_t>(ranks));
        MPI_Alltoall(asked.data(), 1, MPI_INT, answered.data(), 1, MPI_INT, comm);
        std::vector<Request> theirs(static_cast<std::size_t>(total_of(answered)));
        const auto send_ids = times(asked, 2);
        const auto receive_ids = times(answered, 2);
        MPI_Alltoallv(requests.data(), send_ids.data(), begins_of(send_ids).data(), MPI_INT64_T, theirs.data(),
                      receive_ids.data(), begins_of(receive_ids).data(), MPI_INT64_T, comm);

        // Look up what was asked for, send the vectors back, and put mine where they belong.
        std::vector<float> found;
        for (const Request& request : theirs)
            found.insert(found.end(), weights(request), weights(request) + dim);
        std::vector<float> vectors(requests.size() * static_cast<std::size_t>(dim));
        const auto send_vectors = times(answered, dim);
        const auto receive_vectors = times(asked, dim);
        MPI_Alltoallv(found.data(), send_vectors.data(), begins_of(send_vectors).data(), MPI_FLOAT, vectors.data(),
                      receive_vectors.data(), begins_of(receive_vectors).data(), MPI_FLOAT, comm);
        for (std::size_t i = 0; i < places.size(); ++i)
            for (int d = 0; d < dim; ++d)
                out[static_cast<std::size_t>(places[i] + d)] =
                    vectors[i * static_cast<std::size_t>(dim) + static_cast<std::size_t>(d)];

        // The gradients take the same way back to the owners.
        std::vector<float> gradients;
        for (const std::int64_t place : places)
            for (int d = 0; d < dim; ++d)
                gradients.push_back(gradient_of(out[static_cast<std::size_t>(place + d)], place / (features * dim)));
        std::vector<float> arrived(theirs.size() * static_cast<std::size_t>(dim));
        MPI_Alltoallv(gradients.data(), receive_vectors.data(), begins_of(receive_vectors).data(), MPI_FLOAT,
                      arrived.data(), send_vectors.data(), begins_of(send_vectors).data(), MPI_FLOAT, comm);

        // Sum by row, in the order of ranks and samples; then update every touched row once.
        std::map<std::pair<std::int64_t, std::int64_t>, std::vector<float>> sums;
        for (std::size_t i = 0; i < theirs.size(); ++i) {
            auto& sum = sums[{theirs[i].feature, theirs[i].row}];
            sum.resize(static_cast<std::size_t>(dim));
            for (std::size_t d = 0; d < sum.size(); ++d)
                sum[d] += arrived[i * static_cast<std::size_t>(dim) + d];
        }
        for (const auto& [key, sum] : sums)
            for (std::size_t d = 0; d < sum.size(); ++d) {
                float& weight = weights({key.first, key.second})[d];
                weight = std::fma(-problem.learning_rate, sum[d], weight);
            }
    }
    return out;
}

}  // namespace plain_mpi_dlrm_step
