// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Every device kernel, and every optimizer's rule inside a kernel: nvcc compiles them all.

#include <cstddef>
#include <cstdint>
#include <span>

#include "shardwise/embedding/kernels/lookup.cuh"
#include "shardwise/embedding/tables/initial_weight.hpp"
#include "shardwise/optimizer/adagrad.hpp"
#include "shardwise/optimizer/adam.hpp"
#include "shardwise/optimizer/rowwise_adagrad.hpp"
#include "shardwise/optimizer/sgd.hpp"
#include "shardwise/optimizer/sum_of_squares.hpp"

namespace sw = shardwise;

template <class Rule, class... Slot>
__global__ void apply(Rule rule, sw::UpdateStep step, int dim, float* weights, const float* gradient, float* row_state,
                      Slot*... slots) {
    const auto shared = rule.row(step, row_state, sw::sum_of_squares(gradient, dim), dim);
    for (int d = static_cast<int>(threadIdx.x); d < dim; d += static_cast<int>(blockDim.x))
        rule.element(shared, weights[d], gradient[d], slots[d]...);
}

template __global__ void apply(sw::Sgd, sw::UpdateStep, int, float*, const float*, float*);
template __global__ void apply(sw::Adagrad, sw::UpdateStep, int, float*, const float*, float*, float*);
template __global__ void apply(sw::RowwiseAdagrad<>, sw::UpdateStep, int, float*, const float*, float*);
template __global__ void apply(sw::RowwiseAdagrad<sw::MeanOfSquares>, sw::UpdateStep, int, float*, const float*,
                               float*);
template __global__ void apply(sw::Adam, sw::UpdateStep, int, float*, const float*, float*, float*, float*);

void look_up(const sw::LookupArguments& arguments, std::span<std::byte> workspace, cudaStream_t stream) {
    if (workspace.size() >= sw::pooled_lookup_workspace(arguments)) sw::pooled_lookup(arguments, workspace, stream);
    sw::gather_rows(arguments, stream);
}
