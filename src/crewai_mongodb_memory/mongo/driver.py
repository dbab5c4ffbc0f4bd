"""Runs an operation on a MongoDB database: one runner for ``MongoClient``, one for ``AsyncMongoClient``.

Nothing else in this library calls the driver.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from inspect import isawaitable
from typing import Any, TypeVar

from crewai_mongodb_memory.operations.commands import Command, Document, Operation, Pause, Query

__all__ = ["arun", "run"]

T = TypeVar("T")
Collections = Callable[[str], Any]


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


def _perform(command: Command | Pause, collections: Collections) -> Any:
    if isinstance(command, Pause):
        return time.sleep(command.seconds)
    result = command.on(collections(command.collection))
    if not isinstance(command, Query):
        return result
    batch: list[Document] = []
    with result as cursor:
        for document in cursor:
            batch.append(document)
            _hand_over(command, batch, command.batch_size)
    _hand_over(command, batch, 1)
    return batch


async def _aperform(command: Command | Pause, collections: Collections) -> Any:
    if isinstance(command, Pause):
        return await asyncio.sleep(command.seconds)
    result = command.on(collections(command.collection))
    if isawaitable(result):
        result = await result
    if not isinstance(command, Query):
        return result
    batch: list[Document] = []
    async with result as cursor:
        async for document in cursor:
            batch.append(document)
            _hand_over(command, batch, command.batch_size)
    _hand_over(command, batch, 1)
    return batch


def _hand_over(command: Query, batch: list[Document], least: int) -> None:
    if command.consume and len(batch) >= least:
        command.consume(batch)
        batch.clear()
