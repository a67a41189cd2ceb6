// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "choose_sharding.hpp"

#include <vector>

#include <fmt/format.h>

#include "embedding.hpp"
#include "meter.hpp"
#include "shardwise/plan/cost.hpp"
#include "shardwise/topology/cluster.hpp"

namespace train_dlrm {

Options choose_sharding(const Options& options, sw::CommunicatorRef comm) {
    if (options.policies.sharding != "auto") return options;
    const auto batches = first_batch(options, comm);
    std::vector<sw::JaggedView<std::int64_t>> views;
    for (const auto& one : batches)
        views.push_back(one.view());

    Options best = options;
    double least = 0;
    for (const char* sharding : automatic) {
        Options o = options;
        o.policies.sharding = sharding;
        const sw::LayerBlueprint layer =
            draw_embedding(o.policies, comm.topology(), tables_of(o), towers_of(o, comm.topology()), module_config(o));
        const sw::LayerCost cost = layer.predict_cost(views);
        const double seconds = sw::seconds(cost.segments, sw::Cluster{});
        sw::Traffic moved = cost.forward.total();
        moved += cost.backward.total();
        const auto megabytes = [](const sw::TierTraffic& t) {
            return 1e-6 * static_cast<double>(t.payload + t.control);
        };
        if (comm.rank() == 0)
            fmt::print(
                "sharding {}: exchanges of the first batch take {:.3f} ms over the links of A100 hosts, {:.2f} MB "
                "inside hosts and {:.2f} MB across\n",
                sharding, 1e3 * seconds, megabytes(moved.host), megabytes(moved.cross_host));
        if (best.policies.sharding == "auto" || seconds < least) {
            best = o;
            least = seconds;
        }
    }
    if (comm.rank() == 0) fmt::print("sharding auto: {}\n", best.policies.sharding);
    return best;
}

}  // namespace train_dlrm
