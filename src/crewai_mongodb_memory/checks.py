"""Arguments, checked where they come in: what is wrong is said by name, with its value and what it has to be."""

from __future__ import annotations

import math
import operator
from datetime import datetime
from typing import Any

from crewai_mongodb_memory import metadata
from crewai_mongodb_memory.errors import ConfigurationError
from crewai_mongodb_memory.times import to_utc

__all__ = ["MOST", "moment", "seconds", "text", "whole_number"]

MOST = 2**31 - 1  # what a limit or a skip may be on the wire


def text(name: str, value: Any, *, may_be_empty: bool = False) -> str:
    """Return text that MongoDB can store and compare, or raise :class:`ConfigurationError`.

    >>> text("role", "")
    Traceback (most recent call last):
    crewai_mongodb_memory.errors.ConfigurationError: role has to be text that is not empty, not ''
    """
    if not isinstance(value, str) or not (value or may_be_empty):
        wanted = "text" if may_be_empty else "text that is not empty"
        raise ConfigurationError(f"{name} has to be {wanted}, not {value!r}")
    try:
        metadata.check_text(value, name)
    except metadata.UnstorableError as error:
        raise ConfigurationError(str(error)) from error
    return value


def whole_number(name: str, value: Any, least: int | None = None, most: int = MOST) -> int:
    """Return a whole number, numpy's as Python's, or raise :class:`ConfigurationError`.

    Without ``least`` any number is taken, and one over ``most`` means ``most``.

    >>> whole_number("limit", 10**12)
    2147483647
    >>> whole_number("bucket_size", 1, 2, 10_000)
    Traceback (most recent call last):
    crewai_mongodb_memory.errors.ConfigurationError: bucket_size has to be a whole number from 2 to 10,000, not 1
    """
    bounds = "" if least is None else f" from {least:,} to {most:,}"
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or (least is not None and not least <= number <= most):
        raise ConfigurationError(f"{name} has to be a whole number{bounds}, not {value!r}")
    return min(number, most)


def seconds(name: str, value: Any) -> float:
    """Return a number of seconds, or raise :class:`ConfigurationError`."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
        raise ConfigurationError(f"{name} has to be a number of seconds, 0 or more, not {value!r}")
    return value


def moment(name: str, value: Any) -> datetime:
    """Return a datetime as naive UTC to the millisecond, or raise :class:`ConfigurationError`."""
    if not isinstance(value, datetime):
        raise ConfigurationError(f"{name} has to be a datetime, not {value!r}")
    try:
        return to_utc(value)
    except OverflowError:
        raise ConfigurationError(f"{name} has to lie in the years 1 to 9999 in UTC, not {value!r}") from None
