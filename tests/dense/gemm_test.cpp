// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shardwise/dense/gemm.hpp"

#include <cstring>
#include <thread>
#include <tuple>
#include <vector>

#include "dense/support.hpp"

namespace dense_test {
namespace {

double naive(MatrixView<const float> a, bool a_flipped, MatrixView<const float> b, bool b_flipped, std::int64_t i,
             std::int64_t j) {
    double sum = 0.0;
    for (std::int64_t k = 0; k < (a_flipped ? a.rows() : a.columns()); ++k)
        sum += static_cast<double>(a_flipped ? a(k, i) : a(i, k)) * static_cast<double>(b_flipped ? b(j, k) : b(k, j));
    return sum;
}

constexpr std::int64_t sizes[] = {0, 1, 3, 16, 65};

TEST(gemm, equals_the_definition) {
    Random random{1};
    for (const std::int64_t m : sizes)
        for (const std::int64_t n : sizes)
            for (const std::int64_t k : sizes) {
                SCOPED_TRACE(testing::Message() << m << " " << n << " " << k);
                const Matrix a{m, k, random};
                const Matrix a_flipped{k, m, random};
                const Matrix b{k, n, random};
                const Matrix b_flipped{n, k, random};
                Matrix nn{m, n, random};  // what stood there before does not matter
                Matrix nt{m, n, random};
                Matrix tn{m, n, random};
                shardwise::gemm_nn(a.view(), b.view(), nn.view());
                shardwise::gemm_nt(a.view(), b_flipped.view(), nt.view());
                shardwise::gemm_tn(a_flipped.view(), b.view(), tn.view());
                for (std::int64_t i = 0; i < m; ++i)
                    for (std::int64_t j = 0; j < n; ++j) {
                        expect_close(nn.view()(i, j), naive(a.view(), false, b.view(), false, i, j), 1e-5);
                        expect_close(nt.view()(i, j), naive(a.view(), false, b_flipped.view(), true, i, j), 1e-5);
                        expect_close(tn.view()(i, j), naive(a_flipped.view(), true, b.view(), false, i, j), 1e-5);
                    }
            }
}

TEST(gemm, keeps_to_its_columns) {
    Random random{2};
    const Matrix wide_a{4, 9, random};
    const Matrix wide_b{5, 8, random};
    Matrix wide_c{4, 11, random};
    const auto before = as_double(wide_c.elements.span());
    const auto a = wide_a.view().columns_from(2, 3);
    const auto b = wide_b.view().columns_from(1, 3);
    const auto c = wide_c.view().columns_from(4, 5);
    shardwise::gemm_nt(a, b, c);
    for (std::int64_t i = 0; i < 4; ++i)
        for (std::int64_t j = 0; j < 11; ++j) {
            if (j >= 4 && j < 9)
                expect_close(wide_c.view()(i, j), naive(a, false, b, true, i, j - 4), 1e-6);
            else
                EXPECT_EQ(wide_c.view()(i, j), before[static_cast<std::size_t>(i * 11 + j)]);
        }
}

/// The bits of all three products with each operand `shift` floats behind a multiple of 64 bytes.
std::vector<float> products(std::int64_t m, std::int64_t n, std::int64_t k, std::size_t shift) {
    Random random{3};
    const auto place = [&](std::int64_t rows, std::int64_t columns) {
        Buffer<float> buffer{*std::pmr::new_delete_resource(), static_cast<std::size_t>(rows * columns) + shift};
        random.fill(buffer.span().subspan(shift));
        return buffer;
    };
    const auto a = place(m, k);
    const auto b = place(k, n);
    auto c = place(m, n);
    std::vector<float> all;
    const auto keep = [&] { all.insert(all.end(), c.data() + shift, c.data() + c.size()); };
    const MatrixView<float> into{c.data() + shift, m, n};
    shardwise::gemm_nn({a.data() + shift, m, k}, {b.data() + shift, k, n}, into);
    keep();
    shardwise::gemm_nt({a.data() + shift, m, k}, {b.data() + shift, n, k}, into);
    keep();
    shardwise::gemm_tn({a.data() + shift, k, m}, {b.data() + shift, k, n}, into);
    keep();
    return all;
}

TEST(gemm, bits_do_not_depend_on_addresses) {
    for (const auto& [m, n, k] : {std::tuple{1, 1, 64}, std::tuple{27, 27, 16}, std::tuple{27, 64, 27},
                                  std::tuple{128, 1, 33}, std::tuple{1, 200, 77}, std::tuple{130, 67, 300}}) {
        const auto aligned = products(m, n, k, 0);
        for (const std::size_t shift : {1, 2, 3, 4, 7, 8, 15}) {
            const auto shifted = products(m, n, k, shift);
            EXPECT_EQ(std::memcmp(aligned.data(), shifted.data(), aligned.size() * sizeof(float)), 0)
                << m << " " << n << " " << k << " shifted by " << shift;
        }
    }
}

TEST(gemm, threads_get_the_same_bits) {
    const auto expected = products(130, 67, 300, 0);
    std::vector<std::vector<float>> results(4);
    std::vector<std::thread> threads;
    for (auto& result : results)
        threads.emplace_back([&result] {
            for (int repeat = 0; repeat < 8; ++repeat)
                result = products(130, 67, 300, 0);
        });
    for (auto& thread : threads)
        thread.join();
    for (const auto& result : results)
        EXPECT_EQ(std::memcmp(expected.data(), result.data(), expected.size() * sizeof(float)), 0);
    EXPECT_EQ(openblas_get_num_threads(), 1);
}

}  // namespace
}  // namespace dense_test
