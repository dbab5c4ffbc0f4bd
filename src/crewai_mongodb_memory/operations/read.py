"""Reading: records by id and by age, and what lies in a scope."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from crewai.memory.types import MemoryRecord, ScopeInfo

from crewai_mongodb_memory.operations.commands import Aggregate, Count, Document, Find, FindOne, Operation, ask
from crewai_mongodb_memory.operations.store import Store
from crewai_mongodb_memory.pure import checks, pipelines, scopes
from crewai_mongodb_memory.pure.btree_indexes import NEWEST_FIRST
from crewai_mongodb_memory.pure.criteria import Criteria, ids_criteria, scope_criteria, to_query
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
    query = to_query(ids_criteria(store.settings.tenant, [record_id]))
    document = yield from ask(FindOne(store.settings.collection, query))
    return next(readable_records(store, [] if document is None else [document]), None)


def list_records(store: Store, scope_prefix: str | None, limit: int, offset: int) -> Operation[list[MemoryRecord]]:
    criteria = scope_criteria(store.settings.tenant, scope_prefix)
    limit, offset = checks.whole_number("limit", limit), checks.whole_number("offset", offset)
    if limit <= 0 or offset < 0:
        return []
    documents = yield from ask(
        Find(
            store.settings.collection,
            to_query(criteria),
            WITHOUT_EMBEDDING,
            sort=NEWEST_FIRST,
            skip=offset,
            limit=limit,
        )
    )
    return list(readable_records(store, documents))


def get_scope_info(store: Store, scope: str) -> Operation[ScopeInfo]:
    criteria = scope_criteria(store.settings.tenant, scope)
    pipeline = pipelines.scope_info(to_query(criteria), criteria.scope)
    (answer,) = yield from ask(Aggregate(store.settings.collection, pipeline))
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
    scope = scope_criteria(store.settings.tenant, parent).scope
    within_tenant = to_query(Criteria(store.settings.tenant))
    names = yield from ask(Aggregate(store.settings.collection, pipelines.child_scopes(within_tenant, scope)))
    return scopes.child_names_to_paths(scope, _texts(names))


def list_categories(store: Store, scope_prefix: str | None) -> Operation[dict[str, int]]:
    query = to_query(scope_criteria(store.settings.tenant, scope_prefix))
    counted = yield from ask(Aggregate(store.settings.collection, pipelines.categories(query)))
    return {group["_id"]: group["records"] for group in counted if isinstance(group["_id"], str)}


def count(store: Store, scope_prefix: str | None) -> Operation[int]:
    query = to_query(scope_criteria(store.settings.tenant, scope_prefix))
    return (yield from ask(Count(store.settings.collection, query)))


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
