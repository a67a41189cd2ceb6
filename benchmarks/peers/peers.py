# Copyright (c) 2026 The shardwise authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The peers' side of compare.py: runs in the environment of one release of them.

    peers.py look    prints what is there, as JSON, and ends
    peers.py serve   says the same on a line, then answers requests, one a line, until its input ends

A request is {"turn": ..., and what that needs}; its answer {"made": what was measured}, or {"error": a sentence}, and "seconds":
what it took of processors. Each is measured in a fork of this process, which imports modules once and does nothing else with
them: what a turn allocated is gone with it, and a turn that ends badly ends alone.
"""

import ctypes
import functools
import importlib
import importlib.metadata
import json
import logging
import os
import signal
import sys
import warnings

import turns

PACKAGES = {"PyTorch": "torch", "FBGEMM": "fbgemm-gpu-cpu", "TorchRec": "torchrec"}
MODULES = {"PyTorch": ["torch"], "FBGEMM": ["fbgemm_gpu.split_table_batched_embeddings_ops_training"],
           "TorchRec": ["torchrec", "torchrec.distributed"]}


def sentence(error):
    return f"{type(error).__name__}: {' '.join(str(error).split())}".rstrip(": ")


def load():
    """Imports what is there. Returns {"versions", "missing"}, by peer: a version, and why one cannot be imported."""
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    versions, missing = {}, {}
    for peer, modules in MODULES.items():
        try:
            versions[peer] = importlib.metadata.version(PACKAGES[peer])
        except importlib.metadata.PackageNotFoundError:
            pass
        for module in modules:
            try:
                importlib.import_module(module)
            except Exception as error:  # an ImportError, or whatever a library throws that does not fit
                missing[peer] = f"{module} cannot be imported: {sentence(error)}"
                break
    return {"versions": versions, "missing": missing}


def die_with_parent():
    """So that no turn goes on that nobody waits for (on Linux)."""
    try:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    except (OSError, AttributeError):
        pass


def forked(work):
    """Calls work() in a fork. Returns (process, end to read of the pipe that its JSON comes from)."""
    read, write = os.pipe()
    process = os.fork()
    if process:
        os.close(write)
        return process, read
    status = 1
    try:
        die_with_parent()
        os.close(read)
        try:
            answer = {"made": work()}
        except Exception as error:
            answer = {"error": sentence(error)}
        with os.fdopen(write, "w", encoding="utf-8") as pipe:
            json.dump(answer, pipe)
        status = 0
    finally:
        os._exit(status)  # not the end of the process that it is a fork of


def answer_of(process, read):
    """What a fork has answered, once it has ended."""
    with os.fdopen(read, encoding="utf-8") as pipe:
        text = pipe.read()
    _, status, used = os.wait4(process, 0)
    if os.WIFSIGNALED(status):
        answer = {"error": f"ended by {signal.Signals(os.WTERMSIG(status)).name}"}
    elif not text:
        answer = {"error": f"ended with {os.WEXITSTATUS(status)}"}
    else:
        answer = json.loads(text)
    return answer | {"seconds": used.ru_utime + used.ru_stime}


def measure(request, missing):
    """{"times": milliseconds by peer and measure, or a text that says why not; "failed": by peer, an error}."""
    import dlrm
    import sharded
    import tables

    turn = turns.of_json(request["turn"])
    if isinstance(turn, turns.Sharded):
        works = sharded.works(turn, missing, request["quick"], forked, answer_of)
    elif isinstance(turn, turns.Dlrm):
        works = dlrm.works(turn, request["folder"], missing)
    else:
        works = tables.works(turn, missing, request["memory"])
    times, failed = {}, {}
    for peer, work in works:
        try:
            times |= work()
        except Exception as error:  # such as memory that is not there
            failed[peer] = sentence(error)
    return {"times": times, "failed": failed}


def write_clicks(request):
    import dlrm

    dlrm.write_clicks(request["clicks"], turns.SMALL, turns.BATCHES)
    return True


def serve():
    """Until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who asks is told, and closes the input
    say = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what libraries print there is no answer; errors have a stream of their own
    there = load()
    print(json.dumps(there), file=say, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        work = functools.partial(write_clicks, request) if "clicks" in request else functools.partial(measure, request, there["missing"])
        print(json.dumps(answer_of(*forked(work))), file=say, flush=True)


def main():
    if sys.argv[1:] == ["look"]:
        print(json.dumps(load()))
    elif sys.argv[1:] == ["serve"]:
        serve()
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
