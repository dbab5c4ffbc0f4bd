"""What tests of stores share: records by their ids, and what a server was asked, says, or does meanwhile."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any, TypeVar

import pytest
from crewai.memory.types import MemoryRecord
from pymongo import monitoring
from pymongo.operations import SearchIndexModel

from crewai_mongodb_memory import MongoStorageBackend
from crewai_mongodb_memory.pure.vector_index import definition_document
from tests.atlas_standin import AtlasStandin

MakeBackend = Callable[..., MongoStorageBackend]
T = TypeVar("T")
R = TypeVar("R")

INDEX = "idx_crewai_memory"
QUERY = [1.0, 0.0]


def record(record_id: str, embedding: list[float] | None = None, **fields: Any) -> MemoryRecord:
    """A record that says its own id; it is what ``QUERY`` asks for, unless an embedding is given."""
    return MemoryRecord(id=record_id, content=record_id, embedding=embedding or QUERY, **fields)


def distant(record_id: str, distance: float = 0.0, **fields: Any) -> MemoryRecord:
    """A record the farther from ``QUERY`` the greater its distance."""
    return record(record_id, [1.0, distance], **fields)


def ids(hits: list[tuple[MemoryRecord, float]]) -> list[str]:
    return [hit.id for hit, _ in hits]


def at_once(work: Callable[[T], R], arguments: Iterable[T]) -> list[R]:
    """What a work gives for each argument, all begun at the same moment in threads of their own; or its first error."""
    given = list(arguments)
    start = threading.Barrier(len(given))

    def begin(argument: T) -> R:
        start.wait()
        return work(argument)

    with ThreadPoolExecutor(len(given)) as threads:
        return list(threads.map(begin, given))


def collection_of(backend: MongoStorageBackend, name: str = "memories") -> Any:
    """A collection of a backend's database, on the backend's own client."""
    with backend._connection.collections() as collections:
        return collections(name)


def stop_the_clock(backend: MongoStorageBackend, moment: datetime) -> None:
    """Make a backend take a moment for the present."""
    backend._store.now = lambda: moment


def without(*paths: str, dimensions: int = 2) -> dict[str, Any]:
    """The definition of the vector index with some filter paths left out."""
    return {"fields": [field for field in definition_document(dimensions)["fields"] if field["path"] not in paths]}


def create_index(backend: MongoStorageBackend, definition: dict[str, Any], kind: str = "vectorSearch") -> None:
    model = SearchIndexModel(definition=definition, name=INDEX, type=kind)
    collection_of(backend).create_search_index(model)


def replace_index(backend: MongoStorageBackend, definition: dict[str, Any] | None, kind: str = "vectorSearch") -> None:
    """Drop the vector index, and create another one if one is given."""
    collection_of(backend).drop_search_index(INDEX)
    if definition is not None:
        create_index(backend, definition, kind)


def asked(atlas: AtlasStandin) -> list[str]:
    """The commands seen since the last call; of an aggregation its first stage."""
    names = [next(iter(body["pipeline"][0])) if name == "aggregate" else name for name, body in atlas.commands]
    atlas.commands.clear()
    return [name for name in names if not name.startswith(("sasl", "endSessions"))]


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [line.message for line in caplog.records if line.levelno == logging.WARNING]


class Clock:
    """Time that only tests move, and pauses of operations; ``at_pause`` is told each time how often there was one."""

    def __init__(self) -> None:
        self.now, self.pauses = 1000.0, 0
        self.at_pause: Callable[[int], None] = lambda _: None

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.pauses += 1
        self.at_pause(self.pauses)


class Listener(monitoring.CommandListener):
    """What the driver sends and is answered; without what it says to log in."""

    def __init__(self) -> None:
        self.sent: list[monitoring.CommandStartedEvent] = []
        self.replies: list[Any] = []

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        if not event.command_name.startswith("sasl"):
            self.sent.append(event)

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None:
        self.replies.append(event.reply)

    def failed(self, event: monitoring.CommandFailedEvent) -> None:
        pass

    def take(self) -> list[str]:
        """The names of the commands since the last call; the replies are forgotten too."""
        names = [event.command_name for event in self.sent]
        self.sent.clear()
        self.replies.clear()
        return names


class Meanwhile(Listener):
    """Does something once, between the answer to a command and the next command."""

    def __init__(self, command: str) -> None:
        super().__init__()
        self.command = command
        self.action: Callable[[], Any] | None = None

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None:
        if event.command_name == self.command and self.action is not None:
            action, self.action = self.action, None
            action()
