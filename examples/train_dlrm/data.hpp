// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <memory>

#include "options.hpp"
#include "shardwise/data/batch.hpp"
#include "shardwise/data/global_batches.hpp"
#include "shardwise/data/loader.hpp"
#include "shardwise/data/slice.hpp"

/// \file
/// Where batches come from: click logs, CSV files, numpy files, histories or a generator.

namespace train_dlrm {

/// A source of batches whose type is forgotten. Satisfies shardwise::BatchSource.
class Source {
  public:
    template <class S>
    explicit Source(std::unique_ptr<S> source) : model_{std::make_unique<Model<S>>(std::move(source))} {}
    bool next(sw::ClickBatch& batch) { return model_->next(batch); }
    void rewind() { model_->rewind(); }

  private:
    struct Concept {
        virtual ~Concept() = default;
        virtual bool next(sw::ClickBatch& batch) = 0;
        virtual void rewind() = 0;
    };
    template <class S>
    struct Model final : Concept {
        explicit Model(std::unique_ptr<S> s) : source{std::move(s)} {}
        bool next(sw::ClickBatch& batch) override { return source->next(batch); }
        void rewind() override { source->rewind(); }
        std::unique_ptr<S> source;
    };
    std::unique_ptr<Concept> model_;
};

using Loader = sw::PrefetchingLoader<Source>;
using Batches = sw::GlobalBatches<Loader>;

/// This rank's part of the training data, read in the background. \throws BadInput
[[nodiscard]] std::unique_ptr<Loader> training_data(const Options& options, int rank, int ranks);
/// The same of the test data; null where there is none.
[[nodiscard]] std::unique_ptr<Loader> test_data(const Options& options, int rank, int ranks);

/// Samples of an epoch: exact for generated data, histories and numpy files, an estimate for plain click logs and CSV
/// files, 0 where there is no telling.
[[nodiscard]] double estimate_samples(const Options& options);

}  // namespace train_dlrm
