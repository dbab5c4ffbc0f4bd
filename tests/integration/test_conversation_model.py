"""Two writers of one session in any order of calls, beside a list that does the same.

What a ``ConversationMemory`` remembers of its session must never show: not when the other one has added turns, cleared
the session and begun it again, or let what it wrote expire.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pymongo.errors import OperationFailure

from crewai_mongodb_memory import (
    USER,
    ConversationMemory,
    InvalidArgumentError,
    InvalidRecordError,
    MongoStorageBackend,
    Turn,
)
from tests.atlas_standin import AtlasStandin
from tests.stores import Listener, MakeBackend, Meanwhile, at_once, stop_the_clock

DAY = timedelta(days=1)
# Far enough ahead that the server itself removes nothing.
START = datetime.now(timezone.utc) + timedelta(days=1000)


class Call(NamedTuple):
    writer: int
    name: str
    number: int


CALLS = st.builds(
    Call,
    st.integers(0, 1),
    st.sampled_from(["add", "add", "add", "exchange", "count", "recent", "turns", "clear"]),
    st.integers(1, 7),
)


def check(chats: list[ConversationMemory], calls: list[Call]) -> None:
    chats[0].clear()
    expected: list[str] = []
    for call in calls:
        chat = chats[call.writer]
        if call.name == "add":
            for _ in range(call.number):
                expected.append(chat.add_turn(USER, f"{len(expected)}").content)
        elif call.name == "exchange":
            expected += [turn.content for turn in chat.add_exchange("question", "answer")]
        elif call.name == "clear":
            assert chat.clear() == len(expected)
            expected.clear()
        elif call.name == "count":
            assert chat.count() == len(expected)
        elif call.name == "recent":
            assert contents(chat.recent_turns(call.number)) == expected[-call.number :]
        else:
            assert contents(chat.turns()) == expected
    assert [chat.count() for chat in chats] == [len(expected)] * 2
    assert [contents(chat.recent_turns(1000)) for chat in chats] == [expected] * 2


def contents(turns: list[Turn]) -> list[str]:
    return [turn.content for turn in turns]


def test_two_writers_agree_with_a_list(backend: MongoStorageBackend) -> None:
    chats = [ConversationMemory(backend, bucket_size=size) for size in (2, 5)]

    @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(CALLS, max_size=10))
    def agrees(calls: list[Call]) -> None:
        check(chats, calls)

    agrees()


def test_what_expires_is_counted_no_more(backend: MongoStorageBackend) -> None:
    forever = ConversationMemory(backend, bucket_size=2)
    for_a_day = ConversationMemory(backend, bucket_size=2, retention=DAY)
    stop_the_clock(backend, START)
    for number in range(4):
        forever.add_turn(USER, f"kept {number}")
    for chat in (forever, for_a_day):
        assert chat.count() == 4
    for number in range(4):
        for_a_day.add_turn(USER, f"expires {number}")
    assert [chat.count() for chat in (forever, for_a_day)] == [8, 8]
    stop_the_clock(backend, START + 2 * DAY)
    assert [chat.count() for chat in (forever, for_a_day)] == [4, 4]
    assert contents(for_a_day.recent_turns(3)) == contents(forever.recent_turns(3)) == ["kept 1", "kept 2", "kept 3"]
    assert forever.add_turn(USER, "later").turn == 9
    assert [chat.count() for chat in (forever, for_a_day)] == [5, 5]
    assert contents(for_a_day.turns()) == [*(f"kept {number}" for number in range(4)), "later"]


def test_what_was_counted_is_not_read_again(make_backend: MakeBackend) -> None:
    commands = Listener()
    chat = ConversationMemory(make_backend(event_listeners=[commands]), bucket_size=2)
    for number in range(20):
        chat.add_turn(USER, str(number))
    read = []
    for _ in range(2):
        commands.take()
        assert chat.count() == 20
        read.append([len(reply["cursor"]["firstBatch"]) for reply in commands.replies])
    assert read == [[10], [1]]


# Between two commands


def test_a_clear_while_a_writer_begins_a_bucket_leaves_one_session(make_backend: MakeBackend) -> None:
    meanwhile = Meanwhile("findAndModify")
    writer = ConversationMemory(make_backend(event_listeners=[meanwhile]), bucket_size=2)
    other = ConversationMemory(make_backend(), bucket_size=50)
    for number in range(4):
        writer.add_turn(USER, f"before {number}")

    def begin_again() -> None:
        assert other.clear() == 4
        assert other.add_turn(USER, "new").turn == 1

    meanwhile.action = begin_again
    assert writer.add_turn(USER, "at the border").turn == 2
    for number in range(3, 9):
        assert (other if number % 2 else writer).add_turn(USER, "later").turn == number
    assert [turn.turn for turn in other.turns()] == list(range(1, 9))
    assert [chat.count() for chat in (writer, other)] == [8, 8]
    assert [turn.turn for turn in writer.recent_turns(4)] == [5, 6, 7, 8]


def test_a_clear_that_a_writer_comes_before_takes_its_bucket_too(make_backend: MakeBackend) -> None:
    meanwhile = Meanwhile("aggregate")
    writer = ConversationMemory(make_backend(), bucket_size=2)
    other = ConversationMemory(make_backend(event_listeners=[meanwhile]))
    for number in range(4):
        writer.add_turn(USER, f"before {number}")
    meanwhile.action = lambda: writer.add_turn(USER, "just before")
    other.clear()
    assert writer.turns() == []
    assert writer.sessions() == []
    assert writer.add_turn(USER, "new").turn == 1
    (session,) = writer.sessions()
    assert session.started_at == writer.turns()[0].ts


def test_two_clears_while_a_writer_begins_a_bucket_double_no_number(make_backend: MakeBackend) -> None:
    meanwhile = Meanwhile("findAndModify")
    writer = ConversationMemory(make_backend(event_listeners=[meanwhile]), bucket_size=2)
    other = ConversationMemory(make_backend(), bucket_size=2)
    for number in range(4):
        writer.add_turn(USER, f"before {number}")

    def begin_again_twice() -> None:
        for _ in range(2):
            other.clear()
            other.add_exchange("question", "answer")

    meanwhile.action = begin_again_twice
    writer.add_turn(USER, "between")
    assert [turn.turn for turn in other.turns()] == [1, 2]
    for number in range(3, 9):
        assert (other if number % 2 else writer).add_turn(USER, "later").turn == number
    for chat in (writer, other):
        assert [turn.turn for turn in chat.turns()] == list(range(1, 9))
        assert [turn.turn for turn in chat.recent_turns(5)] == [4, 5, 6, 7, 8]
        assert [turn.turn for turn in chat.recent_turns(50)] == list(range(1, 9))
        assert chat.count() == 8


def test_a_clear_that_breaks_off_has_cleared(atlas: AtlasStandin, make_atlas_backend: MakeBackend) -> None:
    chats = [ConversationMemory(make_atlas_backend(), bucket_size=2) for _ in range(2)]
    for number in range(5):
        chats[0].add_turn(USER, f"before {number}")
    assert chats[1].count() == 5
    atlas.fail_next("delete", 13, "not authorized")
    with pytest.raises(OperationFailure):
        chats[0].clear()
    for chat in chats:
        assert (chat.turns(), chat.recent_turns(5), chat.count()) == ([], [], 0)
    for number in range(1, 7):
        assert chats[number % 2].add_turn(USER, "new").turn == number
    for chat in chats:
        assert (
            [turn.turn for turn in chat.turns()] == [turn.turn for turn in chat.recent_turns(50)] == list(range(1, 7))
        )
        assert chat.count() == 6


def test_writers_and_clears_at_once_leave_turns_without_a_gap(make_backend: MakeBackend) -> None:
    chats = [ConversationMemory(make_backend(), bucket_size=2) for _ in range(4)]

    def work(number: int) -> None:
        for turn in range(20):
            if number == 0 and turn % 5 == 0:
                chats[0].clear()
            chats[number].add_turn(USER, f"{number} {turn}")

    at_once(work, range(4))
    turns = [turn.turn for turn in chats[1].turns()]
    assert turns == list(range(1, len(turns) + 1))
    assert [chat.count() for chat in chats] == [len(turns)] * 4


# Retention


def test_a_writer_without_a_retention_keeps_what_it_adds_to(backend: MongoStorageBackend) -> None:
    for_a_day, forever = ConversationMemory(backend, retention=DAY), ConversationMemory(backend)
    stop_the_clock(backend, START)
    for_a_day.add_turn(USER, "one")
    forever.add_turn(USER, "two")
    forever.add_turn(USER, "three")
    stop_the_clock(backend, START + 2 * DAY)
    assert contents(for_a_day.turns()) == ["one", "two", "three"]


def test_recent_turns_pass_over_what_expired_in_the_middle(backend: MongoStorageBackend) -> None:
    for_a_day, forever = (
        ConversationMemory(backend, bucket_size=2, retention=DAY),
        ConversationMemory(backend, bucket_size=2),
    )
    stop_the_clock(backend, START)
    for chat in (forever, for_a_day):
        for number in range(6):
            chat.add_turn(USER, str(number))
    stop_the_clock(backend, START + 2 * DAY)
    forever.add_turn(USER, "later")
    assert [turn.turn for turn in forever.turns()] == [1, 2, 3, 4, 5, 6, 13]
    for limit in range(1, 9):
        for chat in (forever, for_a_day):
            assert chat.recent_turns(limit) == chat.turns()[-limit:]


def test_a_message_that_has_expired_can_be_said_again(backend: MongoStorageBackend) -> None:
    chat = ConversationMemory(backend, retention=DAY)
    stop_the_clock(backend, START)
    chat.add_turn(USER, "old", message_id="1")
    stop_the_clock(backend, START + 2 * DAY)
    assert chat.add_turn(USER, "new", message_id="1").content == "new"
    assert contents(chat.turns()) == ["new"]


def test_a_repeated_message_while_a_writer_passes_the_expired_bucket_doubles_no_number(
    make_backend: MakeBackend,
) -> None:
    meanwhile = Meanwhile("findAndModify")
    backends = [make_backend(event_listeners=[meanwhile]), make_backend()]
    forever = ConversationMemory(backends[0], bucket_size=5)
    for_a_day = ConversationMemory(backends[1], bucket_size=5, retention=DAY)
    for backend in backends:
        stop_the_clock(backend, START)
    forever.add_turn(USER, "kept")
    for_a_day.add_turn(USER, "expires", message_id="1")
    for backend in backends:
        stop_the_clock(backend, START + 2 * DAY)
    meanwhile.action = lambda: for_a_day.add_turn(USER, "again", message_id="1")
    forever.add_turn(USER, "late")
    for number in range(3):
        for chat in (for_a_day, forever):
            chat.add_turn(USER, str(number))
    numbers = [turn.turn for turn in forever.turns()]
    assert numbers == sorted(set(numbers))
    assert len(numbers) == forever.count() == 9


# Sizes


def test_an_exchange_has_message_ids_and_is_repeated_safely(backend: MongoStorageBackend) -> None:
    chat = ConversationMemory(backend)
    first = chat.add_exchange("question", "answer", message_ids=("q1", "a1"))
    assert chat.add_exchange("question", "answer", message_ids=("q1", "a1")) == first
    assert chat.count() == 2
    for bad in (("q2", "q2"), ("q2",), "q2", ("q1", "a2")):
        with pytest.raises(InvalidArgumentError, match="message"):
            chat.add_exchange("question", "answer", message_ids=bad)  # type: ignore[arg-type]
    assert chat.count() == 2


def test_two_turns_that_are_too_large_together_are_refused(backend: MongoStorageBackend) -> None:
    chat = ConversationMemory(backend)
    with pytest.raises(InvalidRecordError, match="at once"):
        chat.add_exchange("u" * 9_000_000, "a" * 9_000_000)
    assert chat.count() == 0


def test_message_ids_count_for_the_size_of_a_bucket(backend: MongoStorageBackend) -> None:
    chat = ConversationMemory(backend)
    with pytest.raises(InvalidArgumentError, match="up to 1,000 characters, not 1,001"):
        chat.add_turn(USER, "x", message_id="i" * 1001)
    for number in range(60):
        chat.add_turn(USER, "x", message_id=f"{number:01000}")
    assert chat.count() == 60
