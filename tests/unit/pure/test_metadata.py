"""Metadata: into BSON and back, and into tokens."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal, Inexact, localcontext
from enum import Enum
from typing import Any
from uuid import UUID

import bson
import numpy as np
import pytest
from bson import Binary, ObjectId
from hypothesis import given
from hypothesis import strategies as st

from crewai_mongodb_memory.pure import metadata
from crewai_mongodb_memory.pure.documents import CODEC_OPTIONS


class Colour(Enum):
    BLUE = "blue"


class Level(str, Enum):
    HIGH = "high"


IDENTITY = UUID("12345678-1234-5678-1234-567812345678")
OBJECT_ID = ObjectId("0123456789abcdef01234567")
RECURSIVE: dict[str, Any] = {}
RECURSIVE["self"] = RECURSIVE

# What is given, and what comes back from a store.
STORABLE: list[tuple[Any, Any]] = [
    (None, None),
    (True, True),
    (7, 7),
    (-(2**63), -(2**63)),
    (2**63 - 1, 2**63 - 1),
    (1.5, 1.5),
    (float("inf"), float("inf")),
    ("text with \x00", "text with \x00"),
    (b"bytes", b"bytes"),
    (IDENTITY, IDENTITY),
    (OBJECT_ID, OBJECT_ID),
    (Decimal("1.50"), Decimal("1.50")),
    (datetime(2026, 5, 1, 12, tzinfo=timezone(timedelta(hours=2))), datetime(2026, 5, 1, 10)),
    (datetime(2026, 5, 1, 12, 0, 0, 123456), datetime(2026, 5, 1, 12, 0, 0, 123000)),
    (date(2026, 5, 1), "2026-05-01"),
    (time(9, 30), "09:30:00"),
    (Colour.BLUE, "blue"),
    (Level.HIGH, "high"),
    (np.int64(3), 3),
    (np.float32(0.5), 0.5),
    (np.bool_(True), True),
    (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
    ((1, (2, 3)), [1, [2, 3]]),
    ({"b", "a"}, ["a", "b"]),
    (frozenset(), []),
    ({1: "a", Colour.BLUE: 2}, {"1": "a", "blue": 2}),
    ({"$set": 1, "a.b": 2, "": 3}, {"$set": 1, "a.b": 2, "": 3}),
    ([{"deep": [{}]}], [{"deep": [{}]}]),
]

UNSTORABLE: list[tuple[Any, str, str]] = [
    ({"n": 2**70}, "metadata.n", "64 bits"),
    ({"n": -(2**63) - 1}, "metadata.n", "64 bits"),
    ({"n": np.uint64(2**63)}, "metadata.n", "64 bits"),
    ({"a": {"b": [1, {"c": object()}]}}, "metadata.a.b.c", "type object"),
    ({"c": 1j}, "metadata.c", "type complex"),
    ({"d": timedelta(1)}, "metadata.d", "type timedelta"),
    ({"d": Decimal("1." + "1" * 40)}, "metadata.d", "34 digits"),
    ({"s": "bad \ud83d end"}, "metadata.s", "surrogate"),
    ({"x": Binary(b"abc", 4)}, "metadata.x", "UUID of 3 bytes"),
    ({"k\ud83d": 1}, r"metadata.k\ud83d", "surrogate"),
    ({"a\x00b": 1}, "metadata.a\x00b", "NUL"),
    ({"x": {(1, 2): 3}}, "metadata.x", "has the key (1, 2)"),
    ({"x": {1: 2, "1": 3}}, "metadata.x.1", "two keys"),
    ({"d": datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=5)))}, "metadata.d", "range"),
    (RECURSIVE, "metadata" + ".self" * (metadata.MAX_DEPTH + 1), "nested"),
]


def through_bson(value: Any) -> Any:
    """What a server would give back."""
    return bson.decode(bson.encode(value, codec_options=CODEC_OPTIONS), codec_options=CODEC_OPTIONS)


@pytest.mark.parametrize(("given_value", "stored"), STORABLE, ids=repr)
def test_a_value_comes_back_from_bson(given_value: Any, stored: Any) -> None:
    encoded = metadata.encode({"key": given_value})
    decoded = metadata.decode(through_bson(encoded))["key"]
    assert decoded == stored
    assert type(decoded) is type(stored)


@pytest.mark.parametrize(("value", "key", "reason"), UNSTORABLE, ids=[key for _, key, _ in UNSTORABLE])
def test_what_has_no_form_is_named(value: Any, key: str, reason: str) -> None:
    with pytest.raises(metadata.UnstorableError) as raised:
        metadata.encode(value)
    assert raised.value.key == key
    assert reason in raised.value.reason


def test_a_not_a_number_is_kept() -> None:
    decoded = metadata.decode(through_bson(metadata.encode({"n": float("nan"), "d": Decimal("NaN")})))
    assert decoded["n"] != decoded["n"]
    assert decoded["d"].is_nan()


TOKENS: list[tuple[dict[Any, Any], list[str]]] = [
    ({}, []),
    ({"k": 1}, ["k=1"]),
    ({"k": 1.0}, ["k=1"]),
    ({"k": Decimal("1.0")}, ["k=1"]),
    ({"k": 1.5}, ["k=1.5"]),
    ({"k": Decimal("1.50")}, ["k=1.5"]),
    ({"k": -0.0}, ["k=0"]),
    ({"k": True}, ["k=true"]),
    ({"k": None}, ["k=null"]),
    ({"k": "1"}, ['k="1"']),
    ({"k": "true"}, ['k="true"']),
    ({"k": 'a"b'}, ['k="a\\"b"']),
    ({"k": []}, ["k=[]"]),
    ({"k": {}}, ["k={}"]),
    ({"k": ["b", "a", "b"]}, ['k="a"', 'k="b"']),
    ({"a": {"b": 1}}, ["a.b=1"]),
    ({"a.b": 1}, ["a\\.b=1"]),
    ({"a=b": 1}, ["a\\=b=1"]),
    ({"a": [{"b": 1}, {"b": 2}]}, ["a.b=1", "a.b=2"]),
    ({7: "x"}, ['7="x"']),
    ({"d": datetime(2026, 5, 1, 12)}, ["d=date(2026-05-01T12:00:00.000)"]),
    ({"d": date(2026, 5, 1)}, ['d="2026-05-01"']),
    ({"u": IDENTITY}, [f"u=uuid({IDENTITY})"]),
    ({"o": OBJECT_ID}, [f"o=objectid({OBJECT_ID})"]),
    ({"b": b"\x01"}, ["b=bytes(01)"]),
]


@pytest.mark.parametrize(("value", "expected"), TOKENS, ids=repr)
def test_tokens_are_canonical(value: dict[Any, Any], expected: list[str]) -> None:
    assert metadata.tokens(metadata.encode(value)) == expected


def test_a_long_token_is_a_digest_of_fixed_length() -> None:
    short, *_ = metadata.tokens(metadata.encode({"k": "x" * 200}))
    first, second = (metadata.tokens(metadata.encode({"k": "x" * 9000 + end})) for end in "ab")
    assert short == 'k="' + "x" * 200 + '"'
    assert first != second
    assert len(first[0]) == 65
    assert "=" not in first[0]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text().filter(lambda t: "\x00" not in t), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text().filter(lambda text: "\x00" not in text), JSON, max_size=4))
def test_plain_json_is_kept_as_it_is_and_has_the_same_tokens_again(value: dict[str, Any]) -> None:
    encoded = metadata.encode(value)
    stored = through_bson(encoded)
    assert metadata.decode(stored) == value
    assert metadata.tokens(stored) == metadata.tokens(encoded)


@given(
    st.dictionaries(st.text(alphabet='ab.=\\"').filter(bool), st.integers(0, 1) | st.text(alphabet='01"='), max_size=3)
)
def test_different_flat_metadata_has_different_tokens(value: dict[str, Any]) -> None:
    for key in value:
        other = value | {key: "another value"}
        assert metadata.tokens(metadata.encode(other)) != metadata.tokens(metadata.encode(value))


def test_an_empty_key_is_a_key() -> None:
    assert metadata.tokens(metadata.encode({"": {"a": 1}})) == [".a=1"]
    assert metadata.tokens(metadata.encode({"": {}})) == ["={}"]
    assert metadata.tokens(metadata.encode({"": {"": 1}})) == [".=1"]


def test_decimals_do_not_depend_on_the_context_of_the_caller() -> None:
    digits = Decimal("1." + "3" * 33), Decimal("1." + "3" * 32 + "4")
    with localcontext() as context:
        context.prec = 6
        context.traps[Inexact] = True
        tokens = [metadata.tokens(metadata.encode({"k": one})) for one in digits]
    assert tokens == [[f"k={one}"] for one in digits]


def test_what_the_driver_takes_for_a_reference_comes_back_as_a_mapping() -> None:
    value = {"x": {"$ref": "a", "$id": 1, "more": 2}}
    assert metadata.decode(through_bson(metadata.encode(value))) == value


def test_numpy_keys_and_numbers_of_no_form() -> None:
    assert metadata.encode({np.int64(7): 1}) == {"7": 1}
    with pytest.raises(metadata.UnstorableError, match="longdouble"):
        metadata.encode({"k": np.longdouble(1)})
