"""Routing: whether a search goes through the vector index, and what is said if it cannot.

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
from crewai_mongodb_memory.pure.vector_index import SIMILARITY, VectorIndex, VectorIndexState

__all__ = ["Route", "SearchMode", "is_usable", "needed_paths", "route", "trouble"]

SearchMode = Literal["auto", "atlas", "exact"]
MOST_CLAUSES = 500  # Lucene takes 1,024 in a query, and a token may cost more than one
MOST_CHARACTERS = 8000  # mongot cuts the texts that it indexes at 8,191, and then equality never holds


@dataclass(frozen=True)
class Route:
    """How a search is answered.

    Attributes:
        by_index: through the vector index; else exactly.
        reason: why not through the index, with what to do about it; empty where that is as it should be.
    """

    by_index: bool
    reason: str = ""


def needed_paths(criteria: Criteria, tenant: str | None) -> frozenset[str]:
    """Return the filter paths that the index has to know for these criteria."""
    asked = {
        "scope_ancestors": criteria.scope != scopes.ROOT,
        "categories": criteria.categories is not None,
        "metadata_tokens": bool(criteria.tokens),
        "tenant": tenant is not None,
    }
    return frozenset(path for path, is_asked in asked.items() if is_asked)


def route(
    mode: SearchMode, index: VectorIndex, name: str, dimensions: int, criteria: Criteria, tenant: str | None
) -> Route:
    """Return how a search is answered, given what is known of the index.

    Raises:
        VectorIndexMissingError, VectorIndexNotReadyError, VectorIndexFailedError, VectorSearchUnavailableError:
            the mode is ``"atlas"`` and the index cannot serve.
    """
    problem = trouble(index, name, dimensions)
    if problem is not None:
        if mode == "atlas":
            raise problem
        return Route(by_index=False, reason=f"{problem}. Until then each search compares every record that matches")
    missing = _missing_paths(index, criteria, tenant)
    if missing:
        return Route(
            by_index=False,
            reason=f"the vector search index {name!r} cannot filter on {', '.join(sorted(missing))}, so such searches "
            f"compare every record that matches; ensure_indexes() brings the index up to date",
        )
    return Route(by_index=_is_within_bounds(criteria, tenant))


def is_usable(index: VectorIndex, dimensions: int, criteria: Criteria, tenant: str | None) -> bool:
    """Tell whether an index can serve a search; where it cannot, it may have changed since it was asked."""
    return trouble(index, "", dimensions) is None and not _missing_paths(index, criteria, tenant)


def trouble(index: VectorIndex, name: str, dimensions: int) -> MongoMemoryError | None:
    """Return the error that says why the index cannot serve, and what to do; None if it can."""
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
                f"the vector search index {name!r} has failed{said}; ensure_indexes() mends it"
            )
    serving = index.serving
    if serving is None or serving.similarity != SIMILARITY or serving.dimensions != dimensions:
        found = "" if serving is None else f" of {serving.dimensions} dimensions and {serving.similarity} similarity"
        return VectorIndexFailedError(
            f"the vector search index {name!r}{found} does not serve embeddings of {dimensions} dimensions compared by "
            f"cosine; ensure_indexes() brings it up to date"
        )
    return None


def _missing_paths(index: VectorIndex, criteria: Criteria, tenant: str | None) -> frozenset[str]:
    return needed_paths(criteria, tenant) - (index.serving.filter_paths if index.serving else frozenset())


def _is_within_bounds(criteria: Criteria, tenant: str | None) -> bool:
    texts = [criteria.scope, tenant or "", *(criteria.categories or ())]
    return len(criteria.tokens) <= MOST_CLAUSES and all(len(text) <= MOST_CHARACTERS for text in texts)
