// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <cub/device/device_scan.cuh>
#include <cuda_runtime.h>
#include <thrust/iterator/transform_iterator.h>

#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/embedding/kernels/lookup.hpp"

/// \file
/// The device kernels of a lookup. They sum in the order of the host kernels, from +0.0 and with fused multiply-adds,
/// so that both give the same bits (of a NaN: that it is one). Their floor is memory, like the host's.

namespace shardwise::inline SHARDWISE_ABI {

/// A CUDA call failed.
class CudaError : public Error {
  public:
    CudaError(const char* what, cudaError_t code)
        : Error{std::string{what} + ": " + cudaGetErrorName(code) + ", " + cudaGetErrorString(code), 3}, code_{code} {}
    [[nodiscard]] cudaError_t code() const noexcept { return code_; }

  private:
    cudaError_t code_;
};

namespace detail {

inline void check_cuda(cudaError_t code, const char* what) {
    if (code != cudaSuccess) throw CudaError{what, code};
}

struct Widen {
    __host__ __device__ std::int64_t operator()(std::int32_t length) const { return length; }
};

/// `Width` neighbouring columns, moved by one access.
template <int Width>
struct alignas(4 * Width) ColumnVector {
    float at[Width];
};

template <bool Weighted, int Width>
SHARDWISE_HOST_DEVICE void add_row(ColumnVector<Width>& sum, float weight, const ColumnVector<Width>& row) {
    for (int k = 0; k < Width; ++k) {
        if constexpr (Weighted) {
            sum.at[k] = std::fma(weight, row.at[k], sum.at[k]);
        } else {
            sum.at[k] += row.at[k];
        }
    }
}

/// What thread `thread` of `count` does: `group` neighbouring threads (a power of two, at most a warp) share a bag,
/// each with `Width` columns a turn; a.dim is a multiple of Width. Four rows are in flight at once; they are added in
/// order. Without offsets every bag has one id. On the host it is the same function, for tests.
template <int Width, bool Weighted>
SHARDWISE_HOST_DEVICE void pooled_lookup_thread(const LookupArguments& a, const std::int64_t* offsets, int group,
                                                std::int64_t thread, std::int64_t count) {
    using Vector = ColumnVector<Width>;
    const int lane = static_cast<int>(thread % group);
    for (std::int64_t bag = thread / group; bag < a.bags; bag += count / group) {
        const std::int64_t begin = offsets == nullptr ? bag : offsets[bag];
        const std::int64_t end = offsets == nullptr ? bag + 1 : offsets[bag + 1];
        for (int d = lane * Width; d < a.dim; d += group * Width) {
            const auto row = [&](std::int64_t i) {
                return *reinterpret_cast<const Vector*>(a.table + static_cast<std::int64_t>(a.rows[i]) * a.dim + d);
            };
            const auto weight = [&](std::int64_t i) { return Weighted ? a.weights[i] : 1.0F; };
            Vector sum{};
            std::int64_t i = begin;
            for (; i + 4 <= end; i += 4) {
                const Vector first = row(i);
                const Vector second = row(i + 1);
                const Vector third = row(i + 2);
                const Vector fourth = row(i + 3);
                add_row<Weighted>(sum, weight(i), first);
                add_row<Weighted>(sum, weight(i + 1), second);
                add_row<Weighted>(sum, weight(i + 2), third);
                add_row<Weighted>(sum, weight(i + 3), fourth);
            }
            for (; i < end; ++i)
                add_row<Weighted>(sum, weight(i), row(i));
            if constexpr (Weighted)  // as on the host, no sum is -0.0
                for (float& element : sum.at)
                    element += 0.0F;
            *reinterpret_cast<Vector*>(a.out + bag * a.dim + d) = sum;
        }
    }
}

/// As pooled_lookup_thread, a group of threads an id.
template <int Width>
SHARDWISE_HOST_DEVICE void gather_rows_thread(const LookupArguments& a, int group, std::int64_t thread,
                                              std::int64_t count) {
    using Vector = ColumnVector<Width>;
    const int lane = static_cast<int>(thread % group);
    for (std::int64_t i = thread / group; i < a.ids; i += count / group)
        for (int d = lane * Width; d < a.dim; d += group * Width)
            *reinterpret_cast<Vector*>(a.out + i * a.dim + d) =
                *reinterpret_cast<const Vector*>(a.table + static_cast<std::int64_t>(a.rows[i]) * a.dim + d);
}

inline __device__ std::int64_t thread_number() {
    return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
inline __device__ std::int64_t thread_count() {
    return static_cast<std::int64_t>(gridDim.x) * blockDim.x;
}

template <int Width, bool Weighted>
__global__ void pooled_lookup_kernel(LookupArguments a, const std::int64_t* offsets, int group) {
    pooled_lookup_thread<Width, Weighted>(a, offsets, group, thread_number(), thread_count());
}

template <int Width>
__global__ void gather_rows_kernel(LookupArguments a, int group) {
    gather_rows_thread<Width>(a, group, thread_number(), thread_count());
}

/// How many columns a thread moves at once: rows of whole 16 bytes, or one by one.
inline int vector_width(const LookupArguments& a) {
    const auto address = reinterpret_cast<std::uintptr_t>(a.table) | reinterpret_cast<std::uintptr_t>(a.out);
    return a.dim % 4 == 0 && address % 16 == 0 ? 4 : 1;
}

/// The threads of one bag: enough for its columns, at most a warp.
inline int group_for(int dim, int width) {
    int group = 1;
    while (group < 32 && group * width < dim)
        group *= 2;
    return group;
}

struct Launch {
    unsigned blocks;
    unsigned block_threads;
};
inline Launch launch_for(std::int64_t groups, int group) {
    constexpr int block_threads = 256;
    const std::int64_t blocks = (groups * group + block_threads - 1) / block_threads;
    return {static_cast<unsigned>(std::min<std::int64_t>(blocks, 0x7fffffff)), block_threads};
}

inline std::size_t offsets_bytes(std::int64_t bags) {
    return (static_cast<std::size_t>(bags + 1) * sizeof(std::int64_t) + 255) / 256 * 256;
}

inline cudaError_t scan_lengths(void* scratch, std::size_t& bytes, const LookupArguments& a, std::int64_t* offsets,
                                cudaStream_t stream) {
    return cub::DeviceScan::InclusiveSum(scratch, bytes, thrust::make_transform_iterator(a.lengths, Widen{}),
                                         offsets + 1, a.bags, stream);
}

template <int Width>
void launch_pooled_lookup(const LookupArguments& a, const std::int64_t* offsets, cudaStream_t stream) {
    const int group = group_for(a.dim, Width);
    const auto [blocks, block_threads] = launch_for(a.bags, group);
    if (a.weights != nullptr) {
        pooled_lookup_kernel<Width, true><<<blocks, block_threads, 0, stream>>>(a, offsets, group);
    } else {
        pooled_lookup_kernel<Width, false><<<blocks, block_threads, 0, stream>>>(a, offsets, group);
    }
    check_cuda(cudaGetLastError(), "pooled_lookup: launch");
}

}  // namespace detail

/// Bytes of device memory that `pooled_lookup` needs beside its arguments; 0 without lengths.
/// \throws CudaError when there is no device
[[nodiscard]] inline std::size_t pooled_lookup_workspace(const LookupArguments& a) {
    if (a.lengths == nullptr || a.ids == 0 || a.bags == 0) return 0;
    std::size_t scan = 0;
    detail::check_cuda(detail::scan_lengths(nullptr, scan, a, nullptr, nullptr), "pooled_lookup: size of the scan");
    return detail::offsets_bytes(a.bags) + scan;
}

/// Sums weight * row over each bag on the device, the same bits as the host's pooled_lookup. All pointers of `a` are
/// device memory; `workspace` is device memory of at least pooled_lookup_workspace(a) bytes, aligned to 16, in use
/// until the stream gets there. Returns without waiting. Any dim; fastest where it is a multiple of 4 and table and
/// output are aligned to 16 bytes. \throws BadInput for a workspace that is too small, CudaError where a launch fails
inline void pooled_lookup(const LookupArguments& a, std::span<std::byte> workspace, cudaStream_t stream) {
    if (a.bags == 0 || a.dim == 0) return;
    if (a.ids == 0) {
        const auto bytes = static_cast<std::size_t>(a.bags) * static_cast<std::size_t>(a.dim) * sizeof(float);
        return detail::check_cuda(cudaMemsetAsync(a.out, 0, bytes, stream), "pooled_lookup: zeros");
    }
    std::int64_t* offsets = nullptr;
    if (a.lengths != nullptr) {
        const std::size_t needed = pooled_lookup_workspace(a);
        if (workspace.size() < needed)
            throw BadInput{concat({"pooled_lookup: a workspace of ", workspace.size(), " bytes, where ", needed,
                                   " are needed: ask pooled_lookup_workspace"})};
        offsets = reinterpret_cast<std::int64_t*>(workspace.data());
        detail::check_cuda(cudaMemsetAsync(offsets, 0, sizeof(std::int64_t), stream), "pooled_lookup: offsets");
        std::size_t scan = workspace.size() - detail::offsets_bytes(a.bags);
        detail::check_cuda(
            detail::scan_lengths(workspace.data() + detail::offsets_bytes(a.bags), scan, a, offsets, stream),
            "pooled_lookup: scan of the lengths");
    }
    if (detail::vector_width(a) == 4) {
        detail::launch_pooled_lookup<4>(a, offsets, stream);
    } else {
        detail::launch_pooled_lookup<1>(a, offsets, stream);
    }
}

/// Copies the row of each id on the device. Pointers as in pooled_lookup; returns without waiting.
/// \throws CudaError where the launch fails
inline void gather_rows(const LookupArguments& a, cudaStream_t stream) {
    if (a.ids == 0 || a.dim == 0) return;
    const int width = detail::vector_width(a);
    const int group = detail::group_for(a.dim, width);
    const auto [blocks, block_threads] = detail::launch_for(a.ids, group);
    if (width == 4) {
        detail::gather_rows_kernel<4><<<blocks, block_threads, 0, stream>>>(a, group);
    } else {
        detail::gather_rows_kernel<1><<<blocks, block_threads, 0, stream>>>(a, group);
    }
    detail::check_cuda(cudaGetLastError(), "gather_rows: launch");
}

}  // namespace shardwise::inline SHARDWISE_ABI
