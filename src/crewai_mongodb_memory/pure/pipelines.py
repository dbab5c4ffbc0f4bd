"""Aggregation pipelines: the questions that one round trip answers."""

from __future__ import annotations

from typing import Any

from crewai_mongodb_memory.pure import scopes

__all__ = [
    "CANDIDATES",
    "HAS_VECTOR",
    "MOST_CANDIDATES",
    "SCORE",
    "categories",
    "child_scopes",
    "scope_info",
    "vector_search",
]

Pipeline = list[dict[str, Any]]

SCORE = "vector_search_score"
CANDIDATES = "live_candidates"
MOST_COUNTED = 1000  # the server reads what it counts, embeddings and all
MOST_CANDIDATES = 10_000  # what $vectorSearch takes as numCandidates, and so as limit
HAS_VECTOR = {"$or": [{"embedding": {"$type": "array"}}, {"embedding": {"$type": "binData"}}]}
NOT_IN_A_HIT = ("embedding", "scope_ancestors", "metadata_tokens")


def vector_search(
    index: str,
    collection: str,
    query_vector: list[float],
    limit: int,
    *,
    num_candidates: int | None = None,
    vector_filter: dict[str, Any],
    query: dict[str, Any],
) -> Pipeline:
    """Return the pipeline for the nearest documents, each with its score in [0, 1] under :data:`SCORE`.

    The last document of the answer is no hit: under :data:`CANDIDATES` it counts, up to the limit and to 1,000,
    the documents that could have been found (it is missing if there are none). An index that is gone, new or behind
    answers with fewer, and so does one that still has documents which were deleted.

    Args:
        num_candidates: how many the approximate search considers; None takes 20 for each hit, as MongoDB advises.
        vector_filter: restricts the candidates, before the ranking.
        query: the same in MQL. The index filters on a copy of its own that lags behind; documents that have since
            moved out of the selection are dropped by this.

    Over 10,000 hits only the exact form of the stage gives.
    """
    stage = {"index": index, "path": "embedding", "queryVector": query_vector, **_breadth(limit, num_candidates)}
    if vector_filter:
        stage["filter"] = vector_filter
    could_be_found = [
        {"$match": {**query, **HAS_VECTOR}},
        {"$limit": min(limit, MOST_COUNTED)},
        {"$group": {"_id": None, CANDIDATES: {"$sum": 1}}},
    ]
    return [
        {"$vectorSearch": stage},
        {"$addFields": {SCORE: {"$meta": "vectorSearchScore"}}},
        *([{"$match": query}] if query else []),
        {"$unset": list(NOT_IN_A_HIT)},
        {"$unionWith": {"coll": collection, "pipeline": could_be_found}},
    ]


def _breadth(limit: int, num_candidates: int | None) -> dict[str, Any]:
    if limit > MOST_CANDIDATES:
        return {"limit": limit, "exact": True}
    wanted = num_candidates or max(20 * limit, 100)
    return {"limit": limit, "numCandidates": min(MOST_CANDIDATES, max(limit, wanted))}


def scope_info(query: dict[str, Any], scope: str) -> Pipeline:
    """Return the pipeline for one document with ``totals``, ``categories`` and ``children`` of a scope.

    Args:
        query: selects the scope and everything below it.
        scope: the scope itself, normalised.
    """
    return [
        {"$match": query},
        {"$project": {"_id": 0, "created_at": 1, "categories": 1, "child": _child_path(scope)}},
        {
            "$facet": {
                "totals": [
                    {
                        "$group": {
                            "_id": None,
                            "records": {"$sum": 1},
                            "oldest": {"$min": "$created_at"},
                            "newest": {"$max": "$created_at"},
                        }
                    }
                ],
                "categories": [{"$unwind": "$categories"}, {"$group": {"_id": "$categories"}}],
                "children": [{"$group": {"_id": "$child"}}],
            }
        },
    ]


def child_scopes(query: dict[str, Any], parent: str) -> Pipeline:
    """Return the pipeline for one document a direct child of a scope, its ``_id`` the last part of its path.

    The range over ``scope`` and the group on it are answered from the index on ``scope`` alone.
    """
    prefix = "" if parent == scopes.ROOT else parent
    below = {"scope": {"$gt": f"{prefix}/", "$lt": f"{prefix}0"}}  # "0" is the character after "/"
    return [
        {"$match": query | below},
        {"$group": {"_id": "$scope"}},
        {"$group": {"_id": {"$arrayElemAt": [{"$split": ["$_id", "/"]}, scopes.depth(parent) + 1]}}},
    ]


def categories(query: dict[str, Any]) -> Pipeline:
    """Return the pipeline for one document a category, with how many ``records`` have it, most first."""
    return [
        {"$match": query},
        {"$unwind": "$categories"},
        {"$group": {"_id": "$categories", "records": {"$sum": 1}}},
        {"$sort": {"records": -1, "_id": 1}},
    ]


def _child_path(scope: str) -> dict[str, Any]:
    """The ancestor of a record that is a direct child of the scope; missing for a record at the scope itself.

    A record at the root has the root as its only ancestor, which is nobody's child.
    """
    return {"$arrayElemAt": ["$scope_ancestors", scopes.depth(scope)]}
