"""Setting up: the indexes a store needs, and the dimensions its embeddings have."""

from __future__ import annotations

from pymongo import IndexModel
from pymongo.errors import OperationFailure

from crewai_mongodb_memory import indexes, vectors
from crewai_mongodb_memory.commands import CreateIndexes, Find, ListIndexes, Operation
from crewai_mongodb_memory.errors import DimensionMismatchError
from crewai_mongodb_memory.store import Store

__all__ = ["check_dimensions", "set_up_once"]


def set_up_once(store: Store) -> Operation[None]:
    """Create the indexes that are missing, the first time this process writes.

    A store works without them, only slower: whoever may not create indexes is told so once, and the write goes on.
    """
    if store.is_set_up or not store.settings.auto_setup:
        return
    try:
        existing = yield ListIndexes(store.settings.collection)
        plan = indexes.plan(existing, indexes.memory_indexes(tenants=store.settings.tenant is not None))
        if plan.create:
            models = [IndexModel(list(index.keys), name=index.name) for index in plan.create]
            yield CreateIndexes(store.settings.collection, models)
    except OperationFailure as error:
        store.notices.warn(
            "indexes",
            f"the indexes of {store.settings.collection!r} could not be created ({error}); memory works, but slower. "
            f"Grant createIndex and listIndexes, or let an administrator create them and pass auto_setup=False.",
        )
    else:
        for index in plan.conflict:
            store.notices.warn(
                f"index {index.name}",
                f"{store.settings.collection!r} has an index {index.name!r} with other keys or options than it needs. "
                f"Drop it, and the next start creates it as it should be.",
            )
    store.is_set_up = True


def check_dimensions(store: Store, dimensions: int) -> Operation[None]:
    """Make sure that an embedding of these dimensions fits the store; an empty store takes any.

    Raises:
        DimensionMismatchError: it does not fit. What was learned before is asked again first: another process may
            have emptied the store and begun with another embedder.
    """
    if store.dimensions == dimensions:
        return
    if store.settings.dimensions is None:
        store.dimensions = yield from _stored_dimensions(store)
    if store.dimensions not in (None, dimensions):
        raise DimensionMismatchError(store.dimensions, dimensions)


def _stored_dimensions(store: Store) -> Operation[int | None]:
    documents = yield Find(
        store.settings.collection, {"embedding": {"$exists": True}}, {"_id": 0, "embedding": 1}, limit=1
    )
    for document in documents:
        vector = vectors.decode(document["embedding"])
        if vector is not None:
            return len(vector)
    return None
