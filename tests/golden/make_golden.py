#!/usr/bin/env python3
# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes tests/golden/data/*.json: a small DLRM trained by PyTorch, and cross networks, tower modules and sequence models on one
batch.
README.md describes the fields.

Needs PyTorch 1.13 or newer, on the CPU: python3 make_golden.py [folder]

Everything is computed in double precision from inputs that single precision represents. The same run in single precision
has to agree; data on which it does not (a gradient that is nearly zero, which AdaGrad or Adam blow up) are drawn again.
"""
import json
import pathlib
import sys

import torch
from torch import nn

DENSE_FEATURES, DIMENSION, ROWS = 5, 8, [13, 40, 5]
BOTTOM, TOP = [16, DIMENSION], [16, 1]
STEPS, SAMPLES, SHORT_STEP, SHORT_SAMPLES = 10, 12, 5, 7
AGREEMENT = 3e-6  # between single and double precision, on weights and losses

RUNS = {  # name: (dense optimizer, sparse optimizer)
    "sgd": ({"name": "sgd", "learning_rate": 0.5}, {"name": "sgd", "learning_rate": 0.5}),
    "adagrad": (
        {"name": "adagrad", "learning_rate": 0.03, "epsilon": 1e-10},
        {"name": "adagrad", "learning_rate": 0.05, "epsilon": 1e-10},
    ),
    "adam": (
        {"name": "adam", "learning_rate": 0.01, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8},
        {"name": "adam", "learning_rate": 0.02, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8},
    ),
    "rowwise_adagrad": (
        {"name": "adagrad", "learning_rate": 0.03, "epsilon": 1e-10},
        {"name": "rowwise_adagrad", "learning_rate": 0.05, "epsilon": 1e-8},
    ),
    "rowwise_adagrad_mean": (
        {"name": "adagrad", "learning_rate": 0.03, "epsilon": 1e-10},
        {"name": "rowwise_adagrad_mean", "learning_rate": 0.05, "epsilon": 1e-8},
    ),
}


class Dlrm(nn.Module):
    """The reference DLRM: bottom MLP, embedding bags, pairwise dots, top MLP; returns logits."""

    def __init__(self, pooling, initial, dtype):
        super().__init__()

        def mlp(widths):
            return nn.ModuleList(nn.Linear(a, b, dtype=dtype) for a, b in zip(widths, widths[1:]))

        vectors = len(ROWS) + 1
        self.bottom = mlp([DENSE_FEATURES] + BOTTOM)
        self.top = mlp([DIMENSION + vectors * (vectors - 1) // 2] + TOP)
        self.tables = nn.ModuleList(
            nn.EmbeddingBag(rows, DIMENSION, mode=pooling, sparse=True, dtype=dtype) for rows in ROWS
        )
        with torch.no_grad():
            for name, parameter in self.dense_parameters():
                parameter.copy_(initial["dense"][name].reshape(parameter.shape))
            for table, weight in zip(self.tables, initial["tables"]):
                table.weight.copy_(weight)

    def dense_parameters(self):
        return [(n, p) for n, p in self.named_parameters() if not n.startswith("tables.")]

    def pool(self, batch):
        """Pooled embeddings, (samples, features * dimension)."""
        pooled, first, samples = [], 0, batch["samples"]
        for feature, table in enumerate(self.tables):
            lengths = batch["lengths"][feature * samples : (feature + 1) * samples]
            count = int(lengths.sum())
            values = batch["values"][first : first + count]
            offsets = torch.cumsum(lengths, 0) - lengths
            weights = None
            if "weights" in batch:
                weights = batch["weights"][first : first + count].to(table.weight.dtype)
            pooled.append(table(values, offsets, per_sample_weights=weights))
            first += count
        return torch.cat(pooled, 1)

    def logits(self, batch, pooled):
        x = batch["dense"].to(pooled.dtype)
        for layer in self.bottom:
            x = torch.relu(layer(x))
        vectors = torch.cat([x, pooled], 1).reshape(batch["samples"], len(ROWS) + 1, DIMENSION)
        dots = torch.bmm(vectors, vectors.transpose(1, 2))
        i = torch.tensor([i for i in range(len(ROWS) + 1) for j in range(i)])
        j = torch.tensor([j for i in range(len(ROWS) + 1) for j in range(i)])
        x = torch.cat([x, dots[:, i, j]], 1)
        for layer in self.top[:-1]:
            x = torch.relu(layer(x))
        return self.top[-1](x).squeeze(1)


class RowwiseAdagrad:
    """s += sum (or mean) of the squares of the row's gradient; w -= learning_rate * g / (sqrt(s) + epsilon)."""

    def __init__(self, parameters, learning_rate, epsilon, mean):
        self.parameters = list(parameters)
        self.moments = [torch.zeros(p.shape[0], dtype=p.dtype) for p in self.parameters]
        self.learning_rate, self.epsilon, self.mean = learning_rate, epsilon, mean

    @torch.no_grad()
    def step(self):
        for parameter, moment in zip(self.parameters, self.moments):
            gradient = parameter.grad.coalesce()
            rows, values = gradient.indices()[0], gradient.values()
            squares = values * values
            moment[rows] += squares.mean(1) if self.mean else squares.sum(1)
            parameter[rows] -= self.learning_rate * values / (moment[rows].sqrt() + self.epsilon).unsqueeze(1)

    def zero_grad(self):
        for parameter in self.parameters:
            parameter.grad = None


def make_optimizer(setting, parameters, sparse):
    name, rate = setting["name"], setting["learning_rate"]
    if name == "sgd":
        return torch.optim.SGD(parameters, lr=rate)
    if name == "adagrad":
        return torch.optim.Adagrad(parameters, lr=rate, eps=setting["epsilon"])
    if name == "adam":
        kind = torch.optim.SparseAdam if sparse else torch.optim.Adam
        return kind(list(parameters), lr=rate, betas=(setting["beta1"], setting["beta2"]), eps=setting["epsilon"])
    return RowwiseAdagrad(parameters, rate, setting["epsilon"], mean=name.endswith("mean"))


def make_data(seed, weighted):
    """Initial weights and batches; single precision represents every number."""
    generator = torch.Generator().manual_seed(seed)

    def uniform(*shape):
        return torch.rand(*shape, generator=generator) * 2 - 1

    vectors = len(ROWS) + 1
    initial = {"dense": {}, "tables": [uniform(rows, DIMENSION) * 0.5 for rows in ROWS]}
    interaction = DIMENSION + vectors * (vectors - 1) // 2
    for prefix, widths in (("bottom", [DENSE_FEATURES] + BOTTOM), ("top", [interaction] + TOP)):
        for layer, (inputs, outputs) in enumerate(zip(widths, widths[1:])):
            initial["dense"][f"{prefix}.{layer}.weight"] = uniform(outputs, inputs) * (6 / (inputs + outputs)) ** 0.5
            initial["dense"][f"{prefix}.{layer}.bias"] = uniform(outputs) * 0.25
    batches = []
    for step in range(STEPS):
        samples = SHORT_SAMPLES if step == SHORT_STEP else SAMPLES
        lengths = torch.randint(0, 5, (len(ROWS) * samples,), generator=generator)
        values = [torch.randint(0, ROWS[bag // samples], (int(n),), generator=generator) for bag, n in enumerate(lengths)]
        if step == 0:  # an empty bag, a bag of duplicates, a bag that says one id twice among others
            values[0], values[1] = torch.tensor([], dtype=torch.int64), torch.tensor([4, 4, 4])
            values[samples] = torch.tensor([7, 39, 7])
            lengths = torch.tensor([len(bag) for bag in values])
        batch = {
            "samples": samples,
            "dense": uniform(samples, DENSE_FEATURES),
            "labels": torch.randint(0, 2, (samples,), generator=generator).float(),
            "lengths": lengths,
            "values": torch.cat(values),
        }
        if weighted:
            batch["weights"] = uniform(int(lengths.sum())) + 1.25
        batches.append(batch)
    return initial, batches


def rows_of(gradient):
    gradient = gradient.coalesce()
    return {"rows": gradient.indices()[0], "values": gradient.values()}


def first_step(pooling, initial, batch, dtype):
    model = Dlrm(pooling, initial, dtype)
    pooled = model.pool(batch)
    pooled.retain_grad()
    logits = model.logits(batch, pooled)
    logits.retain_grad()
    loss = nn.functional.binary_cross_entropy_with_logits(logits, batch["labels"].to(dtype))
    loss.backward()
    return {
        "pooled": pooled,
        "logits": logits,
        "loss": loss.item(),
        "gradients": {
            "logits": logits.grad,
            "pooled": pooled.grad,
            "dense": {n: p.grad for n, p in model.dense_parameters()},
            "tables": [rows_of(table.weight.grad) for table in model.tables],
        },
    }


def train(pooling, initial, batches, settings, dtype):
    model = Dlrm(pooling, initial, dtype)
    dense = make_optimizer(settings[0], [p for _, p in model.dense_parameters()], sparse=False)
    sparse = make_optimizer(settings[1], [t.weight for t in model.tables], sparse=True)
    losses = []
    for batch in batches:
        dense.zero_grad()
        sparse.zero_grad()
        logits = model.logits(batch, model.pool(batch))
        loss = nn.functional.binary_cross_entropy_with_logits(logits, batch["labels"].to(dtype))
        loss.backward()
        dense.step()
        sparse.step()
        losses.append(loss.item())
    return {
        "dense_optimizer": settings[0],
        "sparse_optimizer": settings[1],
        "losses": losses,
        "final": {
            "dense": {n: p for n, p in model.dense_parameters()},
            "tables": [table.weight for table in model.tables],
        },
    }


def numbers(run):
    final = run["final"]
    tensors = list(final["dense"].values()) + final["tables"]
    return torch.cat([t.detach().double().flatten() for t in tensors] + [torch.tensor(run["losses"]).double()])


def make_case(pooling, weighted):
    for seed in range(1, 1000):
        initial, batches = make_data(seed, weighted)
        runs, agree = {}, True
        for name, settings in RUNS.items():
            runs[name] = train(pooling, initial, batches, settings, torch.float64)
            single = train(pooling, initial, batches, settings, torch.float32)
            agree = agree and (numbers(runs[name]) - numbers(single)).abs().max().item() < AGREEMENT
        if agree:
            return {
                "format": 1,
                "torch": torch.__version__,
                "seed": seed,
                "pooling": pooling,
                "config": {
                    "dense_features": DENSE_FEATURES,
                    "dimension": DIMENSION,
                    "features": len(ROWS),
                    "bottom": BOTTOM,
                    "top": TOP,
                },
                "tables": [{"name": f"table_{i}", "rows": rows, "dimension": DIMENSION} for i, rows in enumerate(ROWS)],
                "initial": initial,
                "batches": batches,
                "first": first_step(pooling, initial, batches[0], torch.float64),
                "runs": runs,
            }
    raise SystemExit(f"no seed on which single and double precision agree to {AGREEMENT}")


class CrossNet(nn.Module):
    """DCN v2's cross layers: x[l+1] = x[0] * (W x[l] + b) + x[l]; with a rank W is a product of two."""

    def __init__(self, width, layers, rank):
        super().__init__()
        self.rank = rank
        if rank == 0:
            self.w = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        else:
            self.v = nn.ModuleList(nn.Linear(width, rank, bias=False) for _ in range(layers))
            self.u = nn.ModuleList(nn.Linear(rank, width) for _ in range(layers))

    def forward(self, first):
        x = first
        for layer in range(len(self.w if self.rank == 0 else self.u)):
            x = first * (self.w[layer](x) if self.rank == 0 else self.u[layer](self.v[layer](x))) + x
        return x

    def names(self, prefix):
        parts = {"w": self.w} if self.rank == 0 else {"u": self.u, "v": self.v}
        return {f"{prefix}{layer}.{part}.{name}": p for part, layers in parts.items()
                for layer, linear in enumerate(layers) for name, p in linear.named_parameters()}


class DotTower(nn.Module):
    """c vectors of each feature by maps of its own, then p of all features together, each of `dimension` elements."""

    def __init__(self, dims, per_feature, per_tower, dimension):
        super().__init__()
        self.dims = dims
        self.feature = nn.ModuleList(nn.Linear(n, per_feature * dimension) for n in dims if per_feature)
        self.all = nn.Linear(sum(dims), per_tower * dimension) if per_tower else None

    def forward(self, x):
        out = [linear(part) for linear, part in zip(self.feature, x.split(self.dims, 1))]
        return torch.cat(out + ([self.all(x)] if self.all else []), 1)

    def names(self, prefix):
        named = {f"{prefix}feature.{f}.{n}": p for f, linear in enumerate(self.feature) for n, p in linear.named_parameters()}
        return named | ({f"{prefix}all.{n}": p for n, p in self.all.named_parameters()} if self.all else {})


class CrossTower(nn.Module):
    """A cross network over a tower's features, and a map to p vectors of `dimension` elements."""

    def __init__(self, dims, layers, rank, per_tower, dimension):
        super().__init__()
        self.net, self.all = CrossNet(sum(dims), layers, rank), nn.Linear(sum(dims), per_tower * dimension)

    def forward(self, x):
        return self.all(self.net(x))

    def names(self, prefix):
        return self.net.names(prefix + "cross.") | {f"{prefix}all.{n}": p for n, p in self.all.named_parameters()}


def one_batch(kind, module, prefix, width, config, generator):
    """Parameters and inputs that single precision represents, and what double precision makes of them."""

    def uniform(*shape):
        return (torch.rand(*shape, generator=generator) * 2 - 1).double()

    module = module.double()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(uniform(*parameter.shape) * 0.5)
    x = uniform(9, width).requires_grad_()
    out = module(x)
    gradient = uniform(*out.shape)
    out.backward(gradient)
    named = module.names(prefix)
    return {
        "kind": kind,
        "config": config,
        "parameters": dict(named),
        "input": x,
        "output": out,
        "gradient": gradient,
        "input_gradient": x.grad,
        "gradients": {name: p.grad for name, p in named.items()},
    }


def make_modules():
    generator = torch.Generator().manual_seed(5)
    cases = []
    for width, layers, rank in ((6, 1, 0), (10, 3, 0), (10, 3, 4), (12, 2, 1)):
        config = {"width": width, "layers": layers, "rank": rank}
        cases.append(one_batch("cross_net", CrossNet(**config), "cross.", width, config, generator))
    for dims, c, p, d in (([8, 8, 8], 1, 0, 4), ([8, 8], 0, 1, 8), ([8, 4, 6], 2, 3, 2)):
        config = {"dims": dims, "per_feature": c, "per_tower": p, "dimension": d}
        cases.append(one_batch("dot", DotTower(dims, c, p, d), "tower.0.", sum(dims), config, generator))
    for dims, layers, rank, p, d in (([8, 8, 8], 1, 0, 1, 8), ([8, 4, 6], 2, 3, 2, 4)):
        config = {"dims": dims, "layers": layers, "rank": rank, "per_tower": p, "dimension": d}
        cases.append(one_batch("cross", CrossTower(dims, layers, rank, p, d), "tower.0.", sum(dims), config, generator))
    return {"format": 1, "torch": torch.__version__, "cases": cases}


class Named:
    """Parameters under the library's names, drawn as they are asked for, in single precision's numbers."""

    def __init__(self, generator):
        self.generator, self.all = generator, {}

    def uniform(self, *shape):
        return (torch.rand(*shape, generator=self.generator) * 2 - 1).double()

    def __call__(self, name, *shape):
        if name not in self.all:
            self.all[name] = (self.uniform(*shape) * 0.5).requires_grad_()
        return self.all[name]

    def linear(self, name, outputs, inputs):
        return self(name + ".weight", outputs, inputs), self(name + ".bias", outputs)


def packed(p, name, width):
    """Weights and biases of query, key and value, one below the other, as torch.nn.MultiheadAttention has them."""
    parts = [p.linear(f"{name}.{part}", width, width) for part in ("query", "key", "value")]
    return torch.cat([w for w, _ in parts]), torch.cat([b for _, b in parts])


def causal_mask(questions, items):
    """True where a question must not look; the questions stand at the end of the items."""
    return torch.ones(questions, items, dtype=torch.bool).triu(items - questions + 1)


def attend(p, name, x, h, heads, causal):
    """One sample: x (questions, width) to h (items, width); without items torch would answer NaN."""
    width = x.shape[1]
    out_weight, out_bias = p.linear(name + ".out", width, width)
    weight, bias = packed(p, name, width)
    if len(h) == 0:
        return out_bias.expand(len(x), width)
    return nn.functional.multi_head_attention_forward(
        x.unsqueeze(1), h.unsqueeze(1), h.unsqueeze(1), width, heads, weight, bias, None, None, False, 0.0,
        out_weight, out_bias, attn_mask=causal_mask(len(x), len(h)) if causal else None, need_weights=False)[0].squeeze(1)


def encode(p, name, x, heads, hidden, causal):
    """One sample through torch.nn.TransformerEncoderLayer, normalization first."""
    width = x.shape[1]
    layer = nn.TransformerEncoderLayer(width, heads, hidden, dropout=0.0, norm_first=True).double()
    weight, bias = packed(p, name + ".attention", width)
    tensors = {"self_attn.in_proj_weight": weight, "self_attn.in_proj_bias": bias}
    for theirs, ours, shape in (("self_attn.out_proj", "attention.out", (width, width)), ("linear1", "up", (hidden, width)),
                                ("linear2", "down", (width, hidden))):
        tensors[theirs + ".weight"], tensors[theirs + ".bias"] = p.linear(f"{name}.{ours}", *shape)
    for norm in ("norm1", "norm2"):
        tensors[norm + ".weight"], tensors[norm + ".bias"] = p(f"{name}.{norm}.weight", width), p(f"{name}.{norm}.bias", width)
    if len(x) == 0:
        return x
    mask = causal_mask(len(x), len(x)) if causal else None
    return torch.func.functional_call(layer, tensors, (x.unsqueeze(1), mask)).squeeze(1)


def with_positions(p, h, longest):
    weight = p("history.positions.weight", longest, h.shape[1])
    return h + weight[:len(h)].flip(0)


def logits_of(p, h, c, config):
    """One sample of a sequence model: its history (items, D) and its candidates (candidates, D)."""
    d, pooling = config["dimension"], config["pooling"]
    if pooling == "attention":
        pooled = attend(p, "history.attention", c, with_positions(p, h, config["longest"]), config["heads"], False)
    else:
        x = h
        if pooling == "transformer":
            x = with_positions(p, h, config["longest"])
            for block in range(config["blocks"]):
                x = encode(p, f"history.{block}", x, config["heads"], config["hidden"], False)
            x = nn.functional.layer_norm(x, (d,), p("history.norm.weight", d), p("history.norm.bias", d))
        pooled = (x.mean(0) if len(x) else x.sum(0)).expand(len(c), d)
    x = torch.cat([pooled, c, pooled * c], 1)
    for layer, outputs in enumerate(config["top"]):
        x = nn.functional.linear(torch.relu(x) if layer else x, *p.linear(f"top.{layer}", outputs, x.shape[1]))
    return x


def jagged(kind, config, lengths, width, samples_of, generator):
    """A case of lists: inputs by name, each with its lengths; samples_of(p, lists of one sample) is its output."""
    p = Named(generator)
    inputs = {name: p.uniform(sum(sizes), width).requires_grad_() for name, sizes in lengths.items()}
    split = [inputs[name].split(sizes) for name, sizes in lengths.items()]
    out = torch.cat([samples_of(p, *lists) for lists in zip(*split)])
    gradient = p.uniform(*out.shape)
    out.backward(gradient)
    return {
        "kind": kind,
        "config": config,
        "parameters": p.all,
        "inputs": {name: {"lengths": sizes, "rows": inputs[name], "gradient": inputs[name].grad} for name, sizes in lengths.items()},
        "output": out,
        "gradient": gradient,
        "gradients": {name: v.grad for name, v in p.all.items()},
    }


def make_sequences():
    generator = torch.Generator().manual_seed(9)
    cases = []
    for width in (1, 7):
        def normal(p, x, width=width):
            return nn.functional.layer_norm(x, (width,), p("norm.weight", width), p("norm.bias", width))
        cases.append(jagged("layer_norm", {"width": width}, {"x": [5]}, width, normal, generator))
    for width, heads, causal in ((4, 1, False), (6, 3, False), (8, 2, True)):
        config = {"width": width, "heads": heads, "causal": causal}
        def answer(p, x, h, config=config):
            return attend(p, "attention", x, h, config["heads"], config["causal"])
        lists = {"x": [1, 2, 0, 3, 1], "h": [4, 2, 3, 0 if not causal else 5, 1]}
        cases.append(jagged("attention", config, lists, width, answer, generator))
    for width, heads, hidden, causal in ((4, 2, 5, False), (6, 1, 12, True)):
        config = {"width": width, "heads": heads, "hidden": hidden, "causal": causal}
        def encoded(p, x, config=config):
            return encode(p, "block", x, config["heads"], config["hidden"], config["causal"])
        cases.append(jagged("transformer_block", config, {"x": [3, 1, 0, 5]}, width, encoded, generator))
    for pooling in ("mean", "attention", "transformer"):
        config = {"pooling": pooling, "dimension": 6, "longest": 5, "heads": 2, "hidden": 8, "blocks": 2, "top": [7, 1]}
        def scores(p, h, c, config=config):
            return logits_of(p, h, c, config)
        lists = {"history": [5, 0, 1, 3], "candidates": [1, 2, 3, 1]}
        cases.append(jagged("sequence_model", config, lists, 6, scores, generator))
    return {"format": 1, "torch": torch.__version__, "cases": cases}


SETTINGS = {  # run: (optimizer, settings of tables 'a' and 'b', clipping by norm)
    "sgd_l2": ("sgd", {"learning_rate": 0.3, "l2": 0.1}, {"learning_rate": 0.05}, 0),
    "adagrad_l2": ("adagrad", {"learning_rate": 0.1, "l2": 0.3}, {"learning_rate": 0.2, "l2": 0.01}, 0),
    "adam_l2": ("adam", {"learning_rate": 0.02, "l2": 0.2}, {"learning_rate": 0.05, "beta1": 0.8, "beta2": 0.9}, 0),
    "adamw": ("adam", {"learning_rate": 0.02, "weight_decay": 0.5}, {"learning_rate": 0.05, "weight_decay": 0.1}, 0),
    "rms_prop_l2": ("rms_prop", {"learning_rate": 0.01, "l2": 0.2}, {"learning_rate": 0.02, "decay": 0.9}, 0),
    "clip_value": ("sgd", {"learning_rate": 0.3, "clip_value": 0.25}, {"learning_rate": 0.3, "clip_value": 1.5}, 0),
    "clip_norm": ("adagrad", {"learning_rate": 0.1}, {"learning_rate": 0.2, "l2": 0.1}, 2.5),
    "clip_both": ("sgd", {"learning_rate": 0.3, "clip_value": 0.5, "l2": 0.05}, {"learning_rate": 0.1}, 4.0),
}


def settings_run(kind, settings, clip_norm, case, dtype):
    """Trains both tables and a dense vector on gradients that are given, all rows touched in every step, so that PyTorch's
    optimizers of dense tensors, which alone have weight decay, do what lazy ones do."""
    tables = [nn.Parameter(t.to(dtype, copy=True)) for t in case["initial"]]
    dense = nn.Parameter(case["dense"].to(dtype, copy=True))
    groups = []
    for table, own in zip(tables, settings):
        group = {"params": [table], "lr": own["learning_rate"], "weight_decay": own.get("l2", own.get("weight_decay", 0.0))}
        if kind == "adam":
            group |= {"betas": (own.get("beta1", 0.9), own.get("beta2", 0.999)), "eps": 1e-8}
        if kind == "rms_prop":
            group |= {"alpha": own.get("decay", 0.99), "eps": 1e-8}
        if kind == "adagrad":
            group |= {"eps": 1e-10}
        groups.append(group)
    decoupled = any("weight_decay" in own for own in settings)
    of = {"sgd": torch.optim.SGD, "adagrad": torch.optim.Adagrad, "rms_prop": torch.optim.RMSprop,
          "adam": torch.optim.AdamW if decoupled else torch.optim.Adam}[kind]
    optimizers = [of(groups), torch.optim.SGD([dense], lr=0.1)]
    norms = []
    for step in case["steps"]:
        for table, ids, gradient in zip(tables, step["ids"], step["gradients"]):
            table.grad = torch.zeros_like(table).index_add(0, ids, gradient.to(dtype))
        dense.grad = step["dense"].to(dtype, copy=True)
        for table, own in zip(tables, settings):
            if "clip_value" in own:
                torch.nn.utils.clip_grad_value_([table], own["clip_value"])
        if clip_norm:
            norms.append(float(torch.nn.utils.clip_grad_norm_([*tables, dense], clip_norm)))
        for optimizer in optimizers:
            optimizer.step()
    return {"tables": [t.detach() for t in tables], "dense": dense.detach(), "norms": norms}


def make_settings():
    generator = torch.Generator().manual_seed(11)
    rows, dim, samples = [6, 3], 5, 16

    def normal(*shape):
        return torch.randn(*shape, generator=generator)

    case = {"initial": [normal(r, dim) for r in rows], "dense": normal(7), "steps": []}
    for _ in range(8):
        ids = [torch.cat([torch.arange(r), torch.randint(r, (samples - r,), generator=generator)]) for r in rows]
        ids = [i[torch.randperm(samples, generator=generator)] for i in ids]
        case["steps"].append({"ids": ids, "gradients": [normal(samples, dim) * 0.3 for _ in rows], "dense": normal(7)})
    runs = {}
    for name, (kind, a, b, clip_norm) in SETTINGS.items():
        wide = settings_run(kind, [a, b], clip_norm, case, torch.float64)
        single = settings_run(kind, [a, b], clip_norm, case, torch.float32)
        for one, other in zip([*wide["tables"], wide["dense"]], [*single["tables"], single["dense"]]):
            assert (one - other).abs().max() < AGREEMENT, name
        runs[name] = {"optimizer": kind, "a": a, "b": b, "clip_norm": clip_norm, "final": wide}
    return {"format": 1, "torch": torch.__version__, "rows": rows, "dim": dim, "samples": samples, **case, "runs": runs}


def text(value, indent=0):
    """JSON with a line for each key and each list of numbers; nine digits bring a single-precision number back."""
    pad = " " * (indent + 1)
    if isinstance(value, torch.Tensor):
        value = value.detach().flatten().tolist()
    if isinstance(value, dict):
        return "{\n" + ",\n".join(f'{pad}"{k}": {text(v, indent + 1)}' for k, v in value.items()) + "}"
    if isinstance(value, list):
        scalars = all(isinstance(v, (int, float)) for v in value)
        between, before = (",", "") if scalars else (",\n" + pad, "\n" + pad)
        return "[" + before + between.join(text(v, indent + 1) for v in value) + "]"
    if isinstance(value, float):
        return f"{value:.9g}"
    return json.dumps(value)


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "data")
    folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    for name, pooling, weighted in (("sum", "sum", False), ("mean", "mean", False), ("weighted", "sum", True)):
        case = make_case(pooling, weighted)
        path = folder / f"dlrm_{name}.json"
        path.write_text(text(case) + "\n")
        print(f"{path}: seed {case['seed']}, {path.stat().st_size} bytes,", end=" ")
        print({run: [round(r["losses"][0], 3), round(r["losses"][-1], 3)] for run, r in case["runs"].items()})
    for name, make in (("modules", make_modules), ("sequences", make_sequences), ("settings", make_settings)):
        path = folder / f"{name}.json"
        path.write_text(text(make()) + "\n")
        print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
