"""Searching through the vector index: one command, joined with what this process wrote lately."""

from __future__ import annotations

import numpy as np
from crewai.memory.types import MemoryRecord
from numpy.typing import NDArray
from pymongo.errors import OperationFailure

from crewai_mongodb_memory import pipelines, routing
from crewai_mongodb_memory.commands import Document, Find, ListSearchIndexes, Operation, VectorSearch
from crewai_mongodb_memory.errors import VectorIndexNotReadyError
from crewai_mongodb_memory.filters import Criteria, to_query, to_vector_filter
from crewai_mongodb_memory.operations.read import WITHOUT_EMBEDDING, readable_records
from crewai_mongodb_memory.ranking import cosines
from crewai_mongodb_memory.routing import Route
from crewai_mongodb_memory.store import Store
from crewai_mongodb_memory.vector_index import VectorIndex, VectorIndexState, unavailable, vector_index

__all__ = ["learn_index", "search_by_index"]

Hits = list[tuple[MemoryRecord, float]]

ASK_AGAIN_AFTER = 10.0  # seconds that a state which does not serve, or an empty answer, is taken on trust
UNAVAILABLE_FOR = 300.0  # seconds that a server without vector search is not asked again
FROM_MONGOT = 8  # an error of the search process reaches the client as UnknownError, whatever it is
NOT_YET = ("while in state", "not initialized")
SEARCH_SERVICE_STARTING = 125
NOT_AUTHORIZED = 13
NOT_AUTHENTICATED = (18, 8000)


def search_by_index(
    store: Store, query: NDArray[np.float64], criteria: Criteria, limit: int, min_score: float
) -> Operation[Hits | None]:
    """Find the records nearest to a query through the vector index; None if it has to be done exactly.

    Raises:
        VectorIndexMissingError, VectorIndexNotReadyError, VectorIndexFailedError, VectorSearchUnavailableError: the
            search mode is ``"atlas"`` and the index cannot serve.
    """
    index = yield from _known_index(store)
    if not _route(store, index, query.size, criteria).by_index:
        return None
    try:
        found = yield VectorSearch(store.settings.collection, _pipeline(store, query, criteria, limit))
    except OperationFailure as error:
        index = yield from learn_index(store)
        if _route(store, index, query.size, criteria).by_index:
            _explain(store, error)
        return None
    if not found and (yield from _is_doubtful(store, query.size, criteria)):
        return None
    hits = yield from _with_recent_writes(store, found, query, criteria, limit, min_score)
    return hits


def learn_index(store: Store) -> Operation[VectorIndex]:
    """Ask the server for the state of the vector index, and remember it."""
    name = store.settings.vector_search_index
    try:
        listing = yield ListSearchIndexes(store.settings.collection, name=name)
    except OperationFailure as error:
        if error.code in NOT_AUTHENTICATED:
            raise
        said = str((error.details or {}).get("errmsg") or error)[:200]
        if error.code == SEARCH_SERVICE_STARTING and "Error connecting" in said:
            index = VectorIndex(VectorIndexState.BUILDING, message=said)
        elif error.code == NOT_AUTHORIZED:
            index = unavailable(f"this user may not list search indexes: {said}")
        else:
            index = unavailable(said)
    else:
        index = vector_index(listing, name)
    store.vector_index, store.asked_at = index, store.clock()
    return index


def _known_index(store: Store) -> Operation[VectorIndex]:
    known = store.vector_index
    if known is None or (known.serving is None and store.clock() - store.asked_at >= _trusted_for(known)):
        known = yield from learn_index(store)
    return known


def _trusted_for(index: VectorIndex) -> float:
    return UNAVAILABLE_FOR if index.state is VectorIndexState.UNAVAILABLE else ASK_AGAIN_AFTER


def _route(store: Store, index: VectorIndex, dimensions: int, criteria: Criteria) -> Route:
    settings = store.settings
    route = routing.route(
        settings.search_mode, index, settings.vector_search_index, dimensions, criteria, settings.tenant
    )
    if route.reason:
        store.notices.warn(f"route {index.state} {route.reason[:60]}", route.reason)
    return route


def _pipeline(store: Store, query: NDArray[np.float64], criteria: Criteria, limit: int) -> list[Document]:
    settings = store.settings
    return pipelines.vector_search(
        settings.vector_search_index,
        query.tolist(),
        limit,
        overfetch=store.recent.overfetch(store.clock()),
        num_candidates=settings.num_candidates,
        vector_filter=to_vector_filter(criteria, settings.tenant),
        query=to_query(criteria, settings.tenant),
    )


def _explain(store: Store, error: OperationFailure) -> None:
    """Return if a search that failed on an index that serves can be done exactly; else raise why not.

    The hosts of a cluster come to an index one after the other, so one may still lack what the listing shows.
    """
    if error.code != FROM_MONGOT:
        raise error
    said = str((error.details or {}).get("errmsg") or error)
    if store.settings.search_mode == "atlas" and any(text in said for text in NOT_YET):
        raise VectorIndexNotReadyError(
            f"the vector search index {store.settings.vector_search_index!r} does not answer yet: {said}"
        ) from error
    if store.settings.search_mode == "atlas" and "needs to be indexed as filter" not in said:
        raise error
    store.notices.warn(f"mongot {said[-60:]}", f"a vector search failed and is answered exactly instead: {said}")


def _is_doubtful(store: Store, dimensions: int, criteria: Criteria) -> Operation[bool]:
    """Tell whether an empty answer may come from an index that is gone, new or out of touch.

    Raises what :func:`search_by_index` raises.
    """
    index = store.vector_index
    if index is None or store.clock() - store.asked_at >= ASK_AGAIN_AFTER:
        index = yield from learn_index(store)
    if index.state is VectorIndexState.STALE:
        if store.settings.search_mode == "atlas":
            raise VectorIndexNotReadyError(
                f"the vector search index {store.settings.vector_search_index!r} found nothing, but it has lost touch "
                f"with the newest writes: {index.message or 'STALE'}"
            )
        return True
    return not _route(store, index, dimensions, criteria).by_index


def _with_recent_writes(
    store: Store,
    found: list[Document],
    query: NDArray[np.float64],
    criteria: Criteria,
    limit: int,
    min_score: float,
) -> Operation[Hits]:
    """Join what the index found with what this process wrote lately: its own comparison counts where both know one."""
    documents = {document["_id"]: document for document in found if isinstance(document["_id"], str)}
    cosine = {record_id: 2.0 * document[pipelines.SCORE] - 1.0 for record_id, document in documents.items()}
    written = [
        view
        for view in store.recent.matching(criteria, store.settings.tenant, store.clock())
        if view["embedding"].size == query.size and view["embedding"].any()
    ]
    if written:
        similarity = cosines(query, np.vstack([view["embedding"] for view in written])).tolist()
        cosine |= dict(zip((view["_id"] for view in written), similarity, strict=True))
    least = min_score if min_score > 0 else -1.0
    # A cosine that went through float32 is uncertain in its seventh digit: what differs by less ties, by id.
    ranked = sorted((-round(value, 6), record_id) for record_id, value in cosine.items() if value >= least - 1e-9)
    unseen = [record_id for _, record_id in ranked[:limit] if record_id not in documents]
    if unseen:
        selection = to_query(criteria, store.settings.tenant)
        fetched = yield Find(store.settings.collection, {**selection, "_id": {"$in": unseen}}, WITHOUT_EMBEDDING)
        documents |= {document["_id"]: document for document in fetched}
    present = [record_id for _, record_id in ranked if record_id in documents][:limit]
    records = {record.id: record for record in readable_records(store, [documents[one] for one in present])}
    return [(records[one], min(1.0, max(0.0, cosine[one]))) for one in present if one in records]
