# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the peers of shardwise do with the shapes of bench_lookup, bench_update and train_dlrm. compare.py uses it.

Tables are written before anything is measured: pages that nobody wrote are all one page of zeros, and too fast.
"""

import importlib
import logging
import os
import statistics
import time
import warnings

import numpy

TABLES, SAMPLES = 8, 8192  # as Shape in benchmarks/support.hpp
DENSE, CATEGORIES = 13, 26
RATE, EPSILON, GRADIENT = 0.01, 1e-10, 1e-6
MODULES = {"PyTorch": "torch", "FBGEMM": "fbgemm_gpu.split_table_batched_embeddings_ops_training", "TorchRec": "torchrec"}


def load():
    """Imports what is there. Returns, by peer, the sentence of the error where one is not."""
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    missing = {}
    for peer, module in MODULES.items():
        try:
            importlib.import_module(module)
        except Exception as error:  # an ImportError, or whatever a library throws that does not fit
            missing[peer] = f"{module} cannot be imported: {' '.join(str(error).split()) or type(error).__name__}"
    return missing


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
    import torch

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


def fbgemm_turn(shape, rows, ids, offsets):
    """Split table-batched embeddings: all tables in one call, and a fused update in the backward pass."""
    import torch

    made = make_fbgemm(TABLES, rows, shape[1], "EXACT_ROWWISE_ADAGRAD")
    gradient = torch.full((SAMPLES, TABLES * shape[1]), GRADIENT)
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


def torch_turn(shape, rows, ids, offsets, with_torchrec, with_step):
    """One EmbeddingBag a table; TorchRec's collection, over the same memory; and the sparse Adagrad."""
    import torch

    _, dim, bag, _ = shape
    tables = [torch.nn.Parameter(torch.empty(rows, dim), requires_grad=False) for _ in range(TABLES)]
    for table in tables:
        fill(table)
    each = ids.split(SAMPLES * bag)
    first = offsets[: SAMPLES + 1]
    lookup = torch.nn.functional.embedding_bag

    def look_up():
        return [lookup(i, t, first, mode="sum", include_last_offset=True) for i, t in zip(each, tables)]

    result = {}
    with torch.no_grad():
        result["PyTorch"] = {"lookup": milliseconds(look_up), "forward": milliseconds(lambda: torch.cat(look_up(), 1))}
        if with_torchrec:
            import torchrec

            names = [f"f{t}" for t in range(TABLES)]
            collection = torchrec.EmbeddingBagCollection(
                [torchrec.EmbeddingBagConfig(name=name, embedding_dim=dim, num_embeddings=1, feature_names=[name])
                 for name in names])
            for name, table in zip(names, tables):
                collection.embedding_bags[name].weight = table
            batch = torchrec.KeyedJaggedTensor(keys=names, values=ids, offsets=offsets)
            result["TorchRec"] = {"forward": milliseconds(lambda: collection(batch).values())}
    if with_step:
        gradient = torch.full((SAMPLES, dim), GRADIENT)
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


def turn(shape, rows, missing, limit):
    """Milliseconds by peer and measure, single thread, or a text that says why not.

    `missing` are peers that are not there. Only PyTorch's Adagrad may need more than `limit` bytes.
    """
    import torch

    torch.set_num_threads(1)
    _, dim, bag, zipf = shape
    ids = torch.from_numpy(make_ids(TABLES * SAMPLES * bag, rows, zipf, seed=1))
    offsets = torch.arange(0, TABLES * SAMPLES * bag + 1, bag)
    tables = 4 * TABLES * rows * dim
    step = 2 * tables + 5 * SAMPLES * bag * (4 * dim + 8)  # moments are as large as tables, a gradient has a row an id
    result = {}
    if "FBGEMM" not in missing:
        result["FBGEMM"] = fbgemm_turn(shape, rows, ids, offsets)
    result |= torch_turn(shape, rows, ids, offsets, "TorchRec" not in missing, step <= limit)
    if step > limit:
        result["PyTorch"]["step"] = f"needs {step / 1e9:.1f} GB"
    return result


def write_clicks(folder, model, batches):
    """The files that train_dlrm and dlrm_turn both read, as TorchRec's preprocessing writes them."""
    os.makedirs(folder, exist_ok=True)
    for day, samples in enumerate((batches * model["batch"], 256)):  # the second is tested on, outside of the steps
        random = numpy.random.default_rng(day)
        ids = [make_ids(samples, model["rows"], True, seed=100 * day + f) for f in range(CATEGORIES)]
        numpy.save(f"{folder}/day_{day}_dense.npy", random.standard_normal((samples, DENSE), dtype=numpy.float32))
        numpy.save(f"{folder}/day_{day}_sparse.npy", numpy.stack(ids, 1).astype(numpy.int32))
        numpy.save(f"{folder}/day_{day}_labels.npy", random.integers(2, size=(samples, 1), dtype=numpy.int32))


def dlrm_turn(folder, model, rule, threads, peer):
    """Milliseconds of a training step: the median of all batches in the files but the first.

    train_dlrm reports the mean of all, the first included: if that matters at all, it is to the peers' advantage.
    """
    import torch

    torch.set_num_threads(threads)
    rows, dim, batch = model["rows"], model["dim"], model["batch"]
    day = [torch.from_numpy(numpy.load(f"{folder}/day_0_{kind}.npy")) for kind in ("dense", "sparse", "labels")]
    batches = [(dense, sparse.long().t().contiguous(), labels.float().reshape(-1))
               for dense, sparse, labels in zip(*(part.split(batch) for part in day))]

    def mlp(widths, last):
        layers = []
        for inputs, outputs in zip(widths, widths[1:]):
            layers += [torch.nn.Linear(inputs, outputs), torch.nn.ReLU()]
        return torch.nn.Sequential(*(layers if last else layers[:-1]))

    vectors = CATEGORIES + 1
    bottom = mlp([DENSE] + model["bottom"], last=True)
    top = mlp([dim + vectors * (vectors - 1) // 2] + model["top"], last=False)
    below = torch.tril_indices(vectors, vectors, -1)
    dense_rule = torch.optim.Adagrad([*bottom.parameters(), *top.parameters()], lr=RATE, eps=EPSILON, fused=True)
    rules = [dense_rule]
    if peer == "FBGEMM":
        tables = make_fbgemm(CATEGORIES, rows, dim, {"adagrad": "EXACT_ADAGRAD",
                                                     "rowwise_adagrad": "EXACT_ROWWISE_ADAGRAD"}[rule])
        for table in tables.split_embedding_weights():
            table.uniform_(-0.01, 0.01)
        offsets = torch.arange(CATEGORIES * batch + 1)
        embed = lambda ids: tables(ids.reshape(-1), offsets).reshape(batch, CATEGORIES, dim)
    else:
        bags = torch.nn.ModuleList(torch.nn.EmbeddingBag(rows, dim, mode="sum", sparse=True) for _ in range(CATEGORIES))
        for bag in bags:
            torch.nn.init.uniform_(bag.weight, -0.01, 0.01)
        offsets = torch.arange(batch)
        embed = lambda ids: torch.stack([bag(i, offsets) for bag, i in zip(bags, ids)], 1)
        rules.append(torch.optim.Adagrad(bags.parameters(), lr=RATE, eps=EPSILON))

    loss_of = torch.nn.BCEWithLogitsLoss()

    def step(dense, ids, labels):
        for r in rules:
            r.zero_grad(set_to_none=True)
        x = bottom(dense)
        together = torch.cat([x.unsqueeze(1), embed(ids)], 1)
        dots = torch.bmm(together, together.transpose(1, 2))[:, below[0], below[1]]
        loss_of(top(torch.cat([x, dots], 1)).squeeze(1), labels).backward()
        for r in rules:
            r.step()

    return 1e3 * statistics.median([timed(step, *one)[0] for one in batches][1:])
