"""When searches see what was written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from bson import Regex
from pymongo import DeleteOne, InsertOne, MongoClient, ReplaceOne, UpdateOne, WriteConcern

from .conftest import INDEX, Clock, Document, Memories, Open, at_angle, found, model
from .replica import key_of
from .writes import written_by

NEW = at_angle("new", 0.0, s="n")

Write = Callable[[Memories], Any]

WRITES: list[tuple[Write, list[str]]] = [
    (lambda m: m.insert_one(NEW), ["new", "old"]),
    (lambda m: m.insert_many([NEW]), ["new", "old"]),
    (lambda m: m.with_options(write_concern=WriteConcern(w=0)).insert_one(NEW), ["new", "old"]),
    (lambda m: m.replace_one({"_id": "new"}, NEW, upsert=True), ["new", "old"]),
    (lambda m: m.update_one({"s": "n"}, {"$set": NEW}, upsert=True), ["new", "old"]),
    (lambda m: m.find_one_and_replace({"_id": "new"}, NEW, upsert=True), ["new", "old"]),
    (lambda m: m.bulk_write([DeleteOne({"_id": "old"}), InsertOne(NEW)]), ["new"]),
    (lambda m: m.bulk_write([ReplaceOne({"_id": "new"}, NEW, upsert=True)]), ["new", "old"]),
    (
        lambda m: m.database.client.bulk_write([InsertOne(NEW, namespace=m.full_name)]),
        ["new", "old"],
    ),
    (lambda m: m.bulk_write([UpdateOne({"_id": "old"}, {"$unset": {"v": 1}})]), []),
    (lambda m: m.update_many({}, [{"$set": {"v": None}}]), []),
    (lambda m: m.delete_one({"_id": "old"}), []),
    (lambda m: m.delete_many({"_id": {"$in": ["old", "older"]}}), []),
    (lambda m: m.delete_many({}), []),
    (lambda m: m.find_one_and_delete({}), []),
    (
        lambda m: m.aggregate([{"$limit": 1}, {"$set": {"_id": "new"}}, {"$merge": m.name}]),
        ["new", "old"],
    ),
]


@pytest.mark.parametrize(("write", "expected"), WRITES)
def test_without_lag_every_write_is_seen_at_once(open_standin: Open, write: Write, expected: list[str]) -> None:
    _, memories = open_standin()
    memories.insert_one(at_angle("old", 0.0, s="o"))
    assert found(memories) == ["old"]
    write(memories)
    assert expected == sorted(found(memories))


def test_a_transaction_is_seen_when_it_commits(open_standin: Open) -> None:
    _, memories = open_standin()
    with memories.database.client.start_session() as session, session.start_transaction():
        memories.insert_one(NEW, session=session)
        assert found(memories) == []
    assert found(memories) == ["new"]


def test_with_manual_lag_nothing_is_seen_until_the_flush(open_standin: Open, clock: Clock) -> None:
    standin, memories = open_standin(lag=None)
    memories.insert_one(at_angle(1, 0.0))
    clock.now += 1e6
    assert found(memories) == []
    standin.flush()
    assert found(memories) == [1]
    memories.insert_one(at_angle(2, 0.0))
    assert found(memories) == [1]


def test_with_a_lag_in_seconds_searches_see_the_past(open_standin: Open, clock: Clock) -> None:
    standin, memories = open_standin(lag=10.0)
    memories.insert_one(at_angle(1, 0.0, s="a"))
    clock.now += 6
    memories.update_one({"_id": 1}, {"$set": {"s": "b"}})
    memories.insert_one(at_angle(2, 0.0, s="b"))
    assert found(memories) == []
    clock.now += 4
    assert found(memories, filter={"s": "a"}) == [1]
    assert found(memories, filter={"s": "b"}) == []
    clock.now += 6
    assert found(memories, filter={"s": "b"}) == [1, 2]
    memories.insert_one(at_angle(3, 0.0, s="b"))
    assert found(memories) == [1, 2]
    standin.flush()
    assert found(memories) == [1, 2, 3]


def test_a_new_index_does_not_keep_the_others_from_seeing(open_standin: Open) -> None:
    _, memories = open_standin()
    memories.insert_one(at_angle(1, 0.0))
    memories.create_search_index(model(name="new"))
    assert found(memories) == [1]
    assert found(memories, index="new") == [1]


def test_a_new_index_has_synced_what_the_others_have_not_seen(open_standin: Open) -> None:
    _, memories = open_standin(lag=None)
    memories.insert_one(at_angle(1, 0.0))
    memories.create_search_index(model(name="new"))
    assert found(memories, index="new") == [1]
    assert found(memories) == []


def test_the_lag_can_be_changed_and_what_was_seen_stays_seen(open_standin: Open, clock: Clock) -> None:
    standin, memories = open_standin()
    memories.insert_one(at_angle(1, 0.0))
    standin.lag = None
    memories.insert_one(at_angle(2, 0.0))
    assert found(memories) == [1]
    standin.lag = 10.0
    assert found(memories) == [1]
    clock.now += 10
    assert found(memories) == [1, 2]
    memories.insert_one(at_angle(3, 0.0))
    standin.lag = 0.0
    assert found(memories) == [1, 2, 3]
    assert standin.lag == 0.0


def test_a_stale_index_stands_still(open_standin: Open) -> None:
    standin, memories = open_standin()
    memories.insert_one(at_angle(1, 0.0))
    standin.set_state(memories.database.name, memories.name, INDEX, "STALE")
    memories.insert_one(at_angle(2, 0.0))
    assert found(memories) == [1]
    standin.set_state(memories.database.name, memories.name, INDEX, "READY")
    assert found(memories) == [1, 2]


def test_writes_past_the_proxy_are_seen_after_a_flush(open_standin: Open, engine_uri: str) -> None:
    standin, memories = open_standin()
    assert found(memories) == []
    with MongoClient[Document](engine_uri) as past:
        past[memories.database.name][memories.name].insert_one(at_angle(1, 0.0))
    assert found(memories) == []
    standin.flush()
    assert found(memories) == [1]


def test_many_changes_are_read_as_a_whole(open_standin: Open) -> None:
    _, memories = open_standin()
    memories.insert_many([at_angle(n, 0.0) for n in range(250)])
    assert len(found(memories, limit=100)) == 100
    memories.delete_many({"_id": {"$gte": 5}})
    assert found(memories) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("query", "known"),
    [
        ({"_id": "a"}, {key_of("a")}),
        ({"_id": "a", "s": 1}, {key_of("a")}),
        ({"_id": {"$in": ["a", "b"]}}, {key_of("a"), key_of("b")}),
        ({"_id": {"$in": ["a", 1]}}, None),
        ({"_id": {"$gt": "a"}}, None),
        ({"_id": Regex("a")}, None),
        ({"_id": 1}, None),
        ({}, None),
    ],
)
def test_which_documents_a_write_can_touch(query: Document, known: set[bytes] | None) -> None:
    body = {"delete": "c", "$db": "d", "deletes": [{"q": query, "limit": 0}]}
    assert [(("d", "c"), known)] == written_by("delete", body)
