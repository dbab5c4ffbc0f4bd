"""Faults a test arms in advance: errors instead of answers, and connections that break."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Literal

from .errors import CommandError

CutMoment = Literal["before", "after"]


@dataclass
class _Failure:
    command: str
    make: Callable[[], CommandError]
    times: int


@dataclass
class _Cut:
    command: str
    moment: CutMoment
    times: int


class Hold:
    """Commands of a name that wait for their answer.

    Attributes:
        waiting: how many of them have come.
    """

    PATIENCE = 30.0  # seconds, so that a test that never lets go fails instead of hanging

    def __init__(self, command: str) -> None:
        self.command = command
        self.waiting = 0
        self._released = threading.Event()

    def wait(self) -> None:
        self.waiting += 1
        self._released.wait(self.PATIENCE)

    def release(self) -> None:
        self._released.set()


class Faults:
    """What is to go wrong with the next commands of a name."""

    def __init__(self) -> None:
        self._failures: list[_Failure] = []
        self._cuts: list[_Cut] = []
        self.holds: list[Hold] = []

    def fail_next(self, command: str, make: Callable[[], CommandError], times: int) -> None:
        self._failures.append(_Failure(command, make, times))

    def cut_next(self, command: str, moment: CutMoment, times: int) -> None:
        self._cuts.append(_Cut(command, moment, times))

    def failure(self, names: Collection[str]) -> CommandError | None:
        """The error that a command known by these names is to get, which is then used up."""
        for armed in self._failures:
            if armed.command in names and armed.times > 0:
                armed.times -= 1
                return armed.make()
        return None

    def cut(self, names: Collection[str]) -> CutMoment | None:
        """When the connection is to break over a command known by these names."""
        for armed in self._cuts:
            if armed.command in names and armed.times > 0:
                armed.times -= 1
                return armed.moment
        return None
