#!/usr/bin/env python3
# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads a DLRM that train_dlrm has saved into PyTorch, prints the logit of each sample, and writes the weights back.

Needs torch, numpy and safetensors. docs/pytorch.md says what the tensors are. Samples are numpy files as train_dlrm reads
them: dense float32 (samples, 13), sparse int32 (samples, 26).
"""

import argparse
import itertools

import numpy
import torch
from safetensors.torch import load_file, save_file


class Dlrm(torch.nn.Module):
    def __init__(self, tensors):
        super().__init__()
        tables = sorted((key.split("/")[1] for key in tensors if key.startswith("tables/") and key.endswith("/weight")),
                        key=lambda name: int(name[1:]))  # C1 to C26
        self.tables = torch.nn.ModuleDict({name: torch.nn.EmbeddingBag.from_pretrained(
            tensors[f"tables/{name}/weight"], mode="sum", freeze=False) for name in tables})
        self.bottom, self.top = self.linears("bottom", tensors), self.linears("top", tensors)

    @staticmethod
    def linears(mlp, tensors):
        layers = torch.nn.ModuleList()
        for i in itertools.takewhile(lambda i: f"{mlp}.{i}.weight" in tensors, itertools.count()):
            weight = tensors[f"{mlp}.{i}.weight"]  # (outputs, inputs)
            layers.append(torch.nn.Linear(weight.shape[1], weight.shape[0]))
            layers[-1].load_state_dict({"weight": weight, "bias": tensors[f"{mlp}.{i}.bias"].flatten()})
        return layers

    def forward(self, dense, ids):
        for layer in self.bottom:
            dense = layer(dense).relu()
        bags = [table(ids[:, [f]] % table.num_embeddings) for f, table in enumerate(self.tables.values())]
        vectors = torch.stack([dense, *bags], dim=1)  # (samples, 27, dim)
        i, j = torch.tril_indices(vectors.shape[1], vectors.shape[1], offset=-1)
        x = torch.cat([dense, (vectors @ vectors.mT)[:, i, j]], dim=1)
        for layer in self.top[:-1]:
            x = layer(x).relu()
        return self.top[-1](x).squeeze(1)

    def tensors(self):
        """The weights alone, under the names that shardwise reads."""
        made = {f"tables/{name}/weight": table.weight for name, table in self.tables.items()}
        for mlp, layers in (("bottom", self.bottom), ("top", self.top)):
            made |= {f"{mlp}.{i}.{key}": value for i, layer in enumerate(layers) for key, value in layer.named_parameters()}
        return {name: value.detach().contiguous() for name, value in made.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="what train_dlrm --save has written: one file")
    parser.add_argument("dense", help="numpy file")
    parser.add_argument("sparse", help="numpy file")
    parser.add_argument("--write", metavar="FILE", help="write the model's weights there")
    given = parser.parse_args()
    model = Dlrm(load_file(given.model))
    with torch.no_grad():
        logits = model(torch.from_numpy(numpy.load(given.dense)), torch.from_numpy(numpy.load(given.sparse)).long())
    print(*(f"{logit:.9g}" for logit in logits.tolist()), sep="\n")
    if given.write:
        save_file(model.tensors(), given.write)


if __name__ == "__main__":
    main()
