"""Measures stores side by side: each in a process of its own, on a server of its own, called in turn."""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, TypeAlias

from benchmarks.methods import FIRST_CALLS, METHODS, Method
from benchmarks.stores import Store
from crewai_mongodb_memory.local.engine import SUPERVISOR, is_held
from crewai_mongodb_memory.local.server import LocalServer

Result: TypeAlias = dict[str, Any]
Results: TypeAlias = dict[str, dict[str, Result]]  # by the titles of methods, then by the keys of stores

FEWEST_CALLS = 3
SECONDS_FOR_CALLS = 2.0  # of all stores together
ROOT = Path(__file__).resolve().parents[1]


class WorkerError(Exception):
    """A worker ended before it had answered; the text is what it wrote on stderr."""


class Worker:
    """A store in its process (``worker.py``), which makes one call at a time."""

    def __init__(self, store: Store, process: subprocess.Popen[str], log: IO[str]) -> None:
        self.store = store
        self._process = process
        self._log = log

    def ask(self, *request: Any) -> Result:
        """Send a request and wait for its answer."""
        assert self._process.stdin
        assert self._process.stdout
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps(request), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            self._log.seek(0)
            raise WorkerError(f"{self.store.title}: {self._log.read()}")
        answer: Result = json.loads(line)
        return answer


def measure(stores: Sequence[Store], size: int, progress: Callable[[str, float], None]) -> Results:
    """Fill every store with ``size`` records and measure every method.

    Args:
        progress: is told what is done next, and which part of all has been done.
    """
    results: Results = {}
    steps = len(stores) + len(FIRST_CALLS) + len(METHODS)
    with contextlib.ExitStack() as running:
        workers = []
        for number, store in enumerate(stores):
            progress(f"saving into {store.title}", number / steps)
            workers.append(running.enter_context(_filled(store, size)))
        served = [worker for worker in workers if worker.store.served]
        for number, method in enumerate((*FIRST_CALLS, *METHODS), len(stores)):
            progress(method.title, number / steps)
            if method in FIRST_CALLS:
                results[method.title] = {worker.store.key: worker.ask("first", method.title) for worker in served}
            else:
                results[method.title] = _compared(workers, method)
    return results


def _compared(workers: Sequence[Worker], method: Method) -> dict[str, Result]:
    results = {worker.store.key: worker.ask("time", method.title, 0) for worker in workers}
    able = [worker for worker in workers if "missing" not in results[worker.store.key]]
    rounds = [results]
    deadline = time.perf_counter() + SECONDS_FOR_CALLS
    while len(rounds) < min(FEWEST_CALLS, method.most_calls) or (
        len(rounds) < method.most_calls and time.perf_counter() < deadline
    ):
        # Called in turn, all suffer alike from what else the machine does; nobody always comes after the same one.
        first = len(rounds) % len(able)
        in_turn = (*able[first:], *able[:first])
        rounds.append({worker.store.key: worker.ask("time", method.title, len(rounds)) for worker in in_turn})
    for worker in able:
        seconds = [answers[worker.store.key]["seconds"] for answers in rounds]
        times = {"seconds": statistics.median(seconds), "least": min(seconds), "calls": len(seconds)}
        results[worker.store.key] = times | worker.ask("count", method.title, len(rounds))
    return results


@contextlib.contextmanager
def _filled(store: Store, size: int) -> Iterator[Worker]:
    with _place_for(store) as place, tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.worker"],
            cwd=ROOT,
            env=os.environ | store.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        with process:
            worker = Worker(store, process, log)
            worker.ask(store.key, place, size)
            yield worker


@contextlib.contextmanager
def _place_for(store: Store) -> Iterator[str]:
    """A new and empty place: a folder, or the URI of a server on one."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        if not store.served:
            yield folder
            return
        server = LocalServer.join(Path(folder))
        try:
            yield server.uri
        finally:
            server.leave()
            while is_held(Path(folder, SUPERVISOR)):
                time.sleep(0.05)
