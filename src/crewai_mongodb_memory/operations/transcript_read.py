"""Reading a transcript: its turns in the order they were appended, how many there are, and which sessions there are."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from crewai_mongodb_memory.operations.commands import Aggregate, Document, Operation, ask
from crewai_mongodb_memory.operations.store import Store
from crewai_mongodb_memory.pure import buckets, checks
from crewai_mongodb_memory.pure.buckets import Session, Tail, Thread, Turn
from crewai_mongodb_memory.pure.times import to_utc

__all__ = ["NEWEST_FIRST", "Known", "count", "recent_turns", "sessions", "turns"]

OLDEST_FIRST = {"bucket_seq": 1}
NEWEST_FIRST = {"bucket_seq": -1}


@dataclass(frozen=True)
class Counted:
    """A bucket, by its ``_id`` and number, and how many turns lie before it."""

    bucket: tuple[Any, int]
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


def turns(store: Store, thread: Thread, since: datetime | None) -> Operation[list[Turn]]:
    """Return the turns of a session, oldest first; with ``since`` those said at that moment or later."""
    moment = None if since is None else checks.moment("since", since)
    found = yield from ask(
        Aggregate(
            thread.collection,
            [
                *_visible(store, thread),
                *([] if moment is None else [{"$match": {"updated_at": {"$gte": moment}}}]),
                {"$sort": OLDEST_FIRST},
                {"$project": {"turns": 1, "created_at": 1, "start_turn": 1}},
            ],
        )
    )
    return [turn for turn in buckets.turns_of(_begun_last(found)) if moment is None or turn.ts >= moment]


def recent_turns(store: Store, thread: Thread, known: Known, limit: int) -> Operation[list[Turn]]:
    """Return the last turns of a session, oldest first: the newest bucket, and others only if it has too few."""
    limit = checks.whole_number("limit", limit)
    if limit <= 0:
        return []
    tail = known.tail
    found: list[Document] = []
    if tail is not None:
        found = yield from _newest(store, thread, 1, limit, bucket_seq={"$gte": tail.bucket_seq})
    if not found:
        found = yield from _newest(store, thread, 1, limit)
    if not found:
        return []
    turns = list(buckets.turns_of(found))
    if len(turns) < limit and found[0]["end_turn"] > len(turns):
        first, before = found[0]["end_turn"] - limit + 1, found[0]["bucket_seq"]
        older = yield from ask(
            Aggregate(
                thread.collection,
                [
                    *_visible(store, thread, bucket_seq={"$lt": before, "$gte": before - limit}),
                    {"$match": {"$or": [{"end_turn": {"$gte": first}}, {"start_turn": 1}]}},
                    {"$sort": OLDEST_FIRST},
                    {"$project": {"created_at": 1, "start_turn": 1, "turns": _turns_from(first)}},
                ],
            )
        )
        turns = [*buckets.turns_of(_begun_last(older)), *turns]
    if turns and len(turns) < limit and turns[0].turn > 1:
        # What came before has expired, or some of it has and what is older still has not.
        found = yield from _newest(store, thread, limit, limit)
        turns = list(buckets.turns_of(_begun_last(found[::-1])))[-limit:]
    return turns


def _newest(store: Store, thread: Thread, most: int, limit: int, **further: Any) -> Operation[list[Document]]:
    """The newest buckets, newest first, each with its last turns."""
    shown = {"turns": {"$slice": ["$turns", -limit]}, "created_at": 1, "bucket_seq": 1, "start_turn": 1, "end_turn": 1}
    found: list[Document] = yield from ask(
        Aggregate(
            thread.collection,
            [*_visible(store, thread, **further), {"$sort": NEWEST_FIRST}, {"$limit": most}, {"$project": shown}],
        )
    )
    return found


def count(store: Store, thread: Thread, known: Known) -> Operation[int]:
    """Return how many turns a session has, without reading them; of what was counted before only the rest."""
    while True:
        counted = known.counted
        since = {} if counted is None else {"bucket_seq": {"$gte": counted.bucket[1]}}
        found = yield from ask(
            Aggregate(
                thread.collection,
                [
                    *_of_session(store, thread, **since),
                    {"$sort": OLDEST_FIRST},
                    {"$project": {"bucket_seq": 1, "start_turn": 1, "turn_count": 1, "expires_at": 1}},
                ],
            )
        )
        if counted is None:
            found = _begun_last(found)
            break
        if (
            found
            and (found[0]["_id"], found[0]["bucket_seq"]) == counted.bucket
            and len(_begun_last(found)) == len(found)
        ):
            break
        known.counted = None  # the session was cleared meanwhile
    before = counted.turns_before if counted else 0
    now = to_utc(store.now())
    total: int = before + sum(
        bucket["turn_count"] for bucket in found if "expires_at" not in bucket or bucket["expires_at"] > now
    )
    if found and not any("expires_at" in bucket for bucket in found):
        last = found[-1]
        known.counted = Counted((last["_id"], last["bucket_seq"]), total - last["turn_count"])
    return total


def sessions(store: Store, collection: str, prefix: str | None, limit: int) -> Operation[list[Session]]:
    """Return sessions, the most recently active first."""
    limit = checks.whole_number("limit", limit)
    if limit <= 0:
        return []
    query: Document = {"tenant": store.settings.tenant}
    if prefix is not None and checks.text("prefix", prefix, may_be_empty=True):
        query["session_id"] = {"$gte": prefix, "$lt": prefix + chr(0x10FFFF)}
    found = yield from ask(
        Aggregate(
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
                {"$match": {"turns": {"$gt": 0}}},
                {"$sort": {"last_active": -1, "_id": 1}},
                {"$limit": limit},
            ],
        )
    )
    return [Session(one["_id"], one["turns"], one["started_at"], one["last_active"]) for one in found]


def _begun_last(found: list[Document]) -> list[Document]:
    """Leave out what lies before the bucket that a session begins with: what a clear has not removed yet."""
    first = max((place for place, bucket in enumerate(found) if bucket.get("start_turn") == 1), default=0)
    return found[first:]


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
