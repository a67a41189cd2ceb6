// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory_resource>

#include "shardwise/embedding/lanes/tower_module.hpp"

/// A module that learns nothing.
struct Keep {
    static constexpr const char* name = "keep";
    struct Config {
        void add_to(shardwise::Digest&) const {}
    };
    struct Work {};
    Keep(const Config&, const shardwise::TowerShape&, std::uint64_t, shardwise::MemoryAccount&) {}
    static int outputs(const Config&, const shardwise::TowerShape& shape) { return shape.width(); }
    static std::int64_t static_bytes(const Config&, const shardwise::TowerShape&) { return 0; }
    static void work_bytes(const Config&, const shardwise::TowerShape&, std::int64_t, shardwise::MemoryTally&) {}
    void forward(shardwise::MatrixView<const float> in, Work&, shardwise::MatrixView<float> out,
                 std::pmr::memory_resource&) {
        std::copy_n(in.data(), in.rows() * in.columns(), out.data());
    }
    void backward(Work&, shardwise::MatrixView<const float> gradient, shardwise::MatrixView<float> through,
                  std::pmr::memory_resource&) {
        std::copy_n(gradient.data(), gradient.rows() * gradient.columns(), through.data());
    }
};
