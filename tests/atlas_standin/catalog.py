"""All search indexes of the cluster, and what becomes of them as time goes by."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from .definitions import VectorDefinition
from .lifecycle import BUILDING, DELETING, PENDING, READY, STALE, STATES, Generation, SearchIndex
from .replica import Namespace, Replica

Which = Literal["latest", "main", "staged"]


@dataclass
class Pace:
    """How long builds and drops take; None is until they are told to finish."""

    build_seconds: float | None = 0.0
    drop_seconds: float | None = 0.0


class Catalog:
    """All indexes of the cluster; what is due by the clock happens whenever it is looked at."""

    def __init__(self, replica: Replica, clock: Callable[[], float], pace: Pace) -> None:
        self._replica = replica
        self._clock = clock
        self._pace = pace
        self._indexes: list[SearchIndex] = []

    def __len__(self) -> int:
        return len(self._indexes)

    def of(self, collection: bytes) -> Iterator[SearchIndex]:
        """The indexes of a collection, which its UUID names: a re-created collection is another one."""
        self.settle()
        return iter([index for index in self._indexes if index.collection == collection])

    def find(self, collection: bytes, *, name: str | None = None, id_: str | None = None) -> SearchIndex | None:
        for index in self.of(collection):
            if (name is None or index.name == name) and (id_ is None or str(index.id) == id_):
                return index
        return None

    def in_namespace(self, namespace: Namespace) -> list[SearchIndex]:
        self.settle()
        return [index for index in self._indexes if index.namespace == namespace]

    def generation(self, given: Mapping[str, Any], definition: VectorDefinition | None, version: int) -> Generation:
        """A definition whose build starts now."""
        seconds = self._pace.build_seconds
        ready_at = None if seconds is None else self._clock() + seconds
        return Generation(given, definition, version, ready_at)

    def add(self, index: SearchIndex) -> None:
        self._indexes.append(index)
        self.settle()

    def stage(self, index: SearchIndex, generation: Generation) -> None:
        """Build a new definition beside the old one, which keeps answering meanwhile."""
        index.staged = generation
        self.settle()

    def drop(self, index: SearchIndex, *, at_once: bool) -> None:
        seconds = 0.0 if at_once else self._pace.drop_seconds
        index.dropped = True
        index.gone_at = None if seconds is None else self._clock() + seconds
        self.settle()

    def forget(self, namespace: Namespace) -> None:
        """The collection is gone, and its indexes with it."""
        self._indexes = [index for index in self._indexes if index.namespace != namespace]

    def namespaces(self, database: str) -> set[Namespace]:
        return {index.namespace for index in self._indexes if index.namespace[0] == database}

    def rename(self, source: Namespace, target: Namespace, collection: bytes) -> None:
        """A renamed collection keeps its indexes; a server that gives it another UUID still has to."""
        self.forget(target)
        for index in self.in_namespace(source):
            index.namespace, index.collection = target, collection
            index.main.synced = self._replica.follow(target)

    def settle(self) -> None:
        """Let every build and drop finish that is due."""
        now = self._clock()
        self._indexes = [i for i in self._indexes if not (i.dropped and _due(i.gone_at, now))]
        for index in self._indexes:
            for generation in (index.main, index.staged):
                if generation is not None and generation.state == BUILDING and _due(generation.ready_at, now):
                    self._finish(index, generation)

    def finish_builds(self) -> None:
        for index in self._indexes:
            for generation in (index.main, index.staged):
                if generation is not None and generation.state in (PENDING, BUILDING):
                    self._finish(index, generation)
            self._swap(index)

    def finish_drops(self) -> None:
        self._indexes = [index for index in self._indexes if not index.dropped]

    def set_state(
        self,
        index: SearchIndex,
        state: str,
        message: str | None = None,
        queryable: bool | None = None,
        which: Which = "latest",
    ) -> None:
        """Put a generation into a state, where it stays until told otherwise or replaced."""
        if state not in STATES:
            raise ValueError(f"{state!r} is not one of {', '.join(STATES)}")
        index.dropped, index.gone_at = state == DELETING, None
        if index.dropped:
            return
        generation = self._chosen(index, which)
        if generation.synced is None:
            generation.synced = self._replica.follow(index.namespace)
        if state == STALE:
            generation.synced = max(
                generation.synced, self._replica.seen(index.namespace), key=lambda snapshot: snapshot.number
            )
        generation.message, generation.queryable_override = message, queryable
        generation.state, generation.ready_at = state, None
        if which == "latest":
            self._swap(index)

    def _chosen(self, index: SearchIndex, which: Which) -> Generation:
        if which == "latest":
            return index.latest
        if which == "staged":
            # Without an update mongot builds the same version anew, as it does for an index gone stale.
            index.staged = index.staged or replace(index.main, ready_at=None, synced=None)
            return index.staged
        return index.main

    def _finish(self, index: SearchIndex, generation: Generation) -> None:
        generation.synced = self._replica.follow(index.namespace)
        generation.state = READY
        self._swap(index)

    def _swap(self, index: SearchIndex) -> None:
        if index.staged is not None and index.staged.state == READY:
            index.main, index.staged = index.staged, None


def _due(moment: float | None, now: float) -> bool:
    return moment is not None and moment <= now
