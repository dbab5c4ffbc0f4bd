"""Which way a search goes."""

from __future__ import annotations

from typing import Any

import pytest

from crewai_mongodb_memory.errors import (
    MongoMemoryError,
    VectorIndexFailedError,
    VectorIndexMissingError,
    VectorIndexNotReadyError,
    VectorSearchUnavailableError,
)
from crewai_mongodb_memory.pure.criteria import Criteria, search_criteria
from crewai_mongodb_memory.pure.pipelines import CANDIDATES, HAS_VECTOR, SCORE, vector_search
from crewai_mongodb_memory.pure.search_route import Route, needed_paths, search_route
from crewai_mongodb_memory.pure.vector_index import FILTER_PATHS, Definition, VectorIndex, VectorIndexState

FULL = Definition(1024, "cosine", frozenset(FILTER_PATHS))
READY = VectorIndex(VectorIndexState.READY, serving=FULL, latest=FULL)
EVERYTHING = Criteria(None)


def serving(definition: Definition, state: VectorIndexState = VectorIndexState.READY) -> VectorIndex:
    return VectorIndex(state, serving=definition, latest=definition)


def way(mode: Any, index: VectorIndex, criteria: Criteria = EVERYTHING) -> Route:
    return search_route(mode, index, "idx", 1024, criteria)


@pytest.mark.parametrize("mode", ["auto", "atlas"])
@pytest.mark.parametrize("state", [VectorIndexState.READY, VectorIndexState.STALE])
def test_an_index_that_serves_is_used(mode: Any, state: VectorIndexState) -> None:
    criteria = search_criteria("acme", "/a", ["c"], {"k": 1})
    assert way(mode, serving(FULL, state), criteria) == Route(by_index=True)


TROUBLES: list[tuple[VectorIndex, type[MongoMemoryError], str]] = [
    (VectorIndex(VectorIndexState.UNAVAILABLE, message="no mongot"), VectorSearchUnavailableError, "no mongot"),
    (VectorIndex(VectorIndexState.ABSENT), VectorIndexMissingError, "ensure_indexes"),
    (VectorIndex(VectorIndexState.OTHER_TYPE), VectorIndexMissingError, "drop it"),
    (VectorIndex(VectorIndexState.UNKNOWN, message="for a moment"), VectorIndexNotReadyError, "for a moment"),
    (VectorIndex(VectorIndexState.BUILDING, message="PENDING"), VectorIndexNotReadyError, "PENDING"),
    (VectorIndex(VectorIndexState.FAILED, message="quota"), VectorIndexFailedError, "quota"),
    (serving(Definition(3, "cosine", FULL.filter_paths)), VectorIndexFailedError, "3 dimensions"),
    (serving(Definition(1024, "dotProduct", FULL.filter_paths)), VectorIndexFailedError, "dotProduct"),
]


@pytest.mark.parametrize(("index", "error", "said"), TROUBLES, ids=[case[2] for case in TROUBLES])
def test_one_that_cannot_serve_is_an_error_on_atlas_and_a_reason_elsewhere(
    index: VectorIndex, error: type[MongoMemoryError], said: str
) -> None:
    refused = way("atlas", index)
    assert type(refused.error) is error
    assert said in str(refused.error)
    exact = way("auto", index)
    assert said in exact.reason
    assert (exact.by_index, exact.error, exact.may_change, refused.may_change) == (False, None, True, True)
    assert way("exact", index) == Route()


@pytest.mark.parametrize("mode", ["auto", "atlas"])
@pytest.mark.parametrize(
    ("path", "criteria"),
    [
        ("scope_ancestors", search_criteria(None, "/a", None, None)),
        ("categories", search_criteria(None, None, ["c"], None)),
        ("metadata_tokens", search_criteria(None, None, None, {"k": 1})),
        ("tenant", Criteria("acme")),
    ],
)
def test_a_filter_that_the_index_cannot_take_is_answered_exactly(mode: Any, path: str, criteria: Criteria) -> None:
    assert needed_paths(criteria) == {path}
    lacking = serving(Definition(1024, "cosine", FULL.filter_paths - {path}))
    found = way(mode, lacking, criteria)
    assert not found.by_index
    assert path in found.reason
    assert way(mode, lacking).by_index


@pytest.mark.parametrize(
    "criteria",
    [
        search_criteria(None, f"/{'x' * 9000}", None, None),
        search_criteria(None, f"/{'😀' * 4500}", None, None),
        search_criteria(None, None, ["😀" * 4500], None),
        Criteria("😀" * 4500),
        search_criteria(None, None, ["x" * 9000], None),
        search_criteria(None, None, None, {"k": [str(number) for number in range(600)]}),
    ],
    ids=["scope", "scope of emoji", "category of emoji", "tenant of emoji", "category", "metadata"],
)
def test_a_filter_over_the_bounds_of_the_index_is_answered_exactly(criteria: Criteria) -> None:
    assert way("atlas", READY, criteria) == Route(by_index=False)


@pytest.mark.parametrize(("limit", "candidates"), [(1, 100), (10, 200), (600, 10_000), (10_000, 10_000)])
def test_candidates_stay_within_the_bounds_of_the_stage(limit: int, candidates: int) -> None:
    stage = vector_search("idx", "memories", [1.0], limit, vector_filter={}, query={})[0]["$vectorSearch"]
    assert (stage["limit"], stage["numCandidates"]) == (limit, candidates)
    assert "exact" not in stage
    assert "filter" not in stage


def test_over_ten_thousand_hits_the_stage_is_exact() -> None:
    stage = vector_search("idx", "memories", [1.0], 20_000, vector_filter={}, query={})[0]["$vectorSearch"]
    assert stage == {"index": "idx", "path": "embedding", "queryVector": [1.0], "limit": 20_000, "exact": True}


def test_the_pipeline_filters_twice_counts_what_is_there_and_leaves_the_embedding_out() -> None:
    pipeline = vector_search("idx", "memories", [1.0], 3, num_candidates=50, vector_filter={"a": 1}, query={"b": 2})
    assert pipeline == [
        {
            "$vectorSearch": {
                "index": "idx",
                "path": "embedding",
                "queryVector": [1.0],
                "limit": 3,
                "numCandidates": 50,
                "filter": {"a": 1},
            }
        },
        {"$addFields": {SCORE: {"$meta": "vectorSearchScore"}}},
        {"$match": {"b": 2}},
        {"$unset": ["embedding", "scope_ancestors", "metadata_tokens"]},
        {
            "$unionWith": {
                "coll": "memories",
                "pipeline": [
                    {"$match": {"b": 2, **HAS_VECTOR}},
                    {"$limit": 3},
                    {"$group": {"_id": None, CANDIDATES: {"$sum": 1}}},
                ],
            }
        },
    ]
