"""What a chat transcript costs at 10,000 turns, beside the earlier package: append, recent turns, count.

    .venv/bin/python benchmarks/conversation.py --turns 10000

Round trips are the commands that the driver sends; seconds are medians, on the embedded server.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # started as a file, it would not find its package

from pymongo import monitoring
from rich.console import Console
from rich.table import Table

from benchmarks.stores import EARLIER_FOLDER, install_earlier

CALLS = ("append", "recent turns", "count")
PACKAGES = ("ours", "earlier")
REPETITIONS = 50
SESSION = "bench"


class Commands(monitoring.CommandListener):
    """Counts what is sent."""

    sent = 0

    def started(self, _: monitoring.CommandStartedEvent) -> None:
        self.sent += 1

    def succeeded(self, _: monitoring.CommandSucceededEvent) -> None:
        pass

    def failed(self, _: monitoring.CommandFailedEvent) -> None:
        pass


def work(which: str, uri: str) -> None:
    """Make the calls that stdin asks for, and print what each took; in a process with one of the two packages."""
    commands = Commands()
    monitoring.register(commands)
    package: Any = importlib.import_module("crewai_mongodb_memory")
    backend = package.MongoStorageBackend(uri) if which == "ours" else package.MongoDBStorageBackend(uri)
    chat = package.ConversationMemory(backend, session_id=SESSION)
    calls: dict[str, Callable[[int], Any]] = {
        "append": lambda number: chat.add_turn("user", f"message {number} " + "x" * 80),
        "recent turns": lambda _: len(chat.recent_turns(6)),
        "count": lambda _: chat.count(),
    }
    for line in sys.stdin:
        name, number = json.loads(line)
        before, start = commands.sent, time.perf_counter()
        answer = calls[name](number)
        seconds = time.perf_counter() - start
        if name == "count" and answer != number:
            raise AssertionError(f"{which} counts {answer} of {number} turns")
        print(json.dumps([seconds, commands.sent - before]), flush=True)


@contextmanager
def worker(which: str) -> Iterator[Callable[[str, int], list[float]]]:
    """Give a function that makes a call of one package, on an embedded server of its own."""
    from crewai_mongodb_memory.local.server import LocalServer

    with tempfile.TemporaryDirectory() as folder:
        server = LocalServer.join(Path(folder))
        environment = os.environ | ({"PYTHONPATH": str(EARLIER_FOLDER)} if which == "earlier" else {})
        command = [sys.executable, __file__, "--work", which, "--uri", server.uri]
        with subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            requests, answers = process.stdin, process.stdout
            assert requests
            assert answers

            def call(name: str, number: int) -> list[float]:
                print(json.dumps([name, number]), file=requests, flush=True)
                took: list[float] = json.loads(answers.readline())
                return took

            yield call
        server.leave()


def compare(turns: int, progress: Callable[[int], None]) -> dict[str, dict[str, list[float]]]:
    """Return the median seconds and the mean number of commands, by call and package.

    The packages are called in turn, so that both suffer alike from what else the machine does.
    """
    took: dict[str, dict[str, list[list[float]]]] = {name: {which: [] for which in PACKAGES} for name in CALLS}
    with ExitStack() as running:
        workers = {which: running.enter_context(worker(which)) for which in PACKAGES}
        calls = [("append", number) for number in range(turns)]
        calls += [(name, turns) for _ in range(REPETITIONS) for name in CALLS[1:]]
        for done, (name, number) in enumerate(calls):
            for which, call in workers.items():
                took[name][which].append(call(name, number))
            progress(done)
    return {name: {which: _summary(taken) for which, taken in packages.items()} for name, packages in took.items()}


def _summary(taken: list[list[float]]) -> list[float]:
    last = taken[-1000:]
    return [statistics.median(seconds for seconds, _ in last), statistics.mean(sent for _, sent in last)]


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--turns", type=int, default=10_000)
    options.add_argument("--work", choices=PACKAGES, help=argparse.SUPPRESS)
    options.add_argument("--uri", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.work:
        work(chosen.work, chosen.uri)
        return
    install_earlier()
    console = Console()
    with console.status("starting") as status:
        results = compare(chosen.turns, lambda done: status.update(f"{done:,} of {chosen.turns:,} turns"))
    table = Table("call", "ms, this package", "ms, 0.1.0", "round trips, this package", "round trips, 0.1.0")
    for name, packages in results.items():
        (ours, our_trips), (earlier, earlier_trips) = packages["ours"], packages["earlier"]
        table.add_row(name, f"{ours * 1000:.2f}", f"{earlier * 1000:.2f}", f"{our_trips:.2f}", f"{earlier_trips:.2f}")
    console.print(table)


if __name__ == "__main__":
    main()
