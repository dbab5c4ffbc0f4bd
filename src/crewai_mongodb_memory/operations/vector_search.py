"""Searching through the vector index: one command, joined with what this process wrote lately."""

from __future__ import annotations

import numpy as np
from crewai.memory.types import MemoryRecord
from numpy.typing import NDArray
from pymongo.errors import OperationFailure

from crewai_mongodb_memory.errors import VectorIndexNotReadyError
from crewai_mongodb_memory.operations.commands import Document, Find, Operation, VectorSearch, ask
from crewai_mongodb_memory.operations.index_state import (
    NOT_AUTHENTICATED,
    NOT_AUTHORIZED,
    known_index,
    learn_index,
    message_of,
    route_of,
)
from crewai_mongodb_memory.operations.read import readable_records
from crewai_mongodb_memory.operations.recent_writes import Recent
from crewai_mongodb_memory.operations.store import Store
from crewai_mongodb_memory.pure import pipelines, vectors
from crewai_mongodb_memory.pure.criteria import Criteria, to_query, to_vector_filter
from crewai_mongodb_memory.pure.ranking import cosines
from crewai_mongodb_memory.pure.vector_index import VectorIndex

__all__ = ["Hits", "search_by_index"]

Hits = list[tuple[MemoryRecord, float]]
Found = tuple[Hits, bool]

FROM_MONGOT = 8  # an error of the search process reaches the client as UnknownError, whatever it is
TOOK_TOO_LONG = 50
NOT_OF_THE_INDEX = (NOT_AUTHORIZED, *NOT_AUTHENTICATED, TOOK_TOO_LONG)
NOT_YET = ("while in state", "not initialized")
FLOAT32 = 1e-6  # what a cosine that the index computed is uncertain by
SAME_COSINE = 1e-5


def search_by_index(
    store: Store, query: NDArray[np.float64], criteria: Criteria, limit: int, min_score: float
) -> Operation[Found]:
    """Find the records nearest to a query through the vector index, and tell whether these are all.

    Raises:
        VectorIndexMissingError, VectorIndexNotReadyError, VectorIndexFailedError, VectorSearchUnavailableError: the
            search mode is ``"atlas"`` and the index cannot serve.
    """
    if not (yield from _is_by_index(store, query.size, criteria)):
        return [], False
    try:
        answer = yield from ask(VectorSearch(store.settings.collection, _pipeline(store, query, criteria, limit)))
    except OperationFailure as error:
        index = yield from learn_index(store)
        if _is_routed_by_index(store, index, query.size, criteria):
            _explain(store, error)
        return [], False
    found = [document for document in answer if pipelines.SCORE in document]
    candidates = next((document[pipelines.CANDIDATES] for document in answer if pipelines.SCORE not in document), 0)
    hits, known, is_sure = yield from _with_recent_writes(store, found, query, criteria, limit, min_score)
    if known < candidates and not found:
        yield from _explain_silence(store, query.size, criteria)
    return hits, known >= candidates and is_sure


def _is_by_index(store: Store, dimensions: int, criteria: Criteria) -> Operation[bool]:
    """Tell whether the index serves; where it did not a while ago, the server is asked again.

    Raises:
        MongoMemoryError: it does not, and the search mode is ``"atlas"``.
    """
    index = yield from known_index(store)
    if route_of(store, index, dimensions, criteria).may_change:
        index = yield from known_index(store, is_usable=False)
    return _is_routed_by_index(store, index, dimensions, criteria)


def _is_routed_by_index(store: Store, index: VectorIndex, dimensions: int, criteria: Criteria) -> bool:
    route = route_of(store, index, dimensions, criteria)
    if route.error is not None:
        raise route.error
    if route.reason:
        store.notices.warn(f"route {index.state} {route.reason[:60]}", route.reason)
    return route.by_index


def _pipeline(store: Store, query: NDArray[np.float64], criteria: Criteria, limit: int) -> list[Document]:
    settings = store.settings
    return pipelines.vector_search(
        settings.vector_search_index,
        settings.collection,
        query.tolist(),
        limit,
        num_candidates=settings.num_candidates,
        vector_filter=to_vector_filter(criteria),
        query=to_query(criteria),
    )


def _explain(store: Store, error: OperationFailure) -> None:
    """Return if a search that failed on an index that serves can be done exactly; else raise why not.

    The hosts of a cluster come to an index one after the other, so one may still lack what the listing shows.
    """
    said = message_of(error)
    is_strict = store.settings.search_mode == "atlas"
    if error.code in NOT_OF_THE_INDEX or (is_strict and error.code != FROM_MONGOT):
        raise error
    if is_strict and any(text in said for text in NOT_YET):
        raise VectorIndexNotReadyError(
            f"the vector search index {store.settings.vector_search_index!r} does not answer yet: {said}"
        ) from error
    if is_strict and "needs to be indexed as filter" not in said:
        raise error
    store.notices.warn(f"mongot {said[-60:]}", f"a vector search failed and is answered exactly instead: {said}")


def _explain_silence(store: Store, dimensions: int, criteria: Criteria) -> Operation[None]:
    """Say why an index found nothing of what is there, or raise it; nothing is said of one that only lags behind."""
    index = yield from learn_index(store)
    if not _is_routed_by_index(store, index, dimensions, criteria) or index.is_complete:
        return
    name = store.settings.vector_search_index
    reason = f"the vector search index {name!r} found nothing of what is there: {index.message or index.status}"
    if store.settings.search_mode == "atlas":
        raise VectorIndexNotReadyError(reason)
    store.notices.warn(f"incomplete {index.status}", f"{reason}. Until it has caught up, searches are exact")


def _with_recent_writes(
    store: Store,
    found: list[Document],
    query: NDArray[np.float64],
    criteria: Criteria,
    limit: int,
    min_score: float,
) -> Operation[tuple[Hits, int, bool]]:
    """Join what the index found with what this process wrote lately.

    Neither is sure to be right: the index lags behind, and what was written here another process may have changed.
    Where they agree they are believed; what only one of them says is looked up before it becomes a hit.

    Returns the hits, how many there would be, up to the limit, without ``min_score``, and whether no better ones may
    be hidden: where the index would have had to look further, since much of what it found is gone.
    """
    recent = store.recent.matching(criteria, store.clock() - store.settings.read_your_writes)
    documents = {one["_id"]: one for one in found if isinstance(one["_id"], str)}
    cosine, unsure = _compared(documents, recent, query)
    yield from _look_up(store, query, criteria, limit, documents, cosine, unsure)
    best = _ranked(cosine)[:limit]
    least = min_score - FLOAT32 if min_score > 0 else -1.0 - FLOAT32
    records = {record.id: record for record in readable_records(store, [documents[one] for one in best])}
    hits = [
        (records[record_id], min(1.0, max(0.0, cosine[record_id])))
        for record_id in best
        if record_id in records and cosine[record_id] >= least
    ]
    no_records = sum(not isinstance(one["_id"], str) for one in found)
    least_found = min((2.0 * one[pipelines.SCORE] - 1.0 for one in found), default=1.0)
    is_sure = len(best) < limit or cosine[best[-1]] >= least_found - SAME_COSINE
    return hits, len(best) + no_records, is_sure


def _compared(
    documents: dict[str, Document], recent: Recent, query: NDArray[np.float64]
) -> tuple[dict[str, float], set[str]]:
    """Return the cosine of each record, at best, and the ids of those of which it is not sure."""
    by_index = {record_id: 2.0 * document[pipelines.SCORE] - 1.0 for record_id, document in documents.items()}
    fitting = {view["_id"]: view["embedding"] for view in recent.matching if view["embedding"].size == query.size}
    by_write: dict[str, float] = {}
    if fitting:
        by_write = dict(zip(fitting, cosines(query, np.vstack([*fitting.values()])).tolist(), strict=True))
    both = by_index.keys() & by_write.keys()
    best_case = {**by_index, **by_write, **dict.fromkeys(recent.unknown, 1.0)}
    best_case |= {record_id: max(by_index[record_id], by_write[record_id]) for record_id in both - recent.unknown}
    unsure = {*(recent.others & by_index.keys()), *recent.unknown, *(by_write.keys() - by_index.keys())}
    unsure |= {record_id for record_id in both if abs(by_index[record_id] - by_write[record_id]) > SAME_COSINE}
    return best_case, unsure


def _look_up(
    store: Store,
    query: NDArray[np.float64],
    criteria: Criteria,
    limit: int,
    documents: dict[str, Document],
    cosine: dict[str, float],
    unsure: set[str],
) -> Operation[None]:
    """Look up what is unsure among the best until none of them is; ``documents`` and ``cosine`` become what is so.

    It looks at twice as many each time, so that it asks seldom even if much of what was written is gone.
    """
    among = limit
    while asked := [record_id for record_id in _ranked(cosine)[:among] if record_id in unsure]:
        selection = {**to_query(criteria), "_id": {"$in": asked}}
        live = {document["_id"]: document for document in (yield from ask(Find(store.settings.collection, selection)))}
        for record_id in asked:
            unsure.discard(record_id)
            documents.pop(record_id, None)
            del cosine[record_id]
            vector = vectors.decode(live.get(record_id, {}).pop("embedding", None))
            if vector is not None and vector.size == query.size and not vectors.is_zero(vector):
                documents[record_id] = live[record_id]
                cosine[record_id] = float(cosines(query, vector[np.newaxis])[0])
        among *= 2


def _ranked(cosine: dict[str, float]) -> list[str]:
    # What differs by less than float32 tells apart ties, by id.
    return [record_id for _, record_id in sorted((-round(value, 6), one) for one, value in cosine.items())]
