"""The search service: finds the index a stage names, and answers from what that index holds."""

from __future__ import annotations

import random
from typing import Any, Final

from .catalog import Catalog
from .cluster import Knobs
from .errors import MongotError, relayed
from .indexed import Hit, Leniency
from .lifecycle import BUILDING, FAILED, NOT_INITIALIZED, PENDING, UNSEEN, SearchIndex
from .management import VECTOR_SEARCH, Identify
from .replica import Namespace, Replica
from .stage import parse_as_mongot

_ENGINE_STATES: Final = {PENDING: "NOT_STARTED", BUILDING: "INITIAL_SYNC", FAILED: "FAILED"}


class SearchService:
    """mongot, as far as `$vectorSearch` can tell."""

    def __init__(
        self, catalog: Catalog, replica: Replica, knobs: Knobs, identify: Identify, dice: random.Random
    ) -> None:
        self._catalog = catalog
        self._replica = replica
        self._knobs = knobs
        self._identify = identify
        self._dice = dice

    def search(self, namespace: Namespace, spec: dict[str, Any]) -> list[Hit]:
        """The documents a stage finds; none without an error if collection or index do not exist.

        Raises:
            CommandError: mongot's complaint, as the server relays it.
        """
        collection = self._identify(namespace)
        if collection is None:
            return []
        try:
            return self._search(namespace, collection.uuid, spec)
        except MongotError as error:
            raise relayed(error, self._knobs.prefix, *namespace) from error

    def _search(self, namespace: Namespace, collection: bytes, spec: dict[str, Any]) -> list[Hit]:
        criteria = parse_as_mongot(spec)
        index = self._catalog.find(collection, name=criteria.index)
        if index is None or index.dropped or index.main.state == UNSEEN:
            return []
        if index.type != VECTOR_SEARCH:
            raise MongotError(f"Cannot execute $vectorSearch over search index '{index.name}'")
        _require_answering(index)
        held = index.main.copy_of(self._replica.seen(namespace))
        return held.search(criteria, Leniency(self._knobs.recall, self._knobs.shuffle_ties), self._dice)


def _require_answering(index: SearchIndex) -> None:
    state = index.main.state
    if state == NOT_INITIALIZED:
        raise MongotError(f"Index {index.name} not initialized")
    if state in _ENGINE_STATES:
        database, collection = index.namespace
        uuid = index.collection.hex()
        raise MongotError(
            f"cannot query vector index {index.id} (vector index {index.name} collection {collection} ({uuid}) "
            f"in database {database}) while in state {_ENGINE_STATES[state]}"
        )
