"""Two writers of one session in any order of calls, beside a list that does the same.

What a ``ConversationMemory`` remembers of its session must never show: not when the other one has added turns, cleared
the session and begun it again, or let what it wrote expire.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import NamedTuple

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crewai_mongodb_memory import USER, ConversationMemory, MongoStorageBackend, Turn
from tests.stores import Listener, MakeBackend, stop_the_clock

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
