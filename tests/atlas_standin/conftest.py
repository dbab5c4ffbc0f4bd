"""One engine for all tests here, and for each test a stand-in, a client on it and a collection of its own."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pymongo import MongoClient
from pymongo.collection import Collection
from pymongo.errors import OperationFailure
from pymongo.operations import SearchIndexModel

from . import AtlasStandin
from .engine import running_engine

Document = dict[str, Any]
Memories = Collection[Document]
Open = Callable[..., tuple[AtlasStandin, Memories]]

INDEX = "ix"
DEFINITION: Document = {
    "fields": [
        {"type": "vector", "path": "v", "numDimensions": 2, "similarity": "cosine"},
        {"type": "filter", "path": "s"},
    ]
}


WIDER: Document = {"fields": [*DEFINITION["fields"], {"type": "filter", "path": "t"}]}


class Clock:
    """A clock that only tests move."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def model(definition: Document = DEFINITION, name: str = INDEX, kind: str = "vectorSearch") -> SearchIndexModel:
    return SearchIndexModel(definition=definition, name=name, type=kind)


def search(**changes: Any) -> Document:
    """A stage that finds the ten documents nearest to [1, 0]; `...` leaves a field out."""
    stage = {"index": INDEX, "path": "v", "queryVector": [1.0, 0.0], "numCandidates": 100, "limit": 10}
    return {"$vectorSearch": {key: value for key, value in {**stage, **changes}.items() if value is not ...}}


def found(memories: Memories, *later: Document, **changes: Any) -> list[Any]:
    return [document["_id"] for document in memories.aggregate([search(**changes), *later])]


def at_angle(id_: Any, y: float, **more: Any) -> Document:
    """A document the farther from [1, 0] the greater its y."""
    return {"_id": id_, "v": [1.0, y], **more}


def listed(memories: Memories, name: str | None = None) -> list[Document]:
    return [dict(index) for index in memories.list_search_indexes(name)]


def refused(call: Callable[[], Any]) -> tuple[int | None, str]:
    """Code and text of the error that the call has to end in."""
    with pytest.raises(OperationFailure) as raised:
        call()
    assert raised.value.details is not None
    return raised.value.code, raised.value.details["errmsg"]


@pytest.fixture(scope="session")
def engine_uri() -> Iterator[str]:
    with running_engine() as uri:
        yield uri


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def open_standin(engine_uri: str, clock: Clock) -> Iterator[Open]:
    """Start a stand-in with the given knobs; the collection exists, and so does its index if `indexed`."""
    with contextlib.ExitStack() as stack:

        def start(*, indexed: bool = True, **knobs: Any) -> tuple[AtlasStandin, Memories]:
            standin = stack.enter_context(AtlasStandin(engine_uri, clock=clock, **knobs))
            client: MongoClient[Document] = stack.enter_context(MongoClient(standin.uri))
            memories = client[f"test_{uuid.uuid4().hex}"]["memories"]
            memories.database.create_collection(memories.name)
            if indexed:
                memories.create_search_index(model())
            standin.commands.clear()
            return standin, memories

        yield start
