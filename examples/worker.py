"""Prefork workers, as gunicorn and Celery run them: one process forks several, and all remember in one store.

    python examples/worker.py         # three workers take nine jobs

It needs no key and no network, but a system that forks: Linux or macOS. The rule it shows: before the fork, use
nothing of CrewAI's, since its threads are not there in a child, which then waits for them for ever. Make the Memory
in the child: in gunicorn's ``post_fork``, in Celery's ``worker_process_init``. The storage itself may be used before.
"""

from __future__ import annotations

import os
import warnings
from typing import Any

# CrewAI's tracing would wait 5 s after each remember, and its telemetry needs a network.
os.environ.setdefault("CREWAI_TRACING_ENABLED", "false")
os.environ.setdefault("CREWAI_DISABLE_TELEMETRY", "true")
os.environ.setdefault("OTEL_SDK_DISABLED", "true")

from crewai import Memory
from crewai.events.utils.console_formatter import set_suppress_console_output
from crewai.llms.base_llm import BaseLLM

from crewai_mongodb_memory import MongoStorageBackend, OfflineEmbedder

STORE = "local:.demo/mongodb"
WORKERS = 3
JOBS = [
    "Sent the newsletter to 400 people",
    "Resized the photos of the spring catalogue",
    "Charged the yearly subscriptions",
    "Backed up the orders of March",
    "Translated the imprint into Portuguese",
    "Checked the links on the home page",
    "Printed the labels for Lisbon",
    "Closed the tickets nobody answered",
    "Renewed the certificate of the shop",
]

storage = MongoStorageBackend(STORE, database_name="demo_workers")


def main() -> None:
    """Fork the workers, wait for them, and ask what they did."""
    storage.reset()
    workers = [fork(number) for number in range(WORKERS)]
    failed = [worker for worker in workers if os.waitpid(worker, 0)[1] != 0]
    print(f"{WORKERS} workers, {len(failed)} failed, {storage.count()} memories in {STORE}")
    memory = open_memory()
    for question in ("What was mailed?", "Who was billed?"):
        best = memory.recall(question, limit=1, depth="shallow")[0]
        print(f"  {question}  {best.record.content} ({best.record.source})")
    memory.close()


def fork(number: int) -> int:
    """Start a worker and return its process id."""
    with warnings.catch_warnings():  # Python warns of any fork beside threads; the driver's own are no danger
        warnings.simplefilter("ignore", DeprecationWarning)
        process = os.fork()
    if process:
        return process
    try:
        work(number)
    except BaseException:
        os._exit(1)
    os._exit(0)


def work(number: int) -> None:
    """What a worker does: its share of the jobs, each remembered when it is done."""
    memory = open_memory()
    for job in JOBS[number::WORKERS]:
        memory.remember(job, scope=f"/worker/{number}", categories=["job"], importance=0.5, source=f"worker {number}")
    memory.close()


def open_memory() -> Memory:
    """CrewAI's Memory on the storage of all workers."""
    set_suppress_console_output(True)  # CrewAI's two panels for each memory would drown the rest
    return Memory(storage=storage, embedder=OfflineEmbedder(), llm=NoModel(model="none"))


class NoModel(BaseLLM):
    """Stands where CrewAI wants a language model."""

    def call(self, *_: Any, **__: Any) -> str:
        raise AssertionError("these workers ask no language model")


if __name__ == "__main__":
    main()
