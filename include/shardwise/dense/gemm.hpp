// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#include <cblas.h>
#if defined(SHARDWISE_ONEDNN)
#include <dlfcn.h>
#include <dnnl.h>
#endif

#include "shardwise/core/config.hpp"
#include "shardwise/core/matrix.hpp"
#include "shardwise/core/text.hpp"

/// \file
/// Matrix products on the calling thread: of doubles by OpenBLAS, of large ones of floats by oneDNN where
/// SHARDWISE_ONEDNN is defined (CMake defines it where oneDNN is found), and otherwise by OpenBLAS, too. Between the
/// two, results differ by rounding.
///
/// A rank is one thread of computation, and ranks are often threads of one process: a BLAS with threads of its own
/// would compete with them. So the first product makes OpenBLAS compute on the calling thread, in the whole process and
/// from then on; oneDNN does so during each product, and what a program has told OpenMP stays as it is. Safe from
/// several threads.
///
/// None is collective; what the libraries pack operands into is theirs. Each costs 2 * m * n * k flops and reads and
/// writes every operand at least once. The bits of a product are a function of its shapes, strides and values: operands
/// at other addresses give the same.

namespace shardwise::inline SHARDWISE_ABI {

/// What multiplies floats, such as "oneDNN 2.6.3, OpenBLAS (SkylakeX)" or "OpenBLAS (SkylakeX)". Not collective.
[[nodiscard]] inline std::string product_library() {
#if defined(SHARDWISE_ONEDNN)
    const dnnl_version_t& version = *dnnl_version();
    return concat({"oneDNN ", version.major, ".", version.minor, ".", version.patch, ", OpenBLAS (",
                   openblas_get_corename(), ")"});
#else
    return concat({"OpenBLAS (", openblas_get_corename(), ")"});
#endif
}

/// What to do about an OpenBLAS that does not know this processor: newer ones than itself it treats as one without AVX,
/// and products take several times as long. Empty where it knows the processor. Not collective.
[[nodiscard]] inline std::string blas_hint() {
#if defined(__x86_64__)
    const std::string core = openblas_get_corename();
    const std::string_view without_avx[] = {"Prescott", "Core2",     "Penryn", "Dunnington", "Nehalem",
                                            "Atom",     "Northwood", "Katmai", "Generic"};
    if (!__builtin_cpu_supports("avx2") || std::ranges::find(without_avx, core) == std::end(without_avx)) return {};
    return concat({"OpenBLAS takes this processor for a ", core,
                   " and multiplies several times as slowly as it could: set OPENBLAS_CORETYPE=",
                   (__builtin_cpu_supports("avx512f") ? "SkylakeX" : "Haswell"), " in the environment"});
#else
    return {};
#endif
}

namespace detail {

/// Only the first call acts; another one reads a byte.
inline void single_threaded_blas() {
    [[maybe_unused]] static const bool done = (openblas_set_num_threads(1), true);
}

#if defined(SHARDWISE_ONEDNN)
/// While one lives, OpenMP has one thread for products that this thread asks for. Without OpenMP there is nothing to
/// do.
class OneThread {
  public:
    OneThread() : before_{calls().get == nullptr ? 1 : calls().get()} { set(1); }
    ~OneThread() { set(before_); }
    OneThread(const OneThread&) = delete;
    OneThread& operator=(const OneThread&) = delete;

  private:
    struct Calls {  // of whichever OpenMP oneDNN brings, if any
        int (*get)() = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_max_threads"));
        void (*set)(int) = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
    };
    static const Calls& calls() {
        static const Calls found;
        return found;
    }
    void set(int threads) const {
        if (before_ != 1 && calls().set != nullptr) calls().set(threads);
    }

    int before_;
};

/// Multiplications of the smallest product that is oneDNN's: on smaller ones OpenBLAS is as fast or faster, where it
/// knows the processor.
inline std::int64_t least_of_onednn() {
    static const std::int64_t least = blas_hint().empty() ? std::int64_t{128} * 128 * 64 : 0;
    return least;
}

inline void multiply(bool a_flipped, bool b_flipped, MatrixView<const float> a, MatrixView<const float> b,
                     MatrixView<float> c, std::int64_t inner) {
    const OneThread alone;
    const dnnl_status_t status =
        dnnl_sgemm(a_flipped ? 'T' : 'N', b_flipped ? 'T' : 'N', c.rows(), c.columns(), inner, 1.0F, a.data(),
                   a.stride(), b.data(), b.stride(), 0.0F, c.data(), c.stride());
    if (status != dnnl_success)
        throw std::runtime_error{concat({"a product of (", c.rows(), ", ", inner, ") and (", inner, ", ", c.columns(),
                                         "): oneDNN's error ", static_cast<int>(status)})};
}
#endif

template <class T>
bool fits_blas(MatrixView<const T> x) {
    constexpr std::int64_t most = std::numeric_limits<blasint>::max();
    return x.rows() >= 0 && x.columns() >= 0 && x.rows() <= most && x.stride() >= x.columns() && x.stride() <= most;
}

/// T is float or double.
template <class T>
void gemm(CBLAS_TRANSPOSE a_form, CBLAS_TRANSPOSE b_form, MatrixView<const T> a, MatrixView<const T> b,
          MatrixView<T> c) {
    const bool a_flipped = a_form == CblasTrans;
    [[maybe_unused]] const bool b_flipped = b_form == CblasTrans;
    const std::int64_t inner = a_flipped ? a.rows() : a.columns();
    SHARDWISE_ASSERT(fits_blas(a) && fits_blas(b) && fits_blas(MatrixView<const T>{c}));
    SHARDWISE_ASSERT((a_flipped ? a.columns() : a.rows()) == c.rows());
    SHARDWISE_ASSERT((b_flipped ? b.columns() : b.rows()) == inner);
    SHARDWISE_ASSERT((b_flipped ? b.rows() : b.columns()) == c.columns());
    if (c.rows() == 0 || c.columns() == 0) return;
    if (inner == 0) {
        for (std::int64_t i = 0; i < c.rows(); ++i)
            std::fill_n(c.row(i), c.columns(), T{0});
        return;
    }
#if defined(SHARDWISE_ONEDNN)
    if constexpr (std::is_same_v<T, float>)
        if (c.rows() * c.columns() * inner >= least_of_onednn()) return multiply(a_flipped, b_flipped, a, b, c, inner);
#endif
    single_threaded_blas();
    const auto number = [](std::int64_t n) { return static_cast<blasint>(n); };
    const auto product = [] {
        if constexpr (std::is_same_v<T, float>) {
            return &cblas_sgemm;
        } else {
            return &cblas_dgemm;
        }
    }();
    product(CblasRowMajor, a_form, b_form, number(c.rows()), number(c.columns()), number(inner), T{1}, a.data(),
            number(a.stride()), b.data(), number(b.stride()), T{0}, c.data(), number(c.stride()));
}

}  // namespace detail

/// c = a b.
/// \param a  (m, k) \param b  (k, n) \param c  (m, n), overlaps neither
inline void gemm_nn(MatrixView<const float> a, MatrixView<const float> b, MatrixView<float> c) {
    detail::gemm<float>(CblasNoTrans, CblasNoTrans, a, b, c);
}

/// c = a b^T.
/// \param a  (m, k) \param b  (n, k) \param c  (m, n), overlaps neither
inline void gemm_nt(MatrixView<const float> a, MatrixView<const float> b, MatrixView<float> c) {
    detail::gemm<float>(CblasNoTrans, CblasTrans, a, b, c);
}

/// c = a^T b.
/// \param a  (k, m) \param b  (k, n) \param c  (m, n), overlaps neither
inline void gemm_tn(MatrixView<const float> a, MatrixView<const float> b, MatrixView<float> c) {
    detail::gemm<float>(CblasTrans, CblasNoTrans, a, b, c);
}

}  // namespace shardwise::inline SHARDWISE_ABI
