// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "saving.hpp"

#include <csignal>
#include <utility>

#include "shardwise/checkpoint/layer_checkpoint.hpp"
#include "stop_signal.hpp"

namespace train_dlrm {

std::uint8_t Notes::of_signal() noexcept {
    return stop_signal() == SIGTERM ? terminated : stop_signal() == SIGINT ? interrupted : 0;
}
int Notes::signal(std::uint8_t notes) noexcept {
    if ((notes & terminated) != 0) return SIGTERM;
    return (notes & interrupted) != 0 ? SIGINT : 0;
}

Saving::Saving(const Options& options, sw::CommunicatorRef comm, Make make)
    : o_{&options}, comm_{comm}, make_{std::move(make)} {
    if (o_->save_is_folder) folder_.emplace(comm_, o_->save, o_->keep);
}

std::uint8_t Saving::notes() const {
    unsigned bits = Notes::of_signal();
    const bool by_time = o_->save_every && o_->save_every->seconds > 0;
    if (by_time && comm_.rank() == 0 && seconds_since(last_) >= o_->save_every->seconds) bits |= Notes::save;
    if (folder_ && !folder_->written()) bits |= Notes::writing;
    return static_cast<std::uint8_t>(bits);
}

void Saving::begin(std::int64_t steps) {
    if (!folder_) return;
    first_ = steps;
    folder_->require_newest(steps);
    if (folder_->newest() == steps) saved_ = steps;  // it is there
    last_ = Clock::now();
}

void Saving::start(std::int64_t steps) {
    static_cast<void>(folder_->start(make_()));
    saved_ = steps;
    heard_ = 0;
    last_ = Clock::now();
}

void Saving::between_steps(std::int64_t steps, std::uint8_t heard, bool measured) {
    if (!o_->save_every) return;
    // What was noted before the checkpoint was begun says nothing of it: a batch is announced a step ahead.
    ++heard_;
    if (folder_->under_way() && heard_ > 1 && (heard & Notes::writing) == 0) folder_->finish();
    const bool by_steps = o_->save_every->steps > 0 && steps % o_->save_every->steps == 0;
    const bool by_time = (heard & Notes::save) != 0 && heard_ > 1 && !measured;
    if (steps != saved_ && steps != first_ && (by_steps || by_time)) start(steps);
}

void Saving::end(std::int64_t steps) {
    if (o_->save.empty()) return;
    if (!folder_) return sw::save_checkpoint(comm_, o_->save, make_());
    folder_->finish();
    if (steps != saved_) folder_->save(make_());
    saved_ = steps;
}

}  // namespace train_dlrm
