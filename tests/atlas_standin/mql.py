"""mongod's own look at a `$vectorSearch` filter: it must be MQL before mongot sees it."""

from __future__ import annotations

from typing import Any, Final

from bson import Regex

from .errors import BAD_VALUE, CommandError

_TOP_LEVEL: Final = frozenset(
    ["$expr", "$text", "$where", "$jsonSchema", "$comment", "$sampleRate", "$alwaysTrue", "$alwaysFalse"]
)
_FIELD_LEVEL: Final = frozenset(
    [
        "$eq",
        "$ne",
        "$gt",
        "$gte",
        "$lt",
        "$lte",
        "$in",
        "$nin",
        "$exists",
        "$not",
        "$regex",
        "$options",
        "$elemMatch",
        "$size",
        "$all",
        "$type",
        "$mod",
        "$geoWithin",
        "$geoIntersects",
        "$near",
        "$nearSphere",
        "$within",
        "$geoNear",
        "$maxDistance",
        "$minDistance",
        "$bitsAllSet",
        "$bitsAllClear",
        "$bitsAnySet",
        "$bitsAnyClear",
    ]
)
_JUNCTIONS: Final = ("$and", "$or", "$nor")


def check_filter(given: dict[str, Any]) -> None:
    """Refuse with BadValue what MQL's parser would not take; what only mongot minds passes."""
    for key, value in given.items():
        if key in _JUNCTIONS:
            _check_junction(key, value)
        elif key.startswith("$"):
            if key not in _TOP_LEVEL:
                raise CommandError(BAD_VALUE, f"unknown top level operator: {key}")
        elif isinstance(value, dict) and next(iter(value), "").startswith("$"):
            _check_operators(value)


def _check_junction(key: str, value: Any) -> None:
    if not isinstance(value, list):
        raise CommandError(BAD_VALUE, f"{key} must be an array")
    if not value:
        raise CommandError(BAD_VALUE, "$and/$or/$nor must be a nonempty array")
    for item in value:
        if not isinstance(item, dict):
            raise CommandError(BAD_VALUE, "$or/$and/$nor entries need to be full objects")
        check_filter(item)


def _check_operators(given: dict[str, Any]) -> None:
    for name, value in given.items():
        if name not in _FIELD_LEVEL:
            raise CommandError(BAD_VALUE, f"unknown operator: {name}")
        if name in ("$in", "$nin"):
            _check_list(name, value)
        elif name == "$not":
            _check_not(value)


def _check_list(name: str, value: Any) -> None:
    if not isinstance(value, list):
        raise CommandError(BAD_VALUE, f"{name} needs an array")
    if any(isinstance(item, dict) and next(iter(item), "").startswith("$") for item in value):
        raise CommandError(BAD_VALUE, f"cannot nest $ under {name}")


def _check_not(value: Any) -> None:
    if isinstance(value, Regex):
        return
    if not isinstance(value, dict):
        raise CommandError(BAD_VALUE, "$not needs a regex or a document")
    if not value:
        raise CommandError(BAD_VALUE, "$not cannot be empty")
    _check_operators(value)
