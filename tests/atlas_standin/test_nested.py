"""The parentFilter, on ordinary indexes and on those with a nestedRoot, whose nested vectors speak for documents."""

from __future__ import annotations

import random
from typing import Any

import pytest

from .definitions import FilterField, VectorDefinition, VectorField
from .errors import CommandError, MongotError
from .test_vectors import STRICT, copy_of, criteria, definition, found

NESTED = VectorDefinition(
    (
        VectorField("m.v", 2, "euclidean"),
        FilterField("m.kind"),
        FilterField("owner"),
        VectorField("v", 2, "euclidean"),
    ),
    nested_root="m",
)
DOCUMENTS: list[dict[str, Any]] = [
    {"_id": 1, "owner": "a", "v": [1.0, 0.0], "m": [{"v": [1.0, 1.0], "kind": "x"}, {"v": [1.0, 3.0], "kind": "y"}]},
    {"_id": 2, "owner": "b", "v": [1.0, 1.0], "m": [[{"v": [1.0, 2.0], "kind": "x"}], "none", {"kind": "y"}]},
    {"_id": 3, "owner": None, "v": [1.0, 2.0], "m": {"v": [1.0, 0.0], "kind": "y"}},
    {"_id": 4, "owner": "a", "v": [1.0, 3.0], "m": None},
]

SEARCHES: list[tuple[dict[str, Any], list[int]]] = [
    ({"path": "m.v"}, [3, 1, 2]),
    ({"path": "m.v", "exact": True}, [3, 1, 2]),
    ({"path": "m.v", "nestedOptions": {}}, [3, 1, 2]),
    ({"path": "m.v", "nestedOptions": {"scoreMode": "max"}, "limit": 2}, [3, 1]),
    ({"path": "m.v", "filter": {"m.kind": "y"}}, [3, 1]),
    ({"path": "m.v", "filter": {"m.kind": {"$ne": "y"}}}, [1, 2]),
    ({"path": "m.v", "parentFilter": {"owner": "a"}}, [1]),
    ({"path": "m.v", "parentFilter": {"owner": {"$ne": "a"}}}, [3, 2]),
    ({"path": "m.v", "parentFilter": {"owner": None}}, [3]),
    ({"path": "m.v", "filter": {"m.kind": "x"}, "parentFilter": {"$or": [{"owner": "b"}, {"owner": None}]}}, [2]),
    # each filter sees its own level only
    ({"path": "m.v", "filter": {"owner": "a"}}, []),
    ({"path": "m.v", "parentFilter": {"m.kind": "x"}}, []),
    ({"path": "v", "filter": {"m.kind": "x"}}, []),
    ({"path": "v", "filter": {"m": None}}, [4]),
    ({"path": "v", "filter": {"owner": "a"}}, [1, 4]),
    ({"path": "v", "parentFilter": {"owner": "a"}}, [1, 4]),
    ({"path": "v", "parentFilter": {}}, [1, 2, 3, 4]),
    # candidates are counted before the parentFilter is asked
    ({"path": "v", "numCandidates": 2, "limit": 2, "parentFilter": {"owner": "a"}}, [1]),
    ({"path": "v", "exact": True, "limit": 2, "parentFilter": {"owner": "a"}}, [1, 4]),
    ({"path": "m.v", "numCandidates": 2, "limit": 2, "parentFilter": {"owner": "b"}}, []),
]


@pytest.mark.parametrize(("stage", "expected"), SEARCHES)
def test_searches_of_an_index_with_a_nested_root(stage: dict[str, Any], expected: list[int]) -> None:
    hits = copy_of(NESTED, DOCUMENTS).search(criteria([1.0, 0.0], **stage), STRICT, random.Random(0))
    assert expected == [hit.id for hit in hits]


def test_a_document_scores_as_its_best_nested_vector() -> None:
    assert {1: 0.5, 2: pytest.approx(0.2), 3: 1.0} == found(NESTED, [1.0, 0.0], DOCUMENTS, path="m.v")


@pytest.mark.parametrize("exact", [{}, {"exact": True}])
def test_an_ordinary_index_has_a_parent_filter_too(exact: dict[str, Any]) -> None:
    documents = [{"_id": n, "v": [1.0, float(n)], "s": "ab"[n % 2]} for n in range(6)]
    assert {1, 3, 5} == found(definition(), [1, 0], documents, parentFilter={"s": "b"}, **exact).keys()
    both = {"filter": {"s": {"$in": ["a", "b"]}}, "parentFilter": {"s": {"$ne": "b"}}}
    assert {0, 2, 4} == found(definition(), [1, 0], documents, **both, **exact).keys()


@pytest.mark.parametrize(
    ("stage", "text"),
    [
        ({"path": "m.v", "parentFilter": {"q": 1}}, "Path 'q' needs to be indexed as filter"),
        ({"path": "m.v", "parentFilter": {"$or": [{"owner": str(n)} for n in range(513)]}}, "maxClauseCount is set"),
        ({"path": "v", "nestedOptions": {}}, '"nestedOptions" requires a vector path within'),
        ({"path": "m", "nestedOptions": {}}, '"nestedOptions" requires a vector path within'),
        ({"path": "m.w", "nestedOptions": {}}, "m.w is not indexed as vector"),
    ],
)
def test_what_does_not_fit_the_nested_root(stage: dict[str, Any], text: str) -> None:
    with pytest.raises(MongotError) as raised:
        found(NESTED, [1.0, 0.0], DOCUMENTS, **stage)
    assert str(raised.value).startswith(text)


def test_averages_of_nested_vectors_are_not_simulated() -> None:
    with pytest.raises(CommandError, match="does not simulate nestedOptions with scoreMode avg"):
        found(NESTED, [1.0, 0.0], DOCUMENTS, path="m.v", nestedOptions={"scoreMode": "avg"})
