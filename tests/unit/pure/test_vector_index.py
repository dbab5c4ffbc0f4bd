"""What a listing of search indexes says, and what is to be done about it."""

from __future__ import annotations

from typing import Any

import pytest

from crewai_mongodb_memory.pure.vector_index import (
    FILTER_PATHS,
    Step,
    VectorIndex,
    VectorIndexState,
    definition_document,
    next_step,
    unavailable,
    vector_index,
)

NAME = "idx"
GOOD = definition_document(1024)
OLD = {"fields": GOOD["fields"][:2]}


def entry(status: str = "READY", *, queryable: bool = True, definition: Any = GOOD, **more: Any) -> dict[str, Any]:
    return {
        "name": NAME,
        "type": "vectorSearch",
        "status": status,
        "queryable": queryable,
        "latestDefinition": definition,
    } | more


def host(definition: Any, **more: Any) -> dict[str, Any]:
    return {"hostname": "h", "mainIndex": {"definition": definition, **more}}


def vector_field(**change: Any) -> dict[str, Any]:
    return {"fields": [GOOD["fields"][0] | change, *GOOD["fields"][1:]]}


STATES: list[tuple[list[dict[str, Any]], VectorIndexState]] = [
    ([], VectorIndexState.ABSENT),
    ([entry() | {"name": "other"}], VectorIndexState.ABSENT),
    ([entry("DOES_NOT_EXIST", queryable=False)], VectorIndexState.ABSENT),
    ([entry("DELETING")], VectorIndexState.ABSENT),
    ([entry("PENDING", queryable=False)], VectorIndexState.BUILDING),
    ([entry("BUILDING", queryable=False)], VectorIndexState.BUILDING),
    ([entry("READY", queryable=False)], VectorIndexState.BUILDING),
    ([entry("FAILED", queryable=False)], VectorIndexState.FAILED),
    ([entry("FAILED", queryable=True)], VectorIndexState.READY),
    ([entry("BUILDING", queryable=True)], VectorIndexState.READY),
    ([entry("STALE")], VectorIndexState.STALE),
    ([entry()], VectorIndexState.READY),
    ([entry(definition={"mappings": {"dynamic": True}}, type="search")], VectorIndexState.OTHER_TYPE),
    (
        [entry(definition={"fields": [{"type": "vector", "path": "other", "numDimensions": 3}]})],
        VectorIndexState.OTHER_TYPE,
    ),
    ([entry(definition=None)], VectorIndexState.OTHER_TYPE),
]


@pytest.mark.parametrize(("listing", "state"), STATES, ids=repr)
def test_the_state_of_an_index(listing: list[dict[str, Any]], state: VectorIndexState) -> None:
    assert vector_index(listing, NAME).state is state


def test_a_listing_without_types_is_understood() -> None:
    listed = entry()
    del listed["type"]
    assert vector_index([listed], NAME).state is VectorIndexState.READY


def test_while_an_update_builds_the_old_definition_serves() -> None:
    index = vector_index([entry("BUILDING", statusDetail=[host(GOOD), host(OLD)])], NAME)
    assert index.serving is not None
    assert index.latest is not None
    assert index.serving.filter_paths == {"scope_ancestors"}
    assert index.latest.filter_paths == set(FILTER_PATHS)
    assert not index.is_settled
    assert vector_index([entry()], NAME).is_settled


def test_the_words_of_the_server_are_kept() -> None:
    failed = entry("FAILED", queryable=False, statusDetail=[host(GOOD, message="too many vectors")])
    assert vector_index([failed], NAME).message == "too many vectors"
    assert unavailable("no search here").message == "no search here"


STEPS: list[tuple[Any, Step]] = [
    (GOOD, Step.KEEP),
    ({"fields": list(reversed(GOOD["fields"]))}, Step.KEEP),
    (vector_field(quantization="none", indexingMethod="hnsw"), Step.KEEP),
    (vector_field(quantization="scalar"), Step.KEEP),
    (vector_field(numDimensions=1024.0), Step.KEEP),
    ({"fields": [*GOOD["fields"], {"type": "filter", "path": "mine"}]}, Step.KEEP),
    (GOOD | {"storedSource": False}, Step.KEEP),
    (vector_field(numDimensions=3), Step.UPDATE),
    (vector_field(similarity="dotProduct"), Step.UPDATE),
    (OLD, Step.UPDATE),
]


@pytest.mark.parametrize(("definition", "step"), STEPS, ids=repr)
def test_definitions_are_compared_by_what_they_mean(definition: Any, step: Step) -> None:
    assert next_step(vector_index([entry(definition=definition)], NAME), 1024) is step


def test_one_that_has_failed_is_given_its_definition_again() -> None:
    for queryable in (True, False):
        assert next_step(vector_index([entry("FAILED", queryable=queryable)], NAME), 1024) is Step.UPDATE


@pytest.mark.parametrize(
    ("state", "step"),
    [
        (VectorIndexState.UNAVAILABLE, Step.IMPOSSIBLE),
        (VectorIndexState.ABSENT, Step.CREATE),
        (VectorIndexState.OTHER_TYPE, Step.CONFLICT),
        (VectorIndexState.UNKNOWN, Step.KEEP),
    ],
)
def test_without_a_definition_the_state_decides(state: VectorIndexState, step: Step) -> None:
    assert next_step(VectorIndex(state), 1024) is step


def test_the_definition_is_what_atlas_takes() -> None:
    mine = {
        "fields": [{"type": "filter", "path": "mine"}, GOOD["fields"][0] | {"quantization": "scalar"}],
        "storedSource": False,
    }
    updated = definition_document(3072, mine)
    assert updated["storedSource"] is False
    assert updated["fields"][0] == {"type": "filter", "path": "mine"}
    assert updated["fields"][1]["quantization"] == "scalar"
    assert updated["fields"][1]["numDimensions"] == 3072
    assert len(updated["fields"]) == 2 + len(FILTER_PATHS)
    fields = definition_document(3072)["fields"]
    assert fields[0] == {"type": "vector", "path": "embedding", "numDimensions": 3072, "similarity": "cosine"}
    assert [field["path"] for field in fields[1:]] == list(FILTER_PATHS)
    assert {field["type"] for field in fields[1:]} == {"filter"}
