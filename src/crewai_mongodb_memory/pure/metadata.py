"""Metadata: free-form values into BSON, and into the tokens that every filter uses.

``$vectorSearch`` filters only on paths that its index declares, and cannot declare "every key of a document"
(MongoDB docs, "How to Index Fields for Vector Search"). So each leaf of a record's metadata is also kept as one
string, ``path=value``, in the single declared path ``metadata_tokens``. Records and filters go through the same
two functions, and so always agree.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from datetime import date, datetime, time
from decimal import Context, Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import numpy as np
from bson import Binary, DBRef, Decimal128, Int64, ObjectId
from bson.binary import UUID_SUBTYPE

from crewai_mongodb_memory.pure.times import to_utc

__all__ = ["UnstorableError", "check_text", "decode", "encode", "tokens", "utf16_length"]

MAX_DEPTH = 90  # MongoDB refuses documents nested deeper than 100 levels
MAX_TOKEN_BYTES = 256
EXACT = Context(prec=40, traps=[])  # whatever the caller's context rounds to
INT64 = range(-(2**63), 2**63)


class UnstorableError(ValueError):
    """A value has no BSON form; ``key`` is its dotted path and ``reason`` says why and what to do."""

    def __init__(self, key: str, reason: str) -> None:
        self.key = key = key.encode("utf-8", "backslashreplace").decode()  # a log has to be able to show it
        self.reason = reason
        super().__init__(f"{key}: {reason}")


def encode(value: Any, key: str = "metadata", depth: int = 0) -> Any:
    """Return the BSON form of a metadata value, or raise :class:`UnstorableError`.

    Scalars, text, bytes, UUIDs, ObjectIds, lists and mappings stay what they are; a ``Decimal`` becomes a
    Decimal128 (up to 34 digits); datetimes become BSON dates (UTC, milliseconds). What BSON lacks takes its JSON
    form: tuples and sets become lists (sets sorted), dates and times ISO 8601 text, integer keys text, numpy
    scalars and arrays plain numbers and lists. An Enum becomes its value.

    >>> encode({"price": 1.5, "tags": ("a", "b"), 7: date(2026, 1, 2)})
    {'price': 1.5, 'tags': ['a', 'b'], '7': '2026-01-02'}
    """
    if depth > MAX_DEPTH:
        raise UnstorableError(key, f"is nested deeper than {MAX_DEPTH} levels; MongoDB stores no more than 100")
    if isinstance(value, Enum):
        return encode(value.value, key, depth + 1)
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]")  # of nanoseconds numpy makes a number
    if isinstance(value, (np.generic, np.ndarray)):
        plain = value.tolist()
        if isinstance(plain, np.generic):
            raise UnstorableError(key, f"a value of type {type(value).__name__} has no BSON form; convert it to float")
        return encode(plain, key, depth + 1)
    if isinstance(value, Mapping):
        return _encode_mapping(value, key, depth)
    if isinstance(value, (list, tuple)):
        return [encode(item, key, depth + 1) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted((encode(item, key, depth + 1) for item in value), key=repr)
    return _encode_scalar(value, key)


def _encode_mapping(value: Mapping[Any, Any], key: str, depth: int) -> dict[str, Any]:
    encoded: dict[str, Any] = {}
    for name, item in value.items():
        if isinstance(name, Enum):
            name = name.value
        if isinstance(name, (int, np.integer)) and not isinstance(name, bool):
            name = str(int(name))
        if not isinstance(name, str):
            raise UnstorableError(key, f"has the key {name!r}; a key must be text")
        path = f"{key}.{name}"
        check_text(name, path)
        if "\x00" in name:
            raise UnstorableError(path, "a key cannot hold the character NUL; remove it")
        if name in encoded:
            raise UnstorableError(path, f"two keys are both stored as {name!r}; rename one")
        encoded[name] = encode(item, path, depth + 1)
    return encoded


def _encode_scalar(value: Any, key: str) -> Any:
    match value:
        case Binary() if value.subtype == UUID_SUBTYPE and len(value) != 16:
            raise UnstorableError(key, f"is a UUID of {len(value)} bytes, which no driver could read; it has 16")
        case None | bool() | float() | bytes() | UUID() | ObjectId() | Decimal128():
            return value
        case str():
            check_text(value, key)
            return str(value)
        case int():
            if value not in INT64:
                raise UnstorableError(key, f"{value} needs more than 64 bits; store it as text")
            return int(value)
        case Decimal():
            return _encode_decimal(value, key)
        case datetime():
            try:
                return to_utc(value)
            except OverflowError as error:
                raise UnstorableError(key, f"{value!r} is out of the range of dates in UTC") from error
        case date() | time():
            return value.isoformat()
    raise UnstorableError(
        key,
        f"a value of type {type(value).__name__} has no BSON form; store it as text, number, list or mapping",
    )


def _encode_decimal(value: Decimal, key: str) -> Decimal128:
    try:
        encoded = Decimal128(value)
    except (ArithmeticError, ValueError):
        encoded = None
    if encoded is None or (value.is_finite() and encoded.to_decimal() != value):
        raise UnstorableError(key, f"{value} has more than the 34 digits of a Decimal128; store it as text")
    return encoded


def check_text(value: str, key: str) -> None:
    """Raise :class:`UnstorableError` if a text holds a lone surrogate, which UTF-8 and so BSON cannot carry."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise UnstorableError(
            key,
            f"holds the lone surrogate {value[error.start]!r} at position {error.start}; "
            "clean it with text.encode('utf-8', 'replace').decode()",
        ) from error


def utf16_length(text: str) -> int:
    """Return the length of a text in UTF-16 units, which is how mongot's Java counts: an emoji is two.

    >>> utf16_length("a€😀")
    4
    """
    return len(text) + sum(character > "\uffff" for character in text)


def decode(value: Any) -> Any:
    """Return a metadata value as Python's own types again: the inverse of :func:`encode`.

    >>> decode(encode({"price": Decimal("1.50")}))
    {'price': Decimal('1.50')}
    """
    match value:
        case dict():
            return {name: decode(item) for name, item in value.items()}
        case list():
            return [decode(item) for item in value]
        case Decimal128():
            return value.to_decimal()
        case Int64():
            return int(value)
        case DBRef():  # what the driver makes of a mapping with the key $ref
            return decode(dict(value.as_doc()))
        case _:
            return value


def tokens(encoded: Mapping[str, Any]) -> list[str]:
    """Return one canonical string for each leaf of encoded metadata, sorted, without repeats.

    Keys are joined by dots (a dot, an equals sign or a backslash inside a key is escaped). Each element of a list
    is a token of its own. 1 and 1.0 give the same token; ``True`` and ``"1"`` give others. A token over 256 bytes
    is replaced by a digest.

    >>> tokens({"team": "sales", "year": 2026.0, "tags": ["a", "b"]})
    ['tags="a"', 'tags="b"', 'team="sales"', 'year=2026']
    """
    return sorted({_short(token) for token in _leaves(encoded, None)})


def _leaves(value: Any, path: str | None) -> Iterator[str]:
    if isinstance(value, Mapping) and (value or path is None):
        for name, item in value.items():
            escaped = name.replace("\\", "\\\\").replace(".", "\\.").replace("=", "\\=")
            yield from _leaves(item, escaped if path is None else f"{path}.{escaped}")
    elif isinstance(value, list) and value:
        for item in value:
            yield from _leaves(item, path)
    else:
        yield f"{path}={_canonical(value)}"


def _canonical(value: Any) -> str:
    match value:
        case bool() | None:
            return json.dumps(value)
        case str():
            return json.dumps(value, ensure_ascii=False)
        case int() | float():
            return _canonical_number(value)
        case Decimal128():
            return _canonical_decimal(value.to_decimal())
        case datetime():
            return f"date({value.isoformat(timespec='milliseconds')})"
        case bytes():
            return f"bytes({value.hex()})" if type(value) is bytes else f"binary({Binary(value).hex()})"
        case list():
            return "[]"
        case dict():
            return "{}"
        case _:
            return f"{type(value).__name__.lower()}({value})"


def _canonical_number(value: float) -> str:
    if math.isfinite(value) and value == int(value) and int(value) in INT64:
        return str(int(value))
    return repr(value)


def _canonical_decimal(value: Decimal) -> str:
    if not value.is_finite():
        return repr(float("nan") if value.is_nan() else float(value))
    if value == value.to_integral_value() and abs(value) < 2**63:
        return str(int(value))
    as_float = float(value)
    return repr(as_float) if Decimal(repr(as_float)) == value else str(value.normalize(EXACT))


def _short(token: str) -> str:
    encoded = token.encode("utf-8")
    return token if len(encoded) <= MAX_TOKEN_BYTES else f"#{hashlib.sha256(encoded).hexdigest()}"
