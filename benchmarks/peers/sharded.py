# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The step of bench_sharded_step by TorchRec: a ShardedEmbeddingBagCollection over processes that speak gloo.

Row-wise Adagrad is fused into the backward pass, and gradients are summed over ranks, as the library's are, not averaged.
"""

import os
import signal
import statistics
import tempfile
import time

import torch
import torch.distributed

from tables import EPSILON, GRADIENT, RATE, fill, make_ids

BATCHES = 4  # that ranks step through in turn, as in bench_sharded_step


def shard(of, rank):
    """The tables, this rank's part of them. The plan is given, not sought."""
    import torchrec
    from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
    from torchrec.distributed.sharding_plan import construct_module_sharding_plan, row_wise, table_wise
    from torchrec.distributed.types import ShardingEnv
    from torchrec.optim.apply_optimizer_in_backward import apply_optimizer_in_backward
    from torchrec.optim.rowwise_adagrad import RowWiseAdagrad

    device = torch.device("cpu")
    names = [f"t{t}" for t in range(of.tables)]
    tables = torchrec.EmbeddingBagCollection(
        [torchrec.EmbeddingBagConfig(name=name, embedding_dim=of.dim, num_embeddings=of.rows, feature_names=[f"f{name}"])
         for name in names], device=torch.device("meta"))
    apply_optimizer_in_backward(RowWiseAdagrad, tables.parameters(), {"lr": RATE, "eps": EPSILON})
    sharder = EmbeddingBagCollectionSharder()
    plan = construct_module_sharding_plan(
        tables, {name: row_wise() if of.sharding == "row" else table_wise(rank=t % of.ranks) for t, name in enumerate(names)},
        sharder=sharder, local_size=of.ranks, world_size=of.ranks, device_type="cpu")
    if {part.compute_kernel for part in plan.values()} != {"fused"}:
        raise RuntimeError("TorchRec's plan does not fuse the update into the backward pass")
    sharded = sharder.shard(tables, plan, ShardingEnv.from_process_group(torch.distributed.group.WORLD), device)
    with torch.no_grad():
        for weights in sharded.state_dict().values():
            for part in weights.local_shards():
                fill(part.tensor)
    batches = []
    for i in range(BATCHES):
        ids = make_ids(of.tables * of.samples * of.bag, of.rows, of.zipf, seed=1 + rank * BATCHES + i)
        batches.append(torchrec.KeyedJaggedTensor(
            keys=[f"f{name}" for name in names], values=torch.from_numpy(ids),
            lengths=torch.full((of.tables * of.samples,), of.bag, dtype=torch.int32)))
    return sharded, batches


def slowest(milliseconds):
    """(step): of all ranks."""
    times = torch.tensor(milliseconds)
    torch.distributed.all_reduce(times, torch.distributed.ReduceOp.MAX)
    return times.tolist()


def run_rank(of, rank, quick, store):
    """Milliseconds of each step, of the slowest rank: as many as take some seconds, behind some that do not count."""
    from torchrec.distributed.comm_ops import set_gradient_division

    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=of.ranks)
    set_gradient_division(False)
    sharded, batches = shard(of, rank)
    gradient = torch.full((of.samples, of.tables * of.dim), GRADIENT)

    def steps(count):
        times = []
        for i in range(count):
            torch.distributed.barrier()
            begin = time.perf_counter()
            sharded(batches[i % BATCHES]).values().backward(gradient)
            times.append(1e3 * (time.perf_counter() - begin))
        return slowest(times)

    first = steps(BATCHES)
    times = steps(5 if quick else max(10, min(40, int(8000 / first[-1]))))
    torch.distributed.destroy_process_group()
    return times


def step(of, quick, forked, answer_of):
    """Milliseconds of the median step. A process a rank, forked; when one fails, the others are ended."""
    with tempfile.TemporaryDirectory() as folder:
        store = os.path.join(folder, "store")
        ranks = dict(forked(lambda rank=rank: run_rank(of, rank, quick, store)) for rank in range(of.ranks))
        times, error = None, None
        waiting = list(ranks)
        while waiting:
            # the one that ends first, so that what failed is heard of before those who wait for it
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT).si_pid
            waiting.remove(ended)
            answer = answer_of(ended, ranks[ended])
            times = answer.get("made")
            if "error" in answer and error is None:
                error = answer["error"]
                for rank in waiting:
                    os.kill(rank, signal.SIGKILL)
    if error:
        raise RuntimeError(error)
    return statistics.median(times)


def works(of, missing, quick, forked, answer_of):
    if "TorchRec" in missing:
        return []
    return [("TorchRec", lambda: {"TorchRec": {"sharded": step(of, quick, forked, answer_of)}})]
