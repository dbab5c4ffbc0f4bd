"""Locks that a fork leaves free: the thread that held one does not exist in the child, which would wait forever."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable
from typing import ClassVar, Generic, TypeVar
from weakref import WeakSet, WeakValueDictionary

__all__ = ["ForkSafeLock", "SharedByKey"]

T = TypeVar("T")


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


class SharedByKey(Generic[T]):
    """One object for each key in the whole process, for as long as somebody holds it."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._objects: WeakValueDictionary[Hashable, T] = WeakValueDictionary()
        self._lock = ForkSafeLock()

    def get(self, key: Hashable) -> T:
        """Return the object of a key, made now if there is none."""
        with self._lock:
            found = self._objects.get(key)
            if found is None:
                found = self._objects[key] = self._make()
            return found


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=ForkSafeLock.free_all)
