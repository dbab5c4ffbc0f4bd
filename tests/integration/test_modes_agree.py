"""The two ways to search agree: through the index, which may lag and shuffle, and exactly, on the same collection."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from crewai.memory.types import MemoryRecord
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from crewai_mongodb_memory import MongoStorageBackend
from tests.atlas_standin import AtlasStandin
from tests.stores import MakeBackend

Hits = list[tuple[MemoryRecord, float]]

# Few values of everything, so that ties, duplicates and matching filters are common.
DIMENSIONS = 3
NUMBERS = st.sampled_from([-1.0, 0.0, 0.5, 1.0, 2.0])
VECTORS = st.lists(NUMBERS, min_size=DIMENSIONS, max_size=DIMENSIONS)
SCOPES = st.sampled_from(["/", "/a", "/a/b", "/a/b/c", "/ab", "/z"])
CATEGORIES = st.lists(st.sampled_from(["x", "y", "z"]), max_size=2, unique=True)
METADATA = st.fixed_dictionaries(
    {},
    optional={
        "k": st.sampled_from([1, 1.0, True, "1", None, [1, 2]]),
        "deep": st.just({"er": "v"}),
        "deep.er": st.just("v"),
    },
)
IDS = [f"r{number:02}" for number in range(24)]


class Change(NamedTuple):
    """A write after the index has last caught up."""

    kind: str
    record_id: str
    fields: dict[str, Any]


class Search(NamedTuple):
    query: list[float]
    criteria: dict[str, Any]
    limit: int
    min_score: float


FIELDS = st.fixed_dictionaries(
    {
        "embedding": st.one_of(VECTORS, st.none()),
        "scope": SCOPES,
        "categories": CATEGORIES,
        "metadata": METADATA,
    }
)
CHANGES = st.builds(Change, st.sampled_from(["save", "update", "delete"]), st.sampled_from(IDS), FIELDS)
CRITERIA = st.fixed_dictionaries(
    {},
    optional={
        "scope_prefix": st.one_of(st.none(), SCOPES),
        "categories": CATEGORIES,
        "metadata_filter": METADATA,
    },
)
# No cosine of these vectors lies this close to a threshold that the index's float32 could tell it from.
SEARCHES = st.builds(
    Search, VECTORS, CRITERIA, st.sampled_from([1, 2, 3, 5, 8, 30]), st.sampled_from([-1.0, 0.0, 0.123, 0.654, 0.987])
)


def record(record_id: str, fields: dict[str, Any]) -> MemoryRecord:
    return MemoryRecord(id=record_id, content=f"{record_id} {fields['scope']}", **fields)


def scores(hits: Hits) -> dict[str, float]:
    return {hit.id: score for hit, score in hits}


def assert_same(by_index: Hits, exact: Hits, without_limit: Hits) -> None:
    """Both are the best; where several tie for the last place, either may have any of them."""
    assert [score for _, score in by_index] == pytest.approx([score for _, score in exact], abs=1e-5)
    everything = scores(without_limit)
    assert {one: everything[one] for one in scores(by_index)} == pytest.approx(scores(by_index), abs=1e-5)
    last = exact[-1][1] if exact else 0.0
    assert {one for one, score in scores(by_index).items() if score > last + 1e-5} == {
        one for one, score in scores(exact).items() if score > last + 1e-5
    }
    assert {hit.id: hit for hit, _ in by_index} == {
        hit.id: hit for hit, _ in without_limit if hit.id in dict(scores(by_index))
    }


def apply(backend: MongoStorageBackend, change: Change) -> None:
    if change.kind == "save":
        backend.save([record(change.record_id, change.fields)])
    elif change.kind == "update":
        backend.update(record(change.record_id, change.fields))
    else:
        backend.delete(record_ids=[change.record_id])


@pytest.fixture
def make(atlas: AtlasStandin, make_backend: MakeBackend) -> MakeBackend:
    def made(mode: str, **arguments: Any) -> MongoStorageBackend:
        return make_backend(connection_string=atlas.uri, search_mode=mode, dimensions=DIMENSIONS, **arguments)

    return made


@pytest.mark.parametrize("arguments", [{}, {"tenant": "acme", "vector_format": "float32"}], ids=["plain", "tenant"])
def test_searches_through_the_index_find_what_exact_ones_find(
    atlas: AtlasStandin, make: MakeBackend, arguments: dict[str, Any]
) -> None:
    by_index, exact, other = make("atlas", **arguments), make("exact", **arguments), make("exact", tenant="other")
    by_index.ensure_indexes()
    atlas.knobs.shuffle_ties = True

    @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
    @given(
        known=st.lists(FIELDS, max_size=16),
        changes=st.lists(CHANGES, max_size=8),
        searches=st.lists(SEARCHES, min_size=3, max_size=6),
    )
    def agree(known: list[dict[str, Any]], changes: list[Change], searches: list[Search]) -> None:
        atlas.lag = 0.0
        by_index.reset()
        by_index.save([record(record_id, fields) for record_id, fields in zip(IDS, known, strict=False)])
        # From here on nothing that is written reaches the index.
        atlas.lag = None
        for change in changes:
            apply(by_index, change)
        for query, criteria, limit, min_score in searches:
            found = by_index.search(query, limit=limit, min_score=min_score, **criteria)
            wanted = exact.search(query, limit=limit, min_score=min_score, **criteria)
            assert_same(found, wanted, exact.search(query, limit=100, min_score=min_score, **criteria))

    if arguments:
        other.save([record(f"other{number}", {"embedding": [1.0] * 3, "scope": "/a"}) for number in range(5)])
    agree()
