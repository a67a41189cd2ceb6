// Copyright (c) 2026 The shardwise authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "feed.hpp"

namespace train_dlrm {

Feed::Feed(sw::CommunicatorRef comm, Loader& loader, const Options& o, const sw::LayerBase& layer) {
    const BatchShape shape = batch_shape(o);
    if (o.hot_batches)
        hot_.emplace(
            comm, loader, sw::HotRows{layer},
            sw::HotBatchesOptions{.batch = o.batch,
                                  .hot_batch = o.hot_batch == 0 ? o.batch : o.hot_batch,
                                  .order = o.hot_order == "first" ? sw::HotOrder::first : sw::HotOrder::spread},
            shape.dense, shape.features);
    else
        all_.emplace(comm, loader, shape.dense, shape.features);
}

}  // namespace train_dlrm
