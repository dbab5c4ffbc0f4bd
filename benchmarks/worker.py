"""One store in a process of its own: it makes the calls that stdin asks for, and answers each with a line of JSON."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Sized
from typing import Any
from urllib.parse import urlsplit

from pymongo.errors import OperationFailure

from benchmarks.forwarder import Forwarder
from benchmarks.methods import FIRST_CALLS, METHODS, SCOPE, Call, Method, Storage, fill
from benchmarks.records import question
from benchmarks.stores import open_store

Answer = dict[str, Any]


class Worker:
    """A store that holds its records, opened directly to take the time and through a forwarder to count."""

    def __init__(self, key: str, place: str, size: int) -> None:
        self._key = key
        self._size = size
        self._direct = open_store(key, place)
        self._forwarded: Storage = None
        fill(self._direct, size)
        port = urlsplit(place).port
        if port is None:
            # LanceDB's storage would do so on its own, in the background, now and then.
            self._direct.optimize()
        else:
            self._forwarder = Forwarder(port)
            self._forwarded_place = place.replace(f":{port}/", f":{self._forwarder.port}/")

    def first(self, title: str) -> Answer:
        """Open the store anew, make one call, and tell what passed on the wire."""
        method = next(method for method in FIRST_CALLS if method.title == title)
        call = Call(self._direct, 0, self._size)
        arguments = method.prepare(call)
        traffic = self._forwarder.count()
        self._forwarded = open_store(self._key, self._forwarded_place)
        try:
            method.run(self._forwarded, arguments)
        except OperationFailure as refusal:
            return _missing(refusal)
        passed = traffic.as_answer()
        method.undo(call)
        return passed

    def time(self, title: str, number: int) -> Answer:
        """Make one call, and tell the seconds it took, or why there is no such call."""
        method = _method(title)
        if not hasattr(self._direct, method.name):
            return {"missing": "not there"}
        call = Call(self._direct, number, self._size)
        arguments = method.prepare(call)
        start = time.perf_counter()
        try:
            method.run(self._direct, arguments)
        except OperationFailure as refusal:
            return _missing(refusal)
        seconds = time.perf_counter() - start
        method.undo(call)
        return {"seconds": seconds}

    def count(self, title: str, number: int) -> Answer:
        """Make one call, and tell what passed on the wire (if there is one) and how much was found."""
        method = _method(title)
        call = Call(self._forwarded or self._direct, number, self._size)
        arguments = method.prepare(call)
        # Now and then a store asks again what it knows of itself, as at its first call, which is counted apart.
        with contextlib.suppress(OperationFailure):
            call.storage.search(question(0), scope_prefix=SCOPE, limit=1)
        traffic = self._forwarder.count() if self._forwarded else None
        answer = method.run(call.storage, arguments)
        passed = traffic.as_answer() if traffic else {}
        method.undo(call)
        return {**passed, "found": len(answer) if isinstance(answer, Sized) else None}


def _method(title: str) -> Method:
    return next(method for method in METHODS if method.title == title)


def _missing(refusal: OperationFailure) -> Answer:
    # Only the earlier package's search is refused: $vectorSearch is a stage of Atlas.
    return {"missing": "needs Atlas", "error": str(refusal)}


def main() -> None:
    """Serve stdin: a line of how to make the worker, then one for each of its methods to call."""
    worker: Worker | None = None
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        if worker is None:
            worker = Worker(name, *arguments)
            answer: Answer = {}
        else:
            answer = getattr(worker, name)(*arguments)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
