"""One search index: its generations, the states they pass through, and its `$listSearchIndexes` document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, Final

from bson import ObjectId

from .definitions import VectorDefinition
from .indexed import IndexedCopy
from .replica import Namespace, Snapshot

PENDING: Final = "PENDING"
BUILDING: Final = "BUILDING"
READY: Final = "READY"
STALE: Final = "STALE"
FAILED: Final = "FAILED"
DELETING: Final = "DELETING"
DOES_NOT_EXIST: Final = "DOES_NOT_EXIST"
# Two moments the listing shows as PENDING: mongot has not heard of the index, or has only just.
UNSEEN: Final = "UNSEEN"
NOT_INITIALIZED: Final = "NOT_INITIALIZED"

STATES: Final = (
    PENDING,
    BUILDING,
    READY,
    STALE,
    FAILED,
    DELETING,
    DOES_NOT_EXIST,
    UNSEEN,
    NOT_INITIALIZED,
)
# A search of an index that does not exist gets an answer too, but nobody calls it queryable.
_QUERYABLE: Final = (READY, STALE)


def overall_status(main: str, staged: str, *, main_is_latest: bool) -> str:
    """The status a listing gives an index for those of its two generations; one that is not there DOES_NOT_EXIST."""
    if main in (PENDING, BUILDING):
        return main
    if main == DOES_NOT_EXIST:
        return BUILDING if staged in (READY, STALE) else staged
    if main == STALE and main_is_latest:
        return BUILDING if staged in (BUILDING, READY) else STALE
    if main_is_latest:
        return main
    if staged == FAILED:
        return STALE if main == STALE else FAILED
    return BUILDING


@dataclass(eq=False)
class Generation:
    """One version of an index's definition; once built it has synced the collection and follows it."""

    given: Mapping[str, Any]
    definition: VectorDefinition | None
    version: int
    ready_at: float | None
    synced: Snapshot | None = None
    state: str = BUILDING
    message: str | None = None
    queryable_override: bool | None = None
    created_at: datetime = field(default_factory=lambda: datetime.now(timezone.utc))
    _copy: tuple[Snapshot, IndexedCopy] | None = None

    @property
    def queryable(self) -> bool:
        return self.state in _QUERYABLE if self.queryable_override is None else self.queryable_override

    @property
    def listed_state(self) -> str:
        return PENDING if self.state in (UNSEEN, NOT_INITIALIZED) else self.state

    def copy_of(self, seen: Snapshot) -> IndexedCopy:
        """The index's copy of what the service has seen, never older than its own initial sync."""
        if self.definition is None:
            raise ValueError("a search index holds no vectors")
        if self.synced is not None and (self.state == STALE or self.synced.number > seen.number):
            seen = self.synced
        if self._copy is None or self._copy[0] is not seen:
            self._copy = (seen, IndexedCopy(self.definition, seen.documents.values()))
        return self._copy[1]

    def described(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "status": self.listed_state,
            "queryable": self.queryable,
            "definitionVersion": {"version": self.version, "createdAt": self.created_at},
            "definition": self.given if self.definition is None else self.definition.listed(),
        }
        if self.message is not None:
            body["message"] = self.message
        return body


@dataclass(eq=False)
class SearchIndex:
    """An index: the generation that answers, and the staged one that will."""

    name: str
    type: str
    namespace: Namespace
    collection: bytes
    main: Generation
    staged: Generation | None = None
    gone_at: float | None = None
    dropped: bool = False
    id: ObjectId = field(default_factory=ObjectId)

    @property
    def latest(self) -> Generation:
        return self.staged or self.main

    @property
    def status(self) -> str:
        if self.dropped:
            return DELETING
        staged = DOES_NOT_EXIST if self.staged is None else self.staged.listed_state
        return overall_status(self.main.listed_state, staged, main_is_latest=self.main.version == self.latest.version)

    def listed(self, *, with_type: bool) -> dict[str, Any]:
        """The index's document in `$listSearchIndexes`; community's mongot leaves the type out."""
        state = self.status
        queryable = self.main.queryable and not self.dropped
        detail: dict[str, Any] = {
            "hostname": "atlas-standin-shard-00-00",
            "status": state,
            "queryable": queryable,
            "mainIndex": self.main.described(),
        }
        if self.staged is not None:
            detail["stagedIndex"] = self.staged.described()
        return {
            "id": str(self.id),
            "name": self.name,
            **({"type": self.type} if with_type else {}),
            "status": state,
            "queryable": queryable,
            "latestDefinitionVersion": {"version": self.latest.version, "createdAt": self.latest.created_at},
            "latestDefinition": self.latest.given,
            "statusDetail": [detail],
        }
