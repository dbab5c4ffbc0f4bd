"""The bootstrapper: everything a store needs on the server, made or mended, and waited for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pymongo import UpdateOne
from pymongo.errors import CollectionInvalid, OperationFailure

from crewai_mongodb_memory.errors import InvalidArgumentError, VectorIndexFailedError, VectorIndexNotReadyError
from crewai_mongodb_memory.operations.commands import BulkWrite, CreateCollection, Document, Find, Operation, Pause, ask
from crewai_mongodb_memory.operations.index_state import is_starting, learn_index, message_of, route_of
from crewai_mongodb_memory.operations.setup import (
    TOO_MANY_INDEXES,
    create_indexes,
    plan_indexes,
    stored_dimensions,
    take_step,
    too_many_indexes,
)
from crewai_mongodb_memory.operations.store import Store
from crewai_mongodb_memory.pure import checks, metadata, scopes
from crewai_mongodb_memory.pure.criteria import Criteria
from crewai_mongodb_memory.pure.vector_index import Step, VectorIndex, next_step

__all__ = ["IndexReport", "ensure_indexes"]

BARE_DIMENSIONS = 1024
NAMESPACE_NOT_FOUND, NAMESPACE_EXISTS = 26, 48
INDEX_NOT_FOUND, INDEX_ALREADY_EXISTS = 27, 68  # another process was here meanwhile
PASSING = (TOO_MANY_INDEXES, INDEX_NOT_FOUND, INDEX_ALREADY_EXISTS)
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
    if not (on_progress is None or callable(on_progress)):
        raise InvalidArgumentError(f"on_progress has to be a function of a text, not {on_progress!r}")
    progress = on_progress or _silent
    deadline = store.clock() + checks.seconds("timeout", timeout)
    yield from _ensure_collection(store)
    plan = yield from plan_indexes(store)
    if plan.create:
        progress(f"creating {len(plan.create)} indexes")
    created = yield from create_indexes(store, plan.create)
    backfilled = yield from _backfill(store, progress)
    known = store.settings.dimensions or (yield from stored_dimensions(store))
    step, dimensions = Step.IMPOSSIBLE, known or BARE_DIMENSIONS
    if store.settings.search_mode != "exact":
        step, dimensions = yield from _ensure_vector_index(store, known, wait, deadline, progress)
    store.is_set_up = True
    store.indexed_dimensions = known  # without any, the first embedding may still want others than the index has
    return IndexReport(
        created=created,
        kept=tuple(index.name for index in plan.keep),
        conflicts=tuple(index.name for index in plan.conflict),
        vector_index=step.value,
        vector_index_state=store.vector_index.state.value if store.vector_index else "not asked: search_mode is exact",
        dimensions=dimensions,
        backfilled=backfilled,
    )


def _ensure_collection(store: Store) -> Operation[None]:
    try:
        yield from ask(CreateCollection(store.settings.collection))
    except CollectionInvalid:
        pass
    except OperationFailure as error:
        if error.code != NAMESPACE_EXISTS:
            raise


def _ensure_vector_index(
    store: Store, known: int | None, wait: bool, deadline: float, progress: Progress
) -> Operation[tuple[Step, int]]:
    """Bring the vector index to what it should be, and wait for it: look, take a step, look again.

    Other processes may do the same at once; what counts is what is listed in the end.
    """
    taken: Step | None = None
    while True:
        index = yield from learn_index(store)
        dimensions = known or (index.latest.dimensions if index.latest else BARE_DIMENSIONS)
        step = next_step(index, dimensions)
        if step in (Step.IMPOSSIBLE, Step.CONFLICT):
            route = route_of(store, index, dimensions, Criteria(store.settings.tenant))
            if route.error is not None:
                raise route.error
            return step, dimensions
        if index.has_failed and taken is not None:
            raise _failed(store, index)
        said = index.message or index.status or index.state.value
        if step in (Step.CREATE, Step.UPDATE):
            progress(f"{step.value} the vector search index {store.settings.vector_search_index!r}")
            hindrance = yield from _try_step(store, index, step, dimensions)
            if hindrance is None:
                taken = taken or step
                continue
            said = hindrance
        elif index.is_settled or (not wait and index.latest is not None):
            return taken or step, dimensions
        if not wait or store.clock() >= deadline:
            raise _not_ready(store, said)
        progress(f"waiting for the vector search index: {said}")
        yield Pause(min(ASK_EVERY, max(0.0, deadline - store.clock())))


def _try_step(store: Store, index: VectorIndex, step: Step, dimensions: int) -> Operation[str | None]:
    """Take a step; what hinders it for the moment is returned, what will not pass is raised."""
    try:
        yield from take_step(store, index, step, dimensions)
    except OperationFailure as error:
        said = message_of(error)
        if error.code == TOO_MANY_INDEXES and "delete" not in said:
            raise VectorIndexFailedError(too_many_indexes(store, error)) from error
        if error.code == NAMESPACE_NOT_FOUND:
            yield from _ensure_collection(store)
        elif error.code not in PASSING and not is_starting(error):
            raise
        return said
    return None


def _failed(store: Store, index: VectorIndex) -> VectorIndexFailedError:
    return VectorIndexFailedError(
        f"the vector search index {store.settings.vector_search_index!r} has failed again: {index.message or 'FAILED'}"
    )


def _not_ready(store: Store, said: str) -> VectorIndexNotReadyError:
    return VectorIndexNotReadyError(
        f"the vector search index {store.settings.vector_search_index!r} is not ready in the time given: {said}. The "
        f"server goes on building it; wait longer with ensure_indexes(timeout=…)"
    )


def _backfill(store: Store, progress: Progress) -> Operation[int]:
    """Give documents of an earlier version the fields that filters use."""
    lacking = {"$or": [{"metadata_tokens": {"$exists": False}}, {"scope_ancestors": {"$exists": False}}]}
    after: Document = {}
    backfilled = 0
    while True:
        documents = yield from ask(
            Find(
                store.settings.collection,
                {**lacking, **after},
                {"scope": 1, "metadata": 1},
                sort=[("_id", 1)],
                limit=BACKFILL_AT_A_TIME,
            )
        )
        if not documents:
            return backfilled
        requests = [UpdateOne(_unchanged(document), {"$set": _derived(document)}) for document in documents]
        result = yield from ask(BulkWrite(store.settings.collection, requests))
        backfilled += result.matched_count
        progress(f"completed {backfilled} documents of an earlier version")
        after = {"_id": {"$gt": documents[-1]["_id"]}}


def _unchanged(document: Document) -> Document:
    """Select the document only if nobody has changed since what the new fields are derived from."""
    missing: Any = {"$exists": False}
    return {"_id": document["_id"]} | {
        name: {"$eq": document[name]} if name in document else missing for name in ("scope", "metadata")
    }


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
