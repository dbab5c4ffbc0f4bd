"""Moments in time: naive UTC to the millisecond, which is what BSON keeps and CrewAI computes with.

CrewAI subtracts ``created_at`` from a naive UTC now (``crewai/memory/types.py``, ``compute_composite_score``): an
aware datetime that came out of a storage makes every recall fail.
"""

from __future__ import annotations

from datetime import datetime, timezone

__all__ = ["to_utc"]


def to_utc(moment: datetime) -> datetime:
    """Return a moment as naive UTC, cut to milliseconds; a naive one is taken as UTC already.

    Raises:
        OverflowError: the moment lies outside the years 1 to 9999 once it is in UTC.

    >>> to_utc(datetime.fromisoformat("2026-05-01T12:00:00.123456+02:00"))
    datetime.datetime(2026, 5, 1, 10, 0, 0, 123000)
    """
    if moment.tzinfo is not None:
        moment = moment.astimezone(timezone.utc).replace(tzinfo=None)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)
