"""What a process shares, and for how long."""

from __future__ import annotations

from crewai_mongodb_memory.lifecycle.locks import SharedByKey


class Thing:
    pass


def test_holders_of_one_key_share_one_object_until_the_last_lets_go() -> None:
    things = SharedByKey(Thing)
    first = things.get("a")
    assert things.get("a") is first
    assert things.get("b") is not first
    first.mark = 1  # type: ignore[attr-defined]
    del first
    assert not hasattr(things.get("a"), "mark")
