// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "modules.hpp"

#include <algorithm>
#include <span>

#include "shardwise/comm/collectives.hpp"

namespace train_dlrm {

namespace {

sw::DensePrecision precision_of(const AnyModule::Config& config) {
    return std::visit([](const auto& of) { return of.precision; }, config.of);
}
sw::ParameterSet& parameters_of(const sw::LayerBase& embedding) {
    return static_cast<AnyModule*>(embedding.towers().module.get())->parameters();
}

}  // namespace

Modules::Modules(const AnyModule::Config& config, const std::string& optimizer, sw::LayerBase& embedding,
                 sw::CommunicatorRef comm, sw::MemoryAccount& memory)
    : config_{config},
      embedding_{&embedding},
      comm_{comm},
      wide_{precision_of(config) == sw::DensePrecision::wide},
      learner_{parameters_of(embedding), optimizer, precision_of(config), comm, embedding.topology(), memory} {}

std::size_t Modules::mine() const {
    return static_cast<std::size_t>(embedding_->topology().tower_of(comm_.rank()));
}

sw::TrafficMatrix Modules::predict_reduction() const {
    const sw::Topology& topology = embedding_->topology();
    const auto elements = [&](int rank) {
        const auto tower = static_cast<std::size_t>(topology.tower_of(rank));
        return AnyModule::span_elements(config_, embedding_->towers().shapes[tower]);
    };
    return wide_ ? sw::predict_group_all_reduce<double, sw::OneTower>(topology, elements)
                 : sw::predict_group_all_reduce<float, sw::OneTower>(topology, elements);
}

void Modules::make_copies() {
    for (const sw::TowerShape& shape : embedding_->towers().shapes) {
        if (copies_.size() == embedding_->towers().shapes.size()) return;
        Copy& copy = copies_.emplace_back();
        copy.module = std::make_unique<AnyModule>(config_, shape, 0, copied_);
        copy.state.resize(learner_.rule().moments() * copy.module->parameters().values().size());
    }
}

void Modules::add_size(std::int64_t& flops, std::int64_t& parameters) const {
    for (const sw::TowerShape& shape : embedding_->towers().shapes) {
        flops += AnyModule::flops(config_, shape);
        parameters += AnyModule::parameter_count(config_, shape);
    }
}

void Modules::append_tensors(sw::Checkpoint& all) {
    make_copies();
    for (Copy& copy : copies_)
        train_dlrm::append_tensors(all, copy.module->parameters(), copy.state, learner_.rule().moments());
}

void Modules::gather() {
    make_copies();
    std::ranges::copy(learner_.parameters().values(), copies_[mine()].module->parameters().values().begin());
    std::ranges::copy(learner_.rule().state(), copies_[mine()].state.begin());
    for (std::size_t t = 0; t < copies_.size(); ++t) {
        const int first = static_cast<int>(t) * embedding_->topology().ranks_per_tower();
        sw::broadcast(comm_, first, copies_[t].module->parameters().values());
        sw::broadcast(comm_, first, std::span<float>{copies_[t].state});
    }
}

void Modules::scatter() {
    std::ranges::copy(copies_[mine()].module->parameters().values(), learner_.parameters().values().begin());
    std::ranges::copy(copies_[mine()].state, learner_.rule().state().begin());
}

}  // namespace train_dlrm
