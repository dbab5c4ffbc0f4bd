"""What filters cost of Lucene's clauses, of which a query may have so many."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from bson import ObjectId

from .errors import MongotError
from .filters import parse_filter
from .parsing import Location
from .test_filters import INFINITY, OID, UUID4, as_sent, matches

WHEN = datetime(2026, 1, 1)

COSTS: list[tuple[dict[str, Any], int]] = [
    ({"x": "a"}, 2),
    ({"x": 1}, 6),
    ({"x": 1.0}, 6),
    ({"x": 1.5}, 3),
    ({"x": INFINITY}, 1),
    ({"x": WHEN}, 3),
    ({"x": OID}, 1),
    ({"x": True}, 1),
    ({"x": UUID4}, 2),
    ({"x": None}, 1),
    ({"x": {"$gt": "a"}}, 2),
    ({"x": {"$gt": 1, "$lt": 9.5}}, 12),
    ({"x": {"$gt": 1e300}}, 3),
    ({"x": {"$lte": WHEN}}, 3),
    ({"x": {"$gte": OID}}, 2),
    ({"x": {"$lt": UUID4}}, 2),
    ({"x": {"$gt": False}}, 1),
    ({"x": {"$gte": False}}, 2),
    ({"x": {"$in": ["a", "b"]}}, 2),
    ({"x": {"$in": [1, 2, 3]}}, 4),
    ({"x": {"$in": [WHEN]}}, 2),
    ({"x": {"$in": [UUID4]}}, 2),
    ({"x": {"$in": [OID, OID]}}, 2),
    ({"x": {"$in": [True, True]}}, 1),
    ({"x": {"$exists": True}}, 1),
    ({"x": {"$exists": False}}, 2),
    ({"x": {"$ne": "a"}}, 3),
    ({"x": {"$nin": [1]}}, 5),
    ({"x": {"$not": {"$eq": WHEN, "$ne": "a"}}}, 7),
    ({"$nor": [{"x": "a"}, {"x": 1}]}, 9),
    ({"$or": [{"x": "a"}, {"$and": [{"x": 1}, {}]}]}, 9),
    ({}, 1),
]


@pytest.mark.parametrize(("given", "clauses"), COSTS)
def test_what_a_filter_costs_of_lucenes_clauses(given: dict[str, Any], clauses: int) -> None:
    assert clauses == parse_filter(as_sent(given), Location("filter")).leaves()


@pytest.mark.parametrize(
    ("given", "fits"),
    [
        ({"x": {"$in": [str(n) for n in range(5000)]}}, True),
        ({"x": {"$in": list(range(5000))}}, True),
        ({"x": {"$in": [ObjectId() for _ in range(1024)]}}, True),
        ({"x": {"$in": [ObjectId() for _ in range(1025)]}}, False),
        ({"$or": [{"x": str(n)} for n in range(512)]}, True),
        ({"$or": [{"x": str(n)} for n in range(513)]}, False),
        ({"$and": [{"x": {"$gt": n}} for n in range(170)]}, True),
        ({"$or": [{"x": n} for n in range(171)]}, False),
        ({"$or": [{"x": WHEN + timedelta(n)} for n in range(341)]}, True),
        ({"$nor": [{"x": WHEN + timedelta(n)} for n in range(342)]}, False),
        ({"$or": [{"x": 10.0**300 * n} for n in range(1, 342)]}, True),
        ({"$or": [{"x": INFINITY}] * 1025}, False),
    ],
)
def test_clauses_are_limited(given: dict[str, Any], fits: bool) -> None:
    if fits:
        matches(given, {}, "x")
        return
    with pytest.raises(MongotError, match="maxClauseCount is set to 1024"):
        matches(given, {}, "x")
