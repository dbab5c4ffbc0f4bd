"""Recent writes."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from crewai_mongodb_memory.operations.recent_writes import MOST_RECORDS, RecentWrites
from crewai_mongodb_memory.pure.criteria import Criteria, delete_criteria, scope_criteria, search_criteria

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
    recent: RecentWrites, criteria: Criteria = EVERYTHING, tenant: str | None = None, since: float = 0.0
) -> list[str]:
    return [view["_id"] for view in recent.matching(criteria, tenant, since).matching]


def test_a_write_is_recent_for_its_seconds() -> None:
    recent = RecentWrites(60)
    recent.wrote([document("r1")], None, 100.0)
    recent.wrote([document("r2")], None, 130.0)
    assert ids(recent, since=100.0) == ["r1", "r2"]
    assert ids(recent, since=100.1) == ["r2"]
    recent.wrote([document("r3")], None, 170.0)
    assert ids(recent, since=0.0) == ["r2", "r3"]


def test_with_no_seconds_nothing_is_remembered() -> None:
    recent = RecentWrites(0)
    recent.wrote([document("r1")], None, 0.0)
    assert ids(recent) == []


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
    recent.wrote([document("r1", tenant="acme")], "acme", 0.0)
    assert bool(ids(recent, criteria, tenant)) is found


def test_a_later_write_replaces_an_earlier_one() -> None:
    recent = RecentWrites(60)
    recent.wrote([document("r1"), document("r2")], None, 0.0)
    recent.wrote([document("r1", scope_ancestors=["/z"])], None, 50.0)
    assert ids(recent, scope_criteria("/a")) == ["r2"]
    assert ids(recent, scope_criteria("/z"), since=10.0) == ["r1"]


def test_one_without_an_embedding_is_never_found() -> None:
    recent = RecentWrites(60)
    recent.wrote([document("r1"), document("r2", embedding=None), document("r3", embedding=[0.0, 0.0])], None, 0.0)
    assert ids(recent) == ["r1"]
    assert recent.matching(EVERYTHING, None, 0.0).others == {"r2", "r3"}


def test_of_a_lost_answer_only_the_id_is_known_until_the_next_write() -> None:
    recent = RecentWrites(60)
    recent.wrote([document("r1")], None, 0.0)
    recent.lost_sight_of("r1", 1.0)
    recent.removed(EVERYTHING, None)
    known = recent.matching(scope_criteria("/z"), "other", 0.0)
    assert known.matching == []
    assert not known.others
    assert known.unknown == {"r1"}
    recent.wrote([document("r1")], None, 2.0)
    assert recent.matching(EVERYTHING, None, 0.0).unknown == set()


def test_a_writer_without_a_tenant_may_have_written_a_record_of_any() -> None:
    recent = RecentWrites(60)
    recent.wrote([document("r1")], None, 0.0)
    recent.wrote([document("r2", tenant="acme")], "acme", 0.0)
    assert ids(recent, tenant="acme") == ["r1", "r2"]
    assert ids(recent, tenant="other") == ["r1"]


def test_what_was_deleted_is_forgotten() -> None:
    recent = RecentWrites(60)
    recent.wrote([document("r1"), document("r2", categories=["keep"]), document("r3")], None, 0.0)
    recent.removed(delete_criteria(record_ids=["r1", "r2", "r9"], categories=["c"]), None)
    assert ids(recent) == ["r2", "r3"]
    recent.removed(delete_criteria(categories=["c"]), None)
    assert ids(recent) == ["r2"]


def test_memory_is_bounded() -> None:
    recent = RecentWrites(60)
    recent.wrote((document(str(number)) for number in range(MOST_RECORDS + 10)), None, 0.0)
    assert len(ids(recent)) == MOST_RECORDS
    assert ids(recent)[0] == "10"


def test_backends_on_one_store_share_what_they_wrote_for_the_longest_that_one_wants() -> None:
    short, long = RecentWrites.shared("store", 10), RecentWrites.shared("store", 60)
    assert short is long
    assert RecentWrites.shared("another store", 10) is not short
    short.wrote([document("r1")], None, 0.0)
    short.wrote([document("r2")], None, 50.0)
    assert ids(long) == ["r1", "r2"]
