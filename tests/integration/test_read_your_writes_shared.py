"""The memory of recent writes among backends, tenants and threads, and how large it may grow."""

from __future__ import annotations

from typing import Any

import pytest
from crewai.memory.types import MemoryRecord

from crewai_mongodb_memory import MongoStorageBackend
from crewai_mongodb_memory.operations.recent_writes import MOST_RECORDS, RecentWrites
from crewai_mongodb_memory.pure.criteria import Criteria
from tests.atlas_standin import AtlasStandin
from tests.stores import QUERY, MakeBackend, at_once, distant


def found(backend: MongoStorageBackend, **criteria: Any) -> list[str]:
    """The ids of what a search finds beside the old records, which it finds too unless criteria leave them out."""
    ids = [hit.id for hit, _ in backend.search(QUERY, **criteria)]
    assert criteria or any(one.startswith("old") for one in ids)
    return [one for one in ids if not one.startswith("old")]


@pytest.fixture
def make(atlas: AtlasStandin, make_atlas_backend: MakeBackend) -> MakeBackend:
    """Makes backends on one store, whose index knows ``old`` in three tenants, and nothing that is written later."""

    def made(**arguments: Any) -> MongoStorageBackend:
        return make_atlas_backend(**{"dimensions": 2, **arguments})

    for tenant in (None, "acme", "other"):
        made(tenant=tenant, read_your_writes=0).save([distant(f"old {tenant}", 9.0, scope="/old")])
    atlas.lag = None
    return made


@pytest.mark.parametrize(
    "arguments",
    [{}, {"retryReads": False}, {"read_your_writes": 30.0}, {"search_mode": "auto"}, {"search_mode": "exact"}],
    ids=repr,
)
def test_what_one_backend_wrote_another_of_the_same_process_finds(make: MakeBackend, arguments: dict[str, Any]) -> None:
    writer, reader = make(**arguments), make()
    writer.save([distant("a"), distant("b", 0.1)])
    assert found(reader) == ["a", "b"]
    writer.update(distant("b", 0.1, scope="/moved"))
    assert found(reader, scope_prefix="/moved") == ["b"]
    writer.delete(record_ids=["a"])
    assert found(reader) == ["b"]


def test_the_same_server_said_in_another_way_is_the_same_store(atlas: AtlasStandin, make: MakeBackend) -> None:
    make(connection_string=f"{atlas.uri}&retryReads=false").save([distant("a")])
    assert found(make()) == ["a"]


def test_another_collection_is_another_store(make: MakeBackend) -> None:
    make(collection_name="others").save([distant("a")])
    assert found(make()) == []


def test_a_tenant_never_sees_what_another_has_just_written(make: MakeBackend) -> None:
    acme, other, everyone = make(tenant="acme"), make(tenant="other"), make()
    acme.save([distant("a")])
    other.save([distant("b", 0.1)])
    assert (found(acme), found(other), found(everyone)) == (["a"], ["b"], ["a", "b"])
    acme.delete(record_ids=["a"])
    assert (found(acme), found(other), found(everyone)) == ([], ["b"], ["b"])


def test_a_record_of_a_tenant_that_a_backend_without_one_saves_again_stays_found(make: MakeBackend) -> None:
    acme = make(tenant="acme")
    acme.save([distant("a", 5.0)])
    make().save([distant("a", 0.0)])
    assert found(acme) == ["a"]
    assert acme.search(QUERY)[0][1] == pytest.approx(1.0)


def test_threads_that_write_and_search_at_once_disturb_nobody(make: MakeBackend) -> None:
    def work(number: int) -> None:
        backend = make()
        for turn in range(5):
            backend.save([distant(f"{number}-{turn}", scope=f"/t{number}")])
            backend.update(distant(f"{number}-{turn}", scope=f"/t{number}", categories=["c"]))
            assert len(found(backend, scope_prefix=f"/t{number}", categories=["c"])) == 1
            backend.delete(scope_prefix=f"/t{number}")
            assert found(backend, scope_prefix=f"/t{number}") == []

    at_once(work, range(4))


# Bounds


def test_an_update_of_the_same_record_again_and_again_costs_searches_one_hit_more(
    atlas: AtlasStandin, make: MakeBackend
) -> None:
    backend = make()
    backend.save([distant("a")])
    for number in range(20):
        backend.update(distant("a", number / 10))
    backend.search(QUERY)
    atlas.commands.clear()
    backend.search(QUERY, limit=5)
    assert atlas.commands[0][1]["pipeline"][0]["$vectorSearch"]["limit"] <= 6


def test_an_update_that_changes_nothing_of_what_is_searched_asks_for_no_vector(
    atlas: AtlasStandin, make: MakeBackend
) -> None:
    backend = make()
    backend.save([distant("a")])
    atlas.commands.clear()
    backend.update(MemoryRecord(id="a", content="changed", importance=0.9))
    assert [name for name, _ in atlas.commands] == ["update"]


def document(record_id: str) -> dict[str, Any]:
    return {"_id": record_id, "scope_ancestors": ["/"], "categories": [], "metadata_tokens": [], "embedding": [1.0]}


def test_a_process_that_only_writes_keeps_no_more_than_a_window_of_it() -> None:
    recent = RecentWrites(60)
    for second in range(500):
        recent.wrote([document(str(second))], None, float(second))
    assert len(recent._written) <= 100


def test_a_large_delete_by_id_does_not_compare_each_record_with_each_id() -> None:
    class Counted(str):
        comparisons = 0
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            Counted.comparisons += 1
            return super().__eq__(other)

    recent = RecentWrites(60)
    recent.wrote([document(f"r{number}") for number in range(MOST_RECORDS)], None, 0.0)
    ids = tuple(Counted(f"x{number}") for number in range(1000))
    recent.removed(Criteria(None, record_ids=ids))
    assert len(recent._written) == MOST_RECORDS
    assert Counted.comparisons < 100_000
