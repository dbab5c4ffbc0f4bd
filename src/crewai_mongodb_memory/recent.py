"""Recent writes: what this process wrote that a lagging vector index may not know yet.

Atlas's index follows the collection by a second or more, and a client has no way to wait for it. So the records that
this process saved or changed lately are compared here as well, and joined with what the index finds.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Hashable, Iterable, Iterator, Mapping
from threading import Lock
from typing import Any, ClassVar
from weakref import WeakValueDictionary

from crewai_mongodb_memory import vectors
from crewai_mongodb_memory.filters import Criteria, matches

__all__ = ["RecentWrites"]

FILTERED = ("_id", "tenant", "scope_ancestors", "categories", "metadata_tokens", "created_at")
MOST_RECORDS = 2000  # at 1,024 dimensions about 16 MB
MOST_OVERFETCH = 1000


class RecentWrites:
    """Records written within some seconds, with what a search filters on; safe to share among threads.

    Args:
        seconds: how long a write counts as recent; 0 remembers nothing.
    """

    _shared: ClassVar[WeakValueDictionary[Hashable, RecentWrites]] = WeakValueDictionary()
    _sharing: ClassVar[Lock] = Lock()

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._written: OrderedDict[str, tuple[float, dict[str, Any]]] = OrderedDict()
        self._gone: deque[tuple[float, int]] = deque()
        self._lock = Lock()

    @classmethod
    def shared(cls, store: Hashable, seconds: float) -> RecentWrites:
        """Return the recent writes of this process to a store, which all of its backends on that store share."""
        if seconds <= 0:
            return cls(0)
        with cls._sharing:
            return cls._shared.setdefault((store, seconds), cls(seconds))

    def wrote(self, documents: Iterable[Mapping[str, Any]], now: float) -> None:
        """Remember documents as they are stored now; the oldest are forgotten over 2,000."""
        if self._seconds <= 0:
            return
        with self._lock:
            for document in documents:
                view = {name: document[name] for name in FILTERED if name in document}
                vector = vectors.decode(document.get("embedding"))
                self._written.pop(document["_id"], None)
                self._written[document["_id"]] = (now, view | {"embedding": vector})
            while len(self._written) > MOST_RECORDS:
                self._written.popitem(last=False)

    def removed(self, criteria: Criteria, tenant: str | None, count: int, now: float) -> None:
        """Forget what met the criteria of a delete, and remember how many records the index may still hold."""
        with self._lock:
            for record_id in [one for one, (_, view) in self._written.items() if matches(criteria, tenant, view)]:
                del self._written[record_id]
        self.moved(count, now)

    def moved(self, count: int, now: float) -> None:
        """Remember how many records the index may still hold with what they were before."""
        if self._seconds > 0 and count:
            with self._lock:
                self._gone.append((now, count))

    def matching(self, criteria: Criteria, tenant: str | None, now: float) -> Iterator[dict[str, Any]]:
        """Give the recent documents that meet the criteria and have an embedding, as an array."""
        with self._lock:
            self._forget_before(now - self._seconds)
            views = [view for _, view in self._written.values()]
        for view in views:
            if view["embedding"] is not None and matches(criteria, tenant, view):
                yield view

    def overfetch(self, now: float) -> int:
        """Return how many of an index's answers may be of records that are gone: that many more are to be asked for."""
        with self._lock:
            self._forget_before(now - self._seconds)
            return min(MOST_OVERFETCH, sum(count for _, count in self._gone))

    def _forget_before(self, moment: float) -> None:
        while self._written and next(iter(self._written.values()))[0] < moment:
            self._written.popitem(last=False)
        while self._gone and self._gone[0][0] < moment:
            self._gone.popleft()
