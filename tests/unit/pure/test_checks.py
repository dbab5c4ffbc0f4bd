"""Arguments: what is taken, and what the error says of the rest."""

from __future__ import annotations

import math
from datetime import datetime, timedelta, timezone
from typing import Any

import numpy as np
import pytest

from crewai_mongodb_memory import InvalidArgumentError
from crewai_mongodb_memory.pure import checks

EAST, WEST = timezone(timedelta(hours=2)), timezone(timedelta(hours=-2))


@pytest.mark.parametrize("value", [None, 5, b"text", ["text"], "\ud800"])
def test_text_is_text_that_can_be_stored(value: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="role"):
        checks.text("role", value)


def test_text_may_be_empty_only_where_it_is_said() -> None:
    assert checks.text("prefix", "", may_be_empty=True) == ""
    with pytest.raises(InvalidArgumentError, match="role has to be text that is not empty, not ''"):
        checks.text("role", "")


@pytest.mark.parametrize(("value", "taken"), [(3, 3), (-1, -1), (np.int64(3), 3), (10**20, checks.MOST)])
def test_a_whole_number_without_bounds_is_taken_as_far_as_the_wire_carries_it(value: Any, taken: int) -> None:
    number = checks.whole_number("limit", value)
    assert (number, type(number)) == (taken, int)


@pytest.mark.parametrize("value", [None, "5", 5.0, True, math.nan, 0, 11, 10**20])
def test_a_whole_number_within_bounds_is_nothing_else(value: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="size has to be a whole number from 1 to 10, not"):
        checks.whole_number("size", value, 1, 10)


@pytest.mark.parametrize("value", [None, "5", True, -1, -0.1, math.inf, math.nan, 10**400])
def test_seconds_are_a_finite_number_from_zero_on(value: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="timeout has to be a number of seconds, 0 or more, not"):
        checks.seconds("timeout", value)
    assert checks.seconds("timeout", 0) == 0
    assert checks.seconds("timeout", 1.5) == 1.5


@pytest.mark.parametrize(
    "value", [None, "2026-01-01", 5, datetime.min.replace(tzinfo=EAST), datetime.max.replace(tzinfo=WEST)]
)
def test_a_moment_is_a_datetime_that_there_is_in_utc(value: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="since has to"):
        checks.moment("since", value)


def test_a_moment_is_naive_utc() -> None:
    assert checks.moment("since", datetime(2026, 5, 1, 12, tzinfo=EAST)) == datetime(2026, 5, 1, 10)


@pytest.mark.parametrize("value", [None, 5, "text", {"a": 1}, [5], pytest.param(10**5000, id="endless")])
def test_texts_are_a_list_of_texts(value: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="categories"):
        checks.texts("categories", value)
    assert checks.texts("categories", ["b", "a", "b"]) == ("b", "a")


@pytest.mark.parametrize("value", [None, "1", True, math.nan, 10**400, pytest.param(10**5000, id="endless")])
def test_a_number_is_one_that_a_float_holds(value: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="min_score has to be a number, not"):
        checks.number("min_score", value)
    assert checks.number("min_score", 1) == 1.0
