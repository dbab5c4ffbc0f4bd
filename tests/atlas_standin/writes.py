"""Which documents a command writes, as far as the command says so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from bson import Regex

from .replica import Namespace, key_of

Ids = set[bytes] | None
Command = Mapping[str, Any]

_EVERYTHING: Ids = None
_ANYWHERE: Final = ("commitTransaction", "drop", "dropDatabase", "renameCollection")


def written_by(name: str, body: Command) -> list[tuple[Namespace, Ids]] | None:
    """The namespaces a command writes to, each with the encoded `_id`s it can touch or None for any.

    None as a whole means: perhaps every collection. A command that writes nothing gives an empty list.
    """
    database = str(body.get("$db", ""))
    if name == "insert":
        return [((database, body["insert"]), _merged(_inserted(item) for item in body["documents"]))]
    if name in ("update", "delete"):
        statements = body[f"{name}s"]
        return [((database, body[name]), _merged(_ids(item.get("q", {})) for item in statements))]
    if name in ("findAndModify", "findandmodify"):
        return [((database, body[name]), _ids(body.get("query", {})))]
    if name == "bulkWrite":
        return [(_namespace(item["ns"]), _EVERYTHING) for item in body["nsInfo"]]
    if name == "aggregate":
        return [(target, _EVERYTHING) for target in _output(database, body.get("pipeline", []))]
    return None if name in _ANYWHERE else []


def _merged(parts: Iterator[Ids]) -> Ids:
    merged: set[bytes] = set()
    for part in parts:
        if part is None:
            return None
        merged |= part
    return merged


def _inserted(document: Mapping[str, Any]) -> Ids:
    return {key_of(document["_id"])} if "_id" in document else None


def _ids(query: Mapping[str, Any]) -> Ids:
    wanted = query.get("_id", Regex("."))
    members = wanted["$in"] if isinstance(wanted, dict) and list(wanted) == ["$in"] else [wanted]
    # An operator or a pattern finds what it likes, and 1 also finds 1.0, which is another key here.
    if any(isinstance(member, dict | Regex | int | float) for member in members):
        return None
    return {key_of(member) for member in members}


def _namespace(full: str) -> Namespace:
    database, _, collection = full.partition(".")
    return database, collection


def _output(database: str, pipeline: list[Mapping[str, Any]]) -> Iterator[Namespace]:
    for stage in pipeline:
        target = stage.get("$out", stage.get("$merge"))
        if isinstance(target, dict) and "into" in target:
            target = target["into"]
        if isinstance(target, str):
            yield database, target
        elif isinstance(target, dict):
            yield target.get("db", database), target["coll"]
