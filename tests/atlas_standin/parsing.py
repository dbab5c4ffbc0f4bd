"""How mongot reads BSON: every value with its place in the document, every complaint naming that place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeVar

from bson import Code, DatetimeMS, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp
from bson.binary import Binary

from .errors import MongotError

T = TypeVar("T")
Parser = Callable[[Any, "Location"], T]

_TYPES: dict[type, str] = {
    bool: "BOOLEAN",
    int: "INT32",
    Int64: "INT64",
    float: "DOUBLE",
    str: "STRING",
    bytes: "BINARY",
    Binary: "BINARY",
    list: "ARRAY",
    dict: "DOCUMENT",
    type(None): "NULL",
    ObjectId: "OBJECT_ID",
    DatetimeMS: "DATE_TIME",
    Decimal128: "DECIMAL128",
    Regex: "REGULAR_EXPRESSION",
    Timestamp: "TIMESTAMP",
    Code: "JAVASCRIPT",
    MinKey: "MIN_KEY",
    MaxKey: "MAX_KEY",
}


def bson_type(value: Any) -> str:
    """The name of a decoded value's BSON type, as mongot spells it."""
    return _TYPES.get(type(value), type(value).__name__.upper())


class Location:
    """Where in the request a value stands; errors about it start with this path."""

    def __init__(self, path: str = "") -> None:
        self.path = path

    def child(self, name: str) -> Location:
        return Location(f"{self.path}.{name}" if self.path else name)

    def element(self, position: int) -> Location:
        return Location(f"{self.path}[{position}]")

    def refuse(self, text: str) -> NoReturn:
        raise MongotError(f'"{self.path}" {text}' if self.path else text)

    def refuse_type(self, expected: str, value: Any) -> NoReturn:
        self.refuse("is required" if value is None else f"must be a {expected}")


class Fields:
    """A document whose fields are asked for one by one; null is absent, except where `required`."""

    def __init__(self, body: Mapping[str, Any], at: Location) -> None:
        self.body = body
        self.at = at
        self._asked: set[str] = set()

    def required(self, name: str, parse: Parser[T]) -> T:
        self._asked.add(name)
        if name not in self.body:
            self.at.child(name).refuse("is required")
        return parse(self.body[name], self.at.child(name))

    def optional(self, name: str, parse: Parser[T]) -> T | None:
        self._asked.add(name)
        value = self.body.get(name)
        return None if value is None else parse(value, self.at.child(name))

    def refuse_others(self) -> None:
        """Complain of every field nobody asked for."""
        strangers = [f'"{name}"' for name in self.body if name not in self._asked]
        if len(strangers) == 1:
            self.at.refuse(f"unrecognized field {strangers[0]}")
        if strangers:
            self.at.refuse(f"unrecognized fields [{', '.join(strangers)}]")


def string(value: Any, at: Location) -> str:
    if bson_type(value) != "STRING":
        at.refuse_type("string", value)
    return str(value)


def nonempty_string(value: Any, at: Location) -> str:
    text = string(value, at)
    if not text:
        at.refuse("cannot be empty")
    return text


def boolean(value: Any, at: Location) -> bool:
    if not isinstance(value, bool):
        at.refuse_type("boolean", value)
    return value


def integer(value: Any, at: Location) -> int:
    if bson_type(value) not in ("INT32", "INT64", "DOUBLE"):
        at.refuse_type("integer", value)
    if value > 2**31 - 1:
        at.refuse("overflowed, must fit in a 32 bit integer")
    if value < -(2**31):
        at.refuse("underflowed, must fit in a 32 bit integer")
    if value != value or value % 1 != 0:
        at.refuse("must be an integer")
    return int(value)


def positive(value: Any, at: Location) -> int:
    number = integer(value, at)
    if number <= 0:
        at.refuse("must be positive")
    return number


def within(low: int, high: int) -> Parser[int]:
    def parse(value: Any, at: Location) -> int:
        number = integer(value, at)
        if not low <= number <= high:
            at.refuse(f"must be within bounds [{low}..{high}]")
        return number

    return parse


def one_of(*names: str) -> Parser[str]:
    def parse(value: Any, at: Location) -> str:
        name = string(value, at)
        if name not in names:
            at.refuse(f"must be one of [{', '.join(sorted(names))}]")
        return name

    return parse


def document(value: Any, at: Location) -> dict[str, Any]:
    if not isinstance(value, dict):
        at.refuse_type("document", value)
    return value


def list_of(parse: Parser[T]) -> Parser[list[T]]:
    def parse_all(value: Any, at: Location) -> list[T]:
        if not isinstance(value, list):
            at.refuse_type("array", value)
        return [parse(item, at.element(position)) for position, item in enumerate(value)]

    return parse_all


def nonempty_list_of(parse: Parser[T]) -> Parser[list[T]]:
    def parse_some(value: Any, at: Location) -> list[T]:
        items = list_of(parse)(value, at)
        if not items:
            at.refuse("cannot be empty")
        return items

    return parse_some


def nonblank_string(value: Any, at: Location) -> str:
    text = string(value, at)
    if not text.strip():
        at.refuse("cannot be blank")
    return text


def anything(value: Any, _at: Location) -> Any:
    return value
