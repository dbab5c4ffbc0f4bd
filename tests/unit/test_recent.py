"""Recent writes."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from crewai_mongodb_memory.filters import Criteria, delete_criteria, scope_criteria, search_criteria
from crewai_mongodb_memory.recent import MOST_RECORDS, RecentWrites

EVERYTHING = Criteria()


def document(record_id: str, **fields: Any) -> dict[str, Any]:
    return {
        "_id": record_id,
        "scope_ancestors": ["/a", "/a/b"],
        "categories": ["c"],
        "metadata_tokens": ["k=1"],
        "created_at": datetime(2026, 1, 1),
        "embedding": [1.0, 0.0],
    } | fields


def ids(
    recent: RecentWrites, criteria: Criteria = EVERYTHING, tenant: str | None = None, now: float = 0.0
) -> list[str]:
    return [view["_id"] for view in recent.matching(criteria, tenant, now)]


def test_a_write_is_recent_for_its_seconds() -> None:
    recent = RecentWrites(60)
    recent.wrote([document("r1")], 100.0)
    recent.wrote([document("r2")], 130.0)
    assert ids(recent, now=160.0) == ["r1", "r2"]
    assert ids(recent, now=160.1) == ["r2"]
    assert ids(recent, now=999.0) == []


def test_with_no_seconds_nothing_is_remembered() -> None:
    recent = RecentWrites(0)
    recent.wrote([document("r1")], 0.0)
    recent.moved(5, 0.0)
    assert ids(recent) == []
    assert recent.overfetch(0.0) == 0


@pytest.mark.parametrize(
    ("criteria", "tenant", "found"),
    [
        (scope_criteria("/a"), None, True),
        (scope_criteria("/a/b"), None, True),
        (scope_criteria("/a/b/c"), None, False),
        (search_criteria(None, ["c", "d"], None), None, True),
        (search_criteria(None, ["d"], None), None, False),
        (search_criteria(None, None, {"k": 1}), None, True),
        (search_criteria(None, None, {"k": 2}), None, False),
        (EVERYTHING, "acme", True),
        (EVERYTHING, "other", False),
    ],
    ids=repr,
)
def test_the_same_filters_apply(criteria: Criteria, tenant: str | None, found: bool) -> None:
    recent = RecentWrites(60)
    recent.wrote([document("r1", tenant="acme")], 0.0)
    assert bool(ids(recent, criteria, tenant)) is found


def test_a_later_write_replaces_an_earlier_one() -> None:
    recent = RecentWrites(60)
    recent.wrote([document("r1"), document("r2")], 0.0)
    recent.wrote([document("r1", scope_ancestors=["/z"])], 50.0)
    assert ids(recent, scope_criteria("/a"), now=50.0) == ["r2"]
    assert ids(recent, scope_criteria("/z"), now=100.0) == ["r1"]


def test_one_without_an_embedding_is_never_found() -> None:
    recent = RecentWrites(60)
    recent.wrote([document("r1"), document("r2", embedding=None)], 0.0)
    assert ids(recent) == ["r1"]


def test_what_was_deleted_is_forgotten_and_asked_for_beyond() -> None:
    recent = RecentWrites(60)
    recent.wrote([document("r1"), document("r2", categories=["keep"])], 0.0)
    recent.removed(delete_criteria(categories=["c"]), None, 7, 10.0)
    assert ids(recent, now=10.0) == ["r2"]
    assert recent.overfetch(10.0) == 7
    assert recent.overfetch(71.0) == 0


def test_memory_is_bounded() -> None:
    recent = RecentWrites(60)
    recent.wrote((document(str(number)) for number in range(MOST_RECORDS + 10)), 0.0)
    assert len(ids(recent)) == MOST_RECORDS
    assert ids(recent)[0] == "10"
    recent.moved(10**9, 0.0)
    assert recent.overfetch(0.0) == 1000
