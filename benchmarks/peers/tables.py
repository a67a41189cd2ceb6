# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the peers do with the shapes of bench_lookup and bench_update.

Tables are written before anything is measured: pages that nobody wrote are all one page of zeros, and too fast.
"""

import statistics
import time

import numpy
import torch

RATE, EPSILON, GRADIENT = 0.01, 1e-10, 1e-6


def make_ids(count, rows, zipf, seed):
    """As make_ids in benchmarks/support.hpp: uniform, or Zipf with exponent 1.05 and the hot rows spread."""
    random = numpy.random.default_rng(seed)
    if not zipf:
        return random.integers(rows, size=count)
    below = numpy.cumsum(numpy.arange(1, rows + 1, dtype=numpy.float64) ** -1.05)
    drawn = numpy.minimum(numpy.searchsorted(below, random.random(count) * below[-1], side="right"), rows - 1)
    return drawn * 0x9E3779B1 % rows


def timed(run, *given):
    begin = time.perf_counter()
    made = run(*given)
    return time.perf_counter() - begin, made


def milliseconds(run, seconds=0.5, least=2, most=50):
    """The median time of `run`, after a first one that does not count."""
    run()
    times = []
    while len(times) < least or (sum(times) < seconds and len(times) < most):
        times.append(timed(run)[0])
    return 1e3 * statistics.median(times)


def fill(table):
    table.copy_((torch.arange(1 << 20, dtype=torch.float32) % 1024 * 1e-3)[: table.shape[1]])


def make_fbgemm(tables, rows, dim, rule):
    from fbgemm_gpu.split_embedding_configs import EmbOptimType
    from fbgemm_gpu.split_table_batched_embeddings_ops_training import (
        ComputeDevice, EmbeddingLocation, SplitTableBatchedEmbeddingBagsCodegen)

    made = SplitTableBatchedEmbeddingBagsCodegen(
        [(rows, dim, EmbeddingLocation.HOST, ComputeDevice.CPU)] * tables,
        optimizer=EmbOptimType[rule], learning_rate=RATE, eps=EPSILON)
    for table in made.split_embedding_weights():
        fill(table)
    return made


def fbgemm_turn(shape, ids, offsets):
    """Split table-batched embeddings: all tables in one call, and a fused update in the backward pass."""
    made = make_fbgemm(shape.tables, shape.rows, shape.dim, "EXACT_ROWWISE_ADAGRAD")
    gradient = torch.full((shape.samples, shape.tables * shape.dim), GRADIENT)
    with torch.no_grad():
        forward = milliseconds(lambda: made(ids, offsets))
        checks, made.bounds_check_mode_int = made.bounds_check_mode_int, 3  # BoundsCheckMode.NONE
        lookup = milliseconds(lambda: made(ids, offsets))
        made.bounds_check_mode_int = checks
    updates = []

    def step():
        out = made(ids, offsets)
        updates.append(timed(out.backward, gradient)[0])

    return {"lookup": lookup, "forward": forward, "step": milliseconds(step), "update": 1e3 * statistics.median(updates[1:])}


def torch_turn(shape, ids, offsets, with_torchrec, with_step):
    """One EmbeddingBag a table; TorchRec's collection, over the same memory; and the sparse Adagrad."""
    tables = [torch.nn.Parameter(torch.empty(shape.rows, shape.dim), requires_grad=False) for _ in range(shape.tables)]
    for table in tables:
        fill(table)
    each = ids.split(shape.samples * shape.bag)
    first = offsets[: shape.samples + 1]
    lookup = torch.nn.functional.embedding_bag

    def look_up():
        return [lookup(i, t, first, mode="sum", include_last_offset=True) for i, t in zip(each, tables)]

    result = {}
    with torch.no_grad():
        result["PyTorch"] = {"lookup": milliseconds(look_up), "forward": milliseconds(lambda: torch.cat(look_up(), 1))}
        if with_torchrec:
            import torchrec

            names = [f"f{t}" for t in range(shape.tables)]
            collection = torchrec.EmbeddingBagCollection(
                [torchrec.EmbeddingBagConfig(name=name, embedding_dim=shape.dim, num_embeddings=1, feature_names=[name])
                 for name in names])
            for name, table in zip(names, tables):
                collection.embedding_bags[name].weight = table
            batch = torchrec.KeyedJaggedTensor(keys=names, values=ids, offsets=offsets)
            result["TorchRec"] = {"forward": milliseconds(lambda: collection(batch).values())}
    if with_step:
        gradient = torch.full((shape.samples, shape.dim), GRADIENT)
        for table in tables:
            table.requires_grad_()
        rules = [torch.optim.Adagrad([table], lr=RATE, eps=EPSILON) for table in tables]

        def step():  # table after table, so that the gradients of one are held at a time
            for i, table, rule in zip(each, tables, rules):
                lookup(i, table, first, mode="sum", include_last_offset=True, sparse=True).backward(gradient)
                rule.step()
                table.grad = None

        result["PyTorch"]["step"] = milliseconds(step)
    return result


def works(shape, missing, limit):
    """(peer, what measures it and others over the same memory) of a shape, single thread.

    `missing` are peers that are not there. Only PyTorch's Adagrad may need more than `limit` bytes.
    """
    torch.set_num_threads(1)
    ids = torch.from_numpy(make_ids(shape.tables * shape.samples * shape.bag, shape.rows, shape.zipf, seed=1))
    offsets = torch.arange(0, shape.tables * shape.samples * shape.bag + 1, shape.bag)
    tables = 4 * shape.tables * shape.rows * shape.dim
    step = 2 * tables + 5 * shape.samples * shape.bag * (4 * shape.dim + 8)  # moments are as large as tables, a gradient has a row an id

    def with_torch():
        result = torch_turn(shape, ids, offsets, "TorchRec" not in missing, step <= limit)
        if step > limit:
            result["PyTorch"]["step"] = f"needs {step / 1e9:.1f} GB"
        return result

    with_fbgemm = [] if "FBGEMM" in missing else [("FBGEMM", lambda: {"FBGEMM": fbgemm_turn(shape, ids, offsets)})]
    return [*with_fbgemm, ("PyTorch", with_torch)]
