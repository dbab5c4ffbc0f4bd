"""The backend against a real server over the wire: what it sends, what it refuses, and whom it keeps apart."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable
from contextlib import nullcontext
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import bson
import numpy as np
import pytest
from crewai.memory.types import MemoryRecord
from pymongo import ReadPreference
from pymongo.errors import BulkWriteError

from crewai_mongodb_memory import (
    DimensionMismatchError,
    ExactSearchTooLargeError,
    InvalidArgumentError,
    InvalidRecordError,
    MongoStorageBackend,
)
from crewai_mongodb_memory.pure.documents import MAX_DOCUMENT_BYTES, to_document
from tests.stores import Listener, MakeBackend, at_once, collection_of

EDD = (Path(__file__).parents[2] / "EDD.md").read_text(encoding="utf-8")
DIMENSIONS = 8
LONG_AGO = datetime(2024, 1, 1)


def vector(*components: float) -> list[float]:
    return [*components, *[0.0] * (DIMENSIONS - len(components))]


def record(content: str = "a fact", **fields: Any) -> MemoryRecord:
    return MemoryRecord(**{"content": content, "embedding": vector(1.0), **fields})


@pytest.fixture
def commands() -> Listener:
    return Listener()


@pytest.fixture
def watched(make_backend: MakeBackend, commands: Listener) -> MongoStorageBackend:
    """A backend whose commands are seen, on a store that is set up and holds three records."""
    backend = make_backend(event_listeners=[commands])
    backend.save([record(f"fact {n}", id=f"r{n}", scope=f"/s/{n}", categories=["c"]) for n in range(3)])
    commands.take()
    return backend


# Round trips

CALLS: list[tuple[str, Callable[[MongoStorageBackend], Any], list[str]]] = [
    ("save", lambda b: b.save([record()]), ["insert"]),
    ("save of 1000", lambda b: b.save([record() for _ in range(1000)]), ["insert"]),
    ("save of one that is there", lambda b: b.save([record(id="r1")]), ["insert", "update"]),
    ("save of some that are there", lambda b: b.save([record(id=f"r{n}") for n in range(5)]), ["insert", "update"]),
    ("save of nothing", lambda b: b.save([]), []),
    ("search", lambda b: b.search(vector(1.0)), ["find", "find"]),
    ("search that finds nothing", lambda b: b.search(vector(1.0), scope_prefix="/none"), ["find"]),
    ("search of a limit of 0", lambda b: b.search(vector(1.0), limit=0), []),
    ("search for zeros", lambda b: b.search(vector()), []),
    ("search for nothing", lambda b: b.search([]), []),
    ("update", lambda b: b.update(record(id="r1")), ["update"]),
    ("touch_records", lambda b: b.touch_records(["r1", "r2"]), ["update"]),
    ("touch of nothing", lambda b: b.touch_records([]), []),
    ("delete", lambda b: b.delete(record_ids=["r1"], scope_prefix="/s"), ["delete"]),
    ("delete of nothing", lambda b: b.delete(record_ids=[]), []),
    ("reset", lambda b: b.reset("/s"), ["delete"]),
    ("get_record", lambda b: b.get_record("r1"), ["find"]),
    ("list_records", lambda b: b.list_records("/s"), ["find"]),
    ("count", lambda b: b.count("/s"), ["aggregate"]),
    ("count of all", lambda b: b.count(), ["aggregate"]),
    ("get_scope_info", lambda b: b.get_scope_info("/s"), ["aggregate"]),
    ("list_scopes", lambda b: b.list_scopes("/s"), ["aggregate"]),
    ("list_categories", lambda b: b.list_categories("/s"), ["aggregate"]),
]


@pytest.mark.parametrize(("call", "expected"), [call[1:] for call in CALLS], ids=[call[0] for call in CALLS])
def test_each_method_is_so_many_round_trips(
    watched: MongoStorageBackend,
    commands: Listener,
    call: Callable[[MongoStorageBackend], Any],
    expected: list[str],
) -> None:
    call(watched)
    assert commands.take() == expected


@pytest.mark.parametrize(
    ("method", "sent"),
    re.findall(r"^\| `(\w+)` \| ((?:find|insert|update|delete|aggregate)[a-z, ]*) \| ", EDD, re.MULTILINE),
)
def test_each_method_sends_what_the_entity_design_document_says(
    watched: MongoStorageBackend, commands: Listener, method: str, sent: str
) -> None:
    arguments: dict[str, Any] = {
        "save": [record()],
        "search": vector(1.0),
        "update": record(id="r1"),
        "get_record": "r1",
        "touch_records": ["r1"],
    }
    getattr(watched, method)(arguments.get(method, "/s"))
    assert ", ".join(commands.take()) == sent


def test_a_first_save_sets_the_store_up_and_later_ones_do_not(make_backend: MakeBackend, commands: Listener) -> None:
    backend = make_backend(event_listeners=[commands])
    backend.save([record()])
    assert commands.take() == ["find", "insert", "listIndexes", "createIndexes"]
    backend.save([record()])
    assert commands.take() == ["insert"]


def test_only_the_winners_are_fetched_and_without_their_embeddings(
    watched: MongoStorageBackend, commands: Listener
) -> None:
    hits = watched.search(vector(1.0), limit=2)
    assert [hit.embedding for hit, _ in hits] == [None, None]
    scan, fetch = (event.command for event in commands.sent)
    assert scan["projection"] == {"embedding": 1}
    assert fetch["projection"] == {"embedding": 0}
    assert fetch["filter"] == {"_id": {"$in": ["r0", "r1"]}}


def test_a_touch_and_a_change_of_importance_leave_the_vector_alone(
    watched: MongoStorageBackend, commands: Listener
) -> None:
    watched.touch_records(["r1"])
    watched.update(MemoryRecord(id="r1", content="changed", importance=0.9))
    touch, update = (event.command["updates"][0]["u"]["$set"] for event in commands.sent)
    assert list(touch) == ["last_accessed"]
    assert sorted(update) == ["content", "importance"]


def test_reads_go_to_the_primary_and_dates_are_naive_whatever_the_options_say(make_backend: MakeBackend) -> None:
    backend = make_backend(readPreference="secondaryPreferred", tz_aware=True)
    backend.save([record(id="r1", created_at=LONG_AGO)])
    assert collection_of(backend).read_preference == ReadPreference.PRIMARY
    assert [one.created_at for one in backend.list_records()] == [LONG_AGO]


# Indexes


def test_the_indexes_are_those_of_the_schema(make_backend: MakeBackend) -> None:
    backend = make_backend()
    backend.save([record()])
    names = set(collection_of(backend).index_information())
    plain = {"_id_", "scope_1", "categories_1", "created_at_-1__id_1", "scope_ancestors_1_created_at_-1__id_1"}
    assert names == plain
    make_backend(tenant="acme").save([record()])
    assert set(collection_of(backend).index_information()) - plain == {
        "tenant_1_scope_1",
        "tenant_1_created_at_-1__id_1",
        "tenant_1_scope_ancestors_1_created_at_-1__id_1",
    }


@pytest.mark.parametrize(
    ("call", "index"),
    [
        (lambda b: b.list_records(), "created_at_-1__id_1"),
        (lambda b: b.list_records("/s/1"), "scope_ancestors_1_created_at_-1__id_1"),
        (lambda b: b.search(vector(1.0), scope_prefix="/s/1"), "scope_ancestors_1_created_at_-1__id_1"),
        (lambda b: b.search(vector(1.0), categories=["c"]), "categories_1"),
        (lambda b: b.get_record("r1"), "_id_"),
    ],
)
def test_what_is_read_is_read_by_an_index(
    watched: MongoStorageBackend, commands: Listener, call: Callable[[MongoStorageBackend], Any], index: str
) -> None:
    call(watched)
    sent = commands.sent[0].command
    asked = {name: sent[name] for name in ("find", "filter", "sort", "projection", "limit") if name in sent}
    plan = collection_of(watched).database.command("explain", asked)
    assert index in str(plan["queryPlanner"]["winningPlan"])


def test_an_index_that_stands_in_the_way_is_told_of_and_left_alone(
    make_backend: MakeBackend, caplog: pytest.LogCaptureFixture
) -> None:
    backend = make_backend()
    collection_of(backend).create_index([("scope", 1), ("content", 1)], name="scope_1")
    backend.save([record()])
    backend.save([record()])
    assert [line.message for line in caplog.records if "scope_1" in line.message] == [
        "'memories' has an index 'scope_1' with other keys or options than it needs. "
        "Drop it, and the next start creates it as it should be."
    ]
    assert "categories_1" in collection_of(backend).index_information()


def test_without_auto_setup_nothing_is_created(make_backend: MakeBackend) -> None:
    backend = make_backend(auto_setup=False)
    backend.save([record()])
    assert set(collection_of(backend).index_information()) == {"_id_"}


def test_a_reset_keeps_collection_and_indexes(backend: MongoStorageBackend) -> None:
    backend.save([record()])
    before = collection_of(backend).index_information()
    backend.reset()
    assert collection_of(backend).index_information() == before


# What is refused, with nothing written

BAD_RECORDS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"metadata": {"price": object()}}, InvalidRecordError, "record 'bad': metadata.price"),
    ({"metadata": {"n": 2**70}}, InvalidRecordError, "metadata.n"),
    ({"content": "\ud83d"}, InvalidRecordError, "content"),
    ({"content": "x" * 17_000_000}, InvalidRecordError, "16,777,216"),
    ({"embedding": [float("nan")] * DIMENSIONS}, InvalidRecordError, "embedding"),
    ({"embedding": [1.0]}, DimensionMismatchError, "dimension"),
    ({"private": "false"}, InvalidRecordError, "private: is 'false'"),
    ({"created_at": datetime.min.replace(tzinfo=timezone(timedelta(hours=1)))}, InvalidRecordError, "created_at: is"),
]


@pytest.mark.parametrize(("fields", "error", "text"), BAD_RECORDS, ids=[case[2] for case in BAD_RECORDS])
def test_one_bad_record_of_ten_is_named_and_none_is_written(
    watched: MongoStorageBackend, commands: Listener, fields: dict[str, Any], error: type[Exception], text: str
) -> None:
    bad = record(id="bad").model_copy(update=fields)
    with pytest.raises(error, match=text):
        watched.save([*(record() for _ in range(9)), bad])
    with pytest.raises(error, match=text):
        watched.update(bad)
    assert not {"insert", "update"} & set(commands.take())
    assert watched.count() == 3


@pytest.mark.parametrize(
    "call",
    [
        lambda b: b.delete(),
        lambda b: b.delete(scope_prefix=""),
        lambda b: b.delete(metadata_filter={"owner": {"$ne": ""}}),
        lambda b: b.delete(record_ids=[{"$gt": ""}]),
        lambda b: b.search(vector(1.0), metadata_filter={"$where": "1"}),
        lambda b: b.search(vector(1.0), scope_prefix={"$gt": ""}),
        lambda b: b.search([[1.0] * DIMENSIONS]),
        lambda b: b.search([float("inf")] * DIMENSIONS),
        lambda b: b.search(vector(1.0), min_score=float("nan")),
        lambda b: b.get_record({"$ne": None}),
        lambda b: b.touch_records([{"$gt": ""}]),
        lambda b: b.count(["/a"]),
    ],
)
def test_bad_arguments_are_refused_before_anything_is_sent(
    watched: MongoStorageBackend, commands: Listener, call: Callable[[MongoStorageBackend], Any]
) -> None:
    with pytest.raises(InvalidArgumentError):
        call(watched)
    assert commands.take() == []


def test_metadata_of_every_kind_comes_back_and_is_found(backend: MongoStorageBackend) -> None:
    metadata = {"a.b": 1, "$x": [2, {"y": None}], "when": LONG_AGO, "set": {"p", "q"}, "m": {7: 1}, "n": np.int32(5)}
    backend.save([record(id="r1", metadata=metadata)])
    found = backend.get_record("r1")
    assert found is not None
    assert found.metadata == {
        "a.b": 1,
        "$x": [2, {"y": None}],
        "when": LONG_AGO,
        "set": ["p", "q"],
        "m": {"7": 1},
        "n": 5,
    }
    for wanted in ({"a.b": 1}, {"when": LONG_AGO}, {"set": {"p"}}, {"m": {7: 1}}, {"n": 5.0}):
        assert len(backend.search(vector(1.0), metadata_filter=wanted)) == 1, wanted
    assert backend.search(vector(1.0), metadata_filter={"a": {"b": 1}}) == []
    backend.save([record(id="r1", metadata=metadata)])
    assert backend.count() == 1


BAD_CALLS: list[tuple[str, Callable[[Any], Any]]] = [
    ("records", lambda b: b.save(None)),
    ("record_ids", lambda b: b.touch_records(5)),
    ("record_ids", lambda b: b.touch_records(None)),
    ("record_ids", lambda b: b.delete(record_ids=5)),
    ("categories", lambda b: b.delete(categories=5)),
    ("categories", lambda b: b.search(vector(1.0), categories=5)),
    ("metadata filter", lambda b: b.search(vector(1.0), metadata_filter=0)),
    ("metadata filter", lambda b: b.search(vector(1.0), metadata_filter=np.array([1, 2]))),
    ("query embedding", lambda b: b.search([10**400, 0])),
    ("min_score", lambda b: b.search(vector(1.0), min_score=10**400)),
    ("timeout", lambda b: b.ensure_indexes(timeout=10**400)),
    ("timeout", lambda b: b.wait_until_searchable([], timeout="5")),
    ("on_progress", lambda b: b.ensure_indexes(on_progress=5)),
]


@pytest.mark.parametrize(("name", "call"), BAD_CALLS)
def test_an_argument_that_cannot_be_used_is_named_before_anything_is_asked(
    watched: MongoStorageBackend, commands: Listener, name: str, call: Callable[[Any], Any]
) -> None:
    with pytest.raises(InvalidArgumentError, match=name):
        call(watched)
    assert commands.take() == []


def test_a_record_that_its_tenant_makes_too_large_is_refused_before_others_are_written(
    make_backend: MakeBackend,
) -> None:
    big = record("", id="big")
    room = MAX_DOCUMENT_BYTES - len(bson.encode(to_document(big, "float32")))
    big.content = "x" * room
    for tenant, fits in (("acme", False), (None, True)):
        backend = make_backend(tenant=tenant, vector_format="float32")
        with nullcontext() if fits else pytest.raises(InvalidRecordError, match="record 'big': content"):
            backend.save([record(id="first"), big])
        assert backend.count() == (2 if fits else 0)


def test_a_duplicate_of_an_index_of_the_operators_own_is_not_taken_for_another_tenants_id(
    make_backend: MakeBackend,
) -> None:
    backend = make_backend(tenant="acme")
    backend.save([record("same")])
    collection_of(backend).create_index("content", unique=True)
    with pytest.raises(BulkWriteError, match="content"):
        backend.save([record("same")])
    assert backend.count() == 1


def test_of_two_first_saves_at_once_with_two_embedders_one_is_refused(make_backend: MakeBackend) -> None:
    backend = make_backend()
    outcomes = at_once(lambda size: refused(backend, [1.0] * size), [2, 3])
    assert sorted(outcomes) == [False, True]
    assert backend.count() == 1


def refused(backend: MongoStorageBackend, embedding: list[float]) -> bool:
    try:
        backend.save([record(embedding=embedding)])
    except DimensionMismatchError:
        return True
    return False


def test_numpy_vectors_are_welcome(backend: MongoStorageBackend) -> None:
    query = np.array(vector(1.0), dtype=np.float32)
    backend.save([record().model_copy(update={"embedding": query})])
    assert backend.search(query)[0][1] == 1.0  # type: ignore[arg-type]


def test_an_exact_search_over_its_limit_says_how_to_narrow_it(make_backend: MakeBackend) -> None:
    backend = make_backend(exact_limit=5)
    backend.save([record(scope=f"/s/{number % 2}") for number in range(6)])
    with pytest.raises(ExactSearchTooLargeError, match=r"exact_limit=5.*narrower scope"):
        backend.search(vector(1.0))
    assert len(backend.search(vector(1.0), scope_prefix="/s/1")) == 3


def test_a_huge_list_of_ids_is_taken_in_slices(watched: MongoStorageBackend, commands: Listener) -> None:
    ids = [f"unknown-{number}" for number in range(25_000)]
    assert watched.delete(record_ids=[*ids, "r1"]) == 1
    assert commands.take() == ["delete"] * 3
    watched.touch_records(ids)
    assert commands.take() == ["update"] * 3


# Dimensions


def test_the_dimensions_of_a_filled_store_are_learned_from_it(make_backend: MakeBackend) -> None:
    make_backend().save([record()])
    newcomer = make_backend()
    with pytest.raises(DimensionMismatchError, match=r"8-dimensional.*of 3 dimensions"):
        newcomer.save([record(embedding=[1.0, 2.0, 3.0])])
    with pytest.raises(DimensionMismatchError):
        newcomer.search([1.0])


def test_set_dimensions_hold_from_the_first_save_and_after_a_reset(make_backend: MakeBackend) -> None:
    backend = make_backend(dimensions=3)
    for _ in range(2):
        with pytest.raises(DimensionMismatchError):
            backend.save([record()])
        backend.reset()


def test_a_store_that_another_process_began_anew_is_asked_again(make_backend: MakeBackend) -> None:
    one, other = make_backend(), make_backend()
    one.save([record()])
    other.reset()
    other.save([record(embedding=[1.0, 0.0, 0.0])])
    one.save([record("too", embedding=[1.0, 0.0, 0.0])])
    assert len(one.search([1.0, 0.0, 0.0])) == 2


# Foreign documents


def test_foreign_documents_are_left_out_with_one_warning(
    backend: MongoStorageBackend, caplog: pytest.LogCaptureFixture
) -> None:
    backend.save([record("ours", id="r1", created_at=LONG_AGO)])
    collection_of(backend).insert_many(
        [
            {"foreign": True, "embedding": vector(1.0)},
            {"_id": "half", "content": "no scope", "embedding": vector(1.0)},
            {"_id": "odd", "content": 7, "scope": "/", "created_at": LONG_AGO, "embedding": "text"},
            {"_id": "other", "embedding": [1.0, 2.0]},
        ]
    )
    with caplog.at_level(logging.WARNING, "crewai_mongodb_memory"):
        for _ in range(2):
            assert [found.content for found in backend.list_records()] == ["ours"]
            assert [hit.content for hit, _ in backend.search(vector(1.0))] == ["ours"]
    said = [line.message for line in caplog.records]
    assert len([line for line in said if "no records" in line]) == 1
    assert len([line for line in said if "other than 8 dimensions" in line]) == 1
    assert backend.get_record("half") is None


def test_a_document_of_the_earlier_version_is_read_as_it_is(backend: MongoStorageBackend) -> None:
    collection_of(backend).insert_one(
        {
            "_id": "old",
            "content": "from 0.1.0",
            "scope": "/crew/a",
            "scope_ancestors": ["/crew", "/crew/a"],
            "categories": ["c"],
            "metadata": {"k": 1},
            "importance": 0.5,
            "created_at": LONG_AGO,
            "last_accessed": LONG_AGO,
            "embedding": vector(1.0),
            "source": None,
            "private": False,
        }
    )
    assert [hit.content for hit, _ in backend.search(vector(1.0), scope_prefix="/crew")] == ["from 0.1.0"]
    assert backend.list_scopes("/crew") == ["/crew/a"]
    assert backend.get_scope_info("/").child_scopes == ["/crew"]


# Tenants


def test_no_method_reaches_another_tenant(make_backend: MakeBackend) -> None:
    mine, theirs = make_backend(tenant="a"), make_backend(tenant="b")
    theirs.save([record("theirs", id="t1", scope="/x", categories=["c"], metadata={"k": 1}, last_accessed=LONG_AGO)])
    mine.save([record("mine", id="m1", scope="/x", categories=["c"], metadata={"k": 1})])
    before = theirs.get_record("t1")
    assert mine.get_record("t1") is None
    for found in (mine.list_records(), mine.list_records("/x"), [hit for hit, _ in mine.search(vector(1.0))]):
        assert [one.id for one in found] == ["m1"]
    assert (mine.count(), mine.count("/x")) == (1, 1)
    assert mine.get_scope_info("/").record_count == 1
    assert mine.list_categories() == {"c": 1}
    mine.update(record("stolen", id="t1"))
    mine.touch_records(["t1"])
    assert mine.delete(record_ids=["t1"]) == 0
    assert mine.delete(metadata_filter={"k": 1}, categories=["c"]) == 1
    mine.reset()
    assert theirs.get_record("t1") == before


def test_an_id_of_another_tenant_cannot_be_saved_over(make_backend: MakeBackend) -> None:
    mine, theirs = make_backend(tenant="a"), make_backend(tenant="b")
    theirs.save([record("theirs", id="t1")])
    with pytest.raises(InvalidRecordError, match="record 't1': id: belongs to another tenant"):
        mine.save([record("first", id="m1"), record("stolen", id="t1"), record("last", id="m2")])
    found = theirs.get_record("t1")
    assert found is not None
    assert found.content == "theirs"
    assert [one.id for one in mine.list_records()] == ["m1"]


def test_without_a_tenant_a_backend_sees_all_and_leaves_tenants_as_they_are(make_backend: MakeBackend) -> None:
    tenant, all_of_them = make_backend(tenant="a"), make_backend()
    tenant.save([record("of a", id="r1")])
    all_of_them.save([record("of nobody", id="r2")])
    assert all_of_them.count() == 2
    assert tenant.count() == 1
    all_of_them.save([record("still of a", id="r1")])
    assert [one.content for one in tenant.list_records()] == ["still of a"]


# Threads, loops, closing


@pytest.mark.parametrize("tenant", [None, "a"])
def test_threads_saving_the_same_ids_lose_and_double_nothing(make_backend: MakeBackend, tenant: str | None) -> None:
    backend = make_backend(tenant=tenant)
    at_once(backend.save, [[record(f"fact {number}", id=f"r{number}") for number in range(20)] for _ in range(8)])
    assert backend.count() == 20


def test_records_of_one_save_that_are_equally_old_keep_one_order(backend: MongoStorageBackend) -> None:
    backend.save([record(str(number), id=f"r{9 - number}", created_at=LONG_AGO) for number in range(10)])
    assert [one.id for one in backend.list_records()] == [f"r{number}" for number in range(10)]


def test_after_close_the_next_call_connects_again(backend: MongoStorageBackend) -> None:
    backend.save([record()])
    backend.close()
    backend.close()
    assert backend.count() == 1


def test_backends_share_a_client_until_the_last_closes(make_backend: MakeBackend) -> None:
    one, other = make_backend(), make_backend()
    one.count()
    other.count()
    client = collection_of(one).database.client
    assert collection_of(other).database.client is client
    one.close()
    assert other.count() == 0
    assert collection_of(other).database.client is client


def test_every_async_method_does_as_its_namesake(backend: MongoStorageBackend) -> None:
    async def all_of_them() -> None:
        async with backend:
            await backend.asave(
                [record("one", id="r1", scope="/a", categories=["c"]), record("two", id="r2", scope="/b")]
            )
            assert [hit.content for hit, _ in await backend.asearch(vector(1.0), scope_prefix="/a")] == ["one"]
            await backend.aupdate(MemoryRecord(id="r1", content="changed"))
            await backend.atouch_records(["r1"])
            found = await backend.aget_record("r1")
            assert found is not None
            assert found.content == "changed"
            assert found.last_accessed > LONG_AGO + timedelta(days=1)
            assert len(await backend.alist_records(limit=1)) == 1
            assert await backend.acount() == 2
            assert (await backend.aget_scope_info("/")).child_scopes == ["/a", "/b"]
            assert await backend.alist_scopes() == ["/a", "/b"]
            assert await backend.alist_categories() == {"c": 1}
            assert await backend.adelete(record_ids=["r1"]) == 1
            await backend.areset()
            assert await backend.acount() == 0
            with pytest.raises(DimensionMismatchError):
                await backend.asave([record(), record(embedding=[1.0])])

    asyncio.run(all_of_them())


def test_one_event_loop_after_another(backend: MongoStorageBackend) -> None:
    for number in range(3):
        asyncio.run(backend.asave([record(id=f"r{number}")]))
        assert len(asyncio.run(backend.asearch(vector(1.0)))) == number + 1
    assert backend.count() == 3


# Found by breaking it


def test_a_process_that_knew_another_dimension_finds_out(make_backend: MakeBackend) -> None:
    one, other = make_backend(), make_backend()
    one.save([record()])
    other.reset()
    other.save([record(embedding=[1.0, 0.0, 0.0])])
    with pytest.raises(DimensionMismatchError, match="3-dimensional"):
        one.search(vector(1.0))
    with pytest.raises(DimensionMismatchError, match="3-dimensional"):
        one.save([record()])


def test_a_save_takes_records_from_a_generator(backend: MongoStorageBackend) -> None:
    with pytest.raises(DimensionMismatchError):
        backend.save(record(embedding=[1.0] * (3 + number)) for number in range(2))  # type: ignore[arg-type]
    backend.save(record() for _ in range(2))  # type: ignore[arg-type]
    assert backend.count() == 2


def test_an_update_counts_what_was_filled_into_a_default(backend: MongoStorageBackend) -> None:
    backend.save([record(id="r1", categories=["kept"])])
    filled = MemoryRecord(id="r1", content="a fact")
    filled.metadata["k"] = 1
    backend.update(filled)
    found = backend.get_record("r1")
    assert found is not None
    assert (found.metadata, found.categories) == ({"k": 1}, ["kept"])


@pytest.mark.parametrize(
    "call",
    [
        lambda b: b.search(vector(1.0), limit=None),
        lambda b: b.search(vector(1.0), limit=1.5),
        lambda b: b.search(vector(1.0), min_score=None),
        lambda b: b.list_records(limit="3"),
        lambda b: b.touch_records("abc"),
        lambda b: b.wait_until_searchable("a"),
        lambda b: b.save([{"content": "a dict"}]),
        lambda b: b.delete(scope_prefix="  "),
    ],
)
def test_arguments_of_another_type_are_refused(
    backend: MongoStorageBackend, call: Callable[[MongoStorageBackend], Any]
) -> None:
    with pytest.raises(InvalidArgumentError):
        call(backend)


def test_two_faulty_records_within_a_minute_are_both_in_the_log(
    backend: MongoStorageBackend, caplog: pytest.LogCaptureFixture
) -> None:
    for record_id in ("r1", "r2", "r2"):
        with pytest.raises(InvalidRecordError):
            backend.save([record(id=record_id, metadata={"k": object()})])
    said = [line.getMessage() for line in caplog.records if line.levelno == logging.ERROR]
    assert [one.split(":")[1].strip() for one in said] == ["record 'r1'", "record 'r2'"]
