"""What the search service has seen of the collections: states of them, some time behind."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import bson

from .entries import SeenDocument
from .wire import CODEC

Namespace = tuple[str, str]
Document = Mapping[str, Any]
ReadAll = Callable[[Namespace], Iterable[Document]]
ReadSome = Callable[[Namespace, list[Any]], Iterable[Document]]

# Above this many changed documents reading the whole collection costs the server less than asking for them.
_MANY: Final = 200

_AT_ONCE: Final = -math.inf
_NEVER: Final = math.inf


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A collection as it was at one moment, and since when a search may see it."""

    number: int
    visible_from: float
    documents: Mapping[bytes, SeenDocument]


class Replica:
    """Follows the collections that have an index, and says what of them searches see by now.

    With `lag` 0 searches see everything written through the proxy; with a number of seconds they see what was
    written longer ago than that; with None nothing until `flush`.
    """

    def __init__(self, read_all: ReadAll, read_some: ReadSome, clock: Callable[[], float], lag: float | None) -> None:
        self._read_all = read_all
        self._read_some = read_some
        self._clock = clock
        self._lag = lag
        self._numbers = itertools.count()
        self._seen: dict[Namespace, list[Snapshot]] = {}
        self._changed: dict[Namespace, set[bytes] | None] = {}

    @property
    def lag(self) -> float | None:
        return self._lag

    @lag.setter
    def lag(self, lag: float | None) -> None:
        for namespace in list(self._seen):
            self._seen[namespace] = [self.seen(namespace)]
        self._lag = lag
        self.changed_somewhere()

    def follow(self, namespace: Namespace) -> Snapshot:
        """An initial sync: the collection as it is now, for the one index that asks."""
        for_all = self._lag == 0 or namespace not in self._seen
        self._changed[namespace] = None
        snapshot = self._read(namespace, _AT_ONCE if for_all else _NEVER)
        self._seen.setdefault(namespace, []).append(snapshot)
        return snapshot

    def changed(self, namespace: Namespace, ids: set[bytes] | None) -> None:
        """Take note of a write; `ids` are the encoded `_id`s it can have touched, None for any."""
        if namespace not in self._seen or self._lag is None:
            return
        known = self._changed.get(namespace, set())
        self._changed[namespace] = None if ids is None or known is None else known | ids
        if self._lag > 0:
            self._seen[namespace].append(self._read(namespace, self._clock() + self._lag))

    def changed_somewhere(self) -> None:
        """Take note of a write that may have touched every collection."""
        for namespace in self._seen:
            self.changed(namespace, None)

    def flush(self) -> None:
        """Catch up with everything, also with what was written past the proxy."""
        for namespace in self._seen:
            self._changed[namespace] = None
            self._seen[namespace] = [self._read(namespace, _AT_ONCE)]

    def seen(self, namespace: Namespace) -> Snapshot:
        """The newest state that a search may see now."""
        if self._lag == 0 and namespace in self._changed:
            self._seen[namespace] = [self._read(namespace, _AT_ONCE)]
        now = self._clock()
        states = self._seen[namespace]
        visible = max(n for n, state in enumerate(states) if n == 0 or state.visible_from <= now)
        del states[:visible]
        return states[0]

    def _read(self, namespace: Namespace, visible_from: float) -> Snapshot:
        states = self._seen.get(namespace)
        changed = self._changed.pop(namespace, set() if states else None)
        if not states or changed is None or len(changed) > _MANY:
            documents = {key_of(body["_id"]): SeenDocument(body) for body in self._read_all(namespace)}
            return Snapshot(next(self._numbers), visible_from, documents)
        documents = dict(states[-1].documents)
        ids = [bson.decode(key, CODEC)["_id"] for key in changed]
        fresh = {key_of(body["_id"]): SeenDocument(body) for body in self._read_some(namespace, ids)}
        for key in changed - fresh.keys():
            documents.pop(key, None)
        return Snapshot(next(self._numbers), visible_from, documents | fresh)


def key_of(id_: Any) -> bytes:
    """An `_id` of any BSON type as something to look up by."""
    return bson.encode({"_id": id_}, codec_options=CODEC)
