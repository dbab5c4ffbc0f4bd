"""Writing: saving, updating, touching and deleting records."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import Any

from crewai.memory.types import MemoryRecord
from pymongo import UpdateOne
from pymongo.errors import BulkWriteError

from crewai_mongodb_memory.errors import DimensionMismatchError, InvalidArgumentError, InvalidRecordError
from crewai_mongodb_memory.operations.commands import (
    BulkWrite,
    Command,
    DeleteMany,
    Document,
    FindOneAndUpdate,
    InsertMany,
    Operation,
    UpdateMany,
    UpdateOneDocument,
    ask,
)
from crewai_mongodb_memory.operations.setup import check_dimensions, set_up_once
from crewai_mongodb_memory.operations.store import Store
from crewai_mongodb_memory.pure import checks
from crewai_mongodb_memory.pure.criteria import (
    Criteria,
    delete_criteria,
    ids_criteria,
    scope_criteria,
    to_query,
)
from crewai_mongodb_memory.pure.documents import to_document, to_fields
from crewai_mongodb_memory.pure.times import to_utc

__all__ = ["delete", "reset", "save", "touch_records", "update"]

logger = logging.getLogger("crewai_mongodb_memory")

DUPLICATE_KEY = 11000
SEARCHED = {"tenant", "scope_ancestors", "categories", "metadata_tokens", "created_at", "embedding"}
IDS_AT_A_TIME = 10_000  # keeps a command that lists ids far below MongoDB's 16 MB


def save(store: Store, records: Sequence[MemoryRecord]) -> Operation[None]:
    """Store records by id, in order, replacing those that exist; all are checked before any is sent.

    Raises:
        InvalidRecordError: a record cannot be stored (nothing was written), or its id belongs to another tenant
            (nothing of that tenant's was changed; the records before it are stored).
        DimensionMismatchError: an embedding does not fit the store, or two of this save differ.
    """
    if not isinstance(records, Iterable):
        raise InvalidArgumentError(f"records has to be a list of MemoryRecords, not {checks.shown(records)}")
    records = [_checked_record(record) for record in records]
    if not records:
        return
    settings = store.settings
    documents = [to_document(record, settings.vector_format, settings.tenant) for record in records]
    dimensions = _common_dimensions(records)
    if dimensions is not None:
        yield from check_dimensions(store, dimensions)
        store.dimensions = dimensions
    yield from _write_in_order(store, documents)
    yield from set_up_once(store, dimensions)


def update(store: Store, record: MemoryRecord) -> Operation[None]:
    """Change what the record was built with, and nothing else; an unknown id writes nothing.

    CrewAI's consolidation builds a record anew without ``source`` and ``private``
    (``crewai/memory/encoding_flow.py``, ``execute_plans``): what it does not mention stays as it is stored. An
    embedding of None keeps the stored vector.

    Raises:
        InvalidRecordError: a field cannot be stored; nothing was written.
        DimensionMismatchError: the embedding does not fit the store.
    """
    _checked_record(record)
    # A default that was filled in afterwards, such as metadata, is given as well.
    filled = {name for name in ("metadata", "categories", "source", "private") if getattr(record, name)}
    given = record.model_fields_set | filled | ({"embedding"} if record.embedding is not None else set())
    changes = to_fields(record, given - {"id"}, store.settings.vector_format)
    dimensions = _common_dimensions([record])
    if dimensions is not None:
        yield from check_dimensions(store, dimensions)
    if not changes:
        return
    selection = to_query(ids_criteria(store.settings.tenant, [record.id]))
    if not (yield from _change_one(store, selection, {"$set": changes})):
        logger.debug("update: no record %r; nothing was written", record.id)


def touch_records(store: Store, record_ids: Sequence[str]) -> Operation[None]:
    """Set ``last_accessed`` of the records with these ids to now; unknown ids are passed over."""
    touched = {"$set": {"last_accessed": to_utc(store.now())}}
    for selection in _queries(ids_criteria(store.settings.tenant, record_ids)):
        yield from ask(UpdateMany(store.settings.collection, selection, touched))


def delete(
    store: Store,
    scope_prefix: str | None,
    categories: Iterable[str] | None,
    record_ids: Iterable[str] | None,
    older_than: datetime | None,
    metadata_filter: Mapping[str, Any] | None,
) -> Operation[int]:
    """Delete the records that meet all criteria and return how many there were."""
    criteria = delete_criteria(store.settings.tenant, scope_prefix, categories, record_ids, older_than, metadata_filter)
    deleted = yield from _delete(store, criteria)
    return deleted


def reset(store: Store, scope_prefix: str | None) -> Operation[None]:
    """Delete every record of a scope, or of the root; the collection and its indexes stay."""
    yield from _delete(store, scope_criteria(store.settings.tenant, scope_prefix))


def _delete(store: Store, criteria: Criteria) -> Operation[int]:
    if criteria.matches_nothing:
        return 0
    deleted = 0
    for selection in _queries(criteria):
        result = yield from ask(DeleteMany(store.settings.collection, selection))
        deleted += result.deleted_count
    store.recent.removed(criteria)
    if criteria.is_everything:
        store.forget()
    return deleted


def _change_one(store: Store, selection: Document, change: Document) -> Operation[bool]:
    """Change a document; where an index may lag, take back what it is now, so that searches find it as such."""
    if not store.may_lag or not SEARCHED & change["$set"].keys():
        result = yield from ask(UpdateOneDocument(store.settings.collection, selection, change))
        return bool(result.matched_count)
    try:
        document = yield from ask(
            FindOneAndUpdate(store.settings.collection, selection, change, dict.fromkeys(SEARCHED, 1))
        )
    except BaseException:
        store.recent.lost_sight_of(selection["_id"], store.clock())
        raise
    if document is not None:
        store.recent.wrote([document], store.settings.tenant, store.clock())
    return document is not None


def _queries(criteria: Criteria) -> list[Document]:
    """The query of the criteria; several where they list more ids than one command should hold."""
    if criteria.record_ids is None:
        return [to_query(criteria)]
    remaining = iter(criteria.record_ids)
    slices = iter(lambda: tuple(islice(remaining, IDS_AT_A_TIME)), ())
    return [to_query(replace(criteria, record_ids=some)) for some in slices]


def _checked_record(record: MemoryRecord) -> MemoryRecord:
    if not isinstance(record, MemoryRecord):
        raise InvalidArgumentError(f"a record has to be a MemoryRecord, not {type(record).__name__}")
    return record


def _upsert(document: Document, tenant: str | None) -> UpdateOne:
    """The write that stores a whole document, whatever is stored under its id now.

    It sets fields instead of replacing the document: a backend without a tenant leaves the tenant of the record as
    it is, and a vector index takes up a replaced document anew even if nothing in it changed. Another tenant's
    record is not selected, so the upsert meets its ``_id`` as a duplicate key and changes nothing.
    """
    selection: Document = {"_id": document["_id"]}
    if tenant is not None:
        selection["tenant"] = tenant
    changes: dict[str, Any] = {"$set": {name: value for name, value in document.items() if name not in selection}}
    if "embedding" not in document:
        changes["$unset"] = {"embedding": ""}
    return UpdateOne(selection, changes, upsert=True)


def _common_dimensions(records: Sequence[MemoryRecord]) -> int | None:
    sizes = [len(record.embedding) for record in records if record.embedding is not None and len(record.embedding)]
    for size in sizes:
        if size != sizes[0]:
            raise DimensionMismatchError(sizes[0], size)
    return sizes[0] if sizes else None


def _write_in_order(store: Store, documents: Sequence[Document]) -> Operation[None]:
    """Insert all documents, which is much the cheapest; from the first on whose id is taken they are upserted.

    An upsert that meets a duplicate key, since another process inserted that id at the same moment, is tried again.

    Raises:
        InvalidRecordError: the duplicate key stays: the id belongs to another tenant.
    """
    settings = store.settings
    done, is_tried = 0, False
    command: Command[Any] = InsertMany(settings.collection, documents)
    while True:
        try:
            yield command
            written = len(documents) - done
        except BaseException as error:
            duplicate = _duplicate(error)
            if duplicate is None or (is_tried and not duplicate["index"] and settings.tenant is None):
                # Some may be stored all the same. Searches look up what they are told of here.
                store.recent.wrote(documents[done:], settings.tenant, store.clock())
                raise
            written = duplicate["index"]
        store.recent.wrote(documents[done : done + written], settings.tenant, store.clock())
        done += written
        if done == len(documents):
            return
        if is_tried and not written:
            raise InvalidRecordError(
                documents[done]["_id"],
                "id",
                "belongs to another tenant, or to none; nothing of it was changed. Give the record a new id",
            )
        is_tried = isinstance(command, BulkWrite)
        command = BulkWrite(settings.collection, [_upsert(document, settings.tenant) for document in documents[done:]])


def _duplicate(error: BaseException) -> Document | None:
    """Return what the server says of an id that was taken, if that and nothing else was the matter."""
    if not isinstance(error, BulkWriteError) or error.details.get("writeConcernErrors"):
        return None
    failures = error.details.get("writeErrors") or [{}]
    first: Document = failures[0]
    is_of_an_id = first.get("code") == DUPLICATE_KEY and first.get("keyPattern", {"_id": 1}) == {"_id": 1}
    return first if is_of_an_id else None
