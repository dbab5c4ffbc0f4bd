"""The state of the vector index: asked of the server, remembered, and asked again when it may have changed."""

from __future__ import annotations

from pymongo.errors import OperationFailure

from crewai_mongodb_memory.operations.commands import ListSearchIndexes, Operation, ask
from crewai_mongodb_memory.operations.store import Store
from crewai_mongodb_memory.pure.criteria import Criteria
from crewai_mongodb_memory.pure.search_route import Route, search_route
from crewai_mongodb_memory.pure.vector_index import VectorIndex, VectorIndexState, unavailable, vector_index

__all__ = ["NOT_AUTHENTICATED", "NOT_AUTHORIZED", "is_starting", "known_index", "learn_index", "message_of", "route_of"]

ASK_AGAIN_AFTER = 10.0  # seconds that what may change elsewhere is taken on trust
UNAVAILABLE_FOR = 300.0  # seconds that a server without vector search is not asked again
SEARCH_SERVICE_STARTING = 125
NOT_AUTHORIZED = 13
NOT_AUTHENTICATED = (18, 8000)
# Servers without vector search, by version and kind (MongoDB's PHP library keeps the same list).
NO_VECTOR_SEARCH = (31082, 6047401, 7501001, 40324, 59, 115, 31325)


def known_index(store: Store, *, is_usable: bool = True) -> Operation[VectorIndex]:
    """Return what is known of the vector index; the server is asked if nothing is, or if it was of no use for a while.

    Args:
        is_usable: whether what is known is of use to the caller.
    """
    known = store.vector_index
    if known is not None and known.serving is not None and is_usable:
        return known
    if known is None or store.clock() - store.asked_at >= _trusted_for(known):
        known = yield from learn_index(store)
    return known


def learn_index(store: Store) -> Operation[VectorIndex]:
    """Ask the server for the state of the vector index, and remember it."""
    name = store.settings.vector_search_index
    try:
        listing = yield from ask(ListSearchIndexes(store.settings.collection, name=name))
    except OperationFailure as error:
        if error.code in NOT_AUTHENTICATED:
            raise
        said = message_of(error)
        if error.code == NOT_AUTHORIZED:
            index = unavailable(f"this user may not list search indexes: {said}")
        elif error.code in NO_VECTOR_SEARCH:
            index = unavailable(said)
        else:
            index = VectorIndex(VectorIndexState.UNKNOWN, message=said)
    else:
        index = vector_index(listing, name)
    store.vector_index, store.asked_at = index, store.clock()
    return index


def route_of(store: Store, index: VectorIndex, dimensions: int, criteria: Criteria) -> Route:
    """Return how the store answers a search, given what is known of the vector index."""
    settings = store.settings
    return search_route(settings.search_mode, index, settings.vector_search_index, dimensions, criteria)


def message_of(error: OperationFailure) -> str:
    """Return what the server said, without the driver's additions."""
    return str((error.details or {}).get("errmsg") or error)[:1000]


def is_starting(error: OperationFailure) -> bool:
    """Tell whether the management of search indexes is not there yet, as in the first seconds of Atlas Local."""
    return error.code == SEARCH_SERVICE_STARTING and "Error connecting" in message_of(error)


def _trusted_for(index: VectorIndex) -> float:
    return UNAVAILABLE_FOR if index.state is VectorIndexState.UNAVAILABLE else ASK_AGAIN_AFTER
