"""What a process wrote is found at once although the index lags, and what it deleted or moved never comes back.

Nothing reaches the index of these tests before ``atlas.flush()``. An outsider plays another process: it shares no
memory of recent writes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timezone
from functools import partial
from typing import Any

import pytest
from crewai import Memory
from crewai.memory.analyze import ConsolidationPlan
from crewai.memory.types import MemoryRecord
from pymongo.errors import ConnectionFailure

from crewai_mongodb_memory import InvalidRecordError, MongoStorageBackend
from crewai_mongodb_memory.operations.recent_writes import RecentWrites
from tests.atlas_standin import AtlasStandin
from tests.scripted import ScriptedLLM, embed_words
from tests.stores import QUERY, Clock, MakeBackend, asked, collection_of, distant, ids, record

FIELDS: dict[str, Any] = {"scope": "/x/y", "categories": ["c"], "metadata": {"k": 1}}
CRITERIA: dict[str, Any] = {"scope_prefix": "/x", "categories": ["c", "d"], "metadata_filter": {"k": 1}}


def ten(**fields: Any) -> list[MemoryRecord]:
    """Records r0, the nearest, to r9."""
    return [distant(f"r{number}", number / 10, **fields) for number in range(10)]


def elsewhere(backend: MongoStorageBackend) -> MongoStorageBackend:
    """The backend as if it were in another process."""
    backend._store.recent = RecentWrites()
    return backend


@pytest.fixture
def make(make: MakeBackend) -> MakeBackend:
    return partial(make, dimensions=2)


@pytest.fixture
def backend(atlas: AtlasStandin, make: MakeBackend) -> MongoStorageBackend:
    """A backend on a store whose index knows one distant record, ``old``, and nothing that is written later."""
    backend = make()
    elsewhere(make(read_your_writes=0)).save([distant("old", 100.0, **FIELDS)])
    atlas.lag = None
    return backend


@pytest.fixture
def outsider(make: MakeBackend, backend: MongoStorageBackend) -> MongoStorageBackend:
    """Another process on the same store."""
    assert backend.count() == 1
    return elsewhere(make(read_your_writes=0))


# Saving and updating


def test_what_was_saved_is_found_at_once_and_each_time(backend: MongoStorageBackend) -> None:
    backend.save([distant("new", **FIELDS)])
    for _ in range(20):
        assert ids(backend.search(QUERY, **CRITERIA)) == ["new", "old"]


@pytest.mark.parametrize("name", sorted(CRITERIA))
def test_a_recent_record_has_to_meet_every_filter(backend: MongoStorageBackend, name: str) -> None:
    backend.save([distant("new", scope="/xy", categories=["e"], metadata={"k": 2})])
    assert ids(backend.search(QUERY, **{name: CRITERIA[name]})) == ["old"]


def test_an_update_is_found_by_what_it_changed(backend: MongoStorageBackend) -> None:
    backend.save([distant("new", 50.0, **FIELDS)])
    backend.update(distant("new", 0.0, scope="/z", categories=["f"], metadata={"k": 9}))
    assert ids(backend.search(QUERY, "/x")) == ["old"]
    criteria: list[dict[str, Any]] = [{"scope_prefix": "/z"}, {"categories": ["f"]}, {"metadata_filter": {"k": 9}}]
    for one in criteria:
        assert [(hit.id, hit.scope, score) for hit, score in backend.search(QUERY, **one)] == [("new", "/z", 1.0)]


def test_an_update_of_what_the_index_knows_counts_as_well(backend: MongoStorageBackend) -> None:
    backend.update(MemoryRecord(id="old", content="changed", embedding=QUERY))
    assert [(hit.content, score) for hit, score in backend.search(QUERY, **CRITERIA)] == [("changed", 1.0)]


@pytest.mark.parametrize("embedding", [None, [0.0, 0.0]], ids=["none", "zeros"])
def test_a_record_saved_again_with_nothing_to_find_it_by_is_found_no_more(
    backend: MongoStorageBackend, embedding: list[float] | None
) -> None:
    backend.save([distant("new")])
    backend.save([MemoryRecord(id="old", content="old", embedding=embedding)])
    assert ids(backend.search(QUERY)) == ["new"]


@pytest.mark.parametrize(("later", "commands"), [(60, ["aggregate", "find"]), (61, ["aggregate", "find", "find"])])
@pytest.mark.usefixtures("backend")
def test_after_its_seconds_a_write_is_found_by_an_exact_search(
    atlas: AtlasStandin,
    make: MakeBackend,
    backend: MongoStorageBackend,
    clock: Clock,
    later: float,
    commands: list[str],
) -> None:
    assert backend.count() == 1
    writer = make(read_your_writes=60)
    writer.save([distant("new", **FIELDS)])
    writer.search(QUERY)
    clock.now += later
    atlas.commands.clear()
    assert ids(writer.search(QUERY)) == ["new", "old"]
    assert [name for name, _ in atlas.commands] == commands


def test_what_was_written_before_a_save_failed_is_found(make: MakeBackend, backend: MongoStorageBackend) -> None:
    make(tenant="theirs").save([distant("theirs")])
    with pytest.raises(InvalidRecordError):
        make(tenant="mine").save([distant("mine"), distant("theirs")])
    assert ids(make(tenant="mine").search(QUERY)) == ["mine"]
    assert backend.count() == 3


def test_the_asynchronous_twins_remember_too(backend: MongoStorageBackend) -> None:
    async def write_and_search() -> list[str]:
        async with backend:
            await backend.asave([distant("a"), distant("b", 0.1)])
            await backend.aupdate(distant("b", 0.2, scope="/z"))
            await backend.adelete(record_ids=["a"])
            return ids(await backend.asearch(QUERY, "/z"))

    assert asyncio.run(write_and_search()) == ["b"]


def test_the_same_fact_remembered_ten_times_is_one_record(atlas: AtlasStandin, make_atlas_backend: MakeBackend) -> None:
    backend = make_atlas_backend(dimensions=64)
    backend.ensure_indexes()
    atlas.lag = None
    # The model consolidates: what is known already is not inserted again.
    llm = ScriptedLLM({ConsolidationPlan: ConsolidationPlan(actions=[], insert_new=False)})
    memory = Memory(storage=backend, llm=llm, embedder=embed_words)
    for _ in range(10):
        memory.remember("Ada drinks green tea every morning")
    assert backend.count() == 1


# Round trips


def test_once_the_index_has_caught_up_a_search_is_one_command_again(
    atlas: AtlasStandin, backend: MongoStorageBackend
) -> None:
    backend.save(ten())
    backend.search(QUERY)
    asked(atlas)
    assert len(backend.search(QUERY)) == 10
    assert asked(atlas) == ["$vectorSearch", "find"]
    atlas.flush()
    assert len(backend.search(QUERY)) == 10
    assert asked(atlas) == ["$vectorSearch"]


def test_recent_records_that_are_not_among_the_nearest_cost_nothing(
    atlas: AtlasStandin, backend: MongoStorageBackend
) -> None:
    backend.save(ten())
    atlas.flush()
    backend.save([distant(f"far{number}", 200.0) for number in range(20)])
    backend.search(QUERY)
    asked(atlas)
    assert len(backend.search(QUERY, limit=5)) == 5
    assert asked(atlas) == ["$vectorSearch"]


# Deleting and moving


SAVED = ["here", "here and indexed", "elsewhere and indexed"]


@pytest.fixture
def ten_saved(
    request: pytest.FixtureRequest, atlas: AtlasStandin, backend: MongoStorageBackend, outsider: MongoStorageBackend
) -> None:
    """Ten records in /ten, as the parameter says."""
    (outsider if "elsewhere" in request.param else backend).save(ten(scope="/ten"))
    if "indexed" in request.param:
        atlas.flush()


@pytest.mark.usefixtures("ten_saved")
@pytest.mark.parametrize("ten_saved", SAVED, indirect=True)
@pytest.mark.parametrize("by", ["this process", "another process"])
def test_after_the_five_nearest_are_deleted_the_other_five_are_found(
    backend: MongoStorageBackend, outsider: MongoStorageBackend, by: str
) -> None:
    assert ids(backend.search(QUERY, "/ten", limit=5)) == ["r0", "r1", "r2", "r3", "r4"]
    (backend if by == "this process" else outsider).delete(record_ids=[f"r{number}" for number in range(5)])
    for scope, limit in (("/ten", 5), ("/ten", 10), ("/", 5)):
        assert ids(backend.search(QUERY, scope, limit=limit)) == ["r5", "r6", "r7", "r8", "r9"]


@pytest.mark.usefixtures("ten_saved")
@pytest.mark.parametrize("ten_saved", SAVED, indirect=True)
@pytest.mark.parametrize("by", ["this process", "another process"])
def test_after_the_five_nearest_have_moved_the_other_five_are_found(
    backend: MongoStorageBackend, outsider: MongoStorageBackend, by: str
) -> None:
    for number in range(5):
        (backend if by == "this process" else outsider).update(distant(f"r{number}", number / 10, scope="/moved"))
    assert ids(backend.search(QUERY, "/ten", limit=5)) == ["r5", "r6", "r7", "r8", "r9"]


def test_many_deletes_that_the_index_does_not_know_hide_nothing(
    atlas: AtlasStandin, backend: MongoStorageBackend, outsider: MongoStorageBackend
) -> None:
    outsider.save([distant(f"gone{number}", scope="/gone") for number in range(20)] + ten(scope="/ten"))
    atlas.flush()
    backend.reset("/gone")
    assert ids(backend.search(QUERY, limit=5)) == ["r0", "r1", "r2", "r3", "r4"]


def test_a_record_deleted_and_saved_again_is_the_new_one(atlas: AtlasStandin, backend: MongoStorageBackend) -> None:
    backend.save([distant("new", 0.0, **FIELDS)])
    atlas.flush()
    backend.delete(record_ids=["new"])
    assert ids(backend.search(QUERY)) == ["old"]
    backend.save([distant("new", 300.0, **FIELDS)])
    assert ids(backend.search(QUERY)) == ["old", "new"]


def test_after_a_reset_nothing_old_comes_back(backend: MongoStorageBackend) -> None:
    backend.save(ten())
    backend.reset()
    assert backend.search(QUERY) == []
    backend.save([distant("new")])
    assert ids(backend.search(QUERY)) == ["new"]


@pytest.mark.parametrize("document", [{}, {"created_at": "yesterday"}, {"categories": None, "scope_ancestors": None}])
def test_a_document_that_is_no_record_breaks_no_delete_and_no_search(
    backend: MongoStorageBackend, document: dict[str, Any]
) -> None:
    odd = {"_id": "odd", "content": "odd", "embedding": QUERY} | document
    collection_of(backend).insert_one(odd)
    backend.update(MemoryRecord(id="odd", content="changed"))
    backend.save([distant("new", **FIELDS)])
    assert ids(backend.search(QUERY, **CRITERIA)) == ["new", "old"]
    assert backend.delete(older_than=datetime(2100, 1, 1, tzinfo=timezone.utc)) == 2


def test_what_another_process_embedded_anew_has_the_score_of_what_it_is_now(
    atlas: AtlasStandin, backend: MongoStorageBackend, outsider: MongoStorageBackend
) -> None:
    backend.save([distant("new", 0.0)])
    outsider.update(MemoryRecord(id="new", content="something else", embedding=[0.0, 1.0]))
    atlas.flush()
    scores = {hit.content: score for hit, score in backend.search(QUERY)}
    assert scores["something else"] == pytest.approx(0.0, abs=1e-6)


# What may have changed since


def test_what_another_process_embedded_anew_is_found_by_what_it_is_now(
    atlas: AtlasStandin, backend: MongoStorageBackend, outsider: MongoStorageBackend
) -> None:
    backend.save([distant("new", 0.0)])
    outsider.update(MemoryRecord(id="new", content="something else", embedding=[0.0, 1.0]))
    atlas.flush()
    assert ids(backend.search([0.0, 1.0], min_score=0.999, limit=1)) == ["new"]


@pytest.mark.parametrize("is_indexed", [False, True])
@pytest.mark.parametrize("write", ["save", "update"])
def test_a_write_whose_answer_was_lost_is_found_as_it_is(
    atlas: AtlasStandin, make: MakeBackend, write: str, is_indexed: bool
) -> None:
    atlas.lag = None
    once = make(retryWrites=False)
    once.save([distant("new", 0.0)])
    atlas.cut_connection_next("update" if write == "save" else "findAndModify", when="after")
    with pytest.raises(ConnectionFailure):
        getattr(once, write)(*([[record("new", [0.0, 1.0])]] if write == "save" else [record("new", [0.0, 1.0])]))
    if is_indexed:
        atlas.flush()
    assert ids(once.search([0.0, 1.0], limit=1)) == ["new"]


def test_what_a_save_stored_before_it_failed_is_found(atlas: AtlasStandin, make: MakeBackend) -> None:
    outsider = elsewhere(make(read_your_writes=0))
    outsider.save([distant(f"old{number}", 5.0) for number in range(5)])
    atlas.lag = None
    backend = make()
    atlas.cut_connection_next("insert", when="after", times=2)
    with pytest.raises(ConnectionFailure):
        backend.save([distant("new", 0.0)])
    assert ids(backend.search(QUERY, limit=1)) == ["new"]


def test_behind_what_is_gone_the_next_best_is_found(
    backend: MongoStorageBackend, outsider: MongoStorageBackend, atlas: AtlasStandin
) -> None:
    outsider.save([distant(f"far{number}", 5.0) for number in range(5)])
    atlas.flush()
    backend.save(ten())
    outsider.delete(record_ids=[f"r{number}" for number in range(5)])
    assert ids(backend.search(QUERY, limit=5)) == ["r5", "r6", "r7", "r8", "r9"]


def test_behind_what_is_of_no_concern_to_a_tenant_its_own_is_found(atlas: AtlasStandin, make: MakeBackend) -> None:
    acme, everybody = make(tenant="acme"), make()
    elsewhere(make(tenant="acme", read_your_writes=0)).save([distant(f"far{number}", 5.0) for number in range(5)])
    atlas.lag = None
    everybody.save([distant(f"of nobody {number}", 0.0) for number in range(5)])
    acme.save([distant("new", 0.1)])
    assert ids(acme.search(QUERY, limit=5))[0] == "new"


FAR = 9.0


@pytest.mark.parametrize(
    ("change", "limit"),
    [
        (lambda b, _: (b.delete(record_ids=["d"]), b.save([distant("w", FAR)])), 1),
        (lambda b, _: b.update(distant("d", FAR)), 1),
        (lambda b, _: b.save([distant("d", FAR)]), 2),
        (lambda b, _: (b.update(distant("d", 0.0, scope="/z")), b.save([distant("w", FAR, scope="/a")])), 1),
        (
            lambda b, _: (
                b.save([MemoryRecord(id="d", content="d", scope="/a")]),
                b.save([distant("w", FAR, scope="/a")]),
            ),
            1,
        ),
        (lambda b, _: (b.delete(record_ids=["d", "e"]), b.save([distant("v", FAR), distant("w", FAR + 1)])), 2),
        (lambda b, other: (b.save([distant("w", FAR, scope="/a")]), other.delete(record_ids=["d"])), 1),
        (lambda b, other: (b.save([distant("n", 0.0), distant("w", FAR)]), other.delete(record_ids=["n", "d"])), 1),
    ],
)
def test_nothing_far_takes_the_place_of_what_is_gone(
    atlas: AtlasStandin, make: MakeBackend, change: Callable[[Any, Any], Any], limit: int
) -> None:
    other = elsewhere(make(read_your_writes=0))
    other.save([distant(name, number / 10, scope="/a") for number, name in enumerate("def")])
    atlas.lag = None
    backend, exact = make(), make(search_mode="exact")
    change(backend, other)
    for scope in ("/", "/a"):
        assert ids(backend.search(QUERY, scope, limit=limit)) == ids(exact.search(QUERY, scope, limit=limit))


def test_a_tenant_that_deletes_makes_nobody_forget_what_is_not_its_own(atlas: AtlasStandin, make: MakeBackend) -> None:
    elsewhere(make(read_your_writes=0)).save([distant("far", FAR)])
    atlas.lag = None
    everybody, acme = make(), make(tenant="acme")
    everybody.save([distant("near")])
    assert acme.delete(record_ids=["near"]) == acme.delete(scope_prefix="/") == 0
    assert ids(everybody.search(QUERY, limit=1)) == ["near"]
