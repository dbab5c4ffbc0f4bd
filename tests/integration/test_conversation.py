"""Conversations over the wire: numbered, whole and in order, whoever appends and whatever breaks."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from pymongo.errors import ConnectionFailure

from crewai_mongodb_memory import (
    ASSISTANT,
    USER,
    ConversationMemory,
    InvalidArgumentError,
    InvalidRecordError,
    MongoStorageBackend,
    Turn,
)
from tests.atlas_standin import AtlasStandin
from tests.stores import Listener, MakeBackend, at_once, collection_of, stop_the_clock


@pytest.fixture
def chat(backend: MongoStorageBackend) -> ConversationMemory:
    return ConversationMemory(backend, bucket_size=10)


def buckets(chat: ConversationMemory) -> list[dict[str, Any]]:
    collection = collection_of(chat._backend, "conversations")
    return list(collection.find({"session_id": chat._thread.session_id}, sort=[("bucket_seq", 1)]))


def assert_whole(chat: ConversationMemory, turns: int) -> None:
    """The session has turns 1 to so many, each once, in buckets that are in order and no larger than allowed."""
    assert [turn.turn for turn in chat.turns()] == list(range(1, turns + 1))
    assert chat.count() == turns
    expected = 1
    for number, bucket in enumerate(buckets(chat), start=1):
        assert bucket["bucket_seq"] == number
        assert bucket["start_turn"] == expected
        assert bucket["turn_count"] == len(bucket["turns"]) == bucket["end_turn"] - expected + 1
        expected = bucket["end_turn"] + 1


# One writer


def test_turns_come_back_in_the_order_they_were_added(chat: ConversationMemory) -> None:
    for number in range(25):
        turn = chat.add_turn(USER if number % 2 == 0 else ASSISTANT, f"message {number}")
        assert type(turn) is Turn
        assert (turn.turn, turn.content) == (number + 1, f"message {number}")
    assert [turn.content for turn in chat.turns()] == [f"message {number}" for number in range(25)]
    assert [bucket["turn_count"] for bucket in buckets(chat)] == [10, 10, 5]
    assert_whole(chat, 25)


def test_a_frozen_clock_changes_no_order(chat: ConversationMemory) -> None:
    moment = datetime(2026, 5, 1, tzinfo=timezone.utc)
    stop_the_clock(chat._backend, moment)
    for number in range(50):
        chat.add_turn(USER, str(number))
    assert [turn.content for turn in chat.turns()] == [str(number) for number in range(50)]


@pytest.mark.parametrize("content", ["", "$set", "$$ROOT", "a\x00b", "ünïcödé 🙂", '{"$gt": ""}', "x" * 100_000])
def test_any_text_is_a_turn(chat: ConversationMemory, content: str) -> None:
    for _ in range(3):
        chat.add_turn("$role", content, message_id=None)
    assert {(turn.role, turn.content) for turn in chat.turns()} == {("$role", content)}


def test_an_exchange_is_never_split_over_two_buckets(backend: MongoStorageBackend) -> None:
    chat = ConversationMemory(backend, bucket_size=5)
    for number in range(6):
        user, assistant = chat.add_exchange(f"question {number}", f"answer {number}")
        assert (user.role, assistant.role) == (USER, ASSISTANT)
        assert assistant.turn == user.turn + 1
    assert [bucket["turn_count"] for bucket in buckets(chat)] == [4, 4, 4]
    assert_whole(chat, 12)


def test_another_bucket_size_keeps_the_order(backend: MongoStorageBackend) -> None:
    number = 0
    for bucket_size in (10, 50, 3, 20):
        chat = ConversationMemory(backend, bucket_size=bucket_size)
        for _ in range(17):
            number += 1
            assert chat.add_turn(USER, str(number)).turn == number
    assert_whole(chat, number)
    assert [turn.content for turn in chat.turns()] == [str(one) for one in range(1, number + 1)]


def test_a_bucket_rolls_over_by_bytes_too(backend: MongoStorageBackend) -> None:
    chat = ConversationMemory(backend, bucket_size=100)
    for _ in range(30):
        chat.add_turn(USER, "x" * 1_000_000)
    assert [bucket["turn_count"] for bucket in buckets(chat)] == [12, 12, 6]
    assert_whole(chat, 30)


def test_what_cannot_be_a_turn_is_refused_and_nothing_is_written(chat: ConversationMemory) -> None:
    for content in (7, None, b"bytes", "bad \ud83d end", "x" * 16_000_000):
        with pytest.raises(InvalidRecordError, match="content"):
            chat.add_turn(USER, content)  # type: ignore[arg-type]
        with pytest.raises(InvalidRecordError, match="content"):
            chat.add_exchange("fine", content)  # type: ignore[arg-type]
    for role in ("", None, {"$gt": ""}):
        with pytest.raises(InvalidArgumentError, match="role"):
            chat.add_turn(role, "text")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="message_id"):
        chat.add_turn(USER, "text", message_id="")
    assert chat.count() == 0


@pytest.mark.parametrize(
    "arguments",
    [
        {"session_id": ""},
        {"session_id": {"$gt": ""}},
        {"session_id": 7},
        {"session_id": "\ud83d"},
        {"bucket_size": 1},
        {"bucket_size": 10**6},
        {"max_turns": 0},
        {"retention": timedelta()},
        {"retention": 30},
    ],
    ids=repr,
)
def test_arguments_that_cannot_be_used_are_refused(backend: MongoStorageBackend, arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError, match=re.escape(next(iter(arguments)).replace("session_id", "session"))):
        ConversationMemory(backend, **arguments)


# Exactly once


@pytest.mark.parametrize("between", [0, 5, 35])
def test_a_repeated_append_returns_the_stored_turn(chat: ConversationMemory, between: int) -> None:
    chat.add_turn(USER, "before")
    first = chat.add_turn(USER, "once", message_id="m1")
    for number in range(between):
        chat.add_turn(ASSISTANT, str(number))
    again = chat.add_turn(USER, "once", message_id="m1")
    assert (again.turn, again.content, again.role) == (first.turn, first.content, first.role)
    assert_whole(chat, 2 + between)


def test_a_message_id_is_the_sessions_own(backend: MongoStorageBackend) -> None:
    one, other = (ConversationMemory(backend, session_id=session) for session in ("one", "other"))
    one.add_turn(USER, "x", message_id="m1")
    other.add_turn(USER, "y", message_id="m1")
    assert [turn.content for turn in other.turns()] == ["y"]


@pytest.mark.parametrize("bucket_size", [2, 10])
def test_appends_with_lost_replies_are_repeated_without_doubling(
    atlas: AtlasStandin, make_backend: MakeBackend, bucket_size: int
) -> None:
    backend = make_backend(connection_string=atlas.uri, search_mode="exact", retryWrites=False)
    chat = ConversationMemory(backend, bucket_size=bucket_size)
    chat.add_turn(USER, "first", message_id="m0")
    for number in range(1, 8):
        command = ("findAndModify", "insert", "update")[number % 3]
        atlas.cut_connection_next(command, when=("before", "after")[number // 2 % 2])
        while True:
            try:
                turn = chat.add_turn(USER, f"turn {number}", message_id=f"m{number}")
                break
            except ConnectionFailure:
                continue
        assert turn.content == f"turn {number}"
    assert [turn.content for turn in chat.turns()] == ["first", *(f"turn {number}" for number in range(1, 8))]
    assert_whole(chat, 8)


# Many writers


def test_threads_and_tasks_append_to_one_session_at_once(backend: MongoStorageBackend) -> None:
    chat = ConversationMemory(backend, bucket_size=10)

    def add(name: str) -> None:
        for number in range(20):
            chat.add_turn(name, str(number))

    async def add_many() -> None:
        await asyncio.gather(*(chat.aadd_turn("task", str(number)) for number in range(20)))

    names = [f"thread {number}" for number in range(4)]
    at_once(lambda name: asyncio.run(add_many()) if name is None else add(name), [*names, None])
    assert_whole(chat, 100)
    assert [bucket["turn_count"] for bucket in buckets(chat)] == [10] * 10
    for name in ("thread 0", "thread 3"):
        assert [turn.content for turn in chat.turns() if turn.role == name] == [str(number) for number in range(20)]


def test_writers_of_different_bucket_sizes_and_turn_sizes_share_a_session(backend: MongoStorageBackend) -> None:
    def add(sizes: tuple[int, int]) -> None:
        bucket_size, size = sizes
        chat = ConversationMemory(backend, bucket_size=bucket_size)
        for number in range(15):
            chat.add_turn(USER, "x" * size * (number % 3))

    at_once(add, [(2, 1), (5, 400_000), (50, 2_000_000), (3, 10)])
    assert_whole(ConversationMemory(backend), 60)


WRITERS = """
import os, sys
from crewai_mongodb_memory import ConversationMemory, MongoStorageBackend
children = []
for writer in range({writers}):
    pid = os.fork()
    if pid == 0:
        with MongoStorageBackend({server!r}, database_name={database!r}) as backend:
            chat = ConversationMemory(backend, bucket_size=10)
            for number in range(100):
                turn = chat.add_turn(f"writer {{writer}}", str(number), message_id=f"{{writer}}-{{number}}")
                os.write(1, f"{{writer}} {{number}} {{turn.turn}}\\n".encode())
        os._exit(0)
    children.append(pid)
os.write(1, ("pids " + " ".join(map(str, children)) + "\\n").encode())
for pid in children:
    os.waitpid(pid, 0)
"""


@pytest.mark.parametrize("is_killed", [False, True])
def test_eight_processes_append_a_hundred_turns_each(
    server: str, database_name: str, backend: MongoStorageBackend, is_killed: bool
) -> None:
    program = WRITERS.format(writers=8, server=server, database=database_name)
    acknowledged: dict[tuple[str, str], int] = {}
    pids: list[int] = []
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            first, *rest = line.split()
            if first == "pids":
                pids = [int(pid) for pid in rest]
            else:
                acknowledged[first, rest[0]] = int(rest[1])
            if is_killed and pids and len(acknowledged) > 100:
                os.kill(pids.pop(0), signal.SIGKILL)
                is_killed = False
    assert process.returncode == 0
    chat = ConversationMemory(backend, bucket_size=10)
    turns = chat.turns()
    assert_whole(chat, len(turns))
    stored = {(turn.role.removeprefix("writer "), turn.content): turn.turn for turn in turns}
    assert len(stored) == len(turns)
    assert acknowledged.items() <= stored.items()
    full, last = divmod(len(turns), 10)
    assert [bucket["turn_count"] for bucket in buckets(chat)] == [10] * full + [last] * bool(last)


# Reading


def test_each_call_is_so_many_round_trips(make_backend: MakeBackend) -> None:
    commands = Listener()
    chat = ConversationMemory(make_backend(event_listeners=[commands]), bucket_size=4)
    other = ConversationMemory(chat._backend, bucket_size=4)
    for number in range(4):
        chat.add_turn(USER, str(number))
    calls: list[tuple[Callable[[], Any], list[str]]] = [
        (lambda: chat.add_turn(USER, "4"), ["findAndModify", "insert"]),
        (lambda: chat.add_turn(USER, "5"), ["findAndModify"]),
        (lambda: other.add_turn(USER, "6"), ["findAndModify"]),
        (lambda: chat.add_turn(USER, "7"), ["update", "findAndModify"]),
        (lambda: chat.add_turn(USER, "8"), ["findAndModify", "insert"]),
        (lambda: chat.recent_turns(1), ["aggregate"]),
        (lambda: chat.recent_turns(6), ["aggregate", "aggregate"]),
        (lambda: chat.turns(), ["aggregate"]),
        (lambda: chat.count(), ["aggregate"]),
        (lambda: chat.sessions(), ["aggregate"]),
        (lambda: chat.clear(), ["aggregate", "findAndModify", "delete"]),
        (lambda: chat.add_exchange("question", "answer"), ["findAndModify"]),
        (lambda: chat.add_turn(USER, "3"), ["update"]),
    ]
    for call, expected in calls:
        commands.take()
        call()
        assert commands.take() == expected


@pytest.mark.parametrize("limit", [1, 3, 4, 5, 8, 11, 100])
def test_recent_turns_reads_no_more_than_it_gives(make_backend: MakeBackend, limit: int) -> None:
    commands = Listener()
    chat = ConversationMemory(make_backend(event_listeners=[commands]), bucket_size=4)
    for number in range(1, 12):
        chat.add_turn(USER, str(number))
    commands.take()
    recent = chat.recent_turns(limit)
    assert [turn.turn for turn in recent] == list(range(max(1, 12 - limit), 12))
    read = [turn for reply in commands.replies for bucket in reply["cursor"]["firstBatch"] for turn in bucket["turns"]]
    assert len(read) == len(recent)
    assert chat.recent_turns(0) == []


def test_history_is_text_for_a_prompt(chat: ConversationMemory) -> None:
    for number in range(5):
        chat.add_exchange(f"question {number}", f"answer {number}")
    chat.add_turn("tool", "42")
    assert chat.history_text(3) == "User: question 4\nAssistant: answer 4\ntool: 42"
    assert chat.history_text(3, user_label="Ann", assistant_label="Bot").startswith("Ann: question 4\nBot:")
    assert len(chat.history_text().splitlines()) == 6
    assert len(ConversationMemory(chat._backend, max_turns=2).recent_turns()) == 2


def test_turns_since_a_moment(chat: ConversationMemory) -> None:
    start = datetime(2026, 5, 1, 12)
    for number in range(25):
        moment = (start + timedelta(minutes=number)).replace(tzinfo=timezone.utc)
        stop_the_clock(chat._backend, moment)
        chat.add_turn(USER, str(number))
    since = start + timedelta(minutes=13)
    assert [turn.content for turn in chat.turns(since=since)] == [str(number) for number in range(13, 25)]
    aware = since.replace(tzinfo=timezone.utc).astimezone(timezone(timedelta(hours=5)))
    assert chat.turns(since=aware) == chat.turns(since=since)
    assert all(turn.ts.tzinfo is None for turn in chat.turns())


def test_clearing_a_session_spares_others_and_begins_again(backend: MongoStorageBackend) -> None:
    one, other = (ConversationMemory(backend, session_id=session, bucket_size=2) for session in ("a", "ab"))
    for number in range(5):
        one.add_turn(USER, str(number), message_id=str(number))
        other.add_turn(USER, str(number))
    assert one.clear() == 5
    assert one.clear() == 0
    assert one.turns() == []
    assert one.add_turn(USER, "new", message_id="0").turn == 1
    assert other.count() == 5


def test_sessions_are_listed_by_their_last_activity(backend: MongoStorageBackend) -> None:
    for number, session in enumerate(["b/1", "a/1", "a/2", "a%", "b/1"]):
        moment = datetime(2026, 5, 1 + number, tzinfo=timezone.utc)
        stop_the_clock(backend, moment)
        ConversationMemory(backend, session_id=session, bucket_size=2).add_exchange("q", "a")
    found = ConversationMemory(backend).sessions()
    assert [(one.session_id, one.turn_count) for one in found] == [("b/1", 4), ("a%", 2), ("a/2", 2), ("a/1", 2)]
    assert (found[0].started_at, found[0].last_active) == (datetime(2026, 5, 1), datetime(2026, 5, 5))
    assert [one.session_id for one in ConversationMemory(backend).sessions("a/")] == ["a/2", "a/1"]
    assert len(ConversationMemory(backend).sessions(limit=2)) == 2


# Apart


def test_tenants_have_sessions_of_their_own(make_backend: MakeBackend) -> None:
    chats = [ConversationMemory(make_backend(tenant=tenant), bucket_size=2) for tenant in ("a", "b", None)]
    for number in range(5):
        for chat in chats:
            assert chat.add_turn(USER, str(number), message_id=str(number)).turn == number + 1
    assert chats[0].clear() == 5
    assert [chat.count() for chat in chats] == [0, 5, 5]
    assert [len(chat.sessions()) for chat in chats] == [0, 1, 1]


def test_retention_hides_what_expired_and_lets_the_server_remove_it(backend: MongoStorageBackend) -> None:
    chat = ConversationMemory(backend, bucket_size=3, retention=timedelta(days=1))
    start = datetime.now(timezone.utc) + timedelta(days=10)
    for hours in (0, 1, 2, 30):
        stop_the_clock(backend, start + timedelta(hours=hours))
        chat.add_turn(USER, str(hours))
    assert [(turn.turn, turn.content) for turn in chat.turns()] == [(4, "30")]
    assert chat.recent_turns(10) == chat.turns()
    assert chat.count() == 1
    assert chat.sessions()[0].turn_count == 1
    index = collection_of(backend, "conversations").index_information()["expires_at_1"]
    assert index["expireAfterSeconds"] == 0


def test_a_retention_that_comes_later_is_carried_out_as_well(backend: MongoStorageBackend) -> None:
    ConversationMemory(backend).add_turn(USER, "kept")
    ConversationMemory(backend, session_id="other", retention=timedelta(days=1)).add_turn(USER, "kept for a day")
    assert "expires_at_1" in collection_of(backend, "conversations").index_information()


@pytest.mark.parametrize("bad", ["5", 2.5, True])
def test_a_limit_that_is_no_number_is_refused(chat: ConversationMemory, bad: Any) -> None:
    for call in (chat.recent_turns, chat.history_text, lambda limit: chat.sessions(limit=limit)):
        with pytest.raises(InvalidArgumentError, match="limit has to be a whole number"):
            call(bad)
    with pytest.raises(InvalidArgumentError, match="prefix has to be text"):
        chat.sessions(5)  # type: ignore[arg-type]
    chat.add_turn(USER, "x")
    assert len(chat.recent_turns(10**20)) == len(chat.sessions(limit=10**20)) == 1


def test_an_index_of_the_earlier_version_is_named_with_what_to_do(backend: MongoStorageBackend) -> None:
    collection = collection_of(backend, "conversations")
    collection.create_index([("session_id", 1), ("bucket_seq", 1)], name="session_bucket")
    with pytest.raises(InvalidArgumentError, match=r"dropIndex\('session_bucket'\)"):
        ConversationMemory(backend).add_turn(USER, "x")
    collection.drop_index("session_bucket")
    assert ConversationMemory(backend).add_turn(USER, "x").turn == 1


def test_buckets_that_the_earlier_version_numbered_twice_are_told_of(backend: MongoStorageBackend) -> None:
    collection = collection_of(backend, "conversations")
    collection.insert_many([{"session_id": "default", "bucket_seq": 1, "turns": []} for _ in range(2)])
    with pytest.raises(InvalidArgumentError, match="one number twice"):
        ConversationMemory(backend).add_turn(USER, "x")


def test_a_transcript_of_the_earlier_version_is_continued(backend: MongoStorageBackend) -> None:
    moment = datetime(2024, 1, 1)
    turns = [{"turn": number, "role": USER, "content": f"old {number}", "ts": moment} for number in (1, 2)]
    rest = {"turn_count": 2, "start_turn": 1, "end_turn": 2, "turns": turns, "created_at": moment, "updated_at": moment}
    collection_of(backend, "conversations").insert_one({"session_id": "default", "bucket_seq": 1, **rest})
    chat = ConversationMemory(backend)
    assert chat.add_turn(USER, "new").turn == 3
    assert [turn.content for turn in chat.turns()] == ["old 1", "old 2", "new"]


def test_every_async_method_does_as_its_namesake(backend: MongoStorageBackend) -> None:
    async def all_of_them() -> None:
        chat = ConversationMemory(backend, bucket_size=2)
        assert (await chat.aadd_turn(USER, "one")).turn == 1
        user, assistant = await chat.aadd_exchange("two", "three")
        assert (user.turn, assistant.turn) == (2, 3)
        assert await chat.aturns() == chat.turns()
        assert await chat.arecent_turns(2) == chat.recent_turns(2)
        assert await chat.ahistory_text(1) == "Assistant: three"
        assert await chat.acount() == 3
        assert await chat.asessions() == chat.sessions()
        assert await chat.aclear() == 3
        await backend.aclose()

    asyncio.run(all_of_them())


def test_a_repeated_message_comes_back_as_it_was_stored(chat: ConversationMemory) -> None:
    first = chat.add_turn(USER, "as stored", message_id="m1")
    assert chat.add_turn(ASSISTANT, "another text", message_id="m1") == first


@pytest.mark.parametrize("name", ["memories", "$x", "", "a..b"])
def test_a_collection_that_cannot_hold_transcripts_is_refused(backend: MongoStorageBackend, name: str) -> None:
    with pytest.raises(InvalidArgumentError, match="collection_name"):
        ConversationMemory(backend, collection_name=name)
