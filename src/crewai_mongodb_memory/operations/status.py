"""How a store is doing: what serves its searches, and which records no search can find."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crewai_mongodb_memory import routing, vectors
from crewai_mongodb_memory.commands import BuildInfo, Count, Document, Find, Operation, Pause, VectorSearch
from crewai_mongodb_memory.errors import ConfigurationError, VectorIndexNotReadyError
from crewai_mongodb_memory.filters import Criteria, checked_id, to_query
from crewai_mongodb_memory.operations.setup import stored_dimensions
from crewai_mongodb_memory.operations.vector_search import learn_index
from crewai_mongodb_memory.pipelines import vector_search
from crewai_mongodb_memory.store import Store
from crewai_mongodb_memory.vector_index import FILTER_PATHS, VectorIndex

__all__ = ["BackendStatus", "status", "wait_until_searchable"]

ASK_EVERY = 0.2  # seconds
NEIGHBOURS = 100


@dataclass(frozen=True)
class BackendStatus:
    """What :meth:`~crewai_mongodb_memory.MongoStorageBackend.status` tells.

    Attributes:
        server: the version that the server gives itself.
        search: ``"vector index"``, or ``"exact"``.
        vector_index_state: what the server says of the vector index.
        problem: why searches do not go through it, with the remedy; empty if they do, or should not.
        missing_filter_paths: filter paths that the index lacks; searches that need one are exact.
        records: how many this backend sees.
        dimensions: of the embeddings; None if there are none.
        without_embedding: records that no search finds, since they have no embedding.
        wrong_length: records that no search finds, since their embedding has other dimensions.
        zero: records that no search finds, since their embedding is all zeros.
    """

    server: str
    search: str
    vector_index_state: str
    problem: str
    missing_filter_paths: tuple[str, ...]
    records: int
    dimensions: int | None
    without_embedding: int
    wrong_length: int
    zero: int


def status(store: Store) -> Operation[BackendStatus]:
    """Tell how the store is doing; it reads every embedding once."""
    settings = store.settings
    server = yield BuildInfo(settings.collection)
    index = None if settings.search_mode == "exact" else (yield from learn_index(store))
    dimensions = settings.dimensions or (yield from stored_dimensions(store))
    everything = to_query(Criteria(), settings.tenant)
    records = yield Count(settings.collection, everything)
    unfindable = _Unfindable(dimensions)
    yield Find(settings.collection, everything, {"embedding": 1}, consume=unfindable.take)
    problem = _problem(store, index, dimensions)
    serving = index.serving if index else None
    return BackendStatus(
        server=str(server.get("version", "unknown")),
        search="vector index" if serving and not problem else "exact",
        vector_index_state=index.state.value if index else "not asked: search_mode is exact",
        problem=problem,
        missing_filter_paths=tuple(sorted(set(FILTER_PATHS) - serving.filter_paths)) if serving else (),
        records=records,
        dimensions=dimensions,
        without_embedding=unfindable.without_embedding,
        wrong_length=unfindable.wrong_length,
        zero=unfindable.zero,
    )


def wait_until_searchable(store: Store, record_ids: Sequence[str], timeout: float) -> Operation[None]:
    """Wait until the vector index finds these records; where searches are exact, it is so at once.

    Raises:
        ConfigurationError: a record does not exist, or has no embedding that a search could find.
        VectorIndexNotReadyError: the index does not find all of them in time.
    """
    deadline = store.clock() + timeout
    waiting = yield from _own_vectors(store, record_ids)
    index = None if store.settings.search_mode == "exact" else (yield from learn_index(store))
    if index is None or index.serving is None:
        if index is not None and store.settings.search_mode == "atlas":
            raise routing.trouble(index, store.settings.vector_search_index, 0) or VectorIndexNotReadyError()
        return
    while waiting:
        for record_id in list(waiting):
            if (yield from _is_found(store, record_id, waiting[record_id])):
                del waiting[record_id]
        if waiting and store.clock() >= deadline:
            raise VectorIndexNotReadyError(
                f"the vector search index does not find {len(waiting)} of {len(record_ids)} records in {timeout} s, "
                f"such as {next(iter(waiting))!r}; it goes on indexing"
            )
        if waiting:
            yield Pause(seconds=ASK_EVERY)


def _own_vectors(store: Store, record_ids: Sequence[str]) -> Operation[dict[str, list[float]]]:
    ids = tuple(dict.fromkeys(checked_id(record_id) for record_id in record_ids))
    documents = yield Find(
        store.settings.collection, to_query(Criteria(record_ids=ids), store.settings.tenant), {"embedding": 1}
    )
    found = {document["_id"]: vectors.decode(document.get("embedding")) for document in documents}
    own: dict[str, list[float]] = {}
    for record_id in ids:
        vector = found.get(record_id)
        if vector is None or not vector.any():
            raise ConfigurationError(f"no search can find record {record_id!r}: it does not exist, or has no embedding")
        own[record_id] = vector.tolist()
    return own


def _is_found(store: Store, record_id: str, vector: list[float]) -> Operation[bool]:
    pipeline = vector_search(
        store.settings.vector_search_index, vector, NEIGHBOURS, num_candidates=10_000, vector_filter={}, query={}
    )
    found = yield VectorSearch(store.settings.collection, [*pipeline, {"$project": {"_id": 1}}])
    return any(document["_id"] == record_id for document in found)


def _problem(store: Store, index: VectorIndex | None, dimensions: int | None) -> str:
    if index is None:
        return ""
    fitting = dimensions or (index.serving.dimensions if index.serving else 0)
    problem = routing.trouble(index, store.settings.vector_search_index, fitting)
    return "" if problem is None else str(problem)


class _Unfindable:
    """Counts the documents that no vector search finds, and why."""

    def __init__(self, dimensions: int | None) -> None:
        self._dimensions = dimensions
        self.without_embedding = self.wrong_length = self.zero = 0

    def take(self, documents: list[Document]) -> None:
        for document in documents:
            vector = vectors.decode(document.get("embedding"))
            if vector is None:
                self.without_embedding += 1
            elif vector.size != self._dimensions:
                self.wrong_length += 1
            elif not vector.any():
                self.zero += 1
