"""The plan from the indexes that exist to those that are wanted."""

from __future__ import annotations

from typing import Any

import pytest

from crewai_mongodb_memory.pure.btree_indexes import EVERY_STORE, Index, memory_indexes, plan

WANTED = [Index((("scope", 1),)), Index((("created_at", -1),))]
SCOPE = {"name": "scope_1", "key": {"scope": 1}}
CREATED = {"name": "created_at_-1", "key": {"created_at": -1}}

EXISTING: list[tuple[list[dict[str, Any]], tuple[int, int, int]]] = [
    ([], (2, 0, 0)),
    ([{"name": "_id_", "key": {"_id": 1}}], (2, 0, 0)),
    ([SCOPE], (1, 1, 0)),
    ([SCOPE, CREATED], (0, 2, 0)),
    ([SCOPE | {"key": {"scope": 1.0}}, CREATED], (0, 2, 0)),
    ([SCOPE | {"name": "by_scope"}, CREATED], (0, 2, 0)),
    ([SCOPE | {"unique": True}, CREATED], (0, 2, 0)),
    ([SCOPE | {"key": {"scope": -1}}, CREATED], (0, 1, 1)),
    ([SCOPE | {"sparse": True}, CREATED], (0, 1, 1)),
    ([SCOPE | {"collation": {"locale": "de"}}, CREATED], (0, 1, 1)),
    ([SCOPE | {"partialFilterExpression": {"a": 1}, "name": "part"}, CREATED], (1, 1, 0)),
    ([SCOPE | {"key": {"scope": "hashed"}}, CREATED], (0, 1, 1)),
    ([SCOPE | {"key": {"scope": 1, "x": 1}, "name": "wider"}, CREATED], (1, 1, 0)),
]


@pytest.mark.parametrize(("existing", "numbers"), EXISTING, ids=repr)
def test_plan(existing: list[dict[str, Any]], numbers: tuple[int, int, int]) -> None:
    planned = plan(existing, WANTED)
    assert (len(planned.create), len(planned.keep), len(planned.conflict)) == numbers
    assert {*planned.create, *planned.keep, *planned.conflict} == set(WANTED)


def test_names_are_those_that_mongodb_gives() -> None:
    assert [index.name for index in EVERY_STORE] == [
        "scope_1",
        "categories_1",
        "created_at_-1__id_1",
        "scope_ancestors_1_created_at_-1__id_1",
    ]


@pytest.mark.parametrize("tenants", [False, True])
def test_no_text_is_indexed_downwards(tenants: bool) -> None:
    fields = {field for index in memory_indexes(tenants=tenants) for field, direction in index.keys if direction < 0}
    assert fields == {"created_at"}
