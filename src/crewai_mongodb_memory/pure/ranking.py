"""Ranking: cosine similarity on CrewAI's scale, and the best few of many candidates.

A score is the cosine of the angle between two embeddings, clamped to [0, 1]. CrewAI's thresholds are made for this
scale: at 0.85 it lets a model merge and delete memories (``crewai/memory/types.py``, ``consolidation_threshold``).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["Ranking", "cosines"]

# Two equal vectors can differ in the last bit, by where they stand in their batch; ranked by what is left after
# rounding, they tie, and the tie is broken by id.
DECIMALS = 9


def cosines(query: NDArray[np.float64], matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the cosine of a query with each row of a matrix, in [-1, 1]; NaN for a row of zeros."""
    scale = np.linalg.norm(matrix, axis=1) * np.linalg.norm(query)
    with np.errstate(invalid="ignore", divide="ignore"):
        similarity: NDArray[np.float64] = np.round(np.clip((matrix @ query) / scale, -1.0, 1.0), DECIMALS)
    return similarity


class Ranking:
    """The best candidates of all that were offered, whatever the order and the batches they came in.

    Args:
        query: the embedding to compare with, not all zeros.
        limit: how many candidates to keep.
        min_score: the least score to keep, on the scale of scores. At or below 0 opposite vectors are kept
            too, with the score 0.0.
    """

    def __init__(self, query: NDArray[np.float64], limit: int, min_score: float) -> None:
        self._query = query
        self._limit = limit
        self._least = min_score if min_score > 0 else -1.0
        self._kept: list[tuple[float, str]] = []

    def offer(self, ids: Sequence[str], matrix: NDArray[np.float64]) -> None:
        """Consider a batch of candidates: one id and one row each. Rows of zeros are never kept."""
        similarity = cosines(self._query, matrix)
        fresh = [(-similarity[row], ids[row]) for row in np.flatnonzero(similarity >= self._least).tolist()]
        self._kept = sorted(self._kept + fresh)[: self._limit]

    def best(self) -> list[tuple[str, float]]:
        """Return ids with their scores in [0, 1], best first; equal ones by id."""
        return [(record_id, max(0.0, float(-negated))) for negated, record_id in self._kept]
