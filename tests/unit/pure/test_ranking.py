"""Ranking candidates."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crewai_mongodb_memory.pure.ranking import Ranking, cosines

QUERY = np.array([1.0, 0.0])


def rank(
    vectors: dict[str, list[float]], *, limit: int = 10, min_score: float = 0.0, batch: int = 100
) -> list[tuple[str, float]]:
    ranking = Ranking(QUERY, limit, min_score)
    ids = list(vectors)
    for start in range(0, len(ids), batch):
        some = ids[start : start + batch]
        ranking.offer(some, np.array([vectors[one] for one in some]))
    return ranking.best()


def test_cosines_do_not_depend_on_length() -> None:
    matrix = np.array([[2.0, 0.0], [1.0, 1.0], [0.0, 3.0], [-5.0, 0.0]])
    assert cosines(QUERY * 7, matrix) == pytest.approx([1.0, 0.5**0.5, 0.0, -1.0])


def test_scores_are_clamped_cosines_best_first() -> None:
    vectors = {"far": [0.0, 1.0], "opposite": [-1.0, 0.0], "near": [1.0, 0.1], "same": [3.0, 0.0]}
    best = rank(vectors)
    assert [one for one, _ in best] == ["same", "near", "far", "opposite"]
    assert [score for _, score in best] == pytest.approx([1.0, 0.995037, 0.0, 0.0], abs=1e-6)


@pytest.mark.parametrize(("min_score", "kept"), [(-1.0, 3), (0.0, 3), (1e-9, 1), (0.5, 1), (1.0, 1), (1.1, 0)])
def test_min_score_is_on_the_scale_of_the_scores(min_score: float, kept: int) -> None:
    assert len(rank({"a": [1.0, 0.0], "b": [0.0, 1.0], "c": [-1.0, 0.0]}, min_score=min_score)) == kept


def test_equal_vectors_are_ordered_by_id() -> None:
    vectors = {f"r{number:02}": [0.6, 0.8] for number in reversed(range(20))}
    assert [one for one, _ in rank(vectors, limit=5, batch=3)] == ["r00", "r01", "r02", "r03", "r04"]


def test_zeros_are_never_kept() -> None:
    assert rank({"zero": [0.0, 0.0], "one": [1.0, 0.0]}, min_score=-1) == [("one", 1.0)]


@given(
    vectors=st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=1, max_size=30),
    batch=st.integers(1, 7),
    limit=st.integers(1, 10),
)
def test_batches_make_no_difference(vectors: list[tuple[int, int]], batch: int, limit: int) -> None:
    named = {f"r{number:02}": [float(x), float(y)] for number, (x, y) in enumerate(vectors)}
    assert rank(named, limit=limit, batch=batch) == rank(named, limit=100)[:limit]
