"""Indexes: those that a collection of memories should have, and what is to be done where some exist already."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Index", "IndexPlan", "memory_indexes", "plan"]

Keys = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Index:
    """A B-tree index, named as MongoDB names one by default."""

    keys: Keys

    @property
    def name(self) -> str:
        return "_".join(f"{field}_{direction}" for field, direction in self.keys)


# A list of records is sorted by created_at, newest first, then by _id, so that pages never overlap; the index has to
# hold both keys, or the server reads and sorts everything for each page. No text is indexed downwards: the
# embedded server misorders descending text keys.
NEWEST_FIRST: Keys = (("created_at", -1), ("_id", 1))

EVERY_STORE = (
    Index((("scope", 1),)),
    Index((("categories", 1),)),
    Index(NEWEST_FIRST),
    Index((("scope_ancestors", 1), *NEWEST_FIRST)),
)
TENANT_STORE = (
    Index((("tenant", 1), ("scope", 1))),
    Index((("tenant", 1), *NEWEST_FIRST)),
    Index((("tenant", 1), ("scope_ancestors", 1), *NEWEST_FIRST)),
)


@dataclass(frozen=True)
class IndexPlan:
    """What to do for the wanted indexes: create these, keep those, and tell of the ones that stand in the way."""

    create: tuple[Index, ...]
    keep: tuple[Index, ...]
    conflict: tuple[Index, ...]


def memory_indexes(*, tenants: bool) -> tuple[Index, ...]:
    """Return the indexes of a collection of memories, with those that a backend with a tenant needs beside."""
    return EVERY_STORE + TENANT_STORE if tenants else EVERY_STORE


def plan(existing: Iterable[Mapping[str, Any]], wanted: Sequence[Index]) -> IndexPlan:
    """Return the plan from what exists to what is wanted.

    Args:
        existing: the documents of MongoDB's ``listIndexes``.
        wanted: indexes of :func:`memory_indexes`.

    An index with the wanted keys serves under any name. One that has the wanted name but other keys is a conflict,
    and so is one on the wanted keys that leaves documents out (partial, sparse) or compares text by a collation.
    """
    documents = [dict(document) for document in existing]
    served = {_keys(document) for document in documents if _serves(document)}
    taken = {document.get("name") for document in documents}
    unserved = [index for index in wanted if index.keys not in served]
    return IndexPlan(
        create=tuple(index for index in unserved if index.name not in taken),
        keep=tuple(index for index in wanted if index.keys in served),
        conflict=tuple(index for index in unserved if index.name in taken),
    )


def _keys(document: Mapping[str, Any]) -> Keys:
    return tuple(
        (field, int(value) if isinstance(value, (int, float)) else 0) for field, value in document["key"].items()
    )


def _serves(document: Mapping[str, Any]) -> bool:
    return not any(document.get(option) for option in ("partialFilterExpression", "sparse", "collation", "hidden"))
