"""Scope paths: one spelling for each scope, its ancestors, its children.

A scope is a path such as ``/crew/research``; the root ``/`` holds everything. CrewAI and the models it asks
spell scopes in many ways (``crewai/memory/encoding_flow.py`` stores a suggested scope raw when no root scope
is set), so each path is normalised when it is written and when it is asked for.
"""

from __future__ import annotations

__all__ = ["ROOT", "ancestors", "child_names_to_paths", "depth", "normalize"]

ROOT = "/"


def normalize(scope: str | None) -> str:
    """Return the one spelling of a scope: a leading slash, single slashes, no blank at either end of a part.

    ``None``, ``""`` and ``"/"`` are the root. No character is a wildcard.

    >>> normalize(" Sales//EU/ ")
    '/Sales/EU'
    >>> normalize(None)
    '/'
    """
    parts = (part.strip() for part in (scope or "").split("/"))
    return ROOT + "/".join(part for part in parts if part)


def ancestors(scope: str) -> list[str]:
    """Return every scope that a record of this normalised scope is found under, the scope itself last.

    The root is left out, except for a record that lies at the root itself: then it is all there is.

    >>> ancestors("/crew/research")
    ['/crew', '/crew/research']
    >>> ancestors("/")
    ['/']
    """
    if scope == ROOT:
        return [ROOT]
    parts = scope[1:].split("/")
    return [ROOT + "/".join(parts[: end + 1]) for end in range(len(parts))]


def depth(scope: str) -> int:
    """Return how many parts a normalised scope has: 0 for the root.

    >>> depth("/crew/research")
    2
    """
    return 0 if scope == ROOT else scope.count("/")


def child_names_to_paths(parent: str, names: list[str]) -> list[str]:
    """Return the paths of a normalised scope's direct children, sorted, from their last parts.

    >>> child_names_to_paths("/crew", ["writing", "research"])
    ['/crew/research', '/crew/writing']
    """
    prefix = "" if parent == ROOT else parent
    return sorted(f"{prefix}/{name}" for name in names)
