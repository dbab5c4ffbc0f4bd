"""Which vectors an index takes, which it skips without a word, and what they score."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from bson import Decimal128, Int64
from bson.binary import Binary, BinaryVectorDtype

from .definitions import FilterField, Similarity, VectorDefinition, VectorField
from .entries import SeenDocument
from .errors import MongotError
from .indexed import IndexedCopy, Leniency
from .parsing import Location
from .stage import Criteria, parse_as_mongot
from .test_filters import as_sent
from .vectors import query_vector

STRICT = Leniency()

FLOATS = Binary.from_vector([1.0, 0.0], BinaryVectorDtype.FLOAT32)
INT8S = Binary.from_vector([1, 0], BinaryVectorDtype.INT8)
BITS = Binary.from_vector([0b10000000], BinaryVectorDtype.PACKED_BIT)


def definition(similarity: Similarity = "cosine", dimensions: int = 2, **more: Any) -> VectorDefinition:
    return VectorDefinition((VectorField("v", dimensions, similarity, **more), FilterField("s")))


def criteria(vector: Any, *, path: str = "v", limit: int = 100, **more: Any) -> Criteria:
    stage = {"index": "ix", "path": path, "queryVector": vector, "limit": limit, **more}
    return parse_as_mongot(as_sent(stage if "exact" in more else {"numCandidates": 100, **stage}))


def copy_of(declared: VectorDefinition, documents: Sequence[dict[str, Any]]) -> IndexedCopy:
    return IndexedCopy(declared, [SeenDocument(as_sent(body)) for body in documents])


def found(
    declared: VectorDefinition, vector: Any, documents: Sequence[dict[str, Any]], **more: Any
) -> dict[Any, float]:
    hits = copy_of(declared, documents).search(criteria(vector, **more), STRICT, random.Random(0))
    return {hit.id: hit.score for hit in hits}


STORED: list[tuple[Any, bool]] = [
    (..., False),
    (None, False),
    ("[1, 0]", False),
    ({"0": 1.0, "1": 0.0}, False),
    ([1.0, 0.0], True),
    ([1, Int64(0)], True),
    ([1, 0.5], True),
    ([1.0, "0"], False),
    ([1.0, None], False),
    ([1.0, Decimal128("0")], False),
    ([1.0, True], False),
    ([], False),
    ([1.0], False),
    ([1.0, 0.0, 0.0], False),
    ([0.0, 0.0], False),
    ([math.nan, 1.0], False),
    ([math.inf, 1.0], False),
    ([1e300, 1.0], False),
    ([[1.0, 0.0], [1.0]], True),
    ([[1.0], [1.0, 0.0]], False),
    ([[[1.0, 0.0]]], True),
    # the first that fits but is not finite leaves its place to the next, any other misfit does not
    ([[math.inf, 0.0], [1.0, 0.0]], True),
    ([[[1.0, -math.inf]], [[math.nan, 0.0], [1, Int64(0)]]], True),
    ([[1e300, 1.0], [1.0, 0.0]], True),
    ([[math.inf, 0.0]], False),
    ([[math.inf], [1.0, 0.0]], False),
    ([[math.inf, 0.0], [0.0, 0.0], [1.0, 0.0]], False),
    ([[], [1.0, 0.0]], False),
    ([math.inf, [1.0, 0.0]], True),
    (["a", [1.0, 0.0]], True),
    ([Binary.from_vector([math.inf, 0.0], BinaryVectorDtype.FLOAT32), FLOATS], True),
    (FLOATS, True),
    (Binary.from_vector([1.0], BinaryVectorDtype.FLOAT32), False),
    (Binary(b"\x27", 9), False),
    (Binary(b"\x99\x00ab", 9), False),
    (Binary(bytes(FLOATS), 0), False),
    (INT8S, False),
]


@pytest.mark.parametrize(("value", "expected"), STORED)
def test_what_is_indexed(value: Any, expected: bool) -> None:
    document = {"_id": 1} if value is ... else {"_id": 1, "v": value}
    assert expected == bool(found(definition(), [1.0, 0.0], [document]))


def test_of_an_array_of_documents_the_first_vector_is_indexed() -> None:
    declared = VectorDefinition((VectorField("parts.v", 2, "euclidean"),))
    parts = [{"v": "none"}, {"v": [math.inf, 0.0]}, {"v": [1.0, 0.0]}, {"v": [0.0, 1.0]}]
    document = {"_id": 1, "parts": parts}
    assert found(declared, [1.0, 0.0], [document], path="parts.v") == {1: 1.0}


@pytest.mark.parametrize("similarity", ["dotProduct", "euclidean"])
def test_zero_vectors_are_skipped_under_cosine_only(similarity: Similarity) -> None:
    document = {"_id": 1, "v": [0.0, 0.0]}
    assert found(definition(similarity), [1.0, 0.0], [document]) == {1: 0.5}
    assert found(definition("cosine"), [1.0, 0.0], [document]) == {}


SCORES: list[tuple[list[float], float, float, float]] = [
    ([1, 0], 1.000000, 1.000000, 1.000000),
    ([2, 0], 1.000000, 1.500000, 0.500000),
    ([1, 1], 0.853553, 1.000000, 0.500000),
    ([0, 1], 0.500000, 0.500000, 0.333333),
    ([-1, 0], 0.000000, 0.000000, 0.200000),
    ([-3, 0], 0.000000, 0.000000, 0.058824),
]


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(("vector", "cosine", "dot", "euclidean"), SCORES)
def test_scores(vector: list[float], cosine: float, dot: float, euclidean: float, exact: bool) -> None:
    options = {"exact": True} if exact else {}
    table: dict[Similarity, float] = {"cosine": cosine, "dotProduct": dot, "euclidean": euclidean}
    for similarity, expected in table.items():
        score = found(definition(similarity), [1, 0], [{"_id": 1, "v": vector}], **options)[1]
        assert score == pytest.approx(expected, abs=1e-6)
        assert score == float(np.float32(score))


def test_int8_and_bits_have_scores_of_their_own() -> None:
    int8s = [{"_id": 1, "v": Binary.from_vector([2, 0], BinaryVectorDtype.INT8)}]
    assert found(definition("cosine"), INT8S, int8s) == {1: 1.0}
    assert {1: pytest.approx(0.5 + 2 / 2**16)} == found(definition("dotProduct"), INT8S, int8s)
    assert found(definition("euclidean"), INT8S, int8s) == {1: 0.5}
    bits = [{"_id": 1, "v": Binary.from_vector([0b11100000], BinaryVectorDtype.PACKED_BIT)}]
    assert found(definition("euclidean", 8), BITS, bits) == {1: 0.75}


def test_kinds_of_vectors_do_not_see_each_other() -> None:
    documents = [{"_id": 1, "v": [1.0, 0.0]}, {"_id": 2, "v": FLOATS}, {"_id": 3, "v": INT8S}]
    for query, expected in (([1.0, 0.0], {1, 2}), (FLOATS, {1, 2}), (INT8S, {3})):
        assert expected == found(definition(), query, documents).keys()
    for quantization in ("scalar", "binary"):
        assert found(definition(quantization=quantization), INT8S, documents) == {}
    assert found(definition("cosine", 8), [1.0] * 8, [{"_id": 1, "v": BITS}]) == {}


QUERY_ERRORS: list[tuple[Any, str]] = [
    (["1", 0.0], "Unsupported BsonValue type: STRING"),
    ([[1.0, 0.0]], "Unsupported BsonValue type: ARRAY"),
    ([None, 1.0], "Unsupported BsonValue type: NULL"),
    ([Decimal128("1"), 1.0], "Unsupported BsonValue type: DECIMAL128"),
    ([True, 1.0], "Unsupported BsonValue type: BOOLEAN"),
    ("[1, 0]", '"queryVector" Unexpected type found when parsing vector'),
    (Binary(b"abc", 0), "BSON binary subtype should be vector(0x09) but got 0"),
    (Binary(b"\x27", 9), "Expected at least 2 bytes in BSON vector but got 1"),
    (Binary(b"\x99\x00", 9), "Unsupported vector subtype found"),
    (Binary(b"\x27\x01", 9), "Padding should be zero"),
    (Binary(b"\x10\x03a", 9), "The dimensions of binary vector should be a multiple of 8"),
]


@pytest.mark.parametrize(("value", "text"), QUERY_ERRORS)
def test_query_vectors_that_are_none(value: Any, text: str) -> None:
    with pytest.raises(MongotError) as raised:
        query_vector(as_sent(value), Location("queryVector"))
    assert str(raised.value).startswith(text)


MISFITS: list[tuple[VectorDefinition, Criteria, str]] = [
    (definition(), criteria([1.0, 0.0], path="w"), "w is not indexed as vector"),
    (definition(), criteria([1.0, 0.0], path="s"), "s is not indexed as vector"),
    (
        definition(),
        criteria([1.0, 0.0, 0.0]),
        "vector field is indexed with 2 dimensions but queried with 3",
    ),
    (definition(), criteria([]), "vector field is indexed with 2 dimensions but queried with 0"),
    (
        definition(),
        criteria([0.0, 0.0]),
        "Cosine similarity cannot be calculated against a zero vector.",
    ),
    (
        definition(),
        criteria([0.0, 0.0], exact=True),
        "Cosine similarity cannot be calculated against a zero vector.",
    ),
    (
        definition("cosine", 8),
        criteria(BITS),
        "Binary vectors can only be used with fields indexed with Euclidean similarity "
        "but indexed similarity is COSINE",
    ),
    # the order of the checks: dimensions, filter paths, zero vector
    (
        definition(),
        criteria([0.0], filter={"q": 1}),
        "vector field is indexed with 2 dimensions but queried with 1",
    ),
    (definition(), criteria([0.0, 0.0], filter={"q": 1}), "Path 'q' needs to be indexed as filter"),
    (definition(), criteria([0.0, 0.0], parentFilter={"q": 1}), "Path 'q' needs to be indexed as filter"),
    (
        definition(),
        criteria([1.0, 0.0], returnStoredSource=True),
        "storedSource is not configured for this index.",
    ),
    (
        definition(),
        criteria([1.0, 0.0], nestedOptions={"scoreMode": "max"}),
        "\"nestedOptions\" requires a vector path within the index's nested root, but 'v' is outside it",
    ),
    (
        definition(),
        criteria([1.0, 0.0], explainOptions={"traceDocumentIds": [1]}),
        "Query must be run in explain mode, because 'explainOptions' are present.",
    ),
]


@pytest.mark.parametrize(("declared", "query", "text"), MISFITS)
def test_queries_that_do_not_fit_the_index(declared: VectorDefinition, query: Criteria, text: str) -> None:
    with pytest.raises(MongotError) as raised:
        copy_of(declared, []).search(query, STRICT, random.Random(0))
    assert text == str(raised.value)


def test_nulls_at_a_vector_path_can_be_asked_for() -> None:
    declared = VectorDefinition((VectorField("v", 2, "cosine"), VectorField("w", 2, "cosine")))
    documents = [{"_id": n, "v": [1.0, 0.0], "w": w} for n, w in enumerate([None, [None], [1.0, 0.0], "a"])]
    assert {0, 1} == found(declared, [1.0, 0.0], documents, filter={"w": None}).keys()


def test_the_filter_comes_before_the_limit() -> None:
    documents = [{"_id": n, "v": [1.0, n / 10], "s": ["near", "far"][n // 5]} for n in range(10)]
    assert {5, 6} == found(definition(), [1.0, 0.0], documents, limit=2, filter={"s": "far"}).keys()


def test_results_come_best_first_and_ties_as_they_are_or_shuffled() -> None:
    documents = [{"_id": n, "v": [1.0, 0.0 if n else 1.0]} for n in range(20)]
    ordered = [hit.id for hit in copy_of(definition(), documents).search(criteria([1, 0]), STRICT, random.Random(0))]
    shuffling = Leniency(shuffle_ties=True)
    shuffled = [
        hit.id for hit in copy_of(definition(), documents).search(criteria([1, 0]), shuffling, random.Random(0))
    ]
    assert [*range(1, 20), 0] == ordered
    assert shuffled != ordered
    assert (sorted(ordered), 0) == (sorted(shuffled), shuffled[-1])


def test_recall_drops_neighbours_of_approximate_searches_only() -> None:
    copy = copy_of(definition(), [{"_id": n, "v": [1.0, float(n)]} for n in range(50)])
    half = Leniency(recall=0.5)
    assert 10 < len(copy.search(criteria([1, 0]), half, random.Random(1))) < 40
    assert len(copy.search(criteria([1, 0], exact=True), half, random.Random(1))) == 50
