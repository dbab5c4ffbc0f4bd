"""Numbers as the index compares them: integers among integers, doubles among doubles, each in its own range."""

from __future__ import annotations

import math
import struct
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

Number = int | float
Range = tuple[int, int]

_LEAST_LONG: Final = -(2**63)
_GREATEST_LONG: Final = 2**63 - 1

# A range costs three of Lucene's clauses: points and doc values of single values, points of arrays.
_RANGE_CLAUSES: Final = 3


@dataclass(frozen=True)
class NumberRange:
    """The stored integers and the stored doubles that a comparison finds; None is none of them."""

    longs: Range | None
    doubles: Range | None

    def holds(self, stored: Number) -> bool:
        found, place = (self.longs, stored) if isinstance(stored, int) else (self.doubles, sortable(stored))
        return found is not None and found[0] <= place <= found[1]

    @property
    def clauses(self) -> int:
        return _RANGE_CLAUSES * sum(found is not None for found in (self.longs, self.doubles))


def compared(operator: str, bound: Number) -> NumberRange:
    """What `$eq` or a range operator finds."""
    inclusive = operator in ("$eq", "$gte", "$lte")
    lower = bound if operator in ("$eq", "$gt", "$gte") else None
    upper = bound if operator in ("$eq", "$lt", "$lte") else None
    return NumberRange(_long_range(lower, upper, inclusive), _double_range(lower, upper, inclusive))


def one_of_numbers(wanted: Iterable[Number]) -> Callable[[Number], bool]:
    """What `$in` finds: stored integers are probed with the values cast to long, so 1.5 finds 1."""
    numbers = list(wanted)
    longs = {as_long(number) for number in numbers}
    doubles = {sortable(float(number)) for number in numbers}
    return lambda stored: stored in longs if isinstance(stored, int) else sortable(stored) in doubles


def as_long(number: Number) -> int:
    """Java's cast: towards zero, saturating, NaN to 0."""
    if math.isnan(number):
        return 0
    if math.isinf(number):
        return _GREATEST_LONG if number > 0 else _LEAST_LONG
    return max(_LEAST_LONG, min(_GREATEST_LONG, int(number)))


def sortable(number: float) -> int:
    """A double as the integer that stands for it in the index: -0.0 is 0.0, NaN is above everything."""
    if math.isnan(number):
        return 0x7FF8 << 48
    bits = int(struct.unpack(">q", struct.pack(">d", number))[0])
    return bits if bits >= 0 else (0x7FFFFFFFFFFFFFFF ^ bits) + 1


def _long_range(lower: Number | None, upper: Number | None, inclusive: bool) -> Range | None:
    step = 0 if inclusive else 1
    low, high = _LEAST_LONG, _GREATEST_LONG
    if isinstance(lower, float):
        if _order(lower, float(_GREATEST_LONG)) + step > 0:
            return None
        low = _rounded(_next(lower, step), math.ceil)
    elif lower is not None:
        low = lower + step
    if isinstance(upper, float):
        if _order(upper, float(_LEAST_LONG)) - step < 0:
            return None
        high = _rounded(_next(upper, -step), math.floor)
    elif upper is not None:
        high = upper - step
    return (low, high) if low <= high else None


def _double_range(lower: Number | None, upper: Number | None, inclusive: bool) -> Range | None:
    step = 0 if inclusive else 1
    greatest = sortable(sys.float_info.max)
    low, high = -greatest, greatest
    if lower is not None:
        if sortable(float(lower)) + step > greatest:
            return None
        low = sortable(_next(float(lower), step))
    if upper is not None:
        if sortable(float(upper)) - step < -greatest:
            return None
        high = sortable(_next(float(upper), -step))
    return (low, high) if low <= high else None


def _order(number: float, other: float) -> int:
    """-1, 0 or 1; NaN is equal to everything."""
    return (number > other) - (number < other)


def _rounded(number: float, rounding: Callable[[float], int]) -> int:
    return as_long(rounding(number) if math.isfinite(number) else number)


def _next(number: float, step: int) -> float:
    return math.nextafter(number, step * math.inf) if step else number
