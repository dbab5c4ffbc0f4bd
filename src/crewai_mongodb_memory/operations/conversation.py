"""Conversations: appending turns exactly once, and reading them in the order they were appended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import uuid4

from pymongo.errors import DuplicateKeyError

from crewai_mongodb_memory import buckets, checks
from crewai_mongodb_memory.buckets import Entry, Session, Tail, Thread, Turn
from crewai_mongodb_memory.commands import (
    Aggregate,
    DeleteMany,
    Document,
    Find,
    FindOneAndUpdate,
    InsertOne,
    Operation,
    UpdateOneDocument,
)
from crewai_mongodb_memory.errors import ConfigurationError
from crewai_mongodb_memory.operations.conversation_setup import set_up_once
from crewai_mongodb_memory.store import Store
from crewai_mongodb_memory.times import to_utc

__all__ = ["Known", "append", "clear", "count", "recent_turns", "sessions", "turns"]

OLDEST_FIRST = {"bucket_seq": 1}
NEWEST_FIRST = {"bucket_seq": -1}
TAIL = dict.fromkeys(("_id", "bucket_seq", "end_turn", "turn_count", "bytes", "last_append", "closed"), 1)


@dataclass(frozen=True)
class Counted:
    bucket_id: Any
    bucket_seq: int
    turns_before: int


@dataclass
class Known:
    """What is known of a session from before, so that the server need not look through all of its buckets again.

    Attributes:
        tail: the newest bucket, as this writer last left it.
        counted: a bucket, and how many turns lie before it, in buckets that are closed and never expire.
    """

    tail: Tail | None = None
    counted: Counted | None = None


def append(
    store: Store, thread: Thread, known: Known, said: Sequence[tuple[str, str, str | None]]
) -> Operation[list[Turn]]:
    """Append turns together, and return them with their numbers; those that are there already are returned as stored.

    Args:
        known: of this session; it is brought up to date.
        said: role, content and message id (or None) of each.
    """
    now = to_utc(store.now())
    entries = [buckets.checked_entry(thread, role, content, message_id, now) for role, content, message_id in said]
    yield from set_up_once(store, thread)
    tail, known.tail = known.tail, None
    try:
        if tail is not None and tail.takes(thread, entries):
            query, update = buckets.append_to_tail(thread, tail, entries)
            result = yield UpdateOneDocument(thread.collection, query, update)
            if result.matched_count:
                known.tail = tail = tail.after(entries)
                return _numbered(entries, tail.end_turn)
        known.tail = tail = yield from _append_anywhere(store, thread, entries)
    except DuplicateKeyError as error:
        if not _is_of_a_message(error):
            raise
        tail = None
    if tail is None:
        return (yield from _stored(thread, buckets.selection(thread, store.settings.tenant), entries))
    return _numbered(entries, tail.end_turn)


def _append_anywhere(store: Store, thread: Thread, entries: Sequence[Entry]) -> Operation[Tail | None]:
    """Append to whatever is the newest bucket now, or begin the next; None if a message is there already."""
    selection = buckets.selection(thread, store.settings.tenant)
    append_id = uuid4().hex
    pipeline = buckets.append_pipeline(thread, entries, append_id)
    while True:
        newest = yield FindOneAndUpdate(thread.collection, selection, pipeline, TAIL, sort=list(NEWEST_FIRST.items()))
        if newest is not None and newest.get("last_append") == append_id:
            return _tail(newest)
        if newest is not None and not newest.get("closed"):
            return None
        bucket = buckets.next_bucket(thread, store.settings.tenant, entries, append_id, newest)
        try:
            inserted = yield InsertOne(thread.collection, bucket)
        except DuplicateKeyError as error:
            if _is_of_a_message(error):
                return None
            # Another writer has begun this bucket: append to that.
        else:
            return _tail({**bucket, "_id": inserted.inserted_id})


def _is_of_a_message(error: DuplicateKeyError) -> bool:
    return "message_ids" in (error.details or {}).get("keyPattern", {})


def _tail(bucket: Document) -> Tail:
    return Tail(bucket["_id"], bucket["bucket_seq"], bucket["end_turn"], bucket["turn_count"], bucket["bytes"])


def turns(store: Store, thread: Thread, since: datetime | None) -> Operation[list[Turn]]:
    """Return the turns of a session, oldest first; with ``since`` those said at that moment or later."""
    moment = None if since is None else checks.moment("since", since)
    found = yield Aggregate(
        thread.collection,
        [
            *_visible(store, thread),
            *([] if moment is None else [{"$match": {"updated_at": {"$gte": moment}}}]),
            {"$sort": OLDEST_FIRST},
            {"$project": {"turns": 1, "created_at": 1}},
        ],
    )
    return [turn for turn in buckets.turns_of(found) if moment is None or turn.ts >= moment]


def recent_turns(store: Store, thread: Thread, known: Known, limit: int) -> Operation[list[Turn]]:
    """Return the last turns of a session, oldest first: the newest bucket, and others only if it has too few."""
    limit = checks.whole_number("limit", limit)
    if limit <= 0:
        return []
    last = {"turns": {"$slice": ["$turns", -limit]}, "created_at": 1, "bucket_seq": 1, "end_turn": 1}
    newest_only: list[Document] = [{"$sort": NEWEST_FIRST}, {"$limit": 1}, {"$project": last}]
    newest: list[Document] = []
    if known.tail is not None:
        since_then = _visible(store, thread, bucket_seq={"$gte": known.tail.bucket_seq})
        newest = yield Aggregate(thread.collection, [*since_then, *newest_only])
    if not newest:
        newest = yield Aggregate(thread.collection, [*_visible(store, thread), *newest_only])
    found = list(buckets.turns_of(newest))
    if found and len(found) < limit and found[0].turn > 1:
        first, before = newest[0]["end_turn"] - limit + 1, newest[0]["bucket_seq"]
        older = yield Aggregate(
            thread.collection,
            [
                *_visible(store, thread, bucket_seq={"$lt": before, "$gte": before - limit}),
                {"$match": {"end_turn": {"$gte": first}}},
                {"$sort": OLDEST_FIRST},
                {"$project": {"created_at": 1, "turns": _turns_from(first)}},
            ],
        )
        found = [*buckets.turns_of(older), *found]
    return found


def count(store: Store, thread: Thread, known: Known) -> Operation[int]:
    """Return how many turns a session has, without reading them; of what was counted before only the rest."""
    while True:
        counted = known.counted
        since = {} if counted is None else {"bucket_seq": {"$gte": counted.bucket_seq}}
        found = yield Aggregate(
            thread.collection,
            [
                *_of_session(store, thread, **since),
                {"$sort": OLDEST_FIRST},
                {"$project": {"bucket_seq": 1, "turn_count": 1, "expires_at": 1}},
            ],
        )
        if counted is None or (found and found[0]["_id"] == counted.bucket_id):
            break
        known.counted = None  # the session was cleared meanwhile
    before = counted.turns_before if counted else 0
    now = to_utc(store.now())
    total: int = before + sum(
        bucket["turn_count"] for bucket in found if "expires_at" not in bucket or bucket["expires_at"] > now
    )
    if found and not any("expires_at" in bucket for bucket in found):
        last = found[-1]
        known.counted = Counted(last["_id"], last["bucket_seq"], total - last["turn_count"])
    return total


def clear(store: Store, thread: Thread, known: Known) -> Operation[int]:
    """Remove a session and return how many turns it had."""
    removed = yield from count(store, thread, known)
    yield DeleteMany(thread.collection, buckets.selection(thread, store.settings.tenant))
    return removed


def sessions(store: Store, collection: str, prefix: str | None, limit: int) -> Operation[list[Session]]:
    """Return sessions, the most recently active first."""
    limit = checks.whole_number("limit", limit)
    if limit <= 0:
        return []
    query: Document = {"tenant": store.settings.tenant}
    if prefix is not None and checks.text("prefix", prefix, may_be_empty=True):
        query["session_id"] = {"$gte": prefix, "$lt": prefix + chr(0x10FFFF)}
    found = yield Aggregate(
        collection,
        [
            {"$match": query},
            _unexpired(store),
            {
                "$group": {
                    "_id": "$session_id",
                    "turns": {"$sum": "$turn_count"},
                    "started_at": {"$min": "$created_at"},
                    "last_active": {"$max": "$updated_at"},
                }
            },
            {"$sort": {"last_active": -1, "_id": 1}},
            {"$limit": limit},
        ],
    )
    return [Session(one["_id"], one["turns"], one["started_at"], one["last_active"]) for one in found]


def _stored(thread: Thread, selection: Document, entries: Sequence[Entry]) -> Operation[list[Turn]]:
    """The turns that a retry finds already there, by their message ids."""
    known: dict[str, Turn] = {}
    ids = buckets.message_ids(entries)
    found = yield Find(thread.collection, {**selection, "message_ids": {"$in": ids}}, {"turns": 1, "created_at": 1})
    for bucket in found:
        for element, turn in zip(bucket["turns"], buckets.turns_of([bucket]), strict=True):
            known[element.get("message_id")] = turn
    missing = [message_id for message_id in ids if message_id not in known]
    if missing:
        raise ConfigurationError(
            f"session {thread.session_id!r} has some of these messages but not {missing}: append with the same "
            f"message ids together as before"
        )
    return [known[message_id] for message_id in ids]


def _of_session(store: Store, thread: Thread, **further: Any) -> list[Document]:
    """The stages that select a session's buckets.

    They are several because the embedded server finds by an index only what is asked by its first keys alone; other
    servers make one of them.
    """
    return [{"$match": {"session_id": thread.session_id, **further}}, {"$match": {"tenant": store.settings.tenant}}]


def _visible(store: Store, thread: Thread, **further: Any) -> list[Document]:
    """The same without what has expired and the server has not yet removed."""
    return [*_of_session(store, thread, **further), _unexpired(store)]


def _unexpired(store: Store) -> Document:
    return {"$match": {"expires_at": {"$not": {"$lte": to_utc(store.now())}}}}


def _turns_from(first: int) -> dict[str, Any]:
    return {"$filter": {"input": "$turns", "as": "turn", "cond": {"$gte": ["$$turn.turn", first]}}}


def _numbered(entries: Sequence[Entry], last: int) -> list[Turn]:
    first = last - len(entries) + 1
    return [Turn(number, entry.role, entry.content, entry.ts) for number, entry in enumerate(entries, start=first)]
