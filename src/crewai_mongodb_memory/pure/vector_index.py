"""The vector search index: how it should be defined, what ``$listSearchIndexes`` says of it, and what is to be done.

Sources: MongoDB docs, "How to Index Fields for Vector Search" and "``$listSearchIndexes``". A server without the
index answers every search with nothing and no error, so the state of the index has to be known before an empty
answer can be believed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

__all__ = [
    "FILTER_PATHS",
    "Definition",
    "Step",
    "VectorIndex",
    "VectorIndexState",
    "definition_document",
    "next_step",
    "unavailable",
    "vector_index",
]

VECTOR_PATH = "embedding"
SIMILARITY = "cosine"
# expires_at is there for records that expire, so that the index need not be rebuilt for them.
FILTER_PATHS = ("scope_ancestors", "categories", "metadata_tokens", "tenant", "expires_at")


class VectorIndexState(Enum):
    """What an index can be used for now."""

    UNAVAILABLE = "this server has no vector search"
    UNKNOWN = "the server did not tell the state of the index"
    ABSENT = "there is no such index"
    OTHER_TYPE = "the index is not a vector search index on embedding"
    BUILDING = "the index is being built"
    FAILED = "the index has failed"
    STALE = "the index answers, but has lost touch with the newest writes"
    READY = "the index answers"


@dataclass(frozen=True)
class Definition:
    """What matters of an index definition, whatever its order and its defaults."""

    dimensions: int
    similarity: str
    filter_paths: frozenset[str]


@dataclass(frozen=True)
class VectorIndex:
    """An index as the server tells of it.

    Attributes:
        serving: the definition that answers searches now; None if none does.
        latest: the definition that was last given, which may still be building; None without an index.
        document: the latest definition as it was given.
        status: the server's own word for the state, and ``message`` what it says of it, if anything.
        is_complete: whether what answers has caught up once, so that it knows all but the newest writes.
    """

    state: VectorIndexState
    serving: Definition | None = None
    latest: Definition | None = None
    document: Mapping[str, Any] = field(default_factory=dict, compare=False)
    status: str = ""
    message: str = ""
    is_complete: bool = False

    @property
    def has_failed(self) -> bool:
        """Whether the server gave up on the latest definition; one before it may still answer."""
        return self.status == "FAILED"

    @property
    def is_settled(self) -> bool:
        """Whether the definition that was last given is the one that answers."""
        return self.status in ("READY", "STALE") and self.serving is not None and self.serving == self.latest


class Step(Enum):
    """What is to be done so that the index is as it should be."""

    CREATE = "create"
    UPDATE = "update"
    KEEP = "keep"
    CONFLICT = "conflict"
    IMPOSSIBLE = "impossible"


def definition_document(dimensions: int, existing: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the definition of the index as ``createSearchIndexes`` takes it.

    Args:
        dimensions: of the embeddings.
        existing: the definition that it is to replace. What others have added to that is kept.
    """
    ours = {"type": "vector", "path": VECTOR_PATH, "numDimensions": dimensions, "similarity": SIMILARITY}
    fields = [dict(one) for one in (existing or {}).get("fields", ())] or [ours]
    fields = [one | ours if _is_our_vector(one) else one for one in fields]
    declared = {one.get("path") for one in fields}
    added = [{"type": "filter", "path": path} for path in FILTER_PATHS if path not in declared]
    return {**(existing or {}), "fields": [*fields, *added]}


def unavailable(message: str) -> VectorIndex:
    """Return what is known of the index of a server that has no vector search."""
    return VectorIndex(VectorIndexState.UNAVAILABLE, message=message)


def vector_index(listing: Iterable[Mapping[str, Any]], name: str) -> VectorIndex:
    """Return what a listing of search indexes says of the one with a name.

    While an update builds, an index is ``BUILDING`` and yet queryable: the old definition answers.
    """
    entry = next((entry for entry in listing if entry.get("name") == name), None)
    status = entry.get("status", "") if entry else ""
    if entry is None or status in ("DOES_NOT_EXIST", "DELETING"):
        return VectorIndex(VectorIndexState.ABSENT)
    latest = _definition(entry.get("latestDefinition"))
    message = _message(entry)
    if latest is None:
        return VectorIndex(VectorIndexState.OTHER_TYPE, status=status, message=message)
    document = entry["latestDefinition"]
    if not entry.get("queryable"):
        state = VectorIndexState.FAILED if status == "FAILED" else VectorIndexState.BUILDING
        return VectorIndex(state, None, latest, document, status, message or status)
    serving = latest if status == "READY" else _serving_definition(entry) or latest
    state = VectorIndexState.STALE if status == "STALE" else VectorIndexState.READY
    is_complete = status == "READY" or (status in ("BUILDING", "FAILED") and _main_is_ready(entry))
    return VectorIndex(state, serving, latest, document, status, message, is_complete)


def next_step(index: VectorIndex, dimensions: int) -> Step:
    """Return what is to be done for an index that should serve embeddings of these dimensions.

    Definitions are compared by what they mean: an order, a default or a path more makes no difference, so that no
    start of a program rebuilds an index. One that has failed stays so until it is given a definition again.
    """
    match index.state:
        case VectorIndexState.UNAVAILABLE:
            return Step.IMPOSSIBLE
        case VectorIndexState.ABSENT:
            return Step.CREATE
        case VectorIndexState.OTHER_TYPE:
            return Step.CONFLICT
        case VectorIndexState.UNKNOWN:
            return Step.KEEP
    latest = index.latest
    fits = (
        latest is not None
        and not index.has_failed
        and latest.dimensions == dimensions
        and latest.similarity == SIMILARITY
        and latest.filter_paths >= set(FILTER_PATHS)
    )
    return Step.KEEP if fits else Step.UPDATE


def _definition(document: Any) -> Definition | None:
    fields = document.get("fields") if isinstance(document, Mapping) else None
    if not isinstance(fields, list):
        return None
    vectors = [one for one in fields if _is_our_vector(one)]
    if not vectors:
        return None
    return Definition(
        dimensions=int(vectors[0].get("numDimensions", 0)),
        similarity=str(vectors[0].get("similarity", "")),
        filter_paths=frozenset(str(one.get("path")) for one in fields if one.get("type") == "filter"),
    )


def _is_our_vector(one: Mapping[str, Any]) -> bool:
    return one.get("type") == "vector" and one.get("path") == VECTOR_PATH


def _main_is_ready(entry: Mapping[str, Any]) -> bool:
    mains = [detail.get("mainIndex") or {} for detail in entry.get("statusDetail") or []]
    return bool(mains) and all(main.get("status") == "READY" for main in mains)


def _serving_definition(entry: Mapping[str, Any]) -> Definition | None:
    """The definition that answers whichever host is asked: the filter paths that the main indexes of all have."""
    mains = [detail.get("mainIndex") or {} for detail in entry.get("statusDetail") or []]
    definitions = [definition for main in mains if (definition := _definition(main.get("definition")))]
    if not definitions:
        return None
    paths = frozenset.intersection(*(definition.filter_paths for definition in definitions))
    return replace(definitions[0], filter_paths=paths)


def _message(entry: Mapping[str, Any]) -> str:
    for detail in entry.get("statusDetail") or []:
        for which in ("stagedIndex", "mainIndex"):
            message = (detail.get(which) or {}).get("message")
            if message:
                return str(message)
    return str(entry.get("message") or "")
