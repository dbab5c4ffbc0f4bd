"""Buckets: a chat transcript as documents of up to so many turns each, and the one update that appends to it.

The pattern is MongoDB's ("Group Data with the Bucket Pattern"). The server numbers the turns: an append is one
``findAndModify`` with an aggregation pipeline on the newest bucket of a session, which either takes the turns or is
closed by the same update. A closed bucket never takes another turn, so the next bucket's first number is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar

from crewai_mongodb_memory.errors import InvalidArgumentError, InvalidRecordError
from crewai_mongodb_memory.pure import checks, metadata

__all__ = [
    "MESSAGE_INDEX",
    "SESSION_INDEX",
    "Entry",
    "Session",
    "Tail",
    "Thread",
    "Turn",
    "append_pipeline",
    "append_to_tail",
    "checked_entries",
    "clear_pipeline",
    "message_ids",
    "next_bucket",
    "selection",
    "turns_of",
]

SESSION_INDEX = ("session_bucket", (("session_id", 1), ("bucket_seq", 1), ("tenant", 1)))
MESSAGE_INDEX = ("session_message", (("session_id", 1), ("message_ids", 1), ("tenant", 1)))
MOST_BUCKET_BYTES = 12 * 1024 * 1024  # well below MongoDB's 16 MB
MOST_TURN_BYTES = 15 * 1024 * 1024
LONGEST_MESSAGE_ID = 1000
EMPTY_FOR = timedelta(hours=1)
IS_EMPTY = {"$eq": ["$turns", []]}
TURN_OVERHEAD = 200  # names, numbers and ids around a turn's text

Document = dict[str, Any]


@dataclass(frozen=True)
class Turn:
    """One turn of a chat: its number in the session, from 1, who said what, and when (naive UTC)."""

    turn: int
    role: str
    content: str
    ts: datetime


@dataclass(frozen=True)
class Session:
    """A session with how many turns it has, and when it began and was last added to (naive UTC)."""

    session_id: str
    turn_count: int
    started_at: datetime
    last_active: datetime


@dataclass(frozen=True)
class Entry:
    """A turn that is to be appended; ``message_id``, if its sender gave it one, makes a retry recognisable."""

    role: str
    content: str
    message_id: str | None
    ts: datetime

    @property
    def size(self) -> int:
        # A message id stands in the turn and in the bucket's list of them.
        return len("".join((self.content, self.role, 2 * (self.message_id or ""))).encode()) + TURN_OVERHEAD


@dataclass(frozen=True)
class Thread:
    """Which transcript, and how it is kept; see :class:`~crewai_mongodb_memory.ConversationMemory`."""

    session_id: str
    collection: str = "conversations"
    bucket_size: int = 50
    retention: timedelta | None = None

    LONGEST: ClassVar[timedelta] = timedelta(days=36_500)

    def __post_init__(self) -> None:
        checks.text("session_id", self.session_id)
        object.__setattr__(self, "bucket_size", checks.whole_number("bucket_size", self.bucket_size, 2, 10_000))
        if self.retention is not None and not (
            isinstance(self.retention, timedelta) and timedelta() < self.retention <= self.LONGEST
        ):
            raise InvalidArgumentError(
                f"retention has to be a timedelta over zero and up to a hundred years, or None; not {self.retention!r}"
            )


@dataclass(frozen=True)
class Tail:
    """The newest bucket of a session as this writer last left it; its id is None if it may not be the newest."""

    bucket_id: Any
    bucket_seq: int
    end_turn: int
    turn_count: int
    bytes: int

    def takes(self, thread: Thread, entries: Sequence[Entry]) -> bool:
        size = sum(entry.size for entry in entries)
        return self.turn_count + len(entries) <= thread.bucket_size and self.bytes + size <= MOST_BUCKET_BYTES

    def after(self, entries: Sequence[Entry]) -> Tail:
        size = sum(entry.size for entry in entries)
        count = len(entries)
        return Tail(self.bucket_id, self.bucket_seq, self.end_turn + count, self.turn_count + count, self.bytes + size)


def checked_entries(thread: Thread, said: Sequence[tuple[str, str, str | None]], ts: datetime) -> list[Entry]:
    """Return turns (role, content, message id or None) that can be stored together.

    Raises:
        InvalidArgumentError: a role or message id is not text, empty, or a message id too long.
        InvalidRecordError: a content is not text, or all of them are over 15 MB.
    """
    entries = [_checked_entry(thread, role, content, message_id, ts) for role, content, message_id in said]
    size = sum(entry.size for entry in entries)
    if size > MOST_TURN_BYTES:
        raise InvalidRecordError(
            thread.session_id,
            "content",
            f"{size:,} bytes at once; at most {MOST_TURN_BYTES:,} fit into a document. Keep a file elsewhere",
        )
    return entries


def _checked_entry(thread: Thread, role: str, content: str, message_id: str | None, ts: datetime) -> Entry:
    checks.text("role", role)
    if message_id is not None:
        checks.text("message_id", message_id)
        if len(message_id) > LONGEST_MESSAGE_ID:
            raise InvalidArgumentError(
                f"a message_id has up to {LONGEST_MESSAGE_ID:,} characters, not {len(message_id):,}"
            )
    if not isinstance(content, str):
        raise InvalidRecordError(thread.session_id, "content", f"has to be text, not {type(content).__name__}")
    try:
        metadata.check_text(content, "content")
    except metadata.UnstorableError as error:
        raise InvalidRecordError(thread.session_id, "content", error.reason) from error
    return Entry(role, content, message_id, ts)


def selection(thread: Thread, tenant: str | None) -> Document:
    """Return the query for the buckets of a session; without a tenant, of those that belong to none."""
    return {"session_id": thread.session_id, "tenant": tenant}


def append_pipeline(thread: Thread, entries: Sequence[Entry], append_id: str) -> list[Document]:
    """Return the update that appends turns to the newest bucket, or closes it if they do not fit.

    It does neither where the bucket has one of the message ids already. Afterwards ``last_append`` is ``append_id``
    exactly if this update appended.
    """
    count, size, now = len(entries), sum(entry.size for entry in entries), entries[-1].ts
    ids = message_ids(entries)
    known = {"$ifNull": ["$message_ids", []]}
    is_known = {"$or": [{"$in": [{"$literal": one}, known]} for one in ids]}
    fits = _fits(thread, count, size, now)
    appended = [_element(entry, {"$add": ["$end_turn", number]}) for number, entry in enumerate(entries, start=1)]
    changes = {
        "turns": {"$concatArrays": ["$turns", appended]},
        **({"message_ids": {"$concatArrays": [known, {"$literal": ids}]}} if ids else {}),
        "turn_count": {"$add": ["$turn_count", count]},
        "end_turn": {"$add": ["$end_turn", count]},
        "bytes": {"$add": ["$bytes", size]},
        "last_append": append_id,
        "created_at": {"$cond": [IS_EMPTY, now, "$created_at"]},
        "updated_at": {"$max": ["$updated_at", now]},
        "expires_at": "$$REMOVE",
    }
    if thread.retention is not None:
        until = now + thread.retention
        changes["expires_at"] = {"$cond": [IS_EMPTY, until, {"$max": ["$expires_at", until]}]}
    takes = {"$and": [fits, {"$not": [is_known]}]}
    conditional = {name: {"$cond": [takes, value, _kept(name)]} for name, value in changes.items()}
    closed = {"$cond": [{"$or": [is_known, fits]}, {"$ifNull": ["$closed", False]}, True]}
    return [{"$set": {**conditional, "closed": closed}}]


def _fits(thread: Thread, count: int, size: int, now: datetime) -> Document:
    return {
        "$and": [
            {"$ne": ["$closed", True]},
            {"$lte": [{"$add": ["$turn_count", count]}, thread.bucket_size]},
            {"$lte": [{"$add": [{"$ifNull": ["$bytes", MOST_BUCKET_BYTES]}, size]}, MOST_BUCKET_BYTES]},
            {"$gt": [{"$ifNull": ["$expires_at", datetime.max.replace(microsecond=0)]}, now]},
            *([] if thread.retention is None else [{"$or": [{"$gt": ["$expires_at", None]}, IS_EMPTY]}]),
        ]
    }


def append_to_tail(thread: Thread, tail: Tail, entries: Sequence[Entry]) -> tuple[Document, Document]:
    """Return query and update that append turns if nobody has touched the newest bucket since this writer did.

    This is the usual case, and much cheaper than :func:`append_pipeline`.
    """
    now, ids = entries[-1].ts, message_ids(entries)
    query = {"_id": tail.bucket_id, "end_turn": tail.end_turn, "closed": False, "expires_at": {"$not": {"$lte": now}}}
    if thread.retention is not None:
        query["expires_at"] = {"$gt": now}  # a bucket that is kept for good takes no turns that are not
    elements = [_element(entry, number, literal=False) for number, entry in enumerate(entries, start=tail.end_turn + 1)]
    update: Document = {
        "$push": {"turns": {"$each": elements}},
        "$inc": {"turn_count": len(entries), "end_turn": len(entries), "bytes": sum(entry.size for entry in entries)},
        "$max": {"updated_at": now},
    }
    if ids:
        query["message_ids"] = {"$nin": ids}
        update["$push"]["message_ids"] = {"$each": ids}
    if thread.retention is None:
        update["$unset"] = {"expires_at": ""}
    else:
        update["$max"]["expires_at"] = now + thread.retention
    return query, update


def next_bucket(
    thread: Thread, tenant: str | None, entries: Sequence[Entry], append_id: str, closed: Document | None
) -> Document:
    """Return the document that follows a closed bucket, or begins a session."""
    before = closed or {"bucket_seq": 0, "end_turn": 0}
    ids, now, start_turn = message_ids(entries), entries[-1].ts, before["end_turn"] + 1
    return {
        "session_id": thread.session_id,
        **({} if tenant is None else {"tenant": tenant}),
        "bucket_seq": before["bucket_seq"] + 1,
        "turn_count": len(entries),
        "start_turn": start_turn,
        "end_turn": before["end_turn"] + len(entries),
        "turns": [_element(entry, number, literal=False) for number, entry in enumerate(entries, start=start_turn)],
        **({"message_ids": ids} if ids else {}),
        "created_at": now,
        "updated_at": now,
        "bytes": sum(entry.size for entry in entries),
        "closed": False,
        "last_append": append_id,
        **({} if thread.retention is None else {"expires_at": now + thread.retention}),
    }


def clear_pipeline(now: datetime) -> list[Document]:
    """Return the update that empties the newest bucket of a session and makes it the one after itself.

    No writer goes on where it was: one that was the last to append finds other numbers, and one that is about to
    begin the next bucket finds its number taken.
    """
    empty = {"turns": [], "turn_count": 0, "start_turn": 1, "end_turn": 0, "bytes": 0, "closed": False}
    kept_for = {"updated_at": now, "expires_at": now + EMPTY_FOR, "last_append": ""}
    next_one = {"bucket_seq": {"$add": ["$bucket_seq", 1]}, "message_ids": "$$REMOVE"}
    return [{"$set": {**empty, **kept_for, **next_one}}]


def message_ids(entries: Sequence[Entry]) -> list[str]:
    """Return the message ids of those turns that have one."""
    return [entry.message_id for entry in entries if entry.message_id is not None]


def turns_of(buckets: Iterable[Document]) -> Iterator[Turn]:
    """Give the turns of buckets, in the order of both."""
    for bucket in buckets:
        for element in bucket.get("turns", ()):
            ts = element.get("ts") or bucket["created_at"]
            yield Turn(int(element["turn"]), str(element["role"]), str(element["content"]), ts)


def _element(entry: Entry, number: Any, *, literal: bool = True) -> Document:
    """A turn as an element of a bucket; in a pipeline its texts are literals, for a text may begin with a dollar."""
    texts = {"role": entry.role, "content": entry.content}
    if entry.message_id is not None:
        texts["message_id"] = entry.message_id
    return {"turn": number, **({k: {"$literal": v} for k, v in texts.items()} if literal else texts), "ts": entry.ts}


def _kept(name: str) -> Any:
    return {"$ifNull": [f"${name}", "$$REMOVE"]}
