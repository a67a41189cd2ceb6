// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include "shardwise/embedding/steps/agree.hpp"

namespace shardwise::inline SHARDWISE_ABI::steps {

struct AgreeTape final : Exchange {
    [[nodiscard]] PartSize size(int) override { return {}; }
    void pack(int, ByteWriter&) override {}
    [[nodiscard]] std::int64_t expected(int) override { return 0; }
    void unpack(int, ByteReader&) override {}
    void end() override {}
};

namespace detail {

struct AgreeBody {
    using Tape = AgreeTape;
    using View = shardwise::View<Lanes, AgreeFamily::Tapes>;
    static Exchange& begin(StepEnv&, View& view) { return view.tape<AgreeTape>(); }
    template <class Cost>
    static void shape(const CostEnv&, Cost&, TrafficMatrixOf<typename Cost::Number>&) {}
};

}  // namespace detail

SHARDWISE_INLINE const StepCode& step_code(EmbeddingDomain, AgreeFamily) {
    return code_from<EmbeddingDomain, detail::AgreeBody>();
}

}  // namespace shardwise::inline SHARDWISE_ABI::steps
