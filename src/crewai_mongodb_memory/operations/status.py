"""How a store is doing: what serves its searches, and which records no search can find."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crewai_mongodb_memory.errors import InvalidArgumentError, VectorIndexNotReadyError
from crewai_mongodb_memory.operations.commands import BuildInfo, Document, Find, Operation, Pause, VectorSearch, ask
from crewai_mongodb_memory.operations.index_state import learn_index, route_of
from crewai_mongodb_memory.operations.setup import stored_dimensions
from crewai_mongodb_memory.operations.store import Store
from crewai_mongodb_memory.pure import checks, vectors
from crewai_mongodb_memory.pure.criteria import Criteria, ids_criteria, to_query
from crewai_mongodb_memory.pure.pipelines import MOST_CANDIDATES, SCORE, vector_search
from crewai_mongodb_memory.pure.search_route import search_route
from crewai_mongodb_memory.pure.vector_index import FILTER_PATHS, VectorIndex

__all__ = ["BackendStatus", "status", "wait_until_searchable"]

ASK_EVERY = 0.2  # seconds
MOST_CLAUSES = 100  # of one filter path
SAME_VECTOR = 0.999  # a score in Atlas's terms; only a vector itself, or one as good as that, comes so near to it


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
    server = yield from ask(BuildInfo(settings.collection))
    index = None if settings.search_mode == "exact" else (yield from learn_index(store))
    dimensions = settings.dimensions or (yield from stored_dimensions(store))
    everything = to_query(Criteria(settings.tenant))
    seen = _Seen(dimensions)
    yield from ask(Find(settings.collection, everything, {"embedding": 1}, consume=seen.take))
    problem = _problem(store, index, dimensions)
    serving = index.serving if index else None
    return BackendStatus(
        server=str(server.get("version", "unknown")),
        search="vector index" if serving and not problem else "exact",
        vector_index_state=index.state.value if index else "not asked: search_mode is exact",
        problem=problem,
        missing_filter_paths=tuple(sorted(set(FILTER_PATHS) - serving.filter_paths)) if serving else (),
        records=seen.records,
        dimensions=dimensions,
        without_embedding=seen.without_embedding,
        wrong_length=seen.wrong_length,
        zero=seen.zero,
    )


def wait_until_searchable(store: Store, record_ids: Sequence[str], timeout: float) -> Operation[None]:
    """Wait until the vector index has these records as they are; where searches are exact, it is so at once.

    Raises:
        InvalidArgumentError: a record does not exist, or has no embedding that a search could find.
        VectorIndexNotReadyError: the index does not have all of them in time.
    """
    deadline = store.clock() + checks.seconds("timeout", timeout)
    waiting = yield from _searched_fields(store, record_ids)
    asked = len(waiting)
    if store.settings.search_mode == "exact" or not waiting:
        return
    index = yield from learn_index(store)
    dimensions = len(next(iter(waiting.values()))["embedding"])
    route = route_of(store, index, dimensions, Criteria(store.settings.tenant))
    if route.error is not None:
        raise route.error
    if not route.by_index:
        return
    while True:
        for record_id in list(waiting):
            if (yield from _is_found(store, index, waiting[record_id])):
                del waiting[record_id]
        if not waiting:
            return
        if store.clock() >= deadline:
            raise VectorIndexNotReadyError(
                f"the vector search index does not find {len(waiting)} of {asked} records in {timeout} s, "
                f"such as {next(iter(waiting))!r}; it goes on indexing"
            )
        yield Pause(ASK_EVERY)


def _searched_fields(store: Store, record_ids: Sequence[str]) -> Operation[dict[str, Document]]:
    criteria = ids_criteria(store.settings.tenant, record_ids)
    documents = yield from ask(
        Find(store.settings.collection, to_query(criteria), dict.fromkeys((*FILTER_PATHS, "embedding"), 1))
    )
    found = {document["_id"]: document for document in documents}
    ids = criteria.record_ids or ()
    for record_id in ids:
        vector = vectors.decode(found.get(record_id, {}).get("embedding"))
        if vector is None or vectors.is_zero(vector):
            raise InvalidArgumentError(
                f"no search can find record {record_id!r}: it does not exist, or has no embedding"
            )
        found[record_id]["embedding"] = vector.tolist()
    return {record_id: found[record_id] for record_id in ids}


def _is_found(store: Store, index: VectorIndex, document: Document) -> Operation[bool]:
    """Tell whether the index finds a document by its own vector, under the filters that it meets now."""
    declared = index.serving.filter_paths if index.serving else frozenset()
    values = [(path, document[path]) for path in declared if path in document]
    clauses = [
        {path: one} for path, value in values for one in (value if isinstance(value, list) else [value])[:MOST_CLAUSES]
    ]
    pipeline = vector_search(
        store.settings.vector_search_index,
        store.settings.collection,
        document["embedding"],
        MOST_CANDIDATES,
        vector_filter={"$and": clauses} if clauses else {},
        query={"_id": document["_id"]},
    )
    found = yield from ask(VectorSearch(store.settings.collection, pipeline))
    return any(one.get(SCORE, 0.0) > SAME_VECTOR for one in found)


def _problem(store: Store, index: VectorIndex | None, dimensions: int | None) -> str:
    if index is None:
        return ""
    fitting = dimensions or (index.serving.dimensions if index.serving else 0)
    route = search_route("atlas", index, store.settings.vector_search_index, fitting, Criteria(None))
    return str(route.error or "")


class _Seen:
    """Counts documents, and those that no vector search finds by why it does not."""

    def __init__(self, dimensions: int | None) -> None:
        self._dimensions = dimensions
        self.records = self.without_embedding = self.wrong_length = self.zero = 0

    def take(self, documents: list[Document]) -> None:
        self.records += len(documents)
        for document in documents:
            vector = vectors.decode(document.get("embedding"))
            if vector is None:
                self.without_embedding += 1
            elif vector.size != self._dimensions:
                self.wrong_length += 1
            elif vectors.is_zero(vector):
                self.zero += 1
