# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The releases of the peers: each in a virtual environment of its own, and measured by a process of it."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from typing import NamedTuple

HERE = os.path.dirname(os.path.abspath(__file__))
PEERS = ("PyTorch", "FBGEMM", "TorchRec")


class Release(NamedTuple):
    """Versions that fit each other, named by FBGEMM's."""

    fbgemm: str
    torch: str
    torchrec: str

    def version(self, peer):
        return {"PyTorch": self.torch, "FBGEMM": self.fbgemm, "TorchRec": self.torchrec}[peer]

    def text(self):
        return ", ".join(f"{peer} {self.version(peer)}" for peer in PEERS)

    def packages(self):
        """(peer, what pip is to install for it), one after the other.

        TorchRec names the CUDA build of FBGEMM as what it needs, so its needs are ours to name.
        """
        torch = f"torch=={self.torch}"
        return [("PyTorch", [torch, "numpy==2.2.6"]), ("FBGEMM", ["--no-deps", f"fbgemm-gpu-cpu=={self.fbgemm}"]),
                ("TorchRec", ["tensordict", "torchmetrics==1.0.3", "tqdm", "pyre-extensions", "iopath", torch]),
                ("TorchRec", ["--no-deps", f"torchrec=={self.torchrec}"])]


# FBGEMM's passes on the CPU differ much from release to release, so that no single one is the peer at its best.
RELEASES = [Release("1.2.0", "2.7.0", "1.2.0"), Release("1.4.0", "2.9.0", "1.4.0"), Release("1.9.0", "2.14.0", "1.9.2")]


def choose(names):
    """The releases of these names; all where there are none."""
    known = {release.fbgemm: release for release in RELEASES}
    for name in names:
        if name not in known:
            sys.exit(f"--releases {name}: no such release of FBGEMM is known here; give some of {' '.join(known)}, or add it to RELEASES in "
                     f"{os.path.abspath(__file__)}")
    return [release for release in RELEASES if not names or release.fbgemm in names]


def python_of(release, environments):
    return os.path.join(environments, release.fbgemm, "bin/python")


def look(python):
    """{"versions", "missing"} of an environment: what is installed there, and which peers cannot be imported."""
    if not os.path.exists(python):
        return None
    ran = subprocess.run([python, "-B", os.path.join(HERE, "peers.py"), "look"], text=True, capture_output=True, check=False)
    return json.loads(ran.stdout) if ran.returncode == 0 else None


def is_whole(found, release):
    """Whether all peers of this release are there and can be imported."""
    return (found is not None and not found["missing"]
            and all(found["versions"].get(peer, "").split("+")[0] == release.version(peer) for peer in PEERS))


def last_error(pip):
    lines = [line for line in pip.stderr.splitlines() if "ERROR" in line] or pip.stderr.splitlines()[-1:] or ["it failed"]
    return " ".join(lines[0].replace("ERROR: ", "").split())


def pins_of(release, environments):
    """The file that says what was installed in an environment, and what it has to say."""
    return os.path.join(environments, release.fbgemm, "pins.json"), json.loads(json.dumps(release.packages()))


def stamped(release, environments):
    """Whether the release was installed before."""
    stamp, pins = pins_of(release, environments)
    if not os.path.exists(stamp):
        return False
    with open(stamp, encoding="utf-8") as file:
        return json.load(file) == pins


def install(release, environments):
    """Makes a release's environment, and keeps one that is there. Returns, by peer, why it could not be installed."""
    if stamped(release, environments):
        return {}
    folder = os.path.join(environments, release.fbgemm)
    mine = not os.path.exists(folder)
    stamp, pins = pins_of(release, environments)
    python = python_of(release, environments)
    missing = {}
    if not is_whole(look(python), release):
        print(f"{folder}: installing {release.text()}, some minutes", file=sys.stderr)
        made = subprocess.run([sys.executable, "-m", "venv", folder], text=True, capture_output=True, check=False)
        if made.returncode:
            said = (made.stdout + made.stderr).split()
            return {peer: f"python -m venv {folder}: {' '.join(said)}" for peer in PEERS}
        for peer, packages in release.packages():
            if peer in missing or "PyTorch" in missing:
                continue
            pip = subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages], text=True,
                                 stdout=sys.stderr, stderr=subprocess.PIPE, check=False)
            if pip.returncode:
                missing[peer] = f"pip cannot install {packages[-1] if '--no-deps' in packages else packages[0]}: {last_error(pip)}"
        if "PyTorch" in missing:  # the others need it
            if mine:
                shutil.rmtree(folder)
            return {peer: missing["PyTorch"] for peer in PEERS}
        if missing or not is_whole(look(python), release):  # what cannot be imported is said by whoever measures
            return missing
    with open(stamp, "w", encoding="utf-8") as file:
        json.dump(pins, file)
    return {}


class Failed(Exception):
    """A sentence: what a process did not measure, and why."""


class Process:
    """`peers.py serve` of a release's environment: answers one turn at a time, until it is closed."""

    def __init__(self, python, environment):
        self.process = subprocess.Popen([*python, "-B", os.path.join(HERE, "peers.py"), "serve"], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        self.seconds = 0.0  # of processors, in all turns
        hello = self.read()
        self.missing, self.versions = hello["missing"], hello["versions"]

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            status = self.process.wait()
            raise Failed(f"its process ended {f'by signal {-status}' if status < 0 else f'with {status}'}")
        return json.loads(line)

    def ask(self, **request):
        """The answer to a request. Raises Failed."""
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        except OSError:
            pass  # it has ended, as read() says
        answer = self.read()
        self.seconds += answer["seconds"]
        if "error" in answer:
            raise Failed(answer["error"])
        return answer["made"]

    def close(self):
        with contextlib.suppress(OSError):  # a request is left that an ended process did not read
            self.process.stdin.close()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:  # it is within a turn that nobody waits for any more
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
