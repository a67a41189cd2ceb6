// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "choose_policies.hpp"

#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "embedding.hpp"
#include "meter.hpp"
#include "shardwise/plan/cost.hpp"
#include "shardwise/topology/cluster.hpp"

namespace train_dlrm {

namespace {

/// Of the values of an axis, the one whose exchanges of the first batch take the least time.
Options choose(const Options& options, sw::CommunicatorRef comm, const char* axis, std::string Policies::*value,
               std::span<const char* const> values) {
    if (options.policies.*value != "auto") return options;
    const auto batches = first_batch(options, comm);
    std::vector<sw::JaggedView<std::int64_t>> views;
    for (const auto& one : batches)
        views.push_back(one.view());

    Options best = options;
    double least = 0;
    for (const char* one : values) {
        Options o = options;
        o.policies.*value = one;
        const sw::LayerBlueprint layer =
            draw_embedding(o.policies, comm.topology(), tables_of(o), towers_of(o, comm.topology()), module_config(o),
                           o.row_plan.get(), o.groups);
        const sw::LayerCost cost = layer.predict_cost(views);
        const double seconds = sw::seconds(cost.segments, sw::Cluster{});
        sw::Traffic moved = cost.forward.total();
        moved += cost.backward.total();
        moved += cost.sync.total();
        const auto megabytes = [](const sw::TierTraffic& t) {
            return 1e-6 * static_cast<double>(t.payload + t.control);
        };
        if (comm.rank() == 0)
            fmt::print(
                "{} {}: exchanges of the first batch take {:.3f} ms over the links of A100 hosts, {:.2f} MB "
                "inside hosts and {:.2f} MB across\n",
                axis, one, 1e3 * seconds, megabytes(moved.host), megabytes(moved.cross_host));
        if (best.policies.*value == "auto" || seconds < least) {
            best = o;
            least = seconds;
        }
    }
    if (comm.rank() == 0) fmt::print("{} auto: {}\n", axis, best.policies.*value);
    return best;
}

}  // namespace

Options choose_sharding(const Options& options, sw::CommunicatorRef comm) {
    Options o = options;
    if (o.policies.requests == "auto") o.policies.requests = "raw";
    o = choose(o, comm, "sharding", &Policies::sharding, automatic);
    o.policies.requests = options.policies.requests;
    return o;
}

Options choose_requests(const Options& options, sw::CommunicatorRef comm) {
    return choose(options, comm, "requests", &Policies::requests, automatic_requests);
}

}  // namespace train_dlrm
