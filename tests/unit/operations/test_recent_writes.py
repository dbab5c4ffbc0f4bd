"""Recent writes."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from crewai_mongodb_memory.operations.recent_writes import MOST_RECORDS, RecentWrites
from crewai_mongodb_memory.pure.criteria import Criteria, delete_criteria, scope_criteria, search_criteria

EVERYTHING = Criteria(None)


def document(record_id: str, **fields: Any) -> dict[str, Any]:
    return {
        "_id": record_id,
        "scope_ancestors": ["/a", "/a/b"],
        "categories": ["c"],
        "metadata_tokens": ["k=1"],
        "created_at": datetime(2026, 1, 1),
        "embedding": [1.0, 0.0],
    } | fields


def ids(recent: RecentWrites, criteria: Criteria = EVERYTHING, since: float = 0.0) -> list[str]:
    return [view["_id"] for view in recent.matching(criteria, since).matching]


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
    ("criteria", "found"),
    [
        (scope_criteria(None, "/a"), True),
        (scope_criteria(None, "/a/b"), True),
        (scope_criteria(None, "/a/b/c"), False),
        (search_criteria(None, None, ["c", "d"], None), True),
        (search_criteria(None, None, ["d"], None), False),
        (search_criteria(None, None, None, {"k": 1}), True),
        (search_criteria(None, None, None, {"k": 2}), False),
        (Criteria("acme"), True),
        (Criteria("other"), False),
    ],
    ids=repr,
)
def test_the_same_filters_apply(criteria: Criteria, found: bool) -> None:
    recent = RecentWrites(60)
    recent.wrote([document("r1", tenant="acme")], "acme", 0.0)
    assert bool(ids(recent, criteria)) is found


def test_a_later_write_replaces_an_earlier_one() -> None:
    recent = RecentWrites(60)
    recent.wrote([document("r1"), document("r2")], None, 0.0)
    recent.wrote([document("r1", scope_ancestors=["/z"])], None, 50.0)
    assert ids(recent, scope_criteria(None, "/a")) == ["r2"]
    assert ids(recent, scope_criteria(None, "/z"), since=10.0) == ["r1"]


def test_one_without_an_embedding_is_never_found() -> None:
    recent = RecentWrites(60)
    recent.wrote([document("r1"), document("r2", embedding=None), document("r3", embedding=[0.0, 0.0])], None, 0.0)
    assert ids(recent) == ["r1"]
    assert recent.matching(EVERYTHING, 0.0).others == {"r2", "r3"}


def test_of_a_lost_answer_only_the_id_is_known_until_the_next_write() -> None:
    recent = RecentWrites(60)
    recent.wrote([document("r1")], None, 0.0)
    recent.lost_sight_of("r1", 1.0)
    recent.removed(EVERYTHING)
    known = recent.matching(scope_criteria("other", "/z"), 0.0)
    assert known.matching == []
    assert not known.others
    assert known.unknown == {"r1"}
    recent.wrote([document("r1")], None, 2.0)
    assert recent.matching(EVERYTHING, 0.0).unknown == set()


def test_a_writer_without_a_tenant_may_have_written_a_record_of_any() -> None:
    recent = RecentWrites(60)
    recent.wrote([document("r1")], None, 0.0)
    recent.wrote([document("r2", tenant="acme")], "acme", 0.0)
    assert ids(recent, Criteria("acme")) == ["r1", "r2"]
    assert ids(recent, Criteria("other")) == ["r1"]


def test_what_was_deleted_is_forgotten() -> None:
    recent = RecentWrites(60)
    recent.wrote([document("r1"), document("r2", categories=["keep"]), document("r3")], None, 0.0)
    recent.removed(delete_criteria(None, record_ids=["r1", "r2", "r9"], categories=["c"]))
    assert ids(recent) == ["r2", "r3"]
    recent.removed(delete_criteria(None, categories=["c"]))
    assert ids(recent) == ["r2"]


def test_memory_is_bounded() -> None:
    recent = RecentWrites(60)
    recent.wrote((document(str(number)) for number in range(MOST_RECORDS + 10)), None, 0.0)
    assert len(ids(recent)) == MOST_RECORDS
    assert ids(recent)[0] == "10"


def test_writes_are_kept_for_the_longest_that_a_backend_wants() -> None:
    recent = RecentWrites(10)
    recent.keep_for(60)
    recent.keep_for(5)
    recent.wrote([document("r1")], None, 0.0)
    recent.wrote([document("r2")], None, 50.0)
    assert ids(recent) == ["r1", "r2"]
