"""What integration tests share: a clock, memories on a backend of the test's own, and a place for CrewAI's files."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from crewai import Memory
from crewai.memory.storage.factory import set_memory_storage_factory

from crewai_mongodb_memory import MongoStorageBackend, mongo_storage_factory
from tests.fake_voyage import FakeVoyage
from tests.scripted import ScriptedLLM, embed_words
from tests.stores import Clock, MakeBackend
from tests.team import MakeMemory


@pytest.fixture(autouse=True)
def _outside_the_home_folder(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """CrewAI keeps the outputs of each crew's tasks in a database of its own, in the user's home folder."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path_factory.getbasetemp() / "crewai"))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The time that passes for the backends of ``make``, and in the pauses of all operations."""
    clock = Clock()
    monkeypatch.setattr("crewai_mongodb_memory.mongo.driver.time", clock)
    return clock


@pytest.fixture
def make(make_atlas_backend: MakeBackend, clock: Clock) -> MakeBackend:
    """Makes backends on the stand-in that tell the time by ``clock``."""

    def made(**arguments: Any) -> MongoStorageBackend:
        backend = make_atlas_backend(**arguments)
        backend._store.clock = clock
        return backend

    return made


@pytest.fixture
def make_memory(backend: MongoStorageBackend) -> MakeMemory:
    def make(storage: Any = backend, **settings: Any) -> Memory:
        return Memory(**{"storage": storage, "llm": ScriptedLLM(), "embedder": embed_words, **settings})

    return make


@pytest.fixture
def memory(make_memory: MakeMemory) -> Memory:
    """A memory as ``Crew(memory=True)`` makes one: with a scope of the crew's own."""
    return make_memory(root_scope="/crew/team")


@pytest.fixture
def register() -> Iterator[Callable[..., Any]]:
    """Registers a factory with CrewAI for this test."""

    def register(*arguments: Any, **options: Any) -> Any:
        factory = mongo_storage_factory(*arguments, **options)
        set_memory_storage_factory(factory)
        return factory

    yield register
    set_memory_storage_factory(None)


@pytest.fixture
def api() -> Iterator[FakeVoyage]:
    """A stand-in for Voyage AI's API."""
    with FakeVoyage() as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield server
        server.gave_up.set()
        server.shutdown()
