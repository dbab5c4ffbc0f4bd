"""Arguments, checked where they come in: what is wrong is said by name, with its value and what it has to be."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from crewai_mongodb_memory.errors import InvalidArgumentError
from crewai_mongodb_memory.pure import metadata
from crewai_mongodb_memory.pure.times import to_utc

__all__ = ["MOST", "moment", "number", "seconds", "shown", "text", "texts", "whole_number"]

MOST = 2**31 - 1  # what a limit or a skip may be on the wire
MOST_SHOWN = 300


def text(name: str, value: Any, *, may_be_empty: bool = False) -> str:
    """Return text that MongoDB can store and compare, or raise :class:`InvalidArgumentError`.

    >>> text("role", "")
    Traceback (most recent call last):
    crewai_mongodb_memory.errors.InvalidArgumentError: role has to be text that is not empty, not ''
    """
    if not isinstance(value, str) or not (value or may_be_empty):
        wanted = "text" if may_be_empty else "text that is not empty"
        raise InvalidArgumentError(f"{name} has to be {wanted}, not {shown(value)}")
    try:
        metadata.check_text(value, name)
    except metadata.UnstorableError as error:
        raise InvalidArgumentError(str(error)) from error
    return value


def texts(name: str, values: Any) -> tuple[str, ...]:
    """Return the texts of a list without repeats, or raise :class:`InvalidArgumentError`."""
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise InvalidArgumentError(f"{name} has to be a list of texts, not {shown(values)}")
    return tuple(dict.fromkeys(text(f"an entry of {name}", value, may_be_empty=True) for value in values))


def whole_number(name: str, value: Any, least: int | None = None, most: int = MOST) -> int:
    """Return a whole number, numpy's as Python's, or raise :class:`InvalidArgumentError`.

    Without ``least`` any number is taken, and one over ``most`` means ``most``.

    >>> whole_number("limit", 10**12)
    2147483647
    >>> whole_number("bucket_size", 1, 2, 10_000)
    Traceback (most recent call last):
    crewai_mongodb_memory.errors.InvalidArgumentError: bucket_size has to be a whole number from 2 to 10,000, not 1
    """
    bounds = "" if least is None else f" from {least:,} to {most:,}"
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or (least is not None and not least <= number <= most):
        raise InvalidArgumentError(f"{name} has to be a whole number{bounds}, not {shown(value)}")
    return min(number, most)


def seconds(name: str, value: Any) -> float:
    """Return a number of seconds, or raise :class:`InvalidArgumentError`."""
    as_float = _as_float(value)
    if not 0 <= as_float < math.inf:
        raise InvalidArgumentError(f"{name} has to be a number of seconds, 0 or more, not {shown(value)}")
    return as_float


def number(name: str, value: Any) -> float:
    """Return a number, or raise :class:`InvalidArgumentError`."""
    as_float = _as_float(value)
    if math.isnan(as_float):
        raise InvalidArgumentError(f"{name} has to be a number, not {shown(value)}")
    return as_float


def shown(value: Any) -> str:
    """Return a value as an error shows it: not endlessly long.

    >>> shown("x" * 1000)
    "'xxxxxxxx…"
    """
    try:
        text = repr(value)
    except ValueError:  # an int of more digits than Python prints
        return f"a {type(value).__name__} of many digits"
    return text if len(text) <= MOST_SHOWN else f"{text[:9]}…"


def _as_float(value: Any) -> float:
    """The value as a float; NaN for what is none, or too large for one."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


def moment(name: str, value: Any) -> datetime:
    """Return a datetime as naive UTC to the millisecond, or raise :class:`InvalidArgumentError`."""
    if not isinstance(value, datetime):
        raise InvalidArgumentError(f"{name} has to be a datetime, not {shown(value)}")
    try:
        return to_utc(value)
    except OverflowError:
        raise InvalidArgumentError(f"{name} has to lie in the years 1 to 9999 in UTC, not {shown(value)}") from None
