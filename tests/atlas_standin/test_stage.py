"""The stage's fields, row by row."""

from __future__ import annotations

from typing import Any

import pytest
from bson import Decimal128, Int64
from bson.binary import Binary, BinaryVectorDtype

from .errors import CommandError, MongotError
from .stage import check_as_mongod, parse_as_mongot
from .test_filters import INFINITY, as_sent

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
    {"queryVector": ABSENT, "query": {}},
    {"queryVector": ABSENT, "query": {"text": None}, "model": None},
    {"queryVector": ABSENT, "query": "", "exact": True, "numCandidates": ABSENT},
    {"query": None, "model": None},
    {"nestedOptions": {}},
    {"nestedOptions": {"scoreMode": None}},
    {"nestedOptions": {"scoreMode": "avg"}},
    {"explainOptions": {}},
    {"explainOptions": {"traceDocumentIds": None}},
    {"explainOptions": {"traceDocumentIds": [1, "a", {"b": 1}, None]}},
    {"explainOptions": 1, "exact": True, "numCandidates": ABSENT},
    {"parentFilter": None},
    {"parentFilter": {}},
    {"parentFilter": {"$or": [{"x": {"$ne": None}}, {"y": {"$in": [1.5]}}]}, "filter": {"x": 1}},
    {"queryVector": [3.4e38, -3.4e38]},
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
    ({"queryVector": ABSENT, "query": 1}, "query must be a string or document, but got INT32"),
    ({"query": ["text"]}, "query must be a string or document, but got ARRAY"),
    ({"queryVector": ABSENT, "query": {"text": 1}}, '"text" must be a string'),
    ({"queryVector": ABSENT, "query": {"text": "a", "image": "b"}}, 'unrecognized field "image"'),
    ({"queryVector": ABSENT, "query": {"a": 1, "b": 1}}, 'unrecognized fields ["a", "b"]'),
    ({"queryVector": ABSENT, "model": "voyage-4"}, "model can only be specified when using 'query'"),
    ({"queryVector": ABSENT, "query": "text", "model": ""}, '"model" cannot be empty'),
    ({"queryVector": ABSENT, "query": "text", "model": {}}, '"model" must be a string'),
    ({"query": "text", "model": "voyage-4"}, "Exactly one and only one of query and queryVector can be present"),
    ({"model": "voyage-4"}, "model can only be specified when using 'query' for auto-embedding"),
    (
        {"queryVector": [1.0, float("nan")]},
        "'queryVector' contains a non-finite value (Infinity or NaN) at position [1].",
    ),
    (
        {"queryVector": [1e300, 1.0]},
        "'queryVector' contains a non-finite value (Infinity or NaN) at position [0].",
    ),
    (
        {"queryVector": [1.0, -3.5e38]},
        "'queryVector' contains a non-finite value (Infinity or NaN) at position [1].",
    ),
    (
        {"queryVector": [INFINITY], "exact": True, "numCandidates": ABSENT},
        "'queryVector' contains a non-finite value (Infinity or NaN) at position [0].",
    ),
    (
        {"queryVector": Binary.from_vector([0.0, -INFINITY], BinaryVectorDtype.FLOAT32)},
        "'queryVector' contains a non-finite value (Infinity or NaN) at position [1].",
    ),
    ({"queryVector": [[INFINITY]]}, "Unsupported BsonValue type: ARRAY"),
    ({"numCandidates": INFINITY}, '"numCandidates" overflowed, must fit in a 32 bit integer'),
    ({"numCandidates": -INFINITY}, '"numCandidates" underflowed, must fit in a 32 bit integer'),
    ({"limit": INFINITY}, '"limit" overflowed, must fit in a 32 bit integer'),
    ({"parentFilter": [{"x": 1}]}, '"parentFilter" filter must be a document'),
    ({"parentFilter": "x"}, '"parentFilter" filter must be a document'),
    ({"parentFilter": {"x": []}}, '"parentFilter" must be a boolean, objectId, number, string, date, uuid, or null'),
    ({"parentFilter": {"x": {"$regex": "a"}}}, '"parentFilter.x" at least one of ['),
    ({"parentFilter": {"$and": []}}, '"parentFilter" cannot be empty'),
    ({"parentFilter": {"x": {"$in": [1, "a"]}}}, '"parentFilter.x.$in" must have elements of the same type'),
    ({"explainOptions": [1]}, '"explainOptions" must be a document'),
    ({"explainOptions": {"traceDocumentIds": 1}}, '"explainOptions.traceDocumentIds" must be a array'),
    ({"explainOptions": {"traceDocumentIds": []}}, '"explainOptions.traceDocumentIds" cannot be empty'),
    ({"explainOptions": {"ids": [1]}}, '"explainOptions" unrecognized field "ids"'),
    ({"filter": [{"x": 1}]}, '"filter" filter must be a document'),
    ({"filter": {"x": []}}, '"filter" must be a boolean, objectId, number, string, date, uuid, or null'),
    ({"returnStoredSource": 1}, '"returnStoredSource" must be a boolean'),
    ({"returnStoredSource": "true"}, '"returnStoredSource" must be a boolean'),
    ({"nestedOptions": {"scoreMode": "min"}}, 'scoreMode: "min" is not supported.'),
    ({"nestedOptions": {"scoreMode": 1}}, '"nestedOptions.scoreMode" must be a string'),
    ({"nestedOptions": {"mode": "max"}}, '"nestedOptions" unrecognized field "mode"'),
    ({"nestedOptions": "max"}, '"nestedOptions" must be a document'),
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
