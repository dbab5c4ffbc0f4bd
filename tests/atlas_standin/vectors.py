"""Vectors: as they come in queries and in documents, which of them an index takes, and how they score."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from bson import Int64
from bson.binary import VECTOR_SUBTYPE, Binary
from numpy.typing import NDArray

from .definitions import VectorField
from .errors import MongotError
from .parsing import Location, bson_type

FLOAT: Final = "float"
BYTE: Final = "byte"
BIT: Final = "bit"

_KINDS: Final = {0x27: FLOAT, 0x03: BYTE, 0x10: BIT}
_NUMBERS: Final = {int, Int64, float}


@dataclass(frozen=True, eq=False)
class Vector:
    """One vector; a bit vector holds its bits packed in bytes."""

    kind: str
    values: NDArray[Any]

    @property
    def dimensions(self) -> int:
        return len(self.values) * (8 if self.kind == BIT else 1)

    @property
    def is_zero(self) -> bool:
        return not self.values.any()

    @property
    def first_non_finite(self) -> int | None:
        """Where a float vector stops being finite, after the cast to float32."""
        if self.kind != FLOAT:
            return None
        positions = np.flatnonzero(~np.isfinite(self.values))
        return int(positions[0]) if len(positions) else None


def query_vector(value: Any, at: Location) -> Vector:
    """A `queryVector`, or mongot's complaint about it."""
    if isinstance(value, list):
        for item in value:
            if type(item) not in _NUMBERS:
                raise MongotError(f"Unsupported BsonValue type: {bson_type(item)}")
        return _from_numbers(value)
    if isinstance(value, bytes):
        return _from_binary(Binary(value, getattr(value, "subtype", 0)))
    return at.refuse("Unexpected type found when parsing vector")


def stored_vectors(value: Any) -> Iterator[Vector]:
    """The vectors in a document's field, outermost first."""
    if isinstance(value, list):
        if set(map(type, value)) <= _NUMBERS:
            yield _from_numbers(value)
        else:
            for item in value:
                yield from stored_vectors(item)
    elif isinstance(value, Binary) and value.subtype == VECTOR_SUBTYPE:
        try:
            yield _from_binary(value)
        except MongotError:
            return


def first_indexable(vectors: Iterable[Vector], field: VectorField) -> Vector | None:
    """The one vector of a document that the index takes for a field; the others it skips without a word.

    One of other dimensions, or a zero vector under cosine, ends the search; one that fits but cannot be indexed
    leaves the place to the next.
    """
    for vector in vectors:
        if vector.dimensions != field.dimensions or (field.similarity == "cosine" and vector.is_zero):
            return None
        if _is_indexable(vector, field):
            return vector
    return None


def _is_indexable(vector: Vector, field: VectorField) -> bool:
    if vector.kind == FLOAT:
        return vector.first_non_finite is None
    if field.quantization != "none":
        return False
    return vector.kind == BYTE or field.similarity == "euclidean"


def scores(query: Vector, stored: NDArray[Any], similarity: str) -> NDArray[np.float32]:
    """The score of every row of `stored`, vectors of the query's kind, in float32."""
    # A large but finite vector may overflow a float32 product, in Lucene as here.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        found: NDArray[Any] = _scores(query, stored, similarity)
    return found.astype(np.float32)


def _scores(query: Vector, stored: NDArray[Any], similarity: str) -> NDArray[Any]:
    if query.kind == BIT:
        differing: NDArray[Any] = np.unpackbits(stored ^ query.values, axis=1).sum(axis=1)
        return (query.dimensions - differing) / query.dimensions
    rows, target = stored.astype(np.float32, copy=False), query.values.astype(np.float32)
    if similarity == "euclidean":
        distances: NDArray[Any] = np.square(rows - target).sum(axis=1)
        return 1 / (1 + distances)
    products: NDArray[Any] = rows @ target
    if similarity == "dotProduct" and query.kind == BYTE:
        return 0.5 + products / (query.dimensions * 2.0**15)
    if similarity == "cosine":
        products = products / np.sqrt(np.square(rows).sum(axis=1) * np.square(target).sum())
    return np.maximum((1 + products) / 2, 0)


def _from_numbers(numbers: list[Any]) -> Vector:
    with np.errstate(over="ignore"):
        return Vector(FLOAT, np.array(numbers, dtype=np.float64).astype(np.float32))


def _from_binary(binary: Binary) -> Vector:
    if binary.subtype != VECTOR_SUBTYPE:
        raise MongotError(f"BSON binary subtype should be vector(0x09) but got {binary.subtype}")
    if len(binary) < 2:
        raise MongotError(f"Expected at least 2 bytes in BSON vector but got {len(binary)}")
    element, padding = struct.unpack_from("<BB", binary)
    kind = _KINDS.get(element)
    if kind is None:
        raise MongotError("Unsupported vector subtype found")
    if padding & 0x07:
        if kind == BIT:
            raise MongotError(
                "The dimensions of binary vector should be a multiple of 8 and the padding should be zero."
            )
        raise MongotError("Padding should be zero")
    if kind == FLOAT:
        whole = (len(binary) - 2) // 4
        return Vector(kind, np.frombuffer(binary, dtype="<f4", count=whole, offset=2))
    return Vector(kind, np.frombuffer(binary, dtype=np.int8 if kind == BYTE else np.uint8, offset=2))
