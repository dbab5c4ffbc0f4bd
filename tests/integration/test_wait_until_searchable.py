"""Waiting until the index finds records as they are now."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from crewai.memory.types import MemoryRecord

from crewai_mongodb_memory import (
    InvalidArgumentError,
    MongoStorageBackend,
    VectorIndexMissingError,
    VectorIndexNotReadyError,
)
from tests.atlas_standin import AtlasStandin
from tests.stores import Clock, MakeBackend, record


@pytest.fixture
def backend(atlas: AtlasStandin, make: MakeBackend) -> MongoStorageBackend:
    """A backend on a store whose index knows r0 to r4, and nothing that is written later until ``atlas.flush()``."""
    backend = make()
    backend.save([record(f"r{number}", [1.0, float(number)]) for number in range(5)])
    atlas.lag = None
    return backend


def test_it_returns_once_the_index_has_caught_up(
    atlas: AtlasStandin, backend: MongoStorageBackend, clock: Clock
) -> None:
    backend.save([record("new", [0.0, 1.0]), record("newer", [-1.0, 1.0])])
    clock.at_pause = lambda pauses: atlas.flush() if pauses == 4 else None
    backend.wait_until_searchable(["new", "r0", "newer", "new"])
    assert clock.pauses == 4


def test_what_is_known_already_is_not_waited_for(backend: MongoStorageBackend, clock: Clock) -> None:
    backend.wait_until_searchable([])
    backend.wait_until_searchable(["r0", "r4"])
    assert clock.pauses == 0


def test_it_waits_no_longer_than_it_may_and_names_what_is_missing(backend: MongoStorageBackend, clock: Clock) -> None:
    backend.save([record("new", [0.0, 1.0])])
    with pytest.raises(VectorIndexNotReadyError, match=r"1 of 2 .* 'new'"):
        backend.wait_until_searchable(["r0", "new"], timeout=3)
    assert clock.now == pytest.approx(1003, abs=0.5)


def test_it_waits_for_what_an_update_has_made_of_a_record(atlas: AtlasStandin, backend: MongoStorageBackend) -> None:
    backend.update(record("r0", [0.0, -1.0]))
    with pytest.raises(VectorIndexNotReadyError):
        backend.wait_until_searchable(["r0"], timeout=3)
    atlas.flush()
    backend.wait_until_searchable(["r0"], timeout=3)


def test_a_record_among_very_many_equal_ones_is_found(backend: MongoStorageBackend, atlas: AtlasStandin) -> None:
    same = [f"same{number}" for number in range(150)]
    backend.save([record(name, [0.0, 1.0]) for name in same])
    atlas.flush()
    backend.wait_until_searchable([same[0], same[-1]], timeout=3)


@pytest.mark.parametrize("fields", [{"embedding": None}, {"embedding": [0.0, 0.0]}, None], ids=["none", "zero", "gone"])
def test_what_no_search_can_find_is_refused(backend: MongoStorageBackend, fields: dict[str, Any] | None) -> None:
    if fields is not None:
        backend.save([MemoryRecord(id="new", content="new", **fields)])
    with pytest.raises(InvalidArgumentError, match="'new'"):
        backend.wait_until_searchable(["r0", "new"])


def test_a_record_of_another_tenant_is_as_good_as_gone(make: MakeBackend, backend: MongoStorageBackend) -> None:
    make(tenant="other").save([record("theirs", [1.0, 1.0])])
    with pytest.raises(InvalidArgumentError, match="'theirs'"):
        make(tenant="mine").wait_until_searchable(["theirs"])
    assert backend.count() == 6


@pytest.mark.parametrize("state", ["absent", "building", "no vector search"])
def test_where_searches_are_exact_there_is_nothing_to_wait_for(
    atlas: AtlasStandin, make: MakeBackend, clock: Clock, state: str
) -> None:
    atlas.pace.build_seconds = None
    if state == "no vector search":
        atlas.knobs.search_service = "absent-8"
    backend = make(search_mode="auto", auto_setup=state == "building")
    backend.save([record("new", [1.0, 0.0])])
    backend.wait_until_searchable(["new"])
    make(search_mode="exact").wait_until_searchable(["new"])
    assert clock.pauses == 0


def test_while_the_index_is_rebuilt_for_another_embedder_there_is_nothing_to_wait_for(
    atlas: AtlasStandin, make: MakeBackend, clock: Clock
) -> None:
    backend = make(search_mode="auto")
    backend.save([record("old", [1.0, 0.0])])
    backend.reset()
    atlas.pace.build_seconds = None
    backend.save([record("new", [1.0, 0.0, 0.0])])
    assert [hit.id for hit, _ in backend.search([1.0, 0.0, 0.0])] == ["new"]
    backend.wait_until_searchable(["new"])
    assert clock.pauses == 0


def test_without_an_index_atlas_raises(make: MakeBackend) -> None:
    backend = make(auto_setup=False)
    backend.save([record("new", [1.0, 0.0])])
    with pytest.raises(VectorIndexMissingError, match="ensure_indexes"):
        backend.wait_until_searchable(["new"])


def test_the_asynchronous_twin_waits_too(make_atlas_backend: MakeBackend, atlas: AtlasStandin) -> None:
    backend = make_atlas_backend()
    backend.save([record("old", [1.0, 0.0])])
    atlas.lag = 0.3

    async def wait() -> None:
        async with backend:
            await backend.asave([record("new", [0.0, 1.0])])
            await backend.async_wait_until_searchable(["new"], timeout=30)

    asyncio.run(wait())
    assert [hit.id for hit, _ in make_atlas_backend(read_your_writes=0).search([0.0, 1.0], limit=1)] == ["new"]
