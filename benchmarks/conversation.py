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
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # started as a file, it would not find its package

from pymongo import monitoring
from rich.console import Console
from rich.table import Table

from benchmarks.stores import EARLIER_FOLDER, install_earlier

CALLS = ("append", "recent turns", "count")
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


def work(which: str, uri: str, turns: int) -> None:
    """Fill a session, make each call, and print what it took; in a process with one of the two packages."""
    commands = Commands()
    monitoring.register(commands)
    package: Any = importlib.import_module("crewai_mongodb_memory")
    backend = package.MongoStorageBackend(uri) if which == "ours" else package.MongoDBStorageBackend(uri)
    chat = package.ConversationMemory(backend, session_id=SESSION)
    seconds: dict[str, list[float]] = {"append": []}
    sent: dict[str, list[int]] = {"append": []}

    def measure(name: str, call: Callable[[], Any]) -> None:
        before, start = commands.sent, time.perf_counter()
        call()
        seconds.setdefault(name, []).append(time.perf_counter() - start)
        sent.setdefault(name, []).append(commands.sent - before)

    for number in range(turns):
        measure("append", partial(chat.add_turn, "user", f"message {number} " + "x" * 80))
    for _ in range(REPETITIONS):
        measure("recent turns", lambda: chat.recent_turns(6))
        measure("count", chat.count)
    assert chat.count() == turns
    last = 1000
    answer = {name: [statistics.median(seconds[name][-last:]), statistics.mean(sent[name][-last:])] for name in CALLS}
    print(json.dumps(answer))


def run(which: str, turns: int) -> dict[str, list[float]]:
    """Measure one package on an embedded server of its own."""
    from crewai_mongodb_memory.local_server import LocalServer

    with tempfile.TemporaryDirectory() as folder:
        server = LocalServer.join(Path(folder))
        environment = os.environ | ({"PYTHONPATH": str(EARLIER_FOLDER)} if which == "earlier" else {})
        command = [sys.executable, __file__, "--work", which, "--uri", server.uri, "--turns", str(turns)]
        printed = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout
        server.leave()
    measured: dict[str, list[float]] = json.loads(printed.splitlines()[-1])
    return measured


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--turns", type=int, default=10_000)
    options.add_argument("--work", choices=["ours", "earlier"], help=argparse.SUPPRESS)
    options.add_argument("--uri", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.work:
        work(chosen.work, chosen.uri, chosen.turns)
        return
    install_earlier()
    console = Console()
    results = {}
    for which in ("ours", "earlier"):
        with console.status(f"{which}: {chosen.turns:,} turns"):
            results[which] = run(which, chosen.turns)
    table = Table("call", "ms, this package", "ms, 0.1.0", "round trips, this package", "round trips, 0.1.0")
    for name in CALLS:
        (ours, our_trips), (earlier, earlier_trips) = results["ours"][name], results["earlier"][name]
        table.add_row(name, f"{ours * 1000:.2f}", f"{earlier * 1000:.2f}", f"{our_trips:.2f}", f"{earlier_trips:.2f}")
    console.print(table)


if __name__ == "__main__":
    main()
