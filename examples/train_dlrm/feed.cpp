// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "feed.hpp"

#include <cstring>

#include "shardwise/comm/collectives.hpp"
#include "shardwise/core/error.hpp"
#include "stopwatch.hpp"

namespace train_dlrm {

Feed::Feed(sw::CommunicatorRef comm, Loader& loader) : comm_{comm}, loader_{&loader} {
    theirs_.resize(static_cast<std::size_t>(comm.size()));
}

Feed::~Feed() {
    if (waiting_) comm_.abandon(ticket_);
}

void Feed::rewind() {
    loader_->rewind();
}

bool Feed::announce(sw::ClickBatch& batch) {
    const Stopwatch input{input_seconds_};
    mine_ = ended;
    batch.resize_single(0, dense_features, categories);
    try {
        if (const sw::ClickBatch* next = loader_->next()) {
            batch = *next;
            mine_ = batch.samples();
        }
    } catch (const sw::BadInput& error) {
        wrong_ = error.what();
        mine_ = unreadable;
    }
    out_.clear();
    in_.clear();
    for (int peer = 0; peer < comm_.size(); ++peer) {
        if (peer == comm_.rank()) continue;
        out_.push_back({.to = peer, .bytes = std::as_bytes(std::span{&mine_, 1}), .payload = 0});
        in_.push_back({.from = peer, .into = &theirs_[static_cast<std::size_t>(peer)], .expected = sizeof mine_});
    }
    ticket_ = comm_.post({.step = "sizes of batches", .flight = 0}, out_, in_);
    waiting_ = true;
    return mine_ != ended;
}

std::int64_t Feed::global_samples() {
    const Stopwatch sync{sync_seconds_};
    comm_.wait(ticket_);
    waiting_ = false;
    std::int64_t sum = 0;
    int ends = 0;
    int first_end = 0;
    for (int rank = comm_.size() - 1; rank >= 0; --rank) {
        std::int64_t samples = mine_;
        if (rank != comm_.rank()) std::memcpy(&samples, theirs_[static_cast<std::size_t>(rank)].data(), sizeof samples);
        failed_ = failed_ || samples == unreadable;
        if (samples == ended) {
            ++ends;
            first_end = rank;
        }
        sum += samples > 0 ? samples : 0;
    }
    if (!failed_ && ends != 0 && ends != comm_.size())
        throw sw::BadInput{"the data of rank " + std::to_string(first_end) +
                           " has ended, and that of other ranks has not: give all ranks the same files"};
    return sum;
}

void Feed::fail() {
    sw::agree_on_input(comm_, wrong_);
    throw sw::Error{"ranks disagree about a failure to read data", 3};
}

sw::TrafficMatrix Feed::predict(const sw::Topology& topology) {
    sw::TrafficMatrix moved{topology};
    for (int from = 0; from < topology.ranks(); ++from)
        for (int to = 0; to < topology.ranks(); ++to)
            if (from != to) moved.at(from, to) = {.payload = 0, .control = sizeof mine_, .messages = 1};
    return moved;
}

}  // namespace train_dlrm
