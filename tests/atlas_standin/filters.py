"""The filter language of `$vectorSearch`: mongot's parser and its matching, which is not MQL's."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn, Protocol

from .errors import MongotError
from .parsing import Location, boolean, bson_type
from .values import NULL, NUMBER, OBJECT_ID, FieldValues, Scalar, scalar

MOST_CLAUSES: Final = 1024

# mongot reads a field's operators in this order, whatever order they were written in.
_OPERATORS: Final = ("$gt", "$gte", "$lt", "$lte", "$eq", "$ne", "$in", "$nin", "$exists", "$not")
_RANGES: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
_NOTHING: Final = FieldValues()
_LEAVES: Final = {NUMBER: 4, "date": 2}


class Clause(Protocol):
    """A parsed filter, or a part of one."""

    def matches(self, fields: Mapping[str, FieldValues]) -> bool: ...

    def require(self, declared: Collection[str]) -> None:
        """Raise mongot's error if a path is not declared as a filter."""

    def leaves(self) -> int:
        """How many of Lucene's clauses this costs."""


@dataclass(frozen=True)
class All:
    clauses: Sequence[Clause]

    def matches(self, fields: Mapping[str, FieldValues]) -> bool:
        return all(clause.matches(fields) for clause in self.clauses)

    def require(self, declared: Collection[str]) -> None:
        for clause in self.clauses:
            clause.require(declared)

    def leaves(self) -> int:
        return sum(clause.leaves() for clause in self.clauses) or 1


@dataclass(frozen=True)
class AnyOf(All):
    def matches(self, fields: Mapping[str, FieldValues]) -> bool:
        return any(clause.matches(fields) for clause in self.clauses)


@dataclass(frozen=True)
class NoneOf(All):
    def matches(self, fields: Mapping[str, FieldValues]) -> bool:
        return not any(clause.matches(fields) for clause in self.clauses)

    def leaves(self) -> int:
        return super().leaves() + 1


@dataclass(frozen=True)
class Holds:
    """Some scalar at the path passes; of an array, any element."""

    path: str
    kind: str
    passes: Callable[[Scalar], bool]
    cost: int

    def matches(self, fields: Mapping[str, FieldValues]) -> bool:
        held = fields.get(self.path, _NOTHING)
        return any(item.kind == self.kind and self.passes(item) for item in held.scalars)

    def require(self, declared: Collection[str]) -> None:
        # mongot indexes nulls whatever is declared, and so does not look.
        if self.kind != NULL:
            _require(self.path, declared)

    def leaves(self) -> int:
        return self.cost


@dataclass(frozen=True)
class Exists:
    path: str
    wanted: bool

    def matches(self, fields: Mapping[str, FieldValues]) -> bool:
        return fields.get(self.path, _NOTHING).exists == self.wanted

    def require(self, declared: Collection[str]) -> None:
        _require(self.path, declared)

    def leaves(self) -> int:
        return 1


def _require(path: str, declared: Collection[str]) -> None:
    if path not in declared:
        raise MongotError(f"Path '{path}' needs to be indexed as filter")


def check_query(clause: Clause, declared: Collection[str]) -> None:
    """What mongot checks of a filter once it has found the index."""
    clause.require(declared)
    if clause.leaves() > MOST_CLAUSES:
        raise MongotError(f"maxClauseCount is set to {MOST_CLAUSES}")


def parse_filter(value: Any, at: Location) -> Clause:
    """Read a filter document, or raise mongot's complaint about it."""
    if not isinstance(value, dict):
        at.refuse("filter must be a document")
    return All([_clause(key, item, at) for key, item in value.items()])


def _clause(key: str, value: Any, at: Location) -> Clause:
    combined = {"$and": All, "$or": AnyOf, "$nor": NoneOf}.get(key)
    if combined is None:
        return _field_clause(key, value, at)
    if not isinstance(value, list):
        at.refuse_type("array", value)
    if not value:
        at.refuse("cannot be empty")
    return combined([parse_filter(item, at.element(position)) for position, item in enumerate(value)])


def _field_clause(path: str, value: Any, at: Location) -> Clause:
    if isinstance(value, dict) and any(key.startswith("$") for key in value):
        return All(_operators(path, value, at.child(path)))
    return _equality(path, value, at)


def _operators(path: str, given: Mapping[str, Any], at: Location) -> list[Clause]:
    clauses = [_operator(path, name, given[name], at.child(name)) for name in _OPERATORS if name in given]
    if not clauses:
        at.refuse(f"at least one of [{', '.join(_OPERATORS)}] must be present")
    strangers = [f'"{name}"' for name in given if name not in _OPERATORS]
    if len(strangers) == 1:
        at.refuse(f"unrecognized field {strangers[0]}")
    if strangers:
        at.refuse(f"unrecognized fields [{', '.join(strangers)}]")
    return clauses


def _operator(path: str, name: str, value: Any, at: Location) -> Clause:
    if name in _RANGES:
        return _range(path, _RANGES[name], value, at)
    if name in ("$in", "$nin"):
        membership = _membership(path, value, at)
        return membership if name == "$in" else NoneOf([membership])
    if name == "$exists":
        return Exists(path, boolean(value, at))
    if name == "$not":
        if not isinstance(value, dict):
            at.refuse_type("document", value)
        return NoneOf([All(_operators(path, value, at))])
    equality = _equality(path, value, at)
    return equality if name == "$eq" else NoneOf([equality])


def _equality(path: str, value: Any, at: Location) -> Clause:
    wanted = scalar(value)
    if wanted is None:
        _refuse_value(value, at)
    return Holds(path, wanted.kind, lambda held: bool(held.value == wanted.value), _LEAVES.get(wanted.kind, 1))


def _refuse_value(value: Any, at: Location) -> NoReturn:
    if bson_type(value) == "BINARY":
        at.refuse("binary value must be UUID subtype 4")
    at.refuse("must be a boolean, objectId, number, string, date, uuid, or null")


def _range(path: str, holds: Callable[[Any, Any], bool], value: Any, at: Location) -> Clause:
    bound = scalar(value)
    if bound is None and bson_type(value) == "BINARY":
        at.refuse_type("UUID", value)
    if bound is None or bound.kind == NULL:
        at.refuse(f"Type is not supported: {bson_type(value)}")
    return Holds(path, bound.kind, lambda held: holds(held.order, bound.order), _LEAVES.get(bound.kind, 1))


def _membership(path: str, value: Any, at: Location) -> Clause:
    if not isinstance(value, list):
        at.refuse_type("array", value)
    wanted = [_member(item, at.element(position)) for position, item in enumerate(value)]
    if not wanted:
        at.refuse("cannot be empty")
    kind = wanted[0].kind
    if any(item.kind != kind for item in wanted):
        at.refuse("must have elements of the same type")
    values = {item.value for item in wanted}
    if kind == NUMBER:
        return Holds(path, kind, _numeric_membership(values), _LEAVES[NUMBER])
    cost = len(wanted) if kind == OBJECT_ID else len(values) if kind == "boolean" else _LEAVES.get(kind, 1)
    return Holds(path, kind, lambda held: held.value in values, cost)


def _member(value: Any, at: Location) -> Scalar:
    if value is None:
        at.refuse("value type cannot be null")
    found = scalar(value)
    if found is None:
        _refuse_value(value, at)
    return found


def _numeric_membership(wanted: set[Any]) -> Callable[[Scalar], bool]:
    """`$in` on numbers: stored integers are probed with the values cast to long, so 1.5 finds 1."""
    longs = {_as_long(number) for number in wanted}
    doubles = {float(number) for number in wanted}
    return lambda held: held.value in (longs if isinstance(held.value, int) else doubles)


def _as_long(number: float) -> int:
    """Java's cast: towards zero, saturating, NaN to 0."""
    if math.isnan(number):
        return 0
    return int(max(-(2.0**63), min(2.0**63 - 1024, number))) if isinstance(number, float) else number
