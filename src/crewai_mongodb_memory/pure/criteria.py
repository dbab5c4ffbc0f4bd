"""Criteria: what a caller asks for, checked once, and the MongoDB query that selects it.

Every value from outside ends up as a literal: text and ids are compared, never interpreted, and a metadata filter
turns into tokens. A mapping of operators is refused rather than looked up. Criteria carry the tenant, so that no
query can be written without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from crewai_mongodb_memory.errors import InvalidArgumentError
from crewai_mongodb_memory.pure import checks, metadata, scopes

__all__ = [
    "Criteria",
    "delete_criteria",
    "ids_criteria",
    "matches",
    "scope_criteria",
    "search_criteria",
    "to_query",
    "to_vector_filter",
]


@dataclass(frozen=True)
class Criteria:
    """What records must meet: all of it.

    Attributes:
        tenant: whose record it is; None is anybody's.
        scope: normalised; the record lies in it or below it.
        categories: the record has at least one of them; None is no criterion, an empty tuple matches nothing.
        tokens: the record's metadata has all of them.
        record_ids: the record is one of them; None is no criterion, an empty tuple matches nothing.
        created_before: the record is older, in naive UTC.
    """

    tenant: str | None
    scope: str = scopes.ROOT
    categories: tuple[str, ...] | None = None
    tokens: tuple[str, ...] = ()
    record_ids: tuple[str, ...] | None = None
    created_before: datetime | None = None

    @property
    def is_everything(self) -> bool:
        return self == Criteria(self.tenant)

    @property
    def matches_nothing(self) -> bool:
        return self.categories == () or self.record_ids == ()


def scope_criteria(tenant: str | None, scope_prefix: str | None) -> Criteria:
    """Return the criteria of a scope and everything below it; ``None``, ``""`` and ``"/"`` are everything."""
    if scope_prefix is None:
        return Criteria(tenant)
    return Criteria(tenant, scope=scopes.normalize(checks.text("a scope", scope_prefix, may_be_empty=True)))


def ids_criteria(tenant: str | None, record_ids: Iterable[str]) -> Criteria:
    """Return the criteria of the records with these ids, without repeats.

    Raises:
        InvalidArgumentError: it is no list of texts.
    """
    return Criteria(tenant, record_ids=checks.texts("record_ids", record_ids))


def search_criteria(
    tenant: str | None,
    scope_prefix: str | None,
    categories: Iterable[str] | None,
    metadata_filter: Mapping[str, Any] | None,
) -> Criteria:
    """Return the criteria of a search; an empty list or mapping is no criterion, as CrewAI sends it.

    Raises:
        InvalidArgumentError: a value is not what it should be, or holds operators.
    """
    return replace(
        scope_criteria(tenant, scope_prefix),
        categories=(None if categories is None else checks.texts("categories", categories)) or None,
        tokens=() if metadata_filter is None else _tokens(metadata_filter),
    )


def delete_criteria(
    tenant: str | None,
    scope_prefix: str | None = None,
    categories: Iterable[str] | None = None,
    record_ids: Iterable[str] | None = None,
    older_than: datetime | None = None,
    metadata_filter: Mapping[str, Any] | None = None,
) -> Criteria:
    """Return the criteria of a delete: all that are given count, and one that is given but empty matches nothing.

    Raises:
        InvalidArgumentError: none is given, or a value is not what it should be.
    """
    others = (categories, record_ids, older_than, metadata_filter)
    scope = scope_criteria(tenant, scope_prefix)
    # Only "/" itself says everything: "", "  " or "//" are what an empty variable leaves of a path.
    is_scope_given = scope.scope != scopes.ROOT or (scope_prefix or "").strip() == scopes.ROOT
    if not is_scope_given and all(value is None for value in others):
        raise InvalidArgumentError(
            "a delete needs at least one criterion; scope_prefix='/' deletes everything, and so does reset()"
        )
    criteria = replace(
        scope,
        categories=None if categories is None else checks.texts("categories", categories),
        record_ids=None if record_ids is None else checks.texts("record_ids", record_ids),
        created_before=None if older_than is None else checks.moment("older_than", older_than),
    )
    if metadata_filter is None:
        return criteria
    tokens = _tokens(metadata_filter)
    return replace(criteria, tokens=tokens) if tokens else replace(criteria, record_ids=())


def to_query(criteria: Criteria) -> dict[str, Any]:
    """Return the MongoDB query that selects what meets the criteria.

    >>> to_query(search_criteria("acme", "/crew", ["fact"], {"team": "sales"})) == {
    ...     "tenant": "acme",
    ...     "scope_ancestors": "/crew",
    ...     "categories": {"$in": ["fact"]},
    ...     "metadata_tokens": {"$all": ['team="sales"']},
    ... }
    True
    """
    query: dict[str, Any] = {}
    if criteria.tenant is not None:
        query["tenant"] = criteria.tenant
    if criteria.record_ids is not None:
        ids = list(criteria.record_ids)
        query["_id"] = ids[0] if len(ids) == 1 else {"$in": ids}
    if criteria.scope != scopes.ROOT:
        query["scope_ancestors"] = criteria.scope
    if criteria.categories is not None:
        query["categories"] = {"$in": list(criteria.categories)}
    if criteria.tokens:
        query["metadata_tokens"] = {"$all": list(criteria.tokens)}
    if criteria.created_before is not None:
        query["created_at"] = {"$lt": criteria.created_before}
    return query


def to_vector_filter(criteria: Criteria) -> dict[str, Any]:
    """Return the same selection in the filter language of ``$vectorSearch``, which has no ``$all``.

    >>> to_vector_filter(search_criteria(None, "/crew", None, {"a": 1, "b": 2})) == {
    ...     "scope_ancestors": "/crew",
    ...     "$and": [{"metadata_tokens": "a=1"}, {"metadata_tokens": "b=2"}],
    ... }
    True
    """
    selection = to_query(criteria)
    if selection.pop("metadata_tokens", None):
        selection["$and"] = [{"metadata_tokens": token} for token in criteria.tokens]
    return selection


def matches(criteria: Criteria, document: Mapping[str, Any]) -> bool:
    """Tell whether a document meets the criteria: what :func:`to_query` asks, asked here."""
    created_at, categories = document.get("created_at"), _elements(document, "categories")
    return (
        (criteria.tenant is None or document.get("tenant") == criteria.tenant)
        and (criteria.record_ids is None or document["_id"] in criteria.record_ids)
        and (criteria.scope == scopes.ROOT or criteria.scope in _elements(document, "scope_ancestors"))
        and (criteria.categories is None or any(one in categories for one in criteria.categories))
        and all(token in _elements(document, "metadata_tokens") for token in criteria.tokens)
        and (
            criteria.created_before is None
            or (isinstance(created_at, datetime) and created_at < criteria.created_before)
        )
    )


def _elements(document: Mapping[str, Any], name: str) -> list[Any]:
    """What an equality of MongoDB compares with: the elements of a list, or else the value itself."""
    value = document.get(name, [])
    return value if isinstance(value, list) else [value]


def _tokens(metadata_filter: Mapping[str, Any]) -> tuple[str, ...]:
    if not isinstance(metadata_filter, Mapping):
        raise InvalidArgumentError(f"a metadata filter has to be a mapping, not {checks.shown(metadata_filter)}")
    try:
        encoded = metadata.encode(metadata_filter, "metadata_filter")
    except metadata.UnstorableError as error:
        raise InvalidArgumentError(str(error)) from error
    _refuse_operators(encoded, "metadata_filter")
    return tuple(metadata.tokens(encoded))


def _refuse_operators(value: Any, key: str) -> None:
    if isinstance(value, dict):
        for name, item in value.items():
            if name.startswith("$"):
                raise InvalidArgumentError(
                    f"{key} holds the operator {name!r}: a metadata filter compares values, it takes no operators"
                )
            _refuse_operators(item, f"{key}.{name}")
    elif isinstance(value, list):
        for item in value:
            _refuse_operators(item, key)
