"""Reading: records by id and by age, and what lies in a scope."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from crewai.memory.types import MemoryRecord, ScopeInfo

from crewai_mongodb_memory.operations.commands import Aggregate, Count, Document, Find, FindOne, Operation
from crewai_mongodb_memory.operations.store import Store
from crewai_mongodb_memory.pure import checks, pipelines, scopes
from crewai_mongodb_memory.pure.btree_indexes import NEWEST_FIRST
from crewai_mongodb_memory.pure.criteria import Criteria, checked_id, scope_criteria, to_query
from crewai_mongodb_memory.pure.documents import MalformedDocumentError, to_record

__all__ = [
    "count",
    "get_record",
    "get_scope_info",
    "list_categories",
    "list_records",
    "list_scopes",
    "readable_records",
]

WITHOUT_EMBEDDING = {"embedding": 0}


def get_record(store: Store, record_id: str) -> Operation[MemoryRecord | None]:
    query = to_query(Criteria(record_ids=(checked_id(record_id),)), store.settings.tenant)
    document = yield FindOne(store.settings.collection, query)
    return next(readable_records(store, [] if document is None else [document]), None)


def list_records(store: Store, scope_prefix: str | None, limit: int, offset: int) -> Operation[list[MemoryRecord]]:
    criteria = scope_criteria(scope_prefix)
    limit, offset = checks.whole_number("limit", limit), checks.whole_number("offset", offset)
    if limit <= 0 or offset < 0:
        return []
    documents = yield Find(
        store.settings.collection,
        to_query(criteria, store.settings.tenant),
        WITHOUT_EMBEDDING,
        sort=NEWEST_FIRST,
        skip=offset,
        limit=limit,
    )
    return list(readable_records(store, documents))


def get_scope_info(store: Store, scope: str) -> Operation[ScopeInfo]:
    criteria = scope_criteria(scope)
    pipeline = pipelines.scope_info(to_query(criteria, store.settings.tenant), criteria.scope)
    (answer,) = yield Aggregate(store.settings.collection, pipeline)
    totals: Document = answer["totals"][0] if answer["totals"] else {}
    return ScopeInfo(
        path=criteria.scope,
        record_count=totals.get("records", 0),
        categories=_texts(answer["categories"]),
        oldest_record=totals.get("oldest"),
        newest_record=totals.get("newest"),
        child_scopes=[path for path in _texts(answer["children"]) if path != scopes.ROOT],
    )


def list_scopes(store: Store, parent: str) -> Operation[list[str]]:
    scope = scope_criteria(parent).scope
    within_tenant = to_query(Criteria(), store.settings.tenant)
    names = yield Aggregate(store.settings.collection, pipelines.child_scopes(within_tenant, scope))
    return scopes.child_names_to_paths(scope, _texts(names))


def list_categories(store: Store, scope_prefix: str | None) -> Operation[dict[str, int]]:
    query = to_query(scope_criteria(scope_prefix), store.settings.tenant)
    counted = yield Aggregate(store.settings.collection, pipelines.categories(query))
    return {group["_id"]: group["records"] for group in counted if isinstance(group["_id"], str)}


def count(store: Store, scope_prefix: str | None) -> Operation[int]:
    number: int = yield Count(store.settings.collection, to_query(scope_criteria(scope_prefix), store.settings.tenant))
    return number


def readable_records(store: Store, documents: Iterable[Document]) -> Iterator[MemoryRecord]:
    """Give the records of documents, leaving out what is no record; of that the log tells once."""
    for document in documents:
        try:
            yield to_record(document)
        except MalformedDocumentError as error:
            store.notices.warn(
                "malformed",
                f"{store.settings.collection!r} holds documents that are no records, such as _id "
                f"{document['_id']!r} ({error}); they are left out. Keep other data in a collection of its own.",
            )


def _texts(groups: list[Document]) -> list[str]:
    return sorted(group["_id"] for group in groups if isinstance(group.get("_id"), str))
