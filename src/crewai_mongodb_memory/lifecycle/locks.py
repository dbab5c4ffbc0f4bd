"""Locks that a fork leaves free: the thread that held one does not exist in the child, which would wait forever."""

from __future__ import annotations

import os
import threading
from typing import ClassVar
from weakref import WeakSet

__all__ = ["ForkSafeLock"]


class ForkSafeLock:
    """A ``threading.Lock`` for ``with``, which is free again in every forked child.

    What it guards may be found there as the other thread left it, so nothing may be wrong halfway.
    """

    _all: ClassVar[WeakSet[ForkSafeLock]] = WeakSet()

    def __init__(self) -> None:
        self._lock = threading.Lock()
        ForkSafeLock._all.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    @classmethod
    def free_all(cls) -> None:
        for lock in list(cls._all):
            lock._lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=ForkSafeLock.free_all)
