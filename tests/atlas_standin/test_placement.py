"""Where the stages may stand, and what may come with them."""

from __future__ import annotations

from typing import Any

import pytest

from .errors import CommandError
from .placement import (
    check_aggregate_options,
    check_management_options,
    check_other_command,
    check_positions,
    check_search_meta,
)
from .test_stage import GOOD

SEARCH: dict[str, Any] = {"$vectorSearch": GOOD}
LISTING: dict[str, Any] = {"$listSearchIndexes": {}}

PLACES: list[tuple[list[dict[str, Any]], int | None]] = [
    ([SEARCH], None),
    ([SEARCH, {"$match": {}}], None),
    ([{"$match": {}}, {"$unionWith": {"coll": "c", "pipeline": [SEARCH]}}], None),
    ([{"$match": {}}, {"$unionWith": "c"}], None),
    ([LISTING, {"$match": {}}], None),
    ([{"$match": {}}, SEARCH], 40602),
    ([SEARCH, SEARCH], 40602),
    ([{"$match": {}}, LISTING], 40602),
    ([{"$unionWith": {"coll": "c", "pipeline": [{"$match": {}}, SEARCH]}}], 40602),
    ([{"$facet": {"a": [SEARCH]}}], 40600),
    ([{"$facet": {"a": [LISTING]}}], 40600),
    ([{"$facet": {"a": [{"$unionWith": {"coll": "c", "pipeline": [SEARCH]}}]}}], 40600),
    ([{"$lookup": {"from": "c", "pipeline": [SEARCH], "as": "d"}}], 51047),
    ([{"$lookup": {"pipeline": [{"$unionWith": {"coll": "c", "pipeline": [SEARCH]}}]}}], 51047),
    ([{**SEARCH, "$match": {}}], 40323),
]


@pytest.mark.parametrize(("pipeline", "code"), PLACES)
def test_places(pipeline: list[dict[str, Any]], code: int | None) -> None:
    if code is None:
        check_positions(pipeline)
        return
    with pytest.raises(CommandError) as raised:
        check_positions(pipeline)
    assert code == raised.value.code


OPTIONS: list[tuple[dict[str, Any], int | None]] = [
    ({}, None),
    ({"readConcern": {"level": "local"}}, None),
    ({"readConcern": {"afterClusterTime": 1}}, None),
    ({"lsid": 1}, None),
    ({"apiStrict": False}, None),
    ({"readConcern": {"level": "majority"}}, 72),
    ({"readConcern": {"level": "available"}}, 72),
    ({"autocommit": False, "startTransaction": True}, 263),
    ({"apiStrict": True}, 323),
]


@pytest.mark.parametrize("name", ["$vectorSearch", "$listSearchIndexes"])
@pytest.mark.parametrize(("options", "code"), OPTIONS)
def test_options_of_the_aggregation(name: str, options: dict[str, Any], code: int | None) -> None:
    if code is None:
        check_aggregate_options(name, options)
        return
    with pytest.raises(CommandError) as raised:
        check_aggregate_options(name, options)
    assert code == raised.value.code


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"writeConcern": {"w": "majority"}}, 72),
        ({"readConcern": {"level": "local"}}, 72),
        ({"autocommit": False}, 263),
        ({"apiStrict": True}, 323),
    ],
)
def test_options_of_a_management_command(options: dict[str, Any], code: int) -> None:
    with pytest.raises(CommandError) as raised:
        check_management_options("createSearchIndexes", options)
    assert code == raised.value.code


@pytest.mark.parametrize(
    ("name", "body", "code"),
    [
        ("update", {"updates": [{"q": {}, "u": [SEARCH]}]}, 72),
        ("findAndModify", {"update": [SEARCH]}, 72),
        ("bulkWrite", {"ops": [{"update": 0, "updateMods": [SEARCH]}]}, 72),
        ("create", {"viewOn": "c", "pipeline": [SEARCH]}, 167),
        ("explain", {"explain": {"aggregate": "c", "pipeline": [SEARCH]}}, 238),
    ],
)
def test_other_commands_with_a_pipeline(name: str, body: dict[str, Any], code: int) -> None:
    with pytest.raises(CommandError) as raised:
        check_other_command(name, body)
    assert code == raised.value.code


def test_ordinary_updates_pass() -> None:
    check_other_command("update", {"updates": [{"q": {}, "u": {"$set": {"x": 1}}}, {"u": [{"$set": {"x": 1}}]}]})


def test_search_meta_is_not_there() -> None:
    check_search_meta([{"$project": {"x": "$$ROOT"}}])
    with pytest.raises(CommandError) as raised:
        check_search_meta([{"$project": {"x": "$$SEARCH_META.count"}}])
    assert raised.value.code == 6347902
