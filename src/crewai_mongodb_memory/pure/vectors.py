"""Embeddings: checked on the way in, in the two forms in which a store keeps them, and as numpy arrays out.

Atlas leaves a document whose vector it cannot index (another length, NaN, not numbers) out of its index without
an error (mongot, ``KnnVectorParser``), so what is wrong with a vector has to be said before it is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from bson import Binary
from bson.binary import VECTOR_SUBTYPE, BinaryVectorDtype
from numpy.typing import NDArray

__all__ = ["VectorFormat", "check", "decode", "encode", "is_zero"]

VectorFormat = Literal["double", "float32"]
FLOAT32_MAX = float(np.finfo(np.float32).max)
FLOAT32_HEADER = bytes([BinaryVectorDtype.FLOAT32.value[0], 0])  # element type, unused bits


def check(embedding: Any) -> NDArray[np.float64]:
    """Return an embedding as a one-dimensional array of finite numbers.

    Args:
        embedding: a sequence of numbers or a numpy array; empty is allowed and means "no embedding".

    Raises:
        ValueError: it is no flat list of numbers, or a number is NaN, infinite or too large for float32,
            the type that Atlas computes with.
    """
    try:
        given = np.asarray(embedding)
        array = given.astype(np.float64) if given.dtype.kind in "fiuO" else None
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError("is not a list of numbers that a float holds") from error
    if array is None:
        raise ValueError(f"is not a list of numbers, but of {given.dtype}")
    if array.ndim != 1:
        raise ValueError(f"has {array.ndim} dimensions instead of one; pass one vector, not a batch")
    # NaN compares as false, and makes the largest NaN.
    if array.size and not np.abs(array).max() <= FLOAT32_MAX:
        position = int(np.flatnonzero(~(np.abs(array) <= FLOAT32_MAX))[0])
        raise ValueError(f"holds {array[position]} at position {position}; every number has to be a finite float32")
    return array


def is_zero(array: NDArray[np.float64]) -> bool:
    """Tell whether a vector is all zeros as float32, the type that Atlas computes with: no search finds such a one."""
    return not array.astype(np.float32).any()


def encode(array: NDArray[np.float64], vector_format: VectorFormat) -> list[float] | Binary:
    """Return the BSON form of a checked vector: an array of doubles, or a BSON vector of float32."""
    if vector_format == "double":
        numbers: list[float] = array.tolist()
        return numbers
    return Binary(FLOAT32_HEADER + array.astype("<f4").tobytes(), VECTOR_SUBTYPE)


def decode(value: Any) -> NDArray[np.float64] | None:
    """Return a stored vector, whichever form it has; None for what no vector search could find either.

    >>> decode(encode(check([0.5, 0.25]), "float32"))
    array([0.5 , 0.25])
    >>> decode("not a vector") is None
    True
    """
    if isinstance(value, Binary) and value.subtype == VECTOR_SUBTYPE:
        return _decode_binary(value)
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)) and value:
        try:
            array = np.asarray(value, dtype=np.float64)
        except (TypeError, ValueError):
            return None
        return array if array.ndim == 1 and np.isfinite(array).all() else None
    return None


def _decode_binary(value: Binary) -> NDArray[np.float64] | None:
    if value[:2] != FLOAT32_HEADER or len(value) < 6 or (len(value) - 2) % 4:
        return None
    array = np.frombuffer(value, dtype="<f4", offset=2).astype(np.float64)
    return array if np.isfinite(array).all() else None
