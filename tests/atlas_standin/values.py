"""Filter values as the index keeps them: typed scalars, arrays flattened, everything else left out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from bson import Code, DatetimeMS, Int64, ObjectId
from bson.binary import UUID_SUBTYPE, Binary

NULL: Final = "null"
BOOLEAN: Final = "boolean"
NUMBER: Final = "number"
STRING: Final = "string"
DATE: Final = "date"
OBJECT_ID: Final = "objectId"
UUID: Final = "uuid"

# Lucene's longest term, in UTF-16 units: mongot cuts by it what it indexes, but not what it is asked for.
LONGEST_STRING: Final = 8191


@dataclass(frozen=True)
class Scalar:
    """A value with its type bracket: scalars of different kinds never compare."""

    kind: str
    value: Any

    @property
    def order(self) -> Any:
        """What ranges compare: strings by their bytes, everything else as it is."""
        return self.value.encode() if self.kind == STRING else self.value


@dataclass
class FieldValues:
    """What a document holds at one filter path."""

    exists: bool = False
    scalars: list[Scalar] = field(default_factory=list)

    def add(self, value: Any) -> None:
        self.exists = True
        self.scalars.extend(_flattened(value))


def scalar(value: Any) -> Scalar | None:
    """The filterable form of a decoded BSON value, or None for a type filters do not know."""
    make = _SCALARS.get(type(value))
    if make is not None:
        return make(value)
    if isinstance(value, Binary) and value.subtype == UUID_SUBTYPE and len(value) == 16:
        return Scalar(UUID, bytes(value))
    return None


_SCALARS: Final[Mapping[type, Callable[[Any], Scalar]]] = {
    type(None): lambda value: Scalar(NULL, value),
    bool: lambda value: Scalar(BOOLEAN, value),
    int: lambda value: Scalar(NUMBER, value),
    Int64: lambda value: Scalar(NUMBER, int(value)),
    float: lambda value: Scalar(NUMBER, value),
    str: lambda value: Scalar(STRING, value),
    DatetimeMS: lambda value: Scalar(DATE, int(value)),
    ObjectId: lambda value: Scalar(OBJECT_ID, value.binary),
}


def _flattened(value: Any) -> Iterator[Scalar]:
    if isinstance(value, list):
        for item in value:
            yield from _flattened(item)
        return
    found = scalar(value)
    if found is None or isinstance(value, Code):
        return
    yield Scalar(STRING, _cut(found.value)) if found.kind == STRING else found


def _cut(text: str) -> str:
    """As much of a text as becomes a term; half of a surrogate pair at its end becomes U+FFFD."""
    if 2 * len(text) <= LONGEST_STRING:
        return text
    return text.encode("utf-16-le")[: 2 * LONGEST_STRING].decode("utf-16-le", "replace")


def holds_null(value: Any) -> bool:
    """Whether a value is null, or an array with a null in it."""
    return value is None or (isinstance(value, list) and any(map(holds_null, value)))


def found_at(document: Mapping[str, Any], paths: Collection[str], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every value at one of the paths, in the document's order, and nulls on the way to one.

    Arrays of sub-documents are entered. A literal key "a.b" is the path a.b. `prefix` is the path of the document
    itself, with a dot, if it is a nested one.
    """
    parents = {path[:dot] for path in paths for dot, sign in enumerate(path) if sign == "."}
    return _walk(document, prefix, frozenset(paths), frozenset(parents))


def documents_at(document: Mapping[str, Any], path: str) -> Iterator[Mapping[str, Any]]:
    """The documents at a path: the one there, or those in the array there."""
    for place, value in found_at(document, [path]):
        if place == path:
            yield from _documents(value)


def _walk(
    document: Mapping[str, Any], prefix: str, paths: frozenset[str], parents: frozenset[str]
) -> Iterator[tuple[str, Any]]:
    for key, value in document.items():
        path = prefix + key
        if path in paths:
            yield path, value
        elif path in parents and holds_null(value):
            yield path, None
        if path in parents:
            for child in _documents(value):
                yield from _walk(child, f"{path}.", paths, parents)


def _documents(value: Any) -> Iterable[Mapping[str, Any]]:
    if isinstance(value, dict):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _documents(item)
