"""Operations, run on mongomock: no server, no wire, the same generators and the same runner."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import mongomock_ng as mongomock
import pytest
from crewai.memory.types import MemoryRecord

from crewai_mongodb_memory.errors import DimensionMismatchError, ExactSearchTooLargeError
from crewai_mongodb_memory.mongo import driver
from crewai_mongodb_memory.operations import read, write
from crewai_mongodb_memory.operations.commands import Command, Count, Find, Operation
from crewai_mongodb_memory.operations.search import search
from crewai_mongodb_memory.operations.store import Settings, Store

MOMENT = datetime(2026, 5, 1)


@pytest.fixture
def database() -> Any:
    return mongomock.MongoClient()["test"]


@pytest.fixture
def store() -> Store:
    return Store(Settings(search_mode="exact", auto_setup=False))


def record(content: str, **fields: Any) -> MemoryRecord:
    defaults = {"id": content, "embedding": [1.0, 0.0], "created_at": MOMENT, "last_accessed": MOMENT}
    return MemoryRecord(content=content, **{**defaults, **fields})


def test_what_is_saved_is_read_searched_and_deleted(database: Any, store: Store) -> None:
    def run(operation: Operation[Any]) -> Any:
        return driver.run(operation, database.get_collection)

    run(write.save(store, [record("a", scope="/x"), record("b", embedding=[0.6, 0.8]), record("c", embedding=None)]))
    assert run(read.count(store, "/x")) == 1
    assert run(read.get_record(store, "a")) == record("a", scope="/x")
    assert [found.id for found in run(read.list_records(store, None, 2, 1))] == ["b", "c"]
    hits = run(search(store, [1.0, 0.0], None, None, None, 5, 0.0))
    assert [(hit.id, round(score, 6)) for hit, score in hits] == [("a", 1.0), ("b", 0.6)]
    run(write.update(store, MemoryRecord(id="b", content="changed")))
    assert run(read.get_record(store, "b")).embedding == [0.6, 0.8]
    assert run(write.delete(store, "/x", None, None, None, None)) == 1
    run(write.reset(store, None))
    assert run(read.list_records(store, None, 9, 0)) == []


def test_what_does_not_fit_is_refused_and_nothing_is_written(database: Any, store: Store) -> None:
    driver.run(write.save(store, [record("a")]), database.get_collection)
    for operation in (
        write.save(store, [record("b", embedding=[1.0])]),
        write.update(store, record("a", embedding=[1.0])),
        search(store, [1.0], None, None, None, 5, 0.0),
    ):
        with pytest.raises(DimensionMismatchError):
            driver.run(operation, database.get_collection)
    assert database.memories.count_documents({}) == 1


def test_a_search_over_the_limit_stops_reading(database: Any) -> None:
    store = Store(Settings(search_mode="exact", auto_setup=False, exact_limit=3))
    driver.run(write.save(store, [record(str(number)) for number in range(9)]), database.get_collection)
    with pytest.raises(ExactSearchTooLargeError):
        driver.run(search(store, [1.0, 0.0], None, None, None, 5, 0.0), database.get_collection)


def test_documents_are_handed_over_in_batches(database: Any) -> None:
    database.numbers.insert_many({"_id": number} for number in range(25))
    batches: list[list[int]] = []

    def consume(documents: list[dict[str, Any]]) -> None:
        batches.append([document["_id"] for document in documents])

    def operation() -> Operation[Any]:
        return (yield Find("numbers", {}, consume=consume, batch_size=10))

    assert driver.run(operation(), database.get_collection) == []
    assert [len(batch) for batch in batches] == [10, 10, 5]
    assert [number for batch in batches for number in batch] == list(range(25))


def test_an_error_of_the_driver_arrives_where_the_command_was_given() -> None:
    class Broken:
        def count_documents(self, *_: Any, **__: Any) -> int:
            raise ConnectionError("gone")

    def operation() -> Iterator[Command[int]]:
        try:
            yield Count("memories", {"a": 1})
        except ConnectionError as error:
            return f"caught: {error}"  # type: ignore[return-value]

    assert driver.run(operation(), lambda _: Broken()) == "caught: gone"  # type: ignore[arg-type]
