# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The model of train_dlrm in PyTorch, with its own tables or with FBGEMM's."""

import os
import statistics

import numpy
import torch

from tables import EPSILON, RATE, make_fbgemm, make_ids, timed
from turns import MODELS

DENSE, CATEGORIES = 13, 26


def write_clicks(folder, model, batches):
    """The files that train_dlrm and turn() both read, as TorchRec's preprocessing writes them."""
    os.makedirs(folder, exist_ok=True)
    for day, samples in enumerate((batches * model["batch"], 256)):  # the second is tested on, outside of the steps
        random = numpy.random.default_rng(day)
        ids = [make_ids(samples, model["rows"], True, seed=100 * day + f) for f in range(CATEGORIES)]
        numpy.save(f"{folder}/day_{day}_dense.npy", random.standard_normal((samples, DENSE), dtype=numpy.float32))
        numpy.save(f"{folder}/day_{day}_sparse.npy", numpy.stack(ids, 1).astype(numpy.int32))
        numpy.save(f"{folder}/day_{day}_labels.npy", random.integers(2, size=(samples, 1), dtype=numpy.int32))


def turn(of, folder, peer):
    """Milliseconds of a training step: the median of all batches in the files but the first.

    train_dlrm reports the mean of all, the first included: if that matters at all, it is to the peers' advantage.
    """
    torch.set_num_threads(of.threads)
    model = MODELS[of.model]
    rule = "adagrad" if peer == "PyTorch" else of.rule  # PyTorch has no row-wise one
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


def works(of, folder, missing):
    """(peer, what measures it) of a model."""
    return [(peer, lambda peer=peer: {peer: {"dlrm": turn(of, folder, peer)}}) for peer in ("PyTorch", "FBGEMM") if peer not in missing]
