"""The route of a search: through the vector index, exactly, or not at all.

A filter that the index cannot take is answered by an exact search under that filter. It is never dropped, and never
applied after the ranking.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from crewai_mongodb_memory.errors import (
    MongoMemoryError,
    VectorIndexFailedError,
    VectorIndexMissingError,
    VectorIndexNotReadyError,
    VectorSearchUnavailableError,
)
from crewai_mongodb_memory.pure import scopes
from crewai_mongodb_memory.pure.criteria import Criteria
from crewai_mongodb_memory.pure.metadata import utf16_length
from crewai_mongodb_memory.pure.vector_index import SIMILARITY, VectorIndex, VectorIndexState

__all__ = ["Route", "SearchMode", "needed_paths", "search_route"]

SearchMode = Literal["auto", "atlas", "exact"]
MOST_CLAUSES = 500  # Lucene takes 1,024 in a query, and a token may cost more than one
MOST_UNITS = 8000  # of UTF-16: mongot cuts the texts that it indexes at 8,191, and then equality never holds


@dataclass(frozen=True)
class Route:
    """How a search is answered: through the index, exactly, or with an error.

    Attributes:
        by_index: through the vector index.
        reason: why the search is exact, with what to do about it; empty where that is as it should be.
        error: what to raise instead of searching.
    """

    by_index: bool = False
    reason: str = ""
    error: MongoMemoryError | None = None

    @property
    def may_change(self) -> bool:
        """Whether the state of the index decided against it, which may be another when the server is asked again."""
        return bool(self.reason or self.error)


def search_route(mode: SearchMode, index: VectorIndex, name: str, dimensions: int, criteria: Criteria) -> Route:
    """Return how a search is answered.

    Args:
        mode: the backend's; only ``"atlas"`` gives errors.
        index: what is known of the vector index, and ``name`` its name.
        dimensions: of the query.
    """
    if mode == "exact":
        return Route()
    problem = _problem(index, name, dimensions)
    if problem is not None:
        if mode == "atlas":
            return Route(error=problem)
        return Route(reason=f"{problem}. Until then each search compares every record that matches")
    missing = needed_paths(criteria) - (index.serving.filter_paths if index.serving else frozenset())
    if missing:
        return Route(
            reason=f"the vector search index {name!r} cannot filter on {', '.join(sorted(missing))}, so such searches "
            f"compare every record that matches; ensure_indexes() brings the index up to date",
        )
    return Route(by_index=_is_within_bounds(criteria))


def needed_paths(criteria: Criteria) -> frozenset[str]:
    """Return the filter paths that the index has to know for these criteria."""
    asked = {
        "scope_ancestors": criteria.scope != scopes.ROOT,
        "categories": criteria.categories is not None,
        "metadata_tokens": bool(criteria.tokens),
        "tenant": criteria.tenant is not None,
    }
    return frozenset(path for path, is_asked in asked.items() if is_asked)


def _is_within_bounds(criteria: Criteria) -> bool:
    texts = [criteria.scope, criteria.tenant or "", *(criteria.categories or ())]
    return len(criteria.tokens) <= MOST_CLAUSES and all(utf16_length(text) <= MOST_UNITS for text in texts)


def _problem(index: VectorIndex, name: str, dimensions: int) -> MongoMemoryError | None:
    """The error that says why the index cannot serve, and what to do; None if it can."""
    said = f": {index.message}" if index.message else ""
    match index.state:
        case VectorIndexState.UNAVAILABLE:
            return VectorSearchUnavailableError(
                f"this server has no vector search{said}. Use MongoDB Atlas, Atlas Local, or Community 8.2 with "
                f"mongot; search_mode='exact' says that you do without"
            )
        case VectorIndexState.ABSENT:
            return VectorIndexMissingError(
                f"there is no vector search index {name!r}; create it with ensure_indexes(), or pass the name of yours "
                f"as vector_search_index"
            )
        case VectorIndexState.OTHER_TYPE:
            return VectorIndexMissingError(
                f"the search index {name!r} is not a vector search index on 'embedding'; drop it, or pass another "
                f"vector_search_index, then call ensure_indexes()"
            )
        case VectorIndexState.UNKNOWN:
            return VectorIndexNotReadyError(f"the state of the vector search index {name!r} could not be learned{said}")
        case VectorIndexState.BUILDING:
            return VectorIndexNotReadyError(
                f"the vector search index {name!r} is still being built{said}; ensure_indexes() waits for it"
            )
        case VectorIndexState.FAILED:
            return VectorIndexFailedError(
                f"the vector search index {name!r} has failed{said}; ensure_indexes() repairs it"
            )
    serving = index.serving
    if serving is None or serving.similarity != SIMILARITY or serving.dimensions != dimensions:
        found = "" if serving is None else f" of {serving.dimensions} dimensions and {serving.similarity} similarity"
        return VectorIndexFailedError(
            f"the vector search index {name!r}{found} does not serve embeddings of {dimensions} dimensions compared by "
            f"cosine; ensure_indexes() brings it up to date"
        )
    return None
