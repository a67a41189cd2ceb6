# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A model of train_dlrm in PyTorch, and back: logits within 1e-5 of infer_dlrm's.

Makes a virtual environment of pinned versions in the build folder, once: 2 GB to fetch, since PyTorch's wheels on the Python
package index are made for CUDA.
"""

import math
import os
import random
import struct
import subprocess
import sys

from programs import PROGRAM, main, run

PINS = ["torch==2.14.0", "numpy==2.4.6", "safetensors==0.8.0"]
SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/pytorch_dlrm/pytorch_dlrm.py")
VENV = os.environ.get("SHARDWISE_PYTORCH", os.path.join(os.path.dirname(PROGRAM), "../pytorch"))
ROWS, SAMPLES = 60, 400

# Ten steps of PyTorch's own, behind which the model is written in the type of the last argument.
TRAIN = """
import sys, numpy, torch
sys.path.insert(0, sys.argv[1])
from pytorch_dlrm import Dlrm
from safetensors.torch import load_file, save_file
model = Dlrm(load_file("model.safetensors"))
dense, sparse, labels = (torch.from_numpy(numpy.load(f"day_0_{kind}.npy")) for kind in ("dense", "sparse", "labels"))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(10):
    optimizer.zero_grad()
    torch.nn.functional.binary_cross_entropy_with_logits(model(dense, sparse.long()), labels[:, 0].float()).backward()
    optimizer.step()
made = {name: value.to(getattr(torch, sys.argv[2])) for name, value in model.tensors().items()}
made["noise"] = torch.zeros(3, dtype=torch.int8)
save_file(made, "trained.safetensors", {"format": "pt"})
save_file({name: value.float() for name, value in made.items()}, "widened.safetensors")
"""


def python():
    """Of the virtual environment."""
    path = os.path.join(VENV, "bin/python")
    stamp = os.path.join(VENV, "pins.txt")
    if not os.path.exists(stamp) or open(stamp, encoding="utf-8").read() != "\n".join(PINS):
        subprocess.run([sys.executable, "-m", "venv", "--clear", VENV], check=True)
        subprocess.run([path, "-m", "pip", "install", "-q", *PINS], check=True)
        with open(stamp, "w", encoding="utf-8") as file:
            file.write("\n".join(PINS))
    return path


def write_npy(name, dtype, columns, values):
    rows = len(values) // columns
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({rows}, {columns}), }}"
    header += " " * (117 - len(header)) + "\n"
    with open(name, "wb") as file:
        file.write(b"\x93NUMPY\x01\0" + struct.pack("<H", len(header)) + header.encode())
        file.write(struct.pack(f"<{len(values)}{dtype[1]}", *values))


def write_day():
    dice = random.Random(7)
    labels = [dice.randrange(2) for _ in range(SAMPLES)]
    write_npy("day_0_labels.npy", "<i4", 1, labels)
    write_npy("day_0_dense.npy", "<f4", 13, [0.5 * label * (f == 0) + dice.random() for label in labels for f in range(13)])
    write_npy("day_0_sparse.npy", "<i4", 26, [dice.randrange(-(1 << 30), 1 << 30) for _ in range(26 * SAMPLES)])


DATA = ["--data", "day_0_dense.npy", "day_0_sparse.npy", "day_0_labels.npy"]
SHAPE = ["--rows", ROWS, "--dim", 8, "--bottom", "32-16-8", "--top", "40-20-1"]


def here(model):
    """The library's logits, of probabilities: where these are near 1 they have no digits left for it."""
    run("--load", model, *DATA, "--ranks", 2, "--batch", 50, "--runs", 1, "--out", "out.txt")
    with open("out.txt", encoding="ascii") as file:
        probabilities = [float(line.split()[1]) for line in file]
    assert len(probabilities) == SAMPLES and 0 < min(probabilities) and max(probabilities) < 0.98
    return [math.log(p) - math.log1p(-p) for p in probabilities]


def there(model, *arguments):
    """PyTorch's."""
    done = subprocess.run([python(), SCRIPT, model, "day_0_dense.npy", "day_0_sparse.npy", *arguments], text=True,
                          stdout=subprocess.PIPE, check=True)
    return [float(line) for line in done.stdout.split()]


def difference(a, b):
    assert len(a) == len(b) == SAMPLES
    return max(abs(x - y) for x, y in zip(a, b))


def both_ways():
    write_day()
    run(*DATA, *SHAPE, "--batch", 10, "--epochs", 2, "--learning-rate", 0.01, "--optimizer", "adam", "--save", "model.safetensors",
        program="train_dlrm")
    ours = here("model.safetensors")
    assert max(ours) - min(ours) > 1, "nothing was learnt"
    off = difference(ours, there("model.safetensors", "--write", "back.safetensors"))
    print(f"logits differ by {off:.2g}")
    assert off < 1e-5, off
    assert here("back.safetensors") == ours, "the same weights, with biases of other shapes"
    run(*DATA, *SHAPE, "--optimizer", "adam", "--load", "back.safetensors", "--steps", 3, program="train_dlrm",
        says=["back.safetensors has weights alone: moments, steps and samples begin anew"])
    for kind in ("float32", "float16", "bfloat16"):
        subprocess.run([python(), "-c", TRAIN, os.path.dirname(SCRIPT), kind], check=True)
        trained = here("trained.safetensors")
        assert difference(trained, ours) > 0.01, "PyTorch has learnt nothing"
        off = difference(trained, there("widened.safetensors"))
        print(f"{kind}: {off:.2g}")
        assert off < 1e-5, (kind, off)


main({"both_ways": both_ways})
