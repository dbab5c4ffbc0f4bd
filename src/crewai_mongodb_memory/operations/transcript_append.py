"""Conversations: appending turns exactly once, and reading them in the order they were appended."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import uuid4

from pymongo.errors import DuplicateKeyError

from crewai_mongodb_memory.errors import InvalidArgumentError
from crewai_mongodb_memory.operations.commands import (
    DeleteMany,
    Document,
    Find,
    FindOneAndUpdate,
    InsertOne,
    Operation,
    UpdateMany,
    UpdateOneDocument,
    ask,
)
from crewai_mongodb_memory.operations.store import Store
from crewai_mongodb_memory.operations.transcript_indexes import set_up_once
from crewai_mongodb_memory.operations.transcript_read import NEWEST_FIRST, Known, count
from crewai_mongodb_memory.pure import buckets
from crewai_mongodb_memory.pure.buckets import Entry, Tail, Thread, Turn
from crewai_mongodb_memory.pure.times import to_utc

__all__ = ["append", "clear"]

TAIL = dict.fromkeys(("_id", "bucket_seq", "end_turn", "turn_count", "bytes", "last_append", "closed"), 1)


def append(
    store: Store, thread: Thread, known: Known, said: Sequence[tuple[str, str, str | None]]
) -> Operation[list[Turn]]:
    """Append turns together, and return them with their numbers; those that are there already are returned as stored.

    Args:
        known: of this session; it is brought up to date.
        said: role, content and message id (or None) of each.
    """
    entries = buckets.checked_entries(thread, said, to_utc(store.now()))
    yield from set_up_once(store, thread)
    tail, known.tail = known.tail, None
    while True:
        try:
            tail = yield from _append_once(store, thread, tail, entries)
        except DuplicateKeyError as error:
            if not _is_of_a_message(error):
                raise
            tail = None
        if tail is not None:
            known.tail = tail if tail.bucket_id is not None else None
            return _numbered(entries, tail.end_turn)
        stored = yield from _stored(store, thread, entries)
        if stored is not None:
            return stored


def _append_once(store: Store, thread: Thread, tail: Tail | None, entries: Sequence[Entry]) -> Operation[Tail | None]:
    """Append to the bucket that this writer was the last to append to, or else to whatever is the newest."""
    if tail is not None and tail.takes(thread, entries):
        query, update = buckets.append_to_tail(thread, tail, entries)
        result = yield from ask(UpdateOneDocument(thread.collection, query, update))
        if result.matched_count:
            return tail.after(entries)
    found: Tail | None = yield from _append_anywhere(store, thread, entries)
    return found


def _append_anywhere(store: Store, thread: Thread, entries: Sequence[Entry]) -> Operation[Tail | None]:
    """Append to whatever is the newest bucket now, or begin the next; None if a message is there already."""
    selection = buckets.selection(thread, store.settings.tenant)
    append_id = uuid4().hex
    pipeline = buckets.append_pipeline(thread, entries, append_id)
    while True:
        newest = yield from ask(
            FindOneAndUpdate(thread.collection, selection, pipeline, TAIL, sort=list(NEWEST_FIRST.items()))
        )
        if newest is not None and newest.get("last_append") == append_id:
            return _tail(newest)
        if newest is not None and not newest.get("closed"):
            return None
        bucket = buckets.next_bucket(thread, store.settings.tenant, entries, append_id, newest)
        try:
            yield from ask(InsertOne(thread.collection, bucket))
        except DuplicateKeyError as error:
            if _is_of_a_message(error):
                return None
            # Another writer has begun this bucket: append to that.
        else:
            # Not to be gone on with unseen: between the two commands the session may have been cleared and begun again.
            return _tail({**bucket, "_id": None})


def _is_of_a_message(error: DuplicateKeyError) -> bool:
    return "message_ids" in (error.details or {}).get("keyPattern", {})


def _tail(bucket: Document) -> Tail:
    return Tail(bucket["_id"], bucket["bucket_seq"], bucket["end_turn"], bucket["turn_count"], bucket["bytes"])


def clear(store: Store, thread: Thread, known: Known) -> Operation[int]:
    """Remove a session and return how many turns it had.

    The newest bucket is emptied and takes the next number, and with it the session begins anew, whatever becomes of
    the others. It remains for an hour, or for the next turn. A writer that has just found it full does not go on with
    the old count: it finds that number taken.
    """
    removed = yield from count(store, thread, known)
    known.counted = known.tail = None
    selection = buckets.selection(thread, store.settings.tenant)
    pipeline = buckets.clear_pipeline(to_utc(store.now()))
    while True:
        try:
            emptied = yield from ask(
                FindOneAndUpdate(thread.collection, selection, pipeline, TAIL, sort=list(NEWEST_FIRST.items()))
            )
            break
        except DuplicateKeyError:
            pass  # another writer has begun the bucket of this number: it is the newest now
    if emptied is not None:
        yield from ask(DeleteMany(thread.collection, {**selection, "bucket_seq": {"$lt": emptied["bucket_seq"]}}))
    return removed


def _stored(store: Store, thread: Thread, entries: Sequence[Entry]) -> Operation[list[Turn] | None]:
    """The turns that a retry finds already there, by their message ids; None if they had expired and no longer count.

    An expired bucket is left to the server to remove: another writer may just be about to begin the one after it.
    """
    ids = buckets.message_ids(entries)
    holding = {**buckets.selection(thread, store.settings.tenant), "message_ids": {"$in": ids}}
    now = to_utc(store.now())
    found = yield from ask(Find(thread.collection, holding, {"turns": 1, "created_at": 1, "expires_at": 1}))
    if any("expires_at" in bucket and bucket["expires_at"] <= now for bucket in found):
        yield from ask(
            UpdateMany(thread.collection, {**holding, "expires_at": {"$lte": now}}, {"$unset": {"message_ids": ""}})
        )
        return None
    known: dict[str, Turn] = {}
    for bucket in found:
        for element, turn in zip(bucket["turns"], buckets.turns_of([bucket]), strict=True):
            known[element.get("message_id")] = turn
    missing = [message_id for message_id in ids if message_id not in known]
    if len(missing) == len(ids):
        return None  # it was cleared meanwhile
    if missing or len(ids) < len(entries):
        raise InvalidArgumentError(
            f"session {thread.session_id!r} has some of these messages but not {missing}: append with the same "
            f"message ids together as before"
        )
    return [known[message_id] for message_id in ids]


def _numbered(entries: Sequence[Entry], last: int) -> list[Turn]:
    first = last - len(entries) + 1
    return [Turn(number, entry.role, entry.content, entry.ts) for number, entry in enumerate(entries, start=first)]
