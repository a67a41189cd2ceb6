// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The device kernels and the optimizers' rules against the host, bit by bit. `--host` runs the kernels' threads one by
// one on the host, which needs no GPU; `--time` prints how fast the kernels are on one.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <cuda_runtime.h>

#include "shardwise/embedding/kernels/lookup.cuh"
#include "shardwise/optimizer/adagrad.hpp"
#include "shardwise/optimizer/adam.hpp"
#include "shardwise/optimizer/rowwise_adagrad.hpp"
#include "shardwise/optimizer/sgd.hpp"
#include "shardwise/optimizer/sum_of_squares.hpp"

namespace sw = shardwise;

namespace {

int checks = 0;
int failures = 0;

void check(bool good, const std::string& what) {
    ++checks;
    if (good) return;
    ++failures;
    std::printf("FAILED: %s\n", what.c_str());
}

/// Device memory with the content of a vector.
template <class T>
class OnDevice {
  public:
    explicit OnDevice(const std::vector<T>& host, std::size_t shift = 0) : size_{host.size()}, shift_{shift} {
        sw::detail::check_cuda(cudaMalloc(&data_, (size_ + shift + 1) * sizeof(T)), "cudaMalloc");
        sw::detail::check_cuda(cudaMemcpy(get(), host.data(), size_ * sizeof(T), cudaMemcpyHostToDevice), "copy");
    }
    OnDevice(const OnDevice&) = delete;
    OnDevice& operator=(const OnDevice&) = delete;
    ~OnDevice() { cudaFree(data_); }
    T* get() { return data_ + shift_; }
    std::vector<T> read() {
        std::vector<T> host(size_);
        sw::detail::check_cuda(cudaMemcpy(host.data(), get(), size_ * sizeof(T), cudaMemcpyDeviceToHost), "copy");
        return host;
    }

  private:
    T* data_ = nullptr;
    std::size_t size_;
    std::size_t shift_;
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (std::isnan(a[i]) && std::isnan(b[i])) continue;
        if (std::bit_cast<std::uint32_t>(a[i]) != std::bit_cast<std::uint32_t>(b[i])) return false;
    }
    return true;
}

struct Case {
    int dim = 0;
    std::int64_t rows = 0;
    std::int64_t bags = 0;
    int longest = 0;  ///< of a bag; -1: single ids without lengths
    bool weighted = false;
    bool extreme = false;   ///< subnormals, infinities, NaNs, negative zeros
    std::size_t shift = 0;  ///< elements by which table and output miss their alignment
};

std::string name(const Case& c) {
    return "dim " + std::to_string(c.dim) + ", bags " + std::to_string(c.bags) + ", longest " +
           std::to_string(c.longest) + (c.weighted ? ", weighted" : "") + (c.extreme ? ", extreme" : "") +
           (c.shift != 0 ? ", misaligned" : "");
}

/// Runs a kernel's threads one after the other, on the grid it is launched with or on one block that goes round.
template <class Thread>
void each_thread(std::int64_t groups, int group, bool one_block, Thread thread) {
    const auto launch = sw::detail::launch_for(groups, group);
    const std::int64_t count = static_cast<std::int64_t>(one_block ? 1 : launch.blocks) * launch.block_threads;
    for (std::int64_t i = 0; i < count; ++i)
        thread(i, count);
}

template <int Width>
void run_threads(const sw::LookupArguments& a, const std::int64_t* offsets, bool gather, bool one_block) {
    const int group = sw::detail::group_for(a.dim, Width);
    each_thread(gather ? a.ids : a.bags, group, one_block, [&](std::int64_t i, std::int64_t count) {
        if (gather) {
            sw::detail::gather_rows_thread<Width>(a, group, i, count);
        } else if (a.weights != nullptr) {
            sw::detail::pooled_lookup_thread<Width, true>(a, offsets, group, i, count);
        } else {
            sw::detail::pooled_lookup_thread<Width, false>(a, offsets, group, i, count);
        }
    });
}

/// The threads of the kernels on the host, against the host's kernels.
void check_threads(const sw::LookupArguments& host, const std::string& name) {
    std::vector<std::int64_t> offsets(static_cast<std::size_t>(host.bags + 1));
    for (std::int64_t bag = 0; host.lengths != nullptr && bag < host.bags; ++bag)
        offsets[static_cast<std::size_t>(bag + 1)] = offsets[static_cast<std::size_t>(bag)] + host.lengths[bag];
    const std::int64_t* const bounds = host.lengths == nullptr ? nullptr : offsets.data();
    for (const bool gather : {false, true}) {
        const auto elements = static_cast<std::size_t>((gather ? host.ids : host.bags) * host.dim);
        std::vector<float> expected(elements, 99.0F);
        sw::LookupArguments a = host;
        a.out = expected.data();
        gather ? sw::gather_rows(a) : sw::pooled_lookup(a);
        for (const bool one_block : {false, true}) {
            std::vector<float> out(elements + 4, 99.0F);
            a.out = out.data();
            if (sw::detail::vector_width(a) == 4) {
                run_threads<4>(a, bounds, gather, one_block);
            } else {
                run_threads<1>(a, bounds, gather, one_block);
            }
            check(out[elements] == 99.0F, "the end of the output, " + name);
            out.resize(elements);
            check(same_bits(out, expected),
                  std::string{gather ? "gather_rows" : "pooled_lookup"} + " thread by thread, " + name);
        }
    }
}

void check_lookup(const Case& c, bool on_host, cudaStream_t stream) {
    std::mt19937_64 random{static_cast<std::uint64_t>(c.dim * 1000 + c.bags)};
    std::normal_distribution<float> normal;
    const float infinity = std::numeric_limits<float>::infinity();
    const auto value = [&] {
        if (!c.extreme || random() % 4 != 0) return normal(random);
        const float odd[] = {-0.0F, 1e-42F, -3e-39F, 3e38F, infinity, -infinity, std::nanf("")};
        return odd[random() % 7];
    };
    std::vector<float> table(static_cast<std::size_t>(c.rows * c.dim));
    for (float& element : table)
        element = value();
    std::vector<std::int32_t> lengths;
    std::int64_t ids = c.longest < 0 ? c.bags : 0;
    for (std::int64_t bag = 0; bag < c.bags && c.longest >= 0; ++bag) {
        lengths.push_back(static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(c.longest + 1)));
        ids += lengths.back();
    }
    std::vector<sw::LocalRow> rows(static_cast<std::size_t>(ids));
    std::vector<float> weights(static_cast<std::size_t>(ids));
    for (std::size_t i = 0; i < rows.size(); ++i) {
        rows[i] = static_cast<sw::LocalRow>(random() % static_cast<std::uint64_t>(c.rows));
        weights[i] = value();
    }
    std::vector<float> expected(static_cast<std::size_t>(c.bags * c.dim), 99.0F);
    std::vector<float> gathered(static_cast<std::size_t>(ids * c.dim), 99.0F);

    sw::LookupArguments host{.table = table.data(),
                             .dim = c.dim,
                             .bags = c.bags,
                             .ids = ids,
                             .lengths = c.longest < 0 ? nullptr : lengths.data(),
                             .rows = rows.data(),
                             .weights = c.weighted ? weights.data() : nullptr,
                             .out = expected.data()};
    if (on_host) return c.bags == 0 || ids == 0 ? void() : check_threads(host, name(c));
    OnDevice<float> device_table{table, c.shift};
    OnDevice<std::int32_t> device_lengths{lengths};
    OnDevice<sw::LocalRow> device_rows{rows};
    OnDevice<float> device_weights{weights};
    OnDevice<float> out{expected, c.shift};
    OnDevice<float> device_gathered{gathered, c.shift};
    sw::LookupArguments device = host;
    device.table = device_table.get();
    if (c.longest >= 0) device.lengths = device_lengths.get();
    device.rows = device_rows.get();
    if (c.weighted) device.weights = device_weights.get();
    device.out = out.get();

    const std::size_t needed = sw::pooled_lookup_workspace(device);
    OnDevice<std::byte> workspace{std::vector<std::byte>(needed)};
    sw::pooled_lookup(device, {workspace.get(), needed}, stream);
    sw::LookupArguments gather = device;
    gather.out = device_gathered.get();
    sw::gather_rows(gather, stream);
    sw::detail::check_cuda(cudaStreamSynchronize(stream), "kernels");

    sw::pooled_lookup(host);
    check(same_bits(out.read(), expected), "pooled_lookup, " + name(c));
    host.out = gathered.data();
    sw::gather_rows(host);
    check(same_bits(device_gathered.read(), gathered), "gather_rows, " + name(c));

    if (needed > 0) {
        bool thrown = false;
        try {
            sw::pooled_lookup(device, {workspace.get(), needed - 1}, stream);
        } catch (const sw::BadInput&) {
            thrown = true;
        }
        check(thrown, "a workspace that is too small, " + name(c));
    }
}

/// One row a thread: what the fused update does to a row, with the gradient's own sum of squares.
template <class Rule>
SHARDWISE_HOST_DEVICE void update_row(const Rule& rule, const sw::UpdateStep& step, int dim, std::int64_t row,
                                      float* weights, const float* gradients, float* row_state, float* state) {
    const float* gradient = gradients + row * dim;
    const double norm = Rule::needs_row_norm ? sw::sum_of_squares(gradient, dim) : 0.0;
    const auto shared = rule.row(step, row_state + row * Rule::row_slots, norm, dim);
    float* own = state + row * dim * Rule::element_slots;
    for (int d = 0; d < dim; ++d) {
        float& weight = weights[row * dim + d];
        if constexpr (Rule::element_slots == 0) {
            rule.element(shared, weight, gradient[d]);
        } else if constexpr (Rule::element_slots == 1) {
            rule.element(shared, weight, gradient[d], own[d]);
        } else {
            rule.element(shared, weight, gradient[d], own[d], own[dim + d]);
        }
    }
}

template <class Rule>
__global__ void update_kernel(Rule rule, sw::UpdateStep step, int dim, std::int64_t rows, float* weights,
                              const float* gradients, float* row_state, float* state) {
    const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (row < rows) update_row(rule, step, dim, row, weights, gradients, row_state, state);
}

template <class Rule>
void check_updates(const Rule& rule) {
    constexpr int dim = 19;
    constexpr std::int64_t rows = 500;
    std::mt19937_64 random{7};
    std::normal_distribution<float> normal;
    std::vector<float> weights(rows * dim);
    for (float& weight : weights)
        weight = normal(random);
    std::vector<float> row_state(rows * Rule::row_slots + 1);
    std::vector<float> state(rows * dim * Rule::element_slots + 1);
    OnDevice<float> device_weights{weights};
    OnDevice<float> device_row_state{row_state};
    OnDevice<float> device_state{state};
    for (std::int64_t t = 1; t <= 30; ++t) {
        std::vector<float> gradients(rows * dim);
        for (float& gradient : gradients)
            gradient = std::ldexp(normal(random), static_cast<int>(random() % 20) - 10);
        OnDevice<float> device_gradients{gradients};
        const sw::UpdateStep step{.learning_rate = 0.05F, .step = t * t};
        update_kernel<<<(rows + 127) / 128, 128>>>(rule, step, dim, rows, device_weights.get(), device_gradients.get(),
                                                   device_row_state.get(), device_state.get());
        sw::detail::check_cuda(cudaGetLastError(), "update");
        for (std::int64_t row = 0; row < rows; ++row)
            update_row(rule, step, dim, row, weights.data(), gradients.data(), row_state.data(), state.data());
        sw::detail::check_cuda(cudaDeviceSynchronize(), "update");
    }
    check(same_bits(device_weights.read(), weights), std::string{"weights under "} + Rule::name);
    check(same_bits(device_row_state.read(), row_state), std::string{"row state under "} + Rule::name);
    check(same_bits(device_state.read(), state), std::string{"state under "} + Rule::name);
}

/// Seconds of the best of several runs.
template <class Run>
double seconds(cudaStream_t stream, Run run) {
    cudaEvent_t begin = nullptr;
    cudaEvent_t end = nullptr;
    cudaEventCreate(&begin);
    cudaEventCreate(&end);
    float best = 1e30F;
    for (int i = 0; i < 10; ++i) {
        cudaEventRecord(begin, stream);
        run();
        cudaEventRecord(end, stream);
        cudaEventSynchronize(end);
        float milliseconds = 0.0F;
        cudaEventElapsedTime(&milliseconds, begin, end);
        best = std::min(best, milliseconds);
    }
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    return best * 1e-3;
}

void time_lookup(int dim, int bag, cudaStream_t stream) {
    const std::int64_t rows = 16'000'000;
    const std::int64_t ids = 4'000'000;
    const std::int64_t bags = ids / bag;
    std::mt19937_64 random{1};
    std::vector<sw::LocalRow> host_rows(static_cast<std::size_t>(ids));
    for (auto& row : host_rows)
        row = static_cast<sw::LocalRow>(random() % static_cast<std::uint64_t>(rows));
    OnDevice<sw::LocalRow> device_rows{host_rows};
    OnDevice<std::int32_t> lengths{std::vector<std::int32_t>(static_cast<std::size_t>(bags), bag)};
    float* table = nullptr;
    float* out = nullptr;
    sw::detail::check_cuda(cudaMalloc(&table, static_cast<std::size_t>(rows * dim) * 4), "cudaMalloc");
    sw::detail::check_cuda(cudaMalloc(&out, static_cast<std::size_t>(bags * dim) * 4), "cudaMalloc");
    cudaMemset(table, 0, static_cast<std::size_t>(rows * dim) * 4);
    const sw::LookupArguments a{.table = table,
                                .dim = dim,
                                .bags = bags,
                                .ids = ids,
                                .lengths = lengths.get(),
                                .rows = device_rows.get(),
                                .weights = nullptr,
                                .out = out};
    const std::size_t needed = sw::pooled_lookup_workspace(a);
    OnDevice<std::byte> workspace{std::vector<std::byte>(needed)};
    const double time = seconds(stream, [&] { sw::pooled_lookup(a, {workspace.get(), needed}, stream); });
    const double bytes = static_cast<double>(ids) * (dim * 4 + 4) + static_cast<double>(bags) * (dim * 4 + 4);
    std::printf("pooled_lookup dim %d bag %d: %.0f us, %.0f GB/s\n", dim, bag, time * 1e6, bytes / time * 1e-9);
    cudaFree(table);
    cudaFree(out);
}

}  // namespace

int main(int argc, char** argv) {
    try {
        const std::string argument = argc > 1 ? argv[1] : "";
        const bool on_host = argument == "--host";
        cudaStream_t stream = nullptr;
        if (!on_host) sw::detail::check_cuda(cudaStreamCreate(&stream), "cudaStreamCreate");
        for (const int dim : {1, 3, 4, 5, 16, 17, 32, 64, 100, 128, 200, 256, 513})
            for (const std::int64_t bags : {0, 1, 7, 1000})
                for (const int longest : {-1, 0, 1, 40})
                    for (const bool weighted : {false, true})
                        check_lookup({.dim = dim, .rows = 300, .bags = bags, .longest = longest, .weighted = weighted},
                                     on_host, stream);
        for (const int dim : {8, 64, 130})
            for (const bool weighted : {false, true})
                for (const std::size_t shift : {0, 1, 2})
                    check_lookup({.dim = dim,
                                  .rows = 300,
                                  .bags = 400,
                                  .longest = 12,
                                  .weighted = weighted,
                                  .extreme = true,
                                  .shift = shift},
                                 on_host, stream);
        check_lookup({.dim = 4, .rows = 1000, .bags = 300000, .longest = 9}, on_host, stream);
        if (!on_host) {
            check_updates(sw::Sgd{});
            check_updates(sw::Adagrad{});
            check_updates(sw::RowwiseAdagrad<>{});
            check_updates(sw::RowwiseAdagrad<sw::MeanOfSquares>{});
            check_updates(sw::Adam{});
        }
        if (argument == "--time")
            for (const int dim : {16, 64, 128})
                for (const int bag : {1, 20})
                    time_lookup(dim, bag, stream);
        if (!on_host) sw::detail::check_cuda(cudaStreamDestroy(stream), "cudaStreamDestroy");
    } catch (const std::exception& error) {
        std::printf("FAILED: %s\n", error.what());
        return 1;
    }
    std::printf("%d checks, %d failed\n", checks, failures);
    return failures == 0 ? 0 : 1;
}
