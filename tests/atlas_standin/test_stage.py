"""The stage's fields, row by row, and where the stage may stand."""

from __future__ import annotations

from typing import Any

import pytest
from bson import Decimal128, Int64

from .errors import CommandError, MongotError
from .placement import (
    check_aggregate_options,
    check_management_options,
    check_other_command,
    check_positions,
    check_search_meta,
)
from .stage import check_as_mongod, parse_as_mongot
from .test_filters import as_sent

GOOD: dict[str, Any] = {
    "index": "ix",
    "path": "v",
    "queryVector": [1.0, 0.0],
    "numCandidates": 100,
    "limit": 10,
}
ABSENT: Any = object()


def stage(**changes: Any) -> dict[str, Any]:
    changed = {name: value for name, value in {**GOOD, **changes}.items() if value is not ABSENT}
    sent: dict[str, Any] = as_sent(changed)
    return sent


ACCEPTED: list[dict[str, Any]] = [
    {},
    {"limit": 10.0, "numCandidates": 10.0},
    {"limit": Int64(10), "numCandidates": Int64(10)},
    {"numCandidates": 10_000, "limit": 10_000},
    {"exact": True, "numCandidates": ABSENT, "limit": 50_000},
    {"exact": False},
    {"exact": None, "filter": None, "returnStoredSource": None},
    {"filters": {"x": []}, "pre_filter": 1, "anything": "else"},
    {"searchNodePreference": {"key": "a"}},
    {"queryVector": ABSENT, "query": "text", "model": "voyage-4"},
    {"queryVector": ABSENT, "query": {"text": "text"}},
]


@pytest.mark.parametrize("changes", ACCEPTED)
def test_accepted(changes: dict[str, Any]) -> None:
    check_as_mongod(stage(**changes))
    parse_as_mongot(stage(**changes))


BOUNDS = '"numCandidates" must be within bounds [1..10000]'

MONGOT_REFUSES: list[tuple[dict[str, Any], str]] = [
    ({"index": ABSENT}, '"index" is required'),
    ({"index": None}, '"index" is required'),
    ({"index": ""}, '"index" cannot be empty'),
    ({"index": 1}, '"index" must be a string'),
    ({"path": ABSENT}, '"path" is required'),
    ({"path": ["v"]}, '"path" must be a string'),
    ({"numCandidates": ABSENT}, "numCandidates is required for approximate vector search"),
    ({"numCandidates": 0}, BOUNDS),
    ({"numCandidates": 10_001}, BOUNDS),
    ({"numCandidates": "100"}, '"numCandidates" must be a integer'),
    ({"numCandidates": 10.5}, '"numCandidates" must be an integer'),
    ({"numCandidates": Int64(2**40)}, '"numCandidates" overflowed, must fit in a 32 bit integer'),
    ({"limit": ABSENT}, '"limit" is required'),
    ({"limit": 10.5}, '"limit" must be an integer'),
    ({"limit": 101}, "limit should be less than or equal to numCandidates"),
    ({"limit": Int64(2**40)}, '"limit" overflowed, must fit in a 32 bit integer'),
    ({"limit": Decimal128("10")}, '"limit" must be a integer'),
    ({"exact": True}, '"numCandidates" must be omitted when "exact" is set to true'),
    ({"exact": True, "numCandidates": ABSENT, "limit": ABSENT}, '"limit" is required'),
    ({"exact": "true"}, '"exact" must be a boolean'),
    ({"queryVector": ABSENT}, "Exactly one and only one of query and queryVector can be present"),
    ({"query": "text"}, "Exactly one and only one of query and queryVector can be present"),
    ({"queryVector": ABSENT, "query": 1}, "query must be a string or document"),
    ({"model": "voyage-4"}, "model can only be specified when using 'query' for auto-embedding"),
    (
        {"queryVector": [1.0, float("nan")]},
        "'queryVector' contains a non-finite value (Infinity or NaN) at position [1].",
    ),
    (
        {"queryVector": [1e300, 1.0]},
        "'queryVector' contains a non-finite value (Infinity or NaN) at position [0].",
    ),
    ({"filter": [{"x": 1}]}, '"filter" filter must be a document'),
    ({"filter": {"x": []}}, '"filter" must be a boolean, objectId, number, string, date, uuid, or null'),
    ({"returnStoredSource": 1}, '"returnStoredSource" must be a boolean'),
    ({"nestedOptions": {"scoreMode": "min"}}, '"nestedOptions.scoreMode" must be one of [avg, max]'),
    ({"searchNodePreference": {"key": ""}}, '"searchNodePreference.key" cannot be empty'),
    # which of two mistakes is told
    ({"index": "", "path": 1}, '"index" cannot be empty'),
    ({"numCandidates": 0, "queryVector": "no"}, BOUNDS),
    ({"limit": 101, "queryVector": "no"}, "limit should be less than or equal to numCandidates"),
    ({"queryVector": "no", "filter": 1}, '"queryVector" Unexpected type found when parsing vector'),
]


@pytest.mark.parametrize(("changes", "text"), MONGOT_REFUSES)
def test_mongot_refuses(changes: dict[str, Any], text: str) -> None:
    check_as_mongod(stage(**changes))
    with pytest.raises(MongotError) as raised:
        parse_as_mongot(stage(**changes))
    assert str(raised.value).startswith(text)


MONGOD_REFUSES: list[tuple[Any, int, str]] = [
    ("ix", 9, "$vectorSearch value must be an object. Found: string"),
    (stage(limit="10"), 8575100, "Expected limit field to be a number in $vectorSearch"),
    (stage(limit=None), 8575100, "Expected limit field to be a number in $vectorSearch"),
    (stage(limit=True), 8575100, "Expected limit field to be a number in $vectorSearch"),
    (stage(limit=0), 7912700, "Expected limit to be positive"),
    (stage(limit=-1), 7912700, "Expected limit to be positive"),
    (stage(limit=0.5), 7912700, "Expected limit to be positive"),
    (stage(limit=Decimal128("-1")), 7912700, "Expected limit to be positive"),
    (stage(filter={"x": {"$foo": 1}}), 2, "unknown operator: $foo"),
    (stage(filter={"$or": []}), 2, "$and/$or/$nor must be a nonempty array"),
]


@pytest.mark.parametrize(("spec", "code", "text"), MONGOD_REFUSES)
def test_mongod_refuses(spec: Any, code: int, text: str) -> None:
    with pytest.raises(CommandError) as raised:
        check_as_mongod(spec)
    assert (code, text) == (raised.value.code, raised.value.text)


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
