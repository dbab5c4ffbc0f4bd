"""Aggregation pipelines: the questions that one round trip answers."""

from __future__ import annotations

from typing import Any

from crewai_mongodb_memory import scopes

__all__ = ["SCORE", "categories", "child_scopes", "scope_info", "vector_search"]

Pipeline = list[dict[str, Any]]

SCORE = "vector_search_score"
MOST_CANDIDATES = 10_000  # what $vectorSearch takes as numCandidates, and so as limit
NOT_IN_A_HIT = ("embedding", "scope_ancestors", "metadata_tokens")


def vector_search(
    index: str,
    query_vector: list[float],
    limit: int,
    *,
    overfetch: int = 0,
    num_candidates: int | None = None,
    vector_filter: dict[str, Any],
    query: dict[str, Any],
) -> Pipeline:
    """Return the pipeline for the nearest documents, each with its score in [0, 1] under :data:`SCORE`.

    Args:
        overfetch: how many of the index's answers may be of documents that are gone.
        num_candidates: how many the approximate search considers; None takes 20 for each hit, as MongoDB advises.
        vector_filter: restricts the candidates, before the ranking.
        query: the same in MQL. The index filters on a copy of its own that lags behind; documents that have since
            moved out of the selection are dropped by this.

    Over 10,000 hits only the exact form of the stage gives.
    """
    asked = limit + overfetch
    stage: dict[str, Any] = {"index": index, "path": "embedding", "queryVector": query_vector, "limit": asked}
    if asked > MOST_CANDIDATES:
        stage["exact"] = True
    else:
        stage["numCandidates"] = min(MOST_CANDIDATES, max(asked, num_candidates or max(20 * asked, 100)))
    if vector_filter:
        stage["filter"] = vector_filter
    return [
        {"$vectorSearch": stage},
        {"$addFields": {SCORE: {"$meta": "vectorSearchScore"}}},
        *([{"$match": query}] if query else []),
        *([{"$limit": limit}] if overfetch else []),
        {"$unset": list(NOT_IN_A_HIT)},
    ]


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
