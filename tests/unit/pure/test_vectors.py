"""Vectors: checked, encoded, decoded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from bson import Binary
from bson.binary import BinaryVectorDtype
from hypothesis import given
from hypothesis import strategies as st

from crewai_mongodb_memory.pure import vectors
from crewai_mongodb_memory.pure.vectors import VectorFormat

FINITE = st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=40)


@pytest.mark.parametrize(
    "embedding",
    [[1, 2.5], (1, 2.5), np.array([1, 2.5]), np.array([1, 2.5], dtype=np.float32), [np.float32(1), np.float64(2.5)]],
    ids=repr,
)
def test_every_flat_list_of_numbers_is_a_vector(embedding: Any) -> None:
    assert vectors.check(embedding).tolist() == [1.0, 2.5]


@pytest.mark.parametrize(
    ("embedding", "reason"),
    [
        ([1.0, float("nan")], "nan at position 1"),
        ([float("inf")], "inf at position 0"),
        ([1e39], "position 0"),
        ([[1.0, 2.0]], "2 dimensions"),
        ([[1.0], [1.0, 2.0]], "not a list of numbers"),
        (["x"], "not a list of numbers"),
        ("abc", "not a list of numbers"),
        (3.0, "0 dimensions"),
        ([None], "position 0"),
        ({"a": 1}, "not a list of numbers"),
        (["1", "2"], "not a list of numbers"),
        ([10**400, 0], "not a list of numbers"),
        (np.array([1j, 1]), "complex128"),
        (np.array(["2026-01-01"], dtype="datetime64[s]"), "datetime64"),
    ],
    ids=repr,
)
def test_anything_else_is_refused_with_its_reason(embedding: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        vectors.check(embedding)


@pytest.mark.parametrize("vector_format", ["double", "float32"])
@given(embedding=FINITE)
def test_a_vector_comes_back_from_either_form(vector_format: VectorFormat, embedding: list[float]) -> None:
    decoded = vectors.decode(vectors.encode(vectors.check(embedding), vector_format))
    assert decoded is not None
    assert decoded.tolist() == embedding


def test_the_binary_form_is_the_drivers_own() -> None:
    encoded = vectors.encode(vectors.check([0.5, -1.0]), "float32")
    assert encoded == Binary.from_vector([0.5, -1.0], BinaryVectorDtype.FLOAT32)


@pytest.mark.parametrize(
    "value",
    [
        None,
        "text",
        b"bytes",
        [],
        [[1.0]],
        ["1", "x"],
        [float("nan")],
        {"a": 1},
        7,
        Binary.from_vector([1, 2], BinaryVectorDtype.INT8),
        Binary(b"\x27\x00\x01", 9),
        Binary(b"", 9),
    ],
    ids=repr,
)
def test_what_no_vector_search_finds_is_no_vector(value: Any) -> None:
    assert vectors.decode(value) is None
