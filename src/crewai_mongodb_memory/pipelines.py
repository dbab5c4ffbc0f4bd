"""Aggregation pipelines: the questions about scopes and categories that one round trip answers."""

from __future__ import annotations

from typing import Any

from crewai_mongodb_memory import scopes

__all__ = ["categories", "child_scopes", "scope_info"]

Pipeline = list[dict[str, Any]]


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
