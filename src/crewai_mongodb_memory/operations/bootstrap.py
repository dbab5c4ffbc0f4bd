"""The bootstrapper: everything a store needs on the server, made or mended, and waited for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pymongo import IndexModel, UpdateOne
from pymongo.errors import CollectionInvalid, OperationFailure

from crewai_mongodb_memory import metadata, routing, scopes
from crewai_mongodb_memory.commands import (
    BulkWrite,
    CreateCollection,
    CreateIndexes,
    Document,
    Find,
    Operation,
    Pause,
)
from crewai_mongodb_memory.errors import (
    VectorIndexFailedError,
    VectorIndexNotReadyError,
    VectorSearchUnavailableError,
)
from crewai_mongodb_memory.operations.setup import plan_indexes, stored_dimensions, take_step
from crewai_mongodb_memory.operations.vector_search import SEARCH_SERVICE_STARTING, learn_index
from crewai_mongodb_memory.store import Store
from crewai_mongodb_memory.vector_index import Step, VectorIndexState, next_step

__all__ = ["IndexReport", "ensure_indexes"]

BARE_DIMENSIONS = 1024
NAMESPACE_EXISTS = 48
TOO_MANY_INDEXES = 20
ASK_EVERY = 0.5  # seconds
BACKFILL_AT_A_TIME = 1000

Progress = Callable[[str], None]


@dataclass(frozen=True)
class IndexReport:
    """What :meth:`~crewai_mongodb_memory.MongoStorageBackend.ensure_indexes` found and did.

    Attributes:
        created: names of the B-tree indexes that were created.
        kept: names of those that were there.
        conflicts: names of those that an index with other keys or options stands in the way of.
        vector_index: what was done for the vector index: ``"create"``, ``"update"``, ``"keep"``, ``"conflict"`` (an
            index of another type has its name), or ``"impossible"`` (this server has no vector search).
        vector_index_state: what the server says of it at the end.
        dimensions: of the vector index.
        backfilled: documents that were given the fields that searches filter on.
    """

    created: tuple[str, ...]
    kept: tuple[str, ...]
    conflicts: tuple[str, ...]
    vector_index: str
    vector_index_state: str
    dimensions: int
    backfilled: int


def ensure_indexes(store: Store, wait: bool, timeout: float, on_progress: Progress | None) -> Operation[IndexReport]:
    """Create or mend the collection, its indexes and the fields that they are on; see the backend's method."""
    progress = on_progress or _silent
    deadline = store.clock() + timeout
    collection = store.settings.collection
    try:
        yield CreateCollection(collection)
    except CollectionInvalid:
        pass
    except OperationFailure as error:
        if error.code != NAMESPACE_EXISTS:
            raise
    plan = yield from plan_indexes(store)
    if plan.create:
        progress(f"creating {len(plan.create)} indexes")
        yield CreateIndexes(collection, [IndexModel(list(index.keys), name=index.name) for index in plan.create])
    backfilled = yield from _backfill(store, progress)
    known = store.settings.dimensions or (yield from stored_dimensions(store))
    step, dimensions = yield from _ensure_vector_index(store, known, deadline, progress)
    if wait and step in (Step.CREATE, Step.UPDATE, Step.KEEP):
        yield from _wait_until_ready(store, dimensions, deadline, progress)
    store.is_set_up = known is not None  # else the first embedding may still want another dimension
    return IndexReport(
        created=tuple(index.name for index in plan.create),
        kept=tuple(index.name for index in plan.keep),
        conflicts=tuple(index.name for index in plan.conflict),
        vector_index=step.value,
        vector_index_state=store.vector_index.state.value if store.vector_index else "not asked: search_mode is exact",
        dimensions=dimensions,
        backfilled=backfilled,
    )


def _ensure_vector_index(
    store: Store, dimensions: int | None, deadline: float, progress: Progress
) -> Operation[tuple[Step, int]]:
    if store.settings.search_mode == "exact":
        return Step.IMPOSSIBLE, dimensions or BARE_DIMENSIONS
    while True:
        index = yield from learn_index(store)
        dimensions = dimensions or (index.latest.dimensions if index.latest else BARE_DIMENSIONS)
        step = next_step(index, dimensions)
        try:
            if step in (Step.CREATE, Step.UPDATE):
                progress(f"{step.value} the vector search index {store.settings.vector_search_index!r}")
                yield from take_step(store, index, step, dimensions)
                yield from learn_index(store)
            break
        except OperationFailure as error:
            if error.code == TOO_MANY_INDEXES:
                raise VectorIndexFailedError(
                    f"the vector search index {store.settings.vector_search_index!r} could not be created: {error}. A "
                    f"cluster of a free or flexible tier takes few search indexes: drop one, or take a larger tier"
                ) from error
            if error.code != SEARCH_SERVICE_STARTING or store.clock() >= deadline:
                raise
            progress("waiting for the search service to start")
            yield Pause(seconds=ASK_EVERY)
    if store.settings.search_mode == "atlas" and step in (Step.IMPOSSIBLE, Step.CONFLICT):
        raise routing.trouble(index, store.settings.vector_search_index, dimensions) or VectorSearchUnavailableError()
    return step, dimensions


def _wait_until_ready(store: Store, dimensions: int, deadline: float, progress: Progress) -> Operation[None]:
    name = store.settings.vector_search_index
    while True:
        index = yield from learn_index(store)
        if index.is_settled and next_step(index, dimensions) is Step.KEEP:
            return
        if index.state is VectorIndexState.FAILED:
            raise routing.trouble(index, name, dimensions) or VectorIndexFailedError(index.message)
        if store.clock() >= deadline:
            raise VectorIndexNotReadyError(
                f"the vector search index {name!r} is not ready in the time given ({index.state.value}"
                f"{f': {index.message}' if index.message else ''}); the server goes on building it. Wait longer with "
                f"ensure_indexes(timeout=…), or not at all with wait=False"
            )
        progress(f"waiting for the vector search index: {index.state.value}")
        yield Pause(seconds=min(ASK_EVERY, max(0.0, deadline - store.clock())))


def _backfill(store: Store, progress: Progress) -> Operation[int]:
    """Give documents of an earlier version the fields that filters use."""
    lacking = {"$or": [{"metadata_tokens": {"$exists": False}}, {"scope_ancestors": {"$exists": False}}]}
    after: Document = {}
    backfilled = 0
    while True:
        documents = yield Find(
            store.settings.collection,
            {**lacking, **after},
            {"scope": 1, "metadata": 1},
            sort=[("_id", 1)],
            limit=BACKFILL_AT_A_TIME,
        )
        if not documents:
            return backfilled
        requests = [UpdateOne({"_id": document["_id"]}, {"$set": _derived(document)}) for document in documents]
        yield BulkWrite(store.settings.collection, requests)
        backfilled += len(documents)
        progress(f"completed {backfilled} documents of an earlier version")
        after = {"_id": {"$gt": documents[-1]["_id"]}}


def _derived(document: Document) -> dict[str, Any]:
    scope = document.get("scope")
    values = document.get("metadata")
    normalized = scopes.normalize(scope if isinstance(scope, str) else None)
    return {
        "scope": normalized,
        "scope_ancestors": scopes.ancestors(normalized),
        "metadata_tokens": metadata.tokens(values if isinstance(values, dict) else {}),
    }


def _silent(_: str) -> None:
    """Report no progress."""
