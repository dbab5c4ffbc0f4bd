"""Setting up: the indexes a store needs, and the dimensions its embeddings have."""

from __future__ import annotations

from pymongo import IndexModel
from pymongo.errors import OperationFailure

from crewai_mongodb_memory import indexes, vectors
from crewai_mongodb_memory.commands import (
    CreateIndexes,
    CreateSearchIndex,
    Find,
    ListIndexes,
    Operation,
    UpdateSearchIndex,
)
from crewai_mongodb_memory.errors import DimensionMismatchError
from crewai_mongodb_memory.indexes import IndexPlan
from crewai_mongodb_memory.operations.vector_search import learn_index
from crewai_mongodb_memory.store import Store
from crewai_mongodb_memory.vector_index import FILTER_PATHS, Step, VectorIndex, definition_document, next_step

__all__ = ["check_dimensions", "plan_indexes", "set_up_once", "stored_dimensions", "take_step"]

INDEX_ALREADY_EXISTS = 68


def set_up_once(store: Store, dimensions: int | None) -> Operation[None]:
    """Create the indexes that are missing, the first time this process has written, without waiting for them.

    A store works without them, only slower: whoever may not create indexes is told so once, and nothing fails.

    Args:
        dimensions: of the embeddings just written; None if there were none.
    """
    if store.is_set_up or not store.settings.auto_setup:
        return
    try:
        plan = yield from plan_indexes(store)
        if plan.create:
            yield _create(store, plan)
        if store.settings.search_mode != "exact" and dimensions is not None:
            yield from _set_up_vector_index(store, dimensions)
    except OperationFailure as error:
        store.notices.warn(
            "indexes",
            f"the indexes of {store.settings.collection!r} could not be created ({error}); memory works, but slower. "
            f"Grant createIndex, listIndexes and createSearchIndexes, or let an administrator call ensure_indexes() "
            f"and pass auto_setup=False.",
        )
    store.is_set_up = True


def plan_indexes(store: Store) -> Operation[IndexPlan]:
    """Return the plan for the B-tree indexes, and tell of those that stand in the way."""
    existing = yield ListIndexes(store.settings.collection)
    plan = indexes.plan(existing, indexes.memory_indexes(tenants=store.settings.tenant is not None))
    for index in plan.conflict:
        store.notices.warn(
            f"index {index.name}",
            f"{store.settings.collection!r} has an index {index.name!r} with other keys or options than it needs. "
            f"Drop it, and the next start creates it as it should be.",
        )
    return plan


def take_step(store: Store, index: VectorIndex, step: Step, dimensions: int) -> Operation[None]:
    """Give the vector index the definition it should have; one that another process has just made is fine."""
    name = store.settings.vector_search_index
    more_paths = (index.latest.filter_paths if index.latest else frozenset()) - set(FILTER_PATHS)
    definition = definition_document(dimensions, more_paths)
    if step is Step.UPDATE:
        yield UpdateSearchIndex(store.settings.collection, name, definition)
    elif step is Step.CREATE:
        try:
            yield CreateSearchIndex(store.settings.collection, name, definition)
        except OperationFailure as error:
            if error.code != INDEX_ALREADY_EXISTS:
                raise


def check_dimensions(store: Store, dimensions: int) -> Operation[None]:
    """Make sure that an embedding of these dimensions fits the store; an empty store takes any.

    Raises:
        DimensionMismatchError: it does not fit. What was learned before is asked again first: another process may
            have emptied the store and begun with another embedder.
    """
    if store.dimensions == dimensions:
        return
    if store.settings.dimensions is None:
        store.dimensions = yield from stored_dimensions(store)
    if store.dimensions not in (None, dimensions):
        raise DimensionMismatchError(store.dimensions, dimensions)


def stored_dimensions(store: Store) -> Operation[int | None]:
    """Return the dimensions of an embedding in the store, or None if there is none."""
    documents = yield Find(
        store.settings.collection, {"embedding": {"$exists": True}}, {"_id": 0, "embedding": 1}, limit=1
    )
    for document in documents:
        vector = vectors.decode(document["embedding"])
        if vector is not None:
            return len(vector)
    return None


def _create(store: Store, plan: IndexPlan) -> CreateIndexes:
    models = [IndexModel(list(index.keys), name=index.name) for index in plan.create]
    return CreateIndexes(store.settings.collection, models)


def _set_up_vector_index(store: Store, dimensions: int) -> Operation[None]:
    """Create the vector index, or give it the dimensions that an emptied store has begun with.

    One that lacks filter paths is left as it is: to update it is to rebuild it, and that is ``ensure_indexes``' to do.
    """
    index = yield from learn_index(store)
    step = next_step(index, dimensions)
    other_dimensions = index.latest is not None and index.latest.dimensions != dimensions
    if step is Step.CREATE or (step is Step.UPDATE and other_dimensions):
        yield from take_step(store, index, step, dimensions)
        yield from learn_index(store)
