"""Recent writes: what this process wrote that a lagging vector index may not know yet.

Atlas's index follows the collection by a second or more, and a client has no way to wait for it. So the records that
this process saved or changed lately are compared here as well, and joined with what the index finds.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

from crewai_mongodb_memory.pure import vectors
from crewai_mongodb_memory.pure.criteria import Criteria, matches

__all__ = ["Recent", "RecentWrites"]

FILTERED = ("_id", "tenant", "scope_ancestors", "categories", "metadata_tokens", "created_at")
MOST_RECORDS = 2000  # at 1,024 dimensions about 16 MB


@dataclass(frozen=True)
class Recent:
    """What was written lately.

    Attributes:
        matching: what meets the criteria and has an embedding, which is an array.
        others: ids of what does not, as it was written.
        unknown: ids of what was written to an unknown effect.
    """

    matching: list[dict[str, Any]]
    others: frozenset[str]
    unknown: frozenset[str]


class RecentWrites:
    """Records written lately, with what a search filters on; safe to share among threads.

    Args:
        seconds: how long a write is remembered; 0 remembers nothing.
        lock: guards it; one that a fork leaves free where a process may fork.
    """

    def __init__(self, seconds: float = 0.0, lock: AbstractContextManager[object] | None = None) -> None:
        self._seconds = seconds
        self._written: OrderedDict[str, tuple[float, dict[str, Any]]] = OrderedDict()
        self._lock = lock or threading.Lock()

    def keep_for(self, seconds: float) -> None:
        """Remember writes for as long as the backend with the longest memory wants."""
        self._seconds = max(self._seconds, seconds)

    def wrote(self, documents: Iterable[Mapping[str, Any]], tenant: str | None, now: float) -> None:
        """Remember documents as they are stored now; the oldest are forgotten over 2,000.

        Args:
            tenant: of the writer. One without a tenant may have written a record of any.
        """
        if self._seconds <= 0:
            return
        with self._lock:
            for document in documents:
                view = {name: document[name] for name in FILTERED if name in document}
                view["embedding"] = vectors.decode(document.get("embedding"))
                view["any_tenant"] = tenant is None and "tenant" not in document
                self._written.pop(document["_id"], None)
                self._written[document["_id"]] = (now, view)
            while len(self._written) > MOST_RECORDS:
                self._written.popitem(last=False)
            self._forget_before(now - self._seconds)

    def removed(self, criteria: Criteria) -> None:
        """Forget what met the criteria of a delete, and surely belonged to the tenant that deleted."""
        with self._lock:
            if criteria.record_ids is None:
                ids = list(self._written)
            else:
                ids = [record_id for record_id in criteria.record_ids if record_id in self._written]
            wanted = replace(criteria, record_ids=None)
            for record_id in ids:
                view = self._written[record_id][1]
                is_of_any = view.get("is_unknown") or (view["any_tenant"] and criteria.tenant is not None)
                if not is_of_any and _matches(wanted, view):
                    del self._written[record_id]

    def lost_sight_of(self, record_id: str, now: float) -> None:
        """Remember that a record may have been changed: the answer to a write of it was lost."""
        if self._seconds > 0:
            with self._lock:
                self._written.pop(record_id, None)
                self._written[record_id] = (now, {"_id": record_id, "embedding": None, "is_unknown": True})

    def matching(self, criteria: Criteria, since: float) -> Recent:
        """Return what was written since a moment, by whether it meets the criteria."""
        with self._lock:
            views = [view for moment, view in self._written.values() if moment >= since]
        unknown = frozenset(view["_id"] for view in views if view.get("is_unknown"))
        found = [
            view
            for view in views
            if view["embedding"] is not None and not vectors.is_zero(view["embedding"]) and _matches(criteria, view)
        ]
        others = frozenset(view["_id"] for view in views) - {view["_id"] for view in found} - unknown
        return Recent(found, others, unknown)

    def _forget_before(self, moment: float) -> None:
        while self._written and next(iter(self._written.values()))[0] < moment:
            self._written.popitem(last=False)


def _matches(criteria: Criteria, view: Mapping[str, Any]) -> bool:
    return matches(replace(criteria, tenant=None) if view["any_tenant"] else criteria, view)
