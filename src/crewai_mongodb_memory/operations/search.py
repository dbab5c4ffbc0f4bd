"""Searching: the records nearest to a query, among those that the filters allow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crewai_mongodb_memory.errors import ExactSearchTooLargeError, InvalidArgumentError
from crewai_mongodb_memory.operations.commands import Document, Find, Operation, ask
from crewai_mongodb_memory.operations.read import WITHOUT_EMBEDDING, readable_records
from crewai_mongodb_memory.operations.setup import check_dimensions
from crewai_mongodb_memory.operations.store import Store
from crewai_mongodb_memory.operations.vector_search import Hits, search_by_index
from crewai_mongodb_memory.pure import checks, vectors
from crewai_mongodb_memory.pure.criteria import Criteria, search_criteria, to_query
from crewai_mongodb_memory.pure.ranking import Ranking

__all__ = ["search"]


def search(
    store: Store,
    query_embedding: Any,
    scope_prefix: str | None,
    categories: Iterable[str] | None,
    metadata_filter: Mapping[str, Any] | None,
    limit: int,
    min_score: float,
) -> Operation[Hits]:
    """Find the records nearest to a query embedding, through the vector index or exactly."""
    criteria = search_criteria(store.settings.tenant, scope_prefix, categories, metadata_filter)
    limit = checks.whole_number("limit", limit)
    query = _checked_query(query_embedding)
    min_score = checks.number("min_score", min_score)
    if query.size:
        yield from check_dimensions(store, query.size)
    if limit <= 0 or vectors.is_zero(query) or store.dimensions is None:
        return []
    hits: Hits = []
    if store.settings.search_mode != "exact":
        hits, are_all = yield from search_by_index(store, query, criteria, limit, min_score)
        if are_all:
            return hits
    try:
        exact_hits = yield from _exact(store, query, criteria, limit, min_score)
    except ExactSearchTooLargeError:
        if not hits:
            raise
        return hits  # the index found these, if not all
    return exact_hits


def _exact(
    store: Store, query: NDArray[np.float64], criteria: Criteria, limit: int, min_score: float
) -> Operation[Hits]:
    collection = store.settings.collection
    selection = to_query(criteria)
    candidates = _Candidates(store, query, Ranking(query, limit, min_score))
    yield from ask(
        Find(
            collection,
            selection,
            {"embedding": 1},
            limit=store.settings.exact_limit + 1,
            consume=candidates.take,
        )
    )
    if candidates.are_all_of_other_dimensions and store.settings.dimensions is None:
        store.dimensions = None  # another process may have begun the store anew, with another embedder
        yield from check_dimensions(store, query.size)
    scores = dict(candidates.ranking.best())
    if not scores:
        return []
    # The filters apply again: a record may have moved or changed between the two round trips.
    winners = yield from ask(Find(collection, {**selection, "_id": {"$in": list(scores)}}, WITHOUT_EMBEDDING))
    records = {record.id: record for record in readable_records(store, winners)}
    return [(records[record_id], score) for record_id, score in scores.items() if record_id in records]


class _Candidates:
    """Takes documents batch by batch, ranks those with a fitting embedding, and keeps none of them."""

    def __init__(self, store: Store, query: NDArray[np.float64], ranking: Ranking) -> None:
        self.ranking = ranking
        self._store = store
        self._dimensions = query.size
        self._taken = self._fitting = self._others = 0

    @property
    def are_all_of_other_dimensions(self) -> bool:
        return bool(self._others) and not self._fitting

    def take(self, documents: list[Document]) -> None:
        self._taken += len(documents)
        if self._taken > self._store.settings.exact_limit:
            raise ExactSearchTooLargeError(
                f"more than exact_limit={self._store.settings.exact_limit} records match this search, and without a "
                f"vector index each would have to be scored: search a narrower scope or category, raise exact_limit, "
                f"or use a server with Atlas Vector Search"
            )
        rows = [(document["_id"], vectors.decode(document.get("embedding"))) for document in documents]
        fitting = [
            (record_id, vector)
            for record_id, vector in rows
            if vector is not None and self._fits(vector) and isinstance(record_id, str)
        ]
        others = sum(vector is not None and vector.size != self._dimensions for _, vector in rows)
        self._fitting, self._others = self._fitting + len(fitting), self._others + others
        if others:
            self._store.notices.warn(
                "mixed dimensions",
                f"{self._store.settings.collection!r} holds embeddings of other than {self._dimensions} dimensions; "
                f"no search with this embedder finds them. Embed those records again.",
            )
        if fitting:
            self.ranking.offer([record_id for record_id, _ in fitting], np.vstack([vector for _, vector in fitting]))

    def _fits(self, vector: NDArray[np.float64]) -> bool:
        return vector.size == self._dimensions and not vectors.is_zero(vector)


def _checked_query(query_embedding: Any) -> NDArray[np.float64]:
    try:
        return vectors.check(query_embedding)
    except ValueError as error:
        raise InvalidArgumentError(f"the query embedding {error}") from error
