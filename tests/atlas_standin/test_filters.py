"""The filter language, row by row: what it accepts, what it refuses, and whom it matches."""

from __future__ import annotations

import math
import uuid
from typing import Any

import bson
import pytest
from bson import Decimal128, Int64, ObjectId, Regex, Timestamp
from bson.binary import Binary

from .errors import CommandError, MongotError
from .filters import check_query, parse_filter
from .mql import check_filter
from .parsing import Location
from .values import FieldValues, found_at
from .wire import CODEC

OID = ObjectId("65e6fb2750d65e5a3c71683a")
NAN, INFINITY = math.nan, math.inf
UUID4 = Binary(uuid.UUID(int=7).bytes, 4)


def as_sent(value: Any) -> Any:
    """What arrives of a value that was sent: dates, binaries and long integers in their wire types."""
    return bson.decode(bson.encode({"": value}), CODEC)[""]


def matches(given: dict[str, Any], document: dict[str, Any], *declared: str) -> bool:
    """Whether the filter finds the document in an index that declares these paths."""
    clause = parse_filter(as_sent(given), Location().child("filter"))
    check_query(clause, declared)
    fields: dict[str, FieldValues] = {}
    for path, value in found_at(as_sent(document), declared):
        fields.setdefault(path, FieldValues()).add(value)
    return clause.matches(fields)


MATCHING: list[tuple[dict[str, Any], Any, bool]] = [
    # short form, $eq and $ne
    ({"x": 1}, 1, True),
    ({"x": 1}, 1.0, True),
    ({"x": 1.0}, Int64(1), True),
    ({"x": {"$eq": "a"}}, "a", True),
    ({"x": "a"}, "A", False),
    ({"x": ""}, "", True),
    ({"x": OID}, OID, True),
    ({"x": UUID4}, UUID4, True),
    ({"x": {"$ne": "a"}}, "b", True),
    ({"x": {"$ne": "a"}}, "a", False),
    # type bracketing
    ({"x": "1"}, 1, False),
    ({"x": 1}, True, False),
    ({"x": True}, 1, False),
    ({"x": {"$gt": 0}}, "z", False),
    ({"x": {"$gt": 0}}, True, False),
    ({"x": {"$gt": False}}, True, True),
    # ranges
    ({"x": {"$gt": 1, "$lte": 2.5}}, 2, True),
    ({"x": {"$gte": 2, "$lt": 2}}, 2, False),
    ({"x": {"$gte": "/a/", "$lt": "/a0"}}, "/a/b", True),
    ({"x": {"$gte": "/a/", "$lt": "/a0"}}, "/ab", False),
    ({"x": {"$gt": "Z"}}, "a", True),
    ({"x": {"$gt": "z"}}, "é", True),
    ({"x": {"$lt": OID}}, ObjectId("0" * 24), True),
    # arrays: any element, nested ones flattened; several operators may each have their own
    ({"x": "b"}, ["a", "b"], True),
    ({"x": "b"}, [["a", ["b"]]], True),
    ({"x": {"$gt": 4, "$lt": 2}}, [1, 5], True),
    ({"x": {"$ne": "b"}}, ["a", "b"], False),
    ({"x": {"$nin": ["b"]}}, ["a", "c"], True),
    ({"x": "a"}, [], False),
    # null and missing
    ({"x": None}, None, True),
    ({"x": None}, ["a", None], True),
    ({"x": None}, ..., False),
    ({"x": {"$ne": None}}, ..., True),
    ({"x": {"$ne": None}}, "a", True),
    ({"x": {"$ne": None}}, None, False),
    ({"x": {"$ne": "a"}}, ..., True),
    ({"x": {"$nin": ["a"]}}, ..., True),
    ({"x": {"$not": {"$gt": 1}}}, ..., True),
    ({"$nor": [{"x": "a"}]}, ..., True),
    ({"x": {"$exists": True}}, None, True),
    ({"x": {"$exists": True}}, [], True),
    ({"x": {"$exists": False}}, ..., True),
    ({"x": {"$exists": True}}, ..., False),
    # $in
    ({"x": {"$in": ["a", "b"]}}, "b", True),
    ({"x": {"$in": [1, 2.0]}}, 2, True),
    ({"x": {"$in": [OID]}}, OID, True),
    ({"x": {"$in": ["a"]}}, ["b", "a"], True),
    # the double quirk: integers are probed with the values cast to long
    ({"x": {"$in": [1.5]}}, 1, True),
    ({"x": {"$in": [-1.5]}}, -1, True),
    ({"x": {"$in": [1.5]}}, 1.0, False),
    ({"x": {"$nin": [1.5]}}, 1, False),
    ({"x": 1.5}, 1, False),
    # $not, and all of its operators at once
    ({"x": {"$not": {"$gt": 1, "$lt": 9}}}, 5, False),
    ({"x": {"$not": {"$gt": 1, "$lt": 9}}}, 10, True),
    ({"x": {"$not": {"$not": {"$eq": 5}}}}, 5, True),
    # clauses, and the empty one among them
    ({}, 1, True),
    ({"$and": [{"x": 1}, {"x": {"$lt": 2}}]}, 1, True),
    ({"$or": [{"x": 2}, {"x": 1}]}, 1, True),
    ({"$or": [{"x": 2}, {}]}, 1, True),
    ({"$nor": [{}]}, 1, False),
    ({"$and": [{}, {"x": 2}]}, 1, False),
    ({"$nor": [{"x": 2}, {"x": 3}]}, 1, True),
    # types the index leaves out: there, but never matching
    ({"x": 1}, Decimal128("1"), False),
    ({"x": {"$exists": True}}, Decimal128("1"), True),
    ({"x": UUID4}, Binary(bytes(UUID4), 3), False),
    ({"x": "a"}, {"y": "a"}, False),
    ({"x": "a"}, Regex("a"), False),
    # a long and a double are compared by what mongot makes of the number for each
    ({"x": 2**53 + 1}, float(2**53), True),
    ({"x": 2**53 + 1}, Int64(2**53), False),
    ({"x": float(2**53)}, Int64(2**53 + 1), False),
    ({"x": {"$lt": 2**53 + 1}}, float(2**53), False),
    ({"x": {"$gte": Int64(2**63 - 1)}}, float(2**63), True),
    ({"x": {"$in": [2**53 + 1]}}, float(2**53), True),
    ({"x": {"$nin": [-(2**53) - 1]}}, float(-(2**53)), False),
    ({"x": 0}, -0.0, True),
    ({"x": {"$lt": 0.0}}, -0.0, False),
    ({"x": {"$gt": 1.5}}, 2, True),
    ({"x": {"$lt": -1.5}}, -1, False),
    ({"x": {"$gt": 1e300}}, Int64(2**63 - 1), False),
    # not a number, and infinity
    ({"x": {"$in": [NAN]}}, NAN, True),
    ({"x": {"$in": [1, NAN]}}, [2.0, NAN], True),
    ({"x": {"$nin": [NAN]}}, NAN, False),
    ({"x": {"$in": [NAN]}}, 0, True),
    ({"x": {"$in": [NAN]}}, INFINITY, False),
    ({"x": NAN}, NAN, False),
    ({"x": NAN}, 0, True),
    ({"x": {"$gt": 0}}, NAN, False),
    ({"x": {"$in": [INFINITY]}}, INFINITY, True),
    ({"x": {"$in": [INFINITY]}}, Int64(2**63 - 1), True),
    ({"x": {"$in": [-INFINITY]}}, Int64(-(2**63)), True),
    ({"x": INFINITY}, INFINITY, False),
    ({"x": {"$gt": 0}}, INFINITY, False),
    ({"x": {"$lte": INFINITY}}, INFINITY, True),
    ({"x": {"$gte": -INFINITY}}, -INFINITY, True),
    # $exists and $not given as null are not given
    ({"x": {"$eq": 1, "$exists": None}}, 1, True),
    ({"x": {"$gt": 1, "$not": None}}, 1, False),
    ({"x": {"$not": {"$in": ["a"], "$exists": None}}}, "b", True),
    ({"x": {"$eq": None, "$exists": True}}, None, True),
    # strings are cut when indexed, not when asked for
    ({"x": "s" * 8192}, "s" * 8192, False),
    ({"x": {"$gte": "s" * 8191, "$lte": "s" * 8191}}, "s" * 9000, True),
    ({"x": "s" * 8191}, ["a", "s" * 8192], True),
    # by UTF-16 units, of which some signs take two, and none is left in halves
    ({"x": "é" * 8191}, "é" * 8191, True),
    ({"x": "é" * 8191}, "é" * 8192, True),
    ({"x": "😀" * 4096}, "😀" * 4096, False),
    ({"x": "😀" * 4095}, "😀" * 4096, False),
    ({"x": "😀" * 4095 + "\ufffd"}, "😀" * 4096, True),
    ({"x": "s" + "😀" * 4095}, "s" + "😀" * 9000, True),
    ({"x": {"$in": ["😀" * 4095 + "s"]}}, "😀" * 4095 + "st", True),
]


@pytest.mark.parametrize(("given", "value", "expected"), MATCHING)
def test_matching(given: dict[str, Any], value: Any, expected: bool) -> None:
    document = {} if value is ... else {"x": value}
    assert expected == matches(given, document, "x")


@pytest.mark.parametrize(
    ("path", "document", "expected"),
    [
        ("a.b", {"a": {"b": 1}}, True),
        ("a.b", {"a": [{"b": 2}, {"b": 1}]}, True),
        ("a.b", {"a": [[{"b": [1]}]]}, True),
        ("a.b", {"a.b": 1}, True),
        ("a.b", {"a": {"c": 1}}, False),
        ("a.b", {"a": 1}, False),
        ("_id", {"_id": 1}, True),
    ],
)
def test_paths_enter_documents_and_arrays_of_them(path: str, document: dict[str, Any], expected: bool) -> None:
    assert expected == matches({path: 1}, document, path)


@pytest.mark.parametrize(
    "given",
    [
        {"y": 1},
        {"x.y": 1},
        {"y": {"$ne": "a"}},
        {"y": {"$in": ["a"]}},
        {"y": {"$exists": False}},
        {"$or": [{"x": 1}, {"y": {"$not": {"$gt": 1}}}]},
    ],
)
def test_undeclared_paths_are_an_error_of_the_whole_query(given: dict[str, Any]) -> None:
    """Declaring x covers neither y nor x.y, whatever the operator."""
    with pytest.raises(MongotError, match=r"Path '(y|x\.y)' needs to be indexed as filter"):
        matches(given, {"x": 1}, "x")


@pytest.mark.parametrize(("given", "expected"), [({"y": None}, False), ({"y": {"$ne": None}}, True)])
def test_null_comparisons_do_not_look_at_the_declaration(given: dict[str, Any], expected: bool) -> None:
    assert expected == matches(given, {"y": None}, "x")


@pytest.mark.parametrize(
    ("path", "document", "expected"),
    [
        ("m", {"m": None}, True),
        ("m", {"m": [1, [None]]}, True),
        ("m", {"m": {"x": None}}, False),
        ("m", {"m": 1}, False),
        ("m.x", {"m": {"x": None}}, True),
        ("m.x", {"m": [{"x": 1}, {"x": None}]}, True),
        ("m.x", {"m": None}, False),
        ("m.x.y", {"m": {"x": {"y": None}}}, False),
    ],
)
def test_nulls_are_indexed_on_the_way_to_a_declared_path(path: str, document: dict[str, Any], expected: bool) -> None:
    assert expected == matches({path: None}, document, "m.x")
    assert expected != matches({path: {"$ne": None}}, document, "m.x")


BAD_VALUE = "must be a boolean, objectId, number, string, date, uuid, or null"

REFUSED_BY_MONGOT: list[tuple[Any, str]] = [
    ([], '"filter" filter must be a document'),
    ({"x": ["a"]}, f'"filter" {BAD_VALUE}'),
    ({"x": {}}, f'"filter" {BAD_VALUE}'),
    ({"x": {"y": 1}}, f'"filter" {BAD_VALUE}'),
    ({"x": Regex("a")}, f'"filter" {BAD_VALUE}'),
    ({"x": {"$eq": ["a"]}}, f'"filter.x.$eq" {BAD_VALUE}'),
    ({"x": {"$ne": Decimal128("1")}}, f'"filter.x.$ne" {BAD_VALUE}'),
    ({"x": {"$eq": Timestamp(1, 1)}}, f'"filter.x.$eq" {BAD_VALUE}'),
    ({"x": Binary(bytes(UUID4), 3)}, '"filter" binary value must be UUID subtype 4'),
    ({"x": Binary(b"abc")}, '"filter" binary value must be UUID subtype 4'),
    ({"x": {"$gt": None}}, '"filter.x.$gt" Type is not supported: NULL'),
    ({"x": {"$lte": ["a"]}}, '"filter.x.$lte" Type is not supported: ARRAY'),
    ({"x": {"$gt": Decimal128("1")}}, '"filter.x.$gt" Type is not supported: DECIMAL128'),
    ({"x": {"$in": []}}, '"filter.x.$in" cannot be empty'),
    ({"x": {"$in": ["a", 1]}}, '"filter.x.$in" must have elements of the same type'),
    ({"x": {"$in": ["a", None]}}, '"filter.x.$in[1]" value type cannot be null'),
    ({"x": {"$nin": [["a"]]}}, f'"filter.x.$nin[0]" {BAD_VALUE}'),
    ({"x": {"$exists": 1}}, '"filter.x.$exists" must be a boolean'),
    (
        {"x": {"$regex": "a"}},
        '"filter.x" at least one of [$gt, $gte, $lt, $lte, $eq, $ne, $in, $nin, $exists, $not] must be present',
    ),
    ({"x": {"$eq": 1, "$size": 1}}, '"filter.x" unrecognized field "$size"'),
    ({"x": {"y": 1, "$eq": 1}}, '"filter.x" unrecognized field "y"'),
    ({"x": {"$eq": 1, "$mod": 1, "$type": 1}}, '"filter.x" unrecognized fields ["$mod", "$type"]'),
    ({"x": {"$not": {"$all": []}}}, '"filter.x.$not" at least one of ['),
    ({"$and": [{"x": []}]}, f'"filter[0]" {BAD_VALUE}'),
    ({"$expr": {"$eq": [1, 1]}}, f'"filter.$expr.$eq" {BAD_VALUE}'),
    ({"$text": {"$search": "a"}}, '"filter.$text" at least one of ['),
    ({"$where": "true"}, "Path '$where' needs to be indexed as filter"),
]


@pytest.mark.parametrize(("given", "text"), REFUSED_BY_MONGOT)
def test_mongot_refuses(given: Any, text: str) -> None:
    with pytest.raises(MongotError) as raised:
        matches(given, {}, "x")
    assert str(raised.value).startswith(text)


REFUSED_BY_MONGOD: list[tuple[dict[str, Any], str]] = [
    ({"x": {"$foo": 1}}, "unknown operator: $foo"),
    ({"x": {"$eq": 1, "y": 1}}, "unknown operator: y"),
    ({"x": {"$not": {"$foo": 1}}}, "unknown operator: $foo"),
    ({"$foo": 1}, "unknown top level operator: $foo"),
    ({"$and": []}, "$and/$or/$nor must be a nonempty array"),
    ({"$or": [{"$nor": []}]}, "$and/$or/$nor must be a nonempty array"),
    ({"$or": {"x": 1}}, "$or must be an array"),
    ({"$or": [1]}, "$or/$and/$nor entries need to be full objects"),
    ({"x": {"$in": "a"}}, "$in needs an array"),
    ({"x": {"$in": [{"$gt": 1}]}}, "cannot nest $ under $in"),
    ({"x": {"$not": 1}}, "$not needs a regex or a document"),
    ({"x": {"$not": {}}}, "$not cannot be empty"),
]


@pytest.mark.parametrize(("given", "text"), REFUSED_BY_MONGOD)
def test_mongod_refuses_what_is_not_mql(given: dict[str, Any], text: str) -> None:
    with pytest.raises(CommandError) as raised:
        check_filter(given)
    assert (2, text) == (raised.value.code, raised.value.text)


@pytest.mark.parametrize("given", [row[0] for row in REFUSED_BY_MONGOT if isinstance(row[0], dict)])
def test_what_only_mongot_minds_is_mql(given: dict[str, Any]) -> None:
    check_filter(given)
