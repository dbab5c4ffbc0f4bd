"""What tests share: one embedded server for the session, and backends on databases of their own."""

from __future__ import annotations

import os

# Without these CrewAI waits 5 s after each stand-alone remember, and reports to a server of its own.
os.environ["CREWAI_TRACING_ENABLED"] = "false"
os.environ["CREWAI_DISABLE_TELEMETRY"] = "true"
os.environ["OTEL_SDK_DISABLED"] = "true"

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from crewai_mongodb_memory import MongoStorageBackend


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The connection string of an embedded server that lives as long as the session."""
    folder = tmp_path_factory.mktemp("server")
    spec = f"local:{folder}"
    with MongoStorageBackend(spec) as backend:
        backend.count()
        yield spec


@pytest.fixture
def make_backend(server: str) -> Iterator[Callable[..., MongoStorageBackend]]:
    """Makes backends on one database of this test's own; they are closed after the test."""
    database_name = f"test_{uuid4().hex}"
    made: list[MongoStorageBackend] = []

    def make(**arguments: Any) -> MongoStorageBackend:
        made.append(MongoStorageBackend(server, **{"database_name": database_name, **arguments}))
        return made[-1]

    yield make
    for backend in made:
        backend.close()


@pytest.fixture
def backend(make_backend: Callable[..., MongoStorageBackend]) -> MongoStorageBackend:
    """A backend on an empty database."""
    return make_backend()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder, for a store of the test's own."""
    return tmp_path / "store"
