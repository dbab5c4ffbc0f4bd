"""What tests share: one embedded server for the session, and backends on databases of their own."""

from __future__ import annotations

import os

# Without these CrewAI waits 5 s after each stand-alone remember, and reports to a server of its own.
os.environ["CREWAI_TRACING_ENABLED"] = "false"
os.environ["CREWAI_DISABLE_TELEMETRY"] = "true"
os.environ["OTEL_SDK_DISABLED"] = "true"

import gc
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pymongo
import pytest

from crewai_mongodb_memory import MongoStorageBackend
from crewai_mongodb_memory.local.server import LocalServer
from tests.atlas_standin import AtlasStandin
from tests.stores import MakeBackend

CHILDREN = Path(f"/proc/self/task/{os.getpid()}/children")  # Linux
REAL_ATLAS = os.environ.get("MONGODB_ATLAS_URI")


@pytest.fixture(scope="session", autouse=True)
def _nothing_is_left() -> Iterator[None]:
    """At the end of all no client is open, no thread of a driver runs, and no process is left behind."""
    yield
    deadline = time.monotonic() + 20
    while (left := left_behind()) and time.monotonic() < deadline:
        threading.Event().wait(0.05)
    assert left == []


def left_behind() -> list[object]:
    gc.collect()
    kinds = (pymongo.MongoClient, pymongo.AsyncMongoClient)
    clients = [one for one in gc.get_objects() if issubclass(type(one), kinds) and one._opened and not one._closed]
    threads = [thread.name for thread in threading.enumerate() if "pymongo" in thread.name]
    children = CHILDREN.read_text().split() if CHILDREN.exists() else []
    commands = filter(None, map(command_line, children))
    # Python keeps two of its own for multiprocessing until it ends.
    return [*clients, *threads, *(command for command in commands if "from multiprocessing" not in command)]


def command_line(process: str) -> str:
    """What a child runs; nothing if it has ended, though it stays listed until somebody asks how."""
    try:
        return Path(f"/proc/{process}/cmdline").read_text().replace("\0", " ")
    except FileNotFoundError:
        return ""


@pytest.fixture(scope="session")
def local_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    """An embedded server that lives as long as the session."""
    server = LocalServer.join(tmp_path_factory.mktemp("server"))
    yield server
    server.leave()


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest) -> str:
    """The connection string of a server: ``$MONGODB_ATLAS_URI``, or an embedded one as a user says it."""
    if REAL_ATLAS:
        return REAL_ATLAS
    local_server: LocalServer = request.getfixturevalue("local_server")
    return f"local:{local_server.folder}"


@pytest.fixture
def database_name() -> str:
    """A database of this test's own."""
    return f"test_{uuid4().hex}"


@pytest.fixture
def make_backend(server: str, database_name: str) -> Iterator[MakeBackend]:
    """Makes backends on one database of this test's own; they are closed after the test."""
    made: list[MongoStorageBackend] = []

    def make(**arguments: Any) -> MongoStorageBackend:
        where = {} if "connection_string" in arguments else {"connection_string": server, "search_mode": "exact"}
        made.append(MongoStorageBackend(**{"database_name": database_name, **where, **arguments}))
        return made[-1]

    yield make
    for backend in made:
        backend.close()


@pytest.fixture
def backend(make_backend: MakeBackend) -> MongoStorageBackend:
    """A backend on an empty database."""
    return make_backend()


@pytest.fixture
def atlas(local_server: LocalServer) -> Iterator[AtlasStandin]:
    """A stand-in for Atlas in front of the embedded server; its index is up to date at once."""
    with AtlasStandin(local_server.uri) as standin:
        yield standin


@pytest.fixture
def make_atlas_backend(make_backend: MakeBackend, atlas: AtlasStandin) -> MakeBackend:
    """Makes backends on the stand-in that have to use its index."""

    def make(**arguments: Any) -> MongoStorageBackend:
        return make_backend(**{"connection_string": atlas.uri, "search_mode": "atlas", **arguments})

    return make


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder, for a store of the test's own."""
    return tmp_path / "store"
