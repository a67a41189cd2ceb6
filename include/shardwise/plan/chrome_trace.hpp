// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "shardwise/comm/collectives.hpp"
#include "shardwise/comm/communicator_ref.hpp"
#include "shardwise/core/config.hpp"
#include "shardwise/core/error.hpp"
#include "shardwise/core/text.hpp"
#include "shardwise/plan/trace.hpp"

/// \file
/// The trace reader's file: spans of all ranks as JSON that Perfetto and chrome://tracing show, predicted bytes beside
/// those that moved.

namespace shardwise::inline SHARDWISE_ABI {

namespace detail {

/// A round is two spans of one step, of which a picture has to tell which is which.
[[nodiscard]] inline std::string shown_name(const Span& span) {
    return span.kind == SpanKind::pack   ? span.name + " pack"
           : span.kind == SpanKind::wait ? span.name + " wait"
                                         : span.name;
}

}  // namespace detail

/// One rank's events, with commas between them: a process a host, a thread a rank, a complete event a span, named after
/// the step, and for rounds after what was done: `Exchange<World, Ids> pack`, `Exchange<World, Ids> wait`. A span that
/// hands bytes to the communicator says how many, and how many were predicted where `predicted` knows. Not collective.
[[nodiscard]] inline std::string chrome_events(const Topology& topology, int rank, const std::vector<Span>& spans,
                                               const PredictedRounds& predicted = {}) {
    using Json = nlohmann::ordered_json;
    static constexpr const char* kinds[] = {"compute", "pack", "wait"};
    const int host = topology.host_of(rank);
    const auto name = [&](const char* what, const std::string& text) {
        return Json{{"name", what}, {"ph", "M"}, {"pid", host}, {"tid", rank}, {"args", {{"name", text}}}}.dump();
    };
    std::string text = concat({name("process_name", "host " + std::to_string(host)), ",\n",
                               name("thread_name", "rank " + std::to_string(rank))});
    std::map<std::pair<bool, std::uint32_t>, std::size_t> rounds;  // (is a sync, flight): how many it has had
    for (const Span& span : spans) {
        const bool sync = span.of == SpanOf::sync;
        Json args{{sync ? "sync_after_step" : "flight", span.flight}};
        if (span.kind == SpanKind::pack) {
            args["moved_bytes"] = span.bytes;
            const PredictedRounds::ByFlight& all = sync ? predicted.syncs : predicted.flights;
            const auto known = all.find(span.flight);
            const std::size_t round = rounds[{sync, span.flight}]++;
            if (known != all.end() && round < known->second.size()) args["predicted_bytes"] = known->second[round];
        }
        const Json event{{"name", detail::shown_name(span)},
                         {"cat", kinds[static_cast<std::size_t>(span.kind)]},
                         {"ph", "X"},
                         {"ts", 1e-3 * static_cast<double>(span.begin_ns)},
                         {"dur", 1e-3 * static_cast<double>(span.end_ns - span.begin_ns)},
                         {"pid", host},
                         {"tid", rank},
                         {"args", args}};
        text += ",\n" + event.dump();
    }
    return text;
}

/// Writes the spans of all ranks to a file on rank 0. Collective; rank 0 receives the text of every rank.
/// Tracers have no common clock: make them right after a barrier, and ranks are shown as far apart as that left them.
/// \param path  on rank 0's host; open it in Perfetto (ui.perfetto.dev) or chrome://tracing
/// \param tracer  this rank's, the one that LayerOptions::tracer was given
/// \param predicted  bytes of each round, shown beside those that moved; empty: none are shown
/// \throws BadInput on every rank when the file cannot be written
inline void write_chrome_trace(CommunicatorRef comm, const std::string& path, const Tracer& tracer,
                               const PredictedRounds& predicted = {}) {
    const std::string mine = chrome_events(comm.topology(), comm.rank(), tracer.spans(), predicted);
    const auto all = gather_v<char>(comm, 0, mine);
    std::string wrong;
    if (comm.rank() == 0) {
        std::ofstream file{path, std::ios::binary};
        file << "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n";
        for (std::size_t rank = 0; rank < all.size(); ++rank)
            file << (rank == 0 ? "" : ",\n") << std::string_view{all[rank].data(), all[rank].size()};
        file << "\n]}\n";
        if (!file.flush()) wrong = path + ": cannot be written";
    }
    agree_on_input(comm, wrong);
}

}  // namespace shardwise::inline SHARDWISE_ABI
