"""Index definitions, row by row."""

from __future__ import annotations

from typing import Any

import pytest

from .definitions import FilterField, VectorDefinition, VectorField, parse_search, parse_vector
from .errors import CommandError, MongotError
from .parsing import Location

VECTOR: dict[str, Any] = {"type": "vector", "path": "v", "numDimensions": 8, "similarity": "cosine"}
FILTER: dict[str, Any] = {"type": "filter", "path": "s"}


def vector(**changes: Any) -> dict[str, Any]:
    return {name: value for name, value in {**VECTOR, **changes}.items() if value is not ...}


def parse(given: dict[str, Any], *, atlas: bool = False, closed: bool = False) -> VectorDefinition:
    return parse_vector(given, Location("userCommand.indexes[0]"), atlas=atlas, closed=closed)


def test_defaults_are_filled_in() -> None:
    expected = VectorDefinition((VectorField("v", 8, "cosine", "none", "hnsw", 16, 100), FilterField("s")), 1)
    assert expected == parse({"fields": [VECTOR, FILTER]}, atlas=True, closed=True)


ACCEPTED: list[dict[str, Any]] = [
    {"fields": [vector(quantization="scalar")]},
    {"fields": [vector(quantization="binary")]},
    {"fields": [vector(indexingMethod="flat", similarity="dotProduct")]},
    {"fields": [vector(hnswOptions={"maxEdges": 64, "numEdgeCandidates": 3200})]},
    {"fields": [vector(numDimensions=8192), vector(path="w", numDimensions=1.0)]},
    {"fields": [VECTOR], "numPartitions": 64, "storedSource": False},
    {"fields": [VECTOR], "storedSource": {"include": ["s"]}},
    {"fields": [VECTOR], "storedSource": {"include": ["a", "b.c", "b.d", "a"]}},
    {"fields": [VECTOR], "storedSource": {"exclude": ["s", "st.u"], "include": None}},
    {"fields": [VECTOR], "storedSource": None},
    {"fields": [vector(path="a.v")], "nestedRoot": "a"},
    {"fields": [vector(path="a.b.v")], "nestedRoot": "a.b"},
    {"fields": [VECTOR, {"type": "filter", "path": "a.s"}], "nestedRoot": "a"},
    {"fields": [VECTOR, {"type": "filter", "path": "a.b.s"}], "nestedRoot": "a"},
    {"fields": [VECTOR, FILTER], "nestedRoot": "s"},
]


@pytest.mark.parametrize("given", ACCEPTED)
def test_accepted(given: dict[str, Any]) -> None:
    parse(given, atlas=True, closed=True)


FIELD = '"userCommand.indexes[0].fields[0]'

REFUSED: list[tuple[dict[str, Any], str]] = [
    ({}, '"userCommand.indexes[0].fields" is required'),
    ({"fields": {}}, '"userCommand.indexes[0].fields" must be a array'),
    ({"fields": ["v"]}, f'{FIELD}" must be a document'),
    ({"fields": [vector(type=...)]}, f'{FIELD}.type" is required'),
    (
        {"fields": [vector(type="knnVector")]},
        f'{FIELD}.type" must be one of [autoEmbed, filter, text, vector]',
    ),
    ({"fields": [vector(path=...)]}, f'{FIELD}.path" is required'),
    ({"fields": [vector(path=1)]}, f'{FIELD}.path" must be a string'),
    (
        {"fields": [VECTOR, {"type": "filter", "path": "v"}]},
        '"userCommand.indexes[0].fields" Vector and filter fields should have distinct paths',
    ),
    (
        {"fields": [VECTOR, FILTER, FILTER]},
        '"userCommand.indexes[0].fields" Vector and filter fields should have distinct paths',
    ),
    ({"fields": [vector(numDimensions=...)]}, f'{FIELD}.numDimensions" is required'),
    ({"fields": [vector(numDimensions=0)]}, f'{FIELD}.numDimensions" must be within bounds [1..8192]'),
    ({"fields": [vector(numDimensions=8193)]}, f'{FIELD}.numDimensions" must be within bounds [1..8192]'),
    ({"fields": [vector(numDimensions="8")]}, f'{FIELD}.numDimensions" must be a integer'),
    ({"fields": [vector(similarity=...)]}, f'{FIELD}.similarity" is required'),
    (
        {"fields": [vector(similarity="cos")]},
        f'{FIELD}.similarity" must be one of [cosine, dotProduct, euclidean]',
    ),
    (
        {"fields": [vector(quantization="int8")]},
        f'{FIELD}.quantization" must be one of [binary, none, scalar]',
    ),
    (
        {"fields": [vector(quantization="binary", numDimensions=12)]},
        f'{FIELD}" numDimensions 12 must be a multiple of 8 for binary quantization',
    ),
    (
        {"fields": [vector(indexingMethod="flat", hnswOptions={"maxEdges": 16})]},
        f'{FIELD}" hnswOptions is only supported with "indexingMethod: hnsw".',
    ),
    (
        {"fields": [vector(hnswOptions={"maxEdges": 15})]},
        f'{FIELD}.hnswOptions.maxEdges" must be within bounds [16..64]',
    ),
    (
        {"fields": [vector(hnswOptions={"numEdgeCandidates": 99})]},
        f'{FIELD}.hnswOptions.numEdgeCandidates" must be within bounds [100..3200]',
    ),
    ({"fields": [vector(dims=8)]}, f'{FIELD}" unrecognized field "dims"'),
    ({"fields": [{**FILTER, "dynamic": True}]}, f'{FIELD}" unrecognized field "dynamic"'),
    (
        {"fields": [VECTOR], "storedSource": True},
        '"userCommand.indexes[0].storedSource" storedSource: true is not supported for vector indexes',
    ),
    (
        {"fields": [VECTOR], "storedSource": {}},
        '"userCommand.indexes[0].storedSource" one of [include, exclude] must be present',
    ),
    (
        {"fields": [VECTOR], "storedSource": {"include": []}},
        '"userCommand.indexes[0].storedSource.include" cannot be empty',
    ),
    (
        {"fields": [VECTOR], "storedSource": {"exclude": ["a", " "]}},
        '"userCommand.indexes[0].storedSource.exclude[1]" cannot be blank',
    ),
    (
        {"fields": [VECTOR], "storedSource": {"include": ["a", 1]}},
        '"userCommand.indexes[0].storedSource.include[1]" must be a string',
    ),
    (
        {"fields": [VECTOR], "storedSource": {"include": "a"}},
        '"userCommand.indexes[0].storedSource.include" must be a array',
    ),
    (
        {"fields": [VECTOR], "storedSource": {"include": ["a"], "exclude": ["b"]}},
        '"userCommand.indexes[0].storedSource" only one of [include, exclude] may be present',
    ),
    (
        {"fields": [VECTOR], "storedSource": {"include": ["a.b.c", "a"]}},
        '"userCommand.indexes[0].storedSource" path collision is not allowed',
    ),
    (
        {"fields": [VECTOR], "storedSource": {"include": ["a"], "only": 1}},
        '"userCommand.indexes[0].storedSource" unrecognized field "only"',
    ),
    (
        {"fields": [VECTOR], "storedSource": ["a"]},
        '"userCommand.indexes[0].storedSource" must be a boolean or document',
    ),
    (
        {"fields": [VECTOR], "storedSource": 1},
        '"userCommand.indexes[0].storedSource" must be a boolean or document',
    ),
    (
        {"fields": [vector(path="ab.v")], "nestedRoot": "a"},
        '"userCommand.indexes[0]" nestedRoot "a" does not match any vector field path in the index definition',
    ),
    (
        {"fields": [VECTOR], "nestedRoot": ["v"]},
        '"userCommand.indexes[0].nestedRoot" must be a string',
    ),
    (
        {"fields": [VECTOR], "nestedRoot": "x"},
        '"userCommand.indexes[0]" nestedRoot "x" does not match any vector field path in the index definition',
    ),
    (
        {"fields": [VECTOR], "numPartitions": 3},
        '"userCommand.indexes[0].numPartitions" numPartitions 3 must be of 1, 2, 4, 8, 16, 32, or 64.',
    ),
]


@pytest.mark.parametrize(("given", "text"), REFUSED)
def test_refused(given: dict[str, Any], text: str) -> None:
    with pytest.raises(MongotError) as raised:
        parse(given)
    assert str(raised.value).startswith(text)


@pytest.mark.parametrize("given", [{"fields": []}, {"fields": [FILTER]}])
def test_only_atlas_demands_a_vector_field(given: dict[str, Any]) -> None:
    parse(given)
    with pytest.raises(MongotError, match="at least one vector field"):
        parse(given, atlas=True)


def test_unknown_properties_are_refused_where_the_definition_is_closed() -> None:
    given = {"fields": [VECTOR], "dynamic": True}
    parse(given)
    with pytest.raises(MongotError, match='unrecognized field "dynamic"'):
        parse(given, closed=True)


def test_automatic_embedding_is_not_simulated() -> None:
    with pytest.raises(CommandError, match="does not simulate automatic embedding"):
        parse({"fields": [{"type": "text", "path": "t", "model": "voyage-4"}]})


LISTED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"fields": [VECTOR, FILTER]}, {"fields": [VECTOR, FILTER]}),
    ({"fields": [vector(quantization="none", indexingMethod="hnsw")], "numPartitions": 1}, {"fields": [VECTOR]}),
    ({"fields": [vector(numDimensions=8.0)], "storedSource": False, "nestedRoot": None}, {"fields": [VECTOR]}),
    ({"fields": [vector(hnswOptions={"maxEdges": 16, "numEdgeCandidates": 100})]}, {"fields": [VECTOR]}),
    ({"fields": [vector(hnswOptions={})]}, {"fields": [VECTOR]}),
    (
        {"fields": [vector(hnswOptions={"maxEdges": 32, "numEdgeCandidates": 100})]},
        {"fields": [vector(hnswOptions={"maxEdges": 32})]},
    ),
    (
        {"fields": [vector(path="a.v", quantization="scalar", indexingMethod="flat")], "nestedRoot": "a"},
        {"fields": [vector(path="a.v", quantization="scalar", indexingMethod="flat")], "nestedRoot": "a"},
    ),
    (
        {"fields": [VECTOR], "numPartitions": 2, "storedSource": {"exclude": ["b", "a", "b"]}},
        {"fields": [VECTOR], "numPartitions": 2, "storedSource": {"exclude": ["a", "b"]}},
    ),
]


@pytest.mark.parametrize(("given", "listed"), LISTED)
def test_listings_leave_defaults_out(given: dict[str, Any], listed: dict[str, Any]) -> None:
    assert listed == parse(given).listed()


def test_a_forgotten_type_lacks_mappings() -> None:
    with pytest.raises(MongotError, match='"mappings" is required'):
        parse_search({"fields": [VECTOR]}, Location())


def test_equivalence_minds_the_order_but_not_the_defaults() -> None:
    plain = parse({"fields": [VECTOR, FILTER]})
    assert plain.equivalent(parse({"fields": [vector(quantization="none"), FILTER], "numPartitions": 1}))
    assert plain.equivalent(parse({"fields": [VECTOR, FILTER], "storedSource": {"exclude": ["x"]}}))
    assert not plain.equivalent(parse({"fields": [FILTER, VECTOR]}))
    assert not plain.equivalent(parse({"fields": [VECTOR, FILTER], "numPartitions": 2}))
