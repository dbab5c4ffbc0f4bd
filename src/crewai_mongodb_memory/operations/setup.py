"""Setting up: the indexes a store needs, and the dimensions its embeddings have."""

from __future__ import annotations

from collections import Counter

from pymongo import IndexModel
from pymongo.errors import OperationFailure

from crewai_mongodb_memory.errors import DimensionMismatchError
from crewai_mongodb_memory.operations.commands import (
    CreateIndexes,
    CreateSearchIndex,
    Find,
    ListIndexes,
    Operation,
    UpdateSearchIndex,
    ask,
)
from crewai_mongodb_memory.operations.index_state import is_starting, known_index, learn_index
from crewai_mongodb_memory.operations.store import Store
from crewai_mongodb_memory.pure import btree_indexes, pipelines, vectors
from crewai_mongodb_memory.pure.btree_indexes import Index, IndexPlan
from crewai_mongodb_memory.pure.vector_index import Step, VectorIndex, definition_document, next_step

__all__ = [
    "TOO_MANY_INDEXES",
    "check_dimensions",
    "create_indexes",
    "plan_indexes",
    "set_up_once",
    "stored_dimensions",
    "take_step",
    "too_many_indexes",
]

CONFLICTS = (85, 86)  # an index on these keys, or of this name, that is another
TOO_MANY_INDEXES = 20  # or one of this name is being deleted
SAMPLE = 5


def set_up_once(store: Store, dimensions: int | None) -> Operation[None]:
    """Create the indexes that are missing, the first time this process has written, without waiting for them.

    A store works without them, only slower: whoever may not create indexes is told so once, and nothing fails. Over
    a broken connection the save fails, and the next one tries again.

    Args:
        dimensions: of the embeddings just written; None if there were none.
    """
    if not store.settings.auto_setup:
        return
    if not store.is_set_up:
        try:
            plan = yield from plan_indexes(store)
            yield from create_indexes(store, plan.create)
        except OperationFailure as error:
            store.notices.warn(
                "indexes",
                f"the indexes of {store.settings.collection!r} could not be created ({error}); memory works, but "
                f"slower. Grant createIndex and listIndexes, or let an administrator call ensure_indexes() and pass "
                f"auto_setup=False.",
            )
        store.is_set_up = True
    if store.settings.search_mode != "exact" and dimensions not in (None, store.indexed_dimensions):
        yield from _set_up_vector_index(store, dimensions)


def plan_indexes(store: Store) -> Operation[IndexPlan]:
    """Return the plan for the B-tree indexes, and tell of those that stand in the way."""
    existing = yield from ask(ListIndexes(store.settings.collection))
    plan = btree_indexes.plan(existing, btree_indexes.memory_indexes(tenants=store.settings.tenant is not None))
    for index in plan.conflict:
        store.notices.warn(
            f"index {index.name}",
            f"{store.settings.collection!r} has an index {index.name!r} with other keys or options than it needs. "
            f"Drop it, and the next start creates it as it should be.",
        )
    return plan


def create_indexes(store: Store, wanted: tuple[Index, ...]) -> Operation[tuple[str, ...]]:
    """Create B-tree indexes and return their names; one that another stands in the way of is told of and left out."""
    if not wanted:
        return ()
    try:
        yield from ask(
            CreateIndexes(store.settings.collection, [IndexModel(list(one.keys), name=one.name) for one in wanted])
        )
    except OperationFailure as error:
        if error.code not in CONFLICTS:
            raise
        if len(wanted) == 1:
            store.notices.warn(f"index {wanted[0].name}", f"the index {wanted[0].name!r} could not be created: {error}")
            return ()
        created: tuple[str, ...] = ()
        for one in wanted:
            created += yield from create_indexes(store, (one,))
        return created
    return tuple(one.name for one in wanted)


def take_step(store: Store, index: VectorIndex, step: Step, dimensions: int) -> Operation[None]:
    """Give the vector index the definition it should have."""
    name = store.settings.vector_search_index
    if step is Step.UPDATE:
        yield from ask(
            UpdateSearchIndex(store.settings.collection, name, definition_document(dimensions, index.document))
        )
    elif step is Step.CREATE:
        yield from ask(CreateSearchIndex(store.settings.collection, name, definition_document(dimensions)))


def too_many_indexes(store: Store, error: OperationFailure) -> str:
    """Return what to say when the server takes no more search indexes."""
    return (
        f"the vector search index {store.settings.vector_search_index!r} could not be created: {error}. A cluster of a "
        f"free or flexible tier takes few search indexes: drop one, or take a larger tier"
    )


def check_dimensions(store: Store, dimensions: int) -> Operation[None]:
    """Make sure that an embedding of these dimensions fits the store; an empty store takes any.

    Raises:
        DimensionMismatchError: it does not fit. What was learned before is asked again first: another process may
            have emptied the store and begun with another embedder.
    """
    if store.dimensions == dimensions:
        return
    if store.settings.dimensions is None:
        known = store.dimensions
        found = yield from stored_dimensions(store)
        # Another thread may have begun the store meanwhile, and not have written yet.
        store.dimensions = store.dimensions if found is None and store.dimensions != known else found
    if store.dimensions not in (None, dimensions):
        raise DimensionMismatchError(store.dimensions, dimensions)


def stored_dimensions(store: Store) -> Operation[int | None]:
    """Return the dimensions of the embeddings in the store, or None if there is none.

    It looks at a few. Where they differ, those of the vector index count, else those that most have.
    """
    documents = yield from ask(
        Find(store.settings.collection, pipelines.HAS_VECTOR, {"_id": 0, "embedding": 1}, limit=SAMPLE)
    )
    found = [vectors.decode(document["embedding"]) for document in documents]
    sizes = Counter(len(vector) for vector in found if vector is not None)
    if len(sizes) > 1 and store.settings.search_mode != "exact":
        index = yield from known_index(store)
        if index.latest is not None and index.latest.dimensions in sizes:
            return index.latest.dimensions
    return max(sizes, key=lambda size: sizes[size], default=None)


def _set_up_vector_index(store: Store, dimensions: int | None) -> Operation[None]:
    """Create the vector index, or give it the dimensions that an emptied store has begun with.

    One that lacks filter paths is left as it is: to update it is to rebuild it, and that is for ``ensure_indexes``.
    """
    assert dimensions is not None
    try:
        index = yield from learn_index(store)
        step = next_step(index, dimensions)
        other_dimensions = index.latest is not None and index.latest.dimensions != dimensions
        if step is Step.CREATE or (step is Step.UPDATE and other_dimensions):
            yield from take_step(store, index, step, dimensions)
            index = yield from learn_index(store)
        if index.latest is not None or step is Step.IMPOSSIBLE:
            store.indexed_dimensions = dimensions
    except OperationFailure as error:
        if is_starting(error):
            return
        store.indexed_dimensions = dimensions
        said = too_many_indexes(store, error) if error.code == TOO_MANY_INDEXES else str(error)
        store.notices.warn(
            "vector index",
            f"{said}. Searches are exact until then. Grant createSearchIndexes, or let an administrator call "
            f"ensure_indexes() and pass auto_setup=False.",
        )
