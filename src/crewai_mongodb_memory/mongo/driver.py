"""Runs an operation on a MongoDB database: one runner for ``MongoClient``, one for ``AsyncMongoClient``.

An operation is a generator of commands (``operations/commands.py``); a runner knows of them only what stands here.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator
from inspect import isawaitable
from typing import Any, Protocol, TypeVar, runtime_checkable

__all__ = ["arun", "run"]

T = TypeVar("T")
Collections = Callable[[str], Any]


class Call(Protocol):
    """A command that calls the driver on a collection."""

    @property
    def collection(self) -> str: ...

    def on(self, collection: Any) -> Any: ...


@runtime_checkable
class Read(Call, Protocol):
    """A call that is answered by a cursor; ``consume`` takes its documents in batches, if there is one."""

    @property
    def consume(self) -> Callable[[list[dict[str, Any]]], None] | None: ...

    @property
    def batch_size(self) -> int: ...


@runtime_checkable
class Wait(Protocol):
    """A command that calls nobody and waits."""

    @property
    def seconds(self) -> float: ...


Operation = Generator[Call | Wait, Any, T]


def run(operation: Operation[T], collections: Collections) -> T:
    """Run an operation on the synchronous driver and return its answer.

    Args:
        collections: gives the ``Collection`` of a name.

    An error of the driver is thrown into the operation at the command that met it.
    """
    try:
        command = next(operation)
        while True:
            try:
                result = _perform(command, collections)
            except Exception as error:
                command = operation.throw(error)
            else:
                command = operation.send(result)
    except StopIteration as end:
        answer: T = end.value
        return answer


async def arun(operation: Operation[T], collections: Collections) -> T:
    """Same as :func:`run` on the asynchronous driver: ``collections`` gives an ``AsyncCollection``."""
    try:
        command = next(operation)
        while True:
            try:
                result = await _aperform(command, collections)
            except Exception as error:
                command = operation.throw(error)
            else:
                command = operation.send(result)
    except StopIteration as end:
        answer: T = end.value
        return answer


def _perform(command: Call | Wait, collections: Collections) -> Any:
    if isinstance(command, Wait):
        return time.sleep(command.seconds)
    result = command.on(collections(command.collection))
    if not isinstance(command, Read):
        return result
    batch: list[dict[str, Any]] = []
    with result as cursor:
        for document in cursor:
            batch.append(document)
            _hand_over(command, batch, command.batch_size)
    _hand_over(command, batch, 1)
    return batch


async def _aperform(command: Call | Wait, collections: Collections) -> Any:
    if isinstance(command, Wait):
        return await asyncio.sleep(command.seconds)
    result = command.on(collections(command.collection))
    if isawaitable(result):
        result = await result
    if not isinstance(command, Read):
        return result
    batch: list[dict[str, Any]] = []
    async with result as cursor:
        async for document in cursor:
            batch.append(document)
            _hand_over(command, batch, command.batch_size)
    _hand_over(command, batch, 1)
    return batch


def _hand_over(command: Read, batch: list[dict[str, Any]], least: int) -> None:
    if command.consume and len(batch) >= least:
        command.consume(batch)
        batch.clear()
