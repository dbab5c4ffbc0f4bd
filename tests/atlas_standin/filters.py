"""The filter language of `$vectorSearch`: mongot's parser and its matching, which is not MQL's."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn, Protocol

from .errors import MongotError
from .numbers import compared, one_of_numbers
from .parsing import Location, boolean, bson_type
from .values import BOOLEAN, DATE, NULL, NUMBER, OBJECT_ID, STRING, UUID, FieldValues, Scalar, scalar

MOST_CLAUSES: Final = 1024

# mongot reads a field's operators in this order, whatever order they were written in.
_OPERATORS: Final = ("$gt", "$gte", "$lt", "$lte", "$eq", "$ne", "$in", "$nin", "$exists", "$not")
_ABSENT_IF_NULL: Final = ("$exists", "$not")
_RANGES: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
_NOTHING: Final = FieldValues()

# What a comparison costs of Lucene's clauses: mongot asks terms and doc values, and of dates also arrays' points.
_EQUALITY_CLAUSES: Final = {NULL: 1, BOOLEAN: 1, OBJECT_ID: 1, STRING: 2, UUID: 2, DATE: 3}
_RANGE_CLAUSES: Final = {OBJECT_ID: 2, STRING: 2, UUID: 2, DATE: 3}
_SET_CLAUSES: Final = {STRING: 2, UUID: 2, DATE: 2, NUMBER: 4}


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
        # A branch that finds nothing costs nothing, but there is no room for more branches than clauses.
        return max(sum(clause.leaves() for clause in self.clauses), len(self.clauses), 1)


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
        return 1 if self.wanted else 2


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
    present = [name for name in _OPERATORS if name in given and not (name in _ABSENT_IF_NULL and given[name] is None)]
    clauses = [_operator(path, name, given[name], at.child(name)) for name in present]
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
        return _range(path, name, value, at)
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
    if wanted.kind == NUMBER:
        return _number_range(path, "$eq", wanted)
    return Holds(path, wanted.kind, lambda held: bool(held.value == wanted.value), _EQUALITY_CLAUSES[wanted.kind])


def _refuse_value(value: Any, at: Location) -> NoReturn:
    if bson_type(value) == "BINARY":
        at.refuse("binary value must be UUID subtype 4")
    at.refuse("must be a boolean, objectId, number, string, date, uuid, or null")


def _range(path: str, name: str, value: Any, at: Location) -> Clause:
    bound = scalar(value)
    if bound is None and bson_type(value) == "BINARY":
        at.refuse_type("UUID", value)
    if bound is None or bound.kind == NULL:
        at.refuse(f"Type is not supported: {bson_type(value)}")
    if bound.kind == NUMBER:
        return _number_range(path, name, bound)
    holds = _RANGES[name]
    if bound.kind == BOOLEAN:
        # mongot asks for each of the two that lies in the range.
        cost = sum(holds(either, bound.value) for either in (False, True))
    else:
        cost = _RANGE_CLAUSES[bound.kind]
    return Holds(path, bound.kind, lambda held: holds(held.order, bound.order), cost)


def _number_range(path: str, name: str, bound: Scalar) -> Clause:
    numbers = compared(name, bound.value)
    return Holds(path, NUMBER, lambda held: numbers.holds(held.value), numbers.clauses)


def _membership(path: str, value: Any, at: Location) -> Clause:
    if not isinstance(value, list):
        at.refuse_type("array", value)
    wanted = [_member(item, at.element(position)) for position, item in enumerate(value)]
    if not wanted:
        at.refuse("cannot be empty")
    kind = wanted[0].kind
    if any(item.kind != kind for item in wanted):
        at.refuse("must have elements of the same type")
    if kind == NUMBER:
        is_one = one_of_numbers([item.value for item in wanted])
        return Holds(path, kind, lambda held: is_one(held.value), _SET_CLAUSES[kind])
    values = {item.value for item in wanted}
    # Object ids and booleans are asked for one by one, the latter once each.
    cost = _SET_CLAUSES.get(kind, len(wanted if kind == OBJECT_ID else values))
    return Holds(path, kind, lambda held: held.value in values, cost)


def _member(value: Any, at: Location) -> Scalar:
    if value is None:
        at.refuse("value type cannot be null")
    found = scalar(value)
    if found is None:
        _refuse_value(value, at)
    return found
